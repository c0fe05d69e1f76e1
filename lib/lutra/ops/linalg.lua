--- Linear algebra: norms, powers and products of matrices, and functions of tensors as matrices.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local matrices = require "lutra.internal.matrices"
local tensors = require "lutra.internal.tensors"

local ops = core._ops

-- ---- norms

-- Returns the norm `ord` of the elements along dims (nil: all).
local function vector_norm(x, ord, dims, keepdim, dtype)
  if dtype then x = x:to(dtype) end
  if matrices.is_complex(x) then x = x:abs() end
  if type(dims) == "number" then dims = {dims} end
  return ops._norm(x, dims, keepdim, ord)
end

-- Returns dims, two of them, as numbers from 1 to ndim.
local function check_dims(title, x, dims)
  args.check(#dims == 2, "%s: expected two dimensions for argument 'dim', got %d", title, #dims)
  args.check(x.ndim >= 2, "%s: expected a matrix or a batch of matrices for argument 'A', got "
    .. "shape %s", title, x.shape)
  local found = {}
  for i, d in ipairs(dims) do
    args.check(d ~= 0 and d >= -x.ndim and d <= x.ndim,
      "%s: expected dimensions from 1 to %d or -%d to -1 for argument 'dim', got %d", title,
      x.ndim, x.ndim, d)
    found[i] = d < 0 and x.ndim + 1 + d or d
  end
  args.check(found[1] ~= found[2], "%s: expected two different dimensions for argument 'dim', got "
    .. "%d twice", title, found[1])
  return found[1], found[2]
end

-- Returns the norm of the singular values of the matrices in dimensions d1 and d2.
local function spectral_norm(x, ord, d1, d2, keepdim)
  local s = lt.linalg.svdvals(x:movedim({d1, d2}, {-2, -1}))
  local r
  if ord == "nuc" then
    r = s:sum(-1)
  elseif ord == 2 then
    r = s:size(-1) > 0 and s:amax(-1) or s:sum(-1)
  else
    r = s:amin(-1)
  end
  if keepdim then r = r:unsqueeze(math.min(d1, d2)):unsqueeze(math.max(d1, d2)) end
  return r
end

-- Returns the matrix norm `ord` over two dimensions.
local function matrix_norm(title, x, ord, dims, keepdim, dtype)
  local d1, d2 = check_dims(title, x, dims)
  if dtype then x = x:to(dtype) end
  if ord == "fro" then return vector_norm(x, 2, {d1, d2}, keepdim) end
  if ord == "nuc" or ord == 2 or ord == -2 then return spectral_norm(x, ord, d1, d2, keepdim) end
  args.check(type(ord) == "number" and (math.abs(ord) == 1 or math.abs(ord) == math.huge),
    "%s: expected 'fro', 'nuc', 1, -1, 2, -2, math.huge or -math.huge for argument 'ord', got %s",
    title, args.show(ord))
  local sum, rest = d1, d2
  if math.abs(ord) == math.huge then sum, rest = d2, d1 end
  local sums = vector_norm(x, 1, {sum}, true)
  local r
  if ord < 0 then
    r = sums:amin{rest, keepdim = true}
  else -- 0 for no sums
    r = sums:size(rest) > 0 and sums:amax{rest, keepdim = true} or sums:sum{rest, keepdim = true}
  end
  if keepdim then return r end
  return r:squeeze(math.max(d1, d2)):squeeze(math.min(d1, d2))
end

lt._define{
  signature = "linalg.vector_norm(Tensor x, float ord = 2, dims? dim = nil, bool keepdim = false, "
    .. "dtype? dtype = nil)",
  doc = "(sum |x|^ord)^(1/ord) along dim (nil: of all elements); ord = math.huge is the largest "
    .. "|x|, -math.huge the smallest, 0 the number of nonzeros.",
  example = "lt.linalg.vector_norm(lt.tensor{3.0, 4})",
  fn = vector_norm,
}

lt._define{
  signature = "linalg.matrix_norm(Tensor A, 'fro'|'nuc'|float ord = 'fro', dims dim = {-2, -1}, "
    .. "bool keepdim = false, dtype? dtype = nil)",
  doc = "Norm of matrices: 'fro' of the elements, 'nuc' the sum of the singular values, 2 and -2 "
    .. "the largest and smallest, 1 and -1 the largest and smallest sum |x| of a column, "
    .. "math.huge and -math.huge of a row.",
  example = "lt.linalg.matrix_norm(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(x, ord, dims, keepdim, dtype)
    return matrix_norm("matrix_norm", x, ord, dims, keepdim, dtype)
  end,
}

lt._define{
  signature = "linalg.norm(Tensor A, 'fro'|'nuc'|float? ord = nil, dims? dim = nil, bool keepdim "
    .. "= false, dtype? dtype = nil)",
  doc = "Norm of vectors (one dim) or matrices (two dims), see vector_norm and matrix_norm; "
    .. "without ord the norm of the elements.",
  example = "lt.linalg.norm(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(x, ord, dims, keepdim, dtype)
    if ord == nil then return vector_norm(x, 2, dims, keepdim, dtype) end
    if not dims then
      args.check(x.ndim == 1 or x.ndim == 2, "norm: expected a tensor of one or two dimensions "
        .. "for argument 'A' with ord and without dim, got shape %s", x.shape)
      dims = x.ndim == 1 and {1} or {1, 2}
    end
    if #dims == 1 then
      args.expect(type(ord) == "number", "norm", "a number", "ord", ord)
      return vector_norm(x, ord, dims, keepdim, dtype)
    end
    return matrix_norm("norm", x, ord, dims, keepdim, dtype)
  end,
}

-- ---- powers and the exponential

local function matrix_power(a, n)
  matrices.check_square("matrix_power", "A", a)
  if n == 0 then -- of the autograd graph, with gradient 0
    return matrices.eye_like(a) + tensors.zeros_of(a)
  end
  if n < 0 then a, n = lt.linalg.inv(a), -n end
  local result
  while true do
    if n % 2 == 1 then result = result and result:matmul(a) or a end
    n = n // 2
    if n == 0 then return result == a and a:clone() or result end
    a = a:matmul(a)
  end
end

lt._define{
  signature = "lt.matrix_power(Tensor self, int n)",
  doc = "Product of n copies of square matrices {*, m, m}; of -n inverses for negative n.",
  method = true, also = {"linalg"},
  example = "lt.matrix_power(lt.tensor{{1.0, 1}, {0, 1}}, 3)",
  fn = matrix_power,
}

-- Coefficients of I, A, A^2, A^3 and A^6 in the polynomials B1 to B5 with which the Taylor
-- polynomial of degree 18 takes five products (Bader, Blanes and Casas 2019): with C = B1 B5 + B4
-- it is B2 + (B3 + C) C.
local COEFFICIENTS = {
  {0, -0.10036558103014462, -0.0080292464824115696, -0.00089213849804572995, 0},
  {0, 0.39784974949964507, 1.3678377846041172, 0.49828962252538267, -0.00063789819459472331},
  {-10.967639605296206, 1.6801581387890620, 0.057177984647886551, -0.0069821012248805206,
    3.3497501708607054e-05},
  {-0.090431683239081058, -0.067640451907138191, 0.067596130177045965, 0.029555257042931553,
    -1.3918025751606070e-05},
  {0, 0, -0.092336461936711859, -0.016936493900208171, -1.4008679818203616e-05},
}

-- Returns the Taylor polynomial of e^a.
local function taylor(a, a2, a3)
  local basis = lt.stack{matrices.eye_like(a), a, a2, a3, a3:matmul(a3)}
  local factors = lt.tensor(COEFFICIENTS, {dtype = a.dtype, device = a.device})
  local sums = factors:matmul(basis:flatten(2)):view(basis.shape)
  local b1, b2, b3, b4, b5 = table.unpack(sums:unbind(1))
  local c = b1:matmul(b5) + b4
  return b2 + (b3 + c):matmul(c)
end

-- The largest norm of A for which the error of the polynomial is at most that of a relative change
-- of A by 2^-53 (dtypes of 32 and 16 bits: 2^-29). What matters is the norm of the powers of A,
-- from the second on (Al-Mohy and Higham 2009).
local BOUND = {float64 = 1.09, complex128 = 1.09}
local BOUND_NARROW = 2.5

-- Returns the 1-norm of matrices, {*, 1, 1}.
local function norm_of(a)
  return vector_norm(a:detach(), 1, {-2}, true):amax(-1, true)
end

-- The dtypes in which it is computed: squaring doubles the relative error.
local WIDER = {float16 = "float32", bfloat16 = "float32", float32 = "float64",
  complex64 = "complex128"}

-- After three squarings in float64 the others are in float32: their errors are then less than an
-- eighth of those that the rounding of A itself to float32 causes in e^A.
local WIDE_SQUARINGS = 3
local NARROW = {float32 = true, complex64 = true}

-- Returns e^a, computed in the dtype `wide`.
local function exponential(given, wide)
  local bound, a = BOUND[given.dtype] or BOUND_NARROW, given:to(wide)
  local halvings = (norm_of(a) / bound):log2():ceil():clamp(0, 1100)
  local x = a * (-halvings):exp2()
  local x2 = x:matmul(x)
  local x3 = x2:matmul(x)
  local size = norm_of(x2):sqrt():maximum(norm_of(x3):pow(1 / 3))
  local fewer = (bound / size):log2():floor():clamp(0, 300):minimum(halvings)
  halvings = (halvings - fewer):nan_to_num(0) -- NaN: the matrix is NaN or infinite, as its result
  local steps, least = halvings:amax():item(), halvings:amin():item()
  local scale = fewer:exp2()
  local y = taylor(x * scale, x2 * scale ^ 2, x3 * scale ^ 3)
  for k = 1, steps do
    if k > WIDE_SQUARINGS and NARROW[given.dtype] then y = y:to(given.dtype) end
    local square = y:matmul(y)
    y = k <= least and square or lt.where(halvings:ge(k), square, y)
  end
  return y:to(given.dtype)
end

lt._define{
  signature = "lt.matrix_exp(Tensor self)",
  doc = "Exponential of square matrices, sum of A^k / k!: a Taylor polynomial of A / 2^s, squared "
    .. "s times. Computed in the next wider dtype that the device has, except squarings of "
    .. "matrices with large norms.",
  method = true, also = {"linalg"},
  example = "lt.matrix_exp(lt.tensor{{0.0, 1}, {-1, 0}})",
  fn = function(a)
    matrices.check_square("matrix_exp", "A", a)
    args.check(a.dtype:find "float" or matrices.is_complex(a),
      "matrix_exp: expected a float or complex dtype for argument 'A', got %q", a.dtype)
    if a:numel() == 0 or a.is_meta then return a:clone{memory_format = "contiguous_format"} end
    local wider = WIDER[a.dtype]
    if a.is_mps and not tensors.is_half(a.dtype) then wider = nil end
    return exponential(a, wider or a.dtype)
  end,
}

-- ---- products

-- Returns the cross products along a dimension of size 3.
local function cross(title, a, b, dim)
  local n = math.max(a.ndim, b.ndim)
  args.check(a.ndim > 0 and a.ndim == b.ndim, "%s: expected tensors with the same number of "
    .. "dimensions, at least 1, got shapes %s and %s", title, a.shape,
    b.shape)
  args.check(dim ~= 0 and dim >= -n and dim <= n, "%s: expected a dimension from 1 to %d or -%d to "
    .. "-1 for argument 'dim', got %d", title, n, n, dim)
  args.check(a:size(dim) == 3 and b:size(dim) == 3, "%s: expected the size 3 in dimension %d, got "
    .. "shapes %s and %s", title, dim, a.shape, b.shape)
  local function turned(t, shift) return t:roll(-shift, dim) end
  return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)
