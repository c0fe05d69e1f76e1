--- nn.SyncBatchNorm: batch normalization with the statistics of the batches of all ranks.
--
-- Each rank computes the mean, the sum of squared deviations and the count of its part; these are
-- gathered and combined (Chan, Golub and LeVeque 1979), so that parts may differ in size and no
-- digits cancel. Backward adds up over the ranks the two sums that the gradient of the input needs.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local autograd = require "lutra.autograd"
local ChannelNorm = require "lutra.nn.channel_norm"
local Module = require "lutra.nn.module"

local ops = core._ops

-- Returns the dimensions of x but the second, that of the channels, and the shape of a tensor of
-- channels that broadcasts over x.
local function layout(x)
  local dims, shape = {1}, {1, x:size(2)}
  for d = 3, x.ndim do dims[#dims + 1], shape[d] = d, 1 end
  return dims, shape
end

-- Returns mean, sum of squared deviations and count of each channel over all ranks, in the dtype of
-- x.
local function gather_statistics(x, dims, shape, group)
  local channels, size = x:size(2), lt.distributed.get_world_size(group)
  local count = x:numel() // math.max(channels, 1)
  local mean = x:sum(dims) / math.max(count, 1)
  local squares = (x - mean:view(shape)):square():sum(dims)
  local own = ops.cat{mean, squares, mean:new_full({1}, count)}
  local all = lt.empty({size, 2 * channels + 1}, {dtype = x.dtype, device = x.device})
  lt.distributed.all_gather_into_tensor(all, own, group)
  local means, counts = all:narrow(2, 1, channels), all:narrow(2, 2 * channels + 1, 1)
  local total = counts:sum()
  mean = (means * counts):sum{1} / total
  squares = all:narrow(2, channels + 1, channels):sum{1} + ((means - mean):square() * counts):sum{1}
  return mean, squares, total
end

local Normalize = autograd.Function:extend "SyncBatchNorm"

function Normalize.forward(ctx, input, weight, bias, running, eps, group)
  local dims, shape = layout(input)
  local x = input:detach()
  if x.dtype ~= "float64" then x = x:float() end
  local mean, squares, total = gather_statistics(x, dims, shape, group)
  local inverse = (squares / total + eps):rsqrt()
  if running then
    local unbiased, m = squares / (total - 1), running.momentum
    running.mean:mul_(1 - m):add_((mean * m):to(running.mean.dtype))
    running.var:mul_(1 - m):add_((unbiased * m):to(running.var.dtype))
  end
  ctx.group = group
  ctx:save_for_backward(input, weight, mean, inverse, total)
  local scale = weight and inverse * weight:detach() or inverse
  local y = (x - mean:view(shape)) * scale:view(shape)
  if bias then y = y + bias:detach():view(shape) end
  return y:to(input.dtype)
end

-- With g the gradient of the result and h the normalized input, the gradient of the input is
-- (g - mean(g) - h mean(g h)) * scale, with means over all ranks.
Normalize.backward = autograd.once_differentiable(function(ctx, grad)
  local input, weight, mean, inverse, total = ctx:saved()
  local dims, shape = layout(input)
  local h = (input:to(mean.dtype) - mean:view(shape)) * inverse:view(shape)
  grad = grad:to(mean.dtype)
  local own = {grad:sum(dims), (grad * h):sum(dims)}
  local dx
  local needs = ctx.needs_input_grad
  if needs[1] then
    local sums = ops.cat(own)
    lt.distributed.all_reduce(sums, "sum", ctx.group)
    sums = sums / total
    local channels = mean:numel()
    dx = grad - sums:narrow(1, 1, channels):view(shape)
      - h * sums:narrow(1, channels + 1, channels):view(shape)
    dx = (dx * (weight and inverse * weight or inverse):view(shape)):to(input.dtype)
  end
  for i, sum in ipairs(own) do own[i] = weight and sum:to(weight.dtype) or nil end
  return dx, needs[2] and own[2] or nil, needs[3] and own[1] or nil
end)

-- ---- the module ----------------------------------------------------------------------

local SyncBatchNorm = ChannelNorm:extend "SyncBatchNorm"
SyncBatchNorm._is_batch_norm = true

local parse = args.signature("SyncBatchNorm", "int(>=0) num_features, float eps = 1e-5, "
  .. "float|bool momentum = 0.1, bool affine = true, bool track_running_stats = true, "
  .. "any? process_group = nil, device? device = nil, dtype? dtype = nil, bool bias = true")

--- nn.SyncBatchNorm(num_features, {eps = 1e-5, momentum = 0.1, affine = true, track_running_stats =
-- true, process_group, device, dtype}): batch normalization of {N, C, *} by the statistics of the
-- batches of all ranks, whose N may differ. In evaluation mode, and without a process group of
-- several ranks, it is nn.BatchNorm1d, 2d or 3d. In training mode all ranks of the group must call
-- forward and backward. Raises an error for an input of fewer than 2 dimensions.
function SyncBatchNorm:init(...)
  local features, eps, momentum, affine, track, group, device, dtype, bias = parse(...)
  self:_set_up(features, eps, momentum, affine, track, device, dtype, bias)
  self.process_group = group
end

-- Returns whether the statistics are those of several ranks.
local function is_synchronized(self)
  if not self.training then return false end
  local dist = package.loaded["lutra.distributed"]
  return dist and dist.is_initialized() and dist.get_world_size(self.process_group) > 1
end

function SyncBatchNorm:forward(x)
  self:check_tensor(x)
  if x.ndim < 2 then
    self:fail("expected an input of 2 or more dimensions, got %s", tostring(x.shape))
  end
  self:_check_channels(x, 2)
  local momentum = self:_count_batch()
  if not is_synchronized(self) then return self:_normalize_batch(x, momentum) end
  local running = self.track_running_stats
    and {mean = self.running_mean, var = self.running_var, momentum = momentum} or nil
  return Normalize(x, self.weight, self.bias, running, self.eps, self.process_group)
end

-- Returns the SyncBatchNorm with the parameters and buffers of a batch norm.
local function converted(old, group)
  local new = SyncBatchNorm(old.num_features, {eps = old.eps, momentum = old.momentum,
    affine = false, track_running_stats = false, process_group = group})
  new.affine, new.track_running_stats = old.affine, old.track_running_stats
  new:register_parameter("weight", old.weight)
  new:register_parameter("bias", old.bias)
  if old.track_running_stats then
    for _, name in ipairs {"running_mean", "running_var", "num_batches_tracked"} do
      new:register_buffer(name, old[name])
    end
  end
  return new:train(old.training)
end

local parse_convert = args.signature("convert_sync_batchnorm",
  "any? module = nil, any? process_group = nil")

--- nn.SyncBatchNorm.convert_sync_batchnorm(module, process_group): replaces each batch norm in
-- `module` by an nn.SyncBatchNorm with the same parameters and buffers, and returns the module (for
-- a batch norm, the new module). Call it before the optimizer and DistributedDataParallel are
-- created. Raises an error unless `module` is a module, and for a lazy batch norm that was not
-- called.
function SyncBatchNorm.convert_sync_batchnorm(...)
  local module, group = parse_convert(...)
  args.expect(Module.is_module(module), "convert_sync_batchnorm", "a module", "module", module)
  local new = {}
  local function replacement(m)
    if not m._is_batch_norm or m:isinstance(SyncBatchNorm) then return nil end
    args.check(not m.has_uninitialized_params, "convert_sync_batchnorm: cannot replace %s: its "
      .. "number of channels is not known\nhint: call the module once first", m:type_name())
    new[m] = new[m] or converted(m, group)
    return new[m]
  end
  local paths = {}
  for path, m in module:named_modules{remove_duplicate = false} do
    local other = replacement(m)
    if path == "" and other then return other end
    if other then paths[#paths + 1] = {path, other} end
  end
  for _, entry in ipairs(paths) do module:set_submodule(entry[1], entry[2]) end
  return module
end

return {SyncBatchNorm = SyncBatchNorm}
