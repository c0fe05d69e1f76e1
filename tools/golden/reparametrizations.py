"""Weight and spectral normalization, orthogonal parametrizations, pruning, fusion of layers (torch.nn.utils)."""

import torch
import torch.nn as nn
import torch.nn.utils.parametrizations as P
from torch.nn.utils import prune
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

from nn import lua

D = torch.float64


def probe(x):
    return torch.cos(torch.arange(x.numel(), dtype=D)).reshape(x.shape)


def layers():
    yield "nn.Linear(3, 4)", lambda: nn.Linear(3, 4, dtype=D)
    yield "nn.Conv2d(2, 3, 2)", lambda: nn.Conv2d(2, 3, 2, dtype=D)
    yield "nn.ConvTranspose1d(2, 3, 2)", lambda: nn.ConvTranspose1d(2, 3, 2, dtype=D)


def dims(x):
    return "false" if x is None else str(x + 1)


def weight_norms():
    for text, make in layers():
        for dim in (0, 1, None):
            m = make()
            weight = m.weight.detach().clone()
            P.weight_norm(m, dim=dim)
            g, v = m.parametrizations.weight.original0, m.parametrizations.weight.original1
            first = g.detach().clone()
            with torch.no_grad():
                g.mul_(1.5)
                v.add_(0.1)
            (m.weight * probe(m.weight)).sum().backward()
            yield '{layer = "%s", dim = %s, weight = %s, g = %s, out = %s, grad_g = %s, grad_v = %s}' % (
                text, dims(dim), lua(weight), lua(first), lua(m.weight), lua(g.grad), lua(v.grad))


def spectral_norms():
    for text, make in layers():
        for iterations in (1, 3):
            m = make()
            weight = m.weight.detach().clone()
            P.spectral_norm(m, n_power_iterations=iterations)
            s = m.parametrizations.weight[0]
            u = torch.nn.functional.normalize(torch.arange(1, s._u.numel() + 1, dtype=D), dim=0)
            v = torch.nn.functional.normalize(torch.arange(1, s._v.numel() + 1, dtype=D), dim=0)
            s._u.copy_(u)
            s._v.copy_(v)
            out = m.weight
            (out * probe(out)).sum().backward()
            m.eval()
            old = make()
            with torch.no_grad():
                old.weight.copy_(weight)
            nn.utils.spectral_norm(old, n_power_iterations=iterations)
            old.weight_u.copy_(u)
            old.weight_v.copy_(v)
            for hook in old._forward_pre_hooks.values():
                hook(old, None)
            yield ("{layer = \"%s\", n = %d, weight = %s, u = %s, v = %s, out = %s, grad = %s, u_after = %s, "
                   "v_after = %s, eval = %s, old = %s, old_u = %s, old_v = %s}") % (
                text, iterations, lua(weight), lua(u), lua(v), lua(out),
                lua(m.parametrizations.weight.original.grad), lua(s._u), lua(s._v), lua(m.weight),
                lua(old.weight), lua(old.weight_u), lua(old.weight_v))


class Holder(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)


def orthogonals():
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2)):
        for name in ("matrix_exp", "cayley", "householder"):
            for trivial in (True, False):
                torch.manual_seed(len(shape) + shape[0])
                weight = torch.randn(shape, dtype=D)
                m = P.orthogonal(Holder(weight.clone()), "weight", name, use_trivialization=trivial)
                square = shape[-1] == shape[-2]
                known = not trivial or square
                first = m.weight.detach().clone() if known else None
                original = m.parametrizations.weight.original
                with torch.no_grad():
                    original.add_(0.1 * torch.sin(torch.arange(original.numel(), dtype=D)).reshape(shape).tril(-1))
                base = m.parametrizations.weight[0].base if trivial else None
                (m.weight * probe(m.weight)).sum().backward()
                yield '{map = "%s", trivial = %s, weight = %s, first = %s, original = %s, base = %s, out = %s, grad = %s}' % (
                    name, "true" if trivial else "false", lua(weight), lua(first) if known else "nil", lua(original),
                    lua(base) if trivial else "nil", lua(m.weight), lua(original.grad))


