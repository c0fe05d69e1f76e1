--- Optimizer: the base class of all optimizers.
--
-- An optimizer is a list of parameter groups, each with its own settings, and a state per
-- parameter. A subclass declares the signature of its settings and defines the algorithm in one of
-- two forms:
--
--   update(self, p, grad, state, group)   for one parameter, with any ops
--   apply(self, params, grads, buffers, group, step, fresh, values)
--                                         for lists of parameters, with one op of the kind
--                                         "map" (LT_MAP in ops.def)
--
-- With `apply`, the class also defines `buffers(self, group)`, which returns the names of the
-- tensors that a parameter's state needs under these settings. `buffers[name]` is the list of them.
-- `values` is a list of the names of further numbers in the state; apply gets them as the table
-- `values`, and stores their new values in it. Buffers and numbers start as initial(self, name,
-- group), buffers of a class without this method as zeros. One call gets the parameters that agree
-- in `step` (the number of steps, including this one), in their numbers, in `fresh` (true when the
-- first of their buffers was created for this call) and in device. `counts` is true when the state
-- holds `step`, and `steps_alike` when apply does not use it. The lists are reused by the next
-- call, so `apply` must not keep them.
--
-- Invariant: a parameter is in exactly one group; `state` is keyed by the parameter itself, whose
-- identity module:to and load_state_dict preserve.

local lt = require "lutra"
local args = require "lutra.internal.args"
local batches = require "lutra.optim.base.batches"
local copy = require "lutra.internal.shallow_copy"
local core = require "lutra.core"
local explain = require "lutra.internal.explain"
local hooks = require "lutra.optim.base.hooks"
local numbers = require "lutra.internal.numbers"
local parameters = require "lutra.optim.base.parameters"
local base_settings = require "lutra.optim.base.settings"
local state_dict = require "lutra.optim.base.state_dict"

local check = args.check

local Optimizer = {__name = "Optimizer"}
Optimizer.__index = Optimizer

-- The set of all optimizers that have not been collected.
local optimizers = setmetatable({}, {__mode = "k"})

-- Adds to an error about tensors on different devices: that one is the state of an optimizer whose
-- parameters were moved, and the fix.
explain.add(function(a, b)
  for optimizer in pairs(optimizers) do
    for p, state in pairs(optimizer.state) do
      for key, value in pairs(state) do
        local memory = lt.is_tensor(value) and value.device ~= p.device and core._memory(value)
        if memory and (memory == a.memory or memory == b.memory) then
          return ("\n  %s is state of %s on the former device of its parameter; move the model "
            .. "before you make the optimizer, or move the state: "
            .. "opt:load_state_dict(opt:state_dict())"):format(key, optimizer.__name)
        end
      end
    end
  end
end)

--- Returns a subclass. `settings` is the signature of its settings, each with a default, as
-- args.signature takes it: "float(>=0) lr = 0.001, bool maximize = false". Without it a class has
-- the settings of its parent; one that extends optim.Optimizer itself gives the defaults as PyTorch
-- does, optim.Optimizer.init(self, params, defaults), in its init.
function Optimizer:extend(name, settings)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  args.expect(settings == nil or type(settings) == "string", "extend",
    'a signature such as "float lr = 0.1"', "settings", settings)
  local class = {__name = name, __tostring = self.__tostring, __newindex = self.__newindex}
  if settings then
    class.read = args.signature(name, "data? params = nil, " .. settings)
    class.read_settings = args.signature(name, settings)
    class.options = args.describe(class.read_settings)
  end
  class.__index = class
  return setmetatable(class, {
    __index = self, __name = "class " .. name,
    __tostring = function() return "class optim." .. name end,
    __call = function(_, ...)
      local instance = setmetatable({param_groups = {}, state = {}}, class)
      optimizers[instance] = true
      instance:init(...)
      return instance
    end,
  })
end

-- Returns a table of the settings from the values of a parser. Raises an error for nan and for
-- differentiable = true.
local function by_name(self, ...)
  local settings = {}
  for i, option in ipairs(self.options) do
    local value = select(i, ...)
    check(value == value, "%s: expected %s for argument '%s', got nan", self.__name,
      option.expected, option.name)
    settings[option.name] = value
  end
  check(not settings.differentiable, "%s: cannot record a step for gradients: "
    .. "differentiable = true is not yet supported", self.__name)
  return settings
end

--- Returns all settings of a group from a table of some of them. Raises an error for a wrong one.
function Optimizer:complete(given)
  if not self.read_settings then return given end -- a class without a signature
  return by_name(self, self.read_settings(given))
end

-- A state where a parameter that has none gets an empty table.
local new_states = {__index = function(state, p)
  state[p] = {}
  return state[p]
end}

-- Keeps the defaults of a class without a signature of its settings.
local function take_defaults(self, params, defaults)
  args.expect(defaults == nil or type(defaults) == "table", self.__name, "a table of defaults",
    "defaults", defaults)
  self.defaults, self.state, self.options = copy(defaults or {}), setmetatable({}, new_states), {}
  for name in pairs(self.defaults) do table.insert(self.options, {name = name}) end
  table.sort(self.options, function(a, b) return a.name < b.name end)
  return params
