--- nn.LayerNorm: normalization over the last dimensions (Ba, Kiros, Hinton 2016).

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local LayerNorm = Module:extend "LayerNorm"

local parse = args.signature("LayerNorm", "sizes(>=0) normalized_shape, float eps = 1e-5, "
  .. "bool elementwise_affine = true, bool bias = true, device? device = nil, dtype? dtype = nil")

--- nn.LayerNorm(normalized_shape, {eps = 1e-5, elementwise_affine = true, bias = true, device,
-- dtype}): (x - mean) / sqrt(variance + eps) * weight + bias, with mean and biased variance over
-- the last dimensions, whose sizes must be `normalized_shape` (an integer or a list). weight and
-- bias have this shape; without elementwise_affine, both are nil. Raises an error for an empty
-- list.
function LayerNorm:init(...)
  local shape, eps, affine, bias, device, dtype = parse(...)
  args.check(#shape > 0, "LayerNorm: expected at least one size for argument 'normalized_shape', "
    .. "got none")
  local options = {device = device, dtype = dtype}
  self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, affine
  local function parameter(enabled)
    return enabled and lt.nn.Parameter(lt.empty(shape, options)) or nil
  end
  self:register_parameter("weight", parameter(affine))
  self:register_parameter("bias", parameter(affine and bias))
  self:reset_parameters()
end

--- Sets weight to ones and bias to zeros.
function LayerNorm:reset_parameters()
  if self.weight then init.ones_(self.weight) end
  if self.bias then init.zeros_(self.bias) end
end

local function text(sizes) return table.concat(sizes, ", ") end

-- Returns whether the last sizes of `x` equal `sizes`.
local function ends_with(x, sizes)
  local offset = x.ndim - #sizes
  if offset < 0 then return false end
  for i, size in ipairs(sizes) do
    if x:size(offset + i) ~= size then return false end
  end
  return true
end

--- Maps {*, normalized_shape} to the same shape. Raises an error for any other shape.
function LayerNorm:forward(x)
  self:check_tensor(x)
  if not ends_with(x, self.normalized_shape) then
    self:fail("expected an input of shape {*, %s}, got %s", text(self.normalized_shape),
      tostring(x.shape))
  end
  return lt.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
end

function LayerNorm:extra_repr()
  return ("{%s}, eps=%s, elementwise_affine=%s"):format(text(self.normalized_shape),
    numbers.text(self.eps, "%g"), tostring(self.elementwise_affine))
end

return LayerNorm
