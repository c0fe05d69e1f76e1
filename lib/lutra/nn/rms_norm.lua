--- nn.RMSNorm: division by the root mean square over the last dimensions (Zhang and Sennrich 2019).

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local RMSNorm = Module:extend "RMSNorm"

local parse = args.signature("RMSNorm", "sizes(>=0) normalized_shape, float? eps = nil, "
  .. "bool elementwise_affine = true, device? device = nil, dtype? dtype = nil")

--- nn.RMSNorm(normalized_shape, {eps, elementwise_affine = true, device, dtype}): x / sqrt(mean of
-- x^2 + eps) * weight, the mean over the last dimensions, whose sizes must be `normalized_shape`
-- (an integer or a list). eps is the epsilon of the input's dtype by default. weight has this
-- shape; it is nil without elementwise_affine. Raises an error for an empty list.
function RMSNorm:init(...)
  local shape, eps, affine, device, dtype = parse(...)
  args.check(#shape > 0, "RMSNorm: expected at least one size for argument 'normalized_shape', "
    .. "got none")
  self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, affine
  self:register_parameter("weight",
    affine and lt.nn.Parameter(lt.empty(shape, {device = device, dtype = dtype})) or nil)
  self:reset_parameters()
end

--- Sets weight to ones.
function RMSNorm:reset_parameters()
  if self.weight then init.ones_(self.weight) end
end

--- Maps {*, normalized_shape} to the same shape. Raises an error for any other shape.
function RMSNorm:forward(x)
  return lt.rms_norm(self:check_tensor(x), self.normalized_shape, self.weight, self.eps)
end

function RMSNorm:extra_repr()
  return ("{%s}, eps=%s, elementwise_affine=%s"):format(table.concat(self.normalized_shape, ", "),
    numbers.text(self.eps, "%g"), tostring(self.elementwise_affine))
end

return RMSNorm
