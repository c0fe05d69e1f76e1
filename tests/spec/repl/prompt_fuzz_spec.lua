-- The prompt under hostile input: random keys, pastes, sizes and signals (tests/fuzz/prompt.py, a
-- fixed seed), and those that it once did not survive.

local support = require "program_support"
local shell, quote, terminal = support.shell, support.quote, support.terminal

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

describe("the prompt", function()
  if not support.has_terminal() then
    return it("survives random keys", function() pending "there is no Python" end)
  end

  it("survives random keys, pastes, sizes and signals", function()
    local result = shell(("python3 %s %s --seed 1 --seconds 10 --sessions 100"):format(
      quote(root .. "tests/fuzz/prompt.py"), quote(support.program)))
    assert(result.status == 0, result.out .. result.err)
  end)

  -- The keys, then Ctrl-C, then an expression that must be evaluated.
  local function survives(keys, environment)
    local result = terminal({"expect [1]>", "send " .. keys, "pause 0.3", "send \\x03", "expect ^C",
      "send 6 * 7\\r", "expect 42", "send \\x04"}, environment, "--no-init")
    assert(result.status == 0, result.out)
  end

  it("survives the end of a paste in a search", function()
    local empty = "XDG_STATE_HOME=/nonexistent"
    survives("\\x12\\x1b[201~\\t", empty)
    survives("\\x12\\x1b[201~a", empty)
    survives("\\x12x\\x1b[201~\\x01", empty)
    survives("\\x12\\x1b\\x07abcdef", empty)
  end)

  -- The library forgets the line aside when a search fails in an entry, and then frees the changes
  -- of that entry as those of the line aside.
  it("undoes the change of an entry after searches that failed", function()
    local result = terminal({"expect [1]>", "send x = 1\\r", "expect [2]>", "send x = 2\\r",
      "expect [3]>",
      "send \\x1b[A", "pause 0.1", "send z\\x1bp", "pause 0.1", "send nothing\\r", "pause 0.1",
      "send w\\x01", "send \\x1b[A", "pause 0.1", "send \\x1b[5~", "pause 0.1",
      "send \\x01\\x1b[B", "pause 0.1", "send \\x1f", "pause 0.1", "send 6 * 7\\r", "expect 42",
      "send \\x04"},
      "INPUTRC=/nonexistent", "--no-init")
    assert(result.status == 0, result.out)
  end)

  it("survives bytes that are no characters", function()
    survives("\\x16\\x00\\x1b0$e", "INPUTRC=/nonexistent")
    local inputrc = support.file("set editing-mode vi\n", "")
    for _, keys in ipairs {"\\x16\\x00abc\\x1b0eee", "a\\x1b[200~x\\x00y\\x1b[201~\\x1b0eee$"} do
      survives(keys, "LC_ALL=C.UTF-8 INPUTRC=" .. inputrc)
    end
    os.remove(inputrc)
    local path = support.file([[
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", INPUTRC=sys.argv[2])
    os.execv(sys.argv[1], [sys.argv[1], "--no-init"])
seen = b""
def until(text):
    global seen
    end = time.monotonic() + 20
    while text not in seen:
        if time.monotonic() > end:
            sys.exit("it does not answer")
        if select.select([fd], [], [], 0.05)[0]:
            seen += os.read(fd, 65536)
until(b"[1]> ")
for keys in (b"\x80\x80\x1b$\x1b[A0e", b"x\xc3 \xff\x1b0eee", b"\xed\xa0\x80y\x1b$be"):
    for key in keys:
        os.write(fd, bytes([key]))
        time.sleep(0.02)
    time.sleep(0.6)
    os.write(fd, b"\x03")
    time.sleep(0.2)
    seen = b""
    os.write(fd, b"('al' .. 'ive'):rep(2)\r")
    until(b"alivealive")
os.kill(pid, 9)
]], ".py")
    inputrc = support.file("set editing-mode vi\n", "")
    local result = shell(("python3 %s %s %s"):format(quote(path), quote(support.program), inputrc))
    os.remove(path)
    os.remove(inputrc)
    assert(result.status == 0, result.err)
  end)

  it("hears Ctrl-C in a paste that does not end, in a search too", function()
    local result = terminal({"expect [1]>", "send \\x1b[200~abc", "pause 0.2", "send \\x03",
      "expect ^C",
      "send \\x1bpabc\\x1b[200~def", "pause 0.3", "send \\x03", "pause 0.3", "send 6 * 7\\r",
      "expect 42", "send \\x04"}, nil, "--no-init")
    assert(result.status == 0, result.out)
  end)

  it("gives the terminal back when a signal ends it", function()
    local script = [[
import os, pty, signal, sys, termios, time
for number in (signal.SIGTERM, signal.SIGHUP):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.argv[1], [sys.argv[1], "--no-init"])
    before, seen = termios.tcgetattr(fd), b""
    while b"[1]> " not in seen:
        seen += os.read(fd, 4096)
    time.sleep(0.2)
    assert termios.tcgetattr(fd)[3] != before[3], "the editor is not there"
    os.kill(pid, number)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status
    assert termios.tcgetattr(fd)[:4] == before[:4], "the terminal is not as it was"
    assert b"\x1b[?2004l" in os.read(fd, 4096), "pastes are still marked"
    os.close(fd)
]]
    local path = support.file(script, ".py")
    local result = shell(("python3 %s %s"):format(quote(path), quote(support.program)))
    os.remove(path)
    assert(result.status == 0, result.err)
  end)

  it("ends an op at Ctrl-C, and takes storms of signals while ops run", function()
    local script = [[
import os, pty, random, select, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "--no-init"])
seen = b""
def until(text, seconds=30):
    global seen
    end = time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            seen += os.read(fd, 65536)
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done and os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGCONT)
        elif done:
            sys.exit("it ended: %d" % status)
    if text not in seen:
        sys.exit("it does not answer: %r" % seen[-500:])
    seen = b""
until(b"[1]> ")
rng = random.Random(1)
signals = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGINT)
for i in range(6):
    os.write(fd, b"x = lt.randn(500, 500) while true do "
             + (b"x = x:matmul(x):softmax(1):cumsum(1)" if i % 2 else
                b"pcall(function() x = x:matmul(x):sort() end)") + b" end\r")
    for _ in range(40):
        time.sleep(rng.random() * 0.01)
        os.kill(pid, rng.choice(signals[:3]))
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done and os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGCONT)
    for _ in range(6):
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.1)
    os.write(fd, b"\x03")
    time.sleep(0.2)
    os.write(fd, b"('al' .. 'ive'):rep(2)\r")
    until(b"alivealive")
os.kill(pid, 9)
]]
    local path = support.file(script, ".py")
    local result = shell(("python3 %s %s"):format(quote(path), quote(support.program)))
    os.remove(path)
    assert(result.status == 0, result.out .. result.err)
  end)
end)
