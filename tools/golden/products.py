"""Expected values of products with a sum, tensordot, kron, einsum and distances."""

import torch

import ops
from ops import f, family, i


def case(op, code, fn, **inputs):
    """Adds a case of a function of positional arguments."""
    ops.case(op, code, lambda **t: fn(*t.values()), **inputs)


HALVES = (torch.float16, torch.bfloat16)

family("products_more")
NAN = torch.full((2, 5), float("nan"))
for d in (torch.float32, torch.float64, torch.int64):
    r = (lambda *s: i(*s, dtype=torch.int64)) if d == torch.int64 else (lambda *s: f(*s, dtype=d))
    case("addmv", "lt.addmv(x, a, b, 2, 3)", lambda x, a, b: torch.addmv(x, a, b, beta=2, alpha=3), x=r(4), a=r(4, 3), b=r(3))
    case("addmv", "lt.addmv(x, a, b)", torch.addmv, x=r(4), a=r(4, 0), b=r(0))
    case("addr", "lt.addr(x, a, b, 2, 3)", lambda x, a, b: torch.addr(x, a, b, beta=2, alpha=3), x=r(4, 3), a=r(4), b=r(3))
    case("addr", "lt.addr(x, a, b)", torch.addr, x=r(), a=r(4), b=r(3))
    case("addbmm", "lt.addbmm(x, a, b, 2, 3)", lambda x, a, b: torch.addbmm(x, a, b, beta=2, alpha=3),
         x=r(2, 5), a=r(3, 2, 4), b=r(3, 4, 5))
    case("addbmm", "lt.addbmm(x, a, b)", torch.addbmm, x=r(5), a=r(3, 2, 0), b=r(3, 0, 5))
    case("vdot", "lt.vdot(x, y)", torch.vdot, x=r(7), y=r(7))
    case("inner", "lt.inner(x, y)", torch.inner, x=r(2, 3), y=r(4, 5, 3))
    case("inner", "lt.inner(x, y)", torch.inner, x=r(), y=r(4))
    case("inner", "lt.inner(x, y)", torch.inner, x=r(3), y=r(3))
    case("kron", "lt.kron(x, y)", torch.kron, x=r(2, 3), y=r(4))
    case("kron", "lt.kron(x, y)", torch.kron, x=r(2), y=r(3, 1, 2))
    case("kron", "lt.kron(x, y)", torch.kron, x=r(), y=r(2, 2))
    case("tensordot", "lt.tensordot(x, y)", torch.tensordot, x=r(2, 3, 4), y=r(3, 4, 5))
    case("tensordot", "lt.tensordot(x, y, 0)", lambda x, y: torch.tensordot(x, y, 0), x=r(2), y=r(3))
    case("tensordot", "lt.tensordot(x, y, {{1, -1}, {3, 2}})", lambda x, y: torch.tensordot(x, y, ([0, -1], [2, 1])),
         x=r(2, 3, 4), y=r(5, 4, 2))
    case("tensordot", "lt.tensordot(x, y, {{1, 2}, {3, 1}})", lambda x, y: torch.tensordot(x, y, ([0, 1], [2, 0])),
         x=r(1, 1, 2), y=r(2, 1, 2))
    for code, e, shapes in (
            ("ij,jk->ik", "ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", "ij,jk", ((2, 3), (3, 4))),
            ("i->", "i->", ((3,),)), ("ii->i", "ii->i", ((3, 3),)), ("ba", "ba", ((2, 3),)),
            ("...ik, ...kj -> ...ij", "...ik, ...kj -> ...ij", ((5, 1, 2, 3), (2, 3, 4))),
            ("i...->...", "i...->...", ((3, 2),)), ("bij,bjk,bkl->bl", "bij,bjk,bkl->bl", ((2, 3, 4), (2, 4, 2), (2, 2, 3))),
            ("a,b,c,d->dcba", "a,b,c,d->dcba", ((2,), (3,), (2,), (4,))), ("ij,ij->", "ij,ij->", ((2, 3), (2, 3))),
            ("ijk,ik->j", "ijk,ik->j", ((2, 3, 4), (1, 4))), ("iji,j->ij", "iji,j->ij", ((2, 3, 2), (3,))),
            ("ij,j->ij", "ij,j->ij", ((2, 0), (0,))), ("ij,jk->ik", "ij,jk->ik", ((2, 0), (0, 3)))):
        names = dict(zip("xyzw", (r(*s) for s in shapes)))
        case("einsum", 'lt.einsum("%s", %s)' % (code, ", ".join(names)), lambda *t, e=e: torch.einsum(e, *t), **names)
