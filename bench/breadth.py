#!/usr/bin/env python3
"""The ops that bench/ops.py leaves out, most of them at one size (10^6 elements): Lutra beside
PyTorch on the CPU, in one run, in turns. Prints what bench/ops.py prints.

    python3 bench/breadth.py [--only PATTERN] [--threads 2] [--rounds 2] [--lutra PROGRAM]
"""

from pairs import main, rows


def methods(names):
    """Calls of methods without arguments."""
    return [("x:%s()" % n, "x.%s()" % n) for n in names.split()]


def functions(pattern, names):
    """Calls of functions: the pattern with each name."""
    return [pattern % n for n in names.split()]


def along(names):
    """Calls of methods along the first and the second dim of a matrix."""
    return [("x:%s(%s%d)" % (n, "nil, " if n == "norm" else "", d), "x.%s(dim=%d)" % (n, d - 1))
            for n in names.split() for d in (1, 2)]


def with_gradient(calls):
    """Calls, the sums of their results, and the gradients of these."""
    pairs = [(call, call) if isinstance(call, str) else call for call in calls]
    return [("%s:sum():backward()" % lua, "%s.sum().backward()" % python) for lua, python in pairs]


def gradients(calls):
    """Calls of functions of x, and their gradients for x; r is the gradient of the result."""
    pairs = [(call, call) if isinstance(call, str) else call for call in calls]
    return [("T.autograd.grad(%s, {x}, %s)" % (lua, "nil" if "loss" in lua else "r"),
             "T.autograd.grad(%s, x, %s)" % (python, None if "loss" in python else "r"))
            for lua, python in pairs]


POSITIVE = ("local x, y = lt.rand(1000000) + 0.1, lt.rand(1000000) + 0.1",
            "x, y = (torch.rand(1000000) + 0.1 for _ in range(2))")
VECTORS = ("local x, y = lt.randn(1000000), lt.randn(1000000)",
           "x, y = torch.randn(1000000), torch.randn(1000000)")
MATRICES = ("local x, y = lt.randn(1000, 1000), lt.randn(1000, 1000)\\n"
            "local i = lt.randint(1, 1000, {1000})",
            "x, y = torch.randn(1000, 1000), torch.randn(1000, 1000)\n"
            "i = torch.randint(0, 1000, (1000,))")
VARIABLES = ("local x, y = lt.randn(1000, 1000):requires_grad_(), lt.randn(1000, 1000)\\n"
             "local r, w = lt.ones(1000, 1000), lt.randn(1000)",
             "x, y = torch.randn(1000, 1000).requires_grad_(), torch.randn(1000, 1000)\n"
             "r, w = torch.ones(1000, 1000), torch.randn(1000)")
IMAGES = ("local x, w, b = lt.randn(8, 32, 56, 56), lt.randn(32, 32, 3, 3), lt.randn(32)",
          "x, w, b = torch.randn(8, 32, 56, 56), torch.randn(32, 32, 3, 3), torch.randn(32)")
SMALL_IMAGES = ("local x, grid = lt.randn(2, 4, 8, 8), lt.rand(2, 8, 8, 2) * 2 - 1",
                "x, grid = torch.randn(2, 4, 8, 8), torch.rand(2, 8, 8, 2) * 2 - 1")
SMALL = ("local x, y, w = lt.rand(10, 10), lt.rand(10, 10), lt.rand(10)\\n"
         "local v, t = lt.rand(10, 10):requires_grad_(), lt.randint(1, 10, {10})",
         "x, y, w = torch.rand(10, 10), torch.rand(10, 10), torch.rand(10)\n"
         "v, t = torch.rand(10, 10).requires_grad_(), torch.randint(0, 10, (10,))")
LINALG = ("local a, b = lt.randn(200, 200), lt.randn(200, 10)\\n"
          "local x = a:mm(a:t()) + 200 * lt.eye(200)",
          "a, b = torch.randn(200, 200), torch.randn(200, 10)\n"
          "x = a @ a.t() + 200 * torch.eye(200)")

