"""Cells, streams, input, interrupts and the end of a kernel, by the messages of the protocol."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from support import PROGRAM, SECONDS, Kernel, check, main, nothing_more, same

sys.path.insert(0, os.path.dirname(__file__))


# ---- cells

def test_kernel_info_on_both_channels(kernel):
    for channel in ("shell", "control"):
        content, _ = kernel.ask("kernel_info_request", {}, channel)
        same(content["status"], "ok")
        same(content["language_info"]["name"], "lua")
        same(content["language_info"]["file_extension"], ".lua")
        check(content["protocol_version"].startswith("5."), content["protocol_version"])


def test_streams(kernel):
    result = kernel.run("print('a', 1) io.write('b') io.stderr:write('c\\n')")
    same((result.out, result.err), ("a\t1\nb", "c\n"))
    same(result.reply["status"], "ok")


def test_result_and_count(kernel):
    first = kernel.run("20 + 1")
    same(first.text, "21")
    second = kernel.run("_ * 2")
    same(second.text, "42")
    same(second.reply["execution_count"], first.reply["execution_count"] + 1)
    same(second.of("execute_input")[0]["code"], "_ * 2")
    same(second.of("execute_input")[0]["execution_count"], second.reply["execution_count"])


def test_locals_persist_and_last_lines_are_the_value(kernel):
    same(kernel.run("local a <const> = 5\nlocal function f(x) return x + a end\nf(1)").text, "6")
    same(kernel.run("f(a)").text, "10")
    same(kernel.run("f(1);").text, None)


def test_error_is_one_message(kernel):
    result = kernel.run("local t = {}\nprint 'before'\nreturn t.x.y")
    kinds = [m["msg_type"] for m in result.messages]
    same(kinds, ["execute_input", "stream", "error"])
    error = result.of("error")[0]
    check("attempt to index a nil value" in error["evalue"], error)
    check(any("t.x.y" in line for line in error["traceback"]), "no source line in the traceback")
    same(result.reply["status"], "error")
    same(result.reply["evalue"], error["evalue"])


def test_syntax_error(kernel):
    result = kernel.run("x = = 1")
    same(len(result.of("error")), 1)
    same(result.reply["status"], "error")


def test_error_while_printing_a_result(kernel):
    result = kernel.run("setmetatable({}, {__tostring = function() error('no text') end})")
    check(result.reply["status"] in ("ok", "error"), result.reply)
    same(kernel.run("1").text, "1")


def test_changed_string_functions(kernel):
    for code in ("string.format = nil", "string.gsub, string.find, string.match, string.sub = nil",
                 "getmetatable('').__index = nil", "string.rep = 5 error(1)",
                 "string.byte = function() error 'x' end return {}"):
        kernel.run(code)
        result = kernel.run("return ('x'):rep(3), {1.5}, string.format('%d', 7)")
        same((result.reply["status"], result.text), ("ok", '"xxx"\t{1.5}\t"7"'))


def test_silent(kernel):
    before = kernel.run("1").reply["execution_count"]
    result = kernel.run("print 'x' y_silent = 3 return 5", silent=True)
    same([m["msg_type"] for m in result.messages], [])
    same(result.reply["execution_count"], before)
    result = kernel.run("y_silent")
    same((result.text, result.reply["execution_count"]), ("3", before + 1))


def test_silent_error(kernel):
    result = kernel.run("error 'x'", silent=True)
    same([m["msg_type"] for m in result.messages], [])
    same(result.reply["status"], "error")


def test_without_history(kernel):
    before = kernel.run("1").reply["execution_count"]
    same(kernel.run("2", store_history=False).reply["execution_count"], before)
    same(kernel.run("3").reply["execution_count"], before + 1)


def test_empty_cells(kernel):
    for code in ("", "  \n", "-- a comment"):
        result = kernel.run(code)
        same((result.reply["status"], result.text, result.out), ("ok", None, ""))


def test_stop_on_error(kernel):
    wait = "os.execute 'sleep 0.5' "  # until the other requests have arrived
    ids = [kernel.client.execute(c) for c in (wait + "error 'x'", "stopped = 1", "stopped = 2")]
    same([kernel.reply(i)["status"] for i in ids], ["error", "aborted", "aborted"])
    for i in ids:
        kernel.outputs(i)
    same(kernel.run("stopped").text, "nil")


def test_no_stop_on_error(kernel):
    ids = [kernel.client.execute(c, stop_on_error=False) for c in ("error 'x'", "went_on = 7")]
    same([kernel.reply(i)["status"] for i in ids], ["error", "ok"])
    for i in ids:
        kernel.outputs(i)
    same(kernel.run("went_on").text, "7")


def test_commands(kernel):
    kernel.run("seen_by_whos = lt.zeros(3)")
    check("seen_by_whos" in kernel.run(":whos").out, "no :whos")
    check("executions" in kernel.run(":timeit 1 + 1").out
          or "loops" in kernel.run(":timeit 1 + 1").out, "no :timeit")
    same(kernel.run("!echo from a shell").out, "from a shell\n")
    result = kernel.run("mixed = 5\n:pwd\nmixed + 1")
    same((result.out, result.text), (os.getcwd() + "\n", "6"))
    same(kernel.run(":nosuch").reply["status"], "error")


def test_help_is_paged(kernel):
    payload = kernel.run("?lt.matmul").reply["payload"]
    same(payload[0]["source"], "page")
    check("matmul" in payload[0]["data"]["text/plain"], payload)


def test_quit_asks_the_front_end(kernel):
    payload = kernel.run("quit").reply["payload"]
    same([p["source"] for p in payload], ["ask_exit"])
    same(kernel.run("1").text, "1")


# ---- output

def test_output_of_c_and_children(kernel):
    result = kernel.run("os.execute 'echo child; echo error >&2'\n"
                        "for line in io.popen('echo piped'):lines() do print(line) end")
    same((result.out, result.err), ("child\npiped\n", "error\n"))


def test_invalid_utf8(kernel):
    same(kernel.run(r"io.write 'a\xff\xed\xa0\x80b\n'").out, "a\ufffd\ufffd\ufffd\ufffdb\n")
    check("\ufffd" in kernel.run(r"error 'x\xff'").of("error")[0]["evalue"], "not replaced")
    same(kernel.run(r"return '\xc3\xa4' == 'ä'").text, "true")


def test_characters_are_not_split(kernel):
    code = "for _ = 1, 3 do io.write '\\xe2' io.flush() os.execute 'sleep 0.05' " \
           "io.write '\\x82\\xac' io.flush() end"
    same(kernel.run(code).out, "€€€")


def test_burst_of_lines(kernel):
    beats = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            beats.append(kernel.client.hb_channel.is_beating())
            time.sleep(0.05)
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(3):
        result = kernel.run("for i = 1, 100000 do print('line ' .. i) end")
        same(result.out, "".join(f"line {i}\n" for i in range(1, 100001)))
        check(len(result.messages) < 500, f"{len(result.messages)} messages")
    done.set()
    watcher.join()
    check(all(beats), "the heartbeat stopped")


def test_output_belongs_to_its_cell(kernel):
    for i in range(200):
        same(kernel.run(f"io.write '{i}'").out, str(i))


def test_order_of_output_and_messages(kernel):
    code = "for i = 1, 300 do io.write(i, ' ') lt.display(i, {['text/plain'] = 'd' .. i}) end"
    shown = []
    for message in kernel.run(code).messages:
        content = message["content"]
        if message["msg_type"] == "stream":
            shown += content["text"].split()
        elif message["msg_type"] == "display_data":
            shown.append(content["data"]["text/plain"])
    same(shown, [x for i in range(1, 301) for x in (str(i), f"d{i}")])


def test_display_update_and_clear(kernel):
    result = kernel.run("h = lt.display({1, 2}, {['text/html'] = '<b>x</b>', ['text/plain'] = 'x'})\n"
                        "h:update({3}, {['text/plain'] = 'y'})\nlt.clear_output{wait = true}")
    shown, updated = result.of("display_data")[0], result.of("update_display_data")[0]
    same(shown["data"], {"text/html": "<b>x</b>", "text/plain": "x"})
    same(updated["data"]["text/plain"], "y")
    same(updated["transient"], shown["transient"])
    same(result.of("clear_output"), [{"wait": True}])


def test_tensors_are_tables(kernel):
    data = kernel.run("lt.arange(6):view(2, 3)").data
    check("tensor" in data["text/plain"], data)
    check("<table" in data["text/html"] and ">5<" in data["text/html"], data["text/html"])


def test_large_cell(kernel):
    same(kernel.run("return #[[" + "x" * (10 << 20) + "]]").text, str(10 << 20))


# ---- input

def answered(kernel, code, answers, **options):
    """Runs a cell whose requests for input are answered; returns the result and the prompts."""
    message_id, prompts = kernel.client.execute(code, allow_stdin=True, **options), []
    for answer in answers:
        request = kernel.client.get_stdin_msg(timeout=SECONDS)
        same(request["parent_header"]["msg_id"], message_id)
        prompts.append(request["content"]["prompt"])
        kernel.client.input(answer)
    messages = kernel.outputs(message_id)
    from support import Result
    return Result(kernel.reply(message_id), messages), prompts


def test_input(kernel):
    result, _ = answered(kernel, "io.write 'name? '\nlocal s = io.read()\nreturn s .. '!'", ["Ada ä"])
    same((result.out, result.text), ("name? ", '"Ada ä!"'))
    result, _ = answered(kernel, "local n, l = io.read('n', 'l')\nreturn n, l, io.stdin:read('L')",
                         ["12 rest", "next"])
    same(result.text, '12\t" rest"\t"next\\n"')


def test_input_without_permission(kernel):
    same(kernel.run("return io.read()", allow_stdin=False).text, "nil")


def test_interrupted_input(kernel):
    message_id = kernel.client.execute("io.read() io.read()", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=SECONDS)
    kernel.manager.interrupt_kernel()
    kernel.outputs(message_id)
    reply = kernel.reply(message_id)
    same(reply["status"], "error")
    check("interrupted" in reply["evalue"], reply)
    result, _ = answered(kernel, "return io.read()", ["after"])
    same(result.text, '"after"')


def test_breakpoint_reads_from_the_front_end(kernel):
    code = "local function f(x)\n  lt.breakpoint()\n  return x + 1\nend\nreturn f(1)"
    result, prompts = answered(kernel, code, ["x = 41", ":continue"])
    same(prompts, ["debug> ", "debug> "])
    same(result.text, "42")


# ---- interrupts

def interrupted(kernel, code, seconds=0.3):
    """Runs a cell and interrupts it; returns its reply."""
    message_id = kernel.client.execute(code)
    time.sleep(seconds)
    kernel.manager.interrupt_kernel()
    kernel.outputs(message_id)
    return kernel.reply(message_id)


def test_interrupt_by_message():
    kernel = Kernel("message")
    try:
        # a loop that catches errors needs a second interrupt
        message_id = kernel.client.execute("while true do pcall(function() while true do end end) end")
        time.sleep(0.3)
        kernel.manager.interrupt_kernel()
        time.sleep(0.2)
        kernel.manager.interrupt_kernel()
        kernel.outputs(message_id)
        same(kernel.reply(message_id)["status"], "error")
        for code in ("while true do end", "local x = lt.ones(1500, 1500) while true do x:matmul(x) end",
                     "lt.randn(1 << 25):sort():sort():sort():sort()", "os.execute 'sleep 20'"):
            same(interrupted(kernel, code)["status"], "error")
            same(kernel.run("1 + 1").text, "2")
        interrupted(kernel, "!sleep 20")
        same(kernel.run("1 + 1").text, "2")
    finally:
        kernel.close()


def test_interrupt_by_signal():
    kernel = Kernel("signal")
    try:
        for code in ("while true do end", "local x = lt.ones(1500, 1500) while true do x:matmul(x) end"):
            same(interrupted(kernel, code)["status"], "error")
            same(kernel.run("1 + 1").text, "2")
        os.kill(kernel.process(), signal.SIGINT)  # nothing runs
        same(kernel.run("2 + 2").text, "4")
    finally:
        kernel.close()


def test_interrupt_stops_the_waiting_cells(kernel):
    ids = [kernel.client.execute(c) for c in ("while true do end", "later = 1")]
    time.sleep(0.2)
    kernel.manager.interrupt_kernel()
    same([kernel.reply(i)["status"] for i in ids], ["error", "aborted"])
    for i in ids:
        kernel.outputs(i)


# ---- comms

def test_comm_of_unknown_target(kernel):
    message_id = kernel.send("comm_open", {"comm_id": "c1", "target_name": "none", "data": {}})
    messages = kernel.outputs(message_id)
    same([(m["msg_type"], m["content"]["comm_id"]) for m in messages], [("comm_close", "c1")])
    for kind in ("comm_msg", "comm_close"):
        same(kernel.outputs(kernel.send(kind, {"comm_id": "c1", "data": {}})), [])
    same(kernel.ask("comm_info_request", {})[0]["comms"], {})


# ---- the wire

def test_unknown_requests_are_ignored(kernel):
    same(kernel.outputs(kernel.send("nonsense_request", {})), [])
    nothing_more(kernel.client.get_shell_msg)
    same(kernel.run("1").text, "1")


def test_bad_content_is_an_error(kernel):
    content, _ = kernel.ask("execute_request", {"code": 5})
    same(content["status"], "error")
    same(kernel.run("1").text, "1")


def raw_socket(kernel, channel):
    client = kernel.client
    return (client.shell_channel if channel == "shell" else client.control_channel).socket


def test_bad_signatures_and_frames(kernel):
    client = kernel.client
    for channel in ("shell", "control"):
        socket = raw_socket(kernel, channel)
        frames = client.session.serialize(client.session.msg("execute_request", {"code": "bad = 1"}))
        wrong = [frames[0], b"0" * 64, *frames[2:]]
        for bad in (wrong, frames[:1], frames[:3], [b"x"], [b""] * 9,
                    [frames[0], b"", *frames[2:]], [frames[0], frames[1][:10], *frames[2:]]):
            socket.send_multipart(bad)
        for part in (2, 4, 5):  # signed, but not JSON
            broken = list(frames[2:6])
            broken[part - 2] = b"{\xff"
            socket.send_multipart([frames[0], client.session.sign(broken), *broken])
    same(kernel.run("bad").text, "nil")
    same(kernel.ask("kernel_info_request", {}, "control")[0]["status"], "ok")


def test_without_signatures():
    kernel = Kernel(key=b"")
    try:
        same(kernel.run("1").text, "1")
    finally:
        kernel.close()


def test_two_front_ends(kernel):
    other = kernel.connect()
    try:
        result = kernel.run("shared = 5 print 'both'")
        same(result.reply["status"], "ok")
        seen = []
        while True:
            message = other.get_iopub_msg(timeout=SECONDS)
            if message["msg_type"] == "stream":
                seen.append(message["content"]["text"])
                break
        same(seen, ["both\n"])
        same(kernel.run("shared", client=other).text, "5")
    finally:
        other.stop_channels()


# ---- the start

def start_with(connection):
    """Starts a kernel that cannot run; returns its exit status and what it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(connection if isinstance(connection, str) else json.dumps(connection))
        file.flush()
        done = subprocess.run([PROGRAM, "--kernel", file.name], capture_output=True, text=True,
                              timeout=SECONDS)
    return done.returncode, done.stderr


