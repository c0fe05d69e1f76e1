--- Schedules over the first total_iters steps: ConstantLR, LinearLR, PolynomialLR.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

local check = args.check

local parse_constant = args.signature("ConstantLR",
  "any optimizer, float? factor = nil, int(>=0) total_iters = 5, int last_epoch = -1")

--- optim.lr_scheduler.ConstantLR(optimizer, {factor = 1 / 3, total_iters = 5, last_epoch = -1}):
-- multiplies lr by factor, and divides it by factor after total_iters steps. Raises an error unless
-- factor is from 0 to 1.
local ConstantLR = LRScheduler:extend "ConstantLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function ConstantLR:init(...)
  local optimizer, factor, total_iters, last_epoch = parse_constant(...)
  self.factor, self.total_iters = factor or 1 / 3, total_iters
  check(self.factor >= 0 and self.factor <= 1,
    "ConstantLR: expected a number from 0 to 1 for argument 'factor', got %g", self.factor)
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function ConstantLR:get_lr()
  if self.last_epoch == 0 then return self:scaled(self.factor) end
  return self:scaled(self.last_epoch == self.total_iters and 1 / self.factor or 1)
end

function ConstantLR:_get_closed_form_lr()
  local factor = self.last_epoch >= self.total_iters and 1 or self.factor
  return self:from_base(function(lr) return lr * factor end)
end

local parse_linear = args.signature("LinearLR", "any optimizer, float? start_factor = nil, "
  .. "float end_factor = 1, int(>=0) total_iters = 5, int last_epoch = -1")

--- optim.lr_scheduler.LinearLR(optimizer, {start_factor = 1 / 3, end_factor = 1, total_iters = 5,
-- last_epoch = -1}): multiplies lr by a factor that changes linearly from start_factor to
-- end_factor during total_iters steps. Raises an error unless both are from 0 to 1, start_factor
-- above 0.
local LinearLR = LRScheduler:extend "LinearLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function LinearLR:init(...)
  local optimizer, start_factor, end_factor, total_iters, last_epoch = parse_linear(...)
  self.start_factor, self.end_factor = start_factor or 1 / 3, end_factor
  self.total_iters = total_iters
  check(self.start_factor > 0 and self.start_factor <= 1,
    "LinearLR: expected a number above 0 and up to 1 for argument 'start_factor', got %g",
    self.start_factor)
  check(end_factor >= 0 and end_factor <= 1,
    "LinearLR: expected a number from 0 to 1 for argument 'end_factor', got %g", end_factor)
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function LinearLR:get_lr()
  if self.last_epoch == 0 then return self:scaled(self.start_factor) end
  if self._is_initial or self.last_epoch > self.total_iters then return self:scaled(1) end
  local change = self.end_factor - self.start_factor
  return self:scaled(1 + change
    / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))
end

function LinearLR:_get_closed_form_lr()
  local done = math.min(self.total_iters, self.last_epoch) / self.total_iters
  local factor = self.start_factor + (self.end_factor - self.start_factor) * done
  return self:from_base(function(lr) return lr * factor end)
end

local parse_polynomial = args.signature("PolynomialLR",
  "any optimizer, int(>=0) total_iters = 5, float power = 1, int last_epoch = -1")

--- optim.lr_scheduler.PolynomialLR(optimizer, {total_iters = 5, power = 1, last_epoch = -1}): lr =
-- initial lr * (1 - min(t, total_iters) / total_iters)^power.
local PolynomialLR = LRScheduler:extend "PolynomialLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function PolynomialLR:init(...)
  local optimizer, total_iters, power, last_epoch = parse_polynomial(...)
  self.total_iters, self.power = total_iters, power
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function PolynomialLR:get_lr()
  if self._is_initial or self.last_epoch > self.total_iters then return self:scaled(1) end
  local left = self.total_iters - self.last_epoch
  return self:scaled((left / (left + 1)) ^ self.power)
end

function PolynomialLR:_get_closed_form_lr()
  local done = math.min(self.total_iters, self.last_epoch) / self.total_iters
  return self:from_base(function(lr) return lr * (1 - done) ^ self.power end)
end

return {ConstantLR, LinearLR, PolynomialLR}