rows("10^6", *POSITIVE, methods(
    "log log2 log10 log1p expm1 exp2 sin cos tan asin acos atan sinh cosh asinh acosh atanh erf "
    "erfc erfinv rsqrt square floor ceil round trunc frac sign neg lgamma digamma logit isnan "
    "isinf isfinite sgn signbit positive deg2rad sinc i0 nan_to_num"))
rows("10^6", *POSITIVE, functions(
    "T.%s(x, y)", "maximum minimum fmod remainder atan2 hypot copysign logaddexp pow fmax fmin "
    "xlogy ldexp nextafter isclose"))
rows("10^6", *VECTORS, functions(
    "F.%s(x)", "softplus silu mish elu selu celu hardtanh hardswish hardsigmoid leaky_relu relu6 "
    "logsigmoid softsign tanhshrink softshrink hardshrink"))
rows("10^6", *VECTORS, [
    ("x:eq(y)", "x == y"), ("x:lt(y)", "x < y"), "x - y", "x * y", "x / y", "2 * x", "1 / x",
    ("x:lerp(y, 0.3)", "x.lerp(y, 0.3)"), ("x:addcmul(x, y)", "x.addcmul(x, y)"),
    ("x:addcdiv(x, y)", "x.addcdiv(x, y)"),
    ("x:masked_fill(x:gt(0), 0)", "x.masked_fill(x > 0, 0)"),
    ("x:masked_scatter(x:gt(0), y)", "x.masked_scatter(x > 0, y)"),
    ("x:gt(0):logical_and(y:gt(0))", "(x > 0).logical_and(y > 0)"),
    ("x:mul_(1.0001)", "x.mul_(1.0001)"), ("x:double()", "x.double()"), ("x:int()", "x.int()"),
    ("x:bool()", "x.bool()"), ("x:zero_()", "x.zero_()"), ("x:copy_(y)", "x.copy_(y)"),
    "F.dropout(x, 0.5)", "T.zeros_like(x)", "T.ones_like(x)", "T.rand_like(x)"])
rows("10^6", *VECTORS, methods(
    "mean prod std argmin median unique nonzero argsort amax amin aminmax count_nonzero") + [
        ("x:topk(10)", "x.topk(10)"), ("x:gt(-9):all()", "(x > -9).all()"),
        ("x:cumsum(1)", "x.cumsum(0)"), ("x:logsumexp(1)", "x.logsumexp(0)")])
rows("1000 x 1000", *MATRICES, along(
    "sum mean max min prod std var norm argmax argmin median logsumexp cumsum cumprod sort argsort "
    "softmax amax amin cummax") + [
        ("x:kthvalue(10, %d)" % d, "x.kthvalue(10, %d)" % (d - 1)) for d in (1, 2)])
rows("1000 x 1000", *MATRICES, [
    ("x:tril()", "x.tril()"), ("x:rot90()", "x.rot90()"), ("x:diag()", "x.diag()"),
    ("x:trace()", "x.trace()"), ("T.outer(x[1], y[1])", "T.outer(x[0], y[0])"),
    ("x:tile(2, 1)", "x.tile(2, 1)"), ("x:repeat_interleave(2, 1)", "x.repeat_interleave(2, 0)"),
    ("x:expand(2, 1000, 1000):contiguous()", "x.expand(2, 1000, 1000).contiguous()"),
    ("F.pad(x, {1, 1, 1, 1})", "F.pad(x, (1, 1, 1, 1))"), ("x:mv(y[1])", "x.mv(y[0])"),
    "T.einsum('ij,ij->i', x, y)", ("x:unfold(1, 3, 1):sum()", "x.unfold(0, 3, 1).sum()"),
    ("T.cdist(x:narrow(2, 1, 16), y:narrow(2, 1, 16))", "T.cdist(x[:, :16], y[:, :16])"),
    ("F.normalize(x, {dim = 2})", "F.normalize(x, dim=1)"), "F.cosine_similarity(x, y)",
    "F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.one_hot(i, 1000)",
    ("x:index_select(2, i)", "x.index_select(1, i)"), "x[i]",
    ("x:index_add(1, i, y)", "x.index_add(0, i, y)"),
    ("x:index_fill(1, i, 0)", "x.index_fill(0, i, 0)"),
    ("x:take(i)", "x.take(i)"), ("x[x:gt(0)]", "x[x > 0]"), "T.bincount(i)", "T.histc(x, 100)",
    "T.bucketize(x, T.linspace(-3, 3, 100))", "T.diff(x)", "F.gumbel_softmax(x)", "F.glu(x)",
    ("F.rms_norm(x, {1000})", "F.rms_norm(x, (1000,))"), ("F.prelu(x, y[1])", "F.prelu(x, y[0])"),
    ("T.multinomial(x:abs(), 10)", "T.multinomial(x.abs(), 10)"), "T.tensordot(x, y, 1)",
    "T.addmm(x, x, y)", ("T.quantile(x, 0.5, 1)", "T.quantile(x, 0.5, 0)")])
