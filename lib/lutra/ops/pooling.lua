--- Fractional pools, and what inverts pools of maxima; unfold and fold.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local ops = require("lutra.core")._ops

local pooling = {}

-- ---- arguments

local function repeated(k, value)
  if k == 2 then return {value, value} end
  local list = {}
  for d = 1, k do list[d] = value end
  return list
end

--- Returns a list of k numbers from a number, a list of one, or a list of k; nil and {} are
-- `otherwise`. The messages call the argument `name` of the function `title`.
function pooling.list(title, k, value, name, otherwise)
  local n = value and #value or 0
  if otherwise and n == 0 then return otherwise end
  if n == k then return value end
  if n ~= 1 then
    args.fail("%s: expected %s for argument '%s', got %d numbers", title,
      k == 1 and "1 number" or ("1 or %d numbers"):format(k), name, n)
  end
  return repeated(k, value[1])
end
local list_of = pooling.list

--- Checks that each number of the list is at least `least`.
function pooling.at_least(title, values, least, name)
  for i = 1, #values do
    if values[i] < least then
      args.fail("%s: expected numbers of at least %d for argument '%s', got %d", title, least, name,
        values[i])
    end
  end
end
local at_least = pooling.at_least

--- Checks that x is {C, sizes} or {N, C, sizes} with k sizes, of which no dim but N or the only
-- one before the sizes is empty. Returns its shape.
function pooling.check_input(title, k, x, name)
  local shape = x.shape
  local ndim = #shape
  if ndim ~= k + 1 and ndim ~= k + 2 then
    args.fail("%s: expected %d or %d dimensions for argument '%s', got shape %s", title, k + 1,
      k + 2, name or "input", shape)
  end
  for d = 2, ndim do
    if shape[d] == 0 then
      args.fail("%s: expected no empty dimension but the batch for argument '%s', got shape %s",
        title, name or "input", shape)
    end
  end
  return shape
end