def test_connection_files_that_are_wrong():
    good = {"transport": "tcp", "ip": "127.0.0.1", "key": "", "shell_port": 1, "control_port": 2,
            "stdin_port": 3, "iopub_port": 4, "hb_port": 5}
    for change, expected in (
            ({"key": 5}, "expected a string as 'key' of the connection file, got number"),
            ({"hb_port": 70000}, "expected a port number as 'hb_port' of the connection file, got 70000"),
            ({"ip": "999.0.0.1"}, "cannot listen at tcp://999.0.0.1:1: "),
            ({"signature_scheme": "hmac-md5", "key": "x"}, "expected the signature scheme hmac-sha256"),
            (None, "expected a connection file, got ")):
        status, printed = start_with("[" if change is None else {**good, **change})
        same(status, 1)
        check(printed.startswith("lutra: --kernel: " + expected), printed)
        check("lib/lutra" not in printed, printed)


# ---- the end

def test_shutdown():
    kernel = Kernel()
    try:
        content, _ = kernel.ask("shutdown_request", {"restart": False}, "control")
        same(content, {"status": "ok", "restart": False})
        check(kernel.wait_for_end(), "the process did not end")
    finally:
        kernel.close()


def test_shutdown_on_shell():
    kernel = Kernel()
    try:
        content, _ = kernel.ask("shutdown_request", {"restart": True}, "shell")
        same(content, {"status": "ok", "restart": True})
        check(kernel.wait_for_end(), "the process did not end")
    finally:
        kernel.close()


