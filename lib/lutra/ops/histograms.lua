--- Histograms: counts of elements in bins.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

-- Returns how often each of 1 .. n is in `index`, a vector of int64.
local function counts_of(index, n)
  return index:new_zeros(n):index_add_(1, index, index:new_ones(1):expand(index:numel()))
end

lt._define{
  signature = "lt.bincount(Index self, Tensor? weights = nil, int(>=0) minlength = 0)",
  doc = "The number of elements of value k (from 1), or the sum of their weights, at index k.",
  example = "lt.bincount(lt.tensor{1, 3, 3, 4})",
  method = true,
  fn = function(x, weights, minlength)
    if x.ndim ~= 1 then
      args.fail("bincount: expected a vector for argument 'self', got %s", x.shape)
    end
    local dtype = x.dtype
    args.check(not x:is_floating_point() and dtype ~= "bool",
      'bincount: expected an integer dtype for argument \'self\', got "%s"', dtype)
    if weights and weights.shape ~= x.shape then
      args.fail("bincount: expected the shape %s for argument 'weights', got %s", x.shape,
        weights.shape)
    end
    if not weights and x.is_cpu then return lt._ops._bincount(x, minlength) end
    if dtype ~= "int64" then x = x:long() end
    local n = minlength
    if x:numel() > 0 then
      local low, high = x:amin():item(), x:amax():item()
      args.check(low >= 1, "bincount: expected values from 1 on for argument 'self', got %d", low)
      n = math.max(n, high)
    end
    if not weights then return counts_of(x, n) end
    local wide = x.is_mps and "float32" or "float64"
    dtype = weights.dtype == "float32" and "float32" or wide
    return lt.zeros{n, dtype = dtype, device = x.device}
      :index_add_(1, x, weights:detach():to(dtype))
  end,
}

-- Returns the lowest and highest edge: `low` and `high`, or without them the range of the data. A
-- range of one value is widened by `margin` on both sides.
local function outer_edges(title, x, low, high, margin)
  if low == nil and x:numel() == 0 then
    low, high = 0, 1
  elseif low == nil then
    low, high = x:amin():item(), x:amax():item()
  end
  args.check(low == low and high == high and low > -math.huge and high < math.huge,
    "%s: expected a finite range, got %g to %g", title, low, high)
  args.check(low <= high, "%s: expected a range in ascending order, got %g to %g", title, low, high)
  if low == high then return low - margin, high + margin end
  return low, high
end

lt._define{
  signature = "lt.histc(Tensor self, int(>=1) bins = 100, float min = 0, float max = 0)",
  doc = "The number of elements in each of `bins` bins of equal width from min to max (where they "
    .. "are equal, the range of the data). Elements outside are not counted.",
  example = "lt.histc(lt.tensor{1., 2, 1, 4}, 3, 1, 4)",
  method = true,
  fn = function(x, bins, min, max)
    tensors.check_float("histc", "self", x)
    local flat = x:detach():reshape(-1)
    local same = min == max and flat:numel() > 0
    local low, high = outer_edges("histc", flat, not same and min or nil, max, 1)
    if x.is_cpu and bins <= 1 << 24 and (x.dtype == "float32" or x.dtype == "float64") then
      return lt._ops._histc(flat, bins, low, high)
    end
    local at = (flat - low):mul_(bins):div_(high - low):clamp_(0, bins - 1)
    if not same then -- elements outside are counted in one more bin, the first
      at = lt.where(flat:ge(low):logical_and(flat:le(high)), at, -1)
    end
    return counts_of(at:long():add_(2), bins + 1):narrow(1, 2, bins):to(x.dtype)
  end,
}

-- Returns the edges of `bins` bins (or the edges given) for a vector of values.
local function edges_of(title, x, bins, low, high)
  if lt.is_tensor(bins) then
    args.check(bins.ndim == 1 and bins:numel() > 0,
      "%s: expected a vector of edges for argument 'bins', got %s", title, bins.shape)
    args.check(bins.dtype == x.dtype, '%s: expected the dtype "%s" for argument \'bins\', got "%s"',
      title, x.dtype, bins.dtype)
    return bins:contiguous()
  end
  args.check(bins >= 1, "%s: expected an integer of at least 1 for argument 'bins', got %d", title,
    bins)
  low, high = outer_edges(title, x, low, high, 0.5)
  return lt.linspace(low, high, bins + 1, {dtype = x.dtype, device = x.device})
end

-- Returns the bin (from 0) of each value, and whether it is inside; the last bin includes its end.
local function bin_of(x, edges)
  local n = edges:size(1) - 1
  local inside = x:ge(edges[1]):logical_and(x:le(edges[-1]))
  local at = lt._ops._searchsorted(edges, x:contiguous(), true) - 2
  return at:clamp(0, math.max(n - 1, 0)), inside
