"""Results of PyTorch's elementwise ops for complex numbers.

Each result is a list of parts, real and imaginary, of complex128 (or real) numbers. The points lie in every quadrant, on
the axes and on branch cuts; results that are infinite or NaN are left out, because the standard does not define all
parts of them."""

import math
import torch

POINTS = [1 + 2j, -0.5 + 0.25j, 2 - 3j, -1.5 - 0.75j, 0.1j, 3 + 0j, -2 + 0j, 0.99 + 0.01j, 1e-3 - 1e-4j, -20 + 1j, 0.5 - 30j]
OTHERS = [2 - 1j, 0.5 + 0.5j, -1 + 0j, 1j, 3 - 2j, 2 + 0j, 0.5 + 0j, -0.25 + 4j, 1 + 1j, 0.125 - 1j, -1 - 1j]
UNARY = """neg abs angle square exp exp2 log log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh sigmoid""".split()
BINARY = "add sub mul div pow".split()


def number(v):
    return "%.17g" % v if "%.17g" % v != "%d" % v else "%d.0" % v


def parts(t):
    t = t.resolve_conj() if t.is_complex() else t
    pairs = [(z.real, z.imag) if isinstance(z, complex) else (z, 0.0) for z in t.tolist()]
    return "{%s}" % ", ".join("{%s}" % (", ".join(map(number, p)) if all(map(math.isfinite, p)) else "") for p in pairs)


def cases_of(family):
    x = torch.tensor(POINTS, dtype=torch.complex128)
    y = torch.tensor(OTHERS, dtype=torch.complex128)
    rows = [("x", x), ("y", y)]
    rows += [(name, getattr(torch, name)(x)) for name in UNARY]
    rows += [(name, getattr(torch, name)(x, y)) for name in BINARY]
    rows += [("addcmul", torch.addcmul(x, x, y, value=2)), ("addcdiv", torch.addcdiv(x, x, y, value=2))]
    return "\n".join("%s = %s," % (name, parts(values)) for name, values in rows)
