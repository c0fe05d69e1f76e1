"""Cases of losses, normalizations, dropout, embeddings and attention: composites of F in lib/lutra/ops."""

import math

import torch
import torch.nn.functional as F

from ops import case, f, family

REDUCTIONS = ("mean", "sum", "none")


def signs(*shape):
    return torch.randint(0, 2, shape) * 2 - 1


def reductions(op, code, fn, **inputs):
    """Adds a case for each reduction; `code` is the call without its options."""
    for red in REDUCTIONS:
        case(op, code[:-1] + ', {reduction = "%s"})' % red, lambda fn=fn, r=red, **t: fn(**t, reduction=r), **inputs)


family("losses_of_f")
for d in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    mk = lambda *s, d=d: f(*s).to(d)
    case("smooth_l1_loss", "F.smooth_l1_loss(x, y)", lambda x, y: F.smooth_l1_loss(x, y), x=mk(3, 4), y=mk(3, 4))
    case("soft_margin_loss", "F.soft_margin_loss(x, y)", lambda x, y: F.soft_margin_loss(x, y), x=mk(3, 4), y=signs(3, 4).to(d))
    case("binary_cross_entropy", "F.binary_cross_entropy(x, y)", lambda x, y: F.binary_cross_entropy(x, y),
         x=mk(3, 4).sigmoid(), y=mk(3, 4).sigmoid())
    case("pairwise_distance", "F.pairwise_distance(x, y)", lambda x, y: F.pairwise_distance(x, y), x=mk(3, 4), y=mk(3, 4))
reductions("smooth_l1_loss", "F.smooth_l1_loss(x, y)", lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction), x=f(3, 4), y=f(4))
for beta in (0, 0.3):
    case("smooth_l1_loss", "F.smooth_l1_loss(x, y, {beta = %s})" % beta, lambda x, y, b=beta: F.smooth_l1_loss(x, y, beta=b), x=f(3, 4), y=f(3, 4))
case("smooth_l1_loss", "F.smooth_l1_loss(x, y)", lambda x, y: F.smooth_l1_loss(x, y), x=torch.tensor([math.nan, math.inf, 1.0, -0.0]),
     y=torch.tensor([0.0, 1.0, 1.0, 0.0]))
case("smooth_l1_loss", "F.smooth_l1_loss(x, y)", lambda x, y: F.smooth_l1_loss(x, y), x=f(0, 3), y=f(0, 3))
case("huber_loss", 'F.huber_loss{x, y, weight = w}', lambda x, y, w: F.huber_loss(x, y, weight=w), x=f(3, 4), y=f(3, 4), w=f(3, 4).abs())
case("pairwise_distance", "lt.pairwise_distance(x, y, 1, 0, true)", lambda x, y: F.pairwise_distance(x, y, 1, 0, True), x=f(2, 3, 4), y=f(4))
case("pairwise_distance", "F.pairwise_distance{x, y, p = lt.inf}".replace("lt.inf", "math.huge"),
     lambda x, y: F.pairwise_distance(x, y, math.inf), x=f(4), y=f(4))
reductions("binary_cross_entropy", "F.binary_cross_entropy(x, y)", lambda x, y, reduction: F.binary_cross_entropy(x, y, reduction=reduction),
           x=torch.tensor([0.0, 1.0, 0.5, 0.3, 1.0, 0.0]), y=torch.tensor([0.0, 1.0, 0.2, 1.0, 0.0, 1.0]))
case("binary_cross_entropy", "F.binary_cross_entropy(x, y, w)", lambda x, y, w: F.binary_cross_entropy(x, y, w),
     x=f(3, 4).sigmoid(), y=f(3, 4).sigmoid(), w=f(4).abs())
for red in REDUCTIONS + ("batchmean",):
    case("kl_div", 'F.kl_div(x, y, {reduction = "%s"})' % red, lambda x, y, r=red: F.kl_div(x, y, reduction=r),
         x=f(3, 4).log_softmax(1), y=torch.cat([f(2, 4).softmax(1), torch.tensor([[0.0, 1.0, 0.0, 0.0]])]))
    case("kl_div", 'F.kl_div(x, y, {reduction = "%s", log_target = true})' % red, lambda x, y, r=red: F.kl_div(x, y, reduction=r, log_target=True),
         x=f(3, 4).log_softmax(1), y=f(3, 4).log_softmax(1))
