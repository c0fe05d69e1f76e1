"""The dtypes of results under PyTorch's autocast on the CPU: a table of expressions, each with float32 inputs and with
inputs in the lower precision. `T` is torch or lt, `F` the functional namespace; an expression that differs in Lua has a
second form. Inputs: v, w {4}; a, b {4, 4} (a symmetric and positive definite); m {2, 3}; i1, i2, i3 {1, 2, 6...};
k1, k2, k3 convolution weights; p {2, 4, 4}, q {2, 4, 4}; t {2, 4} of probabilities; labels y {2}, signs s {2, 4}."""

import math

import torch
import torch.nn.functional as F

CASES = [line.split(" | ") for line in """
F.linear(t, a)
F.linear(t, a, v)
T.matmul(a, b)
T.mm(a, b)
T.mv(a, v)
T.bmm(p, q)
T.baddbmm(p, p, q)
T.addmm(a, a, b)
T.addbmm(a, p, q)
T.addmv(v, a, w)
T.addr(a, v, w)
T.dot(v, w)
T.outer(v, w)
T.vdot(v, w)
T.einsum('ij,jk->ik', a, b) | T.einsum('ij,jk->ik', a, b)
T.linalg.vecdot(a, b)
T.linalg.multi_dot([a, b, a]) | T.linalg.multi_dot({a, b, a})
T.tensordot(a, b, 1)
T.linalg.matrix_power(a, 2)
F.conv1d(i1, k1)
F.conv2d(i2, k2)
F.conv3d(i3, k3)
F.conv_transpose1d(i1, k1)
F.conv_transpose2d(i2, k2)
F.conv_transpose3d(i3, k3)
F.prelu(m, v[:1]) | F.prelu(m, v[{{1, 1}}])
F.scaled_dot_product_attention(p, q, q)
F.bilinear(t, t, p)
T.add(a, b)
T.mul(a, b)
T.exp(a)
T.log(a)
T.sqrt(a)
T.rsqrt(a)
T.tan(a)
T.acos(v)
T.cosh(v)
T.pow(a, 2)
T.reciprocal(a)
T.sum(a)
T.mean(a)
T.prod(v)
T.cumsum(v, 0) | T.cumsum(v, 1)
T.cumprod(v, 0) | T.cumprod(v, 1)
T.logsumexp(v, 0) | T.logsumexp(v, 1)
T.softmax(v, 0) | T.softmax(v, 1)
F.log_softmax(v, 0) | F.log_softmax(v, 1)
F.softplus(v)
F.gelu(v)
F.relu(v)
F.silu(v)
F.mish(v)
F.hardswish(v)
F.layer_norm(a, [4]) | F.layer_norm(a, {4})
F.rms_norm(a, [4]) | F.rms_norm(a, {4})
F.group_norm(i2, 2)
F.batch_norm(i2, None, None, training=True) | F.batch_norm{i2, training = true}
F.instance_norm(i2)
F.normalize(a)
F.cosine_similarity(a, b)
F.dropout(a, 0.5, False) | F.dropout(a, 0.5, false)
F.embedding(y, a)
F.mse_loss(t, t)
F.l1_loss(t, t)
F.smooth_l1_loss(t, t)
F.huber_loss(t, t)
F.cross_entropy(t, y)
F.nll_loss(t, y)
F.kl_div(t, t, reduction='batchmean') | F.kl_div{t, t, reduction = 'batchmean'}
F.binary_cross_entropy(t, t)
F.binary_cross_entropy_with_logits(t, t)
F.poisson_nll_loss(t, t)
F.gaussian_nll_loss(t, t, t)
F.cosine_embedding_loss(t, t, s[:, 0]) | F.cosine_embedding_loss(t, t, s[{{}, 1}])
F.hinge_embedding_loss(t, s)
F.margin_ranking_loss(v, w, s[0]) | F.margin_ranking_loss(v, w, s[1])
F.soft_margin_loss(t, s)
F.triplet_margin_loss(t, t, t)
F.multi_margin_loss(t, y)
F.multilabel_soft_margin_loss(t, t)
F.pairwise_distance(t, t)
T.cdist(a, b)
F.pdist(a)
T.dist(a, b)
T.norm(a)
T.linalg.norm(a)
T.linalg.vector_norm(a)
T.linalg.matrix_norm(a)
T.linalg.inv(a)
T.inverse(a)
T.linalg.solve(a, b)
T.linalg.cholesky(a)
T.cholesky(a)
T.linalg.eigvalsh(a)
T.linalg.svdvals(a)
T.linalg.cond(a)
T.linalg.qr(a)[0] | (T.linalg.qr(a))
T.qr(a)[0] | (T.qr(a))
T.linalg.matrix_rank(a)
T.pinverse(a)
T.trace(a)
T.quantile(v, 0.5)
T.nanquantile(v, 0.5)
T.fft.fft(v)
T.fft.rfft(v)
T.polar(v, w)
F.max_pool1d(i1, 2)
F.max_pool2d(i2, 2)
F.max_pool3d(i3, 2)
F.avg_pool1d(i1, 2)
F.avg_pool2d(i2, 2)
F.avg_pool3d(i3, 2)
F.adaptive_avg_pool2d(i2, 2)
F.adaptive_avg_pool3d(i3, 2)
F.adaptive_max_pool2d(i2, 2)
F.adaptive_max_pool3d(i3, 2)
F.pad(i2, (1, 1)) | F.pad(i2, {1, 1})
F.pad(i1, (1, 1), 'reflect') | F.pad(i1, {1, 1}, 'reflect')
F.pad(i2, (1, 1, 1, 1), 'reflect') | F.pad(i2, {1, 1, 1, 1}, 'reflect')
F.pad(i3, (1, 1, 1, 1, 1, 1), 'reflect') | F.pad(i3, {1, 1, 1, 1, 1, 1}, 'reflect')
F.pad(i2, (1, 1, 1, 1), 'replicate') | F.pad(i2, {1, 1, 1, 1}, 'replicate')
F.interpolate(i2, scale_factor=2) | F.interpolate{i2, scale_factor = 2}
F.interpolate(i2, scale_factor=2, mode='bilinear') | F.interpolate{i2, scale_factor = 2, mode = 'bilinear'}
F.grid_sample(i2, i2.reshape(1, 6, 6, 2)) | F.grid_sample(i2, i2:reshape(1, 6, 6, 2))
F.pixel_shuffle(p.reshape(1, 8, 2, 2), 2) | F.pixel_shuffle(p:reshape(1, 8, 2, 2), 2)
T.cat([a, T.mm(a, b)]) | T.cat{a, T.mm(a, b)}
T.stack([a, T.mm(a, b)]) | T.stack{a, T.mm(a, b)}
T.cat([a, b]) | T.cat{a, b}
T.addcmul(a, T.mm(a, b), b)
T.addcdiv(a, T.mm(a, b), b)
T.atan2(a, T.mm(a, b))
T.cross(m, m, 1) | T.cross(m, m, 2)
T.where(a > 0, a, T.mm(a, b)) | T.where(a:gt(0), a, T.mm(a, b))
T.baddbmm(p, p, q).sum() | T.baddbmm(p, p, q):sum()
T.mm(a, b) + a
T.mm(a, b) + 1
T.mm(a, b).exp() | T.mm(a, b):exp()
T.mm(a, b).softmax(0) | T.mm(a, b):softmax(1)
T.mm(a, b).sum(0) | T.mm(a, b):sum(1)
T.mm(a, b).mean() | T.mm(a, b):mean()
T.mm(a, b).var() | T.mm(a, b):var()
T.mm(a.double(), b.double()) | T.mm(a:double(), b:double())
T.corrcoef(a)
T.cov(a)
T.kron(a, b)
T.cumsum(T.mm(a, b), 0) | T.cumsum(T.mm(a, b), 1)
T.tril(a)
T.clamp(a, 0, 1)
T.histc(v)
""".strip().split("\n")]


