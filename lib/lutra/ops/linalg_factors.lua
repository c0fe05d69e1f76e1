--- Linear algebra: factorizations, linear systems, inverses and determinants, through LAPACK (the
-- internal ops _linalg_* run on the CPU for every device without a kernel of its own).

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local matrices = require "lutra.internal.matrices"
local tensors = require "lutra.internal.tensors"

local ops = core._ops
local adjoint, broadcast, recorded = matrices.adjoint, matrices.broadcast, matrices.recorded

-- Solves a triangular system with matrices of the same batch dimensions.
local function divide(a, b, upper, left, unit)
  return ops._linalg_solve_triangular(a, b, upper, left ~= false, unit or false)
end

-- ---- Cholesky

lt._define{
  signature = "lt.cholesky(Tensor self, bool upper = false)",
  doc = "Cholesky factor L of hermitian positive definite matrices {*, n, n}: self = L L^H; "
    .. "`upper` gives L^H. Raises an error for other matrices. Gradient: Murray 2016.",
  method = true, also = {"linalg"},
  example = "lt.cholesky(lt.tensor{{4.0, 2}, {2, 5}})",
  fn = function(a, upper)
    matrices.check_system("cholesky", "self", a)
    return (ops._linalg_cholesky(a, upper, true))
  end,
}

lt._define{
  signature = "linalg.cholesky_ex(Tensor A, bool upper = false, bool check_errors = false) -> "
    .. "Tensor L, Tensor info",
  doc = "Cholesky factor, and for each matrix 0 or the order of the leading minor that is not "
    .. "positive definite.",
  example = "lt.linalg.cholesky_ex(lt.tensor{{4.0, 2}, {2, 5}})",
  fn = function(a, upper, check)
    matrices.check_system("cholesky_ex", "A", a)
    return ops._linalg_cholesky(a, upper, check)
  end,
}

-- Solves A X = B by the Cholesky factor of A.
local function cholesky_solve(b, l, upper)
  if upper then return divide(l, divide(adjoint(l), b, false), true) end
  return divide(adjoint(l), divide(l, b, false), true)
end

-- With C = gB X^H, where gB = A^-1 gX: gL = -(C + C^H) L, for A = L L^H. As in PyTorch it is not
-- restricted to the triangle.
local CholeskySolve = lt.autograd.Function:extend "CholeskySolve"

function CholeskySolve.forward(ctx, b, l, upper)
  local x = cholesky_solve(b, l, upper)
  ctx:save_for_backward(l, x)
  ctx.upper = upper
  return x
end

function CholeskySolve.backward(ctx, grad)
  local l, x = ctx:saved()
  local gb = lt.cholesky_solve(grad, l, ctx.upper)
  local c = gb:matmul(adjoint(x))
  c = c + adjoint(c)
  return gb, -(ctx.upper and l:matmul(c) or c:matmul(l))
end

lt._define{
  signature = "lt.cholesky_solve(Tensor self, Tensor L, bool upper = false)",
  doc = "X with A X = self, by the Cholesky factor of A = L L^H (`upper`: A = L^H L). Batch "
    .. "dimensions are broadcast.",
  method = true,
  example = "lt.cholesky_solve(lt.ones(2, 1), lt.tensor{{2.0, 0}, {1, 2}})",
  fn = function(b, l, upper)
    matrices.check_system("cholesky_solve", "L", l)
    matrices.check_right("cholesky_solve", "self", b, "L", l)
    l, b = broadcast("cholesky_solve", l, b)
    return recorded(b, l) and CholeskySolve(b, l, upper) or cholesky_solve(b, l, upper)
  end,
}

-- gL = -X (g + g^H) X L for X = A^-1, A = L L^H.
local CholeskyInverse = lt.autograd.Function:extend "CholeskyInverse"

function CholeskyInverse.forward(ctx, l, upper)
  local inverse = divide(l, matrices.eye_like(l), upper)
  local x = upper and inverse:matmul(adjoint(inverse)) or adjoint(inverse):matmul(inverse)
  ctx:save_for_backward(l, x)
  ctx.upper = upper
  return x
end

function CholeskyInverse.backward(ctx, grad)
  local l, x = ctx:saved()
  local c = x:matmul(grad + adjoint(grad)):matmul(x)
  return -(ctx.upper and l:matmul(c) or c:matmul(l))
end

lt._define{
  signature = "lt.cholesky_inverse(Tensor self, bool upper = false)",
  doc = "Inverse of A from its Cholesky factor self: A = self self^H (`upper`: self^H self).",
  method = true,
  example = "lt.cholesky_inverse(lt.tensor{{2.0, 0}, {1, 2}})",
  fn = function(l, upper)
    matrices.check_system("cholesky_inverse", "self", l)
    return CholeskyInverse(l, upper)
  end,
}

