--- What batch norm and instance norm share: parameters and running statistics of each channel.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

-- The base class. A subclass calls _set_up with what its parser returns.
local ChannelNorm = Module:extend "ChannelNorm"

-- Returns the parser of a class's arguments, and sets the field _options, those behind the number
-- of channels; `affine` and `track` are the defaults of affine and track_running_stats.
function ChannelNorm:_parser(title, affine, track)
  self._options = "float eps = 1e-5, "
    .. ("float|bool momentum = 0.1, bool affine = %s, bool track_running_stats = %s, "):format(
      affine, track)
    .. "device? device = nil, dtype? dtype = nil, bool bias = true"
  return args.signature(title, "int(>=0) num_features, " .. self._options)
end

-- Stores the options, and creates the parameters and the buffers of `count` channels.
function ChannelNorm:_set_up(count, eps, momentum, affine, track, device, dtype, bias)
  local options = {device = device, dtype = dtype}
  self.num_features, self.eps, self.momentum = count, eps, momentum
  self.affine, self.track_running_stats = affine, track
  local function parameter(enabled)
    return enabled and lt.nn.Parameter(lt.empty({count}, options)) or nil
  end
  self:register_parameter("weight", parameter(affine))
  self:register_parameter("bias", parameter(affine and bias))
  if track then
    self:register_buffer("running_mean", lt.zeros({count}, options))
    self:register_buffer("running_var", lt.ones({count}, options))
    self:register_buffer("num_batches_tracked", lt.tensor(0, {dtype = "int64", device = device}))
  end
  self:reset_parameters()
end

--- Sets the running statistics to mean 0 and variance 1.
function ChannelNorm:reset_running_stats()
  if not self.track_running_stats then return end
  init.zeros_(self.running_mean)
  init.ones_(self.running_var)
  self.num_batches_tracked:zero_()
end

--- Sets weight to ones and bias to zeros, and resets the running statistics.
function ChannelNorm:reset_parameters()
  self:reset_running_stats()
  if self.weight then init.ones_(self.weight) end
  if self.bias then init.zeros_(self.bias) end
end

-- Raises an error unless x has from `least` to `most` dimensions.
function ChannelNorm:_check_dimensions(x, least, most)
  self:check_tensor(x)
  if x.ndim < least or x.ndim > most then
    self:fail("expected an input of %s dimensions, got %s",
      least == most and tostring(least) or ("%d or %d"):format(least, most), tostring(x.shape))
  end
end

-- Raises an error unless dimension `dim` of x has a size of num_features.
function ChannelNorm:_check_channels(x, dim)
  if x:size(dim) ~= self.num_features then
    self:fail("expected an input of %d channels (num_features) in dimension %d, got %s",
      self.num_features, dim, tostring(x.shape))
  end
end

-- Counts a batch of training when statistics are tracked; returns the momentum of the batch.
function ChannelNorm:_count_batch()
  if not self.training or not self.track_running_stats then return self.momentum or 0 end
  self.num_batches_tracked:add_(1)
  return self.momentum or 1 / self.num_batches_tracked:item()
end

-- Returns x normalized over the batch: in training mode by the statistics of x, with `momentum`, in
-- evaluation mode by those that are tracked.
function ChannelNorm:_normalize_batch(x, momentum)
  local tracked, mean, var = self.track_running_stats, nil, nil
  if tracked then mean, var = self.running_mean, self.running_var end
  return lt.F.batch_norm(x, mean, var, self.weight, self.bias, self.training or not tracked,
    momentum, self.eps)
end

function ChannelNorm:extra_repr()
  return ("%d, eps=%s, momentum=%s, affine=%s, %strack_running_stats=%s"):format(self.num_features,
    numbers.text(self.eps, "%g"), self.momentum and numbers.text(self.momentum, "%g") or "false",
    tostring(self.affine), self.weight and not self.bias and "bias=false, " or "",
    tostring(self.track_running_stats))
end

return ChannelNorm