end

lt._define{
  signature = "lt.cross(Tensor self, Tensor other, dim? dim = nil)",
  doc = "Cross product of vectors of 3 elements along dim; without dim along the first dimension "
    .. "of size 3.",
  method = true,
  example = "lt.cross(lt.tensor{1.0, 0, 0}, lt.tensor{0.0, 1, 0})",
  fn = function(a, b, dim)
    for d = 1, dim and 0 or a.ndim do
      if a:size(d) == 3 then
        dim = d
        break
      end
    end
    args.check(dim, "cross: expected a dimension of size 3, got shape %s", a.shape)
    return cross("cross", a, b, dim)
  end,
}

lt._define{
  signature = "linalg.cross(Tensor input, Tensor other, dim dim = -1)",
  doc = "Cross product of vectors of 3 elements along dim; the other dimensions are broadcast.",
  example = "lt.linalg.cross(lt.tensor{1.0, 0, 0}, lt.tensor{0.0, 1, 0})",
  fn = function(a, b, dim) return cross("cross", a, b, dim) end,
}

lt._define{
  signature = "linalg.vecdot(Tensor x, Tensor y, dim dim = -1)",
  doc = "Sum of conj(x) y along dim; the other dimensions are broadcast.",
  example = "lt.linalg.vecdot(lt.tensor{1.0, 2}, lt.tensor{3.0, 4})",
  fn = function(x, y, dim) return (matrices.conj(x) * y):sum(dim) end,
}

