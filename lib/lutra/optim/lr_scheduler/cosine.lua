--- Cosine schedules (Loshchilov and Hutter 2017, "SGDR"): CosineAnnealingLR,
-- CosineAnnealingWarmRestarts.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

local pi, cos = math.pi, math.cos

local parse_annealing = args.signature("CosineAnnealingLR",
  "any optimizer, int(>=1) T_max, float eta_min = 0, int last_epoch = -1")

--- optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max, {eta_min = 0, last_epoch = -1}): lr =
-- eta_min + (initial lr - eta_min) (1 + cos(pi t / T_max)) / 2, which falls to eta_min in T_max
-- steps and then rises again. It is computed from the present lr, so that other schedulers may
-- change lr, too.
local CosineAnnealingLR = LRScheduler:extend "CosineAnnealingLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function CosineAnnealingLR:init(...)
  local optimizer, T_max, eta_min, last_epoch = parse_annealing(...)
  self.T_max, self.eta_min = T_max, eta_min
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function CosineAnnealingLR:get_lr()
  local t, T, least = self.last_epoch, self.T_max, self.eta_min
  if self._is_initial then return self:scaled(1) end
  if self._step_count == 1 and t > 0 then return self:_get_closed_form_lr() end
  local list = self:values_of "lr"
  if (t - 1 - T) % (2 * T) == 0 then
    for i, lr in ipairs(list) do
      list[i] = lr + (self.base_lrs[i] - least) * (1 - cos(pi / T)) / 2
    end
    return list
  end
  local ratio = (1 + cos(pi * t / T)) / (1 + cos(pi * (t - 1) / T))
  for i, lr in ipairs(list) do list[i] = ratio * (lr - least) + least end
  return list
end

function CosineAnnealingLR:_get_closed_form_lr()
  local half = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
  return self:from_base(function(lr) return self.eta_min + (lr - self.eta_min) * half end)
end

local parse_restarts = args.signature("CosineAnnealingWarmRestarts",
  "any optimizer, int(>=1) T_0, int(>=1) T_mult = 1, float eta_min = 0, int last_epoch = -1")

--- optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0, {T_mult = 1, eta_min = 0,
-- last_epoch = -1}): lr falls from its initial value towards eta_min along a cosine in T_0 steps,
-- starts again, and falls in T_0 * T_mult steps, and so on.
local CosineAnnealingWarmRestarts = LRScheduler:extend "CosineAnnealingWarmRestarts"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function CosineAnnealingWarmRestarts:init(...)
  local optimizer, T_0, T_mult, eta_min, last_epoch = parse_restarts(...)
  self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function CosineAnnealingWarmRestarts:get_lr()
  local half = (1 + cos(pi * self.T_cur / self.T_i)) / 2
  return self:from_base(function(lr) return self.eta_min + (lr - self.eta_min) * half end)
end

-- Sets T_cur and T_i for an epoch, which need not be an integer.
local function seek(self, epoch)
  self.T_i, self.T_cur = self.T_0, epoch
  if epoch < self.T_0 then return end
  if self.T_mult == 1 then
    self.T_cur = epoch % self.T_0
    return
  end
  local n = math.floor(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
  self.T_cur = epoch - self.T_0 * (self.T_mult ^ n - 1) / (self.T_mult - 1)
  self.T_i = self.T_0 * self.T_mult ^ n
end

--- Sets the learning rates of the next epoch, or those of `epoch`, which may be a fraction:
-- scheduler:step(epoch + i / batches) in each step of the optimizer.
function CosineAnnealingWarmRestarts:step(epoch)
  args.expect(epoch == nil or type(epoch) == "number" and epoch >= 0, self.__name,
    "a number of at least 0", "epoch", epoch)
  if epoch == nil and self.last_epoch < 0 then epoch = 0 end
  if epoch == nil then
    epoch = self.last_epoch + 1
    self.T_cur = self.T_cur + 1
    if self.T_cur >= self.T_i then
      self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
    end
  else
    seek(self, epoch)
  end
  self:_set(math.floor(epoch))
end

-- Sets the learning rates at self.T_cur and the epoch.
function CosineAnnealingWarmRestarts:_set(epoch)
  self.last_epoch = epoch
  for i, lr in ipairs(self:get_lr()) do self.optimizer.param_groups[i].lr = lr end
  self._last_lr = self:values_of "lr"
end

return {CosineAnnealingLR, CosineAnnealingWarmRestarts}
