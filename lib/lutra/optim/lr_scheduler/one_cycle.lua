--- OneCycleLR: the 1cycle policy (Smith and Topin 2018, "Super-Convergence").

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"
local momentum = require "lutra.optim.lr_scheduler.momentum"

local parse = args.signature("OneCycleLR", "any optimizer, any max_lr, "
  .. "int? total_steps = nil, int? epochs = nil, int? steps_per_epoch = nil, "
  .. "float pct_start = 0.3, 'cos'|'linear' anneal_strategy = 'cos', bool cycle_momentum = true, "
  .. "any? base_momentum = nil, any? max_momentum = nil, float div_factor = 25, "
  .. "float final_div_factor = 10000, bool three_phase = false, int last_epoch = -1")

--- optim.lr_scheduler.OneCycleLR(optimizer, max_lr, {total_steps = nil, epochs = nil,
-- steps_per_epoch = nil, pct_start = 0.3, anneal_strategy = "cos", cycle_momentum = true,
-- base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4, three_phase =
-- false, last_epoch = -1}): during total_steps (or epochs * steps_per_epoch) steps, lr rises from
-- max_lr / div_factor to max_lr in the fraction pct_start, and falls to max_lr / div_factor /
-- final_div_factor, along a cosine or a line. Call step after each step of the optimizer. With
-- cycle_momentum, momentum (or betas[1]) falls from max_momentum to base_momentum and rises again.
-- With three_phase, lr first returns to its start as fast as it rose. Rates and momentums are
-- numbers or lists of one for each group. Raises an error without a number of steps, for a step
-- after the last one, and for an optimizer without momentum, unless cycle_momentum is false.
local OneCycleLR = LRScheduler:extend "OneCycleLR"

local anneal = {
  cos = function(from, to, part) return to + (from - to) / 2 * (math.cos(math.pi * part) + 1) end,
  linear = function(from, to, part) return (to - from) * part + from end,
}

local function count_steps(total_steps, epochs, steps_per_epoch)
  local total = total_steps or epochs and steps_per_epoch and epochs * steps_per_epoch
  args.check(total, "OneCycleLR: expected a number of steps for argument 'total_steps', got nil\n"
    .. "hint: {total_steps = n} or {epochs = n, steps_per_epoch = m}")
  args.check(total > 0, "OneCycleLR: expected at least one step for argument '%s', got %d",
    total_steps and "total_steps" or "epochs", total_steps or epochs)
  return total
end

local function phase(end_step, from, to, from_momentum, to_momentum)
  return {end_step = end_step, start_lr = from, end_lr = to,
    start_momentum = from_momentum .. "_momentum", end_momentum = to_momentum .. "_momentum"}
end

local function phases_of(total, part, in_three)
  local rise = phase(part * total - 1, "initial_lr", "max_lr", "max", "base")
  if not in_three then
    return {rise, phase(total - 1, "max_lr", "min_lr", "base", "max")}
  end
  return {rise, phase(2 * part * total - 2, "max_lr", "initial_lr", "base", "max"),
    phase(total - 1, "initial_lr", "min_lr", "max", "max")}
end

--- Initializes an instance; the class calls it with the arguments of the constructor.
function OneCycleLR:init(...)
  local optimizer, max_lr, total_steps, epochs, steps_per_epoch, pct_start, strategy,
    cycle_momentum, base_momentum, max_momentum, div_factor, final_div_factor, three_phase,
    last_epoch = parse(...)
  self:check_optimizer(optimizer)
  args.check(pct_start >= 0 and pct_start <= 1,
    "OneCycleLR: expected a number from 0 to 1 for argument 'pct_start', got %g", pct_start)
  self.optimizer = optimizer
  self.total_steps = count_steps(total_steps, epochs, steps_per_epoch)
  self._schedule_phases = phases_of(self.total_steps, pct_start, three_phase)
  self._anneal_func_type = strategy
  self.cycle_momentum = cycle_momentum
  local max_lrs = self:per_group("max_lr", optimizer, max_lr)
  if cycle_momentum then
    momentum.open(self, optimizer, base_momentum or 0.85, max_momentum or 0.95, last_epoch)
  end
  for i, group in ipairs(last_epoch == -1 and optimizer.param_groups or {}) do
    group.initial_lr, group.max_lr = max_lrs[i] / div_factor, max_lrs[i]
    group.min_lr = group.initial_lr / final_div_factor
  end
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch, and sets their momentum. Raises an
-- error after the last step.
function OneCycleLR:get_lr()
  local step, first, now = self.last_epoch, 0, nil
  args.check(step <= self.total_steps, "OneCycleLR: expected at most %d steps, got step %d",
    self.total_steps, step)
  for i, each in ipairs(self._schedule_phases) do
    now = each
    if step <= each.end_step or i == #self._schedule_phases then break end
    first = each.end_step
  end
  local list, between = {}, anneal[self._anneal_func_type]
  local part = (step - first) / (now.end_step - first)
  for i, group in ipairs(self.optimizer.param_groups) do
    list[i] = between(group[now.start_lr], group[now.end_lr], part)
    if self.cycle_momentum then
      momentum.set(self, group, between(group[now.start_momentum], group[now.end_momentum], part))
    end
  end
  return list
end

return OneCycleLR
