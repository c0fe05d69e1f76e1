"""Expected values of linear algebra, whose results are unique only up to signs: U, V, Q and the eigenvectors are compared
through products and absolute values."""

import torch
import torch.linalg as L

from ops import case, f, family, i

D = torch.float64


def square(*batch, n=3, dtype=D):
    """Returns well-conditioned matrices."""
    return torch.randn(*batch, n, n, dtype=D).to(dtype) + 3 * torch.eye(n, dtype=dtype)


def positive(*batch, n=3, dtype=D):
    a = torch.randn(*batch, n, n, dtype=D)
    return (a @ a.mT + torch.eye(n, dtype=D)).to(dtype)


def symmetric(*batch, n=3, dtype=D):
    a = torch.randn(*batch, n, n, dtype=D)
    return (a + a.mT).to(dtype)


def same(op, fn, space="linalg", args="", **inputs):
    """Adds a case whose call has the same text in both languages, apart from the namespace's name."""
    names = ", ".join(inputs)
    code = "lt.%s%s(%s%s)" % (space + "." if space else "", op, names, args)
    case(op, code, lambda **named: fn(*named.values()), **inputs)


def squares(op, fn, space="linalg", make=square):
    """Adds cases of matrices, batches of them, and empty ones."""
    for x in (make(), make(2), make(dtype=torch.float32), make(2, n=1), make(n=0), make(0), make(2, n=4).mT):
        same(op, fn, space, x=x)


def norms():
    family("norms")
    x = f(3, 4, dtype=D)
    for p in (2, 1, 0, 3.5, -1, "math.huge", "-math.huge"):
        q = {"math.huge": torch.inf, "-math.huge": -torch.inf}.get(p, p)
        case("vector_norm", "lt.linalg.vector_norm(x, %s)" % p, lambda x: L.vector_norm(x, q), x=x)
        case("vector_norm", "lt.linalg.vector_norm(x, %s, 1, true)" % p, lambda x: L.vector_norm(x, q, 0, True), x=x)
    for dtype in (torch.float16, torch.bfloat16):
        case("vector_norm", "lt.linalg.vector_norm(x)", L.vector_norm, x=f(8, dtype=dtype))
    for p in ('"fro"', '"nuc"', 2, -2, 1, -1, "math.huge", "-math.huge"):
        q = {"math.huge": torch.inf, "-math.huge": -torch.inf}.get(p, p)
        q = q.strip('"') if isinstance(q, str) else q
        y = f(2, 3, 4, dtype=D)
        case("matrix_norm", "lt.linalg.matrix_norm(x, %s)" % p, lambda x: L.matrix_norm(x, q), x=y)
        case("matrix_norm", "lt.linalg.matrix_norm(x, %s, {3, 1}, true)" % p, lambda x: L.matrix_norm(x, q, (2, 0), True), x=y)
        case("norm", "lt.linalg.norm(x, %s)" % p, lambda x: L.norm(x, q), x=x)
        case("cond", "lt.linalg.cond(x, %s)" % p, lambda x: L.cond(x, q), x=square())
    case("norm", "lt.linalg.norm(x)", L.norm, x=y)
    case("norm", "lt.linalg.norm(x, 3, 2)", lambda x: L.norm(x, 3, 1), x=y)
    case("cond", "lt.linalg.cond(x)", L.cond, x=f(2, 4, 3, dtype=D))
    for x in (f(4, 3, dtype=D), f(2, 3, 4, dtype=D), f(3, 1, dtype=D) @ f(1, 3, dtype=D)):
        same("matrix_rank", L.matrix_rank, x=x)
        same("pinv", L.pinv, x=x)
        case("pinverse", "lt.pinverse(x, 1e-3)", lambda x: torch.pinverse(x, 1e-3), x=x)
    case("matrix_rank", "lt.linalg.matrix_rank(x, {atol = 2.5})", lambda x: L.matrix_rank(x, atol=2.5), x=square(2))
    case("matrix_rank", "lt.linalg.matrix_rank(x, {hermitian = true, rtol = 0.5})",
         lambda x: L.matrix_rank(x, hermitian=True, rtol=0.5), x=symmetric(2))
    case("pinv", "lt.linalg.pinv(x, {hermitian = true})", lambda x: L.pinv(x, hermitian=True), x=symmetric(2))
    case("pinv", "lt.linalg.pinv(x, {rtol = 0.6})", lambda x: L.pinv(x, rtol=0.6), x=f(4, 3, dtype=D))