lt._define{
  signature = "linalg.vander(Tensor x, int? N = nil)",
  doc = "Vandermonde matrix: the powers 0 to N - 1 of each element, in a new last dimension; N is "
    .. "the size of the last dimension by default.",
  example = "lt.linalg.vander(lt.tensor{1.0, 2, 3})",
  fn = function(x, n)
    if x.ndim == 0 then x = x:unsqueeze(-1) end
    n = n or x:size(-1)
    args.expect(n > 1, "vander", "an integer above 1", "N", n)
    local powers = x:unsqueeze(-1):expand(matrices.shape_of(x, 0, n - 1)):cumprod(-1)
    local ones = lt.ones(matrices.shape_of(x, 0, 1), {dtype = powers.dtype, device = x.device})
    return lt.cat({ones, powers}, -1)
  end,
}

lt._define{
  signature = "linalg.multi_dot(Tensor[] tensors)",
  doc = "Product of two or more matrices, in the order with the fewest multiplications. The first "
    .. "and the last may be vectors.",
  example = "lt.linalg.multi_dot{lt.ones(2, 3), lt.ones(3, 4), lt.ones(4)}",
  fn = function(list)
    local n = #list
    args.check(n >= 2, "multi_dot: expected at least 2 tensors for argument 'tensors', got %d", n)
    for i = 1, n do args.expect(list[i], "multi_dot", "a tensor", ("tensors[%d]"):format(i)) end
    local factors = table.move(list, 1, n, 1, {})
    local first, last = list[1].ndim == 1, list[n].ndim == 1
    if first then factors[1] = list[1]:unsqueeze(1) end
    if last then factors[n] = list[n]:unsqueeze(-1) end
    local r = matrices.chain_product("multi_dot", factors)
    if first then r = r:squeeze(1) end
    return last and r:squeeze(-1) or r
  end,
}

