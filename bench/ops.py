#!/usr/bin/env python3
"""Ops and training steps on the CPU: Lutra beside PyTorch, in one run, in turns. Prints
microseconds (the least of the rounds) and Lutra's time over PyTorch's.

    python3 bench/ops.py [--only PATTERN] [--threads 2] [--rounds 7] [--lutra PROGRAM]
"""

import math

import gpt
from pairs import main, row, step


def vectors(name, lua, python, sizes=(1, 100, 10**4, 10**6, 10**7), kind="randn", tensors=0):
    """Rows for vectors x and y; `tensors`: how many of n elements are read and written at least."""
    for n in sizes:
        label = "%s, %s" % (name, n if n <= 100 else "10^%d" % (len(str(n)) - 1))
        row(label, lua, python, "local x, y = lt.%s(%d), lt.%s(%d)" % (kind, n, kind, n),
            "x, y = torch.%s(%d), torch.%s(%d)" % (kind, n, kind, n), moved=4 * n * tensors)


def matrices(name, lua, python, shape=(4096, 1024), dtype="float32", tensors=0):
    """A row for a tensor x; `tensors`: how many of its size are read and written at least."""
    size = ", ".join(map(str, shape))
    row("%s, %s" % (name, " x ".join(map(str, shape))), lua, python,
        "local x = lt.randn(%s):to('%s')" % (size, dtype),
        "x = torch.randn(%s).to(torch.%s)" % (size, dtype),
        moved=4 * math.prod(shape) * tensors)


# elementwise
vectors("add", "x + y", "x + y", tensors=3)
vectors("relu", "x:relu()", "x.relu()", (100, 10**4, 10**6, 10**7), tensors=2)
vectors("abs", "x:abs()", "x.abs()", (10**4, 10**6), tensors=2)
vectors("reciprocal", "x:reciprocal()", "x.reciprocal()", (10**4, 10**6), tensors=2)
vectors("exp", "x:exp()", "x.exp()", (10**4, 10**6, 10**7), tensors=2)
vectors("tanh", "x:tanh()", "x.tanh()", (10**4, 10**6), tensors=2)
vectors("sigmoid", "x:sigmoid()", "x.sigmoid()", (10**4, 10**6), tensors=2)
vectors("gelu", "F.gelu(x)", "F.gelu(x)", (10**4, 10**6), tensors=2)
vectors("x * x + 7 * y", "x * x + 7 * y", "x * x + 7 * y", (1, 10**4, 10**6, 10**7), tensors=3)
vectors("in place x:add_(y)", "x:add_(y)", "x.add_(y)", (10**4, 10**6), tensors=3)
vectors("clone", "x:clone()", "x.clone()", (10**4, 10**6, 10**7), tensors=2)
vectors("to bfloat16", "x:bfloat16()", "x.bfloat16()", (10**6,))
vectors("sqrt", "x:sqrt()", "x.sqrt()", (10**6,), "rand", tensors=2)
vectors("where", "lt.where(x:gt(0), x, y)", "torch.where(x > 0, x, y)", (10**6,))
row("add float64, 10^6", "x + y", "x + y",
    "local x, y = lt.randn{1000000, dtype = 'float64'}, lt.randn{1000000, dtype = 'float64'}",
    "x, y = (torch.randn(1000000, dtype=torch.float64) for _ in range(2))")
row("add bfloat16, 10^6", "x + y", "x + y",
    "local x, y = lt.randn(1000000):bfloat16(), lt.randn(1000000):bfloat16()",
    "x, y = torch.randn(1000000).bfloat16(), torch.randn(1000000).bfloat16()")
row("abs of bfloat16, 10^6", "x:abs()", "x.abs()", "local x = lt.randn(1000000):bfloat16()",
    "x = torch.randn(1000000).bfloat16()")
for dtype in ("uint8", "int16"):
    for lua, python in (("x + y", "x + y"), ("x:gt(y)", "x > y")):
        row("%s of %s, 10^6" % (python, dtype), lua, python,
            "local x = lt.randint(0, 100, {1000000}):to('%s')\\nlocal y = x:flip(1)" % dtype,
            "x = torch.randint(0, 101, (1000000,)).to(torch.%s)\ny = x.flip(0)" % dtype)
row("int64 // int64, 10^6", "x // y", "x // y",
    "local x, y = lt.randint(1, 1000, {1000000}), lt.randint(1, 1000, {1000000})",
    "x, y = torch.randint(1, 1000, (1000000,)), torch.randint(1, 1000, (1000000,))")
