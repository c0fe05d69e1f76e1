"""Expected values of statistics, sorting, searching, histograms and masked reductions (see ops.py)."""

import math

import torch

from ops import FLOATS, INTS, SPECIAL, case, f, family, i, ix, positions

nan, inf = math.nan, math.inf
GAPS = torch.tensor([[1.5, nan, -2.0, 7.0], [nan, nan, nan, nan], [0.0, 3.0, -inf, 2.0]])
TIES = torch.tensor([[3, 1, 3, 2, 1, 3], [2, 2, 2, 2, 2, 2], [5, 4, 4, 1, 5, 0]])


def shifted(n, result):
    """Makes the results from number n on (0-based) count from 1: they are indices."""
    return tuple(r + 1 if k >= n else r for k, r in enumerate(result))


family("statistics")
for op in ("var_mean", "std_mean"):
    for d in FLOATS:
        case(op, "lt.%s(x)" % op, lambda x, op=op: getattr(torch, op)(x), x=f(3, 4).to(d))
    case(op, "lt.%s(x, 2, false, true)" % op,
         lambda x, op=op: getattr(torch, op)(x, 1, False, True), x=f(3, 4))
    case(op, "lt.%s(x, false)" % op, lambda x, op=op: getattr(torch, op)(x, False), x=f(3, 4))
    case(op, "lt.%s{x, dim = {1, 2}, correction = 1.5}" % op,
         lambda x, op=op: getattr(torch, op)(x, dim=(0, 1), correction=1.5), x=f(3, 4, 2))
    case(op, "lt.%s(x)" % op, lambda x, op=op: getattr(torch, op)(x), x=torch.tensor(2.0))
    case(op, "lt.%s(x, 1)" % op, lambda x, op=op: getattr(torch, op)(x, 0), x=torch.empty(0, 3))
for op in ("var", "std"):
    case(op, "x:%s(false)" % op, lambda x, op=op: getattr(x, op)(False), x=f(3, 4))
    case(op, "x:%s{dim = -1, correction = 3}" % op,
         lambda x, op=op: getattr(x, op)(dim=-1, correction=3), x=f(3, 4))
for p in (2, 1, 0, 0.5, -1, 3, inf, -inf):
    code = {inf: "lt.inf", -inf: "-lt.inf"}.get(p, p)
    case("norm", "x:norm(%s)" % code, lambda x, p=p: x.norm(p), x=f(3, 4))
    case("norm", "x:norm(%s, {1, -1}, true)" % code, lambda x, p=p: x.norm(p, (0, -1), True), x=f(3, 4, 2))
    case("dist", "lt.dist(x, y, %s)" % code, lambda x, y, p=p: torch.dist(x, y, p), x=f(3, 4), y=f(4))
case("norm", "x:norm()", lambda x: x.norm(), x=f(3, 4, dtype=torch.bfloat16))
case("norm", 'x:norm("fro", 2)', lambda x: x.norm("fro", 1), x=f(3, 4))
case("norm", 'x:norm{dim = 1, dtype = "float64"}', lambda x: x.norm(dim=0, dtype=torch.float64), x=f(3, 4))
case("dist", "lt.dist(x, y)", lambda x, y: torch.dist(x, y), x=f(5, dtype=torch.float64), y=f(5, dtype=torch.float64))
for d in FLOATS:
    case("renorm", "lt.renorm(x, 2, 2, 1)", lambda x: torch.renorm(x, 2, 1, 1), x=f(3, 4).to(d))
case("renorm", "x:renorm(1, -1, 0.5)", lambda x: x.renorm(1, -1, 0.5), x=f(3, 4, 2))
case("renorm", "x:clone():renorm_(lt.inf, 1, 0.5)", lambda x: x.renorm(inf, 0, 0.5), x=f(3, 4))
for x in (GAPS, GAPS.half(), torch.empty(0), torch.tensor(2.0)):
    case("nanmean", "lt.nanmean(x)", lambda x: torch.nanmean(x), x=x)
case("nanmean", "x:nanmean(2, true)", lambda x: x.nanmean(1, True), x=GAPS)
case("nanmean", 'x:nanmean{dim = {1, 2}, dtype = "float64"}', lambda x: x.nanmean((0, 1), dtype=torch.float64), x=GAPS)
for d in FLOATS + INTS + [torch.bool]:
    case("aminmax", "lt.aminmax(x)", lambda x: torch.aminmax(x), x=TIES.to(d))
