--- nn.Bilinear: a bilinear map of two inputs.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

local Bilinear = Module:extend "Bilinear"

local parse = args.signature("Bilinear", "int(>=1) in1_features, int(>=1) in2_features, "
  .. "int(>=0) out_features, bool bias = true, device? device = nil, dtype? dtype = nil")

--- nn.Bilinear(in1_features, in2_features, out_features, {bias = true, device, dtype}): x1' W x2 +
-- bias for each matrix W of `weight` {out_features, in1_features, in2_features}. weight and bias
-- start from the uniform distribution between -b and b, b = 1 / sqrt(in1_features).
function Bilinear:init(...)
  local first, second, outputs, bias, device, dtype = parse(...)
  local options = {device = device, dtype = dtype}
  self.in1_features, self.in2_features, self.out_features = first, second, outputs
  self.weight = lt.nn.Parameter(lt.empty({outputs, first, second}, options))
  self:register_parameter("bias", bias and lt.nn.Parameter(lt.empty({outputs}, options)) or nil)
  self:reset_parameters()
end

--- Draws new values for weight and bias from their initial distributions.
function Bilinear:reset_parameters()
  local bound = 1 / math.sqrt(self.in1_features)
  init.uniform_(self.weight, -bound, bound)
  if self.bias then init.uniform_(self.bias, -bound, bound) end
end

--- Maps {*, in1_features} and {*, in2_features} to {*, out_features}. Raises an error when the
-- other sizes differ.
function Bilinear:forward(x1, x2)
  return lt.bilinear(self:check_tensor(x1), self:check_tensor(x2), self.weight, self.bias)
end

function Bilinear:extra_repr()
  return ("in1_features=%d, in2_features=%d, out_features=%d, bias=%s"):format(self.in1_features,
    self.in2_features, self.out_features, tostring(self.bias ~= nil))
end

return Bilinear