row("int32 % int32, 10^6", "x % y", "x % y",
    "local x, y = lt.randint(1, 1000, {1000000}):int(), lt.randint(1, 1000, {1000000}):int()",
    "x, y = (torch.randint(1, 1000, (1000000,), dtype=torch.int32) for _ in range(2))")
vectors("x % y", "x % y", "x % y", (10**4, 10**6))
vectors("x ^ 3", "x ^ 3", "x ** 3", (10**4, 10**6))
vectors("x ^ -0.5", "x ^ -0.5", "x ** -0.5", (10**4,), "rand")
vectors("clamp", "x:clamp(-1, 1)", "x.clamp(-1, 1)", (10**4, 10**6))
vectors("to float16", "x:half()", "x.half()", (10**6,))
row("float64 to bfloat16, 10^6", "x:bfloat16()", "x.bfloat16()",
    "local x = lt.randn{1000000, dtype = 'float64'}", "x = torch.randn(1000000, dtype=torch.float64)")
vectors("to int64", "x:long()", "x.long()", (10**6,))
row("add a row to 1000 x 1000", "x + y", "x + y", "local x, y = lt.randn(1000, 1000), lt.randn(1000)",
    "x, y = torch.randn(1000, 1000), torch.randn(1000)")
row("add a column to 1000 x 1000", "x + y", "x + y",
    "local x, y = lt.randn(1000, 1000), lt.randn(1000, 1)",
    "x, y = torch.randn(1000, 1000), torch.randn(1000, 1)")
row("add a column to 100000 x 10", "x + y", "x + y",
    "local x, y = lt.randn(100000, 10), lt.randn(100000, 1)",
    "x, y = torch.randn(100000, 10), torch.randn(100000, 1)")
row("multiply by a column, 4096 x 64", "x * y", "x * y",
    "local x, y = lt.randn(4096, 64), lt.randn(4096, 1)",
    "x, y = torch.randn(4096, 64), torch.randn(4096, 1)")
row("divide a column by 4096 x 64", "y / x", "y / x",
    "local x, y = lt.randn(4096, 64), lt.randn(4096, 1)",
    "x, y = torch.randn(4096, 64), torch.randn(4096, 1)")
row("subtract a column from 5000 x 50", "x - y", "x - y",
    "local x, y = lt.randn(5000, 50), lt.randn(5000, 1)",
    "x, y = torch.randn(5000, 50), torch.randn(5000, 1)")
row("gelu by hand, 10^6", "0.5 * x * (1 + ((x + 0.044715 * x ^ 3) * 0.79788456):tanh())",
    "0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x ** 3)))",
    "local x = lt.randn(1000000)", "x = torch.randn(1000000)")

# reductions
vectors("sum", "x:sum()", "x.sum()", (1, 100, 10**4, 10**6, 10**7), tensors=1)
vectors("max", "x:max()", "x.max()", (100, 10**4, 10**6, 10**7), tensors=1)
vectors("mean", "x:mean()", "x.mean()", (10**6,), tensors=1)
vectors("norm", "x:norm()", "x.norm()", (10**4, 10**6), tensors=1)
vectors("var", "x:var()", "x.var()", (10**6,), tensors=1)
vectors("argmax", "x:argmax()", "x.argmax()", (10**6,), tensors=1)
vectors("any", "x:isnan():any()", "x.isnan().any()", (10**6,))
matrices("sum of rows", "x:sum(-1)", "x.sum(-1)", tensors=1)
matrices("sum of columns", "x:sum(1)", "x.sum(0)", tensors=1)
matrices("max of rows with indices", "x:max(-1)", "x.max(-1)", tensors=1)
matrices("max of columns with indices", "x:max(1)", "x.max(0)", tensors=1)
matrices("argmax of rows", "x:argmax(-1)", "x.argmax(-1)", tensors=1)
matrices("var of rows", "x:var(-1)", "x.var(-1)", tensors=1)
matrices("logsumexp of rows", "x:logsumexp(-1)", "x.logsumexp(-1)", tensors=1)
matrices("norm of rows", "x:norm(2, -1)", "x.norm(2, -1)", tensors=1)
matrices("sum of rows", "x:sum(-1)", "x.sum(-1)", (10**5, 10), tensors=1)
matrices("sum of columns", "x:sum(1)", "x.sum(0)", (10**5, 10), tensors=1)
matrices("sum of rows", "x:sum(-1)", "x.sum(-1)", (64, 10), tensors=1)
matrices("sum of rows", "x:sum(-1)", "x.sum(-1)", (16384, 49), tensors=1)
matrices("mean over N, H, W", "x:mean{1, 3, 4}", "x.mean((0, 2, 3))", (32, 64, 28, 28), tensors=1)
matrices("cumsum of rows", "x:cumsum(-1)", "x.cumsum(-1)", (1000, 1000), tensors=2)
matrices("cumsum of columns", "x:cumsum(1)", "x.cumsum(0)", (1000, 1000), tensors=2)

