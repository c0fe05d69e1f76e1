--- Reading and writing by index tensors, in the forms of PyTorch that are composed of the ops
-- `_index`, `_index_put`, gather and scatter.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local retitle = require "lutra.internal.retitle"
local tensors = require "lutra.internal.tensors"

local ops = core._ops

-- ---- the elements of a flattened tensor

lt._define{
  signature = "lt.take(Tensor self, Index index)",
  doc = "Elements of the flattened tensor at the indices, in the shape of `index`.",
  method = true,
  example = "lt.tensor{{1, 2}, {3, 4}}:take(lt.tensor{1, 4})",
  fn = function(x, index)
    local dtype = index.dtype
    if dtype ~= "int64" and (dtype == "bool" or not tensors.is_integral(index)) then
      args.fail("take: expected an integer dtype for argument 'index', got %q", dtype)
    end
    if x:numel() == 0 and index:numel() > 0 then
      args.fail("take: cannot index a tensor of shape %s: it has no elements", x.shape)
    end
    return ops._index(x:reshape(-1), {index}, {0})
  end,
}

-- Calls _index_put or _index_put_ for the flattened x.
local function put_at(op, title, x, index, source, accumulate)
  args.check(index:numel() == source:numel(),
    "%s: expected as many elements for argument 'source' as for 'index' (%d), got %d", title,
    index:numel(), source:numel())
  args.check(source.dtype == x.dtype,
    "%s: expected dtype %q, that of self, for argument 'source', got %q", title, x.dtype,
    source.dtype)
  return retitle("index_" .. title, title, op, x:reshape(-1), {index:reshape(-1)}, {0},
    source:reshape(-1), accumulate)
end

lt._define{
  signature = "lt.put(Tensor self, Index index, Tensor source, bool accumulate = false)",
  doc = "Writes source to the elements of the flattened tensor at the indices, or adds it.",
  method = true,
  in_place = true,
  example = "lt.zeros(2, 2):put(lt.tensor{1, 4}, lt.tensor{5., 6.})",
  fn = function(x, ...) return put_at(ops._index_put, "put", x, ...):reshape(x.shape) end,
  change = function(x, ...)
    if not x:is_contiguous() then return nil end
    put_at(ops._index_put_, "put_", x, ...)
    return x
  end,
}

-- ---- several index tensors