-- ---- LU

local function check_lu(title, name, a, pivot)
  matrices.check_dtype(title, name, a)
  args.check(pivot, "%s: cannot factor without row exchanges (pivot = false) on device %q", title,
    a.device)
end

lt._define{
  signature = "linalg.lu_factor_ex(Tensor A, bool pivot = true, bool check_errors = false) -> "
    .. "Tensor LU, Tensor pivots, Tensor info",
  doc = "LU factors as lu_factor, and for each matrix 0 or the element of U's diagonal that is 0.",
  example = "lt.linalg.lu_factor_ex(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, pivot, check)
    check_lu("lu_factor_ex", "A", a, pivot)
    return ops._linalg_lu_factor(a, check)
  end,
}

lt._define{
  signature = "linalg.lu_factor(Tensor A, bool pivot = true) -> Tensor LU, Tensor pivots",
  doc = "LU factors of matrices {*, m, n} in one matrix, and the row exchanges: row i was "
    .. "exchanged with row pivots[i]. Raises an error when U is singular.",
  example = "lt.linalg.lu_factor(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, pivot)
    check_lu("lu_factor", "A", a, pivot)
    local lu, pivots = ops._linalg_lu_factor(a, true)
    return lu, pivots
  end,
}

lt._define{
  signature = "lt.lu(Tensor self, bool pivot = true, bool get_infos = false)",
  doc = "LU factors and pivots as lu_factor, without an error for singular matrices; get_infos "
    .. "also returns the infos of lu_factor_ex.",
  method = true,
  example = "lt.lu(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, pivot, infos)
    check_lu("lu", "self", a, pivot)
    local lu, pivots, info = ops._linalg_lu_factor(a, false)
    if infos then return lu, pivots, info end
    return lu, pivots
  end,
}

local function check_pivots(title, name, pivots)
  args.check(pivots.dtype == "int32", "%s: expected dtype \"int32\", as lu_factor returns it, for "
    .. "argument '%s', got %q", title, name, pivots.dtype)
end

-- Returns the permutation matrices P of pivots for m rows: A = P L U.
local function permutation_matrix(pivots, m, dtype)
  local order = ops._linalg_lu_permutation(pivots, m):unsqueeze(-1)
  local shape = matrices.shape_of(order, 1, m)
  local zeros = lt.zeros(shape, {dtype = dtype, device = pivots.device})
  return zeros:scatter(-1, order, 1):transpose(-2, -1)
end

-- Returns the factors L {*, m, k} and U {*, k, n} that lu_factor stores in one matrix.
local function split(lu)
  local m, n = lu:size(-2), lu:size(-1)
  local k = math.min(m, n)
  local left = lu:narrow(-1, 1, k):tril(-1)
  return left + matrices.eye(lu, m, k), lu:narrow(-2, 1, k):triu()
end

lt._define{
  signature = "lt.lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data = true, bool "
    .. "unpack_pivots = true) -> Tensor P, Tensor L, Tensor U",
  doc = "The factors P, L and U of lu_factor's results: A = P L U. Those that are not unpacked "
    .. "are empty.",
  example = "lt.lu_unpack(lt.lu(lt.tensor{{1.0, 2}, {3, 4}}))",
  fn = function(lu, pivots, data, with_pivots)
    matrices.check("lu_unpack", "LU_data", lu)
    check_pivots("lu_unpack", "LU_pivots", pivots)
    local empty = {dtype = lu.dtype, device = lu.device}
    local l, u = lt.empty(0, empty), lt.empty(0, empty)
    if data then l, u = split(lu) end
    local p = with_pivots and permutation_matrix(pivots, lu:size(-2), lu.dtype)
      or lt.empty(0, empty)
    return p, l, u
  end,
}

lt._define{
  signature = "linalg.lu(Tensor A, bool pivot = true) -> Tensor P, Tensor L, Tensor U",
  doc = "LU decomposition A = P L U of matrices {*, m, n} with row exchanges.",
  example = "lt.linalg.lu(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, pivot)
    check_lu("lu", "A", a, pivot)
    local lu, pivots = ops._linalg_lu_factor(a, false)
    local l, u = split(lu)
    return permutation_matrix(pivots, a:size(-2), a.dtype), l, u
  end,
}

-- Returns b with its rows in the order of `order` {*, n}.
local function reorder(b, order)
  return b:gather(-2, order:unsqueeze(-1):expand(b.shape))
