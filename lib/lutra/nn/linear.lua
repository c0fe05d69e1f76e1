--- Linear: y = x W' + b.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"

local Linear = Module:extend "Linear"

local parse = args.signature("Linear",
  "int(>=0) in_features, int(>=0) out_features, bool bias = true, device? device = nil, "
  .. "dtype? dtype = nil")

--- nn.Linear(in_features, out_features, {bias = true, device, dtype}).
-- weight {out, in} and bias {out} start uniform within 1 / sqrt(in), which is
-- kaiming_uniform_ with a = sqrt(5), as in PyTorch.
function Linear:init(...)
  local n_in, n_out, bias, device, dtype = parse(...)
  local options = {device = device, dtype = dtype}
  self.in_features, self.out_features = n_in, n_out
  self.weight = lt.nn.Parameter(lt.empty({n_out, n_in}, options))
  self:register_parameter("bias", bias and lt.nn.Parameter(lt.empty({n_out}, options)) or nil)
  self:reset_parameters()
end

--- Draws weight and bias anew.
function Linear:reset_parameters()
  if self.weight:numel() > 0 then init.kaiming_uniform_(self.weight, math.sqrt(5)) end
  if self.bias then
    local bound = self.in_features > 0 and 1 / math.sqrt(self.in_features) or 0
    init.uniform_(self.bias, -bound, bound)
  end
end

--- {*, in} to {*, out}.
function Linear:forward(x)
  self:check_tensor(x)
  if x.ndim == 0 or x:size(-1) ~= self.in_features then
    self:fail("the input is %s, it wants {*, %d}: the last dimension must be in_features = %d",
      tostring(x.shape), self.in_features, self.in_features)
  end
  return lt.linear(x, self.weight, self.bias)
end

function Linear:extra_repr()
  return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features,
    self.out_features, tostring(self.bias ~= nil))
end

return Linear