# rows
for shape in ((4096, 1024), (64, 10), (1000, 1000)):
    matrices("softmax", "x:softmax(-1)", "x.softmax(-1)", shape, tensors=2)
    matrices("log_softmax", "x:log_softmax(-1)", "x.log_softmax(-1)", shape, tensors=2)
matrices("layer norm", "F.layer_norm(x, {1024})", "F.layer_norm(x, (1024,))", tensors=2)
row("layer norm with weights, 768 x 128", "F.layer_norm(x, {128}, w, b)",
    "F.layer_norm(x, (128,), w, b)",
    "local x, w, b = lt.randn(768, 128), lt.ones(128), lt.zeros(128)",
    "x, w, b = torch.randn(768, 128), torch.ones(128), torch.zeros(128)")
row("layer norm by hand, 1000 x 1000",
    "(x - x:mean(-1, true)) / (x:var(-1, false, true) + 1e-5):sqrt()",
    "(x - x.mean(-1, True)) / (x.var(-1, False, True) + 1e-5).sqrt()",
    "local x = lt.randn(1000, 1000)", "x = torch.randn(1000, 1000)")
for n, c in ((64, 10), (768, 65), (4096, 1000)):
    row("cross entropy, %d x %d" % (n, c), "F.cross_entropy(x, t)", "F.cross_entropy(x, t)",
        "local x, t = lt.randn(%d, %d), lt.randint(1, %d, {%d})" % (n, c, c, n),
        "x, t = torch.randn(%d, %d), torch.randint(0, %d, (%d,))" % (n, c, c, n))
    row("cross entropy, %d x %d, with gradient" % (n, c), "F.cross_entropy(x, t):backward()",
        "F.cross_entropy(x, t).backward()",
        "local x, t = lt.randn(%d, %d):requires_grad_(), lt.randint(1, %d, {%d})" % (n, c, c, n),
        "x, t = torch.randn(%d, %d).requires_grad_(), torch.randint(0, %d, (%d,))" % (n, c, c, n))
matrices("softmax of columns", "x:softmax(1)", "x.softmax(0)", (1000, 1000))
matrices("softmax of bfloat16", "x:softmax(-1)", "x.softmax(-1)", (1000, 1000), "bfloat16")
matrices("sum of rows of bfloat16", "x:sum(-1)", "x.sum(-1)", (1000, 1000), "bfloat16")
matrices("logsumexp of rows", "x:logsumexp(-1)", "x.logsumexp(-1)", (64, 10))
matrices("cumprod of rows", "x:cumprod(-1)", "x.cumprod(-1)", (1000, 1000))
matrices("largest of rows", "x:amax(-1)", "x.amax(-1)", (1000, 1000))

# layout and indices
matrices("transposed copy", "x:t():contiguous()", "x.t().contiguous()", (1000, 1000), tensors=2)
matrices("transposed copy", "x:t():contiguous()", "x.t().contiguous()", (4096, 1024), tensors=2)
matrices("add the transpose", "x + x:t()", "x + x.t()", (1000, 1000))
matrices("exp of the transpose", "x:t():exp():contiguous()", "x.t().exp().contiguous()",
         (1000, 1000))
matrices("first columns", "x[{{}, {1, 10}}]:clone()", "x[:, :10].contiguous()", (50000, 20))
matrices("flip of rows", "x:flip(2)", "x.flip(1)", (1000, 1000))
matrices("roll", "x:roll(1, 2)", "x.roll(1, 1)", (1000, 1000))
matrices("permuted copy", "x:permute(1, 3, 2, 4):contiguous()",
         "x.permute(0, 2, 1, 3).contiguous()", (16, 128, 8, 64))
matrices("channels last", "x:permute(1, 3, 4, 2):contiguous()",
         "x.permute(0, 2, 3, 1).contiguous()", (32, 64, 28, 28))
row("cat of two 10^6", "lt.cat{x, y}", "torch.cat([x, y])",
    "local x, y = lt.randn(1000000), lt.randn(1000000)",
    "x, y = torch.randn(1000000), torch.randn(1000000)")
row("cat of columns 1000 x 500", "lt.cat({x, y}, 2)", "torch.cat([x, y], 1)",
    "local x, y = lt.randn(1000, 500), lt.randn(1000, 500)",
    "x, y = torch.randn(1000, 500), torch.randn(1000, 500)")