def test_shutdown_of_a_busy_kernel():
    for code in ("while true do end", "while true do pcall(function() while true do end end) end"):
        kernel = Kernel()
        try:
            kernel.client.execute(code)
            time.sleep(0.3)
            content = kernel.reply(kernel.send("shutdown_request", {"restart": False}, "control"),
                                   channel="control")
            same(content["status"], "ok")
            check(kernel.wait_for_end(), "the process did not end")
        finally:
            kernel.close()


def test_exit_in_a_cell():
    kernel = Kernel()
    try:
        message_id = kernel.client.execute("for i = 1, 10000 do print(i) end os.exit(3)")
        printed = ""
        while not printed.endswith("10000\n"):
            message = kernel.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == message_id:
                printed += message["content"].get("text", "")
        check(kernel.wait_for_end(), "the process did not end")
    finally:
        kernel.close()


def test_restart():
    kernel = Kernel()
    try:
        kernel.run("kept = 1")
        kernel.manager.restart_kernel()
        kernel.wait_for_ready()
        result = kernel.run("kept")
        same((result.text, result.reply["execution_count"]), ("nil", 1))
    finally:
        kernel.close()


def test_killed_in_the_middle():
    kernel = Kernel()
    try:
        kernel.client.execute("while true do end")
        time.sleep(0.2)
        os.kill(kernel.process(), signal.SIGKILL)
        check(kernel.wait_for_end(), "not killed")
        kernel.manager.restart_kernel()
        kernel.wait_for_ready()
        same(kernel.run("1").text, "1")
    finally:
        kernel.close()


def test_ends_with_its_parent():
    """A kernel whose starter is killed ends, also while code runs."""
    script = ("import sys, time\nsys.path.insert(0, 'tests/kernel')\nfrom support import Kernel\n"
              "k = Kernel()\nk.client.execute('while true do end')\ntime.sleep(0.3)\n"
              "print(k.process(), flush=True)\ntime.sleep(60)\n")
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    process = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{process}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.1)
    os.kill(process, signal.SIGKILL)
    raise AssertionError("the kernel went on")


if __name__ == "__main__":
    main(globals())