reductions("poisson_nll_loss", "F.poisson_nll_loss(x, y)", lambda x, y, reduction: F.poisson_nll_loss(x, y, reduction=reduction), x=f(3, 4),
           y=torch.randint(0, 6, (3, 4)))
case("poisson_nll_loss", "F.poisson_nll_loss{x, y, log_input = false, full = true, eps = 0.1}",
     lambda x, y: F.poisson_nll_loss(x, y, False, True, eps=0.1), x=f(3, 4).abs(), y=torch.randint(0, 6, (3, 4)).float())
reductions("gaussian_nll_loss", "F.gaussian_nll_loss(x, y, v)", lambda x, y, v, reduction: F.gaussian_nll_loss(x, y, v, reduction=reduction),
           x=f(3, 4), y=f(3, 4), v=f(3, 4).abs())
case("gaussian_nll_loss", "F.gaussian_nll_loss(x, y, v, true, 0.5)", lambda x, y, v: F.gaussian_nll_loss(x, y, v, True, 0.5),
     x=f(3, 4), y=f(3, 4), v=f(3).abs())
case("gaussian_nll_loss", "F.gaussian_nll_loss(x, y, 0.7)", lambda x, y: F.gaussian_nll_loss(x, y, 0.7), x=f(3, 4), y=f(3, 4))
reductions("hinge_embedding_loss", "F.hinge_embedding_loss(x, y)", lambda x, y, reduction: F.hinge_embedding_loss(x, y, reduction=reduction),
           x=f(3, 4), y=signs(3, 4))
case("hinge_embedding_loss", "F.hinge_embedding_loss(x, y, 2.5)", lambda x, y: F.hinge_embedding_loss(x, y, 2.5), x=f(3, 4), y=signs(4))
reductions("cosine_embedding_loss", "F.cosine_embedding_loss(x, y, t)",
           lambda x, y, t, reduction: F.cosine_embedding_loss(x, y, t, reduction=reduction), x=f(5, 4), y=f(5, 4), t=signs(5))
case("cosine_embedding_loss", "F.cosine_embedding_loss(x, y, t, 0.2)", lambda x, y, t: F.cosine_embedding_loss(x, y, t, 0.2),
     x=f(4), y=f(4), t=torch.tensor(-1))
reductions("margin_ranking_loss", "F.margin_ranking_loss(x, y, t)", lambda x, y, t, reduction: F.margin_ranking_loss(x, y, t, reduction=reduction),
           x=f(5), y=f(5), t=signs(5))
case("margin_ranking_loss", "F.margin_ranking_loss(x, y, t, 0.5)", lambda x, y, t: F.margin_ranking_loss(x, y, t, 0.5), x=f(3, 1), y=f(3, 4), t=signs(1, 1))
reductions("multi_margin_loss", "F.multi_margin_loss(x, t + 1)", lambda x, t, reduction: F.multi_margin_loss(x, t, reduction=reduction),
           x=f(3, 4), t=torch.tensor([0, 3, 1]))
case("multi_margin_loss", "F.multi_margin_loss(x, t + 1, 2, 0.5, w)", lambda x, t, w: F.multi_margin_loss(x, t, 2, 0.5, w),
     x=f(3, 4), t=torch.tensor([0, 3, 1]), w=f(4).abs())
case("multi_margin_loss", "F.multi_margin_loss(x, t + 1)", lambda x, t: F.multi_margin_loss(x, t), x=f(4), t=torch.tensor(2))
reductions("multilabel_margin_loss", "F.multilabel_margin_loss(x, t + 1)",
           lambda x, t, reduction: F.multilabel_margin_loss(x, t, reduction=reduction),
           x=f(3, 4), t=torch.tensor([[0, 3, -1, 1], [-1, 0, 0, 0], [2, 1, 0, 3]]))