end

-- Solves A X = B, or A^H X = B, with A = P L U.
local function lu_solve(lu, pivots, b, conjugated)
  local order = ops._linalg_lu_permutation(pivots, lu:size(-1))
  lu, b = broadcast("lu_solve", lu, b)
  order = order:expand(matrices.shape_of(lu, 2, lu:size(-1)))
  if conjugated then
    local h = adjoint(lu)
    local y = divide(h, divide(h, b, false), true, true, true)
    return reorder(y, order:argsort(-1))
  end
  return divide(lu, divide(lu, reorder(b, order), false, true, true), true)
end

lt._define{
  signature = "linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, bool left = true, bool adjoint "
    .. "= false)",
  doc = "X with A X = B (X A = B unless `left`) by the results of lu_factor; `adjoint` solves "
    .. "with A^H.",
  example = "lt.linalg.lu_solve(lt.tensor{{3.0, 4}, {0.5, 1}}, lt.tensor({2, 2}, {dtype = "
    .. "\"int32\"}), lt.ones(2, 1))",
  fn = function(lu, pivots, b, left, conjugated)
    matrices.check_system("lu_solve", "LU", lu)
    check_pivots("lu_solve", "pivots", pivots)
    matrices.check_right("lu_solve", "B", b, "LU", lu, left)
    if left then return lu_solve(lu, pivots, b, conjugated) end
    return adjoint(lu_solve(lu, pivots, adjoint(b), not conjugated))
  end,
}

lt._define{
  signature = "lt.lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots)",
  doc = "X with A X = self by the results of lu_factor(A).",
  method = true,
  example = "lt.lu_solve(lt.ones(2, 1), lt.tensor{{3.0, 4}, {0.5, 1}}, lt.tensor({2, 2}, {dtype "
    .. "= \"int32\"}))",
  fn = function(b, lu, pivots)
    matrices.check_system("lu_solve", "LU_data", lu)
    check_pivots("lu_solve", "LU_pivots", pivots)
    matrices.check_right("lu_solve", "self", b, "LU_data", lu)
    return lu_solve(lu, pivots, b, false)
  end,
}

-- ---- LDL

lt._define{
  signature = "linalg.ldl_factor_ex(Tensor A, bool hermitian = false, bool check_errors = false) "
    .. "-> Tensor LD, Tensor pivots, Tensor info",
  doc = "LDL factors as ldl_factor, and for each matrix 0 or the element of D's diagonal that is "
    .. "0.",
  example = "lt.linalg.ldl_factor_ex(lt.tensor{{1.0, 2}, {2, 1}})",
  fn = function(a, hermitian, check)
    matrices.check_system("ldl_factor_ex", "A", a)
    return ops._linalg_ldl_factor(a, hermitian, check)
  end,
}

lt._define{
  signature = "linalg.ldl_factor(Tensor A, bool hermitian = false) -> Tensor LD, Tensor pivots",
  doc = "LDL factors of symmetric (`hermitian`: hermitian) matrices {*, n, n} in LAPACK's form "
    .. "(Bunch and Kaufman 1977). Has no gradient.",
  example = "lt.linalg.ldl_factor(lt.tensor{{1.0, 2}, {2, 1}})",
  fn = function(a, hermitian)
    matrices.check_system("ldl_factor", "A", a)
    local ld, pivots = ops._linalg_ldl_factor(a, hermitian, true)
    return ld, pivots
  end,
}

lt._define{
  signature = "linalg.ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian = false)",
  doc = "X with A X = B by the results of ldl_factor(A). Has no gradient.",
  example = "lt.linalg.ldl_solve(lt.tensor{{1.0, 0}, {2, -3}}, lt.tensor({1, 2}, {dtype = "
    .. "\"int32\"}), lt.ones(2, 1))",
  fn = function(ld, pivots, b, hermitian)
    matrices.check_system("ldl_solve", "LD", ld)
    matrices.check_right("ldl_solve", "B", b, "LD", ld)
    ld, b = broadcast("ldl_solve", ld, b)
    pivots = pivots:expand(matrices.shape_of(ld, 2, ld:size(-1)))
    return ops._linalg_ldl_solve(ld, pivots, b, hermitian)
  end,
}

-- ---- linear systems