end

--- optim.X(params, {lr = ...}): `params` is net:parameters(), net:named_parameters(), a list of
-- tensors, a list of pairs {name, tensor}, or a list of groups {params = ..., lr = ...}; one table,
-- optim.X{net:parameters(), lr = ...}, is accepted too. A setting may be a tensor of one element,
-- which is kept as a number. Raises an error for a tensor that is no
-- leaf, for one that is listed twice, and for an empty list.
function Optimizer:init(...)
  local function read_defaults(params, ...)
    check(params ~= nil, "%s: expected tensors for argument 'params', got nil\n"
      .. "hint: net:parameters(), a list of tensors, or a list of groups {params = ...}",
      self.__name)
    if not self.read then return take_defaults(self, params, ...) end
    self.defaults = by_name(self, ...)
    return params
  end
  local params
  if self.read then params = read_defaults(self.read(base_settings.arguments(...)))
  else params = read_defaults(...) end
  if not parameters.are_groups(params) then
    params = {{params = params}}
  end
  for _, group in ipairs(params) do self:add_param_group(group) end
end

--- Adds a group {params = ..., lr = ...}; `params` is as for the constructor. Settings that it
-- lacks have the defaults of the optimizer. Raises an error as the constructor does, and then adds
-- nothing.
function Optimizer:add_param_group(group)
  local title, given = self.__name, copy(self.defaults)
  check(args.is_plain(group) and group.params ~= nil,
    "%s: expected a group {params = ..., lr = ...}, got %s", title, args.is_plain(group)
      and "a table without params" or args.show(group))
  for key, value in pairs(group) do
    if key ~= "params" then given[key] = base_settings.number_of(value) end
  end
  local new = self:complete(given)
  new.params, new.param_names = parameters.list(title, group.params, self.param_groups)
  self:check_group(new)
  table.insert(self.param_groups, new)
end

--- Raises an error when the settings of a group contradict each other; a class may define its own.
function Optimizer.check_group() end

--- Returns the shape of the tensor `name` in the state of the parameter p, or nil when it may have
-- any; load_state_dict checks it. A class may define its own.
function Optimizer:state_shape(_, p)
  args.expect(lt.is_tensor(p), "state_shape", "a tensor", "p", p)
  return self.apply and p.shape or nil
end

local parse_zero_grad = args.signature("zero_grad", "bool set_to_none = true")

--- Sets p.grad of every parameter to nil, which frees the gradients; with set_to_none = false,
-- fills the gradients with zeros.
function Optimizer:zero_grad(...)
  local set_to_none = parse_zero_grad(...)
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do
      if set_to_none then
        p.grad = nil
      elseif p.grad then
        p.grad = p.grad:detach():zero_()
      end
    end
  end
end

-- Updates a group's parameters one by one.
local function update_each(self, group)
  for _, p in ipairs(group.params) do
    local grad = p.grad
    if grad then self:update(p, grad, batches.state_of(self, p), group) end
  end
end

-- Makes the learning rate of a group, which programs change, a number again.
local function read_lr(self, group)
  local lr = base_settings.number_of(group.lr)
  check(type(lr) == "number", "%s: step: expected a number for lr of a group, got %s", self.__name,
    args.show(group.lr))
  group.lr = lr
end

-- Raises an error for a step that a graph cannot repeat: its numbers change with the number of
-- steps, or it creates state, which each replay would create again.
local function check_capture(self)
  args.check(not self.counts or self.steps_alike, "%s: step: cannot capture a step in a graph: its "
    .. "numbers depend on the number of earlier steps\nhint: capture forward and backward, and "
    .. "call opt:step() after g:replay()", self.__name)
  for _, group in ipairs(self.param_groups) do
    local names = self.buffers and self:buffers(group) or {}
    local stateless = not self.update and #names == 0
    for _, p in ipairs(group.params) do
      local state = self.state[p]
      local first = state and (self.update and next(state) or state[names[1]])
      args.check(stateless or first or not p.grad, "%s: step: cannot create the state of a "
        .. "parameter while a graph is captured\nhint: call opt:step() once before the capture",
        self.__name)
    end
  end
end

local function update_all(self)
  if core._accelerator.capturing() then check_capture(self) end
  for _, group in ipairs(self.param_groups) do
    if group.lr ~= nil and type(group.lr) ~= "number" then read_lr(self, group) end
    (self.update and update_each or batches.apply)(self, group)
  end
end

--- Performs a step without its callbacks; a class that calls the closure several times defines its
-- own.
function Optimizer:advance(closure)
  local loss
  if closure ~= nil then loss = lt.enable_grad(closure) end
  lt.no_grad(update_all, self)
  return loss
end

