"""The table of expected values: for every public op, inputs and the results of PyTorch.

A case is a Lua expression on named inputs, and the same thing said to PyTorch:

    case("deg2rad", "lt.deg2rad(x)", lambda x: torch.deg2rad(x), x=f(3, 4))

Ops of one kind share lines: a name in UNARY or BINARY is a case for each dtype, also strided, empty and broadcast.
Index results of PyTorch, which count from 0, are moved by `ix` so that they count from 1. tests/spec/core/op_values_spec.lua
runs the cases and fails for an op that has none."""

import math
import os
import zlib

import torch
import torch.nn.functional as F

FAMILIES = {}  # name -> list of cases, in the order of the file
NAMES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
         torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
         torch.bool: "bool"}


def number(v, double=False):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return "math.mininteger" if v == -2 ** 63 else str(v)
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    text = "%.17g" % v if double else "%.9g" % v
    return text if any(c in text for c in ".en") else text + ".0"


def wave(*shape):
    """Returns a large input that the specs compute by the same formula: (7919 k mod 1009) / 1009 - 0.5 for k = 1, 2, ..."""
    k = torch.arange(1, math.prod(shape) + 1)
    t = ((7919 * k % 1009) / 1009.0 - 0.5).view(shape)
    t.is_wave = True
    return t


def tensor(t):
    if hasattr(t, "is_wave"):
        return '{dtype = "float32", shape = {%s}, wave = true}' % ", ".join(map(str, t.shape))
    t = t.detach()
    strided = ""
    if not t.is_contiguous():
        strided = ", strides = {%s}" % ", ".join(map(str, t.stride()))
    flat = t.contiguous().flatten()
    values = (flat.double() if t.dtype.is_floating_point else flat).tolist()
    return '{dtype = "%s", shape = {%s}%s, data = {%s}}' % (
        NAMES[t.dtype], ", ".join(map(str, t.shape)), strided, ", ".join((number(v, t.dtype == torch.float64) for v in values)))


def outputs(result):
    if isinstance(result, torch.Tensor):
        return [tensor(result)]
    if isinstance(result, bool):
        return [number(result)]
    return [tensor(r) if isinstance(r, torch.Tensor) else number(r) for r in result]


def family(name):
    """Starts the family of the next cases, tests/golden/<name>.lua."""
    global CASES
    CASES = FAMILIES.setdefault(name, [])
    torch.manual_seed(zlib.crc32(name.encode()))  # independent of the other families


def case(op, code, fn, **inputs):
    """Adds a case, unless PyTorch raises an error. op: the row's name; code: Lua; fn: PyTorch's function of the inputs."""
    try:
        result = fn(**{k: v.clone() if isinstance(v, torch.Tensor) and v.is_contiguous() else v for k, v in inputs.items()})
    except (RuntimeError, NotImplementedError, TypeError, IndexError) as reason:
        if os.environ.get("VERBOSE"):
            print("%s left out for %s: %s" % (op, [str(i.dtype) for i in inputs.values()], str(reason)[:90]))
        return
    CASES.append((op, code, inputs, outputs(result)))
    torch.manual_seed(zlib.crc32(code.encode()))  # independent of the other cases


def ix(result):
    """Converts 0-based indices to 1-based: the integer part of (values, indices), or an index tensor."""
    if isinstance(result, torch.Tensor):
        return result + 1
    return (result[0], result[1] + 1)


def f(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=torch.float64).to(dtype)


def i(*shape, low=-5, high=6, dtype=torch.int64):
    return torch.randint(low, high, shape).to(dtype)


def positions(n, *shape):
    """Returns 0-based indices, for PyTorch."""
    return torch.randint(0, n, shape)


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 100.0, -100.0, 1e-3, 1e30, -1e30,
                        math.inf, -math.inf, math.nan, 0.99, -0.99, 7.25])


def floats(dtype):
    if dtype in (torch.float16, torch.bfloat16):
        return torch.cat([SPECIAL[:12], torch.randn(8)]).to(dtype)
    return torch.cat([SPECIAL, torch.randn(12) * 3]).to(dtype)


def ints(dtype):
    if dtype == torch.uint8:
        return torch.tensor([0, 1, 2, 7, 100, 255], dtype=dtype)
    top = torch.iinfo(dtype).max
    return torch.tensor([0, 1, -1, 2, -7, 100, top, -top - 1], dtype=dtype)


BOOLS = torch.tensor([True, False, True])


def every_dtype(op, code, fn, half=True):
    for d in FLOATS if half else FLOATS[:2]:
        case(op, code, fn, x=floats(d))
    for d in INTS:
        case(op, code, fn, x=ints(d))
    if op != "square":  # PyTorch squares bool into int64; in Lutra it is an error
        case(op, code, fn, x=BOOLS)
    case(op, code, fn, x=f(3, 4).t())           # other strides
    case(op, code, fn, x=torch.empty(0, 3))     # nothing
    case(op, code, fn, x=torch.tensor(0.75))    # 0-d


UNARY = {
    "unary": "neg abs sign square floor ceil round trunc frac sqrt rsqrt reciprocal isnan isinf isfinite signbit "
             "logical_not bitwise_not nan_to_num deg2rad",
    "functions": "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc",
    "activations": "sigmoid relu",
}
for name, ops in UNARY.items():
    family(name)
    for op in ops.split():
        every_dtype(op, "lt.%s(x)" % op, lambda x, op=op: getattr(torch, op)(x))
for op in ("silu", "logsigmoid", "softplus", "leaky_relu", "elu"):
    every_dtype(op, "lt.%s(x)" % op, lambda x, op=op: getattr(F, op)(x))
