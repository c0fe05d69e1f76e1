--- Dtypes, limits and zeros of tensors, for composites.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"

local tensors = {}

local REAL = {complex64 = "float32", complex128 = "float64"}

--- Returns the dtype of t's real part.
function tensors.real_dtype(t) return REAL[t.dtype] or t.dtype end

--- Returns whether a dtype is a float of 16 bits, in which an op that combines others would round
-- several times.
function tensors.is_half(dtype) return dtype == "float16" or dtype == "bfloat16" end

--- Raises an error of the function `title` unless t, its argument `name`, has a float dtype.
function tensors.check_float(title, name, t)
  if not t:is_floating_point() then
    args.fail("%s: expected a float dtype for argument '%s', got \"%s\"", title, name, t.dtype)
  end
end

local CONVERSIONS = {float64 = "double", float32 = "float", float16 = "half"}

--- Raises an error of the function `title` unless t, its argument `name` and a parameter of a
-- layer, has the dtype of the input x, its argument `input`, by default "input".
function tensors.check_parameter_dtype(title, name, t, x, input)
  if t.dtype == x.dtype then return end
  input = input or "input"
  args.fail("%s: expected the same dtype for arguments '%s' and '%s', got \"%s\" and \"%s\"\n"
    .. "hint: %s:%s(), or net:%s() for the parameters of a module", title, input, name, x.dtype,
    t.dtype, input, CONVERSIONS[t.dtype] or t.dtype, CONVERSIONS[x.dtype] or x.dtype)
end

--- Returns the broadcast shape of two lists of sizes; nil when there is none.
function tensors.broadcast_shape(a, b)
  local n, shape = math.max(#a, #b), {}
  for i = 1, n do
    local x, y = a[#a - n + i] or 1, b[#b - n + i] or 1
    if x ~= y and x ~= 1 and y ~= 1 then return nil end
    shape[i] = x == 1 and y or x
  end
  return shape
end

--- Raises an error of the function `title` unless the shapes of x and y can be broadcast together.
function tensors.check_broadcast(title, x, y)
  args.check(tensors.broadcast_shape(x.shape, y.shape),
    "%s: cannot broadcast the shapes %s and %s together", title, x.shape,
    y.shape)
end

--- Raises an error of the function `title` unless t, its argument `name`, is real.
function tensors.check_real(title, name, t)
  if t:is_complex() then
    args.fail("%s: expected a real tensor for argument '%s', got \"%s\"", title, name, t.dtype)
  end
end

local function is_integral(t) return not t:is_floating_point() and not t:is_complex() end

--- Returns whether t has an integer dtype or bool.
tensors.is_integral = is_integral

--- Returns the smallest value of t's dtype.
function tensors.lowest(t)
  if not is_integral(t) then return -lt.inf end
  return t.dtype ~= "bool" and lt.iinfo(t.dtype).min
end

--- Returns the largest value of t's dtype.
function tensors.highest(t)
  if not is_integral(t) then return lt.inf end
  return t.dtype == "bool" or lt.iinfo(t.dtype).max
end

--- Returns whether vmap runs ops for a batch, which must not write in place and have rules only for
-- some ops. Its module may not be loaded yet.
function tensors.are_batched()
  local batching = package.loaded["lutra.func.batching"]
  return batching and batching.level() > 0
end

--- Returns whether t's values can be read: not those of batches, of meta tensors, or of the tensors
-- of a record, which lt.compile makes.
function tensors.has_values(t)
  return not (tensors.are_batched() or t.is_meta or core._is_recorded(t))
end

--- Returns zeros of t's shape, dtype and device, whose gradient with respect to t is 0.
function tensors.zeros_of(t)
  return t:masked_fill(lt.ones_like(t, {dtype = "bool"}), 0)
end

return tensors
