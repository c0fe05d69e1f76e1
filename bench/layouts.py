#!/usr/bin/env python3
"""Ordinary calls on tensors of many layouts and dtypes: Lutra beside PyTorch on the CPU, in one
run, in turns. Prints what bench/ops.py prints. With one round many rows are noise: measure those
above 1.0 again with --only and more rounds.

    python3 bench/layouts.py [--only PATTERN] [--threads 2] [--rounds 1] [--lutra PROGRAM]
        [--isa avx2]
"""

from pairs import main, rows

# Set-ups of x, in Lua and Python.
LAYOUTS = {
    "1000 x 1000, transposed": ("local x = lt.randn(1000, 1000):t()",
                                "x = torch.randn(1000, 1000).t()"),
    "1000 x 1000, every second column": ("local x = lt.randn(1000, 2000)[{{}, {1, 2000, 2}}]",
                                         "x = torch.randn(1000, 2000)[:, ::2]"),
    "100000 x 10": ("local x = lt.randn(100000, 10)", "x = torch.randn(100000, 10)"),
    "10 x 100000": ("local x = lt.randn(10, 100000)", "x = torch.randn(10, 100000)"),
    "64 x 128 x 128": ("local x = lt.randn(64, 128, 128)", "x = torch.randn(64, 128, 128)"),
}
FLOATS = {
    dtype: ("local x = lt.randn({1000, 1000}, {dtype = '%s'})" % dtype,
            "x = torch.randn(1000, 1000, dtype=torch.%s)" % dtype)
    for dtype in ("float64", "bfloat16")
}
INTEGERS = {
    dtype: ("local x = lt.randint(1, 50, {1000, 1000}, {dtype = '%s'})" % dtype,
            "x = torch.randint(1, 51, (1000, 1000), dtype=torch.%s)" % dtype)
    for dtype in ("int64", "uint8")
}
MASKS = {"bool": ("local x = lt.randn(1000, 1000):gt(0)", "x = torch.randn(1000, 1000) > 0")}


def along(names):
    """Calls of functions of x along its last dim, and the one before."""
    return ["T.%s(x, %d)" % (name, dim) for name in names.split() for dim in (-1, -2)]


def each(names):
    """Calls of functions of x."""
    return ["T.%s(x)" % name for name in names.split()]


FOLDS = "sum prod amax amin argmax argmin max min any all count_nonzero "
SCANS = "cumsum cumprod cummax sort argsort "
OF_FLOATS = "mean std var logsumexp median nansum softmax log_softmax "
DIFF = ["T.diff(x, 1, -1)", "T.diff(x, 1, -2)"]

for layout, setup in LAYOUTS.items():
    rows(layout, *setup, along(FOLDS + SCANS + OF_FLOATS) + DIFF)
for dtype, setup in FLOATS.items():
    rows(dtype, *setup, along(FOLDS + SCANS + OF_FLOATS) + each("sum mean prod amax std median"))
for dtype, setup in INTEGERS.items():
    rows(dtype, *setup, along(FOLDS + SCANS) + each("sum prod amax argmax median") + DIFF)
for dtype, setup in MASKS.items():
    rows(dtype, *setup, along("sum max min any all count_nonzero cumsum sort argsort")
         + each("sum any all count_nonzero"))

# ---- elementwise ops

NUMBERS = "abs neg square sign relu "
REALS = "exp log log1p sqrt sigmoid tanh sin erf floor round reciprocal isnan expm1 exp2"
WITH_Y = ("; local y, z = x:clone(), x:clone(); local r, c = y[1], y[{{}, {1, 1}}]",
          "; y, z = x.clone(), x.clone(); r, c = y[0], y[:, :1]")
BINARY = ["x + y", "x * y", "x + r", "x * c", "x + 1", "2 * x", "T.eq(x, y)", "T.gt(x, y)",
          "T.maximum(x, y)", ("T.where(x:gt(0), x, y)", "T.where(x.gt(0), x, y)"),
          "T.clamp(x, 2, 9)", "T.remainder(x, 7)", ("z:add_(x)", "z.add_(x)")]
COPIES = [("x:clone()", "x.clone()"), ("z:copy_(x)", "z.copy_(x)"),
          ("x:t():contiguous()", "x.t().contiguous()"), ("x:flip(-1)", "x.flip(-1)"),
          ("x:t():flip(-1)", "x.t().flip(-1)")]
CASTS = [("x:to '%s'" % dtype, "x.to(torch.%s)" % dtype) for dtype in
         ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8",
          "bool")]
MATRICES = {**{k: v for k, v in LAYOUTS.items() if k.startswith("1000 ")}, **FLOATS}
for layout, setup in MATRICES.items():
    rows(layout, *(a + b for a, b in zip(setup, WITH_Y)),
         each(NUMBERS + REALS) + BINARY + COPIES + CASTS)
for dtype, setup in INTEGERS.items():
    rows(dtype, *(a + b for a, b in zip(setup, WITH_Y)), each("square sign") + BINARY + COPIES
         + CASTS)

# ---- indexing