# In float32 PyTorch 2.15's vectorized gelu(inf) is NaN; its scalar one, and float64's, is inf.
every_dtype("gelu", "lt.gelu(x)", lambda x: F.gelu(x.double()).to(F.gelu(x).dtype))
case("gelu", 'lt.gelu(x, "tanh")', lambda x: F.gelu(x, approximate="tanh"), x=f(4, 5))
case("gelu", 'lt.gelu{x, approximate = "tanh"}', lambda x: F.gelu(x, approximate="tanh"), x=f(9, dtype=torch.float64))
case("softplus", "lt.softplus(x, 2, 1.5)", lambda x: F.softplus(x, 2, 1.5), x=f(9))
case("leaky_relu", "lt.leaky_relu(x, 0.2)", lambda x: F.leaky_relu(x, 0.2), x=f(9))
case("elu", "lt.elu(x, 0.5)", lambda x: F.elu(x, 0.5), x=f(9))
family("unary")
case("nan_to_num", "lt.nan_to_num(x, 7)", lambda x: torch.nan_to_num(x, 7.0), x=SPECIAL)

BINARY = {
    "comparison": "eq ne lt le gt ge",
    "binary": "add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot copysign logical_and "
              "logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
}


def pairs(dtype):
    a = torch.tensor([3.5, -3.5, 3.5, -3.5, 0.0, 5.0, -7.0, math.inf, math.nan, 2.0, 1.0, -1.0, 6.0])
    b = torch.tensor([2.0, 2.0, -2.0, -2.0, 2.0, 0.5, -7.0, 2.0, 1.0, math.nan, math.inf, math.inf, -4.0])
    return a.to(dtype), b.to(dtype)


def int_pairs(dtype, op):
    a = torch.tensor([7, -7, 7, -7, 0, 100, 5, 6])
    b = torch.tensor([2, 2, -2, -2, 3, 7, 5, 1])
    if "shift" in op or op == "pow" or dtype == torch.uint8:
        a, b = a.abs(), b.abs() % 5
        if op in ("floor_divide", "remainder", "fmod", "div"):
            b = b + 1
    return a.to(dtype), b.to(dtype)


for name, ops in BINARY.items():
    family(name)
    for op in ops.split():
        def go(x, y, op=op):
            return getattr(torch, op)(x, y)
        code = "lt.%s(x, y)" % op
        for d in FLOATS[:2]:
            a, b = pairs(d)
            case(op, code, go, x=a, y=b)
        for d in FLOATS[2:]:
            case(op, code, go, x=f(8).to(d), y=f(8).to(d))
        for d in INTS:
            a, b = int_pairs(d, op)
            case(op, code, go, x=a, y=b)
        case(op, code, go, x=torch.tensor([True, True, False, False]), y=torch.tensor([True, False, True, False]))
        case(op, code, go, x=f(3, 1, 4), y=f(2, 1))                                  # broadcast
        case(op, code, go, x=f(4, 3).t(), y=f(3, 4))                                 # strides
        case(op, code, go, x=i(5, low=1), y=f(5))                                    # promotion: int64 with float32
        case(op, code, go, x=i(5, low=1, dtype=torch.int8), y=i(5, low=1, dtype=torch.uint8))
        case(op, code, go, x=f(5).half(), y=f(5).bfloat16())
        case(op, code, go, x=i(5, low=1), y=torch.tensor(2.5))                       # 0-d of a higher category
        case(op, code, go, x=f(5), y=torch.tensor(2.5, dtype=torch.float64))         # 0-d of the same category
        case(op, code, go, x=torch.empty(0, 3), y=f(3))
        case(op, "x:%s(2)" % op, lambda x, op=op: getattr(torch, op)(x, torch.tensor(2)), x=i(6, low=1))
        case(op, "x:%s(2.5)" % op, lambda x, op=op: getattr(torch, op)(x, torch.tensor(2.5)), x=f(6))
for op in ("add", "sub"):
    case(op, "lt.%s(x, y, {alpha = 3})" % op, lambda x, y, op=op: getattr(torch, op)(x, y, alpha=3), x=f(4), y=f(4))
    case(op, "x:%s{y, alpha = 3}" % op, lambda x, y, op=op: getattr(torch, op)(x, y, alpha=3), x=i(4), y=i(4))
for mode in ("floor", "trunc"):
    for kind in (f, i):
        case("div", 'lt.div(x, y, {rounding_mode = "%s"})' % mode,
             lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), x=kind(6), y=kind(6) * 2 + 1)
case("pow", "x ^ 2", lambda x: x ** 2, x=i(5))
case("pow", "2 ^ x", lambda x: 2 ** x, x=f(5))
case("pow", "x ^ -1.5", lambda x: x ** -1.5, x=f(5).abs())
case("mul", "x * 2.5", lambda x: x * 2.5, x=i(5))
case("sub", "1 - x", lambda x: 1 - x, x=f(5))
case("_true_divide", "x / y", lambda x, y: x / y, x=i(5), y=i(5, low=1))
case("fill", "x:fill_(3)", lambda x: x.fill_(3), x=f(2, 3))
case("fill", "x:fill_(2.7)", lambda x: x.fill_(2.7), x=i(2, 3))

family("selection")  # also ops of three tensors
case("lerp", "lt.lerp(x, y, 0.3)", lambda x, y: torch.lerp(x, y, 0.3), x=f(5), y=f(5))
case("lerp", "x:lerp(y, w)", lambda x, y, w: torch.lerp(x, y, w), x=f(2, 5), y=f(5), w=f(2, 1))
for op in ("addcmul", "addcdiv"):
    case(op, "lt.%s(x, y, z, {value = 0.5})" % op, lambda x, y, z, op=op: getattr(torch, op)(x, y, z, value=0.5),
         x=f(3, 4), y=f(3, 1), z=f(4))