case("aminmax", "x:aminmax{dim = 2, keepdim = true}", lambda x: x.aminmax(dim=1, keepdim=True), x=GAPS)
case("aminmax", "x:aminmax()", lambda x: x.aminmax(), x=torch.tensor(3))
for mode in ("linear", "lower", "higher", "midpoint", "nearest"):
    for op in ("quantile", "nanquantile"):
        case(op, 'lt.%s(x, 0.3, 2, false, "%s")' % (op, mode),
             lambda x, op=op, m=mode: getattr(torch, op)(x, 0.3, 1, interpolation=m), x=GAPS)
        case(op, 'x:%s{q, dim = 1, keepdim = true, interpolation = "%s"}' % (op, mode),
             lambda x, q, op=op, m=mode: getattr(x, op)(q, 0, True, interpolation=m),
             x=f(5, 3, dtype=torch.float64), q=torch.tensor([0.0, 0.25, 0.6, 1.0], dtype=torch.float64))
for op in ("quantile", "nanquantile"):
    case(op, "lt.%s(x, 0.5)" % op, lambda x, op=op: getattr(torch, op)(x, 0.5), x=torch.tensor(3.0))
    case(op, "lt.%s(x, q)" % op, lambda x, q, op=op: getattr(torch, op)(x, q), x=f(3, 4), q=torch.tensor([0.1, 0.9]))
    case(op, "lt.%s{x, 0.5, keepdim = true}" % op, lambda x, op=op: getattr(torch, op)(x, 0.5, keepdim=True), x=f(3, 4))
w, a = i(5, low=1, high=4), f(5).abs()
for d in FLOATS[:2] + INTS[:2]:
    case("cov", "lt.cov(x)", lambda x: torch.cov(x), x=(f(3, 5) * 4).to(d))
    case("corrcoef", "lt.corrcoef(x)", lambda x: torch.corrcoef(x), x=(f(3, 5) * 4).to(d))
case("cov", "lt.cov(x, 0, w)", lambda x, w: torch.cov(x, correction=0, fweights=w), x=f(3, 5), w=w)
case("cov", "lt.cov{x, aweights = a}", lambda x, a: torch.cov(x, aweights=a), x=f(3, 5), a=a)
case("cov", "lt.cov{x, fweights = w, aweights = a}", lambda x, w, a: torch.cov(x, fweights=w, aweights=a),
     x=f(3, 5), w=w, a=a)
case("cov", "lt.cov(x)", lambda x: torch.cov(x), x=f(5))
case("cov", "lt.cov(x, 2)", lambda x: torch.cov(x, correction=2), x=f(2, 1))
case("corrcoef", "lt.corrcoef(x)", lambda x: torch.corrcoef(x), x=f(5))
for d in FLOATS + INTS + [torch.bool]:
    case("diff", "lt.diff(x)", lambda x: torch.diff(x), x=TIES.to(d))
case("diff", "x:diff(2, 1)", lambda x: x.diff(2, 0), x=f(4, 3))
case("diff", "x:diff{dim = 1, prepend = p, append = a}", lambda x, p, a: x.diff(dim=0, prepend=p, append=a),
     x=f(4, 3), p=f(1, 3), a=f(2, 3))
case("diff", "x:diff(9)", lambda x: x.diff(9), x=f(4))
case("diff", "x:diff(0)", lambda x: x.diff(0), x=f(4))
for d in FLOATS[:2] + INTS:
    case("trapezoid", "lt.trapezoid(x)", lambda x: torch.trapezoid(x), x=TIES.to(d))
    case("cumulative_trapezoid", "lt.cumulative_trapezoid(x)", lambda x: torch.cumulative_trapezoid(x), x=TIES.to(d))
for op in ("trapezoid", "cumulative_trapezoid"):
    case(op, "lt.%s(x, y)" % op, lambda x, y, op=op: getattr(torch, op)(x, y), x=f(3, 4), y=f(4))
    case(op, "lt.%s{x, y, dim = 1}" % op, lambda x, y, op=op: getattr(torch, op)(x, y, dim=0), x=f(3, 4), y=f(3))
    case(op, "lt.%s(x, y)" % op, lambda x, y, op=op: getattr(torch, op)(x, y), x=f(3, 4), y=f(3, 4))
    case(op, "lt.%s{x, dx = 0.5, dim = 1}" % op, lambda x, op=op: getattr(torch, op)(x, dx=0.5, dim=0), x=f(3, 4))
    case(op, "lt.%s(x)" % op, lambda x, op=op: getattr(torch, op)(x), x=f(3, 1))
    case(op, "lt.%s(x)" % op, lambda x, op=op: getattr(torch, op)(x), x=torch.empty(3, 0))