def prunings():
    def case(code, f):
        m = nn.Linear(4, 5, dtype=D)
        weight = m.weight.detach().clone()
        f(m)
        return '{code = "%s", weight = %s, mask = %s, out = %s}' % (code, lua(weight), lua(m.weight_mask), lua(m.weight))

    yield case("prune.l1_unstructured(m, 'weight', 3)", lambda m: prune.l1_unstructured(m, "weight", 3))
    yield case("prune.l1_unstructured(m, 'weight', 0.375)", lambda m: prune.l1_unstructured(m, "weight", 0.375))
    yield case("prune.l1_unstructured(m, 'weight', 0)", lambda m: prune.l1_unstructured(m, "weight", 0))
    for n, text in ((1, "1"), (2, "2"), (float("inf"), "math.huge")):
        for dim in (0, 1, -1):
            yield case("prune.ln_structured(m, 'weight', 2, %s, %d)" % (text, dim + 1 if dim >= 0 else dim),
                       lambda m, n=n, dim=dim: prune.ln_structured(m, "weight", 2, n, dim))
    yield case("prune.ln_structured(prune.l1_unstructured(m, 'weight', 8), 'weight', 0.4, 2, 1)",
               lambda m: prune.ln_structured(prune.l1_unstructured(m, "weight", 8), "weight", 0.4, 2, 0))
    yield case("prune.l1_unstructured(prune.ln_structured(m, 'weight', 1, 1, 2), 'weight', 0.5)",
               lambda m: prune.l1_unstructured(prune.ln_structured(m, "weight", 1, 1, 1), "weight", 0.5))
    yield case("prune.ln_structured(prune.ln_structured(m, 'weight', 1, 1, 2), 'weight', 0.5, 1, 2)",
               lambda m: prune.ln_structured(prune.ln_structured(m, "weight", 1, 1, 1), "weight", 0.5, 1, 1))
    scores = torch.cos(torch.arange(20, dtype=D)).reshape(5, 4)
    yield case("prune.l1_unstructured(m, 'weight', 6, scores)",
               lambda m: prune.l1_unstructured(m, "weight", 6, importance_scores=scores))
    yield case("prune.global_unstructured({{m, 'weight'}}, prune.l1_unstructured, {amount = 0.3})",
               lambda m: prune.global_unstructured([(m, "weight")], prune.L1Unstructured, amount=0.3))


def globals_():
    a, b = nn.Linear(3, 2, dtype=D), nn.Linear(2, 4, dtype=D)
    weights = [a.weight.detach().clone(), b.weight.detach().clone()]
    pairs = [(a, "weight"), (b, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=5)
    first = [a.weight_mask.clone(), b.weight_mask.clone()]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    yield "{weights = %s, first = %s, second = %s}" % (lua(weights), lua(first), lua([a.weight_mask, b.weight_mask]))


def fusions():
    r = torch.randn
    for shape, transpose in (((3, 2, 2, 2), False), ((2, 3, 2), True), ((3, 4), False)):
        args = [r(shape, dtype=D), r(3, dtype=D), r(3, dtype=D), r(3, dtype=D).abs(), 1e-3, r(3, dtype=D), r(3, dtype=D)]
        for given in (args, args[:1] + [None] + args[2:5] + [None, None]):
            if len(shape) == 2:
                if given[1] is None or given[5] is None:
                    continue
                w, b = fuse_linear_bn_weights(*given)
            else:
                w, b = fuse_conv_bn_weights(*given, transpose=transpose)
            yield "{kind = %s, args = {%s}, weight = %s, bias = %s}" % (
                lua("linear" if len(shape) == 2 else "transpose" if transpose else "conv"),
                ", ".join("false" if x is None else lua(x) for x in given), lua(w), lua(b))


def cases_of(_):
    torch.manual_seed(2715)
    parts = {"weight_norms": weight_norms, "spectral_norms": spectral_norms, "orthogonals": orthogonals,
             "prunings": prunings, "globals": globals_, "fusions": fusions}
    return "\n".join("%s = {\n%s\n}," % (name, ",\n".join(make())) for name, make in parts.items())
