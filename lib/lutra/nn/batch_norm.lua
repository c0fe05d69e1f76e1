--- nn.BatchNorm1d, BatchNorm2d and BatchNorm3d: normalization of each channel over the batch (Ioffe
-- and Szegedy 2015).

local ChannelNorm = require "lutra.nn.channel_norm"

local batch_norms = {}

local BatchNorm = ChannelNorm:extend "BatchNorm"

-- True for the layers of batch normalization, by which other libraries recognize them.
BatchNorm._is_batch_norm = true

-- Defines nn.BatchNorm<n>d, whose inputs have from `least` to `most` dimensions.
local function define(name, least, most)
  local class = BatchNorm:extend(name)
  local parse = class:_parser(name, true, true)

  function class:init(...) self:_set_up(parse(...)) end

  function class:forward(x)
    self:_check_dimensions(x, least, most)
    self:_check_channels(x, 2)
    return self:_normalize_batch(x, self:_count_batch())
  end

  batch_norms[name] = class
end

--- nn.BatchNorm1d(num_features, {eps = 1e-5, momentum = 0.1, affine = true, track_running_stats =
-- true, device, dtype}): (x - mean) / sqrt(variance + eps) * weight + bias for each channel of {N,
-- C} or {N, C, L}. In training mode by the batch's statistics, which also update running_mean and
-- running_var; in evaluation mode by these. momentum = false averages all batches.
define("BatchNorm1d", 2, 3)

--- nn.BatchNorm2d(num_features, ...): of {N, C, H, W}.
define("BatchNorm2d", 4, 4)

--- nn.BatchNorm3d(num_features, ...): of {N, C, D, H, W}.
define("BatchNorm3d", 5, 5)

return batch_norms
