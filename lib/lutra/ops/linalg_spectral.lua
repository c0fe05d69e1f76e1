--- Linear algebra: singular values, eigenvalues, and what is computed from them.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local matrices = require "lutra.internal.matrices"
local tensors = require "lutra.internal.tensors"

local ops = core._ops
local adjoint, recorded = matrices.adjoint, matrices.recorded

local EPSILON = {float32 = 2 ^ -23, complex64 = 2 ^ -23, float64 = 2 ^ -52, complex128 = 2 ^ -52}
local real_dtype = tensors.real_dtype

-- ---- singular values

local DRIVER = "'gesvd'|'gesvdj'|'gesvda'? driver = nil"

local function check_svd(title, a, driver)
  matrices.check_dtype(title, "A", a)
  args.check(driver == nil or a.is_cuda, "%s: expected nil for argument 'driver' of a tensor on "
    .. "device %q, got %q: only CUDA's library has several drivers", title, a.device, driver)
end

-- Returns the singular values of a; with singular vectors only where autograd needs them.
local function singular_values(a)
  local _, s = ops._linalg_svd(a, false, recorded(a))
  return s
end

lt._define{
  signature = "linalg.svd(Tensor A, bool full_matrices = true, " .. DRIVER .. ") -> Tensor U, "
    .. "Tensor S, Tensor Vh",
  doc = "Singular value decomposition A = U diag(S) Vh of matrices {*, m, n}; S is descending. "
    .. "Without full_matrices U is {*, m, k} and Vh {*, k, n}, k = min(m, n). Gradient: Townsend "
    .. "2016, Wan and Zhang 2019; defined for distinct singular values.",
  example = "lt.linalg.svd(lt.tensor{{3.0, 0}, {4, 5}})",
  fn = function(a, full, driver)
    check_svd("svd", a, driver)
    return ops._linalg_svd(a, full, true)
  end,
}

lt._define{
  signature = "linalg.svdvals(Tensor A, " .. DRIVER .. ")",
  doc = "Singular values of matrices {*, m, n}, descending.",
  example = "lt.linalg.svdvals(lt.tensor{{3.0, 0}, {4, 5}})",
  fn = function(a, driver)
    check_svd("svdvals", a, driver)
    return singular_values(a)
  end,
}

lt._define{
  signature = "lt.svd(Tensor self, bool some = true, bool compute_uv = true) -> Tensor U, Tensor "
    .. "S, Tensor V",
  doc = "Singular value decomposition self = U diag(S) V^H: linalg.svd, with V in place of Vh. "
    .. "Without compute_uv, U and V are zeros.",
  method = true,
  example = "lt.svd(lt.tensor{{3.0, 0}, {4, 5}})",
  fn = function(a, some, vectors)
    matrices.check_dtype("svd", "self", a)
    if vectors then
      local u, s, vh = ops._linalg_svd(a, not some, true)
      return u, s, adjoint(vh)
    end
    local m, n, like = a:size(-2), a:size(-1), {dtype = a.dtype, device = a.device}
    return lt.zeros(matrices.shape_of(a, 2, m, m), like), singular_values(a),
      lt.zeros(matrices.shape_of(a, 2, n, n), like)
  end,
}

-- ---- eigenvalues

local TRIANGLE = "'L'|'U'|'l'|'u' UPLO = 'L'"

lt._define{
  signature = "linalg.eigh(Tensor A, " .. TRIANGLE .. ") -> Tensor eigenvalues, Tensor "
    .. "eigenvectors",
  doc = "Eigenvalues L, ascending, and eigenvectors V of hermitian matrices A = V diag(L) V^H, of "
    .. "which the lower (\"U\": the upper) triangle is read. Gradient: Giles 2008; defined for "
    .. "distinct eigenvalues.",
  example = "lt.linalg.eigh(lt.tensor{{2.0, 1}, {1, 2}})",
  fn = function(a, triangle)
    matrices.check_system("eigh", "A", a)
    return ops._linalg_eigh(a, triangle:upper() == "U", true)
  end,
}

