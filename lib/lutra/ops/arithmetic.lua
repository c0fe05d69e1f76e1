--- Elementwise arithmetic that is a combination of other ops.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local ops = core._ops

-- Returns whether an operand, a tensor or a number, is complex.
local function is_complex(x)
  if lt.is_tensor(x) then return x:is_complex() end
  return type(x) ~= "number" and type(x) ~= "boolean"
end

lt._define{
  signature = "lt.rsub(Tensor self, Operand other, Scalar alpha = 1)",
  doc = "other - alpha * self.",
  example = "lt.rsub(lt.tensor{1, 2}, 10, {alpha = 2})",
  fn = function(x, other, alpha)
    args.check(x.dtype ~= "bool", 'rsub: expected a number dtype for argument \'self\', got "bool"')
    args.expect(type(alpha) ~= "boolean", "rsub", "a number", "alpha", alpha)
    if not lt.is_tensor(other) then return x * -alpha + other end
    return lt.sub(other, x, {alpha = alpha})
  end,
}

lt._define{
  signature = "lt.float_power(Operand self, Operand exponent)",
  doc = "self to the power of exponent, computed in float64 or complex128.",
  method = true, in_place = true,
  example = "lt.float_power(lt.tensor{1, 2, 3}, 2)",
  fn = function(x, exponent)
    local dtype = (is_complex(x) or is_complex(exponent)) and "complex128" or "float64"
    if lt.is_tensor(x) then x = x:to{dtype = dtype} end
    if lt.is_tensor(exponent) then exponent = exponent:to{dtype = dtype} end
    return lt.pow(x, exponent)
  end,
}

lt._define{
  signature = "lt.ldexp(Tensor self, Operand other)",
  doc = "self * 2^other.",
  method = true, in_place = true,
  example = "lt.ldexp(lt.tensor{1.5, 3}, lt.tensor{2, -1})",
  fn = function(x, other)
    if lt.is_tensor(other) and lt.is_floating_point(x) then
      other = other:to{dtype = lt.result_type(x, other)}
    end
    return x * lt.pow(2.0, other)
  end,
}

lt._define{
  signature = "lt.frexp(Tensor self) -> Tensor mantissa, Tensor exponent",
  doc = "Mantissa (0.5 <= |m| < 1) and exponent (int32) of floats: self = mantissa * 2^exponent.",
  method = true,
  example = "lt.frexp(lt.tensor{1.5, -8, 0})",
  fn = function(x)
    tensors.check_float("frexp", "self", x)
    return ops._mantissa(x), ops._exponent(x):to{dtype = "int32"}
  end,
}

lt._define{
  signature = "lt.clamp_min(Tensor self, Operand min)",
  doc = "The larger one of self and min, element by element; NaN stays NaN.",
  method = true, in_place = true,
  example = "lt.clamp_min(lt.tensor{-1, 2}, 0)",
  fn = function(x, min)
    return lt.is_tensor(min) and lt.maximum(x, min) or x:clamp{min = min}
  end,
}

lt._define{
  signature = "lt.clamp_max(Tensor self, Operand max)",
  doc = "The smaller one of self and max, element by element; NaN stays NaN.",
  method = true, in_place = true,
  example = "lt.clamp_max(lt.tensor{-1, 2}, 0)",
  fn = function(x, max)
    return lt.is_tensor(max) and lt.minimum(x, max) or x:clamp{max = max}
  end,
}

lt._define{
  signature = "lt.conj_physical(Tensor self)",
  doc = "Complex conjugate; self when it is real.",
  method = true, in_place = true,
  example = "lt.conj_physical(lt.complex(lt.tensor{1, 2}, 3))",
  fn = function(x) return x:is_complex() and x:conj() or x end,
}

for _, name in ipairs{"resolve_conj", "resolve_neg"} do
  lt._define{
    signature = "lt." .. name .. "(Tensor self)",
    doc = "self: conjugates and negatives are computed at once here.",
    method = true,
    example = "lt." .. name .. "(lt.tensor{-1, 2})",
    fn = function(x) return x end,
  }
end

lt._define{
  signature = "lt.fill(Tensor self, Operand value)",
  doc = "A copy of self in which each element is `value`, a number or a tensor with one element.",
  example = "lt.fill(lt.zeros(2, 2), 7)",
  fn = function(x, value)
    args.check(not lt.is_tensor(value) or value.ndim == 0,
      "fill: expected a number or a tensor of shape {} for argument 'value', got shape %s",
      lt.is_tensor(value) and tostring(value.shape))
    return x:masked_fill(lt.ones({}, {dtype = "bool", device = x.device}), value)
  end,
}

-- ---- selection and comparisons

local where_arguments = "(Tensor condition, Operand other)"
local where_method = args.signature("where", "Tensor self, " .. where_arguments:match "%((.*)%)")
--- Returns self where the condition is true, else other: lt.where(condition, self, other).
function core._methods.where(...)
  local x, condition, other = where_method(...)
  return lt.where(condition, x, other)
end
core._signatures[core._methods.where] = ":" .. where_arguments

-- Returns whether each element equals one of a sorted vector without NaN, by binary search.
local function is_among_sorted(elements, tests)
  local at = lt.searchsorted(tests, elements):clamp_(1, tests:numel())
  return tests:take(at):eq(elements)
end

local COMPARISONS = 100000 -- from which on sorting and searching are faster

-- Returns whether each element equals one of a vector: of many it searches, of few it compares 64
-- at a time.
local function is_among(elements, tests)
  if elements.is_cpu and tests:numel() > 16
      and elements:numel() * tests:numel() > COMPARISONS and not elements:is_complex() then
    elements, tests = elements:detach(), tests:detach()
    tests = tests:is_floating_point() and tests[tests:eq(tests)] or tests -- NaN equals nothing
    if tests:numel() > 0 then return is_among_sorted(elements, tests:unique()) end
  end
  local wide, found = elements:unsqueeze(-1)
  for _, some in ipairs(tests:split(64)) do
    local equal = wide:eq(some):any(-1)
    found = found and found:logical_or(equal) or equal
  end
  return found
end

lt._define{
  signature = "lt.isin(Operand elements, Operand test_elements, bool assume_unique = false, "
    .. "bool invert = false)",
  doc = "True where an element is in test_elements (with `invert`, where it is not). assume_unique "
    .. "has no effect.",
  example = "lt.isin(lt.tensor{1, 2, 3}, lt.tensor{2, 5})",
  fn = function(elements, tests, _, invert)
    args.check(lt.is_tensor(elements) or lt.is_tensor(tests),
      "isin: expected a tensor for argument 'elements' or 'test_elements', got two numbers")
    local device = lt.is_tensor(elements) and elements.device or tests.device
    if not lt.is_tensor(elements) then elements = lt.tensor(elements, {device = device}) end
    local found
    if not lt.is_tensor(tests) then
      found = elements:eq(tests)
    else
      local dtype = lt.result_type(elements, tests)
      elements, tests = elements:to{dtype = dtype}, tests:to{dtype = dtype}:reshape(-1)
      if tests:numel() == 0 or elements:numel() == 0 then
        found = lt.zeros(elements.shape, {dtype = "bool", device = device})
      else
        found = is_among(elements, tests)
      end
    end
    if invert then return found:logical_not() end
    return found
  end,
}
