--- Sorting and searching: kthvalue, msort, unique, searchsorted and their relatives, by the ops
-- sort, cumsum and the binary search.

local lt = require "lutra"
local args = require "lutra.internal.args"
local dims = require "lutra.internal.dims"
local tensors = require "lutra.internal.tensors"

local ops = lt._ops

-- ---- elements by rank

-- Returns the indices of the elements in order along a dim: of all, or of the first k where these
-- are few.
local function order_of(line, dim, k)
  if type(k) == "number" and k <= line:size(dim) // 8 then
    return select(2, line:topk(k, dim, false))
  end
  return select(2, line:sort{dim = dim, stable = true})
end

-- Returns whether rank k among n elements is found faster by selection than among the k smallest.
local function by_selection(k, n) return k > 32 or k > n // (n > 32 and 32 or 8) end

-- Returns the values and indices of the elements with rank `k` (a number, or a tensor with one rank
-- for each line) along a dim.
local function of_rank(x, dim, k, keepdim)
  local line = x.ndim == 0 and x:reshape(1) or x
  local order = order_of(line:detach(), dim, k)
  local at = type(k) == "number" and order:narrow(dim, k, 1) or order:gather(dim, k)
  local values = line:gather(dim, at)
  if x.ndim == 0 or not keepdim then values, at = values:squeeze(dim), at:squeeze(dim) end
  return values, at
end

lt._define{
  signature = "lt.kthvalue(Tensor self, int k, dim dim = -1, bool keepdim = false) "
    .. "-> Tensor values, Index indices",
  doc = "The k-th smallest values along dim (NaN is the largest), and their indices.",
  example = "lt.kthvalue(lt.tensor{5, 2, 9}, 2)",
  method = true,
  fn = function(x, k, dim, keepdim)
    dim = dims.one("kthvalue", x, dim)
    local n = dims.size(x, dim)
    args.check(k >= 1 and k <= n,
      "kthvalue: expected a rank from 1 to %d, the size of dim %d, for argument 'k', got %d", n,
      dim, k)
    if x.is_cpu and by_selection(k, n) then return ops._kthvalue(x, dim, keepdim, k) end
    return of_rank(x, dim, k, keepdim)
  end,
}

lt._define{
  signature = "lt.msort(Tensor self)",
  doc = "Values sorted along the first dim.",
  example = "lt.msort(lt.tensor{{3, 1}, {2, 4}})",
  method = true,
  fn = function(x) return (x:sort(1)) end,
}

-- ---- median