-- ---- tensors as matrices

lt._define{
  signature = "linalg.diagonal(Tensor A, int offset = 0, dim dim1 = -2, dim dim2 = -1)",
  doc = "A view of the diagonals of matrices, as the last dimension.",
  example = "lt.linalg.diagonal(lt.tensor{{1.0, 2}, {3, 4}})",
  fn = function(a, offset, d1, d2) return a:diagonal(offset, d1, d2) end,
}

-- Returns the sizes `from` to `to` of a shape, and their product.
local function sizes(shape, from, to)
  local list, product = {}, 1
  for d = from, to do
    list[#list + 1], product = shape[d], product * shape[d]
  end
  return list, product
end

lt._define{
  signature = "linalg.tensorinv(Tensor A, int ind = 2)",
  doc = "Inverse of A as a map from its dimensions after the first `ind` to the first `ind`: "
    .. "tensordot(tensorinv(A), B, ind) solves A X = B.",
  example = "lt.linalg.tensorinv(lt.eye(4):reshape(2, 2, 4))",
  fn = function(a, ind)
    args.expect(ind > 0, "tensorinv", "an integer above 0", "ind", ind)
    ind = math.min(ind, a.ndim)
    local first, m = sizes(a.shape, 1, ind)
    local rest, n = sizes(a.shape, ind + 1, a.ndim)
    args.check(m == n, "tensorinv: expected as many elements in the first %d dimensions as in the "
      .. "others for argument 'A', got shape %s", ind, a.shape)
    local inverse = lt.linalg.inv(a:reshape(m, n))
    return inverse:reshape(table.move(first, 1, #first, #rest + 1, rest))
  end,
}

lt._define{
  signature = "linalg.tensorsolve(Tensor A, Tensor B, dims? dims = nil)",
  doc = "X with tensordot(A, X, X.ndim) = B, after the dimensions `dims` of A have been moved to "
    .. "the end.",
  example = "lt.linalg.tensorsolve(lt.eye(4):reshape(2, 2, 4), lt.ones(2, 2))",
  fn = function(a, b, dims)
    if dims then
      local to = {}
      for i = 1, #dims do to[i] = i - 1 - #dims end
      a = a:movedim(dims, to)
    end
    local rest, n = sizes(a.shape, b.ndim + 1, a.ndim)
    local _, m = sizes(a.shape, 1, math.min(b.ndim, a.ndim))
    args.check(m == n, "tensorsolve: expected as many elements in the first %d dimensions as in "
      .. "the others for argument 'A', got shape %s", b.ndim, a.shape)
    return lt.linalg.solve(a:reshape(m, n), b:reshape(-1)):reshape(rest)
  end,
}
