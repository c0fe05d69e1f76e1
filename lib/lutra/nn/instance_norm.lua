--- nn.InstanceNorm1d, InstanceNorm2d and InstanceNorm3d: normalization of each channel of each
-- instance (Ulyanov et al. 2016).

local lt = require "lutra"
local ChannelNorm = require "lutra.nn.channel_norm"

local instance_norms = {}

-- Defines nn.InstanceNorm<n>d, whose inputs have `dims` dimensions, or one less without a batch.
local function define(name, dims)
  local class = ChannelNorm:extend(name)
  local parse = class:_parser(name, false, false)

  function class:init(...) self:_set_up(parse(...)) end

  function class:forward(x)
    self:_check_dimensions(x, dims - 1, dims)
    if self.affine or self.track_running_stats then
      self:_check_channels(x, x.ndim - dims + 2)
    end
    local mean, var = nil, nil
    if self.track_running_stats then mean, var = self.running_mean, self.running_var end
    local batch = x.ndim == dims and x or x:unsqueeze(1)
    local y = lt.F.instance_norm(batch, mean, var, self.weight, self.bias,
      self.training or not self.track_running_stats, self.momentum or 0, self.eps)
    return x.ndim == dims and y or y:squeeze(1)
  end

  instance_norms[name] = class
end

--- nn.InstanceNorm1d(num_features, {eps = 1e-5, momentum = 0.1, affine = false,
-- track_running_stats = false, device, dtype}): (x - mean) / sqrt(variance + eps) for each channel
-- of each instance of {N, C, L} or {C, L}, with `affine` then * weight + bias. With
-- track_running_stats, evaluation mode uses running_mean and running_var, which training updates.
define("InstanceNorm1d", 3)

--- nn.InstanceNorm2d(num_features, ...): of {N, C, H, W} or {C, H, W}.
define("InstanceNorm2d", 4)

--- nn.InstanceNorm3d(num_features, ...): of {N, C, D, H, W} or {C, D, H, W}.
define("InstanceNorm3d", 5)

return instance_norms