case("multilabel_margin_loss", "F.multilabel_margin_loss(x, t + 1)", lambda x, t: F.multilabel_margin_loss(x, t), x=f(4), t=torch.tensor([3, -1, 0, 0]))
reductions("multilabel_soft_margin_loss", "F.multilabel_soft_margin_loss(x, y)",
           lambda x, y, reduction: F.multilabel_soft_margin_loss(x, y, reduction=reduction), x=f(3, 4), y=torch.randint(0, 2, (3, 4)).float())
case("multilabel_soft_margin_loss", "F.multilabel_soft_margin_loss(x, y, w)", lambda x, y, w: F.multilabel_soft_margin_loss(x, y, w),
     x=f(3, 4), y=torch.randint(0, 2, (3, 4)).float(), w=f(4).abs())
reductions("soft_margin_loss", "F.soft_margin_loss(x, y)", lambda x, y, reduction: F.soft_margin_loss(x, y, reduction=reduction), x=f(3, 4),
           y=signs(3, 4))
reductions("triplet_margin_loss", "F.triplet_margin_loss(a, p, n)",
           lambda a, p, n, reduction: F.triplet_margin_loss(a, p, n, reduction=reduction), a=f(3, 4), p=f(3, 4), n=f(3, 4))
case("triplet_margin_loss", "F.triplet_margin_loss(a, p, n, 0.5, 1, 1e-3, true)", lambda a, p, n: F.triplet_margin_loss(a, p, n, 0.5, 1, 1e-3, True),
     a=f(3, 4), p=f(3, 4), n=f(3, 4))
case("triplet_margin_with_distance_loss",
     "F.triplet_margin_with_distance_loss{a, p, n, distance_function = function(x, y) return (x - y):abs():sum(-1) end, margin = 2, swap = true}",
     lambda a, p, n: F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2, swap=True),
     a=f(3, 4), p=f(3, 4), n=f(3, 4))
case("triplet_margin_with_distance_loss", "F.triplet_margin_with_distance_loss(a, p, n)",
     lambda a, p, n: F.triplet_margin_with_distance_loss(a, p, n), a=f(3, 4), p=f(3, 4), n=f(3, 4))
for red in REDUCTIONS:
    case("linear_cross_entropy", 'F.linear_cross_entropy{x, w, t + 1, reduction = "%s"}' % red,
         lambda x, w, t, r=red: F.linear_cross_entropy(x, w, t, reduction=r), x=f(3, 4), w=f(5, 4), t=torch.tensor([4, 0, 2]))
case("linear_cross_entropy", "F.linear_cross_entropy{x, w, t + 1, linear_bias = b, label_smoothing = 0.1}",
     lambda x, w, t, b: F.linear_cross_entropy(x, w, t, linear_bias=b, label_smoothing=0.1),
     x=f(2, 4), w=f(5, 3, 4), t=torch.tensor([[4, 0, 2], [1, 1, 3]]), b=f(5, 3))

family("normalizations")
for d in (torch.float32, torch.float64, torch.bfloat16):
    mk = lambda *s, d=d: f(*s).to(d)
    case("group_norm", "F.group_norm(x, 2, w, b)", lambda x, w, b: F.group_norm(x, 2, w, b), x=mk(2, 4, 3), w=mk(4), b=mk(4))
    case("rms_norm", "F.rms_norm(x, {4}, w)", lambda x, w: F.rms_norm(x, (4,), w), x=mk(2, 3, 4), w=mk(4))
    case("local_response_norm", "F.local_response_norm(x, 3)", lambda x: F.local_response_norm(x, 3), x=mk(2, 4, 3))
case("group_norm", "lt.group_norm(x, 4, {eps = 0.5})", lambda x: F.group_norm(x, 4, eps=0.5), x=f(2, 4))
case("group_norm", "F.group_norm(x, 2)", lambda x: F.group_norm(x, 2), x=f(0, 4, 3))
case("instance_norm", "F.instance_norm(x)", lambda x: F.instance_norm(x), x=f(2, 3, 5))
case("instance_norm", "F.instance_norm{x, weight = w, bias = b, eps = 0.1}", lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=0.1),
     x=f(2, 3, 2, 2), w=f(3), b=f(3))
