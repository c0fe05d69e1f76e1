"""Random programs of views and in-place ops, with the loss and the gradients that PyTorch computes.

A program starts from two leaf tensors t[1], t[2] of shape {3, 4}, a constant and two results, and then creates results,
views and in-place ops at random. Saved tensors are clones, so that no later in-place op invalidates them; programs for
which PyTorch raises an error nevertheless are left out. The same seed gives the same file.
"""
import random
import textwrap

import torch

COUNT, SEED = 60, 1


class Program:
    """The same program as Python code and as Lua code, and the shape of every tensor in it."""

    def __init__(self):
        self.python, self.lua, self.shapes = [], [], []

    def new(self, python, lua, shape):
        self.shapes.append(shape)
        k = len(self.shapes)
        self.python.append(f"t{k} = {python}")
        self.lua.append(f"t[{k}] = {lua}")

    def leaf(self):
        data = [round(random.uniform(-1, 1), 3) for _ in range(12)]
        self.new(f"torch.tensor({data}, dtype=torch.float64).view(3, 4).requires_grad_()",
                 f"leaf{{{', '.join(map(str, data))}}}", (3, 4))

    def result(self, k, j, c):
        shape = self.shapes[k - 1]
        self.new(*random.choice([
            (f"t{k} * {c}", f"t[{k}] * {c}"),
            (f"t{k}.clone().sin()", f"t[{k}]:clone():sin()"),
            (f"t{k} + t{j}", f"t[{k}] + t[{j}]"),
            (f"t{k}.clone() * t{j}.clone()", f"t[{k}]:clone() * t[{j}]:clone()"),
        ]), shape)

    def view(self, k):
        shape = self.shapes[k - 1]
        d, kind = random.randrange(len(shape)), random.choice(["select", "narrow", "t", "alias"])
        if kind == "select":
            i = random.randrange(shape[d])
            self.new(f"t{k}.select({d}, {i})", f"t[{k}]:select({d + 1}, {i + 1})",
                     shape[:d] + shape[d + 1:])
        elif kind == "narrow":
            first = random.randrange(shape[d])
            n = random.randint(1, shape[d] - first)
            self.new(f"t{k}.narrow({d}, {first}, {n})", f"t[{k}]:narrow({d + 1}, {first + 1}, {n})",
                     shape[:d] + (n,) + shape[d + 1:])
        elif kind == "t" and len(shape) == 2:
            self.new(f"t{k}.t()", f"t[{k}]:t()", shape[::-1])
        else:
            self.new(f"t{k}.unsqueeze(0).squeeze(0)", f"t[{k}]:unsqueeze(1):squeeze(1)", shape)

    def write(self, k, j, c):
        python, lua = random.choice([
            (f"mul_({c})", f"mul_({c})"), (f"add_({c})", f"add_({c})"), ("sin_()", "sin_()"),
            (f"fill_({c})", f"fill_({c})"), (f"copy_(t{j}.clone())", f"copy_(t[{j}]:clone())"),
            (f"add_(t{j}.clone())", f"add_(t[{j}]:clone())"),
            (f"mul_(t{j}.clone())", f"mul_(t[{j}]:clone())"),
        ])
        self.python.append(f"t{k}.{python}")
        self.lua.append(f"t[{k}]:{lua}")

    def loss(self):
        used = [k for k in range(1, len(self.shapes) + 1) if random.random() < 0.6] or [1]
        self.python.append("loss = " + " + ".join(f"(t{k} * t{k}).sum() * {k}" for k in used))
        self.lua.append("loss = " + " + ".join(f"(t[{k}] * t[{k}]):sum() * {k}" for k in used))


def make():
    p = Program()
    p.leaf()
    p.leaf()
    p.new("torch.zeros(3, 4, dtype=torch.float64)", 'lt.zeros({3, 4}, {dtype = "float64"})', (3, 4))
    p.new("t1 * 1.1", "t[1] * 1.1", (3, 4))
    p.new("t2 * 1.2", "t[2] * 1.2", (3, 4))
    for _ in range(random.randint(5, 18)):
        k = random.randint(3, len(p.shapes))
        shape = p.shapes[k - 1]
        j = random.choice([i + 1 for i, s in enumerate(p.shapes) if s == shape])
        c, kind = round(random.uniform(0.5, 1.5), 2), random.random()
        if kind < 0.2:
            p.result(k, j, c)
        elif kind < 0.6 and shape:
            p.view(k)
        else:
            p.write(k, j, c)
    p.loss()
    return p


def run(p):
    """Returns [loss, gradient of t1, gradient of t2], or None if PyTorch raises an error."""
    names = {"torch": torch}
    try:
        for line in p.python:
            exec(line, names)
        names["loss"].backward()
    except RuntimeError:
        return None
    grads = [names[t].grad if names[t].grad is not None else torch.zeros(3, 4) for t in ("t1", "t2")]
    return [names["loss"].item()] + [v.item() for g in grads for v in g.reshape(-1)]


def cases_of(_):
    random.seed(SEED)
    rows, made = [], 0
    while made < COUNT:
        p = make()
        values = run(p)
        if values is None or sum("_(" in line for line in p.python) < 3:
            continue
        made += 1
        rows.append("  {code = [[")
        rows += textwrap.wrap("; ".join(p.lua), 118, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        rows.append("  ]], values = {" + ", ".join(f"{v:.15g}" for v in values) + "}},")
    return "\n".join(rows)