case("addcmul", "x:addcmul(y, z)", lambda x, y, z: torch.addcmul(x, y, z), x=i(4), y=i(4), z=i(4))
case("where", "lt.where(m, x, y)", lambda m, x, y: torch.where(m, x, y), m=f(3, 4) > 0, x=f(3, 4), y=f(4))
case("where", "lt.where(m, x, 0)", lambda m, x: torch.where(m, x, torch.tensor(0.0)), m=f(4) > 0, x=f(4))
case("where", "lt.where(m, x, y)", lambda m, x, y: torch.where(m, x, y), m=f(4) > 0, x=i(4), y=f(4))
case("where", "lt.unpack(lt.where(m))", lambda m: [v + 1 for v in torch.where(m)], m=f(3, 4) > 0)
case("masked_fill", "x:masked_fill(m, -1e9)", lambda x, m: x.masked_fill(m, -1e9), x=f(2, 3, 3), m=f(3, 3) > 0)
case("masked_fill", "x:masked_fill_(m, 7)", lambda x, m: x.masked_fill_(m, 7), x=i(3, 3), m=f(3, 3) > 0)
for code, fn in (("x:clamp(-0.5, 0.5)", lambda x: x.clamp(-0.5, 0.5)), ("x:clamp{min = 0}", lambda x: x.clamp(min=0)),
                 ("x:clamp{max = 0.25}", lambda x: x.clamp(max=0.25)), ("x:clamp_(0, 1)", lambda x: x.clamp_(0, 1)),
                 ("x:clamp(1, 0)", lambda x: x.clamp(1, 0))):
    case("clamp", code, fn, x=SPECIAL)
case("clamp", "x:clamp(y, z)", lambda x, y, z: torch.clamp(x, y, z), x=f(3, 4), y=f(4) - 1, z=f(4) + 1)
case("clamp", "x:clamp(-2, 3)", lambda x: x.clamp(-2, 3), x=i(9))

# Ranges include both ends in Lutra, so PyTorch gets other ends.
family("creation")
case("arange", "lt.arange(5)", lambda: torch.arange(1, 6))
case("arange", "lt.arange(0, 1, 0.25)", lambda: torch.arange(0, 1.1, 0.25))
case("arange", "lt.arange(5, 1, -2)", lambda: torch.arange(5, 0, -2))
case("arange", 'lt.arange{0, 3, dtype = "float64"}', lambda: torch.arange(0, 4, dtype=torch.float64))
case("arange", "lt.arange(2, 1)", lambda: torch.arange(1, 1))
case("linspace", "lt.linspace(-1, 1, 5)", lambda: torch.linspace(-1, 1, 5))
case("linspace", "lt.linspace{3, 10, steps = 1}", lambda: torch.linspace(3, 10, 1))
case("linspace", 'lt.linspace(0, 10, 4, {dtype = "int64"})', lambda: torch.linspace(0, 10, 4, dtype=torch.int64))
case("logspace", "lt.logspace(0, 3, 4)", lambda: torch.logspace(0, 3, 4))
case("logspace", "lt.logspace(0, 3, 4, 2)", lambda: torch.logspace(0, 3, 4, 2))
case("eye", "lt.eye(3)", lambda: torch.eye(3))
case("eye", 'lt.eye{2, 4, dtype = "int64"}', lambda: torch.eye(2, 4, dtype=torch.int64))
case("zeros", "lt.zeros(2, 3)", lambda: torch.zeros(2, 3))
case("zeros", 'lt.zeros{2, 0, dtype = "bool"}', lambda: torch.zeros(2, 0, dtype=torch.bool))
case("ones", "lt.ones({3})", lambda: torch.ones(3))
case("full", "lt.full({2, 2}, 7)", lambda: torch.full((2, 2), 7))
case("full", "lt.full({2}, 1.5)", lambda: torch.full((2,), 1.5))
case("full", "lt.full({2}, true)", lambda: torch.full((2,), True))
case("empty", "lt.empty(2, 0)", lambda: torch.empty(2, 0))
for op in ("zeros", "ones"):
    case(op + "_like", "lt.%s_like(x)" % op, lambda x, op=op: getattr(torch, op + "_like")(x), x=i(2, 3, dtype=torch.int8))
    case("new_" + op, "x:new_%s(3, 1)" % op, lambda x, op=op: getattr(x, "new_" + op)(3, 1), x=f(2).double())
case("ones_like", 'lt.ones_like(x, {dtype = "bool"})', lambda x: torch.ones_like(x, dtype=torch.bool), x=f(2, 3))
case("full_like", "lt.full_like(x, 2.5)", lambda x: torch.full_like(x, 2.5), x=f(2, 3).half())
case("new_full", "x:new_full({2, 2}, 3)", lambda x: x.new_full((2, 2), 3), x=f(1))
case("empty_like", "lt.empty_like(x)", lambda x: torch.empty_like(x), x=f(0, 2))
case("new_empty", "x:new_empty(0, 4)", lambda x: x.new_empty(0, 4), x=i(1))

DIMS = [("x:{op}()", lambda t, op: getattr(t, op)()), ("x:{op}(2)", lambda t, op: getattr(t, op)(1)),
        ("x:{op}{{dim = -1, keepdim = true}}", lambda t, op: getattr(t, op)(-1, keepdim=True))]
MANY = [("x:{op}{{1, 3}}", lambda t, op: getattr(t, op)((0, 2))),
        ("x:{op}({{-1, 1}}, true)", lambda t, op: getattr(t, op)((-1, 0), True))]
REDUCTIONS = """sum mean amax amin logsumexp count_nonzero nansum""".split()  # over any dims
ALONG = """prod all any argmax argmin max min""".split()  # over one dim or all
for op in REDUCTIONS + ALONG:
    if op == REDUCTIONS[0]:
        family("reductions")
    elif op == ALONG[0]:
        family("reductions_along")
    rows = DIMS + (MANY if op in REDUCTIONS else [])
    if op == "logsumexp":
        rows = rows[1:]
    if op == "count_nonzero":
        rows = [r for r in rows if "true" not in r[0]]
    for code, fn in rows:
        def go(x, op=op, fn=fn):
            if op in REDUCTIONS and x.dtype in (torch.float16, torch.bfloat16):
                r = fn(x.float(), op)  # PyTorch rounds on the way
                return r.to(x.dtype) if r.dtype.is_floating_point else r
            r = fn(x, op)
            if op in ("argmax", "argmin") or (op in ("max", "min") and not isinstance(r, torch.Tensor)):
                r = ix(r)
            return r
        code = code.format(op=op)
        for x in (f(2, 3, 4), f(4, 3, 2).permute(2, 1, 0), f(2, 3, 4).double(), f(2, 3, 4).half(), f(2, 3, 4).bfloat16(),
                  i(2, 3, 4), i(2, 3, 4, dtype=torch.int32), i(2, 3, 4, low=0, high=2).bool(),
                  i(2, 3, 4, low=0, dtype=torch.uint8)):
            if op == "prod" and x.dtype in (torch.float16, torch.bfloat16):
                continue
            if op in ("all", "any") and x.dtype == torch.uint8:
                continue  # PyTorch returns uint8 for historical reasons; Lutra returns bool
            case(op, code, go, x=x)
        with_nan = f(2, 3, 4)
        with_nan[1, 1, 2] = math.nan
        case(op, code, go, x=with_nan)
        case(op, code, go, x=torch.empty(2, 3, 0))
        case(op, code, go, x=wave(70, 130, 3))  # long enough for blocks and threads

