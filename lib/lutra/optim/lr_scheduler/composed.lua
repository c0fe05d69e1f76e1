--- Schedules composed of others: SequentialLR, ChainedScheduler.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local ReduceLROnPlateau = require "lutra.optim.lr_scheduler.plateau"
local args = require "lutra.internal.args"

local check = args.check

local function is_scheduler(value)
  return type(value) == "table" and type(value.optimizer) == "table"
    and type(value.get_last_lr) == "function"
end

-- Raises an error unless a list has schedulers of this optimizer, which step without a metric.
local function check_schedulers(self, schedulers, optimizer)
  check(#schedulers > 0, "%s: expected at least one scheduler for argument 'schedulers', got none",
    self.__name)
  for i = 1, #schedulers do
    local scheduler = schedulers[i]
    args.expect(is_scheduler(scheduler), self.__name, "a scheduler", ("schedulers[%d]"):format(i),
      scheduler)
    check(getmetatable(scheduler) ~= ReduceLROnPlateau, "%s: expected a scheduler that needs no "
      .. "metric for argument 'schedulers[%d]', got a ReduceLROnPlateau", self.__name, i)
    check(scheduler.optimizer == optimizer,
      "%s: expected schedulers of one optimizer, got another one for 'schedulers[%d]'", self.__name,
      i)
  end
end

-- Defines the state dict of a class with _schedulers: it contains theirs.
local function define_state(class)
  --- Returns the state as a plain table, with the state dicts of the schedulers.
  function class:state_dict()
    local state = {}
    for key, value in pairs(self) do
      if key ~= "optimizer" and key ~= "_schedulers" then state[key] = value end
    end
    state._schedulers = {}
    for i, scheduler in ipairs(self._schedulers) do
      state._schedulers[i] = scheduler:state_dict()
    end
    return state
  end

  --- Loads the result of state_dict of such a scheduler, also those of its schedulers.
  function class:load_state_dict(state_dict)
    local mine = self._schedulers
    LRScheduler.load_state_dict(self, state_dict)
    self._schedulers = mine
    for i, state in ipairs(state_dict._schedulers) do mine[i]:load_state_dict(state) end
  end
end

local parse_sequential = args.signature("SequentialLR",
  "any optimizer, list schedulers, ints milestones, int last_epoch = -1")

--- optim.lr_scheduler.SequentialLR(optimizer, schedulers, milestones, {last_epoch = -1}): uses the
-- schedulers of a list one after the other; `milestones` are the numbers of steps after which the
-- second, the third... begins, at its epoch 0. Raises an error unless there is one milestone less
-- than schedulers, and for a ReduceLROnPlateau.
local SequentialLR = LRScheduler:extend "SequentialLR"

-- Returns the index of the scheduler of an epoch.
local function index_at(self, epoch)
  local index = 1
  for _, milestone in ipairs(self._milestones) do
    if milestone <= epoch then index = index + 1 end
  end
  return index
end

--- Initializes an instance; the class calls it with the arguments of the constructor.
function SequentialLR:init(...)
  local optimizer, schedulers, milestones, last_epoch = parse_sequential(...)
  self:check_optimizer(optimizer)
  check_schedulers(self, schedulers, optimizer)
  check(#milestones == #schedulers - 1,
    "SequentialLR: expected %d numbers for argument 'milestones', one less than schedulers, got %d",
    #schedulers - 1, #milestones)
  self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
  self.last_epoch = last_epoch + 1
  for _, group in ipairs(optimizer.param_groups) do group.lr = group.initial_lr end
  self:recursive_undo()
  local first = schedulers[index_at(self, 0)]
  first:_initial_step()
  self._last_lr = first:get_last_lr()
end

--- Takes back the first step of the schedulers, or of the scheduler `sched` and those in it.
function SequentialLR:recursive_undo(sched)
  sched = sched or self
  if rawget(sched, "_schedulers") then
    for _, inner in ipairs(sched._schedulers) do self:recursive_undo(inner) end
  elseif sched.last_epoch then
    sched.last_epoch = sched.last_epoch - 1
  end
end

--- Sets the learning rates of the next epoch.
function SequentialLR:step()
  self.last_epoch = self.last_epoch + 1
  local index = index_at(self, self.last_epoch)
  local scheduler = self._schedulers[index]
  if index > 1 and self._milestones[index - 1] == self.last_epoch then
    scheduler:_update_lr(0)
  else
    scheduler:step()
  end
  self._last_lr = scheduler:get_last_lr()
end
define_state(SequentialLR)

local parse_chained = args.signature("ChainedScheduler", "list schedulers, any? optimizer = nil")

--- optim.lr_scheduler.ChainedScheduler(schedulers, {optimizer = nil}): a step is a step of each
-- scheduler of a list, so that their factors multiply. Raises an error for schedulers of different
-- optimizers, and for a ReduceLROnPlateau.
local ChainedScheduler = LRScheduler:extend "ChainedScheduler"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function ChainedScheduler:init(...)
  local schedulers, optimizer = parse_chained(...)
  local first = schedulers[1]
  optimizer = optimizer or is_scheduler(first) and first.optimizer or nil
  check_schedulers(self, schedulers, optimizer)
  self.optimizer, self._schedulers = optimizer, schedulers
  self._last_lr = self:values_of "lr"
end

--- Makes a step of each scheduler.
function ChainedScheduler:step()
  for _, scheduler in ipairs(self._schedulers) do scheduler:step() end
  self._last_lr = self:values_of "lr"
end
define_state(ChainedScheduler)

return {SequentialLR, ChainedScheduler}
