"""Completion, inspection, history, comms and user expressions, by the messages of the protocol."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

from support import SECONDS, Kernel, check, main, same  # noqa: E402


def cursor(code):
    """Splits code at the mark |: returns the code and the number of code points before the mark."""
    before, _, after = code.partition("|")
    return before + after, len(before)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


# ---- completion

def complete(kernel, code):
    text, position = cursor(code)
    reply, messages = kernel.ask("complete_request", {"code": text, "cursor_pos": position})
    same((reply["status"], messages), ("ok", []))
    return reply


def completed(kernel, code):
    """Returns the code with its only match."""
    text, _ = cursor(code)
    reply = complete(kernel, code)
    same(len(reply["matches"]), 1)
    return text[:reply["cursor_start"]] + reply["matches"][0] + text[reply["cursor_end"]:]


def test_complete_names(kernel):
    kernel.run("local network = {weight = lt.ones(2), wide = 1}")
    same(completed(kernel, "print(netwo|)"), "print(network)")
    same(sorted(complete(kernel, "network.w|")["matches"]), ["weight", "wide"])
    same(completed(kernel, "lt.matmu|(a)"), "lt.matmul(a)")
    same(complete(kernel, "no_such_name_|")["matches"], [])


def test_complete_behind_other_characters(kernel):
    same(completed(kernel, 'local s = "äöü€😀" .. tostri|'), 'local s = "äöü€😀" .. tostring')
    same(completed(kernel, '-- 日本語\nlt.matmu|(x) -- é'), '-- 日本語\nlt.matmul(x) -- é')


def test_complete_commands(kernel):
    same(completed(kernel, ":timei|"), ":timeit")
    same(completed(kernel, "local x = f('é')\n:timei| x"), "local x = f('é')\n:timeit x")
    same(completed(kernel, ":timeit lt.matmu|"), ":timeit lt.matmul")
    same(completed(kernel, ":set colo|"), ":set colors")


def test_complete_paths(kernel):
    folder = tempfile.mkdtemp()
    open(os.path.join(folder, "dätä.csv"), "w").close()
    same(completed(kernel, f":run {folder}/d|"), f":run {folder}/dätä.csv")
    same(completed(kernel, f"io.open('{folder}/d|')"), f"io.open('{folder}/dätä.csv')")


def test_complete_types(kernel):
    kernel.run("local function scale(x, factor) end")
    items = complete(kernel, "é = scal|")["metadata"]["_jupyter_types_experimental"]
    same(items, [{"start": 4, "end": 8, "text": "scale", "type": "function",
                  "signature": "(x, factor)"}])


# ---- inspection

def inspect(kernel, code, level=0):
    text, position = cursor(code)
    content = {"code": text, "cursor_pos": position, "detail_level": level}
    reply, messages = kernel.ask("inspect_request", content)
    same((reply["status"], messages), ("ok", []))
    same(bool(reply["data"]), reply["found"])
    return plain(reply["data"]["text/plain"]) if reply["found"] else None


def test_inspect_names_and_calls(kernel):
    kernel.run("local net = nn.Sequential(nn.Linear(2, 3))")
    kernel.run("local x = lt.ones(2)")
    for code, expected in {
        "é = lt.mat|mul(a, b)": "lt.matmul(", "nn.Linear(|": "nn.Linear", "x:view(2, |": "x:view(",
        "net[1].wei|ght": "net[1].weight", "f(lt.zeros(2), lt.ones(|))": "lt.ones(",
        ":timeit|": ":timeit", "x = 1\n:timeit lt.mat|mul": "lt.matmul(", "fo|r": "for",
    }.items():
        found = inspect(kernel, code)
        check(found and expected in found.split("\n")[0], f"{code!r}: {found!r}")
    for code in ("", "1 + |", "-- lt.matmul|", "no_such_name|", "!ls|"):
        same(inspect(kernel, code), None)


def test_inspect_source(kernel):
    kernel.run("local function twice(x)\n  return 2 * x\nend")
    check("return 2 * x" in inspect(kernel, "twi|ce(3)", 1), "no source")
    check("return 2 * x" not in inspect(kernel, "twi|ce(3)", 0), "source at level 0")


# ---- completeness

def test_is_complete(kernel):
    for code, expected in {
        "x = 1": {"status": "complete"}, "": {"status": "complete"},
        ":whos": {"status": "complete"}, "-- text": {"status": "complete"},
        "for i = 1, 3 do": {"status": "incomplete", "indent": "  "},
        "x = [[": {"status": "incomplete", "indent": ""}, "x = = 1": {"status": "invalid"},
        "function() function() end end": {"status": "invalid"},
    }.items():
        same((code, kernel.ask("is_complete_request", {"code": code})[0]), (code, expected))


# ---- history

def history(kernel, **content):
    content = {"output": False, "raw": True, **content}
    reply, messages = kernel.ask("history_request", content)
    same((reply["status"], messages), ("ok", []))
    return reply["history"]


def test_history():
    kernel = Kernel()
    try:
        cells = ["ä = 1", ":pwd", "for i = 1, 2 do\n  b = i\nend", "ä = 1"]
        for cell in cells:
            kernel.run(cell)
        kernel.run("hidden = 1", store_history=False)
        kernel.run("silent = 1", silent=True)
        tail = history(kernel, hist_access_type="tail", n=10)
        same([entry[2] for entry in tail], cells)
        session, first = tail[0][:2]
        same([entry[1] for entry in tail], list(range(first, first + 4)))
        same(history(kernel, hist_access_type="range", session=session, start=first + 1,
                     stop=first + 3), tail[1:3])
        same(history(kernel, hist_access_type="tail", n=1, output=True),
             [[session, first + 3, ["ä = 1", None]]])
        kernel.run("6 * 7")
        same(history(kernel, hist_access_type="tail", n=1, output=True)[0][2], ["6 * 7", "42"])
        same([e[2] for e in history(kernel, hist_access_type="search", pattern="?*= 1")],
             ["ä = 1", "ä = 1"])
        same([e[1] for e in history(kernel, hist_access_type="search", pattern="ä*", unique=True)],
             [first + 3])
        same(history(kernel, hist_access_type="search", pattern="nothing*"), [])
    finally:
        kernel.close()


def test_history_of_earlier_sessions():
    kernel = Kernel()
    try:
        cell = "before = 'ä\\n'\n-- two lines"
        kernel.run(cell)
        kernel.manager.restart_kernel(now=True)
        kernel.wait_for_ready()
        kernel.run("after = 1")
        same(history(kernel, hist_access_type="tail", n=5), [[-1, 1, cell], [0, 1, "after = 1"]])
        same(history(kernel, hist_access_type="range", session=-1, start=1, stop=2),
             [[-1, 1, cell]])
        same(history(kernel, hist_access_type="search", pattern="*two*"), [[-1, 1, cell]])
    finally:
        kernel.close()


# ---- expressions, comms

def test_user_expressions(kernel):
    kernel.run("local x = 20\n'kept'")
    result = kernel.run("y = 1", user_expressions={
        "good": "x + 1", "bad": "error 'boom'", "cut": "1 +"})
    replies = result.reply["user_expressions"]
    same(replies["good"], {"status": "ok", "data": {"text/plain": "21"}, "metadata": {}})
    same((replies["bad"]["status"], replies["cut"]["status"]), ("error", "error"))
    check("boom" in replies["bad"]["evalue"] and replies["bad"]["traceback"], replies["bad"])
    same((result.reply["status"], result.out, result.err, result.of("error")), ("ok", "", "", []))
    same(kernel.run("_").text, '"kept"')


def test_comms(kernel):
    content = {"comm_id": "c", "target_name": "none", "data": {}}
    opened = kernel.outputs(kernel.send("comm_open", content))
    same([(m["msg_type"], m["content"]) for m in opened],
         [("comm_close", {"comm_id": "c", "data": {}})])
    same(kernel.ask("comm_info_request", {"target_name": "none"})[0], {"status": "ok", "comms": {}})
    same(kernel.outputs(kernel.send("comm_msg", {"comm_id": "c", "data": {}})), [])


# ---- commands

def test_the_debugger_cell_by_cell(kernel):
    kernel.run("function inner(n) local secret = n + 1; error 'boom' end")
    same(kernel.run("inner(20)").reply["status"], "error")
    check("in function 'inner'" in plain(kernel.run(":debug").out), "no frames")
    same(kernel.run("secret").text, "21")
    check("secret = 21" in plain(kernel.run(":locals").out), "no locals")
    same(kernel.run("no_such.field").reply["status"], "error")
    kernel.run(":continue")
    same(kernel.run("secret").text, "nil")


def test_an_error_at_a_breakpoint_is_not_the_cells(kernel):
    code = "do local a = 1; lt.breakpoint() end\n'end'"
    message_id = kernel.client.execute(code, allow_stdin=True)
    for answer in ("no_such.field", "a", ":continue"):
        kernel.client.get_stdin_msg(timeout=SECONDS)
        kernel.client.input(answer)
    messages = kernel.outputs(message_id)
    same(kernel.reply(message_id)["status"], "ok")
    same([m for m in messages if m["msg_type"] == "error"], [])


def test_an_interrupt_at_a_breakpoint_stops_the_cell(kernel):
    message_id = kernel.client.execute("lt.breakpoint()\nafter_it = 1", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=SECONDS)
    kernel.manager.interrupt_kernel()
    kernel.outputs(message_id)
    same(kernel.reply(message_id)["status"], "error")
    same(kernel.run("after_it").text, "nil")


def test_edit_is_not_available(kernel):
    reply = kernel.run(":edit").reply
    same(reply["status"], "error")
    check("not available in a notebook" in reply["evalue"], reply)


def test_commands_of_ipython_have_a_hint(kernel):
    for code, hint in {"%timeit f(x)": ":timeit f(x)", "%%time\nf(x)": ":time", "%whos": ":whos",
                       "%matplotlib inline": "lt.plot"}.items():
        reply = kernel.run(code).reply
        same(reply["status"], "error")
        lines = map(plain, reply["traceback"])
        check(any("hint: " in line and hint in line for line in lines), reply)


def test_lines_of_an_error_behind_a_command(kernel):
    reply = kernel.run("local x = 1\n:pwd\n\nerror 'here'").reply
    check(":4: here" in reply["evalue"], reply)


def test_a_lesson_adds_a_cell_with_its_code():
    kernel = Kernel()
    try:
        if kernel.run(":emulate cuda:2,memory=256MiB").reply["status"] == "error":
            return  # built without a C++ compiler: there are no emulated devices
        result = kernel.run(":lesson 1")
        same((result.reply["status"], [p["source"] for p in result.reply["payload"]]),
             ("ok", ["set_next_input"]))
        check(result.reply["payload"][0]["text"].startswith("function place()"), result.reply)
        kernel.run("function place()\n  return lt.zeros(1000, 1000, {device = 'cuda'})\nend")
        check("done:" in plain(kernel.run(":check").out), "not done")
    finally:
        kernel.close()


def test_several_results_have_all_forms(kernel):
    data = kernel.run("lt.ones(2), lt.zeros(3)").data
    same(data["text/html"].count("<table"), 2)
    check("tensor{1., 1.}" in plain(data["text/plain"]), data["text/plain"])


def test_code_for_a_command(kernel):
    result = kernel.run(":time\nlocal s = 0\nfor i = 1, 10 do s = s + i end\nreturn s")
    same((result.reply["status"], result.text), ("ok", "55"))
    check("CPU" in result.out, result.out)


main(globals())
