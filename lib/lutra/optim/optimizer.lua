--- Optimizer: the base class of all optimizers.
--
-- An optimizer is a list of parameter groups, each with its own settings, and a state per
-- parameter. A subclass declares the signature of its settings and defines the algorithm in one of
-- two forms:
--
--   update(self, p, grad, state, group)   for one parameter, with any ops
--   apply(self, params, grads, buffers, group, step, fresh)
--                                         for lists of parameters, with one op of the kind
--                                         "map" (LT_MAP in ops.def)
--
-- With `apply`, the class also defines `buffers(self, group)`, which returns the names of the
-- tensors that a parameter's state needs under these settings. They start as zeros, and
-- `buffers[name]` is the list of them. One call gets the parameters that agree in `step` (the
-- number of steps, including this one), `fresh` (true when the first of their buffers was created
-- for this call) and device. `counts` is true when the state holds `step`. The lists are reused by
-- the next call, so `apply` must not keep them.
--
-- Invariant: a parameter is in exactly one group; `state` is keyed by the parameter itself, whose
-- identity module:to and load_state_dict preserve.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"
local explain = require "lutra.internal.explain"
local numbers = require "lutra.internal.numbers"

local fail, check = args.fail, args.check

local Optimizer = {__name = "Optimizer"}
Optimizer.__index = Optimizer