row("stack 2 x 10^6 as columns", "lt.stack({x, y}, 2)", "torch.stack([x, y], 1)",
    "local x, y = lt.randn(1000000), lt.randn(1000000)",
    "x, y = torch.randn(1000000), torch.randn(1000000)")
row("cat of columns 100000 x 2 and x 1", "lt.cat({x, y}, 2)", "torch.cat([x, y], 1)",
    "local x, y = lt.randn(100000, 2), lt.randn(100000, 1)",
    "x, y = torch.randn(100000, 2), torch.randn(100000, 1)")
row("index_select 4096 of 4096 x 256", "x:index_select(1, i)", "x.index_select(0, i)",
    "local x, i = lt.randn(4096, 256), lt.randint(1, 4096, {4096})",
    "x, i = torch.randn(4096, 256), torch.randint(0, 4096, (4096,))")
row("gather 4096 x 64 from 4096 x 1024", "x:gather(2, i)", "x.gather(1, i)",
    "local x, i = lt.randn(4096, 1024), lt.randint(1, 1024, {4096, 64})",
    "x, i = torch.randn(4096, 1024), torch.randint(0, 1024, (4096, 64))")
row("scatter_add 4096 x 64", "x:scatter_add(2, i, s)", "x.scatter_add(1, i, s)",
    "local x, i, s = lt.zeros(4096, 64), lt.randint(1, 64, {4096, 64}), lt.randn(4096, 64)",
    "x, i, s = torch.zeros(4096, 64), torch.randint(0, 64, (4096, 64)), torch.randn(4096, 64)")
row("masked_select 10^6", "x:masked_select(m)", "x.masked_select(m)",
    "local x = lt.randn(1000000)\\nlocal m = x:gt(0)", "x = torch.randn(1000000)\nm = x > 0")
row("embedding 12 x 64 of 65 x 128", "F.embedding(i, w)", "F.embedding(i, w)",
    "local i, w = lt.randint(1, 65, {12, 64}), lt.randn(65, 128)",
    "i, w = torch.randint(0, 65, (12, 64)), torch.randn(65, 128)")
vectors("sort", "x:sort()", "x.sort()", (10**4, 10**6))
matrices("sort of rows", "x:sort(-1)", "x.sort(-1)", (1000, 1000))
matrices("topk 5 of rows", "x:topk(5)", "x.topk(5)", (1000, 1000))
row("randperm 10^6", "lt.randperm(1000000)", "torch.randperm(1000000)")
row("randn 10^6", "lt.randn(1000000)", "torch.randn(1000000)")
row("rand 10^6", "lt.rand(1000000)", "torch.rand(1000000)")
row("zeros 10^6", "lt.zeros(1000000)", "torch.zeros(1000000)")
row("arange 10^6", "lt.arange(1000000)", "torch.arange(1000000)")
row("linspace 10^6", "lt.linspace(0, 1, 1000000)", "torch.linspace(0, 1, 1000000)")
row("fill_ 10^6", "x:fill_(2)", "x.fill_(2)", "local x = lt.zeros(1000000)", "x = torch.zeros(1000000)")

# products
for n in (32, 128, 512, 1024):
    row("matmul %d" % n, "x:mm(y)", "x.mm(y)",
        "local x, y = lt.randn(%d, %d), lt.randn(%d, %d)" % (n, n, n, n),
        "x, y = torch.randn(%d, %d), torch.randn(%d, %d)" % (n, n, n, n), flops=2 * n**3)
for n in (128, 1024, 4096):
    row("linear of one token, %d" % n, "F.linear(x, w, b)", "F.linear(x, w, b)",
        "local x, w, b = lt.randn(1, %d), lt.randn(%d, %d), lt.randn(%d)" % (n, n, n, n),
        "x, w, b = torch.randn(1, %d), torch.randn(%d, %d), torch.randn(%d)" % (n, n, n, n))
for n in (256, 2048):
    row("matmul %d" % n, "x:mm(y)", "x.mm(y)",
        "local x, y = lt.randn(%d, %d), lt.randn(%d, %d)" % (n, n, n, n),
        "x, y = torch.randn(%d, %d), torch.randn(%d, %d)" % (n, n, n, n))
row("matmul transposed, 512", "x:t():mm(y)", "x.t().mm(y)",
    "local x, y = lt.randn(512, 512), lt.randn(512, 512)",
    "x, y = torch.randn(512, 512), torch.randn(512, 512)")
row("matmul float64, 256", "x:mm(y)", "x.mm(y)",
    "local x = lt.randn{256, 256, dtype = 'float64'}\\nlocal y = x + 1",
    "x = torch.randn(256, 256, dtype=torch.float64)\ny = x + 1")
