#!/usr/bin/env python3
"""Compiled functions on the CPU: lt.compile beside plain calls, PyTorch's eager mode and
torch.compile (which requires g++), in turns. Prints microseconds (the least of the rounds),
milliseconds of compilation, and the time of lt.compile over that of torch.compile.

The time of compilation is that of the first call of the compiled function, less that of a later
one. Before it, the same code runs once without being compiled, so that threads, kernels and memory
are ready. torch.compile starts with an empty cache of files.

    python3 bench/compile.py [--only PATTERN] [--threads 2] [--rounds 5] [--isa avx2]
        [--lutra PROGRAM]
"""

import os
import re
import tempfile
import time

import gpt
from pairs import Lutra, Torch, least, open_torch, parser_of, restrict

# (name, Lua that defines f and the call, Python that does)
ROWS = []


def function(name, setup, lua, call, python_setup, python):
    """A function of x and y."""
    ROWS.append((name, setup + "\nlocal f = wrap(function(x, y) return %s end)\n" % lua
                 + "return function() return f(%s) end" % call,
                 python_setup + "\nf = wrap(lambda x, y=None: %s)\nstep = lambda: f(%s)" %
                 (python, call)))


def step(name, lua, python):
    ROWS.append((name, lua + "\nreturn step", python))


for n in (10**4, 10**6):
    label = "10^%d" % (len(str(n)) - 1)
    data = ("local x, y = lt.randn(%d), lt.randn(%d)" % (n, n),
            "x, y = torch.randn(%d), torch.randn(%d)" % (n, n))
    function("chain of ten elementwise ops, " + label, data[0],
             "((((x * 2 + y) * x - y):tanh() + x) * 0.5 - y):sigmoid() * x", "x, y", data[1],
             "torch.sigmoid((torch.tanh((x * 2 + y) * x - y) + x) * 0.5 - y) * x")
    function("GELU by hand, " + label, data[0],
             "0.5 * x * (1 + ((x + 0.044715 * x ^ 3) * 0.79788456):tanh())", "x", data[1],
             "0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x ** 3)))")
    horner = "((((((x * 1.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x + 0.6) * x + 0.7) * x"
    function("polynomial by Horner's method, " + label, data[0], horner, "x", data[1], horner)
    function("Huber loss by hand, " + label, data[0] + """
local function huber(x, y)
  local d = x - y
  local a = d:abs()
  return lt.where(a:lt(1), 0.5 * d * d, a - 0.5)
end""", "huber(x, y)", "x, y", data[1] + """
def huber(x, y):
    d = x - y
    a = d.abs()
    return torch.where(a < 1, 0.5 * d * d, a - 0.5)""", "huber(x, y)")
for shape in ("64, 128", "1024, 1024"):
    label = shape.replace(", ", " x ")
    data = ("local x = lt.randn(%s)" % shape, "x = torch.randn(%s)" % shape)
    function("layer norm by hand, " + label, data[0] + """
local function norm(x)
  local d = x - x:mean(-1, true)
  return d / ((d * d):mean(-1, true) + 1e-5):sqrt()
end""", "norm(x)", "x", data[1] + """
def norm(x):
    d = x - x.mean(-1, True)
    return d / ((d * d).mean(-1, True) + 1e-5).sqrt()""", "norm(x)")
    function("softmax by hand, " + label, data[0] + """
local function softmax(x)
  local e = (x - x:amax(-1, true)):exp()
  return e / e:sum(-1, true)
end""", "softmax(x)", "x", data[1] + """
def softmax(x):
    e = torch.exp(x - x.amax(-1, True))
    return e / e.sum(-1, True)""", "softmax(x)")

step("gradient of GELU by hand, 10^6", """
local x = lt.randn{1000000, requires_grad = true}
local g = lt.ones(1000000)
local f = wrap(function(x)
  return 0.5 * x * (1 + ((x + 0.044715 * x * x * x) * 0.79788456):tanh())
end)
local function step() x.grad = nil; f(x):backward(g) end""", """
x, g = torch.randn(1000000, requires_grad=True), torch.ones(1000000)
f = wrap(lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x))))
def step():
    x.grad = None
    f(x).backward(g)""")