-- Returns the sizes of the last k dims of x.
local function sizes_of(x, k)
  local shape = x.shape
  return {table.unpack(shape, #shape - k + 1)}
end

-- The number of windows in a dim.
local function count(size, kernel, stride, padding, dilation)
  return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
end

-- ---- fractional pools (Graham 2014)

-- Returns the first positions, from 0, of `n` windows of size `kernel` in a dim, for each sample.
local function starts(sample, size, kernel, n)
  local last = lt.full({sample:size(1), sample:size(2), 1}, size - kernel,
    {dtype = "int64", device = sample.device})
  if n == 1 then return last end
  local top = lt.tensor(size - kernel, {dtype = sample.dtype, device = sample.device})
  local alpha = top / (n - 1)
  local steps = lt.arange(0, n - 2, {dtype = sample.dtype, device = sample.device})
  local u = sample:unsqueeze(-1)
  local first = ((steps + u) * alpha):to "int64" - (u * alpha):to "int64"
  return lt.cat({first, last}, 3)
end

-- Returns the size of the result: output_size, or output_ratio times the input's.
local function fractional_sizes(title, k, x, kernel, size, ratio)
  args.check((size == nil) ~= (ratio == nil),
    "%s: expected either argument 'output_size' or argument 'output_ratio', got %s", title,
    size and "both" or "neither")
  local sizes = sizes_of(x, k)
  size = size and list_of(title, k, size, "output_size")
  if type(ratio) == "number" then ratio = {ratio} end
  ratio = ratio and list_of(title, k, ratio, "output_ratio")
  local out = {}
  for d = 1, k do
    args.check(not ratio or ratio[d] > 0 and ratio[d] < 1,
      "%s: expected numbers between 0 and 1 for argument 'output_ratio', got %s", title,
      args.show(ratio and ratio[d]))
    out[d] = size and size[d] or math.floor(sizes[d] * ratio[d])
    args.check(out[d] >= 1 and out[d] + kernel[d] - 1 <= sizes[d],
      "%s: cannot place %d windows of size %d: dim %d of the input has %d elements", title, out[d],
      kernel[d], x.ndim - k + d, sizes[d])
  end
  return out, sizes
end

-- Indices, from 1, of all elements of all windows in the flattened dims: {N, C, windows, elements}.
local function fractional_indices(k, samples, sizes, kernel, out)
  local index
  local n, c = samples:size(1), samples:size(2)
  for d = 1, k do
    -- the samples of 2d are for W, H; those of 3d for D, H, W
    local sample = samples:select(3, k == 2 and 3 - d or d)
    local at = starts(sample, sizes[d], kernel[d], out[d])
    local inside = lt.arange(0, kernel[d] - 1, {dtype = "int64", device = samples.device})
    local places = at:unsqueeze(-1) + inside -- {N, C, out, kernel}
    local shape = {n, c}
    for e = 1, k do
      shape[2 + e] = e == d and out[d] or 1
      shape[2 + k + e] = e == d and kernel[d] or 1
    end
    places = places:reshape(shape)
    index = index and index * sizes[d] + places or places
  end
  return (index + 1):flatten(3 + k, 2 + 2 * k):flatten(3, 2 + k)
end

local function fractional_max_pool(title, k, x, kernel, size, ratio, samples)
  tensors.check_float(title, "input", x)
  pooling.check_input(title, k, x)
  kernel = list_of(title, k, kernel, "kernel_size")
  at_least(title, kernel, 1, "kernel_size")
  local out, sizes = fractional_sizes(title, k, x, kernel, size, ratio)
  local batched = x.ndim == k + 2
  local input = batched and x or x:unsqueeze(1)
  local n, c = input:size(1), input:size(2)
  if samples == nil then
    samples = lt.rand({n, c, k}, {dtype = x.dtype, device = x.device})
  end
  args.check(samples.ndim == 3 and samples:size(1) == n and samples:size(2) == c
    and samples:size(3) == k, "%s: expected shape {%d, %d, %d} for argument '_random_samples', "
    .. "got %s", title, n, c, k, samples.shape)
  args.check(samples.dtype == x.dtype,
    "%s: expected dtype %s for argument '_random_samples', got %s", title, x.dtype, samples.dtype)
  local index = fractional_indices(k, samples, sizes, kernel, out)
  local flat, all = input:flatten(3), index:flatten(3)
  local values, best = flat:gather(3, all):reshape(index.shape):max(4)
  local indices = index:gather(4, best:unsqueeze(4)):squeeze(4)
  local shape = {n, c, table.unpack(out)}
  values, indices = values:reshape(shape), indices:reshape(shape)
  if batched then return values, indices end
  return values:squeeze(1), indices:squeeze(1)
end

-- Defines a fractional pool of k dims; `always`: one that returns indices in any case.
local function define_fractional(name, k, always)
  lt._define{
    signature = ("F.%s(Tensor input, ints kernel_size, ints? output_size = nil, "
      .. "float|floats? output_ratio = nil, bool return_indices = false, "
      .. "Tensor? _random_samples = nil) -> Tensor, Index"):format(name),
    doc = ("Maxima of output_size windows (or output_ratio times the input's size) at random "
      .. "distances in %s (Graham 2014); with return_indices also their indices.")
      :format(k == 2 and "{N, C, H, W}" or "{N, C, D, H, W}"),
    example = ("F.%s(lt.ones(%s), 2, 1)"):format(name, k == 2 and "1, 2, 2" or "1, 2, 2, 2"),
    fn = function(x, kernel, size, ratio, both, samples)
      local values, indices = fractional_max_pool(name, k, x, kernel, size, ratio, samples)
      if both or always then return values, indices end
      return values
    end,
  }
end

define_fractional("fractional_max_pool2d", 2)
define_fractional("fractional_max_pool2d_with_indices", 2, true)
define_fractional("fractional_max_pool3d", 3)
define_fractional("fractional_max_pool3d_with_indices", 3, true)

-- ---- max_unpool

local EXAMPLES = {"lt.arange(6.):reshape(1, 1, 6)", "lt.arange(16.):reshape(1, 1, 4, 4)",
  "lt.arange(8.):reshape(1, 1, 2, 2, 2)"}

-- Returns the size of the result of max_unpool.
local function unpooled_sizes(title, k, x, kernel, stride, padding, size)
  local sizes = sizes_of(x, k)
  local given = size and {table.unpack(size)}
  if given and #given == k + 2 then given = {table.unpack(given, 3)} end
  args.check(not given or #given == k,
    "%s: expected %d or %d sizes for argument 'output_size', got %d", title, k, k + 2,
    given and #given or 0)
  for d = 1, k do
    local usual = (sizes[d] - 1) * stride[d] + kernel[d] - 2 * padding[d]
    local least, most = usual - stride[d], usual + stride[d]
    args.check(not given or given[d] > least and given[d] < most,
      "%s: expected a size between %d and %d for argument 'output_size', got %d", title, least + 1,
      most - 1, given and given[d] or 0)
    sizes[d] = given and given[d] or usual
  end
  return sizes
end

for k, name in ipairs{"max_unpool1d", "max_unpool2d", "max_unpool3d"} do
  lt._define{
    signature = ("F.%s(Tensor input, Index indices, ints kernel_size, ints? stride = nil, "
      .. "ints padding = 0, ints? output_size = nil)"):format(name),
    doc = ("The inverse of F.max_pool%dd: the maxima at their indices, and 0 elsewhere. Without "
      .. "output_size, the size that the windows cover."):format(k),
    example = ("F.%s(%s, %s, 2)"):format(name, EXAMPLES[k],
      EXAMPLES[k]:gsub("%.%)", ")", 1)),
    fn = function(x, indices, kernel, stride, padding, size)
      pooling.check_input(name, k, x)
      args.check(indices.dtype == "int64",
        "%s: expected dtype int64 for argument 'indices', got %s", name, indices.dtype)
      args.check(tostring(indices.shape) == tostring(x.shape),
        "%s: expected the input's shape %s for argument 'indices', got %s", name,
        x.shape, indices.shape)
      kernel = list_of(name, k, kernel, "kernel_size")
      stride = list_of(name, k, stride, "stride", kernel)
      padding = list_of(name, k, padding, "padding", repeated(k, 0))
      at_least(name, stride, 1, "stride")
      local sizes = unpooled_sizes(name, k, x, kernel, stride, padding, size)
      local lead, all = x.ndim - k, 1
      local shape = {}
      for d = 1, lead do shape[d] = x:size(d) end
      local flat = {table.unpack(shape)}
      for d = 1, k do
        shape[lead + d] = sizes[d]
        all = all * sizes[d]
      end
      args.check(all >= 0, "%s: cannot unpool to the sizes {%s}", name, table.concat(sizes, ", "))
      flat[lead + 1] = all
      local zeros = lt.zeros(flat, {dtype = x.dtype, device = x.device})
      return zeros:scatter(lead + 1, indices:flatten(lead + 1), x:flatten(lead + 1)):reshape(shape)
    end,
  }
end

-- ---- unfold, fold

-- Checks the windows of unfold and fold in an image of these sizes, and returns the lists and the
-- number of windows.
local function blocks(title, sizes, kernel, dilation, padding, stride)
  kernel = list_of(title, 2, kernel, "kernel_size")
  dilation = list_of(title, 2, dilation, "dilation")
  padding = list_of(title, 2, padding, "padding")
  stride = list_of(title, 2, stride, "stride")
  at_least(title, kernel, 1, "kernel_size")
  at_least(title, dilation, 1, "dilation")
  at_least(title, padding, 0, "padding")
  at_least(title, stride, 1, "stride")
  local all = 1
  for d = 1, 2 do
    local n = count(sizes[d], kernel[d], stride[d], padding[d], dilation[d])
    args.check(n >= 1, "%s: cannot place a window of size %d with dilation %d in %d elements with "
      .. "padding %d", title, kernel[d], dilation[d], sizes[d], padding[d])
    all = all * n
  end
  return kernel, dilation, padding, stride, all
end

lt._define{
  signature = "F.unfold(Tensor input, ints kernel_size, ints dilation = 1, ints padding = 0, "
    .. "ints stride = 1)",
  doc = "The elements of each window of {N, C, H, W} as a column: {N, C * kernel, windows}. "
    .. "Without N, too.",
  example = "F.unfold(lt.arange(9.):reshape(1, 1, 3, 3), 2)",
  fn = function(x, kernel, dilation, padding, stride)
    pooling.check_input("unfold", 2, x)
    kernel, dilation, padding, stride = blocks("unfold", sizes_of(x, 2), kernel, dilation, padding,
      stride)
    if x.ndim == 4 then return ops._im2col(x, kernel, dilation, padding, stride) end
    return ops._im2col(x:unsqueeze(1), kernel, dilation, padding, stride):squeeze(1)
  end,
}

lt._define{
  signature = "F.fold(Tensor input, ints output_size, ints kernel_size, ints dilation = 1, "
    .. "ints padding = 0, ints stride = 1)",
  doc = "The sums of the columns {N, C * kernel, windows} at the elements of their windows: {N, C, "
    .. "H, W}, where output_size is {H, W}. Without N, too.",
  example = "F.fold(lt.ones(1, 4, 4), 3, 2)",
  fn = function(x, size, kernel, dilation, padding, stride)
    args.check(x.ndim == 2 or x.ndim == 3,
      "fold: expected 2 or 3 dimensions for argument 'input', got shape %s", x.shape)
    size = list_of("fold", 2, size, "output_size")
    local all
    kernel, dilation, padding, stride, all = blocks("fold", size, kernel, dilation, padding,
      stride)
    local elements = kernel[1] * kernel[2]
    args.check(x:size(-2) % elements == 0,
      "fold: expected a multiple of the kernel's %d elements in dim %d of argument 'input', got %d",
      elements, x.ndim - 1, x:size(-2))
    args.check(x:size(-1) == all, "fold: expected %d columns in dim %d of argument 'input', got %d",
      all, x.ndim, x:size(-1))
    if x.ndim == 3 then return ops._col2im(x, size, kernel, dilation, padding, stride) end
    return ops._col2im(x:unsqueeze(1), size, kernel, dilation, padding, stride):squeeze(1)
  end,
}

return pooling