for n in (64, 512):
    row("matmul bfloat16, %d" % n, "x:mm(y)", "x.mm(y)",
        "local x, y = lt.randn(%d, %d):bfloat16(), lt.randn(%d, %d):bfloat16()" % (n, n, n, n),
        "x, y = torch.randn(%d, %d).bfloat16(), torch.randn(%d, %d).bfloat16()" % (n, n, n, n))
row("linear of bfloat16, 64 x 784 to 256", "F.linear(x, w, b)", "F.linear(x, w, b)",
    "local x, w, b = lt.randn(64, 784):bfloat16(), lt.randn(256, 784):bfloat16(), "
    "lt.randn(256):bfloat16()",
    "x, w = torch.randn(64, 784).bfloat16(), torch.randn(256, 784).bfloat16()\n"
    "b = torch.randn(256).bfloat16()")
row("matrix and vector, 1000 x 1000", "x:mv(y)", "x.mv(y)",
    "local x, y = lt.randn(1000, 1000), lt.randn(1000)",
    "x, y = torch.randn(1000, 1000), torch.randn(1000)")
row("linear 64 x 784 to 256", "F.linear(x, w, b)", "F.linear(x, w, b)",
    "local x, w, b = lt.randn(64, 784), lt.randn(256, 784), lt.randn(256)",
    "x, w, b = torch.randn(64, 784), torch.randn(256, 784), torch.randn(256)")
row("linear 12 x 64 x 128 to 512", "F.linear(x, w, b)", "F.linear(x, w, b)",
    "local x, w, b = lt.randn(12, 64, 128), lt.randn(512, 128), lt.randn(512)",
    "x, w, b = torch.randn(12, 64, 128), torch.randn(512, 128), torch.randn(512)")
row("bmm 1000 x 8 x 8 x 8", "x:bmm(y)", "x.bmm(y)",
    "local x, y = lt.randn(1000, 8, 8), lt.randn(1000, 8, 8)",
    "x, y = torch.randn(1000, 8, 8), torch.randn(1000, 8, 8)")
row("bmm 64 x 64 x 32 x 64", "x:bmm(y)", "x.bmm(y)",
    "local x, y = lt.randn(64, 64, 32), lt.randn(64, 32, 64)",
    "x, y = torch.randn(64, 64, 32), torch.randn(64, 32, 64)")
for shape, causal in (((8, 8, 128, 64), False), ((1, 8, 1024, 64), False), ((1, 8, 1024, 64), True)):
    size = ", ".join(map(str, shape))
    name = "attention%s, %s" % (" causal" if causal else "", " x ".join(map(str, shape)))
    lua_set = "local q, k, v = lt.randn(%s), lt.randn(%s), lt.randn(%s)" % (size, size, size)
    py_set = "q, k, v = (torch.randn(%s) for _ in range(3))" % size
    lua = "F.scaled_dot_product_attention(q, k, v, {is_causal = %s})" % str(causal).lower()
    python = "F.scaled_dot_product_attention(q, k, v, is_causal=%s)" % causal
    row(name, lua, python, lua_set, py_set)
    row(name + ", with gradient", "%s:sum():backward()" % lua, "%s.sum().backward()" % python,
        lua_set + "\\nfor _, t in ipairs{q, k, v} do t:requires_grad_() end",
        py_set + "\nfor t in (q, k, v): t.requires_grad_()")
row("attention of one query, 1024 keys, 8 x 64", "F.scaled_dot_product_attention(q, k, v)",
    "F.scaled_dot_product_attention(q, k, v)",
    "local q, k, v = lt.randn(1, 8, 1, 64), lt.randn(1, 8, 1024, 64), lt.randn(1, 8, 1024, 64)",
    "q = torch.randn(1, 8, 1, 64)\nk, v = torch.randn(1, 8, 1024, 64), torch.randn(1, 8, 1024, 64)")
lua = "F.scaled_dot_product_attention(p[1], p[2], p[3], {is_causal = true})"
python = "F.scaled_dot_product_attention(*p, is_causal=True)"
lua_set = """local x = lt.randn(12, 64, 384, {requires_grad = true})
local p = x:split(128, 3)
for i = 1, 3 do p[i] = p[i]:view(12, 64, 4, 32):transpose(2, 3) end"""
py_set = """x = torch.randn(12, 64, 384, requires_grad=True)
p = [t.view(12, 64, 4, 32).transpose(1, 2) for t in x.split(128, 2)]"""
row("attention causal of views, 12 x 4 x 64 x 32", lua, python, lua_set.replace("\n", "\\n"), py_set)
row("attention causal of views, 12 x 4 x 64 x 32, with gradient",
    "%s:sum():backward({retain_graph = true})" % lua, "%s.sum().backward(retain_graph=True)" % python,
    lua_set.replace("\n", "\\n"), py_set)
