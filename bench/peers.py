#!/usr/bin/env python3
"""Measures the work of bench/lutra.lua in PyTorch. Prints one line per measurement, `name <tab>
PyTorch <tab> seconds`.

    python3 bench/peers.py THREADS [name ...]"""

import sys
import time

THREADS = int(sys.argv[1])
WANTED = set(sys.argv[2:])


def measure(name, n, f, runs=7):
    if WANTED and name not in WANTED:
        return
    f()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    print("%s\tPyTorch\t%.9g" % (name, best / n), flush=True)


def torch_side(torch):
    import torch.nn as nn
    import torch.nn.functional as F
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    a, b, g = torch.randn(1), torch.randn(1), torch.randn(1, requires_grad=True)

    def add():
        for _ in range(100000):
            a + b

    def add_grad():
        for _ in range(100000):
            g + b
    measure("add one element", 100000, add)
    measure("add one element, with grad", 100000, add_grad)
    x = torch.randn(10000000)
    measure("exp 10^7", 1, lambda: x.exp())
    p, q = torch.randn(512, 512), torch.randn(512, 512)

    def product():
        for _ in range(16):
            p.mm(q)
    measure("sgemm 512", 16, product)

    def training(net, opt, forward, steps):
        def go():
            for _ in range(steps):
                loss = forward(net)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return go
    images, labels = torch.rand(64, 784), torch.randint(0, 10, (64,))
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    measure("MLP 784-256-10 step, SGD", 50,
            training(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
                     lambda net: F.cross_entropy(net(images), labels), 50))
    points, values = torch.rand(4, 2), torch.rand(4, 1)
    tiny = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    measure("MLP 2-16-1 step, SGD", 500,
            training(tiny, torch.optim.SGD(tiny.parameters(), lr=0.1),
                     lambda net: F.mse_loss(net(points), values), 500))


try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed")
torch_side(torch)
