#!/usr/bin/env python3
"""Measures the work of bench/device.lua in PyTorch on the same GPU. Prints `name <tab> seconds`.

    python3 bench/device_peers.py [scale [cuda|mps]]"""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = float(sys.argv[1]) if len(sys.argv) > 1 else 1
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cuda"
synchronize = torch.cuda.synchronize if DEVICE == "cuda" else torch.mps.synchronize
# As in Lutra, float16 products are accumulated in float32.
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def scaled(n):
    return max(1, int(n * SCALE))


def measure(name, n, f):
    f()
    synchronize()
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        f()
        synchronize()
        best = min(best, time.perf_counter() - start)
    print("%s\t%.9g" % (name, best / n), flush=True)


def submit():
    a, b = torch.randn(1, device=DEVICE), torch.randn(1, device=DEVICE)
    submits, best = scaled(2000), float("inf")
    for _ in range(7):
        synchronize()
        start = time.perf_counter()
        for _ in range(submits):
            a + b
        best = min(best, time.perf_counter() - start)
    synchronize()
    print("submit a + b\t%.9g" % (best / submits), flush=True)


def read():
    a, b = torch.randn(1, device=DEVICE), torch.randn(1, device=DEVICE)
    reads = scaled(100)
    measure("read a + b", reads, lambda: [(a + b).item() for _ in range(reads)])


def copies():
    there = torch.empty(scaled(1 << 26), device=DEVICE)
    pageable = torch.zeros(there.numel())
    measure("host to device, pageable", 1, lambda: there.copy_(pageable))
    measure("device to host, pageable", 1, lambda: pageable.copy_(there))
    if DEVICE == "cuda":
        pinned = pageable.pin_memory()
        measure("host to device, pinned", 1, lambda: there.copy_(pinned, True))
        measure("device to host, pinned", 1, lambda: pinned.copy_(there, True))


def memory_bound():
    n = scaled(1 << 27)
    x, y, z = (torch.randn(n, device=DEVICE) for _ in range(3))
    measure("copy on the device", 1, lambda: z.copy_(x))
    measure("add", 1, lambda: x + y)
    measure("gelu", 1, lambda: F.gelu(x))
    measure("sum", 1, lambda: x.sum())
    del x, y, z
    h = torch.randn(n, device=DEVICE, dtype=torch.bfloat16)
    measure("add bfloat16", 1, lambda: h + h)
    del h
    for columns in (1024, 4096, 32768):
        rows = max(1, scaled(1 << 26) // columns)
        m = torch.randn(rows, columns, device=DEVICE)
        measure("softmax of %d" % columns, 1, lambda: m.softmax(-1))
        if columns <= 4096:
            w, c = torch.ones(columns, device=DEVICE), torch.zeros(columns, device=DEVICE)
            measure("layer_norm of %d" % columns, 1, lambda: F.layer_norm(m, (columns,), w, c))
            measure("transposed copy of %d" % columns, 1, lambda: m.t().contiguous())
        target = torch.randint(0, columns, (rows,), device=DEVICE)
        measure("cross_entropy of %d" % columns, 1, lambda: F.cross_entropy(m, target))
    p = nn.Parameter(torch.randn(n // 4, device=DEVICE))
    p.grad = torch.randn(n // 4, device=DEVICE)
    opt = torch.optim.AdamW([p], lr=1e-3, fused=True)
    measure("AdamW step", 1, opt.step)


def products():
    for kind in ("float32", "tf32" if DEVICE == "cuda" else "float16", "bfloat16"):
        n = scaled(8192)
        dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        p, q = (torch.randn(n, n, device=DEVICE).to(dtype) for _ in range(2))
        measure("matmul " + kind, 4, lambda: [p.mm(q) for _ in range(4)])
    torch.backends.cuda.matmul.allow_tf32 = False


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).split(width, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def character_gpt():
    width, heads, length, batch, vocabulary = 128, 4, 64, scaled(12), 65
    token, place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
    blocks = nn.Sequential(*(Block(width, heads) for _ in range(4)))
    last, head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
    net = nn.ModuleList([token, place, blocks, last, head]).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    ids = torch.randint(0, vocabulary, (batch, length), device=DEVICE)
    targets = torch.randint(0, vocabulary, (batch * length,), device=DEVICE)
    positions = torch.arange(length, device=DEVICE)

    def step():
        x = blocks(token(ids) + place(positions))
        loss = F.cross_entropy(head(last(x)).view(-1, vocabulary), targets)
        opt.zero_grad()
        loss.backward()
        opt.step()
    steps = scaled(10)
    measure("character GPT step", steps, lambda: [step() for _ in range(steps)])


print("version\t%s" % torch.__version__, flush=True)
submit()
read()
copies()
memory_bound()
products()
character_gpt()