family("reductions")
case("sum", 'x:sum{dtype = "float64"}', lambda x: x.sum(dtype=torch.float64), x=f(5))
case("sum", "x:sum{}", lambda x: x.sum(), x=torch.tensor(2.5))
case("sum", "x:sum(1)", lambda x: x.sum(0), x=torch.tensor(2.5))
case("max", "x:max(y)", lambda x, y: torch.max(x, y), x=f(3), y=f(3))
case("min", "lt.min(x, y)", lambda x, y: torch.min(x, y), x=f(3), y=f(3))
for op in ("var", "std"):
    case(op, "x:%s()" % op, lambda x, op=op: getattr(x, op)(), x=f(3, 4))
    case(op, "x:%s(1)" % op, lambda x, op=op: getattr(x, op)(0), x=f(300, 4) + 1000)
    case(op, "x:%s{dim = {1, 2}, unbiased = false, keepdim = true}" % op,
         lambda x, op=op: getattr(x, op)((0, 1), unbiased=False, keepdim=True), x=f(3, 4, 2).double())
    case(op, "x:%s{dim = 1, correction = 2}" % op, lambda x, op=op: getattr(torch, op)(x, 0, correction=2), x=f(5, 2))
    case(op, "x:%s()" % op, lambda x, op=op: getattr(x, op)(), x=f(1))
for p, said in ((2, "2"), (1, "1"), (0, "0"), (math.inf, "math.huge"), (-math.inf, "-math.huge"), (3, "3")):
    case("norm", "x:norm(%s)" % said, lambda x, p=p: x.norm(p), x=f(3, 4))
    case("norm", "x:norm(%s, -1, true)" % said, lambda x, p=p: x.norm(p, -1, True), x=f(3, 4).double())
case("norm", "x:norm{dim = -1, keepdim = true}", lambda x: x.norm(dim=-1, keepdim=True), x=f(3, 4).t())
case("norm", "x:norm()", lambda x: x.norm(), x=torch.zeros(0))

family("scans")
for op in ("cumsum", "cumprod"):
    for x in (f(3, 4), f(4, 3).t(), i(3, 4), f(3, 4).half(), torch.empty(0, 2), i(3, 2, low=0, high=2).bool()):
        case(op, "x:%s(1)" % op, lambda x, op=op: getattr(x, op)(0), x=x)
        case(op, "lt.%s(x, -1)" % op, lambda x, op=op: getattr(torch, op)(x, -1), x=x)
mixed = torch.tensor([[3.0, math.nan, -1.0, 2.0, 3.0], [math.inf, 0.0, -0.0, -math.inf, 1.0]])
nans = torch.tensor([[1.0, math.nan, 2.0, math.nan, 3.0], [1.0, 1.0, math.inf, -math.inf, math.inf]])
for op in ("cummax", "cummin"):
    for x in (mixed, nans, f(4, 5).half(), i(4, 5), i(4, 5, dtype=torch.uint8, low=0), i(3, 4, low=0, high=2).bool(),
              f(5, 4).double().t(), torch.empty(3, 0)):
        case(op, "x:%s(1)" % op, lambda x, op=op: ix(getattr(x, op)(0)), x=x)
        case(op, "lt.%s(x, -1)" % op, lambda x, op=op: ix(getattr(torch, op)(x, -1)), x=x)
    case(op, "x:%s{dim = 1}" % op, lambda x, op=op: ix(getattr(x, op)(0)), x=torch.tensor(2.5))

family("sorting")
for x in (mixed, f(4, 5).half(), i(4, 5), i(4, 5, dtype=torch.uint8, low=0), f(5, 4).t(), torch.empty(3, 0)):
    case("sort", "x:sort()", lambda x: ix(torch.sort(x, stable=True)), x=x)
    case("sort", "x:sort{dim = 1, descending = true}", lambda x: ix(torch.sort(x, stable=True, dim=0, descending=True)), x=x)
    case("argsort", "x:argsort()", lambda x: torch.sort(x, stable=True)[1] + 1, x=x)
unequal = torch.tensor([[5.0, 1.0, 4.0, 2.0, 3.0], [10.0, 40.0, 20.0, 50.0, 30.0]])
case("topk", "x:topk(3)", lambda x: ix(x.topk(3)), x=unequal)
case("topk", "x:topk{2, dim = -1, largest = false}", lambda x: ix(x.topk(2, largest=False)), x=unequal)
case("topk", "x:topk(1, 1)", lambda x: ix(x.topk(1, 0)), x=unequal)
case("topk", "x:topk(0)", lambda x: ix(x.topk(0)), x=unequal.long())

family("comparison")
case("equal", "lt.equal(x, y)", lambda x, y: torch.equal(x, y), x=f(3), y=f(3))
case("equal", "x:equal(x)", lambda x: torch.equal(x, x), x=f(3))
case("isclose", "lt.isclose(x, y)", lambda x, y: torch.isclose(x, y), x=torch.tensor([1.0, 2.0, math.inf, math.nan]),
     y=torch.tensor([1.000001, 2.1, math.inf, math.nan]))
case("allclose", "x:allclose(y, {atol = 1})", lambda x, y: torch.allclose(x, y, atol=1), x=torch.zeros(3), y=torch.ones(3))

