"""The debugger by the messages that JupyterLab sends, and the messages of other front ends."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))

from support import SECONDS, Kernel, check, main, same  # noqa: E402

LOOP = "local total = 0\nfor i = 1, 5 do\n  local square = i * i\n  total = total + square\nend\ntotal"


class Debugger:
    """Requests to the debugger of a kernel, and its events."""

    def __init__(self, kernel):
        self.kernel, self.sequence, self.messages = kernel, 0, []

    def ask(self, command, **arguments):
        """Sends a request; returns the content of the reply."""
        self.sequence += 1
        message_id = self.kernel.send("debug_request", {
            "type": "request", "seq": self.sequence, "command": command, "arguments": arguments},
            channel="control")
        reply = self.kernel.reply(message_id, channel="control")
        same((reply["type"], reply["request_seq"], reply["command"]),
             ("response", self.sequence, command))
        self.wait(lambda m: m["parent_header"].get("msg_id") == message_id
                  and m["content"].get("execution_state") == "idle")
        return reply

    def wait(self, condition):
        """Reads messages of iopub up to one for which the condition holds; returns it."""
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=SECONDS)
            self.messages.append(message)
            if condition(message):
                return message

    def event(self, name):
        """Waits for an event; returns its body."""
        message = self.wait(lambda m: m["msg_type"] == "debug_event"
                            and m["content"]["event"] == name)
        return message["content"].get("body")

    def start(self):
        check(self.ask("initialize")["success"], "expected a start")
        check(self.ask("attach")["success"], "expected an attachment")

    def set_breakpoints(self, code, *lines):
        path = self.ask("dumpCell", code=code)["body"]["sourcePath"]
        reply = self.ask("setBreakpoints", source={"path": path},
                         breakpoints=[{"line": line} for line in lines])
        check(all(b["verified"] for b in reply["body"]["breakpoints"]), "expected breakpoints")

    def top(self):
        frame = self.ask("stackTrace", threadId=1)["body"]["stackFrames"][0]
        return frame["name"], frame["line"]


def test_stop_and_step(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    debugger.set_breakpoints(LOOP, 4)
    message_id = kernel.client.execute(LOOP)
    same(debugger.event("stopped")["reason"], "breakpoint")
    same(debugger.ask("debugInfo")["body"]["stoppedThreads"], [1])
    same(debugger.top(), ("cell", 4))
    same(debugger.ask("evaluate", expression="square + 1", frameId=1)["body"]["result"], "2")
    debugger.ask("next", threadId=1)
    debugger.event("stopped")
    check(debugger.top() != ("cell", 4), "expected another line")
    debugger.ask("evaluate", expression="total = 100", frameId=1)
    debugger.ask("disconnect")
    debugger.wait(lambda m: m["parent_header"].get("msg_id") == message_id
                  and m["content"].get("execution_state") == "idle")
    same(kernel.reply(message_id)["status"], "ok")
    results = [m["content"]["data"]["text/plain"] for m in debugger.messages
               if m["msg_type"] == "execute_result"]
    same(results, ["154"])


def test_interrupt_while_stopped(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    debugger.set_breakpoints(LOOP, 4)
    message_id = kernel.client.execute(LOOP)
    debugger.event("stopped")
    kernel.manager.interrupt_kernel()
    debugger.event("continued")
    reply = kernel.reply(message_id)
    same((reply["status"], reply["ename"]), ("error", "Interrupted"))
    debugger.ask("disconnect")
    same(kernel.run("1 + 1").text, "2")


def test_requests_while_a_cell_runs(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    code = "running = true\nwhile running do\n  n = (n or 0) + 1\nend\n'over'"
    message_id = kernel.client.execute(code)
    debugger.wait(lambda m: m["msg_type"] == "execute_input")
    before = time.monotonic()
    variables = debugger.ask("inspectVariables")["body"]["variables"]
    check(time.monotonic() - before < 5, "expected an answer while the cell runs")
    check(any(v["name"] == "running" for v in variables), "expected the variables")
    debugger.set_breakpoints(code, 3)
    debugger.event("stopped")
    debugger.ask("evaluate", expression="running = false", frameId=1)
    debugger.ask("continue", threadId=1)
    same(kernel.reply(message_id)["status"], "ok")
    debugger.ask("disconnect")


def test_an_error_that_ends_a_cell(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    debugger.ask("setExceptionBreakpoints", filters=["uncaught"])
    message_id = kernel.client.execute("local x = 7\nerror 'boom'")
    body = debugger.event("stopped")
    same(body["reason"], "exception")
    check("boom" in body["text"], body["text"])
    same(debugger.ask("evaluate", expression="x", frameId=1)["body"]["result"], "7")
    debugger.ask("continue", threadId=1)
    same(kernel.reply(message_id)["status"], "error")
    debugger.ask("disconnect")


def test_the_library_breakpoint(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    message_id = kernel.client.execute("local x = 1\nlt.breakpoint()\nprint(x)")
    debugger.event("stopped")
    same(debugger.top(), ("cell", 2))
    debugger.ask("continue", threadId=1)
    same(kernel.reply(message_id)["status"], "ok")
    debugger.ask("disconnect")


def test_a_rich_variable(kernel):
    kernel.run("shown = lt.ones{2, 2}")
    body = Debugger(kernel).ask("richInspectVariables", variableName="shown")["body"]
    check("text/html" in body["data"] and "text/plain" in body["data"], str(body["data"].keys()))


def test_an_invalid_request_is_answered(kernel):
    reply, _ = kernel.ask("debug_request", {}, channel="control")
    same(reply["success"], False)
    same(kernel.run("1").text, "1")


def test_a_burst_while_the_debugger_is_started(kernel):
    debugger = Debugger(kernel)
    debugger.start()
    result = kernel.run("for i = 1, 20000 do print(i) end")
    same(len(result.out.splitlines()), 20000)
    debugger.ask("disconnect")


def test_the_messages_of_visual_studio_code():
    """It asks for kernel_info on both channels, and completes and inspects with metadata."""
    kernel = Kernel()
    try:
        for channel in ("shell", "control"):
            info, _ = kernel.ask("kernel_info_request", {}, channel=channel)
            same((info["status"], info["language_info"]["name"]), ("ok", "lua"))
        for kind, content in (("complete_request", {"code": "lt.matm", "cursor_pos": 7}),
                              ("inspect_request", {"code": "lt.matmul", "cursor_pos": 9,
                                                   "detail_level": 0})):
            message = kernel.client.session.msg(kind, content, metadata={
                "cellId": "vscode-notebook-cell:/a.ipynb#W0sZmlsZQ"})
            kernel.client.shell_channel.send(message)
            same(kernel.reply(message["header"]["msg_id"])["status"], "ok")
            kernel.outputs(message["header"]["msg_id"])
        result = kernel.run("print 'hello'", store_history=True, allow_stdin=True,
                            stop_on_error=False)
        same(result.out, "hello\n")
    finally:
        kernel.close()


if __name__ == "__main__":
    main(globals())