for dtype in ("bfloat16", "float16", "float64"):
    row("attention causal, 1 x 8 x 512 x 64, %s" % dtype,
        "F.scaled_dot_product_attention(q, k, v, {is_causal = true})",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "local q = lt.randn(1, 8, 512, 64):to('%s')\\nlocal k, v = q:clone(), q:clone()" % dtype,
        "q = torch.randn(1, 8, 512, 64).to(torch.%s)\nk, v = q.clone(), q.clone()" % dtype)

# training steps
MLP = """
local net = nn.Sequential(nn.Linear(%d, %d), nn.%s(), nn.Linear(%d, %d))
local opt = optim.%s(net:parameters(), {lr = 0.001})
local x, t = lt.randn(%d, %d), %s
local function step()
  local loss = F.%s(net(x), t)
  opt:zero_grad(); loss:backward(); opt:step()
end"""
MLP_PY = """
net = nn.Sequential(nn.Linear(%d, %d), nn.%s(), nn.Linear(%d, %d))
opt = optim.%s(net.parameters(), lr=0.001)
x, t = torch.randn(%d, %d), %s
def step():
    loss = F.%s(net(x), t)
    opt.zero_grad(); loss.backward(); opt.step()
"""

sizes = (784, 256, "ReLU", 256, 10, "SGD", 64, 784)
step("step of MLP 784-256-10, SGD", MLP % (*sizes, "lt.randint(1, 10, {64})", "cross_entropy"),
     MLP_PY % (*sizes, "torch.randint(0, 10, (64,))", "cross_entropy"))
sizes = (784, 512, "ReLU", 512, 10, "AdamW", 64, 784)
step("step of MLP 784-512-10, AdamW", MLP % (*sizes, "lt.randint(1, 10, {64})", "cross_entropy"),
     MLP_PY % (*sizes, "torch.randint(0, 10, (64,))", "cross_entropy"))
sizes = (2, 16, "Tanh", 16, 1, "SGD", 4, 2)
step("step of MLP 2-16-1, SGD", MLP % (*sizes, "lt.randn(4, 1)", "mse_loss"),
     MLP_PY % (*sizes, "torch.randn(4, 1)", "mse_loss"))
step("step of a GPT, 4 layers, width 128, batch 12 x 64", gpt.LUA + """
local function step()
  local logits = body(tokens(text) + places(at))
  local loss = F.cross_entropy(logits:view(-1, 65), target:view(-1))
  opt:zero_grad(); loss:backward(); opt:step()
end""", gpt.PYTHON + """
def step():
    logits = body(tokens(text) + places(at))
    loss = F.cross_entropy(logits.view(-1, 65), target.view(-1))
    opt.zero_grad(); loss.backward(); opt.step()
""")


# what a call costs: tensors so small that the kernel takes little of the time
def small(name, lua, python=None, setup="", python_setup=""):
    """A row of small tensors x, y {100}, m {10, 10}; `setup` adds others."""
    row("small: " + name, lua, python or lua.replace("x:", "x.").replace("m:", "m."),
        "local x, y, m = lt.randn(100), lt.randn(100), lt.randn(10, 10)\\n" + setup,
        "x, y, m = torch.randn(100), torch.randn(100), torch.randn(10, 10)\n" + python_setup)


WITH_GRAD = ("for _, t in ipairs{x, y, m} do t:requires_grad_() end",
             "for t in (x, y, m): t.requires_grad_()")
small("x * 2", "x * 2")
small("x * y, with gradient", "x * y", "x * y", *WITH_GRAD)
small("relu, with gradient", "x:relu()", None, *WITH_GRAD)
small("view, with gradient", "x:view(10, 10)", None, *WITH_GRAD)
small("sum(-1)", "m:sum(-1)")
small("mean", "x:mean()")
small("add_", "x:add_(y)")
small("x:gt(0)", "x:gt(0)", "x > 0")
small("x == y", "x:eq(y)", "x == y")
small("where of a comparison", "lt.where(x:gt(0), x, y)", "torch.where(x > 0, x, y)")
small("add a row", "m + r", "m + r", "local r = lt.randn(10)", "r = torch.randn(10)")
small("clamp", "x:clamp(-1, 1)")
small("float64()", "x:double()")
small("clone", "x:clone()")
small("detach", "x:detach()")
small("view", "x:view(10, 10)")
small("reshape", "x:reshape(10, 10)")
small("transpose", "m:t()")
small("permute", "m:permute(2, 1)", "m.permute(1, 0)")
small("unsqueeze", "x:unsqueeze(1)", "x.unsqueeze(0)")
small("squeeze", "x:squeeze()")
small("flatten", "m:flatten()")
small("select", "m:select(1, 2)", "m.select(0, 1)")
small("m.T", "m.T", "m.T")
small("expand", "x:expand(10, 100)")
small("chunk", "x:chunk(4)")
small("split", "x:split(50)")
small("narrow", "x:narrow(1, 1, 10)", "x.narrow(0, 0, 10)")
small("m[1]", "m[1]", "m[0]")
small("m[1][1]", "m[1][1]", "m[0][0]")
small("m[{1, 2}]", "m[{1, 2}]", "m[0, 1]")
small("slice", "x['1:10']", "x[0:10]")
small("column", "m[{':', 1}]", "m[:, 0]")
small("m[1] = 0", "(function() m[1] = 0 end)()", "m.__setitem__(0, 0)")
small("x[mask]", "x[k]", "x[k]", "local k = x:gt(0)", "k = x > 0")
small("x[indices]", "x[i]", "x[i]", "local i = lt.randint(1, 100, {10})",
      "i = torch.randint(0, 100, (10,))")
