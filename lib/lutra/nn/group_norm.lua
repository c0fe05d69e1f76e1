--- nn.GroupNorm: normalization of groups of channels (Wu and He 2018).

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

local GroupNorm = Module:extend "GroupNorm"

local parse = args.signature("GroupNorm", "int(>=1) num_groups, int(>=0) num_channels, "
  .. "float eps = 1e-5, bool affine = true, device? device = nil, dtype? dtype = nil, "
  .. "bool bias = true")

--- nn.GroupNorm(num_groups, num_channels, {eps = 1e-5, affine = true, device, dtype, bias =
-- true}): normalizes each group of channels of {N, C, *} to mean 0 and variance 1, then * weight +
-- bias, of shape {num_channels}. Raises an error unless num_groups divides num_channels.
function GroupNorm:init(...)
  local groups, channels, eps, affine, device, dtype, bias = parse(...)
  args.check(channels % groups == 0,
    "GroupNorm: expected a multiple of num_groups = %d for argument 'num_channels', got %d", groups,
    channels)
  self.num_groups, self.num_channels, self.eps, self.affine = groups, channels, eps, affine
  local function parameter(enabled)
    return enabled and lt.nn.Parameter(lt.empty({channels}, {device = device, dtype = dtype}))
      or nil
  end
  self:register_parameter("weight", parameter(affine))
  self:register_parameter("bias", parameter(affine and bias))
  self:reset_parameters()
end

--- Sets weight to ones and bias to zeros.
function GroupNorm:reset_parameters()
  if self.weight then init.ones_(self.weight) end
  if self.bias then init.zeros_(self.bias) end
end

--- Maps {N, num_channels, *} to the same shape. Raises an error for another number of channels.
function GroupNorm:forward(x)
  self:check_tensor(x)
  if x.ndim < 2 or x:size(2) ~= self.num_channels then
    self:fail("expected an input of %d channels (num_channels) in dimension 2, got %s",
      self.num_channels, tostring(x.shape))
  end
  return lt.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)
end

function GroupNorm:extra_repr()
  return ("%d, %d, eps=%s, affine=%s%s"):format(self.num_groups, self.num_channels,
    numbers.text(self.eps, "%g"), tostring(self.affine),
    self.weight and not self.bias and ", bias=false" or "")
end

return GroupNorm