lt._define{
  signature = "linalg.eigvalsh(Tensor A, " .. TRIANGLE .. ")",
  doc = "Eigenvalues of hermitian matrices, ascending; see eigh.",
  example = "lt.linalg.eigvalsh(lt.tensor{{2.0, 1}, {1, 2}})",
  fn = function(a, triangle)
    matrices.check_system("eigvalsh", "A", a)
    return (ops._linalg_eigh(a, triangle:upper() == "U", recorded(a)))
  end,
}

lt._define{
  signature = "linalg.eig(Tensor A) -> Tensor eigenvalues, Tensor eigenvectors",
  doc = "Complex eigenvalues and eigenvectors of norm 1 of square matrices, in no particular "
    .. "order. Gradient: Boeddeker et al. 2017; defined for distinct eigenvalues.",
  example = "lt.linalg.eig(lt.tensor{{2.0, 1}, {1, 2}})",
  fn = function(a)
    matrices.check_system("eig", "A", a)
    return ops._linalg_eig(a, true)
  end,
}

lt._define{
  signature = "linalg.eigvals(Tensor A)",
  doc = "Complex eigenvalues of square matrices, in no particular order.",
  example = "lt.linalg.eigvals(lt.tensor{{2.0, 1}, {1, 2}})",
  fn = function(a)
    matrices.check_system("eigvals", "A", a)
    return (ops._linalg_eig(a, recorded(a)))
  end,
}

-- ---- rank and pseudoinverse

-- Returns max(atol, rtol * largest), where largest {*, 1} belongs to the matrices a. By default
-- rtol is max(m, n) * epsilon, or 0 if atol is given.
local function tolerance(title, a, largest, atol, rtol)
  local function number(t, name)
    if not lt.is_tensor(t) then return t end
    args.check(not matrices.is_complex(t), "%s: expected a real tensor for argument '%s', got %q",
      title, name, t.dtype)
    return t.ndim > 0 and t:unsqueeze(-1) or t
  end
  if rtol == nil then
    local default = math.max(a:size(-2), a:size(-1)) * EPSILON[a.dtype]
    if lt.is_tensor(atol) then
      rtol = lt.where(atol:gt(0), 0, lt.full({}, default, {dtype = real_dtype(a),
        device = a.device}))
    else
      rtol = (atol or 0) > 0 and 0 or default
    end
  end
  local relative = largest * number(rtol, "rtol")
  atol = number(atol or 0, "atol")
  return lt.is_tensor(atol) and lt.maximum(relative, atol:to(relative.dtype))
    or relative:clamp{min = atol}
end

-- Returns the absolute eigenvalues or the singular values of a, and the largest {*, 1}.
local function sizes(a, hermitian)
  local s
  if hermitian then
    s = (ops._linalg_eigh(a, false, false)):abs()
  else
    local _
    _, s = ops._linalg_svd(a, false, false)
  end
  if s:size(-1) == 0 then return s, s.new_zeros(s, matrices.shape_of(s, 1, 1)) end
  return s, s:amax{-1, keepdim = true}
end

lt._define{
  signature = "linalg.matrix_rank(Tensor A, Tensor|float? tol = nil, bool hermitian = false, "
    .. "Tensor|float? atol = nil, Tensor|float? rtol = nil)",
  doc = "Number of singular values (`hermitian`: absolute eigenvalues) above max(atol, rtol * the "
    .. "largest); by default atol = 0 and rtol = max(m, n) * epsilon, or 0 if atol is given. tol "
    .. "is atol with rtol = 0.",
  example = "lt.linalg.matrix_rank(lt.tensor{{1.0, 2}, {2, 4}})",
  fn = function(a, tol, hermitian, atol, rtol)
    local check = hermitian and matrices.check_system or matrices.check_dtype
    check("matrix_rank", "A", a)
    if tol ~= nil then atol, rtol = tol, 0 end
    local s, largest = sizes(a:detach(), hermitian)
    return s:gt(tolerance("matrix_rank", a, largest, atol, rtol)):sum(-1)
  end,
}

