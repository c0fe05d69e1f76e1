--- LRScheduler: the base class of schedulers of learning rates.
--
-- A class defines get_lr(self), which returns the list of learning rates of the groups at
-- self.last_epoch, from self.base_lrs or from the present rates, and optionally
-- _get_closed_form_lr(self), which computes them from self.base_lrs and self.last_epoch alone.
--
-- Invariant: the fields of a scheduler, except `optimizer` and functions, are its state dict; their
-- names are PyTorch's.

local args = require "lutra.internal.args"
local numbers = require "lutra.internal.numbers"

local check = args.check

local LRScheduler = {__name = "LRScheduler"}
LRScheduler.__index = LRScheduler

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a subclass: `local Halve = optim.lr_scheduler.LRScheduler:extend "Halve"`. Define
-- Halve:get_lr(), which returns the list of the groups' learning rates at self.last_epoch. An init
-- that overrides this class's ends with LRScheduler.init(self, optimizer, last_epoch). Raises an
-- error unless `name` is a string.
function LRScheduler:extend(name)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  local class = {__name = name, __tostring = self.__tostring}
  class.__index = class
  return setmetatable(class, {
    __index = self, __name = "class " .. name, __call = construct,
    __tostring = function() return "class optim.lr_scheduler." .. name end,
  })
end

--- Raises an error unless `optimizer` is one.
function LRScheduler:check_optimizer(optimizer)
  args.expect(type(optimizer) == "table" and type(optimizer.param_groups) == "table"
    and type(optimizer.step) == "function", self.__name, "an optimizer", "optimizer", optimizer)
end

--- Returns the values of the field `key` of the optimizer's groups.
function LRScheduler:values_of(key)
  local list = {}
  for i, group in ipairs(self.optimizer.param_groups) do list[i] = group[key] end
  return list
end

--- Returns a list with a number for each group of an optimizer, from a number or such a list.
-- Raises an error for any other value. `name` is the argument.
function LRScheduler:per_group(name, optimizer, value)
  local list, count = {}, #optimizer.param_groups
  check(type(value) == "number" or args.is_plain(value) and #value == count,
    "%s: expected a number or a list of %d numbers, one for each group, for argument '%s', got %s",
    self.__name, count, name, args.show(value))
  for i = 1, count do
    list[i] = type(value) == "number" and value or value[i]
    check(type(list[i]) == "number", "%s: expected a number for '%s[%d]', got %s", self.__name,
      name, i, args.show(list[i]))
  end
  return list
end

--- Returns the learning rates of the groups times `factor`.
function LRScheduler:scaled(factor)
  local list = self:values_of "lr"
  for i, lr in ipairs(list) do list[i] = lr * factor end
  return list
end

--- Returns fn(base_lr) for the learning rate of each group before the schedule.
function LRScheduler:from_base(fn)
  local list = {}
  for i, lr in ipairs(self.base_lrs) do list[i] = fn(lr) end
  return list
end

local parse = args.signature("LRScheduler", "any optimizer, int last_epoch = -1")

--- Initializes an instance: notes the groups' learning rates as `initial_lr`, and makes the step to
-- epoch 0. To resume a schedule after epoch `last_epoch`, each group must have the field
-- `initial_lr`.
function LRScheduler:init(...)
  local optimizer, last_epoch = parse(...)
  self:check_optimizer(optimizer)
  self.optimizer = optimizer
  for i, group in ipairs(optimizer.param_groups) do
    if last_epoch == -1 and group.initial_lr == nil then group.initial_lr = group.lr end
    check(group.initial_lr ~= nil, "%s: expected the field 'initial_lr' of group %d for last_epoch "
      .. "= %d, got nil\nhint: load the optimizer's state dict before you make the scheduler",
      self.__name, i, last_epoch)
  end
  self.base_lrs = self:values_of "initial_lr"
  self.last_epoch = last_epoch
  self:_initial_step()
end

-- Makes the step to epoch 0, in which get_lr may leave the learning rates as they are.
function LRScheduler:_initial_step()
  self._step_count, self._is_initial = 0, true
  local ok, message = pcall(self.step, self)
  self._is_initial = false
  if not ok then error(message, 0) end
end

--- Returns the learning rates of the groups at self.last_epoch; every class defines its own.
function LRScheduler:get_lr()
  args.fail("%s: cannot compute learning rates: the class has no method get_lr", self.__name)
end

--- Returns the list of the groups' learning rates that the last step set.
function LRScheduler:get_last_lr() return self._last_lr end

-- Sets the learning rates of the next epoch, or of `epoch`.
function LRScheduler:_update_lr(epoch)
  local values
  self.last_epoch = epoch or self.last_epoch + 1
  if epoch and self._get_closed_form_lr then
    values = self:_get_closed_form_lr()
  else
    values = self:get_lr()
  end
  local groups = self.optimizer.param_groups
  check(type(values) == "table" and #values == #groups,
    "%s: expected a list of %d learning rates from get_lr, got %s", self.__name, #groups,
    type(values) == "table" and #values or args.show(values))
  for i, group in ipairs(groups) do group.lr = values[i] end
  self._last_lr = self:values_of "lr"
end

--- Sets the learning rates of the next epoch; call it after the optimizer's steps. With `epoch`, a
-- number, the schedule continues there.
function LRScheduler:step(epoch)
  args.expect(epoch == nil or type(epoch) == "number", self.__name, "a number", "epoch", epoch)
  self._step_count = self._step_count + 1
  self:_update_lr(epoch)
end

-- Returns a value without functions and without what shares tables with it; nil for a function.
local function plain(value)
  if type(value) == "function" then return nil end
  if type(value) ~= "table" then return value end
  local new = {}
  for key, inner in pairs(value) do new[key] = plain(inner) end
  return new
end

--- Returns the state as a plain table: all fields except the optimizer and functions.
function LRScheduler:state_dict()
  local state = {}
  for key, value in pairs(self) do
    if key ~= "optimizer" then state[key] = plain(value) end
  end
  return state
end

--- Loads the result of state_dict of a scheduler of the same class. The learning rates of the
-- optimizer are those of its own state dict. Raises an error unless `state_dict` is a table.
function LRScheduler:load_state_dict(state_dict)
  args.expect(type(state_dict) == "table", self.__name .. ": load_state_dict", "a table",
    "state_dict", state_dict)
  for key, value in pairs(state_dict) do self[key] = plain(value) end
end

--- Returns the class, the epoch and the learning rates.
function LRScheduler:__tostring()
  local rates = {}
  for i, lr in ipairs(self._last_lr or {}) do rates[i] = numbers.text(lr) end
  return ("%s (last_epoch=%s, lr={%s})"):format(self.__name, tostring(self.last_epoch),
    table.concat(rates, ", "))
end

setmetatable(LRScheduler, {
  __call = construct, __name = "class LRScheduler",
  __tostring = function() return "class optim.lr_scheduler.LRScheduler" end,
})

return LRScheduler