case("instance_norm", "F.instance_norm{x, m, v, use_input_stats = false}", lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=False),
     x=f(2, 3, 5), m=f(3), v=f(3).abs())


def running(x, m, v):
    F.instance_norm(x, m, v, momentum=0.3)
    return torch.stack([m, v])


case("instance_norm", "(function() F.instance_norm{x, m, v, momentum = 0.3}; return lt.stack{m, v} end)()", running, x=f(2, 3, 5), m=f(3), v=f(3).abs())
case("rms_norm", "lt.rms_norm(x, {3, 4}, {eps = 0.2})", lambda x: F.rms_norm(x, (3, 4), eps=0.2), x=f(2, 3, 4))
for size in (1, 2, 5, 9):
    case("local_response_norm", "F.local_response_norm(x, %d, 0.5, 0.6, 2)" % size, lambda x, n=size: F.local_response_norm(x, n, 0.5, 0.6, 2), x=f(2, 4, 3, 2))
case("cosine_similarity", "lt.cosine_similarity(x, y)", lambda x, y: F.cosine_similarity(x, y), x=f(1, 3), y=f(2, 1))
case("cosine_similarity", "lt.cosine_similarity(x, y, -1, 0.5)", lambda x, y: F.cosine_similarity(x, y, -1, 0.5), x=torch.zeros(2, 3), y=f(2, 3) / 9)

family("attention")
for mask in (None, torch.tensor([[True, False, True], [False, False, False]]), torch.tensor([[0.5, -math.inf, -1.0], [-math.inf] * 3])):
    inputs = dict(q=f(1, 4, 2, 3), k=f(1, 2, 3, 3), v=f(1, 2, 3, 5))
    if mask is not None:
        inputs["m"] = mask
    case("scaled_dot_product_attention", "F.scaled_dot_product_attention{q, k, v, %senable_gqa = true, scale = 0.7}" %
         ("attn_mask = m, " if mask is not None else ""),
         lambda q, k, v, m=None: F.scaled_dot_product_attention(q, k, v, m, scale=0.7, enable_gqa=True), **inputs)
case("scaled_dot_product_attention", "F.scaled_dot_product_attention{q, k, v, is_causal = true}",
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q=f(2, 4, 3).bfloat16(), k=f(2, 4, 3).bfloat16(), v=f(2, 4, 3).bfloat16())
for queries, keys in ((4, 2), (2, 4), (1, 3)):
    case("scaled_dot_product_attention", "F.scaled_dot_product_attention{q, k, v, is_causal = true}",
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q=f(2, queries, 3), k=f(2, keys, 3), v=f(2, keys, 2))
case("scaled_dot_product_attention", "F.scaled_dot_product_attention(q, k, v, m)",
     lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q=f(2, 1, 3, 2), k=f(2, 3, 4, 2), v=f(3, 4, 2), m=torch.tensor([[[[True, False, True, True]]], [[[False, True, True, False]]]]))
WEIGHTS = dict(w=f(12, 4), b=f(12), o=f(4, 4), c=f(4))
case("multi_head_attention_forward", "F.multi_head_attention_forward(q, k, v, 4, 2, w, b, nil, nil, false, 0, o, c)",
     lambda q, k, v, w, b, o, c: F.multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.0, o, c),
     q=f(3, 2, 4), k=f(5, 2, 4), v=f(5, 2, 4), **WEIGHTS)
case("multi_head_attention_forward", "(F.multi_head_attention_forward{q, k, k, 4, 2, w, b, nil, nil, true, 0, o, c, need_weights = false, "
     "key_padding_mask = p, attn_mask = m})",
     lambda q, k, p, m, w, b, o, c: F.multi_head_attention_forward(q, k, k, 4, 2, w, b, None, None, True, 0.0, o, c, need_weights=False,
                                                                   key_padding_mask=p, attn_mask=m)[0],
     q=f(3, 2, 4), k=f(5, 2, 4), p=torch.tensor([[False] * 5, [False, True, False, True, True]]), m=torch.rand(3, 5) < 0.3, **WEIGHTS)