case("gradient", "lt.unpack(lt.gradient(x))", lambda x: torch.gradient(x), x=f(3, 4))
case("gradient", "lt.unpack(lt.gradient(x))", lambda x: torch.gradient(x), x=i(5))
case("gradient", "lt.unpack(lt.gradient(x, {spacing = 2, dim = 1, edge_order = 2}))",
     lambda x: torch.gradient(x, spacing=2, dim=0, edge_order=2), x=f(4, 3))
case("gradient", "lt.unpack(lt.gradient(x, {spacing = {0.5, 2.0}}))",
     lambda x: torch.gradient(x, spacing=[0.5, 2.0]), x=f(3, 3))
for order in (1, 2):
    case("gradient", "lt.unpack(lt.gradient(x, {spacing = {y}, dim = -1, edge_order = %d}))" % order,
         lambda x, y, o=order: torch.gradient(x, spacing=[y], dim=-1, edge_order=o), x=f(3, 4),
         y=torch.tensor([0.0, 1.0, 1.5, 4.0]))
for d in FLOATS:
    case("logcumsumexp", "lt.logcumsumexp(x, 1)", lambda x: torch.logcumsumexp(x, 0), x=f(7).to(d))
case("logcumsumexp", "x:logcumsumexp(-1)", lambda x: x.logcumsumexp(-1), x=torch.tensor(
    [[-inf, -inf, 1.0, 1000.0, -1000.0], [1.0, inf, -inf, 2.0, inf], [800.0, 800.0, nan, 1.0, 2.0]]))
case("logcumsumexp", "lt.logcumsumexp(x, 2)", lambda x: torch.logcumsumexp(x, 1), x=f(3, 5, 2))
case("logcumsumexp", "lt.logcumsumexp(x, 1)", lambda x: torch.logcumsumexp(x, 0), x=torch.tensor(2.0))
for d in INTS + [torch.bool]:
    case("logsumexp", "lt.logsumexp(x, {1, 2})", lambda x: torch.logsumexp(x, (0, 1)), x=TIES.to(d))
case("all", "x:all(1)", lambda x: x.all(0), x=TIES.to(torch.uint8))
case("any", "x:any()", lambda x: x.any(), x=TIES.to(torch.uint8))
for op in ("cumsum", "cumprod"):
    for d in (torch.float32, torch.int32, torch.float16):
        case(op, "x:clone():%s_(2)" % op, lambda x, op=op: getattr(x.clone(), op + "_")(1), x=TIES.to(d))

family("searching")
for d in FLOATS + INTS:
    x = torch.tensor([5, 2, 9, 7, 1]).to(d)
    case("kthvalue", "lt.kthvalue(x, 2)", lambda x: ix(torch.kthvalue(x, 2)), x=x)
    case("median", "lt.median(x)", lambda x: torch.median(x), x=x)
    case("nanmedian", "lt.nanmedian(x, 1)", lambda x: ix(torch.nanmedian(x, 0)), x=x[:4])
    case("msort", "lt.msort(x)", lambda x: torch.msort(x), x=TIES.to(d))
    case("mode", "lt.mode(x)", lambda x: ix(torch.mode(x)), x=TIES.to(d))
    case("searchsorted", "lt.searchsorted(x, y)", lambda x, y: torch.searchsorted(x, y) + 1,
         x=torch.tensor([1, 3, 3, 7]).to(d), y=torch.tensor([0, 1, 2, 3, 8]).to(d))
case("kthvalue", "x:kthvalue{2, dim = 1, keepdim = true}", lambda x: ix(x.kthvalue(2, 0, True)), x=f(4, 3))
case("kthvalue", "x:kthvalue(4)", lambda x: ix(x.kthvalue(4)), x=torch.tensor([nan, 1.0, inf, -inf]))
case("kthvalue", "x:kthvalue(1)", lambda x: ix(x.kthvalue(1)), x=torch.tensor(3.0))
for op in ("median", "nanmedian"):
    case(op, "x:%s()" % op, lambda x, op=op: getattr(x, op)(), x=GAPS)
    case(op, "x:%s(2)" % op, lambda x, op=op: ix(getattr(x, op)(1)), x=GAPS[::2].clone())
    case(op, "x:%s(1, true)" % op, lambda x, op=op: ix(getattr(x, op)(0, True)), x=f(5, 3))
    case(op, "x:%s()" % op, lambda x, op=op: getattr(x, op)(), x=torch.empty(0))
    case(op, "x:%s(-1)" % op, lambda x, op=op: ix(getattr(x, op)(-1)), x=torch.tensor(3.0))
