#!/usr/bin/env python3
"""Convolutions and batch norm of float32: Lutra, with oneDNN and without it, beside PyTorch, in one
run, in turns. Prints milliseconds (the least of the rounds) and Lutra's time over PyTorch's.

    python3 bench/convolution.py [--only PATTERN] [--threads 2] [--rounds 9] [--lutra PROGRAM]
"""

import argparse
import os
import re
import subprocess

from timing import seconds_of_call

# name: op, then batch, channels, height, width, output channels, kernel, stride, padding, groups
CASES = {
    "resnet 7x7 stride 2": ("conv", 8, 3, 224, 224, 64, 7, 2, 3, 1),
    "resnet 3x3 64": ("conv", 8, 64, 56, 56, 64, 3, 1, 1, 1),
    "resnet 3x3 64-128 stride 2": ("conv", 8, 64, 56, 56, 128, 3, 2, 1, 1),
    "resnet 3x3 128": ("conv", 8, 128, 28, 28, 128, 3, 1, 1, 1),
    "resnet 3x3 256": ("conv", 8, 256, 14, 14, 256, 3, 1, 1, 1),
    "resnet 3x3 512": ("conv", 8, 512, 7, 7, 512, 3, 1, 1, 1),
    "resnet 1x1 64-128 stride 2": ("conv", 8, 64, 56, 56, 128, 1, 2, 0, 1),
    "1x1 64-256": ("conv", 8, 64, 56, 56, 256, 1, 1, 0, 1),
    "1x1 512": ("conv", 8, 512, 14, 14, 512, 1, 1, 0, 1),
    "depthwise 3x3 128": ("conv", 8, 128, 56, 56, 128, 3, 1, 1, 128),
    "depthwise 3x3 256 stride 2": ("conv", 8, 256, 28, 28, 256, 3, 2, 1, 256),
    "depthwise 5x5 512": ("conv", 8, 512, 14, 14, 512, 5, 1, 2, 512),
    "mnist 3x3 1-32": ("conv", 64, 1, 28, 28, 32, 3, 1, 0, 1),
    "mnist 3x3 32-64": ("conv", 64, 32, 26, 26, 64, 3, 1, 0, 1),
    "mnist 5x5 1-6": ("conv", 64, 1, 28, 28, 6, 5, 1, 2, 1),
    "mnist 5x5 6-16": ("conv", 64, 6, 14, 14, 16, 5, 1, 0, 1),
    "batch norm 64 56x56": ("norm", 8, 64, 56, 56),
    "batch norm 256 14x14": ("norm", 8, 256, 14, 14),
    "batch norm 512 7x7": ("norm", 8, 512, 7, 7),
    "batch norm 32 26x26": ("norm", 64, 32, 26, 26),
}


class Child:
    """A process of Lutra that runs bench/convolution.lua."""

    def __init__(self, program, backend):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "convolution.lua")
        self.backend = backend
        self.process = subprocess.Popen([program, script], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __call__(self, case, direction, threads):
        self.process.stdin.write("%s %s %s %d\n" % (" ".join(map(str, case)), direction,
                                                    self.backend, threads))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Torch:
    def __init__(self):
        import torch
        self.torch, self.key = torch, None

    def prepare(self, case, backward):
        torch, F = self.torch, self.torch.nn.functional
        op, s = case[0], case[1:]
        torch.manual_seed(1)
        x = torch.randn(s[0], s[1], s[2], s[3])
        w = torch.randn(s[4], s[1] // s[8], s[5], s[5]) if op == "conv" else torch.ones(s[1])
        b = torch.zeros(s[4] if op == "conv" else s[1])

        def forward():
            if op == "conv":
                return F.conv2d(x, w, b, s[6], s[7], 1, s[8])
            return F.batch_norm(x, None, None, w, b, True)
        if not backward:
            return forward
        for t in (x, w, b):
            t.requires_grad_(True)
        y = forward()
        g = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (x, w, b), g, retain_graph=True)

    def __call__(self, case, direction, threads):
        self.torch.set_num_threads(threads)
        if self.key != (case, direction):
            self.key, self.f = (case, direction), self.prepare(case, direction == "backward")
        return seconds_of_call(self.f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--lutra", default="build/lutra")
    options = parser.parse_args()
    sides = {"Lutra": Child(options.lutra, "onednn"), "own": Child(options.lutra, "none")}
    try:
        sides["PyTorch"] = Torch()
    except ImportError:
        pass
    print("%d threads: ms, and times PyTorch's" % options.threads)
    print("%-28s %-9s %s" % ("", "", " ".join("%16s" % name for name in sides)))
    for name, case in CASES.items():
        if not re.search(options.only, name):
            continue
        for direction in ("forward", "backward"):
            best = {}
            for _ in range(options.rounds):
                for side, run in sides.items():
                    best[side] = min(best.get(side, 1e9), run(case, direction, options.threads))
            base = best.get("PyTorch")
            cells = ["%8.3f %7s" % (t * 1e3, "(%.2f)" % (t / base) if base else "")
                     for t in best.values()]
            print("%-28s %-9s %s" % (name, direction, " ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
