#!/usr/bin/env python3
"""Measures the work of bench/lutra.lua in PyTorch and NumPy. Prints one line per measurement,
`name <tab> peer <tab> seconds`. Peers that are not installed are left out.

    python3 bench/peers.py THREADS [name ...]"""

import sys
import time

THREADS = int(sys.argv[1])
WANTED = set(sys.argv[2:])


def measure(name, peer, n, f, runs=7):
    if WANTED and name not in WANTED:
        return
    f()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    print("%s\t%s\t%.9g" % (name, peer, best / n), flush=True)


def numpy_side(np):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(1, dtype=np.float32), rng.standard_normal(1, dtype=np.float32)

    def add():
        for _ in range(100000):
            a + b
    measure("add one element", "NumPy", 100000, add)
    x, y = rng.standard_normal(10000000, dtype=np.float32), rng.standard_normal(10000000, dtype=np.float32)
    measure("add 10^7", "NumPy", 1, lambda: x + y)
    measure("exp 10^7", "NumPy", 1, lambda: np.exp(x))
    measure("tanh 10^7", "NumPy", 1, lambda: np.tanh(x))
    measure("sum 10^7", "NumPy", 1, lambda: x.sum())
    m = rng.standard_normal((4096, 1024), dtype=np.float32)
    measure("sum of columns 4096 x 1024", "NumPy", 1, lambda: m.sum(0))
    measure("transpose copy 1024 x 4096", "NumPy", 1, lambda: np.ascontiguousarray(m.T))
    for n in (128, 512, 2048):
        p, q = rng.standard_normal((n, n), dtype=np.float32), rng.standard_normal((n, n), dtype=np.float32)
        times = (2048 // n) ** 2

        def product():
            for _ in range(times):
                p @ q
        measure("sgemm %d" % n, "NumPy", times, product)


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
    measure("add one element", "PyTorch", 100000, add)
    measure("add one element, with grad", "PyTorch", 100000, add_grad)
    x, y = torch.randn(10000000), torch.randn(10000000)
    measure("add 10^7", "PyTorch", 1, lambda: x + y)
    measure("exp 10^7", "PyTorch", 1, lambda: x.exp())
    measure("tanh 10^7", "PyTorch", 1, lambda: x.tanh())
    measure("sum 10^7", "PyTorch", 1, lambda: x.sum())
    m = torch.randn(4096, 1024)
    measure("softmax 4096 x 1024", "PyTorch", 1, lambda: m.softmax(-1))
    measure("sum of columns 4096 x 1024", "PyTorch", 1, lambda: m.sum(0))
    measure("transpose copy 1024 x 4096", "PyTorch", 1, lambda: m.t().contiguous())
    w, c = torch.ones(1024), torch.zeros(1024)
    measure("layer_norm 4096 x 1024", "PyTorch", 1, lambda: F.layer_norm(m, (1024,), w, c))
    for n in (128, 512, 2048):
        p, q = torch.randn(n, n), torch.randn(n, n)
        times = (2048 // n) ** 2

        def product():
            for _ in range(times):
                p.mm(q)
        measure("sgemm %d" % n, "PyTorch", times, product)

    def training(net, opt, forward, steps):
        def go():
            for _ in range(steps):
                loss = forward(net)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return go
    images, labels = torch.rand(64, 784), torch.randint(0, 10, (64,))
    for hidden, said, make in ((256, "SGD", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
                               (512, "AdamW", lambda p: torch.optim.AdamW(p, lr=1e-3))):
        net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        measure("MLP 784-%d-10 step, %s" % (hidden, said), "PyTorch", 50,
                training(net, make(net.parameters()), lambda net: F.cross_entropy(net(images), labels), 50))
    points, values = torch.rand(4, 2), torch.rand(4, 1)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    measure("MLP 2-16-1 step, SGD", "PyTorch", 500,
            training(net, torch.optim.SGD(net.parameters(), lr=0.1), lambda net: F.mse_loss(net(points), values), 500))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.proj = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)
            self.register_buffer("mask", torch.ones(64, 64, dtype=torch.bool).triu(1))

        def forward(self, h):
            n, t, _ = h.shape
            q, k, v = (p.view(n, t, 4, 32).transpose(1, 2) for p in self.qkv(self.ln1(h)).split(128, 2))
            s = (q @ k.transpose(-1, -2) / 32 ** 0.5).masked_fill(self.mask[:t, :t], float("-inf"))
            h = h + self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(n, t, 128))
            return h + self.down(F.gelu(self.up(self.ln2(h))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.body = nn.Sequential(Block(), Block(), Block(), Block(), nn.LayerNorm(128), nn.Linear(128, 65))

        def forward(self, text):
            return self.body(self.tokens(text) + self.places(torch.arange(64)))
    text, target = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12, 64))
    net = GPT()
    measure("character GPT step, AdamW", "PyTorch", 5,
            training(net, torch.optim.AdamW(net.parameters(), lr=1e-3),
                     lambda net: F.cross_entropy(net(text).view(-1, 65), target.view(-1)), 5))


for module, side in (("numpy", numpy_side), ("torch", torch_side)):
    try:
        loaded = __import__(module)
    except ImportError:
        sys.stderr.write("%s is not installed: left out\n" % module)
        continue
    print("version\t%s\t%s" % ({"numpy": "NumPy", "torch": "PyTorch"}[module], loaded.__version__))
    side(loaded)
