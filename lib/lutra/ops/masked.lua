--- lt.masked: reductions and normalizations that leave out the elements where a mask is false. They
-- replace these by the identity of the op.

local lt = require "lutra"
local args = require "lutra.internal.args"
local dims = require "lutra.internal.dims"
local tensors = require "lutra.internal.tensors"

local lowest, highest = tensors.lowest, tensors.highest

local KEYS = "bool keepdim = false, dtype? dtype = nil, Tensor? mask = nil)"
local REDUCED = "(Tensor input, dims? dim = nil, " .. KEYS
local TO_INDEX = "(Tensor input, dim? dim = nil, " .. KEYS .. " -> Index"
local SPREAD = "(Tensor input, dims? dim = nil, bool? unbiased = nil, float? correction = nil, "
  .. KEYS
local ALONG = "(Tensor input, dim dim, dtype? dtype = nil, Tensor? mask = nil)"
local X, MASK = "lt.tensor{3., 1, 2}", "{mask = lt.tensor{true, false, true}}"

-- Defines lt.masked.<name>. `between` is what the example has between the input and the mask.
local function define(name, parameters, doc, fn, between)
  lt._define{
    signature = "masked.masked_" .. name .. parameters,
    doc = doc,
    example = ("lt.masked.%s(%s, %s%s)"):format(name, X, between or "", MASK),
    fn = fn,
  }
end

-- Returns the mask in the shape of x.
local function full_mask(title, x, mask)
  args.check(mask.ndim <= x.ndim, "%s: expected at most %d dims for argument 'mask', got shape %s",
    title, x.ndim, mask.shape)
  return mask:bool():broadcast_to(x.shape)
end

-- Returns x with `value` where the mask is false.
local function filled(title, x, mask, value)
  if not mask then return x end
  return x:masked_fill(full_mask(title, x, mask):logical_not(), value)
end

-- ---- reductions

-- Returns the sum or product with this identity; integers are combined in int64.
local function accumulation(name, identity)
  return function(x, dim, keepdim, dtype, mask)
    local y = filled(name, x, mask, identity)
    dtype = dtype or tensors.is_integral(x) and "int64" or x.dtype
    return y[name](y, {dim = dim, keepdim = keepdim, dtype = dtype})
  end
end
local masked_sum = accumulation("sum", 0)

define("sum", REDUCED, "Sum of the elements where the mask is true.", masked_sum)
define("prod", REDUCED, "Product of the elements where the mask is true.", accumulation("prod", 1))

-- Returns a maximum or minimum, or its index; `identity` is the function lowest or highest.
local function extremum(name, identity)
  return function(x, dim, keepdim, dtype, mask)
    local y = filled(name, x, mask, identity(x))
    return y[name](y, dim, keepdim):to(dtype or x.dtype)
  end
end

define("amax", REDUCED, "Maximum of the elements where the mask is true.", extremum("amax", lowest))
define("amin", REDUCED, "Minimum of the elements where the mask is true.",
  extremum("amin", highest))
define("argmax", TO_INDEX,
  "Index of the maximum of the elements where the mask is true, in the input's dtype.",
  extremum("argmax", lowest))
define("argmin", TO_INDEX,
  "Index of the minimum of the elements where the mask is true, in the input's dtype.",
  extremum("argmin", highest))

-- Returns the number of elements that a reduction combines, as a tensor or a number.
local function counted(title, x, dim, keepdim, mask)
  if not mask then return dims.count(x, dims.list(title, x, dim)) end
  return full_mask(title, x, mask):sum{dim = dim, keepdim = keepdim}
end

define("mean", REDUCED, "Mean of the elements where the mask is true; NaN if there are none.",
  function(x, dim, keepdim, dtype, mask)
    dtype = dtype or x.dtype
    args.check(dtype:find "float" or dtype:find "complex", 'mean: expected a float dtype, got "%s"',
      dtype)
    return masked_sum(x, dim, keepdim, dtype, mask) / counted("mean", x, dim, keepdim, mask)
  end)

define("median", "(Tensor input, dim dim = -1, " .. KEYS,
  "Median of the elements where the mask is true (of two the lower); NaN if there are none.",
  function(x, dim, keepdim, dtype, mask)
    local wide = x:is_floating_point() and x or x:float()
    local result = filled("median", wide, mask, lt.nan):nanmedian(dim, keepdim)
    if wide == x then return result end
    args.check(not result:isnan():any():item(),
      "median: expected an element where the mask is true in each line of an integer tensor")
    return result:to(dtype or x.dtype)
  end)

-- Returns x with 0 where the mask is false, or infinity for the norm of order -infinity.
local function filled_for_norm(title, x, mask, ord)
  return filled(title, x, mask, ord == -lt.inf and lt.inf or 0)
