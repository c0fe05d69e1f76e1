--- nn.BatchNorm1d, BatchNorm2d and BatchNorm3d: normalization of each channel over the batch (Ioffe
-- and Szegedy 2015).

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"

-- What the classes share.
local BatchNorm = Module:extend "BatchNorm"

--- Sets the running statistics to mean 0 and variance 1.
function BatchNorm:reset_running_stats()
  if not self.track_running_stats then return end
  init.zeros_(self.running_mean)
  init.ones_(self.running_var)
  self.num_batches_tracked:zero_()
end

--- Sets weight to ones and bias to zeros, and resets the running statistics.
function BatchNorm:reset_parameters()
  self:reset_running_stats()
  if not self.affine then return end
  init.ones_(self.weight)
  init.zeros_(self.bias)
end

function BatchNorm:extra_repr()
  return ("%d, eps=%s, momentum=%s, affine=%s, track_running_stats=%s"):format(self.num_features,
    numbers.text(self.eps, "%g"), self.momentum and numbers.text(self.momentum, "%g") or "false",
    tostring(self.affine), tostring(self.track_running_stats))
end

-- Defines nn.BatchNorm<n>d, whose inputs have from `least` to `most` dimensions.
local function define(class, least, most)
  local Layer = BatchNorm:extend(class)
  local parse = args.signature(class, "int(>=0) num_features, float eps = 1e-5, "
    .. "float|bool momentum = 0.1, bool affine = true, bool track_running_stats = true, "
    .. "device? device = nil, dtype? dtype = nil")

  function Layer:init(...)
    local count, eps, momentum, affine, track, device, dtype = parse(...)
    local options = {device = device, dtype = dtype}
    self.num_features, self.eps, self.momentum = count, eps, momentum
    self.affine, self.track_running_stats = affine, track
    local function parameter()
      return affine and lt.nn.Parameter(lt.empty({count}, options)) or nil
    end
    self:register_parameter("weight", parameter())
    self:register_parameter("bias", parameter())
    if track then
      self:register_buffer("running_mean", lt.zeros({count}, options))
      self:register_buffer("running_var", lt.ones({count}, options))
      self:register_buffer("num_batches_tracked", lt.tensor(0, {dtype = "int64",
        device = device}))
    end
    self:reset_parameters()
  end

  function Layer:forward(x)
    self:check_tensor(x)
    if x.ndim < least or x.ndim > most then
      self:fail("expected an input of %s dimensions, got %s",
        least == most and tostring(least) or ("%d or %d"):format(least, most), tostring(x.shape))
    end
    if x:size(2) ~= self.num_features then
      self:fail("expected an input of %d channels (num_features) in dimension 2, got %s",
        self.num_features, tostring(x.shape))
    end
    local tracked = self.track_running_stats
    local momentum = self.momentum or 0
    if self.training and tracked then
      self.num_batches_tracked:add_(1)
      if not self.momentum then momentum = 1 / self.num_batches_tracked:item() end
    end
    local mean, var = nil, nil
    if tracked then mean, var = self.running_mean, self.running_var end
    return lt.F.batch_norm(x, mean, var, self.weight, self.bias, self.training or not tracked,
      momentum, self.eps)
  end

  return Layer
end

--- nn.BatchNorm1d(num_features, {eps = 1e-5, momentum = 0.1, affine = true, track_running_stats =
-- true, device, dtype}): (x - mean) / sqrt(variance + eps) * weight + bias for each channel of {N,
-- C} or {N, C, L}. In training mode by the batch's statistics, which also update running_mean and
-- running_var; in evaluation mode by these. momentum = false averages all batches.
local BatchNorm1d = define("BatchNorm1d", 2, 3)

--- nn.BatchNorm2d(num_features, ...): of {N, C, H, W}.
local BatchNorm2d = define("BatchNorm2d", 4, 4)

--- nn.BatchNorm3d(num_features, ...): of {N, C, D, H, W}.
local BatchNorm3d = define("BatchNorm3d", 5, 5)

return {BatchNorm1d = BatchNorm1d, BatchNorm2d = BatchNorm2d, BatchNorm3d = BatchNorm3d}