-- Returns the index tensors in `list` (false: the whole dim) and their dims, 0-based: a mask stands
-- for an index tensor for each of its dims. Checks the values for these, too.
local function expanded(title, x, list, values)
  args.check(values.dtype == x.dtype,
    "%s: expected dtype %q, that of self, for argument 'values', got %q", title, x.dtype,
    values.dtype)
  local indices, dims, d = {}, {}, 0
  local count = 0
  for i in pairs(list) do
    args.check(math.type(i) == "integer" and i > 0,
      "%s: expected a list for argument 'indices', got a table with the key %s", title,
      args.show(i))
    count = math.max(count, i)
  end
  args.check(count <= x.ndim,
    "%s: expected at most %d index tensors for argument 'indices', got %d", title, x.ndim, count)
  for i = 1, count do
    local t = list[i]
    if not t then
      d = d + 1
    else
      args.check(lt.is_tensor(t),
        "%s: expected a tensor or false for argument 'indices[%d]', got %s", title, i, args.show(t))
      if t.dtype == "bool" then
        for k = 1, t.ndim do
          args.check(t:size(k) == x.shape[d + k],
            "%s: expected the sizes of self, %s, for argument 'indices[%d]', a mask, got %s", title,
            x.shape, i, t.shape)
        end
        local places = t:nonzero()
        for k = 1, t.ndim do
          indices[#indices + 1], dims[#dims + 1] = places:select(2, k), d
          d = d + 1
        end
      else
        indices[#indices + 1], dims[#dims + 1] = t, d
        d = d + 1
      end
    end
  end
  args.check(d <= x.ndim,
    "%s: expected at most %d index tensors for argument 'indices', got %d", title, x.ndim, d)
  return indices, dims
end

lt._define{
  signature = "lt.index_put(Tensor self, list indices, Tensor values, bool accumulate = false)",
  doc = "Writes values to self[indices], or adds them. `indices` has an index tensor or a mask for "
    .. "each dim, or false for the whole dim.",
  method = true,
  in_place = true,
  example = "lt.zeros(2, 2):index_put({lt.tensor{1, 2}, lt.tensor{2, 1}}, lt.ones(2))",
  fn = function(x, list, values, accumulate)
    local indices, dims = expanded("index_put", x, list, values)
    if #indices == 0 then
      return accumulate and x + values or x:clone():copy_(values)
    end
    return ops._index_put(x, indices, dims, values, accumulate)
  end,
  change = function(x, list, values, accumulate)
    local indices, dims = expanded("index_put_", x, list, values)
    if #indices == 0 then return accumulate and x:add_(values) or x:copy_(values) end
    return ops._index_put_(x, indices, dims, values, accumulate)
  end,
}

-- Returns whether an index of take_along_dim may be negative: on the CPU, whether one is. There,
-- refuses indices beyond the size; other devices do so in gather.
local function may_be_negative(indices, size)
  if not tensors.has_values(indices) or not indices.is_cpu then return true end
  if indices:numel() == 0 then return false end
  local least, most = indices:aminmax()
  least, most = least:item(), most:item()
  local bad = most > size and most or (least < -size or least == 0) and least
  args.check(not bad, "take_along_dim: expected an index from 1 to %d, or negative from the end, "
    .. "for argument 'indices', got %d", size, bad or 0)
  return least < 0
end

lt._define{
  signature = "lt.take_along_dim(Tensor self, Index indices, dim? dim = nil)",
  doc = "self at the indices along dim, after broadcasting both in the other dims; without dim, of "
    .. "the flattened tensors.",
  method = true,
  example = "lt.tensor{{3, 1, 2}}:take_along_dim(lt.tensor{{2, 3, 1}}, 2)",
  fn = function(x, indices, dim)
    if not dim then
      x, indices, dim = x:reshape(-1), indices:reshape(-1), 1
    end
    local own, at = x.shape, indices.shape
    args.check(#own == #at,
      "take_along_dim: expected %d dims, those of self, for argument 'indices', got %d", #own, #at)
    args.check(tensors.is_integral(indices) and indices.dtype ~= "bool",
      "take_along_dim: expected an integer dtype for argument 'indices', got %q", indices.dtype)
    if #own == 0 then return x:reshape(1):take_along_dim(indices:reshape(1), dim):squeeze(1) end
    args.check(dim ~= 0 and math.abs(dim) <= #own,
      "take_along_dim: cannot use dim %d: it is out of range, the tensor has %d dimensions", dim,
      #own)
    if dim < 0 then dim = dim + #own + 1 end
    local size, count = own[dim], at[dim]
    indices = indices:to "int64"
    if may_be_negative(indices, size) then
      indices = lt.where(indices:lt(0), indices + (size + 1), indices)
    end
    own[dim], at[dim] = 1, 1
    if own ~= at then
      local common = lt.broadcast_shapes(own, at)
      common[dim] = size
      x = x:expand(common)
      common[dim] = count
      indices = indices:expand(common)
    end
    return x:gather(dim, indices)
  end,
}

-- ---- indices

lt._define{
  signature = "lt.argwhere(Tensor self) -> Index",
  doc = "Indices of the elements that are not 0, one in each row: nonzero().",
  method = true,
  example = "lt.argwhere(lt.tensor{0, 5, 7})",
  fn = function(x) return x:nonzero() end,
}

lt._define{
  signature = "lt.nonzero_static(Tensor self, int size, int fill_value = 0) -> Index",
  doc = "The first `size` rows of nonzero(), with rows of fill_value (by default 0, no index) "
    .. "where there are fewer.",
  method = true,
  example = "lt.tensor{0, 5, 7}:nonzero_static(3)",
  fn = function(x, size, fill_value)
    args.expect(size >= 0, "nonzero_static", "an integer of at least 0", "size", size)
    if x.is_meta then return lt.empty({size, x.ndim}, {dtype = "int64", device = "meta"}) end
    local places = x:nonzero()
    local n = math.min(size, places:size(1))
    local rest = lt.full({size - n, x.ndim}, fill_value, {dtype = "int64", device = x.device})
    return lt.cat({places:narrow(1, 1, n), rest}, 1)
  end,
}

lt._define{
  signature = "lt.unravel_index(Index indices, sizes shape) -> Index[]",
  doc = "The index in each dim of elements given by their indices in the flattened tensor of this "
    .. "shape: a tensor for each dim.",
  example = "lt.unravel_index(lt.tensor{1, 5}, {2, 3})",
  fn = function(indices, shape)
    local out = {}
    local rest = indices:to "int64" - 1
    for d = #shape, 1, -1 do
      args.expect(shape[d] >= 0, "unravel_index", "sizes of at least 0", "shape", shape[d])
      out[d] = rest:remainder(shape[d]) + 1
      rest = rest:floor_divide(shape[d])
    end
    return out
  end,
}

-- ---- folds by index

-- Returns the value that a fold in the dtype of x starts from.
local function identity(reduce, x)
  if reduce == "prod" then return 1 end
  if reduce == "amax" then return tensors.lowest(x) end
  return reduce == "amin" and tensors.highest(x) or 0
end

-- The mean: the sum divided by the number of values.
local function mean(x, dim, index, src, include_self, start)
  local sum = start:scatter_add(dim, index, src)
  local count = (include_self and lt.ones_like or lt.zeros_like)(x:detach())
    :scatter_add(dim, index, lt.ones_like(src:detach())):clamp{min = 1}
  return sum:div(count, not x:is_floating_point() and "floor" or nil)
end

local function scatter_reduce(x, dim, index, src, reduce, include_self)
  local start = x
  if not include_self then start = x:scatter(dim, index, identity(reduce, x)) end
  if reduce == "sum" then return start:scatter_add(dim, index, src) end
  if reduce == "mean" then return mean(x, dim, index, src, include_self, start) end
  return ops._scatter_reduce(start, dim, index, src, reduce)
end

-- Does so in place where no other error can follow the first write.
local function scatter_reduce_(x, dim, index, src, reduce, include_self)
  if not include_self or reduce == "mean" then return nil end
  if reduce == "sum" then return x:scatter_add_(dim, index, src) end
  return ops._scatter_reduce_(x, dim, index, src, reduce)
end

local REDUCE = "'sum'|'prod'|'mean'|'amax'|'amin' reduce"

lt._define{
  signature = "lt.scatter_reduce(Tensor self, dim dim, Index index, Tensor src, " .. REDUCE
    .. ", bool include_self = true)",
  doc = "Reduces the elements of src that have the same place self[index[i][j]][j] (for dim 1), "
    .. "and the element of self there unless include_self is false.",
  method = true,
  in_place = true,
  example = 'lt.zeros(2):scatter_reduce(1, lt.tensor{1, 2, 1}, lt.tensor{1., 2., 3.}, "amax")',
  fn = scatter_reduce,
  change = scatter_reduce_,
}

-- Calls scatter_reduce or scatter_reduce_ for slices.
local function reduce_slices(op, title, x, dim, index, source, reduce, include_self)
  args.check(index.ndim <= 1, "%s: expected at most 1 dim for argument 'index', got %d", title,
    index.ndim)
  if x.ndim == 0 then x, source, dim = x:reshape(1), source:reshape(-1), 1 end
  if dim < 0 then dim = dim + x.ndim + 1 end
  args.check(source.ndim == x.ndim, "%s: expected %d dims for argument 'source', got %d", title,
    x.ndim, source.ndim)
  args.check(source:size(dim) == index:numel(),
    "%s: expected one index for each of the %d slices of source along dim %d, got %d", title,
    source:size(dim), dim, index:numel())
  local shape = {}
  for d = 1, x.ndim do
    shape[d] = d == dim and index:numel() or 1
    args.check(d == dim or source:size(d) == x:size(d),
      "%s: expected the sizes of self %s except in dim %d for argument 'source', got %s", title,
      x.shape, dim, source.shape)
  end
  return op(x, dim, index:reshape(shape):expand(source.shape), source, reduce, include_self)
end

lt._define{
  signature = "lt.index_reduce(Tensor self, dim dim, Index index, Tensor source, "
    .. "'prod'|'mean'|'amax'|'amin' reduce, bool include_self = true)",
  doc = "Reduces the slices of source along dim that have the same index, and the slice of self "
    .. "there unless include_self is false.",
  method = true,
  in_place = true,
  example = 'lt.ones(2):index_reduce(1, lt.tensor{1, 2, 1}, lt.tensor{1., 2., 3.}, "prod")',
  fn = function(x, ...)
    return reduce_slices(scatter_reduce, "index_reduce", x, ...):reshape(x.shape)
  end,
  change = function(x, ...)
    return reduce_slices(scatter_reduce_, "index_reduce_", x, ...) and x
  end,
}