-- Solves A X = B (X A = B unless `left`), where B may be a vector, or a batch of them.
local function solve(title, a, b, left, check)
  matrices.check_system(title, "A", a)
  local vector = matrices.is_vector(a, b)
  args.check(left or not vector,
    "%s: expected matrices for argument 'B' with left = false, got shape %s", title,
    b.shape)
  if vector then b = b:unsqueeze(-1) end
  matrices.check_right(title, "B", b, "A", a, left)
  a, b = broadcast(title, a, b)
  local x, info = ops._linalg_solve(a, b, left, check)
  return vector and x:squeeze(-1) or x, info
end

lt._define{
  signature = "linalg.solve_ex(Tensor A, Tensor B, bool left = true, bool check_errors = false) "
    .. "-> Tensor result, Tensor info",
  doc = "Solution as solve, and for each matrix 0 or the element of U's diagonal that is 0 (see "
    .. "lu_factor).",
  example = "lt.linalg.solve_ex(lt.tensor{{1.0, 2}, {3, 4}}, lt.ones(2))",
  fn = function(a, b, left, check) return solve("solve_ex", a, b, left, check) end,
}

lt._define{
  signature = "linalg.solve(Tensor A, Tensor B, bool left = true)",
  doc = "X with A X = B (X A = B unless `left`) for square matrices A {*, n, n} and B {*, n, k} or "
    .. "{*, n}. Batch dimensions are broadcast. Raises an error when A is singular. Gradient: "
    .. "Giles 2008.",
  example = "lt.linalg.solve(lt.tensor{{1.0, 2}, {3, 4}}, lt.ones(2))",
  fn = function(a, b, left) return (solve("solve", a, b, left, true)) end,
}

lt._define{
  signature = "linalg.solve_triangular(Tensor A, Tensor B, bool upper, bool left = true, bool "
    .. "unitriangular = false)",
  doc = "X with A X = B (X A = B unless `left`) for triangular matrices A {*, n, n}, of which "
    .. "only the `upper` or the lower triangle is read (`unitriangular`: without its diagonal, "
    .. "which counts as 1). Batch dimensions are broadcast.",
  example = "lt.linalg.solve_triangular(lt.eye(2), lt.ones(2, 1), {upper = true})",
  fn = function(a, b, upper, left, unit)
    matrices.check_system("solve_triangular", "A", a)
    matrices.check_right("solve_triangular", "B", b, "A", a, left)
    a, b = broadcast("solve_triangular", a, b)
    return divide(a, b, upper, left, unit)
  end,
}

lt._define{
  signature = "lt.triangular_solve(Tensor self, Tensor A, bool upper = true, bool transpose = "
    .. "false, bool unitriangular = false) -> Tensor solution, Tensor coefficient",
  doc = "X with A X = self (`transpose`: A^T X = self) for triangular A, and a copy of A.",
  method = true,
  example = "lt.triangular_solve(lt.ones(2, 1), lt.tensor{{1.0, 2}, {0, 4}})",
  fn = function(b, a, upper, transposed, unit)
    matrices.check_system("triangular_solve", "A", a)
    matrices.check_right("triangular_solve", "self", b, "A", a)
    a, b = broadcast("triangular_solve", a, b)
    local m = transposed and a:transpose(-2, -1) or a
    if transposed then upper = not upper end
    return divide(m, b, upper, true, unit), a:clone()
  end,
}

-- ---- inverses and determinants

lt._define{
  signature = "lt.inverse(Tensor self)",
  doc = "Inverse of square matrices {*, n, n}. Raises an error when one is singular. Gradient: "
    .. "Giles 2008.",
  method = true,
  example = "lt.inverse(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a)
    matrices.check_system("inverse", "self", a)
    return (ops._linalg_inv(a, true))
  end,
}

lt._define{
  signature = "linalg.inv(Tensor A)",
  doc = "Inverse of square matrices {*, n, n}: inverse.",
  example = "lt.linalg.inv(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a)
    matrices.check_system("inv", "A", a)
    return (ops._linalg_inv(a, true))
  end,
}

lt._define{
  signature = "linalg.inv_ex(Tensor A, bool check_errors = false) -> Tensor inverse, Tensor info",
  doc = "Inverse, and for each matrix 0 or the element of U's diagonal that is 0 (see lu_factor).",
  example = "lt.linalg.inv_ex(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, check)
    matrices.check_system("inv_ex", "A", a)
    return ops._linalg_inv(a, check)
  end,
}

lt._define{
  signature = "lt.det(Tensor self)",
  doc = "Determinant of square matrices {*, n, n}. Gradient: Giles 2008.",
  method = true, also = {"linalg"},
  example = "lt.det(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a) return ops._linalg_det(a) end,
}