end

local function check_range(title, range, count)
  args.check(range == nil or #range == count,
    "%s: expected a list of %d numbers for argument 'range', got %d", title, count,
    range and #range)
end

-- Counts rows of coordinates {n, d} in bins; returns the histogram and the list of edges.
local function count(title, x, bins, range, weight, density)
  local n, d = x:size(1), x:size(2)
  check_range(title, range, 2 * d)
  local place = lt.zeros{n, dtype = "int64", device = x.device}
  local inside = lt.ones{n, dtype = "bool", device = x.device}
  local all_edges, sizes, total = {}, {}, 1
  for k = 1, d do
    local column = x:select(2, k)
    local low, high
    if range then low, high = range[2 * k - 1], range[2 * k] end
    local edges = edges_of(title, column, bins[k], low, high)
    local size = edges:size(1) - 1
    local at, ok = bin_of(column, edges)
    place, inside = place * size + at, inside:logical_and(ok)
    all_edges[k], sizes[k], total = edges, size, total * size
  end
  local counts = lt.zeros{total, dtype = x.dtype, device = x.device}
  if n > 0 and total > 0 then
    local one = weight and lt.where(inside, weight, 0) or inside:to(x.dtype)
    counts = counts:index_add(1, lt.where(inside, place, 0) + 1, one)
  end
  counts = counts:reshape(sizes)
  if density then
    counts = counts / counts:sum()
    for k = 1, d do
      local shape = {}
      for j = 1, d do shape[j] = j == k and -1 or 1 end
      counts = counts / all_edges[k]:diff():reshape(shape)
    end
  end
  return counts, all_edges
end

-- Returns the weights as a vector of n elements.
local function flat_weight(title, x, weight, shape)
  if not weight then return nil end
  args.check(weight.shape == shape, "%s: expected the shape %s for argument 'weight', got %s",
    title, shape, weight.shape)
  args.check(weight.dtype == x.dtype,
    '%s: expected the dtype "%s" for argument \'weight\', got "%s"', title, x.dtype, weight.dtype)
  return weight:detach():reshape(-1)
end

local function expect_float(title, x)
  args.check(x.dtype == "float32" or x.dtype == "float64",
    '%s: expected the dtype "float32" or "float64" for argument \'self\', got "%s"', title, x.dtype)
end

lt._define{
  signature = "lt.histogram(Tensor self, Tensor|int bins, floats? range = nil, "
    .. "Tensor? weight = nil, bool density = false) -> Tensor hist, Tensor bin_edges",
  doc = "The number of elements (or sum of weights) in each bin, and the edges of the bins: "
    .. "given, or evenly spaced over `range` (by default that of the data). With density, the "
    .. "integral is 1.",
  example = "lt.histogram(lt.tensor{1., 2, 1}, 2)",
  method = true,
  fn = function(x, bins, range, weight, density)
    expect_float("histogram", x)
    weight = flat_weight("histogram", x, weight, x.shape)
    local points = x:detach():reshape(-1, 1)
    local hist, edges = count("histogram", points, {bins}, range, weight, density)
    return hist, edges[1]
  end,
}

lt._define{
  signature = "lt.histogramdd(Tensor self, list|int bins, floats? range = nil, "
    .. "Tensor? weight = nil, bool density = false) -> Tensor hist, Tensor[] bin_edges",
  doc = "Histogram in d dims of points {..., d}. bins: the number of bins, or a list with the "
    .. "number or the edges for each dim. range: the lowest and highest edge of each dim, in one "
    .. "list.",
  example = "lt.histogramdd(lt.tensor{{0., 1}, {1, 0}, {1, 1}}, {2, 2})",
  method = true,
  fn = function(x, bins, range, weight, density)
    expect_float("histogramdd", x)
    args.check(x.ndim >= 2,
      "histogramdd: expected a tensor of at least 2 dims for argument 'self', got %s", x.shape)
    local d = x:size(-1)
    if type(bins) == "number" then
      local each = {}
      for k = 1, d do each[k] = bins end
      bins = each
    end
    args.check(#bins == d, "histogramdd: expected a list of %d entries for argument 'bins', got %d",
      d, #bins)
    local shape = {}
    for k = 1, x.ndim - 1 do shape[k] = x:size(k) end
    weight = flat_weight("histogramdd", x, weight, lt.empty{shape, device = "meta"}.shape)
    return count("histogramdd", x:detach():reshape(-1, d), bins, range, weight, density)
  end,
}