case("multi_head_attention_forward", "F.multi_head_attention_forward{q, k, v, 4, 2, nil, b, x, y, false, 0, o, c, average_attn_weights = false, "
     "use_separate_proj_weight = true, q_proj_weight = a, k_proj_weight = a, v_proj_weight = a}",
     lambda q, k, v, b, o, c, x, y, a: F.multi_head_attention_forward(
         q, k, v, 4, 2, None, b, x, y, False, 0.0, o, c, average_attn_weights=False, use_separate_proj_weight=True, q_proj_weight=a,
         k_proj_weight=a, v_proj_weight=a),
     q=f(3, 4), k=f(5, 4), v=f(5, 4), b=f(12), o=f(4, 4), c=f(4), x=f(1, 1, 4), y=f(1, 1, 4), a=f(4, 4))
for dim in (0, -1):
    case("softmin", "F.softmin(x, %d)" % (dim + 1 if dim >= 0 else dim), lambda x, d=dim: F.softmin(x, d), x=f(3, 4))
case("softmin", 'F.softmin(x, 2, {dtype = "float64"})', lambda x: F.softmin(x, 1, dtype=torch.float64), x=torch.randint(0, 9, (3, 4)))
case("gumbel_softmax", "F.gumbel_softmax(x, 0.5, true, {dim = 1}):sum(1):round()", lambda x: torch.ones(4), x=f(3, 4))
case("gumbel_softmax", "(F.gumbel_softmax(x):sum(2) * 1e3):round()", lambda x: torch.ones(3) * 1e3, x=f(3, 4))
case("bilinear", "F.bilinear(x, y, w, b)", lambda x, y, w, b: F.bilinear(x, y, w, b), x=f(2, 3, 4), y=f(2, 3, 5), w=f(2, 4, 5), b=f(2))
case("bilinear", "lt.bilinear(x, y, w)", lambda x, y, w: F.bilinear(x, y, w), x=f(4), y=f(5), w=f(2, 4, 5))
for p in (0, 1, 2, 2.5, math.inf):
    case("pdist", "lt.pdist(x, %s)" % ("math.huge" if p == math.inf else p), lambda x, p=p: F.pdist(x, p), x=f(4, 3).double())
case("pdist", "F.pdist(x)", lambda x: F.pdist(x), x=f(1, 3))

family("embeddings_of_f")
IDS, TABLE = torch.tensor([[0, 2, 2], [4, 1, 0]]), f(5, 3)
case("embedding", "F.embedding(i + 1, w, {max_norm = 1.5})", lambda i, w: F.embedding(i, w, max_norm=1.5), i=IDS, w=TABLE)
case("embedding", "(function() F.embedding(i + 1, w, nil, 1.5, 1); return w end)()", lambda i, w: (F.embedding(i, w, max_norm=1.5, norm_type=1), w)[1],
     i=IDS, w=TABLE)
for mode in ("sum", "mean", "max"):
    case("embedding_bag", 'F.embedding_bag(i + 1, w, {mode = "%s", padding_idx = 3})' % mode,
         lambda i, w, m=mode: F.embedding_bag(i, w, mode=m, padding_idx=2), i=torch.tensor([[0, 2, 1], [2, 2, 2]]), w=TABLE)
    for d in (torch.float32, torch.bfloat16):
        case("embedding_bag", 'F.embedding_bag(i + 1, w, o + 1, {mode = "%s"})' % mode, lambda i, w, o, m=mode: F.embedding_bag(i, w, o, mode=m),
             i=IDS.reshape(-1), w=TABLE.to(d), o=torch.tensor([0, 0, 4]))
case("embedding_bag", 'F.embedding_bag{i + 1, w, o + 1, mode = "sum", include_last_offset = true, per_sample_weights = s}',
     lambda i, w, o, s: F.embedding_bag(i, w, o, mode="sum", include_last_offset=True, per_sample_weights=s),
     i=IDS.reshape(-1), w=TABLE, o=torch.tensor([0, 2, 6]), s=f(6))

