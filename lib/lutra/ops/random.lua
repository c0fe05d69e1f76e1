--- Normal random numbers with a mean and a standard deviation for each element.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

-- Returns an uninitialized tensor of x's shape and device in which numbers for x are drawn.
local function drawn_like(x)
  return lt.empty_like(x, {dtype = x.dtype == "float64" and "float64" or "float32"})
end

local function check_number(name, value)
  if type(value) ~= "number" then
    args.fail("normal: expected a tensor or a number for argument '%s', got %s", name,
      args.show(value))
  end
end

local function check_deviation(std)
  args.check(std >= 0, "normal: expected a number of at least 0 for argument 'std', got %s", std)
end

lt._define{
  signature = "lt.normal(Operand mean = 0, Operand std = 1, sizes? size = nil, "
    .. "Generator? generator = nil, dtype? dtype = nil, device? device = nil, "
    .. "bool requires_grad = false)",
  doc = "Normal random numbers: with a mean, a standard deviation or both for each element, as "
    .. "tensors, which are broadcast; or a tensor of `size` for two numbers.",
  example = "lt.normal(lt.zeros(3), 2)",
  fn = function(mean, std, size, generator, dtype, device, requires_grad)
    local means = type(mean) == "userdata" and lt.is_tensor(mean)
    local deviations = type(std) == "userdata" and lt.is_tensor(std)
    if not means then check_number("mean", mean) end
    if not deviations then check_number("std", std) end
    if not means and not deviations then
      args.check(size, "normal: expected sizes for argument 'size', as mean and std are numbers")
      check_deviation(std)
      local result = (dtype or device) and lt.empty{size, dtype = dtype, device = device}
        or lt.empty(size)
      result:normal_(mean, std, generator)
      return requires_grad and result:requires_grad_(true) or result
    end
    args.check(not size, "normal: expected no sizes with tensors for argument 'mean' or 'std'")
    if means then tensors.check_float("normal", "mean", mean) end
    if deviations then
      tensors.check_float("normal", "std", std)
      if not std.is_meta and std:numel() > 0 then check_deviation(std:min():item()) end
    else
      check_deviation(std)
    end
    local zero = means and deviations and tensors.zeros_of(mean) + tensors.zeros_of(std)
      or tensors.zeros_of(means and mean or std)
    local z = drawn_like(zero):normal_(0, 1, generator)
    local function value(x) return lt.is_tensor(x) and x:detach() or x end
    return zero + (z * value(std) + value(mean)):to(zero.dtype)
  end,
}