lt._define{
  signature = "lt.slogdet(Tensor self) -> Tensor sign, Tensor logabsdet",
  doc = "Sign and logarithm of the absolute value of the determinant: det = sign * e^logabsdet.",
  method = true, also = {"linalg"},
  example = "lt.slogdet(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a) return ops._linalg_slogdet(a) end,
}

lt._define{
  signature = "lt.logdet(Tensor self)",
  doc = "Logarithm of the determinant; NaN where it is negative.",
  method = true,
  example = "lt.logdet(lt.tensor{{4.0, 2}, {2, 5}})",
  fn = function(a)
    matrices.check_system("logdet", "self", a)
    local sign, size = ops._linalg_slogdet(a)
    if matrices.is_complex(a) then return sign:log() + size end
    return lt.where(sign:lt(0), 0 / 0, size)
  end,
}

-- ---- orthogonal factors

lt._define{
  signature = "linalg.qr(Tensor A, 'reduced'|'complete'|'r' mode = 'reduced') -> Tensor Q, Tensor "
    .. "R",
  doc = "QR decomposition A = Q R of matrices {*, m, n}: Q {*, m, k} has orthonormal columns, R "
    .. "{*, k, n} is upper triangular, k = min(m, n) or, if complete, m. In mode \"r\" Q is empty. "
    .. "Gradient: Walter and Lehmann 2010.",
  example = "lt.linalg.qr(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, mode) return ops._linalg_qr(a, mode) end,
}

lt._define{
  signature = "lt.qr(Tensor self, bool some = true) -> Tensor Q, Tensor R",
  doc = "QR decomposition: linalg.qr, complete unless `some`.",
  method = true,
  example = "lt.qr(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, some) return ops._linalg_qr(a, some and "reduced" or "complete") end,
}

-- Multiplies b by the reflections H_i = 1 - tau_i v_i v_i^H, with ops that have gradients: H_1 ...
-- H_k b, or from the right b H_1 ... H_k; `conjugated`: by the adjoint of this product.
local function reflect(a, tau, b, left, conjugated)
  local m, k = a:size(-2), tau:size(-1)
  local vectors = a:tril(-1) + matrices.eye(a, m, a:size(-1))
  if conjugated then tau = matrices.conj(tau) end
  local forward = left == conjugated
  for step = 1, k do
    local i = forward and step or k + 1 - step
    local v = vectors:narrow(-1, i, 1)
    local factor = tau:narrow(-1, i, 1):unsqueeze(-1)
    if left then
      b = b - factor * v:matmul(adjoint(v):matmul(b))
    else
      b = b - factor * b:matmul(v):matmul(adjoint(v))
    end
  end
  return b
end

lt._define{
  signature = "lt.orgqr(Tensor self, Tensor tau)",
  doc = "The first n columns {*, m, n} of the product of the Householder reflections that geqrf "
    .. "returns.",
  method = true,
  example = "lt.orgqr(lt.geqrf(lt.tensor{{1.0, 2}, {3, 4}}))",
  fn = function(a, tau) return lt.linalg.householder_product(a, tau) end,
}

lt._define{
  signature = "linalg.householder_product(Tensor A, Tensor tau)",
  doc = "The first n columns {*, m, n} of the product of Householder reflections H_i = 1 - tau_i "
    .. "v_i v_i^H, where v_i is column i of A {*, m, n} below the diagonal, after 1 on it.",
  example = "lt.linalg.householder_product(lt.geqrf(lt.tensor{{1.0, 2}, {3, 4}}))",
  fn = function(a, tau)
    if not recorded(a, tau) then return ops._linalg_householder_product(a, tau) end
    ops._linalg_householder_product(a:detach():to "meta", tau:detach():to "meta") -- its checks
    return reflect(a, tau, matrices.eye_like(a) + tensors.zeros_of(a), true, false)
  end,
}

lt._define{
  signature = "lt.ormqr(Tensor self, Tensor tau, Tensor other, bool left = true, bool transpose = "
    .. "false)",
  doc = "Q other, or other Q unless `left`, where Q {*, m, m} is the product of the Householder "
    .. "reflections of geqrf's results (self, tau); `transpose`: with Q^H.",
  method = true,
  example = "lt.ormqr(lt.tensor{{1.0, 0}, {2, 1}}, lt.tensor{1.0, 0}, lt.eye(2))",
  fn = function(a, tau, other, left, transposed)
    if not recorded(a, tau, other) then return ops._ormqr(a, tau, other, left, transposed) end
    ops._ormqr(a:detach():to "meta", tau:detach():to "meta", other:detach():to "meta", left,
      transposed)
    return reflect(a, tau, other, left, transposed)
  end,
}
