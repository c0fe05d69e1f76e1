--- Optimizer: what all optimizers share.
--
-- Idea: an optimizer is a list of parameter groups, each with its own settings, and a
-- state per parameter. A class gives its defaults and one method,
-- update(p, grad, state, group), the algorithm for one parameter.
--
-- Invariant: a parameter is in exactly one group; `state` is keyed by the parameter
-- itself, whose identity module:to and load_state_dict keep.

local lt = require "lutra"
local args = require "lutra.args"
local core = require "lutra.core"
local explain = require "lutra.explain"
local numbers = require "lutra.numbers"

local fail, check = args.fail, args.check

local Optimizer = {__name = "Optimizer"}
Optimizer.__index = Optimizer

-- A list of parameters from a tensor, a list, or an iterator (net:parameters()).
local function to_list(title, given)
  if lt.is_tensor(given) then return {given} end
  local list = {}
  if args.is_callable(given) and not lt.nn.is_module(given) then
    for p in given do list[#list + 1] = p end
  elseif args.is_plain(given) then
    for i, p in ipairs(given) do list[i] = p end
    if #list == 1 and type(list[1]) == "function" then return to_list(title, list[1]) end
  else
    fail("%s: params is %s, it wants tensors: net:parameters(), a list, or a list of groups%s",
      title, args.show(given), lt.nn.is_module(given) and ". Write net:parameters()" or "")
  end
  return list
end

local function check_parameter(title, p)
  check(lt.is_tensor(p), "%s: a parameter is %s, it wants a tensor", title, args.show(p))
  check(p.is_leaf, "%s: a tensor that is the result of an op cannot be optimized: give a leaf, "
    .. "such as an nn.Parameter", title)
end

local function copy(t)
  local new = {}
  for key, value in pairs(t) do new[key] = value end
  return new
end

-- All optimizers that are still in use.
local optimizers = setmetatable({}, {__mode = "k"})

-- What an error about tensors on different devices says more, when one is the state of an optimizer
-- whose parameters were moved.
explain.add(function(a, b)
  for optimizer in pairs(optimizers) do
    for p, state in pairs(optimizer.state) do
      for key, value in pairs(state) do
        local memory = lt.is_tensor(value) and value.device ~= p.device and core._memory(value)
        if memory and (memory == a.memory or memory == b.memory) then
          return ("\n  %s is %s's state, which stayed where its parameter was. Move the model "
            .. "first and make the optimizer then; or take the state along: "
            .. "opt:load_state_dict(opt:state_dict())"):format(key, optimizer.__name)
        end
      end
    end
  end
end)

--- Makes a subclass. `options` is a list of {name, default, test, wanted}: the settings
-- with their defaults, in the order of positional arguments; test(value) says whether a
-- value will do and `wanted` describes one that does.
function Optimizer:extend(name, options)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  args.expect(args.is_plain(options), "extend", "a list of {name, default, test, wanted}",
    "options", options)
  for i, option in ipairs(options) do
    args.expect(type(option) == "table" and type(option[1]) == "string"
      and args.is_callable(option[3]), "extend", "{name, default, test, wanted}",
      ("options[%d]"):format(i), option)
  end
  local class = {__name = name, options = options, __tostring = self.__tostring}
  class.__index = class
  for i, option in ipairs(options) do options[option[1]] = i end
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

local function option_names(options)
  local names = {}
  for i, option in ipairs(options) do names[i] = option[1] end
  return table.concat(names, ", ")
end

-- Checks one setting by its row and returns its value.
local function check_option(title, option, value)
  local name, _, test, wanted = table.unpack(option, 1, 4)
  check(test(value), "%s: %s is %s, it wants %s", title, name, args.show(value), wanted)
  return value
end

-- The settings among the arguments, by name; the first argument is params.
function Optimizer:settings(title, ...)
  local settings, count = {}, select("#", ...)
  local last = count > 0 and (select(count, ...)) or nil
  if args.is_plain(last) then
    for key, value in pairs(last) do
      check(self.options[key], '%s: no argument is called "%s". It takes: params, %s', title,
        tostring(key), option_names(self.options))
      settings[key] = value
    end
    count = count - 1
  end
  check(count <= #self.options, "%s: too many arguments, it takes: params, %s", title,
    option_names(self.options))
  for i = 1, count do
    local name = self.options[i][1]
    check(settings[name] == nil, '%s: argument "%s" is given twice, by position and by name',
      title, name)
    settings[name] = (select(i, ...))
  end
  return settings
end

-- {p1, p2, lr = 0.1} or {net:parameters(), lr = 0.1} into params and options.
local function split_table(t)
  local params, options = {}, {}
  for key, value in pairs(t) do
    if math.type(key) == "integer" then params[key] = value else options[key] = value end
  end
  if options.params ~= nil then params, options.params = options.params, nil end
  return params, options
end

local function is_groups(params)
  return args.is_plain(params) and args.is_plain(params[1])
end

--- optim.X(params, {lr = ...}): params is net:parameters(), a list of tensors, or a list
-- of groups {params = ..., lr = ...}; one table optim.X{net:parameters(), lr = ...} too.
function Optimizer:init(...)
  local title, params = self.__name, (...)
  local settings
  if select("#", ...) == 1 and args.is_plain(params) then
    params, settings = split_table(params)
    settings = self:settings(title, settings)
  else
    check(params ~= nil, '%s: argument "params" is missing: it wants net:parameters(), a list of '
      .. "tensors, or a list of groups", title)
    settings = self:settings(title, select(2, ...))
  end
  self.defaults = {}
  for _, option in ipairs(self.options) do
    local value = settings[option[1]]
    if value == nil then value = option[2] end
    self.defaults[option[1]] = check_option(title, option, value)
  end
  if not is_groups(params) then
    params = {{params = params}}
  end
  for _, group in ipairs(params) do self:add_param_group(group) end
end

--- Adds a group {params = ..., lr = ...}; settings not given are the defaults.
function Optimizer:add_param_group(group)
  local title, new = self.__name, copy(self.defaults)
  check(args.is_plain(group) and group.params ~= nil,
    "%s: a group wants the form {params = ..., lr = ...}", title)
  for key, value in pairs(group) do
    if key ~= "params" then
      check(self.options[key], '%s: no setting is called "%s". It takes: params, %s', title,
        tostring(key), option_names(self.options))
      new[key] = check_option(title, self.options[self.options[key]], value)
    end
  end
  new.params = to_list(title, group.params)
  check(#new.params > 0, "%s: the list of parameters is empty%s", title,
    type(group.params) == "function" and ": an iterator gives its parameters once, make a new one"
    or "")
  local seen = {}
  for _, other in ipairs(self.param_groups) do
    for _, p in ipairs(other.params) do seen[p] = true end
  end
  for _, p in ipairs(new.params) do
    check_parameter(title, p)
    check(not seen[p], "%s: a parameter appears twice", title)
    seen[p] = true
  end
  self:check_group(new)
  table.insert(self.param_groups, new)
end

--- What must hold between the settings of a group; classes override it.
function Optimizer.check_group() end

--- Forgets the gradients: each p.grad becomes nil.
function Optimizer:zero_grad()
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do p.grad = nil end
  end
end

local function update_all(self)
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do
      local grad = p.grad
      if grad then
        local state = self.state[p]
        if not state then
          state = {}
          self.state[p] = state
        end
        self:update(p, grad, state, group)
      end
    end
  end
end

--- One step for every parameter that has a gradient. `closure`, if given, is called
-- first with gradients enabled: it computes the loss and calls backward. Returns what
-- the closure returned.
function Optimizer:step(closure)
  if closure == nil then
    lt.no_grad(update_all, self)
    return
  end
  check(args.is_callable(closure), "%s: step wants a function, got %s", self.__name,
    args.show(closure))
  local loss = lt.enable_grad(closure)
  lt.no_grad(update_all, self)
  return loss
end

-- Parameters numbered from 1 over all groups.
local function numbered(self)
  local list = {}
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

--- The state as plain tables: state[i] of parameter i, counted from 1 over all groups,
-- and param_groups with the numbers in place of the parameters.
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

-- A tensor of the state as parameter `p` wants it: a copy on p's device.
local function adopt(p, value)
  if not lt.is_tensor(value) then return value end
  return value:detach():to{device = p.device, copy = true}
end

-- Why `saved` does not fit the optimizer, or nil.
local function misfit(self, saved)
  if type(saved) ~= "table" or type(saved.state) ~= "table"
    or type(saved.param_groups) ~= "table" then
    return "it wants a table {state = ..., param_groups = ...}"
  end
  if #saved.param_groups ~= #self.param_groups then
    return ("it has %d parameter groups, the optimizer %d"):format(#saved.param_groups,
      #self.param_groups)
  end
  for k, group in ipairs(self.param_groups) do
    local given = saved.param_groups[k]
    local params = type(given) == "table" and given.params
    if type(params) ~= "table" then return ("its group %d is no group"):format(k) end
    local count = #params
    if count ~= #group.params then
      return ("group %d has %d parameters, the optimizer's %d"):format(k, count, #group.params)
    end
    for _, option in ipairs(self.options) do
      local name, _, test, wanted = table.unpack(option, 1, 4)
      if given[name] ~= nil and not test(given[name]) then
        return ("expected %s for %s of group %d, got %s"):format(wanted, name, k,
          args.show(given[name]))
      end
    end
  end
  for i, p in ipairs(numbered(self)) do
    local given = saved.state[i] or {}
    if type(given) ~= "table" then return ("its state of parameter %d is no table"):format(i) end
    for name, value in pairs(given) do
      if lt.is_tensor(value) and tostring(value.shape) ~= tostring(p.shape) then
        return ("%s of parameter %d is %s, the parameter %s"):format(name, i,
          tostring(value.shape), tostring(p.shape))
      end
    end
  end
end

--- Takes over a state made by state_dict of an optimizer of the same class with groups
-- of the same sizes. It is checked first: an error leaves the optimizer as it was.
function Optimizer:load_state_dict(saved)
  local reason = misfit(self, saved)
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

--- The class and each group with its settings, a line each.
function Optimizer:__tostring()
  local lines = {self.__name .. " ("}
  for k, group in ipairs(self.param_groups) do
    local parts = {}
    for _, option in ipairs(self.options) do
      local value = group[option[1]]
      if type(value) == "table" then
        local texts = {}
        for i, number in ipairs(value) do texts[i] = numbers.text(number) end
        value = "{" .. table.concat(texts, ", ") .. "}"
      end
      parts[#parts + 1] = ("%s=%s"):format(option[1], numbers.text(value))
    end
    lines[#lines + 1] = ("  group %d: %d parameters, %s"):format(k, #group.params,
      table.concat(parts, ", "))
  end
  lines[#lines + 1] = ")"
  return table.concat(lines, "\n")
end

-- Rows for `extend`, shared by the classes.

local function is_number(x) return type(x) == "number" and x == x end
local function is_boolean(x) return type(x) == "boolean" end

Optimizer.row = {}

--- A number of at least 0.
function Optimizer.row.positive(name, default)
  return {name, default, function(x) return is_number(x) and x >= 0 end,
    "a number of at least 0"}
end

--- Any number.
function Optimizer.row.number(name, default) return {name, default, is_number, "a number"} end

--- true or false.
function Optimizer.row.flag(name, default) return {name, default, is_boolean, "true or false"} end

--- Adam's {beta1, beta2}.
function Optimizer.row.betas(default)
  local function fits(x) return is_number(x) and x >= 0 and x < 1 end
  return {"betas", default, function(x)
    return type(x) == "table" and #x == 2 and fits(x[1]) and fits(x[2])
  end, "two numbers {beta1, beta2} from 0 to below 1"}
end

return Optimizer