case("mode", "x:mode(1, true)", lambda x: ix(x.mode(0, True)), x=TIES)
case("mode", "x:mode()", lambda x: ix(x.mode()), x=torch.tensor(3))
case("mode", "x:mode()", lambda x: ix(x.mode()), x=torch.tensor([True, False, True]))
S = torch.tensor([[1.0, 2.0, 2.0, 5.0], [-inf, 0.0, 3.0, inf]])
V = torch.tensor([[2.0, 9.0, nan], [0.0, -inf, inf]])
for side in ("left", "right"):
    case("searchsorted", 'lt.searchsorted{x, y, side = "%s"}' % side,
         lambda x, y, s=side: torch.searchsorted(x, y, side=s) + 1, x=S, y=V)
case("searchsorted", "lt.searchsorted(x, y, true, true)",
     lambda x, y: (torch.searchsorted(x, y, out_int32=True, right=True) + 1).int(), x=S[0], y=V.t())
case("searchsorted", "lt.searchsorted(x, 2.0)", lambda x: torch.searchsorted(x, 2.0) + 1, x=S[0])
case("searchsorted", "lt.searchsorted(x, y)", lambda x, y: torch.searchsorted(x, y) + 1, x=torch.empty(0), y=f(3))
case("searchsorted", "lt.searchsorted{x, y, sorter = lt.argsort(x)}",
     lambda x, y: torch.searchsorted(x, y, sorter=torch.argsort(x)) + 1, x=torch.tensor([5.0, 1.0, 3.0]), y=f(4) * 3)
for right in (False, True):
    case("bucketize", "lt.bucketize{x, y, right = %s}" % str(right).lower(),
         lambda x, y, r=right: torch.bucketize(x, y, right=r) + 1, x=V, y=S[0])
case("bucketize", "lt.bucketize(x, y, true)", lambda x, y: (torch.bucketize(x, y, out_int32=True) + 1).int(),
     x=i(3, 4), y=torch.tensor([-3, 0, 2]))
case("bucketize", "lt.bucketize(2.5, y)", lambda y: torch.bucketize(2.5, y) + 1, y=torch.tensor([-3, 0, 2, 3]))


def unique(op, x, names, **options):
    """Adds a case of unique with these results besides the values."""
    lua = ", ".join(["%s = true" % n for n in names] + ["%s = %d" % (k, v + 1) for k, v in options.items()])

    def run(x):
        found = getattr(torch, op)(x, **{n: True for n in names}, **options)
        if not names:
            return found
        return [found[0]] + [r + 1 if n == "return_inverse" else r for n, r in zip(names, found[1:])]
    case(op, "lt.%s{x%s}" % (op, ", " + lua if lua else ""), run, x=x)


ROWS = torch.tensor([[1, 0, 2], [1, 0, 2], [0, 5, 1], [1, 0, 2], [0, 5, 0]])
for op in ("unique", "unique_consecutive"):
    for d in FLOATS + INTS + [torch.bool]:
        unique(op, TIES.to(d), ())
    unique(op, TIES, ("return_inverse", "return_counts"))
    unique(op, TIES, ("return_counts",))
    unique(op, ROWS, ("return_inverse", "return_counts"), dim=0)
    unique(op, ROWS.t().float(), ("return_inverse",), dim=1)
    unique(op, torch.tensor(4.0), ("return_inverse", "return_counts"))
    unique(op, torch.empty(0), ("return_inverse", "return_counts"))
    unique(op, torch.tensor([nan, 1.0, nan]), ("return_counts",))

family("histograms")
for d in INTS:
    case("bincount", "lt.bincount(x + 1)", lambda x: torch.bincount(x), x=i(9, low=0).to(d))
case("bincount", "x:bincount(w)", lambda x, w: torch.bincount(x - 1, w), x=i(9, low=1), w=f(9))
case("bincount", "x:bincount(w)", lambda x, w: torch.bincount(x - 1, w), x=i(9, low=1), w=i(9))
case("bincount", "x:bincount{minlength = 9}", lambda x: torch.bincount(x - 1, minlength=9), x=i(9, low=1))
case("bincount", "x:bincount{minlength = 3}", lambda x: torch.bincount(x, minlength=3), x=torch.empty(0, dtype=torch.int64))
for d in FLOATS:
    case("histc", "lt.histc(x, 4, -1, 1)", lambda x: torch.histc(x, 4, -1, 1), x=f(20).to(d))