small("index_select", "x:index_select(1, i)", "x.index_select(0, i)",
      "local i = lt.randint(1, 100, {10})", "i = torch.randint(0, 100, (10,))")
small("gather", "m:gather(2, i)", "m.gather(1, i)", "local i = lt.randint(1, 10, {10, 1})",
      "i = torch.randint(0, 10, (10, 1))")
small("item", "s:item()", "s.item()", "local s = lt.randn(1)", "s = torch.randn(1)")
small("shape", "m.shape[1]", "m.shape[0]")
small("size(1)", "m:size(1)", "m.size(0)")
small("numel", "m:numel()")
small("dtype", "m.dtype")
small("device", "m.device")
small("ndim", "m.ndim")
small("is_complex", "x:is_complex()")
small("tolist", "x:tolist()")
small("tolist of 10 x 10", "m:tolist()")
small("cat of two", "lt.cat{x, y}", "torch.cat([x, y])")
small("stack of two", "lt.stack{x, y}", "torch.stack([x, y])")
small("zeros", "lt.zeros(10)", "torch.zeros(10)")
small("ones", "lt.ones(10, 10)", "torch.ones(10, 10)")
small("zeros_like", "lt.zeros_like(x)", "torch.zeros_like(x)")
small("full", "lt.full({10}, 2.5)", "torch.full((10,), 2.5)")
small("arange", "lt.arange(10)", "torch.arange(10)")
small("randn", "lt.randn(10)", "torch.randn(10)")
small("tensor of a list", "lt.tensor{1, 2, 3, 4}", "torch.tensor([1, 2, 3, 4])")
small("tensor of a number", "lt.tensor(1.5)", "torch.tensor(1.5)")
small("argmax", "x:argmax()")
small("max(-1)", "m:max(-1)")
small("norm", "x:norm()")
small("std", "x:std()")
small("cumsum", "x:cumsum(1)", "x.cumsum(0)")
small("dot", "x:dot(y)", "x.dot(y)")
small("mm", "m:mm(m)", "m.mm(m)")
small("matmul", "lt.matmul(m, m)", "torch.matmul(m, m)")
small("mv", "m:mv(v)", "m.mv(v)", "local v = lt.randn(10)", "v = torch.randn(10)")
small("bmm", "b:bmm(b)", "b.bmm(b)", "local b = lt.randn(2, 5, 5)", "b = torch.randn(2, 5, 5)")
small("layer norm", "F.layer_norm(m, {10}, w, w)", "F.layer_norm(m, (10,), w, w)",
      "local w = lt.ones(10)", "w = torch.ones(10)")
small("softmax", "m:softmax(-1)")
small("mse_loss", "F.mse_loss(x, y)", "F.mse_loss(x, y)")
small("cross entropy", "F.cross_entropy(m, t)", "F.cross_entropy(m, t)",
      "local t = lt.randint(1, 10, {10})", "t = torch.randint(0, 10, (10,))")
small("dropout", "F.dropout(x, 0.5)", "F.dropout(x, 0.5)")
small("embedding", "F.embedding(i, m)", "F.embedding(i, m)", "local i = lt.randint(1, 10, {4})",
      "i = torch.randint(0, 10, (4,))")
small("F.linear", "F.linear(a, m, r)", "F.linear(a, m, r)",
      "local a, r = lt.randn(1, 10), lt.randn(10)", "a, r = torch.randn(1, 10), torch.randn(10)")
small("nn.Linear of 1 x 16", "net(a)", "net(a)", "local net, a = nn.Linear(16, 16), lt.randn(1, 16)",
      "net, a = nn.Linear(16, 16), torch.randn(1, 16)")
