--- nn.Linear: the affine map y = x W' + b, where W' is the transposed weight.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

local Linear = Module:extend "Linear"

Linear._options = "int(>=0) out_features, bool bias = true, device? device = nil, "
  .. "dtype? dtype = nil"
local parse = args.signature("Linear", "int(>=0) in_features, " .. Linear._options)

--- nn.Linear(in_features, out_features, {bias = true, device, dtype}): a layer with `weight`
-- {out_features, in_features} and `bias` {out_features} (nil with bias = false). Both start from
-- the uniform distribution between -b and b, b = 1 / sqrt(in_features), which for weight is
-- kaiming_uniform_ with a = sqrt(5), as in PyTorch.
function Linear:init(...)
  local n_in, n_out, bias, device, dtype = parse(...)
  local options = {device = device, dtype = dtype}
  self.in_features, self.out_features = n_in, n_out
  self.weight = lt.nn.Parameter(lt.empty({n_out, n_in}, options))
  self:register_parameter("bias", bias and lt.nn.Parameter(lt.empty({n_out}, options)) or nil)
  self:reset_parameters()
end

--- Draws new values for weight and bias from their initial distributions.
function Linear:reset_parameters()
  if self.weight:numel() > 0 then init.kaiming_uniform_(self.weight, math.sqrt(5)) end
  if self.bias then
    local bound = self.in_features > 0 and 1 / math.sqrt(self.in_features) or 0
    init.uniform_(self.bias, -bound, bound)
  end
end

--- Maps {*, in_features} to {*, out_features}. Raises an error when the last dimension has another
-- size.
function Linear:forward(x)
  self:check_tensor(x)
  if x.ndim == 0 or x:size(-1) ~= self.in_features then
    self:fail("expected an input of shape {*, %d} (in_features = %d), got %s", self.in_features,
      self.in_features, tostring(x.shape))
  end
  return lt.linear(x, self.weight, self.bias)
end

function Linear:extra_repr()
  return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features,
    self.out_features, tostring(self.bias ~= nil))
end

return Linear