for name, inputs, hidden, batch in (("2-16-1", 2, 16, 4), ("784-512-10", 784, 512, 64)):
    classes = int(name.split("-")[-1])
    step("step of MLP %s" % name, """
local net = wrap(nn.Sequential(nn.Linear(%d, %d), nn.ReLU(), nn.Linear(%d, %d)))
local opt = optim.SGD(net:parameters(), {lr = 0.01})
local x, y = lt.randn(%d, %d), lt.randn(%d, %d)
local function step()
  opt:zero_grad()
  F.mse_loss(net(x), y):backward()
  opt:step()
end""" % (inputs, hidden, hidden, classes, batch, inputs, batch, classes), """
net = wrap(nn.Sequential(nn.Linear(%d, %d), nn.ReLU(), nn.Linear(%d, %d)))
opt = optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(%d, %d), torch.randn(%d, %d)
def step():
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()""" % (inputs, hidden, hidden, classes, batch, inputs, batch, classes))

step("step of a GPT, 4 layers, width 128, batch 12 x 64", gpt.LUA + """
local loss_of = wrap(function(text, target)
  local logits = body(tokens(text) + places(at))
  return F.cross_entropy(logits:view(-1, 65), target:view(-1))
end)
local function step()
  local loss = loss_of(text, target)
  opt:zero_grad(); loss:backward(); opt:step()
end""", gpt.PYTHON + """
def loss_of(text, target):
    logits = body(tokens(text) + places(at))
    return F.cross_entropy(logits.view(-1, 65), target.view(-1))
loss_of = wrap(loss_of)
def step():
    loss = loss_of(text, target)
    opt.zero_grad()
    loss.backward()
    opt.step()""")


class LutraSide(Lutra):
    """Measures Lua code in which `wrap` is lt.compile or nothing."""

    def __init__(self, options, compiles):
        super().__init__(options.lutra, options.threads)
        self.compiles = compiles

    def start(self, lua):
        """Returns the seconds of the first call, after one that is not compiled."""
        for wrap in ["function(f) return f end"] + self.compiles * ["lt.compile"]:
            text = "local wrap = %s\n%s" % (wrap, lua)
            first = self.ask("prepare " + text.replace("\n", "\\n"))
        return float(first)


class TorchSide(Torch):
    def __init__(self, options, compiles):
        super().__init__(options.threads)
        self.compiles = compiles

    def start(self, python):
        """Returns the seconds of the first call, after one that is not compiled."""
        self.torch._dynamo.reset()
        for wrap in [lambda f: f] + self.compiles * [self.torch.compile]:
            self.torch.manual_seed(1)
            names = dict(self.names, wrap=wrap)
            exec(python, names)
            self.f = names["step"]
            start = time.perf_counter()
            self.f()
            first = time.perf_counter() - start
        return first


def main():
    options = parser_of(5).parse_args()
    restrict(options)
    files = tempfile.TemporaryDirectory()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = files.name
    sides = [LutraSide(options, False), LutraSide(options, True)]
    sides += open_torch(lambda: TorchSide(options, False), lambda: TorchSide(options, True))
    print("%d threads: microseconds of Lutra, lt.compile, PyTorch, torch.compile; milliseconds of "
          "compilation" % options.threads)
    for name, lua, python in ROWS:
        if not re.search(options.only, name):
            continue
        first = [side.start(lua if k < 2 else python) for k, side in enumerate(sides)]
        best = least(sides, options.rounds)
        made = [max(0, first[k] - best[k]) * 1e3 for k in range(1, len(sides), 2)]
        ratio = "  %5.2f" % (best[1] / best[3]) if len(best) > 2 else ""
        print("%-52s %s  %s%s" % (name, " ".join("%10.2f" % (t * 1e6) for t in best),
                                  " ".join("%8.1f" % t for t in made), ratio), flush=True)


if __name__ == "__main__":
    main()
