#!/usr/bin/env python3
"""Elementwise functions of float32: Lutra beside PyTorch, and beside another build of Lutra, in one
run, in turns. Prints nanoseconds per element (the least of the rounds) and the ratios.

    python3 bench/elementwise_math.py [--ops exp,log] [--sizes 1000,100000,10000000]
        [--threads 1,2] [--rounds 9] [--isa avx2] [--old PROGRAM] [--lutra PROGRAM]

`--isa avx2` lowers both libraries to AVX2."""

import argparse
import os
import subprocess
import time

OPS = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh erf erfc sigmoid logsigmoid silu gelu gelu_tanh softplus elu""".split()


class Child:
    """A process of Lutra that runs bench/elementwise_math.lua."""

    def __init__(self, program):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "elementwise_math.lua")
        self.process = subprocess.Popen([program, script], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __call__(self, op, n, threads):
        self.process.stdin.write("%s %d %d\n" % (op, n, threads))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Torch:
    def __init__(self):
        import torch
        import torch.nn.functional as F
        self.torch, self.n = torch, None
        self.functions = {name: getattr(F, name) for name in
                          ("logsigmoid", "silu", "gelu", "softplus", "elu")}
        self.functions["gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")

    def input(self, op, n):
        if self.n != n:
            self.torch.manual_seed(1)
            self.n, self.x = n, self.torch.rand(n) * 1.8 - 0.9
        x = self.x
        if op.startswith("log") and op != "logsigmoid":
            return x.abs() * 10 + 0.01
        if op == "acosh":
            return x.abs() * 10 + 1
        return x if op in ("asin", "acos", "atanh") else x * 5

    def __call__(self, op, n, threads):
        self.torch.set_num_threads(threads)
        x, f = self.input(op, n), self.functions.get(op) or getattr(self.torch, op)
        calls = max(1, 1000000 // n)
        if op in ("sinh", "cosh", "asinh", "acosh"):
            calls = max(1, calls // 10)
        f(x)
        start = time.perf_counter()
        for _ in range(calls):
            f(x)
        return (time.perf_counter() - start) / calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--sizes", default="1000,100000,10000000")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--isa")
    parser.add_argument("--old")
    parser.add_argument("--lutra", default="build/lutra")
    options = parser.parse_args()
    if options.isa:
        os.environ["LUTRA_CPU_CAPABILITY"] = os.environ["ATEN_CPU_CAPABILITY"] = options.isa
    sides = {"Lutra": Child(options.lutra)}
    if options.old:
        sides["old"] = Child(options.old)
    try:
        sides["PyTorch"] = Torch()
    except ImportError:
        pass
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "")
    print("%s, %s" % (model, options.isa or "all that the CPU has"))
    for threads in map(int, options.threads.split(",")):
        for n in map(int, options.sizes.split(",")):
            print("\n%d elements, %d threads: ns per element" % (n, threads))
            print("%-12s" % "" + "".join("%10s" % name for name in sides) +
                  "".join("%16s" % ("Lutra/" + name) for name in list(sides)[1:]))
            for op in options.ops.split(","):
                best = {name: float("inf") for name in sides}
                for _ in range(options.rounds):
                    for name, side in sides.items():
                        best[name] = min(best[name], side(op, n, threads) / n * 1e9)
                print("%-12s" % op + "".join("%10.3f" % v for v in best.values()) + "".join(
                    "%16.2f" % (best["Lutra"] / best[name]) for name in list(sides)[1:]), flush=True)


main()