-- Returns the pseudoinverse: the singular values up to the tolerance count as 0.
local function pseudoinverse(a, hermitian, atol, rtol)
  if a:numel() == 0 then
    return a.new_zeros(a, matrices.shape_of(a, 2, a:size(-1), a:size(-2)))
  end
  local function inverted(s)
    local size = s:abs()
    local limit = tolerance("pinv", a, size:amax{-1, keepdim = true}, atol, rtol)
    return lt.where(size:gt(limit), s:reciprocal(), 0)
  end
  if hermitian then
    local l, v = ops._linalg_eigh(a, false, true)
    return (v * inverted(l):unsqueeze(-2)):matmul(adjoint(v))
  end
  local u, s, vh = ops._linalg_svd(a, false, true)
  return (adjoint(vh) * inverted(s):unsqueeze(-2)):matmul(adjoint(u))
end

-- The pseudoinverse P of A with the gradient of Golub and Pereyra 1973, which also holds for
-- matrices without full rank as long as the rank does not change.
local Pinv = lt.autograd.Function:extend "Pinv"

function Pinv.forward(ctx, a, hermitian, atol, rtol)
  local p = pseudoinverse(a, hermitian, atol, rtol)
  ctx:save_for_backward(a, p)
  return p
end

function Pinv.backward(ctx, grad)
  local a, p = ctx:saved()
  local ph, gh = adjoint(p), adjoint(grad)
  if a:size(-2) <= a:size(-1) then
    local k = gh:matmul(p)
    local kph = k:matmul(ph)
    return -adjoint(p:matmul(k)) + kph - a:matmul(p):matmul(kph)
      + ph:matmul(p):matmul(gh - k:matmul(a))
  end
  local k = p:matmul(gh)
  local phk = ph:matmul(k)
  return -adjoint(k:matmul(p)) + (gh - a:matmul(k)):matmul(p):matmul(ph) + phk
    - phk:matmul(p):matmul(a)
end

local function pinv(title, name, a, hermitian, atol, rtol)
  local check = hermitian and matrices.check_system or matrices.check_dtype
  check(title, name, a)
  if not recorded(a) then return pseudoinverse(a, hermitian, atol, rtol) end
  return Pinv(a, hermitian, atol, rtol)
end

lt._define{
  signature = "linalg.pinv(Tensor A, Tensor|float? rcond = nil, bool hermitian = false, "
    .. "Tensor|float? atol = nil, Tensor|float? rtol = nil)",
  doc = "Pseudoinverse {*, n, m} of matrices {*, m, n}. Singular values (`hermitian`: absolute "
    .. "eigenvalues) up to max(atol, rtol * the largest) count as 0; see matrix_rank for the "
    .. "defaults; rcond is rtol. Gradient: Golub and Pereyra 1973.",
  example = "lt.linalg.pinv(lt.tensor{{1.0, 2}, {3, 4}, {5, 6}})",
  fn = function(a, rcond, hermitian, atol, rtol)
    return pinv("pinv", "A", a, hermitian, atol, rtol == nil and rcond or rtol)
  end,
}

lt._define{
  signature = "lt.pinverse(Tensor self, float rcond = 1e-15)",
  doc = "Pseudoinverse: linalg.pinv with rtol = rcond.",
  method = true,
  example = "lt.pinverse(lt.tensor{{1.0, 2}, {3, 4}, {5, 6}})",
  fn = function(a, rcond) return pinv("pinverse", "self", a, false, nil, rcond) end,
}