def inputs(dtype):
    """The tensors of the table; the spec makes the same."""
    def wave(*shape):
        n = math.prod(shape)
        return (torch.sin(torch.arange(1, n + 1) * 1.0) * 0.4 + 0.5).reshape(shape).to(dtype)

    a = wave(4, 4).float()
    return dict(v=wave(4), w=wave(4), a=(a @ a.T + torch.eye(4)).to(dtype), b=wave(4, 4), m=wave(2, 3),
                i1=wave(1, 2, 6), i2=wave(1, 2, 6, 6), i3=wave(1, 2, 6, 6, 6), k1=wave(2, 2, 3),
                k2=wave(2, 2, 3, 3), k3=wave(2, 2, 3, 3, 3), p=wave(2, 4, 4), q=wave(2, 4, 4), t=wave(2, 4),
                y=torch.tensor([1, 2]), s=torch.ones(2, 4, dtype=dtype), T=torch, F=F)


def outcome(code, low, dtype):
    try:
        with torch.autocast("cpu", low):
            return str(eval(code, inputs(dtype)).dtype).replace("torch.", "")
    except (RuntimeError, NotImplementedError):
        return "error"


def cases_of(_):
    lines = []
    for case in CASES:
        row = []
        for low in (torch.bfloat16, torch.float16):
            row += [outcome(case[0], low, torch.float32), outcome(case[0], low, low)]
        lines.append("  {[[%s]], %s}," % (case[-1], ", ".join('"%s"' % d for d in row)))
    return "\n".join(lines)