family("dropouts")
for op in ("dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
    shape = {"dropout1d": (2, 3, 4), "dropout2d": (2, 3, 2, 2)}.get(op, (2, 3, 1, 2, 2))
    for p, training in ((0.0, True), (1.0, True), (0.5, False)):
        case(op, "F.%s(x, %s, %s)" % (op, p, str(training).lower()), lambda x, op=op, p=p, t=training: getattr(F, op)(x, p, t), x=f(*shape))
    code = "(function() math.randomseed(1); return F.%s(x, 0.5, true):ne(0):sum():gt(0) end)()" % op
    case(op, code.replace("math.randomseed(1); ", ""), lambda x: torch.tensor(True), x=torch.ones(4, 50, *shape[2:]))

family("ctc_losses")
PROBABILITIES = f(6, 3, 5).log_softmax(2)
for red in REDUCTIONS:
    case("ctc_loss", 'F.ctc_loss(x, y + 1, {6, 4, 5}, {3, 1, 0}, 1, "%s")' % red,
         lambda x, y, r=red: F.ctc_loss(x, y, (6, 4, 5), (3, 1, 0), 0, r), x=PROBABILITIES, y=torch.tensor([[1, 1, 3], [4, 2, 2], [1, 2, 3]]))
case("ctc_loss", "lt.ctc_loss(x, y + 1, a, b, {blank = 5})", lambda x, y, a, b: F.ctc_loss(x, y, a, b, blank=4),
     x=PROBABILITIES, y=torch.tensor([1, 0, 3, 2]), a=torch.tensor([6, 6, 6]), b=torch.tensor([2, 1, 1]))
for zero in (False, True):
    case("ctc_loss", 'F.ctc_loss{x, y + 1, {2}, {3}, reduction = "none", zero_infinity = %s}' % str(zero).lower(),
         lambda x, y, z=zero: F.ctc_loss(x, y, (2,), (3,), reduction="none", zero_infinity=z), x=PROBABILITIES[:2, :1].contiguous(),
         y=torch.tensor([[1, 2, 3]]))
case("ctc_loss", "F.ctc_loss(x, y + 1, {6}, {2})", lambda x, y: F.ctc_loss(x, y, torch.tensor([6]), torch.tensor([2])), x=PROBABILITIES[:, 0].contiguous(),
     y=torch.tensor([2, 2]))

family("linear_of_vector")
case("linear", "F.linear(x, w, b)", lambda x, w, b: F.linear(x, w, b), x=f(2, 3), w=f(3), b=f(1).reshape(()))
case("linear", "F.linear(x, w)", lambda x, w: F.linear(x, w), x=f(3), w=f(3))

family("deprecated_calls")  # softmax without dim, losses of different shapes: PyTorch warns
for op in ("softmax", "log_softmax", "softmin"):
    fn = getattr(F, op)
    name = op if op == "softmin" else "F_" + op
    for x in (torch.tensor(1.5), f(3), f(3, 4), f(2, 3, 2), f(2, 3, 1, 2).double(), f(2, 3).bfloat16()):
        case(name, "F.%s(x)" % op, lambda x, fn=fn: fn(x), x=x)
    case(name, "F.%s(x, -1)" % op, lambda x, fn=fn: fn(x, -1), x=f(2, 3))
    case(name, 'F.%s{x, 1, dtype = "float64"}' % op, lambda x, fn=fn: fn(x, 0, dtype=torch.float64), x=f(2, 3))
for op in ("mse_loss", "l1_loss"):
    fn = getattr(F, op)
    reductions("F_" + op, "F.%s(x, y)" % op, lambda x, y, fn=fn, **o: fn(x, y, **o), x=f(3, 4), y=f(3, 4))
    case("F_" + op, "F.%s(x, y)" % op, lambda x, y, fn=fn: fn(x, y), x=f(3, 1), y=f(4))
    case("F_" + op, "F.%s{x, y, weight = z}" % op, lambda x, y, z, fn=fn: fn(x, y, weight=z), x=f(3, 2), y=f(3, 2), z=f(3, 2).abs())