def factors():
    family("factors")
    squares("det", torch.det, "")
    squares("logdet", torch.logdet, "")
    squares("slogdet", torch.slogdet, "")
    squares("inv", L.inv)
    squares("inverse", torch.inverse, "")
    squares("inv_ex", L.inv_ex)
    squares("cholesky", torch.cholesky, "", positive)
    squares("cholesky_ex", L.cholesky_ex, "linalg", positive)
    case("cholesky", "lt.cholesky(x, true)", lambda x: L.cholesky(x, upper=True), x=positive(2))
    l = L.cholesky(positive(2))
    case("cholesky_solve", "lt.cholesky_solve(x, y)", torch.cholesky_solve, x=f(2, 3, 2, dtype=D), y=l)
    case("cholesky_solve", "lt.cholesky_solve(x, y, true)", lambda x, y: torch.cholesky_solve(x, y, True), x=f(3, 2, dtype=D),
         y=l.mT.contiguous())
    case("cholesky_inverse", "lt.cholesky_inverse(x)", torch.cholesky_inverse, x=l)
    case("cholesky_inverse", "lt.cholesky_inverse(x, true)", lambda x: torch.cholesky_inverse(x, True), x=l.mT.contiguous())
    for x in (f(3, 3, dtype=D), f(2, 4, 3, dtype=D), f(3, 4, dtype=D), f(0, 3, dtype=D)):
        same("lu_factor_ex", L.lu_factor_ex, x=x)
        same("lu", lambda x: torch.linalg.lu_factor_ex(x)[:2], "", x=x)
        same("lu", L.lu, x=x)
        case("lu_unpack", "lt.lu_unpack(lt.lu(x))", lambda x: torch.lu_unpack(*L.lu_factor_ex(x)[:2]), x=x)
        case("geqrf", "lt.geqrf(x)", torch.geqrf, x=x)
        case("orgqr", "lt.orgqr(lt.geqrf(x)):abs()", lambda x: torch.orgqr(*torch.geqrf(x)).abs(), x=x)
        case("householder_product", "lt.linalg.householder_product(lt.geqrf(x)):abs()",
             lambda x: L.householder_product(*torch.geqrf(x)).abs(), x=x)
        case("qr", "(function(q, r) return q:matmul(r) end)(lt.linalg.qr(x))", lambda x: x.clone(), x=x)
        case("qr", "(function(q, r) return r:abs() end)(lt.qr(x))", lambda x: L.qr(x)[1].abs(), x=x)
        case("qr", "(function(q, r) return r:abs() end)(lt.qr(x, false))", lambda x: L.qr(x, "complete")[1].abs(), x=x)
        case("svd", "(function(u, s, v) return s, (u * s:unsqueeze(-2)):matmul(v) end)(lt.linalg.svd(x, false))",
             lambda x: (L.svdvals(x), x.clone()), x=x)
        case("svd", "(function(u, s, v) return u:matmul(u:transpose(-2, -1)), s end)(lt.svd(x, false))",
             lambda x: (torch.eye(x.shape[-2], dtype=D).expand(*x.shape[:-1], x.shape[-2]), L.svdvals(x)), x=x)
        same("svdvals", L.svdvals, x=x)
    same("lu_factor", L.lu_factor, x=square(2))
    case("ormqr", "(function(a, t) return lt.ormqr(a, t, y):abs() end)(lt.geqrf(x))",
         lambda x, y: torch.ormqr(*torch.geqrf(x), y).abs(), x=f(4, 3, dtype=D), y=torch.eye(4, dtype=D))
    lu, pivots = L.lu_factor(square(2))
    b = f(2, 3, 2, dtype=D)
    for left in (True, False):
        for adjoint in (True, False):
            text = "{left = %s, adjoint = %s}" % (str(left).lower(), str(adjoint).lower())
            case("lu_solve", "lt.linalg.lu_solve(x, y, z, %s)" % text,
                 lambda x, y, z: L.lu_solve(x, y, z, left=left, adjoint=adjoint), x=lu, y=pivots, z=b if left else b.mT)
    case("lu_solve", "lt.lu_solve(x, y, z)", torch.lu_solve, x=b, y=lu, z=pivots)
    x = symmetric(2)
    same("ldl_factor", L.ldl_factor, x=x)
    same("ldl_factor_ex", L.ldl_factor_ex, x=x)
    case("ldl_solve", "(function(a, p) return lt.linalg.ldl_solve(a, p, y) end)(lt.linalg.ldl_factor(x))",
         lambda x, y: L.ldl_solve(*L.ldl_factor(x), y), x=x, y=b)