family("losses")  # softmax, norms, losses
for op in ("softmax", "log_softmax"):
    for x in (f(3, 5), f(5, 3).t(), f(2, 3, 4).double(), f(3, 5).bfloat16(), f(3, 5) * 200, torch.empty(0, 3), torch.tensor(1.5)):
        case(op, "x:%s(-1)" % op, lambda x, op=op: getattr(x, op)(-1), x=x)
        case(op, "lt.%s(x, {dim = 1})" % op, lambda x, op=op: getattr(x, op)(0), x=x)
    masked = f(3, 4)
    masked[0, 1:] = -math.inf
    masked[2] = -math.inf
    case(op, "x:%s(-1)" % op, lambda x, op=op: getattr(x, op)(-1), x=masked)
    case(op, 'x:%s(2, "float64")' % op, lambda x, op=op: getattr(x, op)(1, dtype=torch.float64), x=f(2, 3))
case("layer_norm", "lt.layer_norm(x, 6)", lambda x: F.layer_norm(x, (6,)), x=f(4, 6))
case("layer_norm", "lt.layer_norm(x, {3, 6}, w, b, 1e-3)", lambda x, w, b: F.layer_norm(x, (3, 6), w, b, 1e-3), x=f(2, 3, 6),
     w=f(3, 6), b=f(3, 6))
case("layer_norm", "lt.layer_norm(x, {6}, w)", lambda x, w: F.layer_norm(x, (6,), w), x=f(4, 6).double() + 50, w=f(6).double())
case("normalize", "F.normalize(x)", lambda x: F.normalize(x), x=f(3, 4))
case("normalize", "F.normalize(x, 1, 1, 0.5)", lambda x: F.normalize(x, 1, 0, 0.5), x=torch.tensor([[0.0, 0.1], [0.0, 3.0]]))
case("cosine_similarity", "F.cosine_similarity(x, y)", lambda x, y: F.cosine_similarity(x, y), x=f(3, 4), y=f(3, 4))
case("cosine_similarity", "F.cosine_similarity(x, y, {dim = -1})", lambda x, y: F.cosine_similarity(x, y, dim=-1), x=f(2, 3, 4), y=f(4))
LABELS = torch.tensor([1, 0, 3, 3, 2])
for red in ("mean", "sum", "none"):
    for op, fn in (("cross_entropy", F.cross_entropy), ("nll_loss", F.nll_loss)):
        case(op, 'lt.%s(x, y + 1, {reduction = "%s"})' % (op, red), lambda x, y, fn=fn, r=red: fn(x, y, reduction=r), x=f(5, 4), y=LABELS)
        case(op, 'lt.%s(x, y + 1, {weight = w, reduction = "%s"})' % (op, red), lambda x, y, w, fn=fn, r=red: fn(x, y, w, reduction=r), x=f(5, 4), y=LABELS,
             w=f(4).abs())
        case(op, 'lt.%s(x, y + 1, {ignore_index = 4, reduction = "%s"})' % (op, red), lambda x, y, fn=fn, r=red: fn(x, y, ignore_index=3, reduction=r),
             x=f(5, 4).double(), y=LABELS)
        case(op, 'lt.%s(x, y + 1, {reduction = "%s"})' % (op, red), lambda x, y, fn=fn, r=red: fn(x, y, reduction=r),
             x=f(2, 4, 3), y=positions(4, 2, 3))
    case("cross_entropy", 'lt.cross_entropy{x, y + 1, label_smoothing = 0.2, reduction = "%s"}' % red,
         lambda x, y, r=red: F.cross_entropy(x, y, label_smoothing=0.2, reduction=r), x=f(5, 4), y=LABELS)
    case("cross_entropy", 'lt.cross_entropy{x, y + 1, weight = w, label_smoothing = 0.2, reduction = "%s"}' % red,
         lambda x, y, w, r=red: F.cross_entropy(x, y, w, label_smoothing=0.2, reduction=r), x=f(5, 4), y=LABELS, w=f(4).abs())
    case("cross_entropy", 'lt.cross_entropy(x, y, {reduction = "%s"})' % red, lambda x, y, r=red: F.cross_entropy(x, y, reduction=r),
         x=f(5, 4), y=f(5, 4).softmax(1))
    for op in ("mse_loss", "l1_loss"):
        case(op, 'lt.%s(x, y, {reduction = "%s"})' % (op, red), lambda x, y, op=op, r=red: getattr(F, op)(x, y, reduction=r), x=f(3, 4), y=f(3, 4))
    case("huber_loss", 'F.huber_loss(x, y, "%s", 0.7)' % red, lambda x, y, r=red: F.huber_loss(x, y, r, delta=0.7), x=f(3, 4), y=f(3, 4))
    case("binary_cross_entropy_with_logits", 'lt.binary_cross_entropy_with_logits(x, y, {reduction = "%s"})' % red,
         lambda x, y, r=red: F.binary_cross_entropy_with_logits(x, y, reduction=r), x=f(3, 4) * 30, y=torch.rand(3, 4))
case("binary_cross_entropy_with_logits", "lt.binary_cross_entropy_with_logits{x, y, weight = w, pos_weight = p}",
     lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p), x=f(3, 4), y=torch.rand(3, 4), w=f(4).abs(), p=f(4).abs())
case("cross_entropy", "lt.cross_entropy(x, y + 1)", lambda x, y: F.cross_entropy(x, y), x=f(4), y=torch.tensor(2))

