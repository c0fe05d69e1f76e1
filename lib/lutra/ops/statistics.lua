--- Statistics: norms, means and variances together, quantiles, covariance, differences, integrals.

local lt = require "lutra"
local args = require "lutra.internal.args"
local dims = require "lutra.internal.dims"
local tensors = require "lutra.internal.tensors"

local is_floating_point, is_complex = lt.is_floating_point, lt.is_complex

-- Returns x as `dtype`, or x itself without one.
local function cast(x, dtype) return dtype and x:to(dtype) or x end

local function expect_floating(title, x)
  if is_floating_point(x) or is_complex(x) then return end
  args.fail('%s: expected a float dtype, got "%s"\nhint: x:to("float32")', title, x.dtype)
end

-- ---- norms

-- Read at each call: vmap has entries of its own.
local function norm(x, dim, keepdim, p) return lt._ops._norm(x, dim, keepdim, p) end

lt._define{
  signature = "lt.norm(Tensor self, float|string? p = nil, dims? dim = nil, bool keepdim = false, "
    .. "dtype? dtype = nil)",
  doc = "p-norm of the elements: (sum |x|^p)^(1/p). p is 2 by default ('fro'); inf and -inf are "
    .. "the largest and smallest |x|, 0 counts nonzeros; 'nuc' is the nuclear norm of matrices.",
  example = "lt.norm(lt.tensor{3., 4})",
  method = true,
  fn = function(x, p, dim, keepdim, dtype)
    x = cast(x, dtype)
    expect_floating("norm", x)
    if p == nil or p == "fro" then p = 2 end
    if type(p) == "number" then return norm(x, dim, keepdim, p) end
    args.check(p == "nuc", "norm: expected a number, 'fro' or 'nuc' for argument 'p', got %s",
      args.show(p))
    local matrix = dim or {-2, -1}
    args.check(#matrix == 2 and x.ndim >= 2,
      "norm: expected 2 dims for argument 'dim' where p is 'nuc', got %d",
      math.min(#matrix, x.ndim))
    return lt.linalg.matrix_norm(x, "nuc", matrix, keepdim)
  end,
}

lt._define{
  signature = "lt.dist(Tensor self, Tensor other, float p = 2)",
  doc = "p-norm of self - other.",
  example = "lt.dist(lt.tensor{1., 2}, lt.tensor{4., 6})",
  method = true,
  fn = function(x, y, p)
    local difference = x - y
    expect_floating("dist", difference)
    return norm(difference, nil, false, p)
  end,
}

lt._define{
  signature = "lt.renorm(Tensor self, float p, dim dim, float maxnorm)",
  doc = "Scales the slices along dim whose p-norm is above maxnorm to that norm.",
  example = "lt.renorm(lt.tensor{{3, 4}, {0.3, 0.4}}, 2, 1, 1)",
  method = true, in_place = true,
  fn = function(x, p, dim, maxnorm)
    expect_floating("renorm", x)
    args.check(p > 0, "renorm: expected a number above 0 for argument 'p', got %g", p)
    args.check(maxnorm >= 0,
      "renorm: expected a number of at least 0 for argument 'maxnorm', got %g", maxnorm)
    args.check(x.ndim >= 2,
      "renorm: expected a tensor of at least 2 dims for argument 'self', got %s", x.shape)
    dim = dims.one("renorm", x, dim)
    local others = {}
    for d = 1, x.ndim do if d ~= dim then others[#others + 1] = d end end
    local half = tensors.is_half(x.dtype)
    local norms = norm(half and x:float() or x, others, true, p)
    local factor = lt.where(norms:gt(maxnorm), maxnorm / (norms + 1e-7), 1)
    return x * factor:to(half and x.dtype or factor.dtype)
  end,
}

-- ---- mean, variance, extremes

lt._define{
  signature = "lt.nanmean(Tensor self, dims? dim = nil, bool keepdim = false, dtype? dtype = nil)",
  doc = "Mean of the elements that are not NaN.",
  example = "lt.nanmean(lt.tensor{1., 3, lt.nan})",
  method = true,
  fn = function(x, dim, keepdim, dtype)
    expect_floating("nanmean", x)
    dims.list("nanmean", x, dim)
    local numbers = x:detach():isnan():logical_not():sum{dim = dim, keepdim = keepdim}
    return x:nansum{dim = dim, keepdim = keepdim, dtype = dtype} / numbers
  end,
}

-- Returns var or std, and the mean. A boolean `dim` is `unbiased`, of all elements.
local function with_mean(title, name, x, dim, unbiased, keepdim, correction)
  expect_floating(title, x)
  local along = nil
  if type(dim) ~= "boolean" then along = dim end
  dims.list(title, x, along)
  local spread = x[name](x, dim, unbiased, keepdim, correction)
  return spread, x:mean{dim = along, keepdim = keepdim}
end

lt._define{
  signature = "lt.var_mean(Tensor self, dims|bool? dim = nil, bool unbiased = true, "
    .. "bool keepdim = false, float? correction = nil) -> Tensor var, Tensor mean",
  doc = "Variance, divided by n - 1 by default, and mean.",
  example = "lt.var_mean(lt.tensor{1., 2, 4})",
  fn = function(...) return with_mean("var_mean", "var", ...) end,
}

lt._define{
  signature = "lt.std_mean(Tensor self, dims|bool? dim = nil, bool unbiased = true, "
    .. "bool keepdim = false, float? correction = nil) -> Tensor std, Tensor mean",
  doc = "Standard deviation, divided by n - 1 by default, and mean.",
  example = "lt.std_mean(lt.tensor{1., 2, 4})",
  fn = function(...) return with_mean("std_mean", "std", ...) end,
}

lt._define{
  signature = "lt.aminmax(Tensor self, dim? dim = nil, bool keepdim = false) "
    .. "-> Tensor min, Tensor max",
  doc = "Minimum and maximum, of all elements or along dim; NaN if any is NaN.",
  example = "lt.aminmax(lt.tensor{3, 1, 2})",
  method = true,
  fn = function(x, dim, keepdim)
    if dim ~= nil or x:numel() == 0 then
      for _, d in ipairs(dims.list("aminmax", x, dim)) do
        args.check(dims.size(x, d) > 0, "aminmax: cannot reduce dim %d of %s: its size is 0", d,
          x.shape)
      end
    end
    if dim == nil and not keepdim and not tensors.are_batched() and x.is_cpu
        and not x.requires_grad then
      return lt._ops._aminmax(x)
    end
    return x:amin(dim, keepdim), x:amax(dim, keepdim)
  end,
}

-- ---- quantiles

-- Returns the values between the elements of rank `at` (from 0, with fractions) of sorted lines.
local function between(line, order, at, interpolation)
  local below = interpolation == "higher" and at:ceil()
    or interpolation == "nearest" and at:round() or at:floor()
  local low = line:gather(-1, order:gather(-1, below:long() + 1))
  if interpolation ~= "linear" and interpolation ~= "midpoint" then return low end
  local high = line:gather(-1, order:gather(-1, at:ceil():long() + 1))
  local weight = interpolation == "midpoint" and lt.full_like(at, 0.5) or at - below
  return lt.lerp(low, high, weight)
end

-- Returns the q-quantile of each line, for one number q, by selection, without sorting. The rank is
-- computed in the dtype of the line, as in `quantile`.
local function selected(line, q, interpolation)
  local n = line:size(-1)
  local function rounded(v)
    return line.dtype == "float32" and ("f"):unpack(("f"):pack(v)) or v
  end
  local at = rounded(rounded(q) * rounded(n - 1))
  local function of_rank(rank)
    return (lt._ops._kthvalue(line, -1, true, math.tointeger(rank) + 1, true))
  end
  local below = math.floor(at)
  if interpolation == "higher" then below = math.ceil(at) end
  if interpolation == "nearest" then below = lt.tensor(at, {dtype = "float64"}):round():item() end
  local low = of_rank(below)
  if interpolation ~= "linear" and interpolation ~= "midpoint" then return low end
  local above = math.ceil(at)
  local high = above == below and low or of_rank(above)
  local weight = interpolation == "midpoint" and 0.5 or at - below
  return lt.lerp(low, high, lt.full({1}, weight, {dtype = line.dtype}))
end

-- Returns q as a vector of the dtype of x, and whether it was a vector.
local function levels(title, x, q)
  if not lt.is_tensor(q) then
    args.check(q >= 0 and q <= 1, "%s: expected a number from 0 to 1 for argument 'q', got %g",
      title, q)
    return lt.full({1}, q, {dtype = x.dtype, device = x.device}), false
  end
  args.check(q.ndim <= 1, "%s: expected a number or a vector for argument 'q', got %s", title,
    q.shape)
  args.check(q.dtype == x.dtype, '%s: expected the dtype "%s" for argument \'q\', got "%s"', title,
    x.dtype, q.dtype)
  return q:reshape(-1), q.ndim == 1
end

local function quantile(title, skip, x, q, dim, keepdim, interpolation)
  args.check(x.dtype == "float32" or x.dtype == "float64",
    '%s: expected the dtype "float32" or "float64" for argument \'self\', got "%s"', title, x.dtype)
  args.check(x:numel() > 0, "%s: cannot reduce %s: it has no elements", title, x.shape)
  local q_line, is_vector = levels(title, x, q)
  local line = x:reshape(-1)
  if dim ~= nil then
    dim = dims.one(title, x, dim)
    if x.ndim > 0 then line = x:movedim(dim, -1) end
  end
  local result
  if x.is_cpu and not skip and not lt.is_tensor(q) then
    result = selected(line, q, interpolation)
  else
    local n = line:size(-1)
    local numbers = n - line:detach():isnan():sum{dim = -1, keepdim = true}
    local _, order = line:detach():sort{dim = -1, stable = true}
    local at
    if skip then
      at = (q_line * (numbers - 1):to(x.dtype)):clamp{min = 0}
    else
      at = lt.where(numbers:lt(n), n - 1, q_line * (n - 1))
    end
    result = between(line, order, at, interpolation)
  end
  if keepdim and dim == nil then
    local ones = {}
    for d = 1, x.ndim do ones[d] = 1 end
    result = result:reshape{-1, table.unpack(ones)}
  else
    result = result:movedim(-1, 1)
    if keepdim and x.ndim > 0 then result = result:unsqueeze(dim + 1) end
  end
  return is_vector and result or result:squeeze(1)
end

local INTERPOLATION = "'linear'|'lower'|'higher'|'midpoint'|'nearest' interpolation = 'linear')"

lt._define{
  signature = "lt.quantile(Tensor self, Tensor|float q, dim? dim = nil, bool keepdim = false, "
    .. INTERPOLATION,
  doc = "The q-quantiles of all elements, or along dim; NaN where an element is NaN. A vector q "
    .. "gives a new first dim.",
  example = "lt.quantile(lt.tensor{1., 2, 4}, 0.75)",
  method = true,
  fn = function(...) return quantile("quantile", false, ...) end,
}

lt._define{
  signature = "lt.nanquantile(Tensor self, Tensor|float q, dim? dim = nil, bool keepdim = false, "
    .. INTERPOLATION,
  doc = "The q-quantiles of the elements that are not NaN.",
  example = "lt.nanquantile(lt.tensor{1., 2, lt.nan}, 0.5)",
  method = true,
  fn = function(...) return quantile("nanquantile", true, ...) end,
}

-- ---- covariance

-- Returns the weights of the observations, nil without any.
local function observation_weights(n, frequencies, weights)
  for name, w in pairs{fweights = frequencies, aweights = weights} do
    args.check(w.ndim <= 1 and w:numel() == n,
      "cov: expected a vector of %d elements for argument '%s', got %s", n, name, w.shape)
    args.check(w.is_meta or w:ge(0):all():item(),
      "cov: expected numbers of at least 0 for argument '%s', got negative ones", name)
  end
  args.check(not frequencies or not frequencies:is_floating_point(),
    "cov: expected an integer dtype for argument 'fweights', got %s",
    frequencies and frequencies.dtype)
  args.check(not weights or weights:is_floating_point(),
    "cov: expected a float dtype for argument 'aweights', got %s", weights and weights.dtype)
  return frequencies and weights and frequencies * weights or frequencies or weights
end

local function cov(x, correction, frequencies, weights)
  args.check(x.ndim <= 2, "cov: expected a tensor of at most 2 dims for argument 'self', got %s",
    x.shape)
  args.check(x.dtype ~= "bool", 'cov: expected numbers for argument \'self\', got "bool"')
  local rows = x.ndim < 2 and x:reshape(1, -1) or x
  local n = rows:size(2)
  local w = observation_weights(n, frequencies, weights)
  local total = w and w:sum() or n
  local centered = rows - ((w and rows * w or rows):sum(2) / total):unsqueeze(2)
  local divisor
  if w and weights and correction ~= 0 then
    divisor = total - (w * weights):sum() / total * correction
  else
    divisor = total - correction
  end
  divisor = lt.is_tensor(divisor) and divisor:clamp{min = 0} or math.max(divisor, 0)
  local weighted = w and centered * w or centered
  return (weighted:mm(centered:t():conj()) / divisor):squeeze()
end

lt._define{
  signature = "lt.cov(Tensor self, int correction = 1, Tensor? fweights = nil, "
    .. "Tensor? aweights = nil)",
  doc = "Covariance matrix of variables (rows) by observations (columns), divided by "
    .. "n - correction. fweights counts repeated observations, aweights weights them.",
  example = "lt.cov(lt.tensor{{1., 2, 3}, {3, 2, 1}})",
  method = true,
  fn = cov,
}

lt._define{
  signature = "lt.corrcoef(Tensor self)",
  doc = "Correlation matrix (Pearson's coefficients) of variables (rows) by observations.",
  example = "lt.corrcoef(lt.tensor{{1., 2, 3}, {3, 2, 1}})",
  method = true,
  fn = function(x)
    args.check(x.ndim <= 2,
      "corrcoef: expected a tensor of at most 2 dims for argument 'self', got %s", x.shape)
    local c = cov(x, 1)
    if c.ndim == 0 then return c / c end
    local deviation = lt.real(c:diagonal()):sqrt()
    c = c / deviation:reshape(-1, 1) / deviation:reshape(1, -1)
    if not c:is_complex() then return c:clamp(-1, 1) end
    return lt.complex(lt.real(c):clamp(-1, 1), lt.imag(c):clamp(-1, 1))
  end,
}

-- ---- differences and integrals

-- Returns later minus earlier elements of a dim.
local function steps(x, dim)
  local n = x:size(dim)
  if n == 0 then return x:clone() end
  local later, earlier = x:narrow(dim, 2, n - 1), x:narrow(dim, 1, n - 1)
  if x.dtype == "bool" then return later:logical_xor(earlier) end
  return later - earlier
end

lt._define{
  signature = "lt.diff(Tensor self, int(>=0) n = 1, dim dim = -1, Tensor? prepend = nil, "
    .. "Tensor? append = nil)",
  doc = "Differences of neighbours along dim, n times; prepend and append are joined first.",
  example = "lt.diff(lt.tensor{1, 4, 9, 16})",
  method = true,
  fn = function(x, n, dim, prepend, append)
    if x.ndim == 0 then
      args.fail("diff: expected a tensor of at least 1 dim for argument 'self', got %s", x.shape)
    end
    dim = dims.one("diff", x, dim)
    if n == 0 then return x:clone() end
    local result = x
    if prepend or append then
      local parts = {prepend or x, prepend and x or append, prepend and append}
      for _, t in ipairs(parts) do
        args.check(t.ndim == x.ndim,
          "diff: expected tensors of %d dims for arguments 'prepend' and 'append', got %s", x.ndim,
          t.shape)
      end
      result = lt.cat(parts, dim)
    end
    for _ = 1, math.min(n, result:size(dim)) do result = steps(result, dim) end
    return result
  end,
}

-- Returns x with dims of size 1 so that it broadcasts along `dim` of y.
local function along(x, y, dim) return x:reshape(dims.at(y, dim, -1, 1)) end

-- Returns the distances between neighbours for the rule of trapezoids: a number or a tensor.
local function spacing_of(title, y, x, dx, dim)
  if not x then return dx or 1 end
  args.check(dx == nil, "%s: expected argument 'x' or 'dx', got both", title)
  if x.ndim == 1 then
    args.check(x:size(1) == y:size(dim), "%s: expected %d elements, the size of dim %d of 'y', for "
      .. "argument 'x', got %d", title, y:size(dim), dim, x:size(1))
    return along(steps(x, 1), y, dim)
  end
  return steps(x, x.ndim - y.ndim + dim)
end

-- Returns the dim along which y is integrated.
local function integration_dim(title, y, x, dim)
  args.check(y.ndim > 0, "%s: expected a tensor of at least 1 dim for argument 'y', got %s", title,
    y.shape)
  args.check(y.dtype ~= "bool" and not (x and x.dtype == "bool"),
    "%s: expected numbers, got a bool tensor", title)
  return dims.one(title, y, dim)
end

-- Returns the sums of neighbours along dim.
local function sums_of_neighbours(y, dim)
  local n = y:size(dim)
  return n == 0 and y or dims.range(y, dim, 2, n) + dims.range(y, dim, 1, n - 1)
end

-- Returns the areas of the trapezoids, times 2, or nil if there are none, and the dim of these.
local function trapezoids(title, y, x, dx, dim)
  if y:size(dim) == 0 then return nil, dim end
  local dim_of_result = x and x.ndim > y.ndim and x.ndim - y.ndim + dim or dim
  return sums_of_neighbours(y, dim) * spacing_of(title, y, x, dx, dim), dim_of_result
end

-- Returns the integral of at least 2 points that are dx apart: only the ends count half. A sum of
-- 16-bit floats, which can be out of their range before it is multiplied by dx, is one of float32.
local function evenly_spaced_integral(y, dx, dim)
  local n, half = y:size(dim), tensors.is_half(y.dtype)
  local ends = y:select(dim, 1) / 2 + y:select(dim, n) / 2
  local area = dims.range(y, dim, 2, n - 1):sum(dim, {dtype = half and "float32" or nil}) + ends
  if dx then area = area * dx end
  return half and area:to(y.dtype) or area
end

lt._define{
  signature = "lt.trapezoid(Tensor y, Tensor? x = nil, Scalar? dx = nil, dim dim = -1)",
  doc = "Integral of y along dim by the trapezoidal rule, at the points x or points dx (1) apart.",
  example = "lt.trapezoid(lt.tensor{1, 2, 3})",
  aliases = {"trapz"},
  fn = function(y, x, dx, dim)
    dim = integration_dim("trapezoid", y, x, dim)
    if not x and y:size(dim) > 1 then return evenly_spaced_integral(y, dx, dim) end
    local areas, at = trapezoids("trapezoid", y, x, dx, dim)
    if not areas then return y:sum(at):mul(0):to(y.dtype) end
    return areas:sum(at) / 2
  end,
}

lt._define{
  signature = "lt.cumulative_trapezoid(Tensor y, Tensor? x = nil, Scalar? dx = nil, dim dim = -1)",
  doc = "Cumulative integral of y along dim by the trapezoidal rule.",
  example = "lt.cumulative_trapezoid(lt.tensor{1, 2, 3})",
  fn = function(y, x, dx, dim)
    dim = integration_dim("cumulative_trapezoid", y, x, dim)
    if not x then return sums_of_neighbours(y, dim):cumsum(dim) * ((dx or 1) / 2) end
    local areas, at = trapezoids("cumulative_trapezoid", y, x, dx, dim)
    if not areas then return y / 2 end
    return areas:cumsum(at) / 2
  end,
}

-- Returns derivatives along a dim at evenly spaced points, `h` apart.
local function even_slopes(x, dim, h, order)
  local n = x:size(dim)
  local function at(i) return x:narrow(dim, i, 1) end
  local inner = (dims.range(x, dim, 3, n) - dims.range(x, dim, 1, n - 2)) / (2 * h)
  if order == 1 then
    return lt.cat({(at(2) - at(1)) / h, inner, (at(n) - at(n - 1)) / h}, dim)
  end
  return lt.cat({(at(2) * 2 - at(1) * 1.5 - at(3) * 0.5) / h, inner,
    (at(n) * 1.5 - at(n - 1) * 2 + at(n - 2) * 0.5) / h}, dim)
end

-- Returns derivatives along a dim at the points in a vector (Fornberg 1988, for three points).
local function uneven_slopes(x, dim, points, order)
  local n = x:size(dim)
  local h = along(steps(points, 1), x, dim)
  local function at(i, j) return dims.range(x, dim, i, j or i) end
  local a, b = dims.range(h, dim, 1, n - 2), dims.range(h, dim, 2, n - 1)
  local inner = -b / (a * (a + b)) * at(1, n - 2) + (b - a) / (a * b) * at(2, n - 1)
    + a / (b * (a + b)) * at(3, n)
  if order == 1 then
    return lt.cat({(at(2) - at(1)) / h:narrow(dim, 1, 1), inner,
      (at(n) - at(n - 1)) / h:narrow(dim, n - 1, 1)}, dim)
  end
  local p, q = h:narrow(dim, 1, 1), h:narrow(dim, 2, 1)
  local first = -(2 * p + q) / (p * (p + q)) * at(1) + (p + q) / (p * q) * at(2)
    - p / (q * (p + q)) * at(3)
  p, q = h:narrow(dim, n - 2, 1), h:narrow(dim, n - 1, 1)
  local last = q / (p * (p + q)) * at(n - 2) - (p + q) / (p * q) * at(n - 1)
    + (2 * q + p) / (q * (p + q)) * at(n)
  return lt.cat({first, inner, last}, dim)
end

lt._define{
  signature = "lt.gradient(Tensor self, any? spacing = nil, dims? dim = nil, int edge_order = 1) "
    .. "-> Tensor[]",
  doc = "Numerical derivatives along each of the dims (by default all): central differences. "
    .. "spacing is a number, a number for each dim, or a vector of points for each dim; edge_order "
    .. "1 or 2 is the order of the differences at the ends.",
  example = "lt.gradient(lt.tensor{1., 4, 9, 16})",
  fn = function(x, spacing, dim, order)
    args.check(order == 1 or order == 2,
      "gradient: expected 1 or 2 for argument 'edge_order', got %d", order)
    args.check(x.ndim > 0,
      "gradient: expected a tensor of at least 1 dim for argument 'self', got %s", x.shape)
    local list = {}
    if dim == nil then
      list = dims.list("gradient", x)
    else
      dims.list("gradient", x, dim) -- checks that each is listed once
      for i, d in ipairs(dim) do list[i] = dims.one("gradient", x, d) end
    end
    if spacing == nil then spacing = 1 end
    local each = args.is_plain(spacing)
    args.check(not each or #spacing == #list,
      "gradient: expected a list of %d entries, one for each dim, for argument 'spacing', got %d",
      #list, each and #spacing)
    local slopes = {}
    for i, d in ipairs(list) do
      local h = spacing
      if each then h = spacing[i] end
      args.expect(type(h) == "number" or lt.is_tensor(h), "gradient", "a number or a tensor",
        each and ("spacing[%d]"):format(i) or "spacing", h)
      args.check(x:size(d) > order, "gradient: expected a size of at least %d in dim %d, got %d",
        order + 1, d, x:size(d))
      if lt.is_tensor(h) and h.ndim > 0 then
        args.check(h.ndim == 1 and h:size(1) == x:size(d),
          "gradient: expected a vector of %d points for argument 'spacing[%d]', got %s", x:size(d),
          i, h.shape)
        slopes[i] = uneven_slopes(x, d, h, order)
      else
        slopes[i] = even_slopes(x, d, h, order)
      end
    end
    return slopes
  end,
}
