"""Measures the latency of the prompt: start of the program, a keystroke, completion, Ctrl-C.

usage: prompt.py PROGRAM [start | keys | completion | interrupts [NAME...]]

Without a word: all but interrupts, which take minutes and some GiB of memory.

Talks to PROGRAM on a pseudo-terminal and prints one line a measurement: `name <tab> milliseconds`.
Where lua5.4, python3 or ipython are installed, their starts stand beside ours.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

LIMIT = 20.0


class Terminal:
    """A program in a terminal of 120 x 40."""

    def __init__(self, command, environment=None):
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment or {})
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.seen = b""

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            data = b""
        if not data:
            raise EOFError("the program ended: " + self.seen[-2000:].decode(errors="replace"))
        self.seen += data
        return data

    def expect(self, pattern, limit=LIMIT):
        """Returns the match and the output before it, and removes both from the buffer."""
        end = time.perf_counter() + limit
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen, before = self.seen[found.end():], self.seen[:found.start()]
                return before
            if time.perf_counter() > end:
                return None
            self.read(0.05)

    def quiet(self, seconds):
        """Reads until the program is silent for so long. Returns the number of bytes and the time of the last."""
        count, last = 0, time.perf_counter()
        while True:
            data = self.read(seconds)
            if not data:
                return count, last
            count, last = count + len(data), time.perf_counter()

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def say(name, seconds, note=""):
    print("%s\t%.3f%s" % (name, seconds * 1e3, "\t" + note if note else ""), flush=True)


# ---- start

def median_run(command, runs=15):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def median_prompt(command, prompt, runs=15):
    times = []
    for _ in range(runs):
        terminal = Terminal(command)
        if terminal.expect(prompt) is None:
            terminal.close()
            return None
        times.append(time.perf_counter() - terminal.started)
        terminal.close()
    return statistics.median(times)


def start(program):
    for name, command, prompt in [
            ("start to prompt", [program], rb"\[1\]> "),
            ("start to prompt, lua5.4", ["lua5.4"], rb"> "),
            ("start to prompt, python3", [sys.executable, "-S"], rb">>> "),
            ("start to prompt, ipython", ["ipython", "--no-banner"], rb"In .*1")]:
        if shutil.which(command[0]):
            seconds = median_prompt(command, prompt, 3 if "ipython" in name else 15)
            if seconds:
                say(name, seconds)
    for name, command in [("start and end, -e ''", [program, "-e", ""]),
                          ("start and end, --version", [program, "--version"]),
                          ("start and end, lua5.4 -e ''", ["lua5.4", "-e", ""]),
                          ("start and end, python3 -c ''", [sys.executable, "-c", ""])]:
        if shutil.which(command[0]):
            say(name, median_run(command))


# ---- keys

def keys(program):
    """Measures a keystroke at the end of a cell of 200 lines, from the key to its last byte of output."""
    terminal = Terminal([program])
    terminal.expect(rb"\[1\]> ")
    terminal.quiet(0.3)
    for name, lines in [("keystroke, 1 line", 1), ("keystroke, cell of 200 lines", 200)]:
        text = "".join("x%d = {%d, 'text', f(y)} -- a line\n" % (i, i) for i in range(lines))
        terminal.send("\x1b[200~do\n" + text + "\x1b[201~")
        terminal.quiet(0.5)
        times, sizes = [], []
        for key in "abcdefghijklmnopqrst":
            begin = time.perf_counter()
            terminal.send(key)
            size, last = terminal.quiet(0.1)
            times.append(last - begin)
            sizes.append(size)
        say(name, statistics.median(times), "%d bytes" % statistics.median(sizes))
        terminal.send("\x03")
        terminal.quiet(0.3)
    terminal.close()


# ---- completion

COMPLETION = '''
local clock, complete = require("lutra.core").clock, require "lutra.repl.complete"
local session = require("lutra.repl.session").new()
for i = 1, 10000 do _G[("global_%d"):format(i)] = i end
for _, row in ipairs {{"of 10,000 globals", "glob"}, {"of one of them", "global_999"},
    {"of a tensor's methods", "lt.ones(3):s"}} do
  local best = math.huge
  for _ = 1, 11 do
    local from = clock()
    complete.at(row[2], #row[2], session)
    best = math.min(best, clock() - from)
  end
  print(("completion %s\t%.3f"):format(row[1], best * 1e3))
end
'''


def completion(program):
    print(subprocess.run([program, "-e", COMPLETION], capture_output=True, text=True,
                         check=True).stdout, end="", flush=True)


# ---- interrupts: Ctrl-C half a second after the cell began, until the next prompt

BIG = "x = lt.rand(1<<28)"  # 1 GiB
QUEUED = ["x = lt.rand({1 << 20}, {device = 'cuda'}); lt.cuda.synchronize()",
          "for _ = 1, 100 do x:sort() end"]
INTERRUPTS = [
    # name, cells before, the cell, environment
    ("loop", [], "while true do end"),
    ("coroutine", [], "coroutine.wrap(function() while true do end end)()"),
    ("pcall loop (2 presses)", [], "while true do pcall(function() while true do end end) end"),
    ("sort's comparison", ["t = {}; for i = 1, 2000000 do t[i] = i * 7919 % 1000003 end"],
     "while true do table.sort(t, function(a, b) return a > b end) end"),
    ("matmul 6000", ["x = lt.rand(6000, 6000)"], "x:mm(x)"),
    ("matmul 6000 float64", ["x = lt.rand({6000, 6000}, {dtype = 'float64'})"], "x:mm(x)"),
    ("matmul of int64 1500", ["x = lt.ones({1500, 1500}, {dtype = 'int64'})"], "x:mm(x)"),
    ("bmm", ["x = lt.rand(40, 1600, 1600)"], "x:bmm(x)"),
    ("randn", [], "lt.randn(1<<28)"),
    ("rand float64", [], "for _ = 1, 20 do lt.rand({1<<27}, {dtype = 'float64'}) end"),
    ("randint", [], "for _ = 1, 20 do lt.randint(1, 1000, {1<<27}) end"),
    ("randperm", [], "lt.randperm(1<<25)"),
    ("bernoulli", ["x = lt.full({1<<27}, 0.5)"], "x:bernoulli()"),
    ("multinomial", ["x = lt.rand(1<<24)"], "x:multinomial(1<<24, {replacement = true})"),
    ("exp", [BIG], "for i = 1, 100 do x:exp() end"),
    ("sort", ["x = lt.rand(1<<26)"], "x:sort()"),
    ("sort rows", ["x = lt.rand(1<<13, 1<<13)"], "x:sort(2)"),
    ("sort columns", ["x = lt.rand(1<<13, 1<<13)"], "x:sort(1)"),
    ("topk", ["x = lt.rand(1<<26)"], "x:topk(1<<22)"),
    ("argsort", ["x = lt.rand(1<<26)"], "x:argsort()"),
    ("cumsum", ["x = lt.rand(1<<29)"], "for _ = 1, 3 do x:cumsum(1) end"),
    ("cumsum columns", ["x = lt.rand(1<<14, 1<<14)"], "x:cumsum(1)"),
    ("sum", [BIG], "for i = 1, 100 do x:sum() end"),
    ("max", [BIG], "for i = 1, 100 do x:max() end"),
    ("argmax", [BIG], "for i = 1, 100 do x:argmax() end"),
    ("softmax", [BIG], "for _ = 1, 20 do x:softmax(1) end"),
    ("std", [BIG], "for i = 1, 100 do x:std() end"),
    ("copy", ["x = lt.ones(1<<29)"], "for _ = 1, 100 do x:clone() end"),
    ("transposed copy", ["x = lt.ones(1<<14, 1<<14)"], "for _ = 1, 20 do x:t():contiguous() end"),
    ("cast", [BIG], "for _ = 1, 20 do x:to('int64') end"),
    ("zeros", [], "for _ = 1, 100 do lt.zeros(1<<29) end"),
    ("ones", [], "for _ = 1, 100 do lt.ones(1<<29) end"),
    ("arange", [], "lt.arange(1<<29)"),
    ("linspace", [], "for _ = 1, 20 do lt.linspace(0, 1, 1<<28) end"),
    ("eye", [], "for _ = 1, 5 do lt.eye(1<<14) end"),
    ("flip", [BIG], "for _ = 1, 20 do x:flip(1) end"),
    ("roll", [BIG], "for _ = 1, 20 do x:roll(5) end"),
    ("triu", ["x = lt.ones(1<<14, 1<<14)"], "for _ = 1, 20 do x:triu() end"),
    ("cat", [BIG], "for _ = 1, 20 do lt.cat{x, x} end"),
    ("stack", [BIG], "for _ = 1, 20 do lt.stack({x, x}, 2) end"),
    ("index_select", ["x = lt.rand(1<<26)", "i = lt.randperm(1<<24)"], "for _ = 1, 50 do x:index_select(1, i) end"),
    ("gather", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x:gather(1, i)"),
    ("index by tensor", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "local y = x[i]"),
    ("index by mask", ["x = lt.rand(1<<28)", "m = x:gt(0.5)"], "for _ = 1, 10 do local y = x[m] end"),
    ("nonzero", ["x = lt.rand(1<<27):gt(0.5)"], "for _ = 1, 10 do x:nonzero() end"),
    ("scatter", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x:scatter(1, i, x)"),
    ("scatter_add", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x:scatter_add(1, i, x)"),
    ("index_add", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x:index_add(1, i, x)"),
    ("index_put", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x[i] = 1"),
    ("index_fill", ["x = lt.rand(1<<26)", "i = lt.randint(1, 1<<26, {1<<26})"], "x:index_fill(1, i, 1)"),
    ("masked_scatter", [BIG, "m = x:gt(0.5)"], "for _ = 1, 5 do x:masked_scatter(m, x) end"),
    ("embedding", ["x = lt.rand(1<<18, 64)", "i = lt.randint(1, 1<<18, {1<<23})"], "for _ = 1, 20 do lt.F.embedding(i, x) end"),
    ("layer_norm", ["x = lt.rand(1<<15, 1<<13)"], "for _ = 1, 20 do lt.layer_norm(x, {1<<13}) end"),
    ("cross_entropy", ["x = lt.rand(1<<15, 1<<12)", "i = lt.randint(1, 1<<12, {1<<15})"],
     "for _ = 1, 100 do lt.F.cross_entropy(x, i) end"),
    ("tensor from a table", ["t = {}; for i = 1, 30000000 do t[i] = i end"], "for _ = 1, 10 do lt.tensor(t) end"),
    ("totable", ["x = lt.ones(1<<26)"], "x:totable()"),
    ("tostring", ["lt.set_printoptions{profile = 'full'}; x = lt.rand(3000000)"], "tostring(x)"),
    ("equal", [BIG, "y = x:clone()"], "for _ = 1, 100 do lt.equal(x, y) end"),
    ("safetensors", [BIG, "name = os.tmpname()"],
     "for _ = 1, 20 do lt.save_safetensors(name, {x = x}); lt.load_safetensors(name) end"),
    ("backward", ["x = lt.rand(1000):requires_grad_(); "], "while true do local y = x; for _ = 1, 100000 do y = y * 1.0 end; y:sum():backward() end"),
    ("backward of a product", ["x = lt.rand(5000, 5000):requires_grad_(); y = x:mm(x):sum()"], "y:backward()"),
    ("optimizer", ["p = {}; for i = 1, 20000 do p[i] = lt.rand(1000):requires_grad_(); p[i].grad = lt.ones(1000) end",
      "o = lt.optim.AdamW(p)"], "for _ = 1, 100 do o:step() end"),
    ("DataLoader", ["d = lt.data.TensorDataset(lt.rand(1000000, 4)); l = lt.data.DataLoader{d, batch_size = 2, shuffle = true}"],
     "while true do for a in l:iter() do end end"),
    ("printing a huge table", ["t = {}; for i = 1, 3000000 do t[i] = {i} end"], "while true do local s = require('lutra.repl.format_value').values(t) end"),
    ("a <close> handler", [], "do local x <close> = setmetatable({}, {__close = function() while true do end end}) end"),
    ("require", [], "package.preload.slow = function() while true do end end; require 'slow'"),
    ("os.execute", [], "os.execute 'sleep 20'"),
    ("io.read", [], "io.read()"),
    ("string.rep", [], "for _ = 1, 100 do local s = ('x'):rep(1 << 30) end"),
    ("string.find", [], "(('a'):rep(30000)):find('.-b')"),
    # a device, emulated: work for some seconds is queued
    ("synchronize", QUEUED, "lt.cuda.synchronize()", "cuda:1"),
    ("item", QUEUED, "x:sum():item()", "cuda:1"),
    ("copy to the host", QUEUED, "x:cpu()", "cuda:1"),
    ("copy from the host", QUEUED, "lt.rand(1<<20):cuda()", "cuda:1"),
    ("event:synchronize", QUEUED, "e = lt.cuda.Event(); e:record(); e:synchronize()", "cuda:1"),
    ("stream:synchronize", QUEUED, "lt.cuda.current_stream():synchronize()", "cuda:1"),
    ("empty_cache", QUEUED, "lt.cuda.empty_cache()", "cuda:1"),
    ("synchronize in a pcall loop (2 presses)", QUEUED, "while true do pcall(lt.cuda.synchronize) end", "cuda:1"),
]


def interrupt(program, name, setup, cell, emulate=None):
    home = tempfile.mkdtemp()
    environment = {"TERM": "dumb", "HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
    if emulate:
        environment["LUTRA_EMULATE"] = emulate
    terminal = Terminal([program], environment)
    try:
        number = 1
        for text in setup:
            terminal.expect(rb"\[%d\]> " % number)
            terminal.send(text + "\r")
            number += 1
        if terminal.expect(rb"\[%d\]> " % number, 120) is None:
            return say(name, 0, "NO PROMPT AFTER SETUP")
        terminal.send(cell + "\r")
        time.sleep(0.5)
        terminal.seen = b""
        terminal.read(0) # its echo
        if re.search(rb"\[%d\]> " % (number + 1), terminal.seen):
            return say(name, 0, "too quick or failed: " + repr(terminal.seen[-200:]))
        begin = time.perf_counter()
        terminal.send("\x03")
        if "2 presses" in name:
            time.sleep(0.05)
            terminal.send("\x03")
        before = terminal.expect(rb"\[%d\]> " % (number + 1), 60)
        seconds = time.perf_counter() - begin
        if before is None:
            return say(name, 60, "NEVER")
        terminal.send("print(6 * 7)\r")
        note = "" if b"interrupted" in before else "NOT SAID: " + repr(before[-300:])
        if terminal.expect(rb"\n42") is None:
            note += " NOT USABLE"
        say(name, seconds, ("SLOW " if seconds > 0.1 else "") + note)
    except EOFError as error:
        say(name, 0, str(error))
    finally:
        terminal.close()
        shutil.rmtree(home)


def interrupts(program, names):
    for row in INTERRUPTS:
        if not names or row[0] in names:
            interrupt(program, *row)


def main():
    program, what, names = sys.argv[1], sys.argv[2:3], sys.argv[3:]
    os.environ["TERM"] = "xterm-256color"
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    if what in ([], ["start"]):
        start(program)
    if what in ([], ["keys"]):
        keys(program)
    if what in ([], ["completion"]):
        completion(program)
    if what == ["interrupts"]:
        interrupts(program, names)


main()
