--- Embeddings: rows of a table by index, alone and in bags.

local lt = require "lutra"
local args = require "lutra.internal.args"
local retitle = require "lutra.internal.retitle"
local tensors = require "lutra.internal.tensors"

-- The same values; the gradient is multiplied by `factor`.
local Scaled = lt.autograd.Function:extend "embedding"

function Scaled.forward(ctx, x, factor)
  ctx:save_for_backward(factor)
  return x:clone()
end

function Scaled.backward(ctx, g) return g * ctx:saved() end

-- A 1-based index of a row from an index that may count from the end; nil stays nil.
local function row_number(title, index, count)
  if index == nil then return nil end
  args.check(index ~= 0 and index >= -count and index <= count,
    "%s: expected an index from 1 to %d (or -1 for the last) for argument 'padding_idx', got %d",
    title, count, index)
  return index < 0 and count + 1 + index or index
end

-- Checks the table `weight`; scales its rows at the indices in `rows` to a norm of at most max_norm
-- (nil: any), in place.
local function prepare(title, weight, rows, max_norm, norm_type)
  args.check(weight.ndim == 2, "%s: expected 2 dimensions for argument 'weight', got %d: %s", title,
    weight.ndim, weight.shape)
  if not max_norm or rows:numel() == 0 then return end
  lt.no_grad(function()
    local table_ = weight:detach()
    local found = retitle("embedding", title, lt.embedding, table_, rows)
    local norms = found:norm{p = norm_type, dim = 2, keepdim = true}
    local scale = lt.where(norms:gt(max_norm), max_norm / (norms + 1e-7), lt.ones_like(norms))
    table_:index_copy_(1, rows, found * scale)
  end)
end

-- The rows of weight at a vector of indices, {n, d}.
local function rows_of(title, weight, rows, padding, by_frequency)
  local found = retitle("embedding", title, lt.embedding, weight, rows, padding or 0)
  if not by_frequency or not weight.requires_grad then return found end
  local one = lt.ones(1, {dtype = found.dtype, device = found.device})
  local counts = lt.zeros(weight:size(1), {dtype = found.dtype, device = found.device})
    :index_add(1, rows, one:expand(rows:numel()))
  return Scaled(found, (1 / counts:index_select(1, rows)):unsqueeze(2))
end