--- Updates every parameter that has a gradient, in place and without recording. `closure`, if
-- given, is called first with gradients enabled: it computes the loss and calls backward. Returns
-- what the closure returned.
function Optimizer:step(closure)
  if closure ~= nil then
    args.expect(args.is_callable(closure), self.__name, "a function", "closure", closure)
  end
  if not self.hooks then return self:advance(closure) end
  local inputs = hooks.run(self, "step_pre", {closure, n = closure and 1 or 0})
  local loss = self:advance(inputs[1])
  hooks.run(self, "step_post", inputs)
  return loss
end

--- Calls hook(optimizer, inputs) before each step; `inputs` is a packed list of the arguments of
-- step. A result that is not nil replaces it. Returns a handle with :remove().
function Optimizer:register_step_pre_hook(hook)
  return hooks.add(self, "step_pre", "register_step_pre_hook", hook)
end

--- Calls hook(optimizer, inputs) after each step. Returns a handle with :remove().
function Optimizer:register_step_post_hook(hook)
  return hooks.add(self, "step_post", "register_step_post_hook", function(...) hook(...) end)
end

--- Calls hook(optimizer) before each state_dict, before the hooks registered earlier if `prepend`
-- is true. Returns a handle with :remove().
function Optimizer:register_state_dict_pre_hook(hook, prepend)
  return hooks.add(self, "state_dict_pre", "register_state_dict_pre_hook", hook, prepend)
end

--- Calls hook(optimizer, state_dict) after each state_dict; a result that is not nil replaces the
-- state dict. Returns a handle with :remove().
function Optimizer:register_state_dict_post_hook(hook, prepend)
  return hooks.add(self, "state_dict_post", "register_state_dict_post_hook", hook, prepend)
end

--- Calls hook(optimizer, state_dict) before each load_state_dict; a result that is not nil replaces
-- the state dict. Returns a handle with :remove().
function Optimizer:register_load_state_dict_pre_hook(hook, prepend)
  return hooks.add(self, "load_pre", "register_load_state_dict_pre_hook", hook, prepend)
end

--- Calls hook(optimizer) after each load_state_dict. Returns a handle with :remove().
function Optimizer:register_load_state_dict_post_hook(hook, prepend)
  return hooks.add(self, "load_post", "register_load_state_dict_post_hook", hook, prepend)
end

local parse_state_dict = args.signature("state_dict", "int base = 1")

--- Returns the state as plain tables {state, param_groups}: state[i] is that of parameter i,
-- counted from 1 over all groups, and each group lists these numbers instead of the parameters.
-- {base = 0} counts from 0, as PyTorch does; names are PyTorch's. The tensors are shared with the
-- optimizer.
function Optimizer:state_dict(...)
  local base = parse_state_dict(...)
  hooks.run(self, "state_dict_pre")
  return hooks.run(self, "state_dict_post", state_dict.of(self, base))
end

local parse_load = args.signature("load_state_dict", "int base = 1")

--- Loads the result of state_dict of an optimizer of the same class with groups of the same sizes,
-- or of PyTorch's. The groups of a state dict list the numbers of its parameters, so that it is
-- read correctly whatever `base` is. Tensors are copied to the devices and dtypes of the
-- parameters. All of it is checked first: an error leaves the optimizer unchanged.
function Optimizer:load_state_dict(saved, ...)
  parse_load(...)
  state_dict.load(self, hooks.run(self, "load_pre", saved))
  hooks.run(self, "load_post")
end

-- Refuses to set a field of an optimizer that has the name of a setting, which the groups hold:
-- opt.lr = 0.1 would change nothing. The init of a class may set such a field for itself before
-- there are groups, and that of a class without a signature of its settings at any time.
function Optimizer:__newindex(name, value)
  local complete = #self.param_groups > 0 and rawget(self, "options") == nil
  for _, option in ipairs(complete and self.options or {}) do
    check(option.name ~= name, "%s: cannot set '%s': each group of parameters has its own\n"
      .. "hint: for _, group in ipairs(opt.param_groups) do group.%s = %s end", self.__name, name,
      name, type(value) == "number" and numbers.text(value) or "...")
  end
  rawset(self, name, value)
end

--- Returns the class and each group with its settings, one line each.
function Optimizer:__tostring()
  local lines = {self.__name .. " ("}
  for k, group in ipairs(self.param_groups) do
    local parts = {}
    for _, option in ipairs(self.options) do
      local value = group[option.name]
      if type(value) == "table" then
        local texts = {}
        for i, number in ipairs(value) do texts[i] = numbers.text(number) end
        value = "{" .. table.concat(texts, ", ") .. "}"
      end
      if value ~= nil then
        parts[#parts + 1] = ("%s=%s"):format(option.name, numbers.text(value))
      end
    end
    lines[#lines + 1] = ("  group %d: %d parameters, %s"):format(k, #group.params,
      table.concat(parts, ", "))
  end
  lines[#lines + 1] = ")"
  return table.concat(lines, "\n")
end

return Optimizer