family("products")
for d in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32):
    mk = (lambda *s, d=d: f(*s).to(d)) if d.is_floating_point else (lambda *s, d=d: i(*s).to(d))
    if d == torch.bfloat16:  # PyTorch may sum bfloat16 in bfloat16; Lutra sums in float32
        def case32(op, code, fn, **inputs):
            case(op, code, lambda fn=fn, **t: fn(**{k: v.float() for k, v in t.items()}).bfloat16(), **inputs)
    else:
        case32 = case
    case32("mm", "x:mm(y)", lambda x, y: x.mm(y), x=mk(3, 4), y=mk(4, 5))
    case32("mm", "lt.mm(x, y)", lambda x, y: x.mm(y), x=mk(4, 3).t(), y=mk(5, 4).t())
    case32("bmm", "x:bmm(y)", lambda x, y: x.bmm(y), x=mk(2, 3, 4), y=mk(2, 4, 5))
    case32("bmm", "x:bmm(y)", lambda x, y: x.bmm(y), x=mk(2, 4, 3).transpose(1, 2), y=mk(4, 2, 5).transpose(0, 1))
    case32("addmm", "x:addmm(y, z)", lambda x, y, z: x.addmm(y, z), x=mk(5), y=mk(3, 4), z=mk(4, 5))
    case32("addmm", "lt.addmm(x, y, z, {beta = 2, alpha = 3})", lambda x, y, z: torch.addmm(x, y, z, beta=2, alpha=3), x=mk(3, 5),
         y=mk(3, 4), z=mk(4, 5))
    case32("mv", "x:mv(y)", lambda x, y: x.mv(y), x=mk(3, 4), y=mk(4))
    case32("dot", "x:dot(y)", lambda x, y: x.dot(y), x=mk(4), y=mk(4))
    case32("outer", "x:outer(y)", lambda x, y: x.outer(y), x=mk(4), y=mk(3))
    case32("matmul", "lt.matmul(x, y)", lambda x, y: x @ y, x=mk(2, 3, 4), y=mk(4, 5))
case("mm", "x:mm(y)", lambda x, y: x.mm(y), x=torch.empty(3, 0), y=torch.empty(0, 2))
case("addmm", "x:addmm(y, z, {beta = 0})", lambda x, y, z: x.addmm(y, z, beta=0), x=torch.full((3, 5), math.nan), y=f(3, 4), z=f(4, 5))
case("baddbmm", "x:baddbmm(y, z, {beta = 0.5, alpha = 2})", lambda x, y, z: x.baddbmm(y, z, beta=0.5, alpha=2), x=f(2, 3, 5),
     y=f(2, 3, 4), z=f(2, 4, 5))
for a, b in (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((2, 1, 3, 4), (5, 4, 2)),
             ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((0, 4), (4, 2))):
    case("matmul", "x:matmul(y)", lambda x, y: torch.matmul(x, y), x=f(*a), y=f(*b))
case("linear", "lt.linear(x, w, b)", lambda x, w, b: F.linear(x, w, b), x=f(2, 3, 4), w=f(5, 4), b=f(5))
case("linear", "lt.linear(x, w)", lambda x, w: F.linear(x, w), x=f(4), w=f(5, 4))
QKV = dict(q=f(2, 2, 3, 4), k=f(2, 2, 5, 4), v=f(2, 2, 5, 6))


def attention(q, k, v, mask=None, scale=None):
    s = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else s + mask
    return s.softmax(-1) @ v


case("scaled_dot_product_attention", "lt.scaled_dot_product_attention(q, k, v)", attention, **QKV)
case("scaled_dot_product_attention", "lt.scaled_dot_product_attention{q, k, v, scale = 0.3}",
     lambda q, k, v: attention(q, k, v, scale=0.3), **QKV)
case("scaled_dot_product_attention", "lt.scaled_dot_product_attention{q, k, v, is_causal = true}",
     lambda q, k, v: attention(q, k, v, torch.ones(3, 5, dtype=torch.bool).tril()), **QKV)
case("scaled_dot_product_attention", "lt.scaled_dot_product_attention(q, k, v, mask)", attention, mask=f(3, 5), **QKV)

