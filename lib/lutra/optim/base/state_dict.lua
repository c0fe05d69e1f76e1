--- State dicts of optimizers: plain tables {state, param_groups} with the names of PyTorch's, so
-- that they can be exchanged with it.
--
-- Invariant: `load` checks the whole state dict before it changes the optimizer.

local lt = require "lutra"
local args = require "lutra.internal.args"
local copy = require "lutra.internal.shallow_copy"
local settings = require "lutra.optim.base.settings"

local check, number_of = args.check, settings.number_of

local state_dict = {}

--- Returns the state dict of an optimizer. Parameters are numbered from `base` over all groups. The
-- tensors are shared with the optimizer.
function state_dict.of(self, base)
  local state, groups, i = {}, {}, base - 1
  for k, group in ipairs(self.param_groups) do
    groups[k] = copy(group)
    groups[k].params = {}
    if group.param_names then groups[k].param_names = copy(group.param_names) end
    for _, p in ipairs(group.params) do
      i = i + 1
      table.insert(groups[k].params, i)
      if self.state[p] then state[i] = copy(self.state[p]) end
    end
  end
  return {state = state, param_groups = groups}
end

-- Returns whether the class `self` stores the field `name` of a state as a number.
local function is_number(self, name)
  if name == "step" then return true end
  for _, value in ipairs(self.values or {}) do
    if value == name then return true end
  end
  return false
end

-- Returns the settings of a saved group, with numbers in place of tensors of one element.
local function settings_of(self, given)
  local new = {}
  for _, option in ipairs(self.options) do new[option.name] = number_of(given[option.name]) end
  return new
end

-- Returns why the settings of a saved group contradict each other, or nil.
local function group_conflict(self, given)
  local ok, message = pcall(self.check_group, self, self:complete(settings_of(self, given)))
  return not ok and tostring(message):gsub("^.-" .. self.__name .. ": ", "", 1) or nil
end

-- Returns why a saved group does not match group k, or nil.
local function group_mismatch(self, k, group, given)
  local params = type(given) == "table" and given.params
  if type(params) ~= "table" then
    return ("expected {params = ..., lr = ...} for group %d"):format(k)
  end
  if #params ~= #group.params then
    return ("expected %d parameters in group %d, got %d"):format(#group.params, k, #params)
  end
  for _, option in ipairs(self.options) do
    local value = number_of(given[option.name])
    if value ~= nil and not pcall(self.complete, self, {[option.name] = value}) then
      return ("expected %s for %s of group %d, got %s"):format(option.expected, option.name, k,
        args.show(value))
    end
  end
  return group_conflict(self, given)
end

-- Returns why a saved state does not match parameter i, `p`, or nil.
local function state_mismatch(self, i, p, given)
  if type(given) ~= "table" then
    return ("expected a table for the state of parameter %d"):format(i)
  end
  for name, value in pairs(given) do
    if lt.is_tensor(value) and not is_number(self, name) then
      local expected = self:state_shape(name, p)
      if expected and tostring(value.shape) ~= tostring(expected) then
        return ("expected shape %s for %s of parameter %d, got %s"):format(tostring(expected), name,
          i, tostring(value.shape))
      end
    end
  end
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
  local i = 0
  for k, group in ipairs(self.param_groups) do
    local given = saved.param_groups[k]
    local reason = group_mismatch(self, k, group, given)
    for j, p in ipairs(not reason and group.params or {}) do
      i = i + 1
      local state = saved.state[given.params[j]]
      reason = reason or state ~= nil and state_mismatch(self, i, p, state) or nil
    end
    if reason then return reason end
  end
end

-- Returns a value of the state for parameter `p`: a tensor as a copy on the device of p, a floating
-- one in its dtype if p is floating; the values of a table likewise.
local function adopt(self, p, name, value)
  if type(value) == "table" and not lt.is_tensor(value) then
    local new = {}
    for key, inner in pairs(value) do new[key] = adopt(self, p, nil, inner) end
    return new
  end
  if not lt.is_tensor(value) then return value end
  if is_number(self, name) then return number_of(value) end
  local cast = value:is_floating_point() and p:is_floating_point()
  return value:detach():to{device = p.device, dtype = cast and p.dtype or value.dtype, copy = true}
end

-- Returns a plain table as a copy, any other value as it is.
local function detached(value)
  if args.is_plain(value) then return copy(value) end
  return value
end

-- Replaces the settings of a group by those of a saved one.
local function load_group(self, group, given)
  for key, value in pairs(given) do
    if key ~= "params" then group[key] = detached(value) end
  end
  for name, value in pairs(settings_of(self, given)) do
    group[name] = detached(value)
  end
end

--- Loads a state dict. The numbers of parameters are those that its groups list. With a function
-- `keeps`, the state of a parameter p is loaded only when keeps(p) is true. Raises an error when it
-- does not match the optimizer.
function state_dict.load(self, saved, keeps)
  local reason = mismatch(self, saved)
  check(not reason, "%s: load_state_dict: %s", self.__name, reason)
  local state = {}
  for k, group in ipairs(self.param_groups) do
    for j, p in ipairs(group.params) do
      local given = saved.state[saved.param_groups[k].params[j]]
      if given and (not keeps or keeps(p)) then
        state[p] = {}
        for name, value in pairs(given) do state[p][name] = adopt(self, p, name, value) end
      end
    end
  end
  for k, group in ipairs(self.param_groups) do load_group(self, group, saved.param_groups[k]) end
  self.state = state
end

return state_dict