case("histc", "x:histc(5)", lambda x: x.histc(5), x=f(4, 5))
case("histc", "x:histc(3)", lambda x: x.histc(3), x=torch.tensor(2.0))
case("histc", "x:histc{bins = 3, min = 0, max = 2}", lambda x: x.histc(3, 0, 2), x=torch.tensor([0.0, 2.0, nan, 3.0, 1.0]))
for d in FLOATS[:2]:
    case("histogram", "lt.histogram(x, 4)", lambda x: torch.histogram(x, 4), x=f(9).to(d))
    case("histogram", "x:histogram(y, {weight = w, density = true})",
         lambda x, y, w: x.histogram(y, weight=w, density=True), x=f(3, 3).to(d), y=torch.tensor([-1, -0.5, 1]).to(d),
         w=f(3, 3).abs().to(d))
    case("histogramdd", "(lt.histogramdd(x, {2, 3}))", lambda x: torch.histogramdd(x, [2, 3])[0], x=f(9, 2).to(d))
case("histogram", "x:histogram{3, range = {0.0, 1.0}, density = true}",
     lambda x: x.histogram(3, range=(0.0, 1.0), density=True), x=torch.tensor([0.0, 1.0, 0.5, 2.0]))
case("histogram", "x:histogram(2)", lambda x: x.histogram(2), x=torch.tensor(3.0))
case("histogram", "x:histogram(2)", lambda x: x.histogram(2), x=torch.empty(0))

for op in ("sum", "mean", "max", "min", "prod"):
    for d in (torch.float32, torch.float64, torch.bfloat16):
        case("segment_reduce", 'lt.segment_reduce(x, "%s", {lengths = n})' % op,
             lambda x, n, o=op: torch.segment_reduce(x, o, lengths=n), x=f(7).to(d), n=torch.tensor([2, 0, 4, 1]))
    case("segment_reduce", 'lt.segment_reduce(x, "%s", {offsets = n + 1, initial = 0.5})' % op,
         lambda x, n, o=op: torch.segment_reduce(x, o, offsets=n, initial=0.5), x=f(5, 3), n=torch.tensor([0, 2, 2, 5]))
    case("segment_reduce", 'lt.segment_reduce(x, "%s", {lengths = n, axis = 2})' % op,
         lambda x, n, o=op: torch.segment_reduce(x, o, lengths=n, axis=1), x=f(2, 4, 2), n=torch.tensor([[1, 3], [2, 2]]))

family("masked")
M = torch.tensor([[True, False, True, True], [False, False, False, False], [True, True, True, False]])
for op in "sum prod amax amin argmax argmin mean norm var std logsumexp".split():
    up = (lambda r: r + 1) if op.startswith("arg") else (lambda r: r)
    extra, lua = ((3.0,), "3, ") if op == "norm" else ((), "")
    for d in FLOATS[:2] + ([] if op == "mean" else [torch.int64, torch.uint8]):
        case("masked_" + op, "lt.masked.%s(x, %s{mask = m})" % (op, lua),
             lambda x, m, o=op, e=extra, up=up: up(getattr(torch.masked, o)(x, *e, mask=m)), x=TIES[:, :4].to(d).clone(memory_format=torch.contiguous_format), m=M)
    case("masked_" + op, "lt.masked.%s(x, %s2, {keepdim = true, mask = m})" % (op, lua if lua else ""),
         lambda x, m, o=op, e=extra, up=up: up(getattr(torch.masked, o)(x, *e, 1, keepdim=True, mask=m)), x=f(3, 4), m=M)
    case("masked_" + op, "lt.masked.%s(x)" % op, lambda x, o=op, up=up: up(getattr(torch.masked, o)(x)), x=f(3, 4))
for op in "cumsum cumprod softmax log_softmax softmin".split():
    case("masked_" + op, "lt.masked.%s(x, 2, {mask = m})" % op,
         lambda x, m, o=op: getattr(torch.masked, o)(x, 1, mask=m), x=f(3, 4), m=M)
    case("masked_" + op, "lt.masked.%s(x, 1, {mask = m})" % op,
         lambda x, m, o=op: getattr(torch.masked, o)(x, 0, mask=m), x=f(3, 4, dtype=torch.float64), m=M[:, :1].clone())
case("masked_median", "lt.masked.median(x, 2, {mask = m})", lambda x, m: torch.masked.median(x, 1, mask=m), x=f(3, 4), m=M)
case("masked_normalize", "lt.masked.normalize(x, 2, 2, {mask = m})",
     lambda x, m: torch.masked.normalize(x, 2.0, 1, mask=m), x=f(3, 4), m=M)
case("masked_logaddexp", "lt.masked.logaddexp(x, y, {input_mask = m})",
     lambda x, y, m: torch.masked._ops.logaddexp(x, y, input_mask=m), x=f(3, 4), y=f(3, 4), m=M)
