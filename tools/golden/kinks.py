"""Gradients at points where a function has no derivative, or where its formula meets 0 / 0, inf - inf or NaN.

A case is an expression of x, y and z in both languages, and the inputs. It is computed in float64 and in float32,
and differentiated with weights 1, 2, 3, ... for the elements of the result. The file has for each the result and the
gradients: lists of numbers, `false` where PyTorch returns none, "constant" where the result does not require
grad. Cases in which Lutra's gradient differs on purpose have a reason and the expected gradients.
"""
import math

import torch
import torch.nn.functional as F

inf, nan = math.inf, math.nan
SIGNED = [-inf, -1.5, -1, -0.0, 0.0, 0.5, 1, 2.5, inf, nan]
AROUND_ZERO = [-2.0, -0.0, 0.0, 2.0]
PAIRS = ([0, 1, 2, nan, 1, nan, -inf, inf, inf, -1], [0, 1, 3, 1, nan, nan, -inf, inf, 1, 1])
ROWS = [[-inf, -inf, -inf], [-inf, 0, 1], [0, 0, 0], [inf, 0, 1], [nan, 0, 1]]
SCORES = [[-inf, -inf], [0, 1]]
MASK = "{{true, false, true}, {false, false, false}}"


RANDOM = ("uniform_", "normal_", "exponential_", "random_", "bernoulli")


def same(name, *inputs, lua=None):
    """Returns a case whose expression has the same form in both languages: x.name()."""
    return (f"x.{name}()", f"x:{lua or name}()", inputs)