case("einsum", "lt.einsum(x, {1, 2}, y, {2, 3}, {3, 1})", lambda x, y: torch.einsum(x, [0, 1], y, [1, 2], [2, 0]),
     x=f(2, 3), y=f(3, 4))
case("einsum", 'lt.einsum(x, {"...", 2}, y, {2, 30})', lambda x, y: torch.einsum(x, [..., 1], y, [1, 29]),
     x=f(5, 2, 3), y=f(3, 4))
for d in HALVES:
    case("addmv", "lt.addmv(x, a, b)", torch.addmv, x=f(4, dtype=d), a=f(4, 3, dtype=d), b=f(3, dtype=d))
    case("addr", "lt.addr(x, a, b)", torch.addr, x=f(4, 3, dtype=d), a=f(4, dtype=d), b=f(3, dtype=d))
    case("addbmm", "lt.addbmm(x, a, b)", torch.addbmm, x=f(2, 5, dtype=d), a=f(3, 2, 4, dtype=d), b=f(3, 4, 5, dtype=d))
case("addbmm", "lt.addbmm(x, a, b, 0)", lambda x, a, b: torch.addbmm(x, a, b, beta=0), x=NAN, a=f(3, 2, 4), b=f(3, 4, 5))
case("addmv", "lt.addmv(x, a, b, 0)", lambda x, a, b: torch.addmv(x, a, b, beta=0), x=NAN[0], a=f(5, 4), b=f(4))
case("addr", "lt.addr(x, a, b, 0)", lambda x, a, b: torch.addr(x, a, b, beta=0), x=NAN, a=f(2), b=f(5))
B = torch.tensor([True, False, True])
case("addr", "lt.addr(x, a, b)", torch.addr, x=torch.tensor([[False], [True], [False]]), a=B, b=B)
case("kron", "lt.kron(x, y)", torch.kron, x=B, y=~B)
case("chain_matmul", "lt.chain_matmul(x, y, z)", lambda x, y, z: torch.linalg.multi_dot([x, y, z]),
     x=f(2, 3), y=f(3, 5), z=f(5, 2))
case("chain_matmul", "lt.chain_matmul{x, y, z, w}", lambda x, y, z, w: torch.linalg.multi_dot([x, y, z, w]),
     x=f(2, 3), y=f(3, 1), z=f(1, 6), w=f(6, 2))
case("chain_matmul", "lt.chain_matmul(x)", lambda x: x, x=f(2, 3))
P, Q = f(4, 3), f(2, 5, 3)
Q[0, 1] = P[2]
for p, name in ((0, "0"), (0.5, "0.5"), (1, "1"), (2, "2"), (3, "3"), (float("inf"), "math.huge")):
    case("cdist", "lt.cdist(x, y, %s)" % name, lambda x, y, p=p: torch.cdist(x, y, p), x=P, y=Q)
case("cdist", "lt.cdist(x, y)", torch.cdist, x=f(30, 3), y=f(4, 3))
case("cdist", "lt.cdist(x, y)", torch.cdist, x=f(3, 0), y=f(4, 0))
case("cdist", "lt.cdist(x, y)", torch.cdist, x=f(0, 3), y=f(4, 3))