def systems():
    family("systems")
    for x, y in ((square(), f(3, 2, dtype=D)), (square(2), f(3, 2, dtype=D)), (square(2), f(2, 3, dtype=D)),
                 (square(), f(3, dtype=D)), (square(n=0), f(0, 2, dtype=D)), (square(dtype=torch.float32), f(3))):
        same("solve", L.solve, x=x, y=y)
        same("solve_ex", L.solve_ex, x=x, y=y)
    case("solve", "lt.linalg.solve(x, y, {left = false})", lambda x, y: L.solve(x, y, left=False), x=square(2), y=f(4, 3, dtype=D))
    for upper in (True, False):
        for left in (True, False):
            for unit in (True, False):
                text = ", ".join("%s = %s" % (k, str(v).lower()) for k, v in
                                 (("upper", upper), ("left", left), ("unitriangular", unit)))
                case("solve_triangular", "lt.linalg.solve_triangular(x, y, {%s})" % text,
                     lambda x, y: L.solve_triangular(x, y, upper=upper, left=left, unitriangular=unit), x=square(2),
                     y=f(3, 2, dtype=D) if left else f(2, 3, dtype=D))
        case("triangular_solve", "lt.triangular_solve(x, y, %s, true)" % str(upper).lower(),
             lambda x, y: torch.triangular_solve(x, y, upper, True), x=f(3, 2, dtype=D), y=square(2))
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        case("lstsq", 'lt.linalg.lstsq(x, y, {driver = "%s"})' % driver, lambda x, y: L.lstsq(x, y, driver=driver),
             x=f(2, 4, 3, dtype=D), y=f(2, 4, 2, dtype=D))
    case("lstsq", "lt.linalg.lstsq(x, y)", L.lstsq, x=f(3, 4, dtype=D), y=f(3, 2, dtype=D))
    same("tensorinv", L.tensorinv, x=(square(n=6)).reshape(2, 3, 6))
    same("tensorsolve", L.tensorsolve, x=square(n=6).reshape(2, 3, 6), y=f(2, 3, dtype=D))
    case("tensorsolve", "lt.linalg.tensorsolve(x, y, {1, 3})", lambda x, y: L.tensorsolve(x, y, (0, 2)),
         x=torch.randn(3, 4, 4, 3, dtype=D), y=f(3, 4, dtype=D))


def spectral():
    family("spectral")
    for x in (symmetric(), symmetric(2), symmetric(dtype=torch.float32), symmetric(n=0)):
        same("eigvalsh", L.eigvalsh, x=x)
        case("eigh", "(function(l, v) return l, (v * l:unsqueeze(-2)):matmul(v:transpose(-2, -1)) end)(lt.linalg.eigh(x, \"U\"))",
             lambda x: (L.eigvalsh(x), x.clone()), x=x)
        # Symmetric matrices have real eigenvalues.
        case("eigvals", "(lt.real(lt.linalg.eigvals(x)):sort())", lambda x: L.eigvalsh(x), x=x)
        case("eig", "(function(l, v) return lt.real((v * l:unsqueeze(-2)):matmul(lt.linalg.inv(v))) end)(lt.linalg.eig(x))",
             lambda x: x.clone(), x=x)
    for x in (positive(), positive(2)):
        same("matrix_sqrth", L.matrix_sqrth, x=x)
    same("polar", L.polar, x=f(4, 3, dtype=D))
    for x in (square(), f(2, 3, 3, dtype=D), 5 * f(3, 3, dtype=D), f(2, 2)):
        same("matrix_exp", torch.matrix_exp, "", x=x)
    for n in (0, 1, 5, -2):
        case("matrix_power", "lt.matrix_power(x, %d)" % n, lambda x: torch.matrix_power(x, n), x=square(2))
    case("svd_lowrank", "(function(u, s, v) return s end)(lt.svd_lowrank(x, 3))", lambda x: L.svdvals(x), x=f(4, 3, dtype=D))
    case("pca_lowrank", "(function(u, s, v) return s end)(lt.pca_lowrank(x, 3))",
         lambda x: L.svdvals(x - x.mean(-2, keepdim=True)), x=f(5, 3, dtype=D))


def vectors():
    family("vectors")
    for dtype in (torch.float32, torch.float64, torch.int64):
        make = i if dtype == torch.int64 else f
        same("cross", torch.cross, "", x=make(2, 3, dtype=dtype), y=make(2, 3, dtype=dtype))
        same("cross", L.cross, x=make(2, 3, dtype=dtype), y=make(1, 3, dtype=dtype))
        same("vander", L.vander, x=make(2, 4, dtype=dtype))
    case("vander", "lt.linalg.vander(x, 3)", lambda x: L.vander(x, N=3), x=i(4, dtype=torch.int32))
    case("cross", "lt.linalg.cross(x, y, 1)", lambda x, y: L.cross(x, y, dim=0), x=f(3, 2), y=f(3, 2))
    same("vecdot", L.vecdot, x=f(2, 3), y=f(3))
    case("vecdot", "lt.linalg.vecdot(x, y, 1)", lambda x, y: L.vecdot(x, y, dim=0), x=f(2, 3), y=f(2, 3))
    case("multi_dot", "lt.linalg.multi_dot{x, y, z}", lambda x, y, z: L.multi_dot([x, y, z]), x=f(3), y=f(3, 4), z=f(4, 2))
    same("diagonal", L.diagonal, x=f(2, 3, 4))
    case("diagonal", "lt.linalg.diagonal(x, 1, 1, 3)", lambda x: L.diagonal(x, offset=1, dim1=0, dim2=2), x=f(2, 3, 4))


for fill in (norms, factors, systems, spectral, vectors):
    fill()