rows("1000 x 1000", *MATRICES, [
    "F.huber_loss(x, y)", "F.soft_margin_loss(x, y)",
    "F.binary_cross_entropy_with_logits(x, y)", ("F.prelu(x, y[1][1])", "F.prelu(x, y[0][0])"),
    ("F.kl_div(x, y, {log_target = true})", "F.kl_div(x, y, log_target=True)")])
rows("1000 x 1000", *VARIABLES, gradients(
    functions("F.%s(x)", "hardtanh hardswish hardsigmoid softshrink hardshrink leaky_relu elu "
              "normalize") +
    functions("F.%s_loss(x, y)", "mse l1 smooth_l1 huber") +
    ["F.prelu(x, w)", "F.dropout(x)", ("F.rms_norm(x, {1000})", "F.rms_norm(x, (1000,))")]))
rows("8 x 32 x 56 x 56", *IMAGES, [
    "F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)", "F.adaptive_avg_pool2d(x, 1)",
    ("F.adaptive_avg_pool2d(x, {7, 7})", "F.adaptive_avg_pool2d(x, (7, 7))"),
    ("F.batch_norm(x, nil, nil, b, b, {training = true})",
     "F.batch_norm(x, None, None, b, b, training=True)"),
    ("F.batch_norm(x, b, b:abs(), b, b)", "F.batch_norm(x, b, b.abs(), b, b)"),
    "F.group_norm(x, 4)", "F.instance_norm(x)",
    ("F.layer_norm(x, {56, 56})", "F.layer_norm(x, (56, 56))"),
    ("F.interpolate(x, {scale_factor = 2})", "F.interpolate(x, scale_factor=2)"),
    ("F.interpolate(x, {scale_factor = 2, mode = 'bilinear'})",
     "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    ("F.conv2d(x, w, b, {padding = 1})", "F.conv2d(x, w, b, padding=1)"),
    ("F.conv2d(x, w, b, {stride = 2})", "F.conv2d(x, w, b, stride=2)"),
    ("F.conv2d(x, w:narrow(2, 1, 1), nil, {groups = 32, padding = 1})",
     "F.conv2d(x, w[:, :1], None, groups=32, padding=1)"), "F.conv_transpose2d(x, w)",
    "F.unfold(x, 3)", "F.pixel_shuffle(x, 2)", "F.dropout2d(x, 0.5)",
    ("F.relu(x + b:view(32, 1, 1))", "F.relu(x + b.view(32, 1, 1))"), "F.local_response_norm(x, 5)",
    "F.lp_pool2d(x, 2, 2)"])
rows("2 x 4 x 8 x 8", *SMALL_IMAGES, [
    "F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)", "F.avg_pool2d(x, 2)",
    "F.avg_pool2d(x, 3, 2, 1)", "F.adaptive_avg_pool2d(x, 2)", "F.adaptive_max_pool2d(x, 2)",
    "F.lp_pool2d(x, 2, 2)", "F.pixel_shuffle(x, 2)", "F.channel_shuffle(x, 2)",
    ("F.pad(x, {1, 1, 1, 1})", "F.pad(x, (1, 1, 1, 1))"),
    ("F.interpolate(x, {scale_factor = 2})", "F.interpolate(x, scale_factor=2)"),
    ("F.grid_sample(x, grid, {align_corners = false})",
     "F.grid_sample(x, grid, align_corners=False)")])
rows("10 x 10", *SMALL, [
    "F.binary_cross_entropy(x, y)", "F.multi_margin_loss(x, t)", "F.pairwise_distance(x, y)",
    "F.cosine_similarity(x, y)", ("F.kl_div(x, y, {reduction = 'sum'})",
                                  "F.kl_div(x, y, reduction='sum')"),
    "T.block_diag(x, y)", "T.kron(w, w)", "T.diag_embed(w)", ("T.hstack({x, y})", "T.hstack((x, y))"),
    ("T.autograd.grad(F.binary_cross_entropy(v, y), {v})",
     "T.autograd.grad(F.binary_cross_entropy(v, y), v)")])
rows("200 x 200", *LINALG, functions(
    "T.linalg.%s(x)", "inv det slogdet cholesky qr svd eigh svdvals eigvalsh matrix_exp pinv eig "
    "lu_factor matrix_rank") + ["T.linalg.solve(x, b)", "T.linalg.lstsq(x, b)"])
rows("1000 x 1024", "local x = lt.randn(1000, 1024)", "x = torch.randn(1000, 1024)",
     functions("T.fft.%s(x)", "fft rfft ifft"))
rows("16 x 256 x 256", "local x = lt.randn(16, 256, 256)", "x = torch.randn(16, 256, 256)",
     ["T.fft.fft2(x)"])
rows("16 x 64 x 28 x 28, with gradient",
     "local x, w = lt.randn(16, 64, 28, 28):requires_grad_(), lt.randn(64, 64, 3, 3)\\n"
     "local net, bn, gn = nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.GroupNorm(8, 64)\\n"
     "local up, each = nn.ConvTranspose2d(64, 16, 4, {stride = 2, padding = 1}), "
     "nn.Conv2d(64, 64, 3, {groups = 64, padding = 1})",
     "x, w = torch.randn(16, 64, 28, 28).requires_grad_(), torch.randn(64, 64, 3, 3)\n"
     "net, bn, gn = nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.GroupNorm(8, 64)\n"
     "up = nn.ConvTranspose2d(64, 16, 4, stride=2, padding=1)\n"
     "each = nn.Conv2d(64, 64, 3, groups=64, padding=1)",
     with_gradient([
         ("F.conv2d(x, w, nil, {padding = 1})", "F.conv2d(x, w, None, padding=1)"),
         ("F.conv2d(x, w, nil, {stride = 2})", "F.conv2d(x, w, None, stride=2)"), "net(x)",
         "each(x)", "up(x)", "bn(x)", "gn(x)", "F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)",
         "F.avg_pool2d(x, 2)", "F.adaptive_avg_pool2d(x, 1)"]) + ["gn(x)"])
rows("1024 x 256, with gradient",
     "local x, y = lt.randn(1024, 256):requires_grad_(), lt.randn(1024, 256)\\n"
     "local bn, i = nn.BatchNorm1d(256), lt.randint(1, 1024, {1024})",
     "x, y = torch.randn(1024, 256).requires_grad_(), torch.randn(1024, 256)\n"
     "bn, i = nn.BatchNorm1d(256), torch.randint(0, 1024, (1024,))",
     with_gradient(["bn(x)", "F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)",
                    "F.huber_loss(x, y)", "x[i]", ("(x:max(2))", "x.max(1)[0]"),
                    ("x:cumsum(2)", "x.cumsum(1)"), ("x:std(2)", "x.std(1)"), "F.elu(x)",
                    ("x:unfold(1, 3, 1)", "x.unfold(0, 3, 1)")]))
for name in ("LSTM", "GRU", "RNN"):
    rows("nn.%s, 32 x 64 x 128, with gradient" % name,
         "local net, x = nn.%s(128, 128, {batch_first = true}), lt.randn(32, 64, 128)" % name,
         "net, x = nn.%s(128, 128, batch_first=True), torch.randn(32, 64, 128)" % name,
         with_gradient([("(net(x))", "net(x)[0]")]))
for name in ("Adam", "RMSprop", "Adagrad"):
    rows("optim.%s of 20 x 10^4 parameters" % name, """
local ps = {}
for i = 1, 20 do ps[i] = nn.Parameter(lt.randn(10000)); ps[i].grad = lt.randn(10000) end
local opt = optim.%s(ps, {lr = 1e-6})""".replace("\n", "\\n") % name, """
ps = [nn.Parameter(torch.randn(10000)) for _ in range(20)]
for p in ps: p.grad = torch.randn(10000)
opt = optim.%s(ps, lr=1e-6)""" % name, [("opt:step()", "opt.step()")])
for dtype in ("uint8", "int32"):
    rows("10^6 of " + dtype,
         "local x = lt.randint(1, 100, {1000000}):to('%s')\\nlocal y = x:view(1000, 1000)" % dtype,
         "x = torch.randint(1, 101, (1000000,)).to(torch.%s)\ny = x.view(1000, 1000)" % dtype,
         methods("max argmax any count_nonzero") + [
             ("y:amax(1)", "y.amax(0)"), ("y:max(2)", "y.max(1)"), ("y:sum(1)", "y.sum(0)"),
             ("x:clamp(10, 50)", "x.clamp(10, 50)")])
for dtype, calls in (
        ("float64", functions("T.special.%s(x)", "bessel_j0 ndtr") + [
            "F.mish(x)", "F.celu(x)", ("x:exp()", "x.exp()"), ("x:log()", "x.log()")]),
        ("bfloat16", ["F.gelu(x)", "F.elu(x)", "T.special.ndtr(x)", ("y:sum(1)", "y.sum(0)")]),
        ("float32", [("y[':, ::2']:sum(2)", "y[:, ::2].sum(1)"),
                     ("y['::2']:sum(1)", "y[::2].sum(0)")]),
        ("complex64", [("y:sum(2)", "y.sum(1)"), ("y:prod(2)", "y.prod(1)"),
                       ("y:mean(2)", "y.mean(1)"), ("y:cumsum(2)", "y.cumsum(1)"),
                       ("y:cumprod(2)", "y.cumprod(1)"), ("x:abs()", "x.abs()"),
                       ("x ^ -1", "x**-1")])):
    rows("10^6 of " + dtype,
         "local x = lt.randn(1000000, {dtype = '%s'})\\nlocal y = x:view(1000, 1000)" % dtype,
         "x = torch.randn(1000000, dtype=torch.%s)\ny = x.view(1000, 1000)" % dtype, calls)
rows("10^6 of int32", "local x = lt.randint(1, 100, {1000000}):to('int32')",
     "x = torch.randint(1, 101, (1000000,)).to(torch.int32)",
     functions("T.special.%s(x)", "i1e bessel_j0 erfc") + methods("exp lgamma"))

rows("create", "", "", [
    ("T.randint(0, 99, {1000000})", "T.randint(0, 100, (1000000,))"),
    ("T.normal(0, 1, {1000000})", "T.normal(0., 1., (1000000,))"), "T.eye(1000)",
    ("T.full({1000000}, 2.)", "T.full((1000000,), 2.)"), "T.tril_indices(1000, 1000)",
    "T.logspace(0, 1, 100000)"])

# transposed tensors: the results have the same order in memory
rows("transposed", *MATRICES, [
    ("x:t() * 2", "x.t() * 2"), ("x:t():relu()", "x.t().relu()"), ("x:t():gt(0)", "x.t().gt(0)"),
    ("x:t() + y:t()", "x.t() + y.t()"), ("x:t() + y", "x.t() + y"), ("x:t() + y[1]", "x.t() + y[0]"),
    ("x:t():clone()", "x.t().clone()"), ("x:t():to('float64')", "x.t().to(torch.float64)"),
    ("T.where(x:t():gt(0), x:t(), y:t())", "T.where(x.t().gt(0), x.t(), y.t())"),
    ("(x:t() * 2):sum(2)", "(x.t() * 2).sum(1)"),
    ("(x:t() * 2):softmax(2)", "(x.t() * 2).softmax(1)")])
rows("{100000, 10}", "local x = lt.randn(100000, 10)", "x = torch.randn(100000, 10)",
     along("amax softmax sort") + [("x:max(1)", "x.max(0)"), ("x:max(2)", "x.max(1)"),
                                   ("x:expand(3, -1, -1):sum(1)", "x.expand(3, -1, -1).sum(0)")])
rows("{100000, 10}", "local x, y, v = lt.randn(100000, 10), lt.randn(100000, 10), lt.randn(10)\\n"
     "local i = lt.randint(1, 10, {100000, 10})",
     "x, y, v = torch.randn(100000, 10), torch.randn(100000, 10), torch.randn(10)\n"
     "i = torch.randint(0, 10, (100000, 10))", [
         ("x:mv(v)", "x.mv(v)"), "T.einsum('ij,ij->i', x, y)", ("x:gather(2, i)", "x.gather(1, i)"),
         ("x:scatter_add(2, i, y)", "x.scatter_add(1, i, y)")])
rows("{1000, 100, 3}", "local x = lt.randn(1000, 100, 3)", "x = torch.randn(1000, 100, 3)", [
    ("x:softmax(2)", "x.softmax(1)"), ("x:max(2)", "x.max(1)"), ("x:cumsum(2)", "x.cumsum(1)"),
    ("F.batch_norm(x, nil, nil, nil, nil, true)", "F.batch_norm(x, None, None, None, None, True)")])
rows("{32, 64, 128}", "local x = lt.randn(32, 64, 128)", "x = torch.randn(32, 64, 128)",
     ["F.max_pool1d(x, 3)", "F.max_pool1d(x, 3, 2, 1)"])
rows("images", "local x = lt.randint(0, 255, {64, 32, 32, 3}, {dtype = 'uint8'})",
     "x = torch.randint(0, 255, (64, 32, 32, 3), dtype=torch.uint8)", [
         ("x:permute(1, 4, 2, 3):float()", "x.permute(0, 3, 1, 2).float()"),
         ("x:permute(1, 4, 2, 3) / 255", "x.permute(0, 3, 1, 2) / 255")])
rows("{4, 3, 288, 288}", "local x = lt.randn(4, 3, 288, 288)\\n"
     "local u = (lt.rand(4, 3, 288, 288) * 255):byte()",
     "x = torch.randn(4, 3, 288, 288)\nu = (torch.rand(4, 3, 288, 288) * 255).byte()", [
         ("F.interpolate(%s, {scale_factor = %s, mode = '%s', antialias = %s})"
          % (of, scale, mode, str(smooth).lower()),
          "F.interpolate(%s, scale_factor=%s, mode='%s', antialias=%s)" % (of, scale, mode, smooth))
         for of in "xu" for scale in ("0.5", "1.3")
         for mode, smooth in (("nearest", False), ("bilinear", False), ("bicubic", True))])
rows("62500 rows of 16",
     "local x, y, i = lt.zeros(62500, 16), lt.randn(62500, 16), lt.randint(1, 62500, {62500})\\n"
     "local bags = i:view(6250, 10)",
     "x, y, i = torch.zeros(62500, 16), torch.randn(62500, 16), torch.randint(0, 62500, (62500,))\n"
     "bags = i.view(6250, 10)", [
         ("x:index_add_(1, i, y)", "x.index_add_(0, i, y)"),
         ("x:put_(i, y[':, 1'])", "x.put_(i, y[:, 0])"), "F.embedding_bag(bags, x)",
         ("x:view(-1):scatter_reduce_(1, i, y[':, 1'], 'amax')",
          "x.view(-1).scatter_reduce_(0, i, y[:, 0], 'amax')")])

if __name__ == "__main__":
    main(rounds=2)
