--- Schedules by functions of the epoch: LambdaLR, MultiplicativeLR.

local LRScheduler = require "lutra.optim.lr_scheduler.scheduler"
local args = require "lutra.internal.args"

-- Sets self.lr_lambdas, a function for each group.
local function read_functions(self, optimizer, given)
  self:check_optimizer(optimizer)
  local count, list = #optimizer.param_groups, {}
  if not args.is_callable(given) then
    args.expect(type(given) == "table" and #given == count, self.__name,
      ("a function or a list of %d functions"):format(count), "lr_lambda", given)
  end
  for i = 1, count do
    list[i] = args.is_callable(given) and given or given[i]
    args.expect(args.is_callable(list[i]), self.__name, "a function",
      args.is_callable(given) and "lr_lambda" or ("lr_lambda[%d]"):format(i), list[i])
  end
  self.lr_lambdas = list
end

-- Defines the state dict of a class with lr_lambdas: of a function it holds false, of an object
-- that can be called its fields.
local function define_state(class)
  --- Returns the state as a plain table. Functions are not part of it; of an object that can be
  -- called, its fields are.
  function class:state_dict()
    local state = LRScheduler.state_dict(self)
    state.lr_lambdas = {}
    for i, fn in ipairs(self.lr_lambdas) do
      state.lr_lambdas[i] = false
      if type(fn) == "table" then
        state.lr_lambdas[i] = {}
        for key, value in pairs(fn) do state.lr_lambdas[i][key] = value end
      end
    end
    return state
  end

  --- Loads the result of state_dict; the functions stay those of this scheduler.
  function class:load_state_dict(state_dict)
    local mine = self.lr_lambdas
    LRScheduler.load_state_dict(self, state_dict)
    self.lr_lambdas = mine
    for i, fields in pairs(state_dict.lr_lambdas or {}) do
      for key, value in pairs(fields or {}) do mine[i][key] = value end
    end
  end
end

local PARAMETERS = "any optimizer, any lr_lambda, int last_epoch = -1"
local parse_lambda = args.signature("LambdaLR", PARAMETERS)
local parse_multiplicative = args.signature("MultiplicativeLR", PARAMETERS)

--- optim.lr_scheduler.LambdaLR(optimizer, lr_lambda, {last_epoch = -1}): lr = initial lr *
-- lr_lambda(epoch), where epoch is the number of steps, 0 at first. `lr_lambda` is a function, or a
-- list of one for each group. Raises an error for anything else.
local LambdaLR = LRScheduler:extend "LambdaLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function LambdaLR:init(...)
  local optimizer, lr_lambda, last_epoch = parse_lambda(...)
  read_functions(self, optimizer, lr_lambda)
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function LambdaLR:get_lr()
  local list = {}
  for i, lr in ipairs(self.base_lrs) do list[i] = lr * self.lr_lambdas[i](self.last_epoch) end
  return list
end
define_state(LambdaLR)

--- optim.lr_scheduler.MultiplicativeLR(optimizer, lr_lambda, {last_epoch = -1}): each step
-- multiplies lr by lr_lambda(epoch), the number of steps with this one. `lr_lambda` is a function,
-- or a list of one for each group. Raises an error for anything else.
local MultiplicativeLR = LRScheduler:extend "MultiplicativeLR"

--- Initializes an instance; the class calls it with the arguments of the constructor.
function MultiplicativeLR:init(...)
  local optimizer, lr_lambda, last_epoch = parse_multiplicative(...)
  read_functions(self, optimizer, lr_lambda)
  LRScheduler.init(self, optimizer, last_epoch)
end

--- Returns the learning rates of the groups at self.last_epoch.
function MultiplicativeLR:get_lr()
  local list = self:values_of "lr"
  if self._is_initial then return list end
  for i, lr in ipairs(list) do list[i] = lr * self.lr_lambdas[i](self.last_epoch) end
  return list
end
define_state(MultiplicativeLR)

return {LambdaLR, MultiplicativeLR}