family("views")  # also joining and rearranging
T3 = f(2, 3, 4)
for op, code, fn in (
        ("view", "x:view(6, 4)", lambda x: x.view(6, 4)), ("view", "x:view{-1, 2}", lambda x: x.view(-1, 2)),
        ("view", "x:view({2, 3, 2, 2})", lambda x: x.view(2, 3, 2, 2)),
        ("reshape", "x:reshape(4, 6)", lambda x: x.reshape(4, 6)), ("reshape", "x:transpose(1, 3):reshape(-1)", lambda x: x.transpose(0, 2).reshape(-1)),
        ("transpose", "x:transpose(1, -1)", lambda x: x.transpose(0, -1)), ("swapaxes", "x:swapaxes(1, 2)", lambda x: x.swapaxes(0, 1)),
        ("permute", "x:permute(3, 1, 2)", lambda x: x.permute(2, 0, 1)), ("movedim", "x:movedim(1, -1)", lambda x: x.movedim(0, -1)),
        ("movedim", "x:movedim({1, 2}, {3, 1})", lambda x: x.movedim((0, 1), (2, 0))),
        ("expand", "x:unsqueeze(1):expand(5, -1, 3, 4)", lambda x: x.unsqueeze(0).expand(5, -1, 3, 4)),
        ("expand_as", "x[{1, 1}]:expand_as(x)", lambda x: x[0, 0].expand_as(x)),
        ("broadcast_to", "x[{1, 1}]:broadcast_to(2, 4)", lambda x: x[0, 0].broadcast_to(2, 4)),
        ("view_as", "x:view_as(lt.zeros(8, 3))", lambda x: x.view(8, 3)), ("reshape_as", "x:reshape_as(lt.zeros(8, 3))", lambda x: x.view(8, 3)),
        ("squeeze", "x:view(2, 1, 12, 1):squeeze()", lambda x: x.view(2, 1, 12, 1).squeeze()),
        ("squeeze", "x:view(2, 1, 12, 1):squeeze(2)", lambda x: x.view(2, 1, 12, 1).squeeze(1)), ("squeeze", "x:squeeze(1)", lambda x: x.squeeze(0)),
        ("unsqueeze", "x:unsqueeze(-1)", lambda x: x.unsqueeze(-1)), ("unsqueeze", "x:unsqueeze(2)", lambda x: x.unsqueeze(1)),
        ("select", "x:select(2, 3)", lambda x: x.select(1, 2)), ("select", "x:select(-1, -1)", lambda x: x.select(-1, -1)),
        ("_slice", "x[{{}, {2, 3}}]", lambda x: x[:, 1:3]), ("_slice", "x[{{}, {1, 3, 2}}]", lambda x: x[:, 0:3:2]),
        ("narrow", "x:narrow(2, 2, 2)", lambda x: x.narrow(1, 1, 2)), ("diagonal", "x:diagonal()", lambda x: x.diagonal()),
        ("diagonal", "x:diagonal(1, 2, 3)", lambda x: x.diagonal(1, 1, 2)), ("diagonal", "x:diagonal{offset = -1, dim1 = 3, dim2 = 1}", lambda x: x.diagonal(-1, 2, 0)),
        ("as_strided", "x:as_strided({3, 2}, {1, 4}, 2)", lambda x: x.as_strided((3, 2), (1, 4), 2)),
        ("unfold", "x:unfold(3, 2, 1)", lambda x: x.unfold(2, 2, 1)), ("flatten", "x:flatten()", lambda x: x.flatten()),
        ("flatten", "x:flatten(2)", lambda x: x.flatten(1)), ("unflatten", "x:unflatten(3, {2, -1})", lambda x: x.unflatten(2, (2, 2))),
        ("t", "x[1]:t()", lambda x: x[0].t()), ("detach", "x:detach()", lambda x: x.detach()), ("clone", "x:clone()", lambda x: x.clone()),
        ("contiguous", "x:transpose(1, 2):contiguous()", lambda x: x.transpose(0, 1).contiguous()),
        ("split", "lt.unpack(x:split(2, 2))", lambda x: x.split(2, 1)), ("split", "lt.unpack(x:split({1, 3}, 3))", lambda x: x.split((1, 3), 2)),
        ("chunk", "lt.unpack(x:chunk(3, -1))", lambda x: x.chunk(3, -1)), ("unbind", "lt.unpack(x:unbind(2))", lambda x: x.unbind(1)),
        ("flip", "x:flip(1)", lambda x: x.flip(0)), ("flip", "x:flip({1, 3})", lambda x: x.flip(0, 2)), ("roll", "x:roll(1, 2)", lambda x: x.roll(1, 1)),
        ("roll", "x:roll(5)", lambda x: x.roll(5)), ("roll", "x:roll({1, -1}, {1, 3})", lambda x: x.roll((1, -1), (0, 2))),
        ("tile", "x:tile(2, 1, 1)", lambda x: x.tile(2, 1, 1)), ("tile", "x:tile(2)", lambda x: x.tile(2)), ("tile", "x[1]:tile({2, 1, 2})", lambda x: x[0].tile(2, 1, 2)),
        ("repeat_interleave", "x:repeat_interleave(2)", lambda x: x.repeat_interleave(2)),
        ("repeat_interleave", "x:repeat_interleave(2, 1)", lambda x: x.repeat_interleave(2, 0)),
        ("triu", "x:triu()", lambda x: x.triu()), ("triu", "x:triu(1)", lambda x: x.triu(1)), ("tril", "x:tril(-1)", lambda x: x.tril(-1)),
        ("tril", "x:transpose(2, 3):tril_()", lambda x: x.transpose(1, 2).tril()),
        ("diag", "x[1]:diag()", lambda x: x[0].diag()), ("diag", "x[{1, 1}]:diag(1)", lambda x: x[0, 0].diag(1)), ("trace", "x[1]:trace()", lambda x: x[0].trace()),
        ("stack", "lt.stack({x, x}, 2)", lambda x: torch.stack((x, x), 1)), ("stack", "lt.stack{x, x, dim = -1}", lambda x: torch.stack((x, x), -1)),
        ("cat", "lt.cat{x, x, dim = 2}", lambda x: torch.cat((x, x), 1)), ("cat", "lt.cat({x, x[{{1, 1}}]})", lambda x: torch.cat((x, x[:1])))):
    case(op, code, fn, x=T3)
    case(op, code, fn, x=i(2, 3, 4, dtype=torch.int16))
case("cat", "lt.cat({x, y})", lambda x, y: torch.cat((x, y)), x=f(2, 2), y=i(1, 2))
case("cat", "lt.cat({x, y}, -1)", lambda x, y: torch.cat((x, y), -1), x=f(3, 2).t(), y=f(2, 0))
for op, code, fn in (
        ("angle", "x:angle()", lambda x, y: x.angle()),
        ("angle", "lt.complex(x, y):angle()", lambda x, y: torch.complex(x, y).angle()),
        ("conj", "x:conj()", lambda x, y: x.conj()),
        ("conj", "lt.view_as_real(lt.complex(x, y):conj())", lambda x, y: torch.view_as_real(torch.complex(x, y).conj().resolve_conj())),
        ("complex", "lt.view_as_real(lt.complex(x, y[1]))", lambda x, y: torch.view_as_real(torch.complex(x, y[:1].expand(2, 3).contiguous()))),
        ("polar", "lt.view_as_real(lt.polar(x:abs(), y))", lambda x, y: torch.view_as_real(torch.polar(x.abs(), y))),
        ("view_as_real", "lt.view_as_real(lt.complex(x, y))", lambda x, y: torch.view_as_real(torch.complex(x, y))),
        ("view_as_complex", "lt.view_as_complex(lt.stack({x, y}, 3)):abs()", lambda x, y: torch.view_as_complex(torch.stack([x, y], 2)).abs()),
        ("real", "lt.real(lt.complex(x, y))", lambda x, y: torch.complex(x, y).real),
        ("imag", "lt.imag(lt.complex(x, y))", lambda x, y: torch.complex(x, y).imag)):
    case(op, code, fn, x=f(2, 3), y=f(2, 3))
