--- Shared by the composites of linear algebra (lib/lutra/ops/linalg*.lua): batches of matrices,
-- which are the last two dimensions.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

local matrices = {}

--- Returns whether t is complex.
function matrices.is_complex(t) return t.dtype:find "complex" ~= nil end

--- Returns the conjugate of t; t itself if it is real.
function matrices.conj(t) return matrices.is_complex(t) and t:conj() or t end

--- Returns t^H, the conjugate transpose.
function matrices.adjoint(t) return matrices.conj(t:transpose(-2, -1)) end

--- Returns whether autograd records an op on one of these tensors.
function matrices.recorded(...)
  if not core.is_grad_enabled() then return false end
  for i = 1, select("#", ...) do
    if (select(i, ...)).requires_grad then return true end
  end
  return false
end

--- Raises an error unless t has at least two dimensions.
function matrices.check(title, name, t)
  args.check(t.ndim >= 2,
    "%s: expected a matrix or a batch of matrices for argument '%s', got shape %s", title, name,
    t.shape)
end

--- Raises an error unless t is a batch of square matrices.
function matrices.check_square(title, name, t)
  matrices.check(title, name, t)
  args.check(t:size(-1) == t:size(-2), "%s: expected square matrices for argument '%s', got "
    .. "shape %s", title, name, t.shape)
end

local LAPACK = {float32 = true, float64 = true, complex64 = true, complex128 = true}

--- Raises an error unless t is a batch of matrices in a dtype of LAPACK.
function matrices.check_dtype(title, name, t)
  matrices.check(title, name, t)
  args.check(LAPACK[t.dtype],
    '%s: expected dtype "float32", "float64", "complex64" or "complex128" for argument \'%s\', '
    .. 'got "%s"', title, name, t.dtype)
end

--- Raises an error unless t is a batch of square matrices in a dtype of LAPACK.
function matrices.check_system(title, name, t)
  matrices.check_square(title, name, t)
  matrices.check_dtype(title, name, t)
end

--- Raises an error unless b, the argument `name`, is the right side of systems with the square
-- matrices a, the argument `of`: in the same dtype, with as many rows, or columns if `left` is
-- false.
function matrices.check_right(title, name, b, of, a, left)
  matrices.check(title, name, b)
  args.check(b.dtype == a.dtype, "%s: expected the same dtype for arguments '%s' and '%s', got %q "
    .. "and %q", title, of, name, a.dtype, b.dtype)
  local dim = left == false and -1 or -2
  args.check(b:size(dim) == a:size(-1), "%s: expected %d %s, the size of '%s', for argument '%s', "
    .. "got shape %s", title, a:size(-1), left == false and "columns" or "rows", of, name,
    b.shape)
end

--- Returns t's shape without its last `drop` dimensions, followed by the sizes in `...`.
function matrices.shape_of(t, drop, ...)
  local shape = {}
  for d = 1, t.ndim - drop do shape[d] = t.shape[d] end
  return table.move({...}, 1, select("#", ...), #shape + 1, shape)
end

-- Returns whether a and b have the same batch dimensions.
local function same_batch(a, b)
  if a.ndim ~= b.ndim then return false end
  for d = 1, a.ndim - 2 do
    if a:size(d) ~= b:size(d) then return false end
  end
  return true
end

--- Returns a and b with their batch dimensions broadcast.
function matrices.broadcast(title, a, b)
  if same_batch(a, b) then return a, b end
  local x, y = matrices.shape_of(a, 2), matrices.shape_of(b, 2)
  local shape = tensors.broadcast_shape(x, y)
  args.check(shape, "%s: cannot broadcast the batch dimensions of shapes %s and %s", title,
    a.shape, b.shape)
  local function expanded(t, own)
    if #own == #shape and table.concat(own, ",") == table.concat(shape, ",") then return t end
    local sizes = table.move(shape, 1, #shape, 1, {})
    sizes[#sizes + 1], sizes[#sizes + 2] = t:size(-2), t:size(-1)
    return t:expand(sizes)
  end
  return expanded(a, x), expanded(b, y)
end

--- Returns whether the right side b of a system with matrices a consists of vectors: b has one
-- dimension, or a's shape without the last one.
function matrices.is_vector(a, b)
  if b.ndim == 1 then return true end
  if a.ndim - 1 ~= b.ndim then return false end
  for d = 1, b.ndim do
    if a.shape[d] ~= b.shape[d] then return false end
  end
  return true
end

-- Returns the best order of products of matrices with the sizes n[i] x n[i + 1]: a table
-- order[i][j] = k, where the product of i to j is split after k (Cormen et al., Introduction to
-- Algorithms, 14.2).
local function best_order(n)
  local count, cost, order = #n - 1, {}, {}
  for i = 1, count do cost[i], order[i] = {[i] = 0}, {} end
  for length = 2, count do
    for i = 1, count - length + 1 do
      local j = i + length - 1
      cost[i][j] = math.huge
      for k = i, j - 1 do
        local c = cost[i][k] + cost[k + 1][j] + 1.0 * n[i] * n[k + 1] * n[j + 1]
        if c < cost[i][j] then cost[i][j], order[i][j] = c, k end
      end
    end
  end
  return order
end

--- Returns the product of a list of matrices, in the order that takes the fewest multiplications.
-- Raises an error of `title` unless each tensor has two dimensions and the inner sizes agree.
function matrices.chain_product(title, list)
  local sizes = {}
  for i, t in ipairs(list) do
    args.check(t.ndim == 2, "%s: expected 2 dimensions for tensor %d, got shape %s", title, i,
      t.shape)
    args.check(i == 1 or sizes[i] == t:size(1), "%s: cannot multiply tensors %d and %d: the inner "
      .. "sizes %d and %d differ", title, i - 1, i, sizes[i], t:size(1))
    sizes[i], sizes[i + 1] = t:size(1), t:size(2)
  end
  local order = best_order(sizes)
  local function product(i, j)
    if i == j then return list[i] end
    local k = order[i][j]
    return product(i, k):mm(product(k + 1, j))
  end
  return product(1, #list)
end

--- Returns the first n columns of the identity matrix of m rows, in t's dtype and on its device.
function matrices.eye(t, m, n)
  return lt.eye(m, n, {dtype = tensors.real_dtype(t), device = t.device}):to(t.dtype)
end

--- Returns identity matrices of t's shape, dtype and device.
function matrices.eye_like(t) return matrices.eye(t, t:size(-2), t:size(-1)):expand(t.shape) end

return matrices