-- Returns the rank of the median of each line: with `skip`, of those that are not NaN, else that of
-- the first NaN where there is one.
local function median_rank(x, dim, skip)
  local n = dims.size(x, dim)
  if not x:is_floating_point() then return (n + 1) // 2 end
  local line = x.ndim == 0 and x:reshape(1) or x
  local numbers = n - line:isnan():sum{dim = dim, keepdim = true}
  local middle = ((numbers + 1) // 2):clamp{min = 1}
  if skip then return middle end
  return lt.where(numbers:lt(n), numbers + 1, middle)
end

-- Returns the median of a line without its gradient: NaN, which is sorted to the end, if there is
-- one.
local function median_of_line(line)
  local sorted = line:sort()
  local n = line:numel()
  local value, last = sorted[(n + 1) // 2], sorted[n]
  return line:is_floating_point() and lt.where(last:isnan(), last, value) or value
end

-- Returns the median of all elements. Equal elements share the gradient.
local function median_of_all(title, x, skip)
  local on_cpu, rank = x.is_cpu, skip and -1 or 0
  local flat = x.ndim == 1 and x or x:reshape(-1)
  if flat:numel() == 0 then
    args.check(x:is_floating_point(), "%s: cannot reduce %s: it has no elements", title, x.shape)
    return x:new_full({}, lt.nan)
  end
  if on_cpu and not x.requires_grad then return (ops._kthvalue(flat, 1, false, rank)) end
  local numbers = flat:detach()
  local value
  if on_cpu then
    value = ops._kthvalue(numbers, 1, false, rank)
  else
    value = skip and of_rank(numbers, 1, median_rank(numbers, 1, skip), false)
      or median_of_line(numbers)
  end
  if not (x.requires_grad and lt.is_grad_enabled()) then return value end
  local equal = lt.where(value:isnan(), flat:isnan(), flat:eq(value))
  return lt.where(equal, flat, 0):sum() / equal:sum()
end

local function median(title, skip, x, dim, keepdim)
  if dim == nil then return median_of_all(title, x, skip) end
  dim = dims.one(title, x, dim)
  args.check(dims.size(x, dim) > 0, "%s: cannot reduce dim %d of %s: its size is 0", title, dim,
    x.shape)
  if x.is_cpu then return ops._kthvalue(x, dim, keepdim, skip and -1 or 0) end
  return of_rank(x, dim, median_rank(x, dim, skip), keepdim)
end

lt._define{
  signature = "lt.median(Tensor self, dim? dim = nil, bool keepdim = false) "
    .. "-> Tensor values, Index indices",
  doc = "Median of all elements; along dim also its index. Of two the lower; NaN if any is NaN.",
  example = "lt.median(lt.tensor{5, 2, 9})",
  method = true,
  fn = function(...) return median("median", false, ...) end,
}

lt._define{
  signature = "lt.nanmedian(Tensor self, dim? dim = nil, bool keepdim = false) "
    .. "-> Tensor values, Index indices",
  doc = "Median of the elements that are not NaN; along dim also its index. Of two the lower.",
  example = "lt.nanmedian(lt.tensor{5., 2, lt.nan})",
  method = true,
  fn = function(...) return median("nanmedian", true, ...) end,
}

lt._define{
  signature = "lt.mode(Tensor self, dim dim = -1, bool keepdim = false) "
    .. "-> Tensor values, Index indices",
  doc = "The most frequent value along dim, the smallest of several, and its last index.",
  example = "lt.mode(lt.tensor{1, 3, 3, 2})",
  method = true,
  fn = function(x, dim, keepdim)
    dim = dims.one("mode", x, dim)
    if x.is_cpu and dims.size(x, dim) > 0 then return ops._mode(x, dim, keepdim) end
    local line = x.ndim == 0 and x:reshape(1) or x
    local n = line:size(dim)
    args.check(n > 0, "mode: cannot reduce dim %d of %s: its size is 0", dim, x.shape)
    local sorted, order = line:detach():sort{dim = dim, stable = true}
    local place = lt.arange(n, {device = x.device}):reshape(dims.at(line, dim, n, 1))
    local starts = dims.range(sorted, dim, 2, n):ne(dims.range(sorted, dim, 1, n - 1))
    local first = lt.cat({place:narrow(dim, 1, 1):expand_as(sorted:narrow(dim, 1, 1)),
      lt.where(starts, dims.range(place, dim, 2, n), 1)}, dim)
    local length = place - first:cummax(dim)
    local at = order:gather(dim, length:argmax(dim, true))
    local values = line:gather(dim, at)
    if x.ndim == 0 or not keepdim then values, at = values:squeeze(dim), at:squeeze(dim) end
    return values, at
  end,
}

-- ---- searching

-- Returns the sequence and the values in one dtype, values as a tensor.
local function comparable(sequence, values)
  if not lt.is_tensor(values) then
    if math.type(values) == "float" and not sequence:is_floating_point() then
      sequence = sequence:to(sequence.is_mps and "float32" or "float64")
    end
    values = lt.full({}, values, {dtype = sequence.dtype, device = sequence.device})
  end
  if sequence.dtype == values.dtype then return sequence, values end
  local dtype = lt.promote_types(sequence.dtype, values.dtype)
  return sequence:to(dtype), values:to(dtype)
end

local function search(sequence, values, as_int32, right)
  if not lt.is_tensor(values) or values.dtype ~= sequence.dtype then
    sequence, values = comparable(sequence, values)
  end
  local at = ops._searchsorted(sequence, values, right)
  return as_int32 and at:int() or at
end

lt._define{
  signature = "lt.searchsorted(Tensor sorted_sequence, Operand self, bool out_int32 = false, "
    .. "bool right = false, 'left'|'right'? side = nil, Index? sorter = nil) -> Index",
  doc = "Indices at which the elements of self keep the last dim of sorted_sequence sorted: before "
    .. "equal elements, or after them with `right`. `sorter` are the indices that sort it.",
  example = 'lt.searchsorted(lt.tensor{10, 20, 30}, lt.tensor{5, 20, 35})',
  fn = function(sequence, values, as_int32, right, side, sorter)
    args.check(side ~= "left" or not right,
      "searchsorted: expected 'right' for argument 'side' where right is true, got 'left'")
    local ndim = sequence.ndim
    if ndim == 0 then
      args.fail("searchsorted: expected a tensor of at least 1 dim for argument 'sorted_sequence', "
        .. "got %s", sequence.shape)
    elseif ndim > 1 and not lt.is_tensor(values) then
      args.fail("searchsorted: expected a vector for argument 'sorted_sequence' where argument "
        .. "'self' is a number, got %s", sequence.shape)
    end
    if sorter then
      args.check(sorter.shape == sequence.shape, "searchsorted: expected the shape %s for argument "
        .. "'sorter', got %s", sequence.shape, sorter.shape)
      sequence = sequence:gather(-1, sorter)
    end
    return search(sequence, values, as_int32, right or side == "right")
  end,
}

lt._define{
  signature = "lt.bucketize(Operand self, Tensor boundaries, bool out_int32 = false, "
    .. "bool right = false) -> Index",
  doc = "The number of the bucket of each element of self, from 1: a bucket ends at the next of "
    .. "the sorted boundaries, which belongs to it; with `right` to the bucket after it.",
  example = 'lt.bucketize(lt.tensor{5, 20, 35}, lt.tensor{10, 20, 30})',
  fn = function(values, boundaries, as_int32, right)
    if boundaries.ndim ~= 1 then
      args.fail("bucketize: expected a vector for argument 'boundaries', got %s", boundaries.shape)
    end
    tensors.check_real("bucketize", "boundaries", boundaries)
    if lt.is_tensor(values) then tensors.check_real("bucketize", "self", values) end
    return search(boundaries, values, as_int32, right)
  end,
}

-- ---- unique elements

-- Returns the ranks (from 1) of the elements among the distinct ones of their line along dim 2.
local function ranks(x)
  local n = x:size(2)
  if n == 0 then return x:long() end
  local sorted, order = x:sort{dim = 2, stable = true}
  local new = dims.range(sorted, 2, 2, n):ne(dims.range(sorted, 2, 1, n - 1)):cumsum(2) + 1
  local rank = lt.cat({new:new_ones{new:size(1), 1}, new}, 2)
  return rank:scatter(2, order, rank)
end

-- Returns a number for each row of a matrix: rows compare like their numbers. Neighbouring columns
-- are replaced by the ranks of their pairs until one is left.
local function row_keys(x)
  local columns = x:t()
  if columns:size(1) == 0 then return lt.zeros{x:size(1), dtype = "int64", device = x.device} end
  columns = ranks(columns)
  while columns:size(1) > 1 do
    local m, n = columns:size(1), columns:size(2)
    local pairs_of = columns:narrow(1, 1, m // 2 * 2):reshape(m // 2, 2, n)
    local joined = ranks(pairs_of:select(2, 1) * (n + 1) + pairs_of:select(2, 2))
    columns = m % 2 == 0 and joined or lt.cat({joined, columns:narrow(1, m, 1)}, 1)
  end
  return columns:select(1, 1)
end

-- Returns whether each element of a vector differs from the one before.
local function changes(x)
  local n = x:size(1)
  local first = lt.ones{n, dtype = "bool", device = x.device}
  if n < 2 then return first end
  return lt.cat({first:narrow(1, 1, 1), dims.range(x, 1, 2, n):ne(dims.range(x, 1, 1, n - 1))}, 1)
end

-- Groups the neighbours of a vector that are equal. Returns the first index of each group, and the
-- number of the group (from 1) of each element.
local function groups(keys)
  local first = changes(keys)
  return first:nonzero():select(2, 1), first:cumsum(1)
end

-- Returns the results of unique: values, and inverse and counts if they are requested. `keys` is a
-- vector whose elements are equal where those of x along dim are; `order` are the indices that sort
-- it, nil to group neighbours only.
local function collect(x, dim, keys, order, shape, inverse, counts)
  local n = keys:size(1)
  local starts, group = groups(order and keys:index_select(1, order) or keys)
  local places = order and order:index_select(1, starts) or starts
  local results = {x:index_select(dim, places)}
  if inverse then
    local own = order and group:scatter(1, order, group) or group
    results[2] = own:reshape(shape)
  end
  if counts then
    local stops = starts
    if n > 0 then
      stops = lt.cat({dims.range(starts, 1, 2, starts:size(1)), starts:new_full({1}, n + 1)}, 1)
    end
    results[#results + 1] = stops - starts
  end
  return table.unpack(results)
end

-- Returns the keys of the elements of x along a dim.
local function keys_of(x, dim)
  local n, size = x:size(dim), 1
  for d = 1, x.ndim do size = d == dim and size or size * x:size(d) end
  return row_keys(x:movedim(dim, 1):reshape(n, size))
end

-- Computes unique, or unique_consecutive unless `sorted`.
local function unique(title, sorted, x, inverse, counts, dim)
  x = x:detach()
  local keys, shape
  if dim == nil or x.ndim == 0 then
    if not inverse and not counts then
      local line = x.ndim == 1 and x or x:reshape(-1)
      if sorted then line = line:sort() end
      return line:masked_select(changes(line))
    end
    shape, x, dim = x.shape, x:reshape(-1), 1
    keys = x
  else
    dim = dims.one(title, x, dim)
    keys, shape = keys_of(x, dim), {x:size(dim)}
  end
  local order = sorted and keys:argsort{stable = true} or nil
  return collect(x, dim, keys, order, shape, inverse, counts)
end

lt._define{
  signature = "lt.unique(Tensor self, bool sorted = true, bool return_inverse = false, "
    .. "bool return_counts = false, dim? dim = nil) -> Tensor values, Index inverse_indices, "
    .. "Tensor counts",
  doc = "The distinct elements (with dim: the distinct slices along it), sorted; then, if they are "
    .. "requested, the index of each element's value and the number of elements of each value.",
  example = "lt.unique(lt.tensor{3, 1, 3, 2})",
  method = true,
  fn = function(x, _, ...) return unique("unique", true, x, ...) end,
}

lt._define{
  signature = "lt.unique_consecutive(Tensor self, bool return_inverse = false, "
    .. "bool return_counts = false, dim? dim = nil) -> Tensor values, Index inverse_indices, "
    .. "Tensor counts",
  doc = "The elements (with dim: the slices along it) without those that equal the one before; "
    .. "then, if they are requested, the index of each element's value and the lengths of runs.",
  example = "lt.unique_consecutive(lt.tensor{1, 1, 2, 2, 1})",
  method = true,
  fn = function(...) return unique("unique_consecutive", false, ...) end,
}
