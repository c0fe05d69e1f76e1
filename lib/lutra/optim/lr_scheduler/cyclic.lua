--- CyclicLR: cyclical learning rates (Smith 2017).

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"
local momentum = require "lutra.optim.lr_scheduler.momentum"

local parse = args.signature("CyclicLR", "any optimizer, any base_lr, any max_lr, "
  .. "int(>=1) step_size_up = 2000, int? step_size_down = nil, "
  .. "'triangular'|'triangular2'|'exp_range' mode = 'triangular', float gamma = 1, "
  .. "function? scale_fn = nil, 'cycle'|'iterations' scale_mode = 'cycle', "
  .. "bool cycle_momentum = true, any? base_momentum = nil, any? max_momentum = nil, "
  .. "int last_epoch = -1")

--- optim.lr_scheduler.CyclicLR(optimizer, base_lr, max_lr, {step_size_up = 2000, step_size_down =
-- nil, mode = "triangular", gamma = 1, scale_fn = nil, scale_mode = "cycle", cycle_momentum = true,
-- base_momentum = 0.8, max_momentum = 0.9, last_epoch = -1}): lr rises linearly from base_lr to
-- max_lr in step_size_up steps, falls in step_size_down (by default as many), and so on. Call step
-- after each step of the optimizer. The height of a cycle is multiplied by 1 ("triangular"), by 1 /
-- 2^(cycle - 1) ("triangular2"), by gamma^step ("exp_range"), or by scale_fn(x), where x is the
-- number of the cycle, from 1, or that of steps ("iterations"). With cycle_momentum, momentum (or
-- betas[1]) falls from max_momentum to base_momentum as lr rises. Rates and momentums are numbers
-- or lists of one for each group. Raises an error for an optimizer without momentum, unless
-- cycle_momentum is false.
local CyclicLR = LRScheduler:extend "CyclicLR"

local scales = {
  triangular = function() return 1 end,
  triangular2 = function(_, x) return 1 / 2 ^ (x - 1) end,
  exp_range = function(self, x) return self.gamma ^ x end,
}

--- Initializes an instance; the class calls it with the arguments of the constructor.
function CyclicLR:init(...)
  local optimizer, base_lr, max_lr, up, down, mode, gamma, scale_fn, scale_mode, cycle_momentum,
    base_momentum, max_momentum, last_epoch = parse(...)
  self:check_optimizer(optimizer)
  self.optimizer = optimizer
  local base_lrs = self:per_group("base_lr", optimizer, base_lr)
  self.max_lrs = self:per_group("max_lr", optimizer, max_lr)
  self.total_size = up + (down or up)
  self.step_ratio = up / self.total_size
  self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
  self.scale_mode = scale_fn and scale_mode or mode == "exp_range" and "iterations" or "cycle"
  self.cycle_momentum = cycle_momentum
  if cycle_momentum then
    self.base_momentums, self.max_momentums = momentum.open(self, optimizer,
      base_momentum or 0.8, max_momentum or 0.9, last_epoch)
  end
  if last_epoch == -1 then
    for i, group in ipairs(optimizer.param_groups) do group.lr = base_lrs[i] end
  end
  LRScheduler.init(self, optimizer, last_epoch)
  self.base_lrs = base_lrs
end

--- Returns the factor of the height of a cycle; x is the number of the cycle, from 1, or that of
-- steps.
function CyclicLR:scale_fn(x)
  if self._scale_fn_custom then return self._scale_fn_custom(x) end
  return scales[self.mode](self, x)
end

--- Returns the learning rates of the groups at self.last_epoch, and sets their momentum.
function CyclicLR:get_lr()
  local cycle = math.floor(1 + self.last_epoch / self.total_size)
  local x = 1 + self.last_epoch / self.total_size - cycle
  local height = x <= self.step_ratio and x / self.step_ratio or (x - 1) / (self.step_ratio - 1)
  height = height * self:scale_fn(self.scale_mode == "cycle" and cycle or self.last_epoch)
  local list = {}
  for i, lr in ipairs(self.base_lrs) do
    list[i] = lr + (self.max_lrs[i] - lr) * height
    if self.cycle_momentum then
      local most = self.max_momentums[i]
      momentum.set(self, self.optimizer.param_groups[i],
        most - (most - self.base_momentums[i]) * height)
    end
  end
  return list
end

return CyclicLR
