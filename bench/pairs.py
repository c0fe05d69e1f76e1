"""Rows that compare Lutra with PyTorch on the CPU, and the program that measures them in turns."""

import argparse
import os
import re
import subprocess

from timing import seconds_of_call

# (name, set-up in Lua, expression in Lua, set-up in Python, expression in Python)
ROWS = []


def row(name, lua, python, setup="", python_setup=""):
    ROWS.append((name, setup, lua, python_setup, python))


def step(name, setup, python_setup):
    """A row of a training step: both set-ups define a function `step`."""
    row(name, "step()", "step()", setup.strip().replace("\n", "\\n"), python_setup)


class Lutra:
    """A process of Lutra that runs bench/pairs.lua."""

    def __init__(self, program, threads):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.lua")
        self.process = subprocess.Popen([program, script, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer.startswith("error") or not answer:
            raise RuntimeError("Lutra: " + answer)
        return answer

    def prepare(self, setup, expression):
        f = "return function() %s%s end" % ("" if expression == "step()" else "return ", expression)
        self.ask("prepare %s\\n%s" % (setup, f))

    def run(self, seconds):
        return float(self.ask("run %g" % seconds))


class Torch:
    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional,
                      "optim": torch.optim}
        self.torch = torch

    def prepare(self, setup, expression):
        self.torch.manual_seed(1)
        names = dict(self.names)
        exec(setup, names)
        self.f = eval("lambda: " + expression, names)
        self.f()

    def run(self, seconds):
        return seconds_of_call(self.f, seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lutra", default="build/lutra")
    options = parser.parse_args()
    sides = [Lutra(options.lutra, options.threads)]
    try:
        sides.append(Torch(options.threads))
    except ImportError:
        print("PyTorch is not installed: python3 -m pip install torch")
    print("%d threads: microseconds%s" % (options.threads, ", and Lutra's time over PyTorch's"
                                          if len(sides) > 1 else ""))
    for name, setup, lua, python_setup, python in ROWS:
        if not re.search(options.only, name):
            continue
        try:
            sides[0].prepare(setup, lua)
        except RuntimeError as error:
            print("%-52s %s" % (name, error), flush=True)
            continue
        if len(sides) > 1:
            sides[1].prepare(python_setup, python)
        best = [min(times) for times in zip(*([side.run(0.02) for side in sides]
                                              for _ in range(options.rounds)))]
        ratio = "  %5.2f" % (best[0] / best[1]) if len(best) > 1 else ""
        print("%-52s %s%s" % (name, " ".join("%11.2f" % (t * 1e6) for t in best), ratio),
              flush=True)
