"""Rows that compare Lutra with PyTorch on the CPU, and the program that measures them in turns."""

import argparse
import collections
import datetime
import math
import os
import re
import subprocess
import sys
import time

from timing import seconds_of_call

# `moved`: the bytes that the work reads and writes at least; `flops`: its operations. Both are 0
# where the limits of the machine say nothing about the row.
Row = collections.namedtuple("Row", "name setup lua python_setup python moved flops")
ROWS = []


def row(name, lua, python, setup="", python_setup="", moved=0, flops=0):
    ROWS.append(Row(name, setup, lua, python_setup, python, moved, flops))


def rows(group, setup, python_setup, calls):
    """Rows with one set-up. A call is source code that is valid in both languages, where T. is
    the namespace of tensors, or a pair of Lua and Python."""
    for call in calls:
        lua, python = (call, call) if isinstance(call, str) else call
        row("%s: %s" % (group, python.replace("T.", "")), lua.replace("T.", "lt."),
            python.replace("T.", "torch."), setup, python_setup)


def step(name, setup, python_setup):
    """A row of a training step: both set-ups define a function `step`."""
    row(name, "step()", "step()", setup.strip().replace("\n", "\\n"), python_setup)


# ---- the sides --------------------------------------------------------------------------------


class Lutra:
    """A process of Lutra that runs bench/pairs.lua."""

    def __init__(self, program, threads):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.lua")
        self.process = subprocess.Popen([program, script, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.name = self.ask("info ")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer.startswith("error") or not answer:
            raise RuntimeError("Lutra: " + answer)
        return answer

    def prepare(self, row):
        returns = "" if row.lua == "step()" else "return "
        self.ask("prepare %s\\nreturn function() %s%s end" % (row.setup, returns, row.lua))

    def run(self, seconds):
        return float(self.ask("run %g" % seconds))


class Torch:
    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional,
                      "optim": torch.optim}
        self.torch = torch
        self.name = "PyTorch %s (%s)" % (torch.__version__, torch.backends.cpu.get_cpu_capability())

    def prepare(self, row):
        self.torch.manual_seed(1)
        names = dict(self.names)
        exec(row.python_setup, names)
        self.f = eval("lambda: " + row.python, names)
        self.f()

    def run(self, seconds):
        return seconds_of_call(self.f, seconds)


# What restricts both sides to AVX2, on a CPU that has more.
AVX2 = {"LUTRA_CPU_CAPABILITY": "avx2", "LUTRA_OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2"}


def restrict(options):
    """Restricts the sides that are opened from now on to the instructions of the options."""
    os.environ.pop("OPENBLAS_CORETYPE", None)  # chosen for another program than these
    if options.isa == "avx2":
        if subprocess.run([options.lutra, "-e", ""], env={**os.environ, **AVX2}, check=False,
                          stderr=subprocess.DEVNULL).returncode:
            print("this CPU lacks AVX2: measuring without it", file=sys.stderr)
        else:
            os.environ.update(AVX2)


def open_torch(*make):
    """Returns the sides that these functions make; none without PyTorch."""
    try:
        return [f() for f in make]
    except ImportError:
        print("PyTorch is not installed: python3 -m pip install torch", file=sys.stderr)
        return []


def least(sides, rounds):
    """Returns the least time of each side, which run in turns. Before each turn there is a pause, in
    which the threads of the other sides cease to spin."""
    def turn(side):
        time.sleep(0.01)
        return side.run(0.02)
    return [min(times) for times in zip(*([turn(side) for side in sides] for _ in range(rounds)))]


def measure(sides, row, rounds):
    """Returns the least time of each side for a row."""
    for side in sides:
        side.prepare(row)
    return least(sides, rounds)


# ---- the limits of the machine ----------------------------------------------------------------


PRODUCT = 2048  # the size of the matrices


class Limits:
    """The best rates of the sides for a copy of 10^6 and of 10^7 float32, in place, and for a matrix
    product. A row cannot take less time than its bytes at the copy's bandwidth, or its operations
    at the product's rate. What moves less than 8 MB has no such limit, because caches hold it."""

    def __init__(self, sides, rounds):
        def times(of, lua, python, rounds):
            pair = "local x, y = %s" % of, lua, "x, y = %s" % of.replace("lt.", "torch."), python
            return measure(sides, Row("", *pair, 0, 0), rounds)

        self.copy = {n: 8 * n / min(times("lt.zeros(%d), lt.ones(%d)" % (n, n), "x:copy_(y)",
                                          "x.copy_(y)", rounds)) for n in (10**6, 10**7)}
        product = "lt.randn(%d, %d), lt.randn(%d, %d)" % ((PRODUCT,) * 4)
        self.rates = [2 * PRODUCT**3 / t for t in times(product, "x:mm(y)", "x.mm(y)", min(rounds, 3))]

    def describe(self):
        return ("copy of 4 MB %.1f GB/s, of 40 MB %.1f GB/s; product of %d x %d %s GFLOP/s"
                % (self.copy[10**6] / 1e9, self.copy[10**7] / 1e9, PRODUCT, PRODUCT,
                   " and ".join("%.0f" % (rate / 1e9) for rate in self.rates)))

    def seconds(self, row):
        """Returns the least time of a row; 0 when it has no limit."""
        bandwidth = self.copy[10**6 if row.moved < 4 * 10**7 else 10**7]
        moving = row.moved / bandwidth if row.moved >= 8 * 10**6 else 0
        return max(moving, row.flops / max(self.rates))


# ---- the table --------------------------------------------------------------------------------


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"model name\s*: *(.*)", file.read()).group(1)
    except (OSError, AttributeError):
        return "unknown processor"


