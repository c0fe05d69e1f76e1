--- Schedules that multiply the learning rate by a factor at some steps: StepLR, MultiStepLR,
-- ExponentialLR.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

local parse_step = args.signature("StepLR",
  "any optimizer, int(>=1) step_size, float gamma = 0.1, int last_epoch = -1")

--- optim.lr_scheduler.StepLR(optimizer, step_size, {gamma = 0.1, last_epoch = -1}): multiplies lr
-- by gamma every step_size steps.
local StepLR = LRScheduler:extend "StepLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function StepLR:init(...)
  local optimizer, step_size, gamma, last_epoch = parse_step(...)
  self.step_size, self.gamma = step_size, gamma
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function StepLR:get_lr()
  local is_due = self.last_epoch ~= 0 and self.last_epoch % self.step_size == 0
  return self:scaled(is_due and self.gamma or 1)
end

function StepLR:_get_closed_form_lr()
  local times = self.last_epoch // self.step_size
  return self:from_base(function(lr) return lr * self.gamma ^ times end)
end

local parse_multi_step = args.signature("MultiStepLR",
  "any optimizer, ints milestones, float gamma = 0.1, int last_epoch = -1")

--- optim.lr_scheduler.MultiStepLR(optimizer, milestones, {gamma = 0.1, last_epoch = -1}):
-- multiplies lr by gamma after each number of steps in the list `milestones`, once for each
-- occurrence.
local MultiStepLR = LRScheduler:extend "MultiStepLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function MultiStepLR:init(...)
  local optimizer, milestones, gamma, last_epoch = parse_multi_step(...)
  self.milestones, self.gamma = {}, gamma
  for _, epoch in ipairs(milestones) do
    self.milestones[epoch] = (self.milestones[epoch] or 0) + 1
  end
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function MultiStepLR:get_lr()
  local times = self.milestones[self.last_epoch]
  return self:scaled(times and self.gamma ^ times or 1)
end

function MultiStepLR:_get_closed_form_lr()
  local times = 0
  for epoch, count in pairs(self.milestones) do
    if epoch <= self.last_epoch then times = times + count end
  end
  return self:from_base(function(lr) return lr * self.gamma ^ times end)
end

local parse_exponential = args.signature("ExponentialLR",
  "any optimizer, float gamma, int last_epoch = -1")

--- optim.lr_scheduler.ExponentialLR(optimizer, gamma, {last_epoch = -1}): multiplies lr by gamma in
-- each step.
local ExponentialLR = LRScheduler:extend "ExponentialLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function ExponentialLR:init(...)
  local optimizer, gamma, last_epoch = parse_exponential(...)
  self.gamma = gamma
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function ExponentialLR:get_lr() return self:scaled(self._is_initial and 1 or self.gamma) end

function ExponentialLR:_get_closed_form_lr()
  return self:from_base(function(lr) return lr * self.gamma ^ self.last_epoch end)
end

return {StepLR, MultiStepLR, ExponentialLR}