lt._define{
  signature = "linalg.cond(Tensor A, 'fro'|'nuc'|float? p = nil)",
  doc = "Condition number |A| |A^-1| in the matrix norm p; by default (2), and for -2, from the "
    .. "singular values. It is infinite for singular matrices.",
  example = "lt.linalg.cond(lt.tensor{{1.0, 0}, {0, 4}})",
  fn = function(a, p)
    matrices.check_dtype("cond", "A", a)
    if p == nil or p == 2 or p == -2 then
      if a:numel() == 0 then
        return lt.zeros(matrices.shape_of(a, 2), {dtype = real_dtype(a), device = a.device})
      end
      local s = singular_values(a)
      local largest, smallest = s:select(-1, 1), s:select(-1, -1)
      if p == -2 then return smallest / largest end
      return largest / smallest
    end
    matrices.check_square("cond", "A", a)
    if a:numel() == 0 then
      return lt.zeros(matrices.shape_of(a, 2), {dtype = real_dtype(a), device = a.device})
    end
    local inverse, info = ops._linalg_inv(a, false)
    local norm = lt.linalg.matrix_norm
    return lt.where(info:ne(0), math.huge, norm(a, p) * norm(inverse, p))
  end,
}

-- ---- least squares

-- Returns the squared residuals of the solutions x, where LAPACK's driver gives them.
local function residuals(a, b, x, rank, driver)
  local m, n = a:size(-2), a:size(-1)
  local full = m > n and driver ~= "gelsy"
    and (driver == "gels" or rank.is_meta or not rank:ne(n):any():item())
  if not full then return lt.empty(0, {dtype = real_dtype(a), device = a.device}) end
  return (a:matmul(x) - b):abs():square():sum(-2)
end

lt._define{
  signature = "linalg.lstsq(Tensor A, Tensor B, float? rcond = nil, "
    .. "'gels'|'gelsy'|'gelsd'|'gelss'? driver = nil) -> Tensor solution, Tensor residuals, "
    .. "Tensor rank, Tensor singular_values",
  doc = "Least squares: X {*, n, k} with the least |A X - B| for A {*, m, n} and B {*, m, k} or "
    .. "{*, m}. The driver is LAPACK's, \"gelsy\" by default; residuals, rank and "
    .. "singular_values are empty where it does not compute them. Gradient: that of pinv(A) B.",
  example = "lt.linalg.lstsq(lt.tensor{{1.0, 0}, {1, 1}, {1, 2}}, lt.tensor{{1.0}, {2}, {3}})",
  fn = function(a, b, rcond, driver)
    matrices.check_dtype("lstsq", "A", a)
    driver = driver or "gelsy"
    local vector = matrices.is_vector(a, b)
    if vector then b = b:unsqueeze(-1) end
    a, b = matrices.broadcast("lstsq", a, b)
    rcond = rcond or math.max(a:size(-2), a:size(-1)) * (EPSILON[a.dtype] or 0)
    local x, rank, s = ops._linalg_lstsq(a:detach(), b:detach(), rcond, driver)
    if recorded(a, b) then x = pinv("lstsq", "A", a, false):matmul(b) end
    local rest = residuals(a, b, x, rank, driver)
    if driver == "gels" then rank = rank:new_empty(0) end
    if driver == "gels" or driver == "gelsy" then s = s:new_empty(0) end
    return vector and x:squeeze(-1) or x, rest, rank, s
  end,
}

-- ---- polar decomposition and square roots

lt._define{
  signature = "linalg.polar(Tensor A) -> Tensor U, Tensor H",
  doc = "Polar decomposition A = U H of matrices {*, m, n}, m >= n: U has orthonormal columns, H "
    .. "is hermitian and positive semidefinite.",
  example = "lt.linalg.polar(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a)
    matrices.check_dtype("polar", "A", a)
    args.check(a:size(-2) >= a:size(-1),
      "polar: expected at least as many rows as columns for argument 'A', got shape %s",
      a.shape)
    local u, s, vh = ops._linalg_svd(a, false, true)
    return u:matmul(vh), (adjoint(vh) * s:unsqueeze(-2)):matmul(vh)
  end,
}