INDEXED = ("local x, y, v = lt.randn(1000, 1000), lt.randn(1000, 1000), lt.randn(1000000)\\n"
           "local c, q = lt.randn(100, 100, 100), lt.randn(100000, 10)\\n"
           "local i, j = lt.randint(1, 1000, {1000}), lt.randint(1, 1000, {1000})\\n"
           "local k, b = lt.randint(1, 100, {100}), lt.randint(1, 10, {10})\\n"
           "local m, r = lt.randn(1000, 1000):gt(0), lt.randn(1000):gt(0)\\n"
           "local g = lt.randint(1, 1000, {1000, 1000})\\n"
           "local big = lt.randint(1, 1000000, {1000000})",
           "x, y, v = torch.randn(1000, 1000), torch.randn(1000, 1000), torch.randn(1000000)\n"
           "c, q = torch.randn(100, 100, 100), torch.randn(100000, 10)\n"
           "i, j = torch.randint(0, 1000, (1000,)), torch.randint(0, 1000, (1000,))\n"
           "k, b = torch.randint(0, 100, (100,)), torch.randint(0, 10, (10,))\n"
           "m, r = torch.randn(1000, 1000) > 0, torch.randn(1000) > 0\n"
           "g = torch.randint(0, 1000, (1000, 1000))\n"
           "big = torch.randint(0, 1000000, (1000000,))")
rows("index", *INDEXED, [
    "x[i]", ("x[{{}, i}]", "x[:, i]"), ("x[{i, j}]", "x[i, j]"), "x[m]", "x[r]",
    ("x[{{}, r}]", "x[:, r]"), "v[big]", ("c[{{}, {}, k}]", "c[:, :, k]"),
    ("c[{{}, k, k}]", "c[:, k, k]"), ("c[{k, {}, k}]", "c[k, :, k]"), ("q[{{}, b}]", "q[:, b]"),
    ("x:index_put_({i, j}, v[{{1, 1000}}])", "x.index_put_((i, j), v[:1000])"),
    ("x:index_fill_(2, i, 0)", "x.index_fill_(1, i, 0)"),
    ("x:index_add(1, i, y)", "x.index_add(0, i, y)"),
    ("x:index_add(2, i, y)", "x.index_add(1, i, y)"),
    ("x:index_copy(1, i, y)", "x.index_copy(0, i, y)"),
    ("x:index_copy(2, i, y)", "x.index_copy(1, i, y)"),
    ("x:index_select(2, i)", "x.index_select(1, i)"),
    ("x:gather(1, g)", "x.gather(0, g)"), ("x:gather(2, g)", "x.gather(1, g)"),
    ("x:scatter(1, g, y)", "x.scatter(0, g, y)"), ("x:scatter(2, g, y)", "x.scatter(1, g, y)"),
    ("x:scatter_add(1, g, y)", "x.scatter_add(0, g, y)"),
    ("x:scatter_add(2, g, y)", "x.scatter_add(1, g, y)"),
    ("x:scatter_reduce(1, g, y, 'amax')", "x.scatter_reduce(0, g, y, 'amax')"),
    ("x:scatter_reduce(2, g, y, 'mean')", "x.scatter_reduce(1, g, y, 'mean')"),
    ("x:masked_fill(m, 0)", "x.masked_fill(m, 0)"), ("m:nonzero()", "m.nonzero()"),
    "T.where(m, x, y)", ("v:take(big)", "v.take(big)"), "T.bincount(big)", "T.isin(big, i)",
    "T.unique(big)", "T.unique_consecutive(big)", "T.kron(x[1], y[1])"])

# ---- small and narrow products

PRODUCTS = ("local a, b, v = lt.randn(10000, 3, 3), lt.randn(10000, 3, 3), lt.randn(10000, 3, 1)\\n"
            "local t, s, p = lt.randn(100000, 10), lt.randn(10, 10), lt.randn(16, 32, 32)\\n"
            "local z = lt.randn({64, 64}, {dtype = 'complex64'})\\n"
            "local n = lt.randint(1, 9, {300, 300})\\n"
            "local h, w = t:bfloat16(), s:bfloat16()",
            "a, b = torch.randn(10000, 3, 3), torch.randn(10000, 3, 3)\n"
            "v = torch.randn(10000, 3, 1)\n"
            "t, s, p = torch.randn(100000, 10), torch.randn(10, 10), torch.randn(16, 32, 32)\n"
            "z = torch.randn(64, 64, dtype=torch.complex64)\n"
            "n = torch.randint(1, 9, (300, 300))\n"
            "h, w = t.bfloat16(), s.bfloat16()")
rows("product", *PRODUCTS, [
    "T.matmul(a, b)", "T.matmul(a, v)", "T.matmul(p, p)", "T.matmul(t, s)", "T.matmul(h, w)",
    ("T.matmul(t:t(), t)", "T.matmul(t.t(), t)"), ("T.matmul(h:t(), h)", "T.matmul(h.t(), h)"),
    "T.matmul(z, z)", "T.dot(z[1], z[2])", "T.vdot(z[1], z[2])", "T.matmul(n, n)",
    "T.trapezoid(t)", "T.einsum('bij,bij->b', a, b)"])

if __name__ == "__main__":
    main(rounds=1)