CASES = [
    # Step functions and ops that overwrite: differentiable, with zero gradients.
    *[same(op, SIGNED) for op in ("sign", "floor", "ceil", "round", "trunc", "frac")],
    ("x ** 0", "x ^ 0", [SIGNED]),
    ("x ** 0.0", "x ^ 0.0", [SIGNED]),
    ("x ** torch.tensor(0.)", "x ^ lt.tensor(0.)", [SIGNED]),
    ("(x * 2).zero_()", "(x * 2):zero_()", [AROUND_ZERO]),
    ("(x * 2).fill_(3)", "(x * 2):fill_(3)", [AROUND_ZERO]),
    ("(x * 2).fill_(y)", "(x * 2):copy_(y)", [AROUND_ZERO, 3.0]),
    ("x.clone().uniform_()", "x:clone():uniform_()", [AROUND_ZERO]),
    ("x.clone().normal_()", "x:clone():normal_()", [AROUND_ZERO]),
    ("x.clone().exponential_()", "x:clone():exponential_()", [AROUND_ZERO]),
    ("x.clone().random_(1, 5)", "x:clone():random_(1, 5)", [AROUND_ZERO]),
    ("x.clone().bernoulli_(0.5)", "x:clone():bernoulli_(0.5)", [AROUND_ZERO]),
    ("torch.bernoulli(x)", "lt.bernoulli(x)", [[0.0, 0.5, 1.0]]),
    ("x.clone().sign_()", "x:clone():sign_()", [AROUND_ZERO]),
    ("x.clone().floor_()", "x:clone():floor_()", [AROUND_ZERO]),
    ("x.clone().eq_(0)", "x:clone():eq_(0)", [AROUND_ZERO]),
    ("x.clone().gt_(0)", "x:clone():gt_(0)", [AROUND_ZERO]),
    ("x.clone().ne_(y)", "x:clone():ne_(y)", [AROUND_ZERO, [0.0, 0, 1, 2]]),
    ("torch.div(x, y, rounding_mode='trunc')", "lt.div(x, y, 'trunc')", [[5.5, -5.5, 0], [2.0, 2, 0]]),
    ("torch.div(x, y, rounding_mode='floor')", "lt.div(x, y, 'floor')", [[5.5, -5.5, 0], [2.0, 2, 0]]),
    ("x.detach()", "x:detach()", [AROUND_ZERO]),
    ("torch.zeros_like(x)", "lt.zeros_like(x)", [AROUND_ZERO]),
    ("x.argmax()", "x:argmax() - 1", [AROUND_ZERO]),
    ("x.isnan()", "x:isnan()", [AROUND_ZERO]),
    ("x == y", "x:eq(y)", [AROUND_ZERO, AROUND_ZERO]),
    ("x.long()", "x:to('int64')", [AROUND_ZERO]),
    ("x.copysign(y)", "x:copysign(y)", [[0.0, -2, 3, -0.0, nan], [-1.0, 1, 0, 2, 1]]),
    ("torch.nan_to_num(x)", "lt.nan_to_num(x)", [SIGNED]),
    # Activations where their pieces meet.
    *[(f"F.{op}(x)", f"F.{op}(x)", [[-inf, -3.0, -1, -0.5, -0.0, 0.0, 0.5, 1, 3, 6, 7, inf, nan]])
      for op in ("hardtanh", "relu6", "hardswish", "hardshrink", "softshrink", "celu", "selu", "softsign")],
    ("F.mish(x)", "F.mish(x)", [[-100.0, -1, -0.0, 0.0, 1, 20.5, 100]]),
    ("F.threshold(x, 0.5, 9)", "F.threshold(x, 0.5, 9)", [SIGNED]),
    ("F.prelu(x, y)", "F.prelu(x, y)", [AROUND_ZERO, [0.25]]),
    ("F.prelu(x, y)", "F.prelu(x, y)", [[[-inf, -1.0], [-0.0, 0.0], [1.0, nan]], [0.25, -0.5]]),
    ("F.glu(x)", "F.glu(x)", [[1.0, -2, 0, 100]]),
    ("F.glu(x, 0)", "F.glu(x, 1)", [[[1.0, inf, nan], [-100.0, 0.0, 1.0]]]),
    # Special functions at 0 and at the ends of their domains.
    *[(f"torch.special.{op}(x)", f"lt.special.{op}(x)", [[-2.0, -0.0, 0.0, 1e-8, 2.0]])
      for op in ("i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "erfcx", "entr")],
    *[(f"torch.special.{op}(x)", f"lt.special.{op}(x)", [[0.0, 0.25, 0.5, 1.0]]) for op in ("ndtri", "erfinv", "logit")],
    ("torch.sinc(x)", "lt.sinc(x)", [[-2.0, -0.0, 0.0, 0.5]]),
    ("torch.logit(x, 0.25)", "lt.logit(x, 0.25)", [[0.0, 0.2, 0.25, 0.5, 0.75, 1.0]]),
    *[(f"torch.special.{op}(x, y)", f"lt.special.{op}(x, y)", [[0.0, 0, 0, 2, 2, -1, 0], [0.0, -1, 2, 0, 3, 2, nan]])
      for op in ("xlogy", "xlog1py")],
    ("torch.xlogy(x, 0.0)", "lt.xlogy(x, 0.0)", [[0.0, 2.0]]),
    ("torch.logaddexp(x, y)", "lt.logaddexp(x, y)", [[0.0, 1, 1000, -inf], [0.0, -2, -1000, 1]]),
    ("torch.logaddexp2(x, y)", "lt.logaddexp2(x, y)", [[0.0, 1, 1000, -inf], [0.0, -2, -1000, 1]]),
    ("x.sgn()", "x:sgn()", [SIGNED]),
    ("torch.clamp_min(x, y)", "lt.clamp_min(x, y)", [[0.0, 1, 2, nan], [1.0, 1, 1, 1]]),
    ("torch.frexp(x)[0]", "(lt.frexp(x))", [[0.0, 1, -3.5, 1024]]),
    ("torch.round(x, decimals=1)", "lt.round(x, 1)", [[0.25, 0.35, 1.04]]),

    # One input.
    *[same(op, SIGNED) for op in (
        "abs", "relu", "sqrt", "rsqrt", "reciprocal", "log", "log2", "log10", "log1p", "exp", "expm1", "sigmoid", "tanh",
        "square", "asin", "acos", "atanh", "acosh", "asinh", "erf", "neg")],
    ("F.leaky_relu(x)", "lt.leaky_relu(x)", [SIGNED]),
    ("F.leaky_relu(x, 0.3)", "lt.leaky_relu(x, 0.3)", [SIGNED]),
    ("F.elu(x)", "lt.elu(x)", [SIGNED]),
    ("F.elu(x, 2.0)", "lt.elu(x, 2.0)", [SIGNED]),
    ("F.softplus(x)", "lt.softplus(x)", [[-inf, -800.0, -1, 0, 19.5, 20, 20.5, 800, inf, nan]]),
    ("F.softplus(x, 2, 3)", "lt.softplus(x, 2, 3)", [[1.0, 1.5, 2]]),
    ("F.logsigmoid(x)", "lt.logsigmoid(x)", [[-inf, -800.0, 0, 800, inf, nan]]),
    ("F.silu(x)", "lt.silu(x)", [[-800.0, 0, 800, nan]]),
    ("F.gelu(x)", "lt.gelu(x)", [[-800.0, 0, 800, nan]]),
    ("F.gelu(x, approximate='tanh')", "lt.gelu(x, 'tanh')", [[-800.0, 0, 800, nan]]),
    ("x.clone().relu_()", "x:clone():relu_()", [SIGNED]),

    # Powers.
    *[(f"x ** {e}", f"x ^ {e}", [SIGNED]) for e in ("1", "2", "3", "-1", "(-2)")],
    # Without -inf and -0, for which PyTorch's roots differ from C's pow.
    *[(f"x ** {e}", f"x ^ {e}", [[-1.5, 0.0, 0.5, 1, inf, nan]]) for e in ("0.5", "1.5", "(-0.5)")],
    ("x ** y", "x ^ y", [[0, 0, 0, 0, 0, 2, -2, -2, -2, 1, nan, -0.0, inf, inf],
                         [0, 1, 2, 0.5, -1, 0, 2, 0, 0.5, nan, 0, 0, 0, -1]]),
    ("2 ** x", "2 ^ x", [SIGNED]),
    ("0 ** x", "0 ^ x", [SIGNED]),
    ("(-2) ** x", "(-2) ^ x", [[-1.0, 0, 1, 2, 0.5]]),
    ("1 ** x", "1 ^ x", [SIGNED]),

    # Clamping.
    ("x.clamp(-1, 1)", "x:clamp(-1, 1)", [SIGNED]),
    ("x.clamp(min=-1)", "x:clamp(-1)", [SIGNED]),
    ("x.clamp(max=1)", "x:clamp(nil, 1)", [SIGNED]),
    ("x.clamp(1, -1)", "x:clamp(1, -1)", [SIGNED]),
    ("x.clamp(nan, 1)", "x:clamp(0 / 0, 1)", [SIGNED]),
    ("x.clone().clamp_(-1, 1)", "x:clone():clamp_(-1, 1)", [SIGNED]),
    ("x.clamp(y, z)", "x:clamp(y, z)", [[0, 1, 2, 3, 1.5, 1, 1, nan, 1, 1, 5, 2, 0, 1],
                                        [1, 1, 1, 1, 1.0, 1, 3, 1, nan, 0, 3, 3, 3, 3],
                                        [2, 2, 2, 2, 2.0, 1, 1, 2, 2, nan, 3, 1, 1, 2]]),
    ("x.clamp(min=y)", "x:clamp(y)", [[0, 1, 2, nan, 1], [1, 1, 1, 1, nan]]),
    ("x.clamp(max=y)", "x:clamp(nil, y)", [[0, 1, 2, nan, 1], [1, 1, 1, 1, nan]]),
    *[(f"torch.{op}(x, y)", f"lt.{op}(x, y)", PAIRS) for op in ("maximum", "minimum", "fmax", "fmin")],
    ("torch.max(x, y)", "lt.max(x, y)", PAIRS),

    # Two inputs.
    ("torch.atan2(x, y)", "lt.atan2(x, y)", [[0, 0, 0, -0.0, 1, inf, inf, nan], [0, 1, -1, -0.0, 0, inf, 1, 0]]),
    ("torch.atan2(x, torch.zeros(4))", "lt.atan2(x, lt.zeros(4))", [AROUND_ZERO]),
    ("torch.atan2(torch.zeros(4), x)", "lt.atan2(lt.zeros(4), x)", [AROUND_ZERO]),
    ("torch.hypot(x, y)", "lt.hypot(x, y)", [[0, 3, 0, inf], [0, 4, 1, 1]]),
    ("x / y", "x / y", [[0, 1, 1, inf, 0], [0, 0, inf, inf, 2]]),
    ("torch.fmod(x, y)", "lt.fmod(x, y)", [[5.5, -5.5, 4, 0, 1, inf, 1], [2, 2, 2, 2, 0, 2, inf]]),
    ("torch.fmod(x, 2)", "lt.fmod(x, 2)", [[5.5, -5.5, 4, 0]]),
    ("x % y", "x % y", [[5.5, -5.5, 4, 0, 1, inf, 1], [2, 2, 2, 2, 0, 2, inf]]),
    ("x % 2", "x % 2", [[5.5, -5.5, 4, 0]]),
    ("torch.lerp(x, y, z)", "lt.lerp(x, y, z)", [[0, 1, 0, 1], [0, 2, inf, 3], [0.5, 0, 0, 1]]),
    ("torch.lerp(x, y, 0.5)", "lt.lerp(x, y, 0.5)", [[0, 1, inf], [0, 2, inf]]),
    ("x * y", "x * y", [[0, inf, nan], [inf, 0, 0]]),
    ("torch.addcdiv(x, y, z)", "lt.addcdiv(x, y, z)", [[0, 1], [1, 0], [0, 0]]),
    ("F.mse_loss(x, y, reduction='none')", "lt.mse_loss(x, y, {reduction = 'none'})", PAIRS),
    ("F.l1_loss(x, y, reduction='none')", "lt.l1_loss(x, y, {reduction = 'none'})", PAIRS),
    ("torch.where(x > 0, x, y)", "lt.where(x:gt(0), x, y)", [[-1, 0, 1, nan], [nan, 2, nan, 1]]),
    ("torch.where(x > 0, x.sqrt(), x * 0)", "lt.where(x:gt(0), x:sqrt(), x * 0)", [[-1, 0, 1, nan]]),
    ("torch.where(x > 0, x, torch.tensor(nan))", "lt.where(x:gt(0), x, lt.tensor(0 / 0))", [[-1.0, 0, 1]]),
    ("x.masked_fill(x > 0, 0)", "x:masked_fill(x:gt(0), 0)", [SIGNED]),

    # Extremes, sorting: ties and NaN.
    *[case for data in ([1, 3, 3, 2, 3], [1, nan, 3, nan, 3], [inf, 1, inf], [-inf, -inf], [0.0, -0.0])
      for case in (
          ("x.max()", "x:max()", [data]), ("x.min()", "x:min()", [data]), ("x.max(0).values", "(x:max(1))", [data]),
          ("x.min(0).values", "(x:min(1))", [data]),
          ("x.sort(stable=True).values", "(x:sort(-1, false, true))", [data]),
          ("x.sort(descending=True, stable=True).values", "(x:sort(-1, true, true))", [data]),
      )],
    *[case for data in ([1, 3, 3, 2, 3], [inf, 1, inf], [-inf, -inf], [0.0, -0.0])
      for case in (("x.amax()", "x:amax()", [data]), ("x.amin()", "x:amin()", [data]),
                   ("x.amax(0)", "x:amax(1)", [data]))],
    ("x.topk(2).values", "(x:topk(2))", [[1, 3, 5, 2]]),
    ("x.amax(1)", "x:amax(2)", [[[1, 3, 3], [2, 2, 2]]]),

    # Sums and products.
    ("F.dropout(x, 0.0)", "lt.dropout(x, 0)", [SIGNED]),
    ("F.dropout(x, 1.0)", "lt.dropout(x, 1)", [AROUND_ZERO]),
    *[(f"x.prod({d})", f"x:prod({e})", [data]) for d, e in (("", ""), ("0", "1"))
      for data in ([2, 3, 4], [2, 0, 4], [0, 3, 0], [0.0], [inf, 0, 1], [nan, 0, 1])],
    *[("x.cumprod(0)", "x:cumprod(1)", [data]) for data in ([2, 3, 4], [2, 0, 4], [2, 0, 3, 0, 5], [0.0, 0])],
    ("x.cumsum(0)", "x:cumsum(1)", [[1, inf, nan]]),
    *[(f"x.{op}", f"x:{op}", [data]) for op in ("var()", "std()") for data in ([1, 2, 4], [1, 1, 1], [3.0], 3.0)],
    ("x.var(0, unbiased=False)", "x:var(1, false)", [[1, 1]]),
    ("x.std(0, unbiased=False)", "x:std(1, false)", [[1, 1]]),
    ("x.std(0, unbiased=False)", "x:std(1, false)", [[3.0]]),
    ("x.var(1)", "x:var(2)", [[[1.0], [2]]]),
    ("x.std(1)", "x:std(2)", [[[1, 1], [1, 2]]]),
    ("x.mean()", "x:mean()", [[inf, nan, 1]]),
    *[(f"torch.norm(x, {p})", f"x:norm({q})", [data])
      for p, q in (("1", "1"), ("2", "2"), ("inf", "math.huge"), ("-inf", "-math.huge"), ("3", "3"), ("1.5", "1.5"),
                   ("0.5", "0.5"), ("-1", "-1"))
      for data in ([0, 0], [0, 3, -4], [-4, 4, 1], [inf, 1], [nan, 1])],
    ("torch.norm(x, 2, 1)", "x:norm(2, 2)", [[[0, 0], [3, 4]]]),

    # Softmax and ops that use it.
    *[(f"x.{op}(1)", f"x:{op}(2)", [ROWS]) for op in ("softmax", "log_softmax")],
    *[("x.logsumexp(0)", "x:logsumexp(1)", [data])
      for data in ([1, 3, 3, 2, 3], [1, nan, 3], [inf, 1, inf], [0.0, -0.0], [-inf, 0, 1])],
    ("F.scaled_dot_product_attention(x, y, z, torch.tensor(MASK))",
     f"lt.scaled_dot_product_attention(x, y, z, lt.tensor{MASK})",
     [[[1, 2], [3, 4]], [[1, 0], [0, 1], [1, 1]], [[1, 2], [3, 4], [5, 6]]]),
    ("F.scaled_dot_product_attention(x, y, z, torch.full((2, 3), -inf))",
     "lt.scaled_dot_product_attention(x, y, z, lt.full({2, 3}, -math.huge))",
     [[[1, 2], [3, 4]], [[1, 0], [0, 1], [1, 1]], [[1, 2], [3, 4], [5, 6]]]),
    ("F.scaled_dot_product_attention(x[None, None], y[None, None], z[None, None], torch.tensor(MASK)[None, None])",
     "lt.scaled_dot_product_attention(x:unsqueeze(1):unsqueeze(1), y:unsqueeze(1):unsqueeze(1), "
     f"z:unsqueeze(1):unsqueeze(1), lt.tensor{MASK}:unsqueeze(1):unsqueeze(1))",
     [[[1, 2], [3, 4]], [[1, 0], [0, 1], [1, 1]], [[1, 2], [3, 4], [5, 6]]]),

    ("F.normalize(x)", "lt.nn.functional.normalize(x)", [[[0, 0], [3, 4], [1e-13, 0]]]),
    ("F.cosine_similarity(x, y)", "lt.nn.functional.cosine_similarity(x, y)",
     [[[0, 0], [1, 0], [3, 4]], [[0, 0], [0, 2], [3, 4]]]),

    # Losses.
    ("F.cross_entropy(x, torch.tensor([0, 1]), ignore_index=-100)", "lt.cross_entropy(x, lt.tensor{1, 2})", [SCORES]),
    ("F.cross_entropy(x, torch.tensor([1, 1]))", "lt.cross_entropy(x, lt.tensor{2, 2})", [[[-inf, 0], [0, 1]]]),
    ("F.cross_entropy(x, torch.tensor([0, 0]))", "lt.cross_entropy(x, lt.tensor{1, 1})", [[[-inf, 0], [0, 1]]]),
    *[(f"F.cross_entropy(x, torch.tensor([1, 1]), ignore_index=1, reduction='{r}')",
       f"lt.cross_entropy(x, lt.tensor{{2, 2}}, {{ignore_index = 2, reduction = '{r}'}})", [[[0, 1], [2, 3]]]) for r in ("mean", "sum", "none")],
    ("F.cross_entropy(x, torch.tensor([1, 0]), ignore_index=1)",
     "lt.cross_entropy(x, lt.tensor{2, 1}, {ignore_index = 2, reduction = 'mean'})", [[[nan, inf], [2, 3]]]),
    ("F.cross_entropy(x, torch.tensor([0, 1]), weight=torch.zeros(2, dtype=x.dtype))",
     "lt.cross_entropy(x, lt.tensor{1, 2}, lt.zeros(2, {dtype = x.dtype}))", [[[0, 1], [2, 3]]]),
    ("F.cross_entropy(x, torch.tensor([1, 1]), ignore_index=1, label_smoothing=0.1)",
     "lt.cross_entropy(x, lt.tensor{2, 2}, {ignore_index = 2, reduction = 'mean', label_smoothing = 0.1})", [[[0, 1], [2, 3]]]),
    ("F.nll_loss(x, torch.tensor([1, 1]), ignore_index=1)", "lt.nll_loss(x, lt.tensor{2, 2}, {ignore_index = 2, reduction = 'mean'})",
     [[[0, 1], [2, 3]]]),
    ("F.binary_cross_entropy_with_logits(x, y, reduction='none')",
     "lt.binary_cross_entropy_with_logits(x, y, {reduction = 'none'})",
     [[-inf, -800.0, 0, 800, inf, inf, -inf, 0], [0, 1, 0.5, 0, 1, 0, 1, 1]]),
    ("F.huber_loss(x, y, 'none', 0.5)", "lt.F.huber_loss(x, y, 'none', 0.5)",
     [[-inf, -0.5, 0, 0, 0.5, 2, inf, nan], [0, 0, 0, -0.5, 0, 0, 0, 0]]),
    ("F.smooth_l1_loss(x, y, reduction='none', beta=0.5)",
     "lt.F.smooth_l1_loss(x, y, {reduction = 'none', beta = 0.5})",
     [[-inf, -0.5, 0, 0, 0.5, 2, inf, nan], [0, 0, 0, -0.5, 0, 0, 0, 0]]),
    ("F.layer_norm(x, (2,))", "lt.layer_norm(x, {2})", [[[1, 1], [0, 1], [inf, 1]]]),
    ("F.embedding(torch.tensor([1, 1]), x, padding_idx=1)", "lt.embedding(x, lt.tensor{2, 2}, 2)", [[[0, 1], [2, 3]]]),
]

# Expression, inputs, Lutra's gradients, and the reason why they differ from PyTorch's.
DIFFERENT = [
    *[(f"x.clone().{p}", f"x:clone():{p}", [AROUND_ZERO], [[0, 0, 0, 0]],
       "PyTorch passes the gradient on as if nothing had been overwritten")
      for p in ("logical_not_()", "logical_and_(x)")],
    *[(p, p, [[5.5, -5.5, 1]], [[0, 0, 0]], "PyTorch raises, but gives zeros with div's rounding_mode")
      for p in ("x // 2", "2 // x")],
    ("torch.norm(x, 0)", "x:norm(0)", [[0.0, 1, 2]], [[0, 0, 0]], "PyTorch gives none"),
    *[(p, e, [[1, nan, 3, nan, 3]], [[0, 0.5, 0, 0.5, 0]], "PyTorch gives this for max and min only, else NaN")
      for p, e in (("x.amax()", "x:amax()"), ("x.amin()", "x:amin()"), ("x.amax(0)", "x:amax(1)"))],
    ("x.logsumexp(0)", "x:logsumexp(1)", [[-inf, -inf]], [[0, 0]], "PyTorch gives NaN"),
    ("x.logsumexp(1)", "x:logsumexp(2)", [[[-inf, -inf], [0, -inf]]], [[0, 0, 2, 0]], "PyTorch gives NaN"),
    ("x.prod()", "x:prod()", [[inf, 2, 3]], [[6, inf, inf]], "PyTorch gives NaN for the first"),
]

MASK = [[True, False, True], [False, False, False]]


def lua(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(lua, value)) + "}"
    if isinstance(value, bool) or value is None:
        return "true" if value else "false"
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{float(value):.17g}" if value != int(value) or abs(value) > 1e15 else f"{value:.1f}"


def compute(code, inputs, dtype):
    """Returns the result and a list of flat gradients, False for None; "constant" if the result requires no grad."""
    names = dict(zip("xyz", (torch.tensor(i, dtype=dtype).requires_grad_() for i in inputs)))
    result = eval(code, {"torch": torch, "F": F, "inf": inf, "nan": nan, "MASK": MASK}, names)
    values = False if any(op in code for op in RANDOM) else result.detach().reshape(-1).tolist()
    if not result.requires_grad:
        return values, "constant"
    weights = torch.arange(1, result.numel() + 1, dtype=dtype).reshape(result.shape)
    try:
        result.backward(weights)
    except RuntimeError:
        return values, "raises"
    return values, [False if t.grad is None else (t.grad + 0 if t.grad._is_zerotensor() else t.grad).reshape(-1).tolist() for t in names.values()]


def same_numbers(a, b):
    return len(a) == len(b) and all(
        len(p) == len(q) and all(x == y or (x != x and y != y) for x, y in zip(p, q)) for p, q in zip(a, b))


def cases_of(_):
    rows = []
    for code, text, inputs, *different in CASES + DIFFERENT:
        rows.append(f"  {{code = [[{text}]], inputs = {lua(list(inputs))},")
        for dtype in (torch.float64, torch.float32):
            values, gradients = compute(code, inputs, dtype)
            if different:
                theirs = gradients
                gradients = different[0]
                assert isinstance(theirs, str) or False in theirs or not same_numbers(theirs, gradients), text
            elif gradients == "raises":
                raise RuntimeError(f"{code} has no gradient")
            rows.append(f"    {str(dtype)[6:]} = {{result = {lua(values)}, gradients = {lua(gradients)}}},")
        if different:
            rows.append(f'    different = "{different[1]}",')
        rows[-1] = rows[-1].rstrip(",") + "},"
    return "\n".join(rows)