case("detach", "lt.detach(x)", lambda x: x.detach(), x=f(2))
case("to", 'x:to "int32"', lambda x: x.to(torch.int32), x=f(5) * 10)
case("to", 'x:to("bool")', lambda x: x.to(torch.bool), x=torch.tensor([0.0, -0.0, 0.5, math.nan]))
case("to", 'x:to{dtype = "float16"}', lambda x: x.to(torch.float16), x=torch.tensor([1e-8, 6e-8, 65504.0, 65519.0, 65520.0, 1e6, -0.1]))
case("to", 'x:to "bfloat16"', lambda x: x.to(torch.bfloat16), x=f(9) * 1e5)
case("to", 'x:to "uint8"', lambda x: x.to(torch.uint8), x=torch.tensor([-1, 0, 255, 256, 300]))
case("to", 'x:to "float32"', lambda x: x.to(torch.float32), x=torch.tensor([2 ** 53 + 1, -3, 2 ** 62 + 1]))
case("copy_", "x:copy_(y)", lambda x, y: x.copy_(y), x=f(3, 4), y=i(4))
case("zero_", "x:zero_()", lambda x: x.zero_(), x=f(3, 4))

case("ravel", "x:ravel()", lambda x: x.ravel(), x=f(2, 3))
case("ravel", "x:t():ravel()", lambda x: x.t().ravel(), x=f(2, 3))
family("indexing")
X = f(5, 4, 3)
P = dict(x=X, p=positions(5, 2, 3))
case("index_select", "x:index_select(1, p + 1)", lambda x, p: x.index_select(0, p), x=X, p=positions(5, 7))
case("index_select", "x:index_select(-1, p + 1)", lambda x, p: x.index_select(-1, p), x=f(3, 4, 5).permute(2, 1, 0), p=positions(3, 2))
case("index_select", 'x:index_select(2, (p + 1):to "int32")', lambda x, p: x.index_select(1, p), x=i(5, 4, dtype=torch.int8), p=positions(4, 0))
case("gather", "x:gather(1, p + 1)", lambda x, p: x.gather(0, p), x=X, p=positions(5, 2, 4, 3))
case("gather", "lt.gather(x, 2, p + 1)", lambda x, p: x.gather(1, p), x=f(4, 5).t(), p=positions(4, 5, 2))
case("embedding", "lt.embedding(x, p + 1)", lambda x, p: F.embedding(p, x), x=f(5, 4), p=positions(5, 2, 3))
case("masked_select", "x:masked_select(m)", lambda x, m: x.masked_select(m), x=X, m=f(4, 3) > 0)
case("nonzero", "x:nonzero()", lambda x: x.nonzero() + 1, x=i(4, 3, low=0, high=2))
case("nonzero", "x:nonzero()", lambda x: x.nonzero() + 1, x=torch.tensor([0.0, math.nan, -0.0, 2.0]))
case("_index", "x[p + 1]", lambda x, p: x[p], **P)
case("_index", "x[{p + 1, q + 1}]", lambda x, p, q: x[p, q], x=X, p=positions(5, 2, 1), q=positions(4, 3))
case("_index", "x[{{}, q + 1}]", lambda x, q: x[:, q], x=X, q=positions(4, 3))
case("_index", "x[{p + 1, {}, q + 1}]", lambda x, p, q: x[p, :, q], x=X, p=positions(5, 2), q=positions(3, 2))
case("_index", "x[{1, {}, q + 1}]", lambda x, q: x[0, :, q], x=X, q=positions(3, 2))
case("_index", "x[-p - 1]", lambda x, p: x[-p - 1], **P)
case("masked_select", "x[x:gt(0)]", lambda x: x[x > 0], x=X)
case("_index", "x[m]", lambda x, m: x[m], x=X, m=torch.tensor([True, False, True, True, False]))
SRC = dict(x=X, p=torch.tensor([[[0, 1, 2], [3, 2, 1]], [[4, 0, 3], [1, 1, 0]]]), s=f(2, 2, 3))
case("scatter", "x:scatter(1, p + 1, s)", lambda x, p, s: x.scatter(0, p, s), **SRC)
case("scatter", "x:scatter_(1, p + 1, 9)", lambda x, p: x.scatter_(0, p, 9), x=X, p=positions(5, 2, 4, 3))
case("scatter_add", "x:scatter_add(1, p + 1, s)", lambda x, p, s: x.scatter_add(0, p, s), x=X, p=positions(5, 7, 4, 3), s=f(7, 4, 3))
case("scatter_add", "x:scatter_add_(2, p + 1, s)", lambda x, p, s: x.scatter_add_(1, p, s), x=i(5, 4), p=positions(4, 3, 2), s=i(3, 2))
case("index_add", "x:index_add(2, p + 1, s, {alpha = 2})", lambda x, p, s: x.index_add(1, p, s, alpha=2), x=X, p=positions(4, 6), s=f(5, 6, 3))
case("index_copy", "x:index_copy(1, p + 1, s)", lambda x, p, s: x.index_copy(0, p, s), x=X, p=torch.tensor([3, 0]), s=f(2, 4, 3))
case("index_fill", "x:index_fill(-1, p + 1, 5)", lambda x, p: x.index_fill(-1, p, 5), x=X, p=torch.tensor([0, 2]))
case("_index_put", "put(x, {p + 1, q + 1}, s)", lambda x, p, q, s: x.index_put((p, q), s), x=X, p=torch.tensor([0, 4]), q=torch.tensor([1, 1]), s=f(2, 3))
case("_index_put", "put(x, x:lt(0), 0)", lambda x: x.clamp(min=0), x=X)
case("masked_scatter", "x:masked_scatter(m, s)", lambda x, m, s: x.masked_scatter(m, s), x=X, m=f(4, 3) > 0, s=f(60))
case("one_hot", "lt.one_hot(p + 1, 5)", lambda p: F.one_hot(p, 5), p=positions(5, 2, 3))
case("one_hot", "lt.one_hot(p + 1)", lambda p: F.one_hot(p), p=torch.tensor([2, 0, 1]))


def cases_of(name):
    rows = []
    for op, code, inputs, out in FAMILIES[name]:
        ins = ", ".join("%s = %s" % (k, tensor(v)) for k, v in inputs.items())
        quoted = '"%s"' % code.replace('"', '\\"')
        rows.append("function() return {op = %r, code = %s, inputs = {%s},\n  outputs = {%s}} end," %
                    (op, quoted, ins, ", ".join(out)))
    return "\n".join(rows)
