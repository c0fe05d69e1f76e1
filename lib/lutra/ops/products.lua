--- Products: matrix and vector products with a sum (addmv, addr, addbmm), tensordot, kron,
-- chain_matmul, and distances between rows (cdist).
--
-- All of them are computed by mm, bmm and elementwise ops on views of the arguments, so they run
-- on every device and have gradients of every order. einsum is in einsum.lua.

local lt = require "lutra"
local args = require "lutra.internal.args"
local matrices = require "lutra.internal.matrices"
local tensors = require "lutra.internal.tensors"

-- Returns whether a number, real or complex, is 0.
local function is_zero(number)
  if type(number) == "number" then return number == 0 end
  return type(number) ~= "boolean" and number.re == 0 and number.im == 0 or number == false
end

-- Raises an error unless `value` is a number, real or complex, or a boolean.
local function check_number(title, name, value)
  local kind = type(value)
  local valid = kind == "number" or kind == "boolean"
    or kind == "userdata" and not lt.is_tensor(value) -- a complex number
  args.expect(valid, title, "a number or a boolean", name, value)
end

-- Raises an error unless `x` has `ndim` dimensions.
local function check_ndim(title, name, x, ndim)
  args.check(x.ndim == ndim, "%s: expected a tensor with %d dimension%s for argument '%s', got %s",
    title, ndim, ndim == 1 and "" or "s", name, x.shape)
end

-- Raises an error unless the tensors of `list`, pairs of a name and a tensor, have one dtype.
local function check_dtypes(title, list)
  local first = list[1]
  for i = 2, #list do
    args.check(list[i][2].dtype == first[2].dtype,
      "%s: expected the same dtype for arguments '%s' and '%s', got %q and %q", title, first[1],
      list[i][1], first[2].dtype, list[i][2].dtype)
  end
end