class Table:
    """Prints lines, and writes them to a file if one is given."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8") if path else None

    def line(self, text):
        print(text, flush=True)
        if self.file:
            self.file.write(text + "\n")
            self.file.flush()


def summary(ratios):
    """Returns the lines about the ratios of all rows."""
    slower = sorted((r, name) for name, r in ratios.items() if r > 1)
    mean = math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios))
    lines = ["", "%d rows: %d at 0.7 or less, %d slower than PyTorch, geometric mean %.2f"
             % (len(ratios), sum(r <= 0.7 for r in ratios.values()), len(slower), mean)]
    return lines + ["  %5.2f  %s" % pair for pair in reversed(slower)]


def parser_of(rounds):
    """Returns a parser of the options that all comparisons have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--lutra", default="build/lutra", metavar="PROGRAM")
    parser.add_argument("--isa", choices=["avx2"], help="restrict both to AVX2")
    return parser


def main(rounds=7):
    """Runs the program that measures ROWS."""
    parser = parser_of(rounds)
    parser.add_argument("file", nargs="?", help="receives the table, too")
    options = parser.parse_args()
    restrict(options)
    sides = [Lutra(options.lutra, options.threads)] + open_torch(lambda: Torch(options.threads))
    table, ratios = Table(options.file), {}
    limits = Limits(sides, options.rounds) if any(r.moved or r.flops for r in ROWS) else None
    table.line("%s; %d threads; %s" % ("; ".join(side.name for side in sides), options.threads,
                                       datetime.date.today()))
    table.line(processor())
    if limits:
        table.line("Limits: " + limits.describe())
    table.line("Microseconds, the least of %d rounds%s%s\n" % (
        options.rounds, "; Lutra's time over PyTorch's" if len(sides) > 1 else "",
        "; the limit over Lutra's time" if limits else ""))
    for row in ROWS:
        if not re.search(options.only, row.name):
            continue
        try:
            times = measure(sides, row, options.rounds)
        except (RuntimeError, ImportError) as error:
            table.line("%-52s %s" % (row.name, error))
            continue
        text = "%-52s %s" % (row.name, " ".join("%11.2f" % (t * 1e6) for t in times))
        if len(times) > 1:
            ratios[row.name] = times[0] / times[1]
            text += "  %5.2f" % ratios[row.name]
        if limits and limits.seconds(row):
            text += "  %3.0f %%" % (100 * limits.seconds(row) / times[0])
        table.line(text)
    for line in summary(ratios) if ratios else []:
        table.line(line)