-- The square root X of a hermitian matrix with eigenvalues l: dA = X dX + dX X is solved in the
-- basis of the eigenvectors.
local Sqrth = lt.autograd.Function:extend "MatrixSqrth"

local function roots(l) return l:clamp{min = 0}:sqrt() end

function Sqrth.forward(ctx, a)
  local l, v = ops._linalg_eigh(a, false, true)
  ctx:save_for_backward(a)
  return (v * roots(l):unsqueeze(-2)):matmul(adjoint(v))
end

function Sqrth.backward(ctx, grad)
  local l, v = ops._linalg_eigh(ctx:saved(), false, true)
  local r, vh = roots(l), adjoint(v)
  local middle = vh:matmul((grad + adjoint(grad)) * 0.5):matmul(v)
    / (r:unsqueeze(-1) + r:unsqueeze(-2))
  return v:matmul(middle):matmul(vh)
end

lt._define{
  signature = "linalg.matrix_sqrth(Tensor A)",
  doc = "Square root X of hermitian positive definite matrices, A = X X, of which the lower "
    .. "triangle is read.",
  example = "lt.linalg.matrix_sqrth(lt.tensor{{2.0, 0}, {0, 9}})",
  fn = function(a)
    matrices.check_system("matrix_sqrth", "A", a)
    return Sqrth(a)
  end,
}

-- ---- approximations of low rank

-- Returns an orthonormal basis of the range of a, from q random vectors and `niter` iterations
-- (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1).
local function range_basis(a, q, niter)
  local random = lt.randn(a:size(-1), q, {dtype = a.dtype, device = a.device})
  local basis = (ops._linalg_qr(a:matmul(random), "reduced"))
  for _ = 1, niter do
    basis = (ops._linalg_qr(adjoint(a):matmul(basis), "reduced"))
    basis = (ops._linalg_qr(a:matmul(basis), "reduced"))
  end
  return basis
end

local function svd_lowrank(a, q, niter, shift)
  if shift then a = a - shift end
  local wide = a:size(-2) < a:size(-1)
  if wide then a = adjoint(a) end
  local basis = range_basis(a, q, niter)
  local u, s, vh = ops._linalg_svd(adjoint(basis):matmul(a), false, true)
  u = basis:matmul(u)
  if wide then return adjoint(vh), s, u end
  return u, s, adjoint(vh)
end

lt._define{
  signature = "lt.svd_lowrank(Tensor A, int? q = 6, int? niter = 2, Tensor? M = nil) -> Tensor U, "
    .. "Tensor S, Tensor V",
  doc = "Approximate singular value decomposition A - M = U diag(S) V^H of rank q, from random "
    .. "numbers and `niter` iterations (Halko, Martinsson and Tropp 2011).",
  example = "lt.svd_lowrank(lt.tensor{{3.0, 0}, {4, 5}}, 2)",
  fn = function(a, q, niter, m)
    q = q or 6
    matrices.check_dtype("svd_lowrank", "A", a)
    return svd_lowrank(a, math.min(q, a:size(-2), a:size(-1)), niter or 2, m and m:expand(a.shape))
  end,
}

lt._define{
  signature = "lt.pca_lowrank(Tensor A, int? q = nil, bool center = true, int niter = 2) -> "
    .. "Tensor U, Tensor S, Tensor V",
  doc = "Principal components of the rows of A: svd_lowrank of A, centered unless `center` is "
    .. "false; q is min(6, m, n) by default.",
  example = "lt.pca_lowrank(lt.tensor{{3.0, 0}, {4, 5}}, 1)",
  fn = function(a, q, center, niter)
    matrices.check_dtype("pca_lowrank", "A", a)
    local most = math.min(a:size(-2), a:size(-1))
    q = q or math.min(6, most)
    args.check(q >= 0 and q <= most,
      "pca_lowrank: expected an integer from 0 to %d for argument 'q', got %d", most, q)
    return svd_lowrank(a, q, niter, center and a:mean{-2, keepdim = true} or nil)
  end,
}