-- Raises an error unless `self` broadcasts to the shape of the product.
local function check_broadcast(title, self, product)
  local from, to = self.shape, product.shape
  local fits = #from <= #to
  for d = 1, fits and #from or 0 do
    local size = from[#from + 1 - d]
    fits = fits and (size == 1 or size == to[#to + 1 - d])
  end
  args.check(fits, "%s: cannot broadcast self %s to the product %s", title, tostring(from),
    tostring(to))
end

-- Returns beta * self + alpha * product. With beta 0, self is ignored, even if it contains NaN or
-- infinity, and its gradient is 0.
local function combine(title, self, product, beta, alpha)
  check_broadcast(title, self, product)
  local scaled = self
  if is_zero(beta) then
    scaled = tensors.zeros_of(self)
  elseif beta ~= 1 then
    scaled = self * beta
  end
  return lt.add(scaled, product, {alpha = alpha})
end

-- Returns a number without its fraction.
local function truncate(number)
  return math.type(number) == "float" and math.tointeger(number // 1 + (number < 0
    and number % 1 ~= 0 and 1 or 0)) or number
end

-- Returns a number as a 16-bit float type holds it; a number itself for other dtypes.
local function rounded(number, dtype)
  if not tensors.is_half(dtype) then return number end
  return lt.tensor(number, {dtype = dtype, device = "cpu"}):item()
end

lt._define{
  signature = "lt.addmv(Tensor self, Tensor mat, Tensor vec, Scalar beta = 1, Scalar alpha = 1)",
  doc = "beta * self + alpha * mat @ vec; self is broadcast to {n}. With beta 0, self is ignored.",
  example = "lt.addmv(lt.ones(2), lt.ones(2, 3), lt.ones(3))",
  method = true, in_place = true,
  fn = function(self, mat, vec, beta, alpha)
    check_ndim("addmv", "mat", mat, 2)
    check_ndim("addmv", "vec", vec, 1)
    check_dtypes("addmv", {{"self", self}, {"mat", mat}, {"vec", vec}})
    if mat.dtype:find "int" then beta, alpha = truncate(beta), truncate(alpha) end
    return combine("addmv", self, mat:mv(vec), beta, alpha)
  end,
}

lt._define{
  signature = "lt.addbmm(Tensor self, Tensor batch1, Tensor batch2, Scalar beta = 1, "
    .. "Scalar alpha = 1)",
  doc = "beta * self + alpha * the sum of the products of {b, n, k} and {b, k, m}; self is "
    .. "broadcast to {n, m}. With beta 0, self is ignored.",
  example = "lt.addbmm(lt.zeros(2, 2), lt.ones(4, 2, 3), lt.ones(4, 3, 2))",
  method = true, in_place = true,
  fn = function(self, a, b, beta, alpha)
    check_ndim("addbmm", "batch1", a, 3)
    check_ndim("addbmm", "batch2", b, 3)
    check_dtypes("addbmm", {{"self", self}, {"batch1", a}, {"batch2", b}})
    args.check(a:size(1) == b:size(1) and a:size(3) == b:size(2),
      "addbmm: cannot multiply %s by %s: expected {b, n, k} and {b, k, m}", a.shape,
      b.shape)
    local batch, n, k, m = a:size(1), a:size(2), a:size(3), b:size(3)
    if a.dtype:find "int" then beta, alpha = truncate(beta), truncate(alpha) end
    if batch > 0 and tensors.is_half(a.dtype) then -- rounds as PyTorch does
      for i = 1, batch do
        self = self:addmm(a[i], b[i], {alpha = alpha, beta = i == 1 and beta or 1})
      end
      return self
    end
    local product = a:transpose(1, 2):reshape(n, batch * k):mm(b:reshape(batch * k, m))
    return combine("addbmm", self, product, beta, alpha)
  end,
}

lt._define{
  signature = "lt.addr(Tensor self, Tensor vec1, Tensor vec2, any? beta = nil, any? alpha = nil)",
  doc = "beta * self + alpha * the outer product of vec1 {n} and vec2 {m}; self is broadcast to "
    .. "{n, m}, beta and alpha are 1 by default. With beta 0, self is ignored. Of bool tensors, "
    .. "`and` and `or` replace * and +.",
  example = "lt.addr(lt.zeros(2, 3), lt.tensor{1, 2}, lt.tensor{1, 2, 3})",
  method = true, in_place = true,
  fn = function(self, a, b, beta, alpha)
    check_ndim("addr", "vec1", a, 1)
    check_ndim("addr", "vec2", b, 1)
    if beta == nil then beta = 1 end
    if alpha == nil then alpha = 1 end
    check_number("addr", "beta", beta)
    check_number("addr", "alpha", alpha)
    local product = a:outer(b)
    if self.dtype ~= "bool" or product.dtype ~= "bool" then
      if type(beta) == "boolean" then beta = beta and 1 or 0 end
      if type(alpha) == "boolean" then alpha = alpha and 1 or 0 end
      beta, alpha = rounded(beta, self.dtype), rounded(alpha, self.dtype)
      if alpha ~= 1 then product = (a * alpha):outer(b) end
      return combine("addr", self, product, beta, 1)
    end
    check_broadcast("addr", self, product)
    if is_zero(alpha) then product = lt.zeros_like(product) end
    return is_zero(beta) and product or self:logical_or(product)
  end,
}

lt._define{
  signature = "lt.vdot(Tensor self, Tensor other)",
  doc = "Dot product of two vectors, of which the first is conjugated.",
  example = "lt.vdot(lt.tensor{1, 2}, lt.tensor{3, 4})",
  method = true,
  fn = function(a, b)
    check_ndim("vdot", "self", a, 1)
    check_ndim("vdot", "other", b, 1)
    return a:conj():dot(b)
  end,
}

-- ---- tensordot and what it computes

-- Returns the product of these sizes at `dims`.
local function count(sizes, dims)
  local n = 1
  for _, d in ipairs(dims) do n = n * sizes[d] end
  return n
end

-- Returns the dims from 1 on that a pair of dims of a and b stands for; checks them.
local function pair_of_dims(title, a, b, of_a, of_b)
  local p, q = math.tointeger(of_a), math.tointeger(of_b)
  if not p or not q then
    args.fail("%s: expected dims (integers), got %s and %s", title, args.show(of_a),
      args.show(of_b))
  end
  local ndim_a, ndim_b = a.ndim, b.ndim
  if p < 0 then p = p + ndim_a + 1 end
  if q < 0 then q = q + ndim_b + 1 end
  if p < 1 or p > ndim_a or q < 1 or q > ndim_b then
    args.fail("%s: expected dims of %s and %s, got %d and %d", title, a.shape, b.shape, of_a, of_b)
  end
  return p, q
end

-- Returns the contraction of dims `along_a` of a with `along_b` of b, lists of equal length. A size
-- of 1 is broadcast.
local function contract(title, a, b, along_a, along_b)
  args.check(#along_a == #along_b,
    "%s: expected as many dims of 'self' as of 'other', got %d and %d", title, #along_a, #along_b)
  local taken_a, taken_b = {}, {}
  for i = 1, #along_a do
    local p, q = pair_of_dims(title, a, b, along_a[i], along_b[i])
    args.check(not taken_a[p] and not taken_b[q], "%s: expected each dim once, got %d and %d twice",
      title, along_a[i], along_b[i])
    taken_a[p], taken_b[q] = true, true
    local m, n = a:size(p), b:size(q)
    if m ~= n and m ~= 1 and n ~= 1 then
      args.fail("%s: cannot contract dim %d of %s with dim %d of %s: the sizes %d and %d differ",
        title, p, a.shape, q, b.shape, m, n)
    end
    if m ~= n and m == 1 then b = b:sum{q, keepdim = true, dtype = b.dtype} end
    if m ~= n and n == 1 then a = a:sum{p, keepdim = true, dtype = a.dtype} end
    along_a[i], along_b[i] = p, q
  end
  local of_a, of_b, rows, columns, shape = a.shape, b.shape, {}, {}, {}
  for d = 1, #of_a do
    if not taken_a[d] then rows[#rows + 1], shape[#shape + 1] = d, of_a[d] end
  end
  for d = 1, #of_b do
    if not taken_b[d] then columns[#columns + 1], shape[#shape + 1] = d, of_b[d] end
  end
  local n, k, m = count(of_a, rows), count(of_a, along_a), count(of_b, columns)
  local left, right = table.move(rows, 1, #rows, 1, {}), table.move(along_b, 1, #along_b, 1, {})
  table.move(along_a, 1, #along_a, #left + 1, left)
  table.move(columns, 1, #columns, #right + 1, right)
  if a.ndim > 0 then a = a:permute(left) end
  if b.ndim > 0 then b = b:permute(right) end
  return a:reshape(n, k):mm(b:reshape(k, m)):reshape(shape)
end

lt._define{
  signature = "lt.tensordot(Tensor a, Tensor b, Tensor|int|dims[] dims = 2)",
  doc = "Sum of products over several dims: the last `dims` of a with the first of b, or those of "
    .. "two lists, {{1, 2}, {3, 1}}: dims 1 and 2 of a with 3 and 1 of b.",
  example = "lt.tensordot(lt.ones(2, 3, 4), lt.ones(4, 3, 5), {{2, 3}, {2, 1}})",
  fn = function(a, b, dims)
    if lt.is_tensor(dims) then dims = dims:totable() end
    check_dtypes("tensordot", {{"a", a}, {"b", b}})
    if type(dims) == "table" then
      args.check(#dims == 2 and type(dims[1]) == "table" and type(dims[2]) == "table",
        "tensordot: expected a number of dims or two lists of dims for argument 'dims'")
      return contract("tensordot", a, b, table.move(dims[1], 1, #dims[1], 1, {}),
        table.move(dims[2], 1, #dims[2], 1, {}))
    end
    args.check(dims >= 0 and dims <= a.ndim and dims <= b.ndim,
      "tensordot: expected 0 to %d for argument 'dims' of %s and %s, got %d",
      math.min(a.ndim, b.ndim), a.shape, b.shape, dims)
    local along_a, along_b = {}, {}
    for i = 1, dims do along_a[i], along_b[i] = a.ndim - dims + i, i end
    return contract("tensordot", a, b, along_a, along_b)
  end,
}

lt._define{
  signature = "lt.inner(Tensor self, Tensor other)",
  doc = "Sum of products over the last dims: {..., k} and {***, k} give {..., ***}; with a 0-d "
    .. "tensor, the product.",
  example = "lt.inner(lt.ones(2, 3), lt.ones(4, 3))",
  method = true,
  fn = function(a, b)
    if a.ndim == 0 or b.ndim == 0 then return a * b end
    check_dtypes("inner", {{"self", a}, {"other", b}})
    args.check(a:size(-1) == b:size(-1),
      "inner: cannot multiply %s by %s: the last sizes differ", a.shape,
      b.shape)
    return contract("inner", a, b, {-1}, {-1})
  end,
}

local SHORT_ROW = 16 -- elements of a row that are too few for a loop of their own

lt._define{
  signature = "lt.kron(Tensor self, Tensor other)",
  doc = "Kronecker product: each element of self times the whole of other, as blocks. The tensor "
    .. "with fewer dimensions gets leading sizes of 1.",
  example = "lt.kron(lt.eye(2), lt.ones(2, 2))",
  method = true,
  fn = function(a, b)
    if a.ndim == 1 and b.ndim == 1 then return lt.outer(a, b):reshape(-1) end
    local short = a.ndim == 2 and b.ndim == 2 and b:size(2) < SHORT_ROW
    if short and not tensors.are_batched() then -- multiplies whole rows
      local m, p, n, q = a:size(1), a:size(2), b:size(1), b:size(2)
      local left, right = a:repeat_interleave(q, 2), b:tile(1, p)
      return (left:view(m, 1, p * q) * right:view(1, n, p * q)):view(m * n, p * q)
    end
    local ndim = math.max(a.ndim, b.ndim)
    local left, right, shape = {}, {}, {}
    for d = 1, ndim do
      local p, q = d - ndim + a.ndim, d - ndim + b.ndim
      local m, n = p > 0 and a:size(p) or 1, q > 0 and b:size(q) or 1
      left[2 * d - 1], left[2 * d] = m, 1
      right[2 * d - 1], right[2 * d] = 1, n
      shape[d] = m * n
    end
    return (a:reshape(left) * b:reshape(right)):reshape(shape)
  end,
}

lt._define{
  signature = "lt.chain_matmul(Tensor|Tensor[] matrices, Tensor? m2 = nil, Tensor? m3 = nil, "
    .. "Tensor? m4 = nil, Tensor? m5 = nil, Tensor? m6 = nil, Tensor? m7 = nil, Tensor? m8 = nil)",
  doc = "Product of several matrices, in the order that takes the fewest multiplications. More "
    .. "than eight are given as a list.",
  example = "lt.chain_matmul(lt.ones(2, 3), lt.ones(3, 4), lt.ones(4, 2))",
  fn = function(first, ...)
    local list = lt.is_tensor(first) and {first} or table.move(first, 1, #first, 1, {})
    for i = 1, select("#", ...) do
      local m = select(i, ...)
      if m then list[#list + 1] = m end
    end
    args.check(#list > 0, "chain_matmul: expected at least one matrix, got none")
    return matrices.chain_product("chain_matmul", list)
  end,
}

-- ---- distances

-- Returns t^exponent for sums t >= 0, with gradient 0 where t is 0.
local function root(t, exponent)
  if exponent == 0.5 and not t.requires_grad then return t:sqrt() end
  local zero = t:eq(0)
  local safe = t:masked_fill(zero, 1)
  local result = exponent == 0.5 and safe:sqrt() or safe:pow(exponent)
  return result:masked_fill(zero, 0)
end

-- Computes |x - y|^2 as x^2 - 2 x y + y^2 by one matrix product.
local function distance_by_mm(x, y)
  local x2, y2 = x:square():sum{-1, keepdim = true}, y:square():sum{-1, keepdim = true}
  local left = lt.cat({x * -2, x2, lt.ones_like(x2)}, -1)
  local right = lt.cat({y, lt.ones_like(y2), y2}, -1)
  local squares = left:matmul(right:transpose(-2, -1))
  if not squares.requires_grad then return squares:clamp_(0):sqrt_() end
  return root(squares:clamp{min = 0}, 0.5)
end

-- Returns the p-norms of differences, along the last dim.
local function distance(difference, p)
  if p == 0 then
    local none = tensors.zeros_of(difference)
    return difference:ne(0):sum(-1):to(difference.dtype) + none:sum(-1)
  end
  local size = difference:abs()
  if p == 1 then return size:sum(-1) end
  if p == 2 then return root(size:square():sum(-1), 0.5) end
  if p == math.huge then return size:amax(-1) end
  local zero = size:eq(0)
  return root(size:masked_fill(zero, 1):pow(p):masked_fill(zero, 0):sum(-1), 1 / p)
end

-- Returns whether the CPU's kernel computes these distances, which has no gradient.
local function has_kernel(x, y, p)
  if not (x.is_cpu and y.is_cpu and (p == 1 or p == 2 or p == math.huge)) then return false end
  if x.dtype ~= y.dtype or x.ndim ~= y.ndim then return false end
  for d = 1, x.ndim - 2 do if x:size(d) ~= y:size(d) then return false end end
  return not ((x.requires_grad or y.requires_grad) and lt.is_grad_enabled())
end

lt._define{
  signature = "lt.cdist(Tensor x1, Tensor x2, float p = 2, "
    .. "'use_mm_for_euclid_dist_if_necessary'|'use_mm_for_euclid_dist'"
    .. "|'donot_use_mm_for_euclid_dist'? compute_mode = nil)",
  doc = "p-norm distances between all rows of x1 {..., n, d} and of x2 {..., m, d}, giving "
    .. "{..., n, m}; leading sizes are broadcast. For p = 2 and more than 25 rows, computed by a "
    .. "matrix product, unless compute_mode states otherwise. The gradient at distance 0 is 0.",
  example = "lt.cdist(lt.zeros(1, 2), lt.tensor{{3., 4.}, {0., 1.}})",
  fn = function(x, y, p, mode)
    args.check(x.ndim >= 2 and y.ndim >= 2,
      "cdist: expected at least 2 dimensions for arguments 'x1' and 'x2', got %s and %s",
      x.shape, y.shape)
    args.check(x:size(-1) == y:size(-1),
      "cdist: expected the same last size for arguments 'x1' and 'x2', got %s and %s",
      x.shape, y.shape)
    args.check(x:is_floating_point() and y:is_floating_point(),
      "cdist: expected float tensors for arguments 'x1' and 'x2', got %q and %q", x.dtype, y.dtype)
    args.check(p >= 0, "cdist: expected a number of at least 0 for argument 'p', got %s", p)
    local large = x:size(-2) > 25 or y:size(-2) > 25
    local always = mode == "use_mm_for_euclid_dist"
    if p == 2 and x:numel() > 0 and y:numel() > 0 and (always
        or large and mode ~= "donot_use_mm_for_euclid_dist") then
      return distance_by_mm(x, y)
    end
    if has_kernel(x, y, p) then return lt._ops._distances(x, y, p) end
    local difference = x:unsqueeze(-2) - y:unsqueeze(-3)
    return difference:size(-1) == 0 and difference:sum(-1) or distance(difference, p)
  end,
}