end

define("norm", "(Tensor input, float ord = 2, dims? dim = nil, " .. KEYS,
  "p-norm of the elements where the mask is true.",
  function(x, ord, dim, keepdim, dtype, mask)
    return filled_for_norm("norm", x, mask, ord)
      :norm{p = ord, dim = dim, keepdim = keepdim, dtype = dtype}
  end, "2, ")

local function variance(title, x, dim, unbiased, correction, keepdim, dtype, mask)
  args.check(unbiased == nil or correction == nil,
    "%s: expected argument 'unbiased' or 'correction', got both", title)
  correction = correction or unbiased == false and 0 or 1
  dtype = dtype or tensors.is_integral(x) and "float32" or x.dtype
  local computed = (dtype:find "float" or dtype:find "complex") and dtype or "float32"
  local total = masked_sum(x, dim, true, dtype, mask)
  local distance = x - total / counted(title, x, dim, true, mask)
  local sum = masked_sum(distance * distance:conj(), dim, keepdim, computed, mask)
  local count = counted(title, x, dim, keepdim, mask)
  if type(count) == "number" then
    return (sum / math.max(count - correction, 0)):to(dtype)
  end
  local real = lt.real(sum:detach()).dtype
  return (sum / (count:to(real) - correction):clamp{min = 0}):to(dtype)
end

define("var", SPREAD,
  "Variance of the elements where the mask is true, divided by their number - 1 by default.",
  function(...) return variance("var", ...) end)
define("std", SPREAD, "Standard deviation of the elements where the mask is true, divided by their "
  .. "number - 1 by default.", function(...) return variance("std", ...):sqrt() end)

define("logsumexp", REDUCED, "log(sum(e^x)) of the elements where the mask is true.",
  function(x, dim, keepdim, dtype, mask)
    local list = dims.list("logsumexp", x, dim)
    if x.ndim == 0 then list = {1} end
    return filled("logsumexp", x, mask, lowest(x)):logsumexp(list, keepdim):to(dtype or x.dtype)
  end)

-- ---- normalizations and scans: the result has the shape of the input

local function scan(name, identity)
  return function(x, dim, dtype, mask)
    local y = filled(name, x, mask, identity)
    dtype = dtype or x.dtype
    return y[name](y, dim, dtype):to(dtype)
  end
end

define("cumsum", ALONG, "Cumulative sum along dim of the elements where the mask is true.",
  scan("cumsum", 0), "1, ")
define("cumprod", ALONG, "Cumulative product along dim of the elements where the mask is true.",
  scan("cumprod", 1), "1, ")

define("softmax", ALONG, "Softmax along dim of the elements where the mask is true; 0 elsewhere.",
  function(x, dim, dtype, mask)
    return lt._ops.softmax(filled("softmax", x, mask, lowest(x)), dim, dtype or x.dtype)
  end, "1, ")

define("log_softmax", ALONG,
  "log(softmax) along dim of the elements where the mask is true; -inf elsewhere.",
  function(x, dim, dtype, mask)
    return lt._ops.log_softmax(filled("log_softmax", x, mask, lowest(x)), dim, dtype or x.dtype)
  end, "1, ")

define("softmin", ALONG,
  "Softmax along dim of -x, for the elements where the mask is true; 0 elsewhere.",
  function(x, dim, dtype, mask)
    return lt._ops.softmax(-filled("softmin", x, mask, highest(x)), dim, dtype or x.dtype)
  end, "1, ")

define("normalize", "(Tensor input, float ord, dim dim, float eps = 1e-12, dtype? dtype = nil, "
  .. "Tensor? mask = nil)",
  "x / max(norm of x along dim, eps), for the elements where the mask is true.",
  function(x, ord, dim, eps, dtype, mask)
    local norm = filled_for_norm("normalize", x, mask, ord)
      :norm{p = ord, dim = dim, keepdim = true, dtype = dtype}
    return filled("normalize", x, mask, 0) / norm:maximum(norm:new_full({}, eps))
  end, "2, 1, ")

lt._define{
  signature = "masked.masked_logaddexp(Tensor input, Tensor other, dtype? dtype = nil, "
    .. "Tensor? input_mask = nil, Tensor? other_mask = nil)",
  doc = "log(e^input + e^other), where elements with a mask of false count as -inf.",
  example = "lt.masked.logaddexp(" .. X .. ", " .. X .. ", {input_" .. MASK:sub(2) .. ")",
  fn = function(x, y, dtype, x_mask, y_mask)
    x, y = filled("logaddexp", x, x_mask, -lt.inf), filled("logaddexp", y, y_mask, -lt.inf)
    return lt.logaddexp(x, y):to(dtype or x.dtype)
  end,
}