small("nn.Linear of 1 x 16 under no_grad", "lt.no_grad(f)", "f()",
      "local net, a = nn.Linear(16, 16), lt.randn(1, 16)\\nlocal f = function() return net(a) end",
      "net, a = nn.Linear(16, 16), torch.randn(1, 16)\n@torch.no_grad()\ndef f(): return net(a)")
small("nn.Linear of 1 x 16, with gradient", "net(a):sum():backward()", "net(a).sum().backward()",
      "local net, a = nn.Linear(16, 16), lt.randn(1, 16)",
      "net, a = nn.Linear(16, 16), torch.randn(1, 16)")
small("LSTM cell 16", "net(a)", "net(a)", "local net, a = nn.LSTMCell(16, 16), lt.randn(1, 16)",
      "net, a = nn.LSTMCell(16, 16), torch.randn(1, 16)")
small("GRU cell 16", "net(a)", "net(a)", "local net, a = nn.GRUCell(16, 16), lt.randn(1, 16)",
      "net, a = nn.GRUCell(16, 16), torch.randn(1, 16)")
small("LSTM 8 steps of 16", "net(a)", "net(a)", "local net, a = nn.LSTM(16, 16), lt.randn(8, 1, 16)",
      "net, a = nn.LSTM(16, 16), torch.randn(8, 1, 16)")
small("LSTM 8 steps of 16, with gradient", "net(a):sum():backward()", "net(a)[0].sum().backward()",
      "local net, a = nn.LSTM(16, 16), lt.randn(8, 1, 16)",
      "net, a = nn.LSTM(16, 16), torch.randn(8, 1, 16)")
small("backward of x * y", "(x * y):sum():backward()", "(x * y).sum().backward()", *WITH_GRAD)
small("backward of ten ops", "f()", "f()", WITH_GRAD[0] + """
local function f()
  local h = x * y
  for _ = 1, 3 do h = (h + y):tanh() * 0.5 end
  h:sum():backward()
end""".replace("\n", "\\n"), WITH_GRAD[1] + """
def f():
    h = x * y
    for _ in range(3): h = (h + y).tanh() * 0.5
    h.sum().backward()
""")
small("backward of m @ m + row", "(m:mm(m) + r):sum():backward()", "(m.mm(m) + r).sum().backward()",
      "m:requires_grad_(); local r = lt.randn(10):requires_grad_()",
      "m.requires_grad_(); r = torch.randn(10, requires_grad=True)")
small("autograd.grad", "lt.autograd.grad(x:square():sum(), x)",
      "torch.autograd.grad(x.square().sum(), x)", *WITH_GRAD)
for optimizer, settings in (("SGD", ""), ("SGD", "momentum = 0.9, "), ("Adam", ""), ("AdamW", "")):
    small("%s of 50 parameters%s" % (optimizer, settings and ", momentum"), "opt:step()",
          "opt.step()", """
local ps = {}
for i = 1, 50 do ps[i] = nn.Parameter(lt.randn(100)); ps[i].grad = lt.randn(100) end
local opt = optim.%s(ps, {%slr = 1e-6})""".replace("\n", "\\n") % (optimizer, settings), """
ps = [nn.Parameter(torch.randn(100)) for _ in range(50)]
for p in ps: p.grad = torch.randn(100)
opt = optim.%s(ps, %slr=1e-6)""" % (optimizer, settings))
small("zero_grad of 50 parameters", "opt:zero_grad()", "opt.zero_grad()", """
local ps = {}
for i = 1, 50 do ps[i] = nn.Parameter(lt.randn(100)); ps[i].grad = lt.randn(100) end
local opt = optim.SGD(ps, {lr = 1e-6})""".replace("\n", "\\n"), """
ps = [nn.Parameter(torch.randn(100)) for _ in range(50)]
for p in ps: p.grad = torch.randn(100)
opt = optim.SGD(ps, lr=1e-6)""")
small("clip_grad_norm_ of 50 parameters", "nn.utils.clip_grad_norm_(ps, 1)",
      "nn.utils.clip_grad_norm_(ps, 1)", """
local ps = {}
for i = 1, 50 do ps[i] = nn.Parameter(lt.randn(100)); ps[i].grad = lt.randn(100) end
""".replace("\n", "\\n"), """
ps = [nn.Parameter(torch.randn(100)) for _ in range(50)]
for p in ps: p.grad = torch.randn(100)""")

# last: its long tables are garbage of the rows behind it
vectors("tolist", "x:tolist()", "x.tolist()", (1, 10**4))


if __name__ == "__main__":
    main()