lt._define{
  signature = "F.embedding(Index input, Tensor weight, int? padding_idx = nil, "
    .. "float? max_norm = nil, float norm_type = 2, bool scale_grad_by_freq = false, "
    .. "bool sparse = false)",
  doc = "Rows of weight {n, d} by ids {*} from 1 to n, giving {*, d}. Row padding_idx gets no "
    .. "gradient. max_norm scales the rows that are used to this norm, in place; "
    .. "scale_grad_by_freq divides gradients by the number of uses of a row. `sparse` has no "
    .. "effect.",
  example = "F.embedding(lt.tensor{2, 1}, lt.tensor{{1., 2.}, {3., 4.}})",
  fn = function(input, weight, padding, max_norm, norm_type, by_frequency)
    padding = padding and row_number("embedding", padding, weight:size(1))
    if not max_norm and not by_frequency then return lt.embedding(weight, input, padding or 0) end
    local rows = input:reshape(input:numel())
    local sizes = {table.unpack(input.shape)}
    sizes[#sizes + 1] = weight:size(2)
    prepare("embedding", weight, rows, max_norm, norm_type)
    return rows_of("embedding", weight, rows, padding, by_frequency):reshape(sizes)
  end,
}

-- ---- bags

-- The first index of each bag, from offsets.
local function starts_of(offsets, include_last, title)
  args.check(offsets and offsets.ndim == 1,
    "%s: expected a vector of the first index of each bag for argument 'offsets' with an input of "
    .. "one dimension, got %s", title, offsets and tostring(offsets.shape) or "nil")
  if not include_last then return offsets end
  args.check(offsets:numel() > 0, "%s: expected at least one number for argument 'offsets' with "
    .. "include_last_offset, got none", title)
  return offsets:narrow(1, 1, offsets:numel() - 1)
end

-- Calls an op whose index is the offsets: its errors are those of `title` for that argument.
local function at_offsets(title, op, ...)
  local ok, result = pcall(lt[op], ...)
  if ok then return result end
  if type(result) == "string" then
    result = result:gsub(op .. ": (.-)'index'", title .. ": %1'offsets'", 1)
  end
  error(result, 0)
end

-- The number of the bag of each of n indices.
local function bag_numbers(starts, n, title)
  args.check(n == 0 or starts:numel() > 0, "%s: expected at least one number for argument "
    .. "'offsets' with an input of %d indices, got none", title, n)
  local one = lt.ones(1, {dtype = "int64", device = starts.device})
  if n > 0 then -- checks that the first is 1
    at_offsets(title, "index_select", one, 1, starts:narrow(1, 1, 1))
  end
  local zeros = lt.zeros(n + 1, {dtype = "int64", device = starts.device})
  local marks = at_offsets(title, "index_add", zeros, 1, starts:to "int64",
    one:expand(starts:numel()))
  return marks:cumsum(1):narrow(1, 1, n)
end

-- The largest rows of each bag, elementwise; 0 for an empty bag.
local function largest(rows, bag, starts, bags, kept)
  local n, device = rows:size(1), rows.device
  local ones = lt.ones(1, {dtype = "int64", device = device}):expand(n)
  local counts = lt.zeros(bags, {dtype = "int64", device = device}):index_add(1, bag, ones)
  if rows.is_meta then return rows:new_empty(bags, rows:size(2)) end
  local longest = n > 0 and counts:max():item() or 0
  if longest == 0 then return lt.zeros_like(rows:new_empty(bags, rows:size(2))) end
  local place = lt.arange(1, n, {device = device}) - starts:index_select(1, bag) + 1
  local slots = lt.full({bags * longest}, n + 1, {dtype = "int64", device = device})
  local number = lt.arange(1, n, {device = device})
  if kept then number = lt.where(kept, number, lt.full_like(number, n + 1)) end
  slots = slots:index_copy(1, (bag - 1) * longest + place, number)
  local none = lt.full({1, rows:size(2)}, -math.huge, {dtype = rows.dtype, device = device})
  local all = lt.cat({rows, none}, 1):index_select(1, slots)
    :reshape(bags, longest, rows:size(2))
  local empty = slots:reshape(bags, longest):eq(n + 1):all(2, true)
  return ((all:max(2))):masked_fill(empty, 0)
end

-- Reduces the second dim of rows {B, L, d}.
local function of_equal_bags(rows, mode)
  if mode == "max" then return (rows:max(2)) end
  return mode == "mean" and rows:mean(2) or rows:sum(2)
end

-- Sums the rows of `weight` at `input` by bag, for the mean divided by the number of rows. 16-bit
-- rows are summed in float32; these, and factors of another dtype, need copies of the rows.
local function sums(weight, input, bag, bags, factors, mode)
  local dtype, wide = weight.dtype, tensors.is_half(weight.dtype) and "float32" or nil
  if wide or factors and factors.dtype ~= dtype then
    weight = retitle("embedding", "embedding_bag", lt.embedding, weight, input)
    if wide then weight = weight:to(wide) end
    if factors then weight = weight * factors:unsqueeze(2) end
    input, factors = lt.arange(1, input:numel(), {device = input.device}), nil
  end
  local total = retitle("embedding_sum", "embedding_bag", lt._ops._embedding_sum, weight, input,
    bag, bags, factors)
  if mode == "mean" then
    local one = lt.ones(1, {dtype = total.dtype, device = bag.device}):expand(bag:numel())
    local counts = lt.zeros(bags, {dtype = total.dtype, device = bag.device}):index_add(1, bag, one)
    total = total / counts:clamp(1):unsqueeze(2)
  end
  return wide and total:to(dtype) or total
end

lt._define{
  signature = "F.embedding_bag(Index input, Tensor weight, Index? offsets = nil, "
    .. "float? max_norm = nil, float norm_type = 2, bool scale_grad_by_freq = false, "
    .. "'sum'|'mean'|'max' mode = 'mean', bool sparse = false, "
    .. "Tensor? per_sample_weights = nil, bool include_last_offset = false, "
    .. "int? padding_idx = nil)",
  doc = "Sums, means or maxima of rows of weight {n, d} by bags of ids: each row of input {B, L}, "
    .. "or the ids of a vector from one of the offsets (1-based) to before the next. Ids "
    .. "padding_idx are left out. per_sample_weights, of input's shape, needs mode 'sum'. `sparse` "
    .. "has no effect.",
  example = "F.embedding_bag(lt.tensor{1, 2, 2}, lt.tensor{{1., 2.}, {3., 4.}}, lt.tensor{1, 3})",
  fn = function(input, weight, offsets, max_norm, norm_type, by_frequency, mode, _, factors,
    include_last, padding)
    local title = "embedding_bag"
    args.check(input.ndim == 1 or input.ndim == 2,
      "%s: expected 1 or 2 dimensions for argument 'input', got %d", title, input.ndim)
    args.check(not factors or mode == "sum", "%s: expected mode \"sum\" with per_sample_weights, "
      .. "got %q", title, mode)
    args.check(not factors or factors.shape == input.shape, "%s: expected shape %s, input's, for "
      .. "argument 'per_sample_weights', got %s", title, input.shape,
      factors and tostring(factors.shape))
    local count, device = input:numel(), input.device
    local flat = input:reshape(count)
    args.check(input.ndim == 1 or offsets == nil,
      "%s: expected no offsets with an input of two dimensions", title)
    padding = row_number(title, padding, weight:size(1))
    local kept = padding and flat:ne(padding) or nil
    local equal_bags = input.ndim == 2 and not kept and count > 0
    if equal_bags and not factors and weight:is_floating_point() then
      prepare(title, weight, flat, max_norm, norm_type)
      return of_equal_bags(rows_of(title, weight, flat, padding, by_frequency)
        :reshape(input:size(1), input:size(2), weight:size(2)), mode)
    end
    local bags, bag, starts
    if input.ndim == 2 then
      bags = input:size(1)
      local length = input:size(2)
      bag = lt.arange(1, bags, {device = device}):unsqueeze(2):expand(bags, length):reshape(count)
      starts = lt.arange(0, bags - 1, {device = device}) * length + 1
    else
      starts = starts_of(offsets, include_last, title)
      bags, bag = starts:numel(), bag_numbers(starts, count, title)
    end
    prepare(title, weight, flat, max_norm, norm_type)
    if mode == "max" then
      local rows = rows_of(title, weight, flat, padding, by_frequency)
      return largest(rows, bag, starts, bags, kept)
    end
    if by_frequency then
      weight = rows_of(title, weight, flat, padding, true)
      flat = lt.arange(1, count, {device = device})
    end
    factors = factors and factors:reshape(count)
    if not kept then return sums(weight, flat, bag, bags, factors, mode) end
    bag = lt.where(kept, bag, bags + 1) -- the padding is one more bag
    if factors then factors = factors:masked_fill(kept:logical_not(), 0) end -- for its gradients
    return sums(weight, flat, bag, bags + 1, factors, mode):narrow(1, 1, bags)
  end,
}