-- Returns a list of parameters from a tensor, a list, or an iterator such as net:parameters().
-- Raises an error for any other value.
local function to_list(title, given)
  if lt.is_tensor(given) then return {given} end
  local list = {}
  if args.is_callable(given) and not lt.nn.is_module(given) then
    for p in given do list[#list + 1] = p end
  elseif args.is_plain(given) then
    for i, p in ipairs(given) do list[i] = p end
    if #list == 1 and type(list[1]) == "function" then return to_list(title, list[1]) end
  else
    fail("%s: expected tensors for argument 'params', got %s\nhint: net:parameters(), a list of "
      .. "tensors, or a list of groups {params = ...}", title, args.show(given))
  end
  return list
end

local function check_parameter(title, p)
  check(lt.is_tensor(p), "%s: expected tensors in argument 'params', got %s", title, args.show(p))
  check(p.is_leaf, "%s: cannot optimize the result of an op: it is not a leaf tensor\n"
    .. "hint: nn.Parameter(x:detach())", title)
end

local function copy(t)
  local new = {}
  for key, value in pairs(t) do new[key] = value end
  return new
end

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
-- args.signature takes it: "float(>=0) lr = 0.001, bool maximize = false".
function Optimizer:extend(name, settings)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  args.expect(type(settings) == "string", "extend", 'a signature such as "float lr = 0.1"',
    "settings", settings)
  local class = {__name = name, __tostring = self.__tostring,
    read = args.signature(name, "data? params = nil, " .. settings),
    read_settings = args.signature(name, settings)}
  class.__index = class
  class.options = args.describe(class.read_settings)
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

local function read_settings(self, given) return by_name(self, self.read_settings(given)) end

local function is_groups(params)
  return args.is_plain(params) and args.is_plain(params[1])
end

--- optim.X(params, {lr = ...}): `params` is net:parameters(), a list of tensors, or a list of
-- groups {params = ..., lr = ...}; one table, optim.X{net:parameters(), lr = ...}, is accepted
-- too. Raises an error for a tensor that is no leaf, for one that is listed twice, and for an
-- empty list.
function Optimizer:init(...)
  local function read_defaults(params, ...)
    check(params ~= nil, "%s: expected tensors for argument 'params', got nil\n"
      .. "hint: net:parameters(), a list of tensors, or a list of groups {params = ...}",
      self.__name)
    self.defaults = by_name(self, ...)
    return params
  end
  local params = read_defaults(self.read(...))
  if not is_groups(params) then
    params = {{params = params}}
  end
  for _, group in ipairs(params) do self:add_param_group(group) end
end

--- Adds a group {params = ..., lr = ...}. Settings that it lacks have the defaults of the
-- optimizer. Raises an error as the constructor does, and then adds nothing.
function Optimizer:add_param_group(group)
  local title, given = self.__name, copy(self.defaults)
  check(args.is_plain(group) and group.params ~= nil,
    "%s: expected a group {params = ..., lr = ...}", title)
  for key, value in pairs(group) do
    if key ~= "params" then given[key] = value end
  end
  local new = read_settings(self, given)
  new.params = to_list(title, group.params)
  check(#new.params > 0, "%s: expected at least one tensor for argument 'params', got none%s",
    title, type(group.params) == "function"
      and "\nhint: an iterator ends after one pass; make a new one: net:parameters()" or "")
  local seen = {}
  for _, other in ipairs(self.param_groups) do
    for _, p in ipairs(other.params) do seen[p] = true end
  end
  for _, p in ipairs(new.params) do
    check_parameter(title, p)
    check(not seen[p], "%s: expected different tensors in argument 'params', got one twice", title)
    seen[p] = true
  end
  self:check_group(new)
  table.insert(self.param_groups, new)
end

--- Raises an error when the settings of a group contradict each other; a class may define its own.
function Optimizer.check_group() end

--- Sets p.grad of every parameter to nil, which frees the gradients.
function Optimizer:zero_grad()
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do p.grad = nil end
  end
end

local function state_of(self, p)
  local state = self.state[p]
  if not state then
    state = {}
    self.state[p] = state
  end
  return state
end

-- Updates a group's parameters one by one.
local function update_each(self, group)
  for _, p in ipairs(group.params) do
    local grad = p.grad
    if grad then self:update(p, grad, state_of(self, p), group) end
  end
end

-- The list of unused batches, linked by `next`. Most of the cost of a step of a small model is the
-- allocation of these tables, so they are reused.
local unused = nil

-- Returns an empty batch, linked in front of `next`.
local function new_batch(names, step, fresh, device, next)
  local batch = unused or
    {count = 0, params = {}, grads = {}, states = {}, lists = {}, buffers = {}}
  unused = batch.next
  batch.step, batch.fresh, batch.device, batch.next = step, fresh, device, next
  for k = 1, #names do
    local list = batch.lists[k] or {}
    batch.lists[k], batch.buffers[names[k]] = list, list
  end
  return batch
end

-- Clears a batch and adds it to the unused ones.
local function free_batch(batch, names)
  local params, grads, states, lists = batch.params, batch.grads, batch.states, batch.lists
  for i = 1, batch.count do params[i], grads[i], states[i] = nil, nil, nil end
  for k = 1, #names do
    local list = lists[k]
    batch.buffers[names[k]] = nil
    for i = 1, batch.count do list[i] = nil end
  end
  batch.count, batch.made, batch.next, unused = 0, false, unused, batch
end

-- Returns the batch with these properties, searched from `batch` on, or nil.
local function find_batch(batch, step, fresh, device)
  while batch do
    if batch.step == step and batch.fresh == fresh and batch.device == device then return batch end
    batch = batch.next
  end
end

-- Returns the parameters of a group that have a gradient as batches, one per call of apply, linked
-- by `next`; nil without any. This loop dominates a step of a small model.
local function batches_of(self, group, names)
  local first, last = nil, nil
  local counts, count, states = self.counts, #names, self.state
  local grads, common = core._gradients(group.params)
  for i, p in ipairs(group.params) do
    local grad = grads[i]
    if grad then
      local state, step, device = states[p] or state_of(self, p), nil, common or p.device
      if counts then step = (state.step or 0) + 1 end
      local fresh = count > 0 and not state[names[1]]
      if not last or last.step ~= step or last.fresh ~= fresh or last.device ~= device then
        last = find_batch(first, step, fresh, device)
        if not last then
          last = new_batch(names, step, fresh, device, first)
          first = last
        end
      end
      local n, lists = last.count + 1, last.lists
      last.count, last.params[n], last.grads[n], last.states[n] = n, p, grad, state
      for k = 1, count do
        local buffer = state[names[k]]
        if not buffer then buffer, last.made = lt.zeros_like(p), true end
        lists[k][n] = buffer
      end
    end
  end
  return first
end

-- Updates the parameters of a batch. Their state changes only after the op has succeeded.
local function apply(self, batch, group)
  local states, step = batch.states, batch.step
  self:apply(batch.params, batch.grads, batch.buffers, group, step, batch.fresh)
  if step then
    for i = 1, batch.count do states[i].step = step end
  end
  if not batch.made then return end
  for name, list in pairs(batch.buffers) do
    for i = 1, batch.count do states[i][name] = list[i] end
  end
end

local function apply_all(self, group)
  local names = self:buffers(group)
  local batch = batches_of(self, group, names)
  while batch do
    local next = batch.next
    apply(self, batch, group)
    free_batch(batch, names)
    batch = next
  end
end

local function update_all(self)
  for _, group in ipairs(self.param_groups) do
    (self.update and update_each or apply_all)(self, group)
  end
end

--- Updates every parameter that has a gradient, in place and without recording. `closure`, if
-- given, is called first with gradients enabled: it computes the loss and calls backward. Returns
-- what the closure returned.
function Optimizer:step(closure)
  if closure == nil then
    lt.no_grad(update_all, self)
    return
  end
  args.expect(args.is_callable(closure), self.__name, "a function", "closure", closure)
  local loss = lt.enable_grad(closure)
  lt.no_grad(update_all, self)
  return loss
end

-- Returns the list of the parameters of all groups, in order.
local function numbered(self)
  local list = {}
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

--- Returns the state as plain tables {state, param_groups}: state[i] is that of parameter i,
-- counted from 1 over all groups, and each group lists these numbers instead of the parameters.
-- The tensors are shared with the optimizer.
function Optimizer:state_dict()
  local state, groups, i = {}, {}, 0
  for k, group in ipairs(self.param_groups) do
    groups[k] = copy(group)
    groups[k].params = {}
    for _, p in ipairs(group.params) do
      i = i + 1
      table.insert(groups[k].params, i)
      if self.state[p] then state[i] = copy(self.state[p]) end
    end
  end
  return {state = state, param_groups = groups}
end

-- Returns a value of the state for parameter `p`: a tensor as a copy on the device of p.
local function adopt(p, value)
  if not lt.is_tensor(value) then return value end
  return value:detach():to{device = p.device, copy = true}
end

-- Returns why the settings of a saved group contradict each other, or nil.
local function group_conflict(self, given)
  local settings = {}
  for _, option in ipairs(self.options) do settings[option.name] = given[option.name] end
  settings = read_settings(self, settings)
  local ok, message = pcall(self.check_group, self, settings)
  return not ok and tostring(message):gsub("^.-" .. self.__name .. ": ", "", 1) or nil
end

-- Returns why `saved` does not match the optimizer, or nil.
local function mismatch(self, saved)
  if type(saved) ~= "table" or type(saved.state) ~= "table"
    or type(saved.param_groups) ~= "table" then
    return "expected a table {state = ..., param_groups = ...}"
  end
  if #saved.param_groups ~= #self.param_groups then
    return ("expected %d parameter groups, got %d"):format(#self.param_groups,
      #saved.param_groups)
  end
  for k, group in ipairs(self.param_groups) do
    local given = saved.param_groups[k]
    local params = type(given) == "table" and given.params
    if type(params) ~= "table" then
      return ("expected {params = ..., lr = ...} for group %d"):format(k)
    end
    local count = #params
    if count ~= #group.params then
      return ("expected %d parameters in group %d, got %d"):format(#group.params, k, count)
    end
    for _, option in ipairs(self.options) do
      local value = given[option.name]
      if value ~= nil and not pcall(read_settings, self, {[option.name] = value}) then
        return ("expected %s for %s of group %d, got %s"):format(option.expected, option.name, k,
          args.show(value))
      end
    end
    local reason = group_conflict(self, given)
    if reason then return reason end
  end
  for i, p in ipairs(numbered(self)) do
    local given = saved.state[i] or {}
    if type(given) ~= "table" then
      return ("expected a table for the state of parameter %d"):format(i)
    end
    for name, value in pairs(given) do
      if lt.is_tensor(value) and tostring(value.shape) ~= tostring(p.shape) then
        return ("expected shape %s for %s of parameter %d, got %s"):format(tostring(p.shape), name,
          i, tostring(value.shape))
      end
    end
  end
end

--- Loads the result of state_dict of an optimizer of the same class with groups of the same sizes;
-- tensors are copied to the devices of the parameters. All of it is checked first: an error leaves
-- the optimizer unchanged.
function Optimizer:load_state_dict(saved)
  local reason = mismatch(self, saved)
  check(not reason, "%s: load_state_dict: %s", self.__name, reason)
  local state = {}
  for i, p in ipairs(numbered(self)) do
    if saved.state[i] then
      state[p] = {}
      for name, value in pairs(saved.state[i]) do state[p][name] = adopt(p, value) end
    end
  end
  for k, group in ipairs(self.param_groups) do
    for key, value in pairs(saved.param_groups[k]) do
      if key ~= "params" then group[key] = value end
    end
  end
  self.state = state
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
