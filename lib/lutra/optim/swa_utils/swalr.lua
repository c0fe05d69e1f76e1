--- SWALR: the schedule of learning rates for averaged weights.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

local SWALR = LRScheduler:extend "SWALR"

local parse = args.signature("SWALR", "any optimizer, any swa_lr, int(>=0) anneal_epochs = 10, "
  .. "'cos'|'linear' anneal_strategy = 'cos', int last_epoch = -1")

local anneal = {
  linear = function(t) return t end,
  cos = function(t) return (1 - math.cos(math.pi * t)) / 2 end,
}

--- optim.swa_utils.SWALR(optimizer, swa_lr, {anneal_epochs = 10, anneal_strategy = "cos",
-- last_epoch = -1}): moves lr from its present value to swa_lr (a number, or a list of one for each
-- group) in anneal_epochs steps, along a cosine or a line, and keeps it there.
function SWALR:init(...)
  local optimizer, swa_lr, epochs, strategy, last_epoch = parse(...)
  self:check_optimizer(optimizer)
  for i, lr in ipairs(self:per_group("swa_lr", optimizer, swa_lr)) do
    optimizer.param_groups[i].swa_lr = lr
  end
  self.anneal_epochs, self._anneal_strategy = epochs, strategy
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function SWALR:get_lr()
  local shape, step = anneal[self._anneal_strategy], self._step_count - 1
  if self.anneal_epochs == 0 then step = math.max(1, step) end
  local function part(at)
    return shape(math.max(0, math.min(1, at / math.max(1, self.anneal_epochs))))
  end
  local before, now = part(step - 1), part(step)
  local list = {}
  for i, group in ipairs(self.optimizer.param_groups) do
    local first = group.swa_lr
    if before ~= 1 then first = (group.lr - before * group.swa_lr) / (1 - before) end
    list[i] = group.swa_lr * now + first * (1 - now)
  end
  return list
end

return SWALR
