--- ReduceLROnPlateau: reduces the learning rate when a metric has stopped improving.

local lt = require "lutra"
local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

local parse = args.signature("ReduceLROnPlateau", "any optimizer, 'min'|'max' mode = 'min', "
  .. "float factor = 0.1, int patience = 10, float threshold = 0.0001, "
  .. "'rel'|'abs' threshold_mode = 'rel', int cooldown = 0, any? min_lr = nil, float eps = 1e-8")

--- optim.lr_scheduler.ReduceLROnPlateau(optimizer, {mode = "min", factor = 0.1, patience = 10,
-- threshold = 1e-4, threshold_mode = "rel", cooldown = 0, min_lr = 0, eps = 1e-8}): step(metric)
-- multiplies lr by factor, to at least min_lr (a number, or a list of one for each group), after
-- more than `patience` steps in a row without an improvement, and then ignores `cooldown` steps. An
-- improvement is a metric below ("min") or above ("max") the best one by the threshold, which is
-- relative or absolute. A change of lr below eps is not made. Raises an error unless factor is
-- below 1.
local ReduceLROnPlateau = LRScheduler:extend "ReduceLROnPlateau"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function ReduceLROnPlateau:init(...)
  local optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps =
    parse(...)
  min_lr = min_lr or 0
  args.check(factor < 1,
    "ReduceLROnPlateau: expected a number below 1 for argument 'factor', got %g", factor)
  self:check_optimizer(optimizer)
  self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
  self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode,
    cooldown, eps
  self.min_lrs = self:per_group("min_lr", optimizer, min_lr)
  self.default_min_lr = type(min_lr) == "number" and min_lr or nil
  self.mode_worse = mode == "min" and math.huge or -math.huge
  self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0
  self.last_epoch = 0
  self._last_lr = self:values_of "lr"
end

local function is_better(self, metric)
  local best, is_least = self.best, self.mode == "min"
  if self.threshold_mode == "rel" then
    if is_least then return metric < best * (1 - self.threshold) end
    return metric > best * (1 + self.threshold)
  end
  if is_least then return metric < best - self.threshold end
  return metric > best + self.threshold
end

local function reduce(self)
  local groups = self.optimizer.param_groups
  if #groups ~= #self.min_lrs then
    args.check(self.default_min_lr ~= nil, "ReduceLROnPlateau: expected %d numbers in the field "
      .. "'min_lrs', one for each group, got %d", #groups, #self.min_lrs)
    self.min_lrs = self:per_group("min_lr", self.optimizer, self.default_min_lr)
  end
  for i, group in ipairs(groups) do
    local lr = math.max(group.lr * self.factor, self.min_lrs[i])
    if group.lr - lr > self.eps then group.lr = lr end
  end
end

--- Returns whether steps are ignored after a reduction.
function ReduceLROnPlateau:in_cooldown() return self.cooldown_counter > 0 end

--- Takes the metric of an epoch, a number or a tensor of one element, and reduces the learning
-- rates if it has stopped improving.
function ReduceLROnPlateau:step(metrics, epoch)
  if lt.is_tensor(metrics) then metrics = metrics:item() end
  args.expect(type(metrics) == "number", "ReduceLROnPlateau: step",
    "a number or a tensor of one element", "metrics", metrics)
  self.last_epoch = epoch or self.last_epoch + 1
  if is_better(self, metrics) then
    self.best, self.num_bad_epochs = metrics, 0
  else
    self.num_bad_epochs = self.num_bad_epochs + 1
  end
  if self:in_cooldown() then
    self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
  end
  if self.num_bad_epochs > self.patience then
    reduce(self)
    self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
  end
  self._last_lr = self:values_of "lr"
end

return ReduceLROnPlateau
