--- What nn.ModuleDict and nn.ParameterDict share: containers whose elements have names, in order.
--
-- Invariant: element `name` is registered under its name and is the field dict[name]; a name that a
-- method has is an error.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"
local ordered_map = require "lutra.internal.ordered_map"

-- The base class. A subclass overrides _kind, and _accept(self, name, value), which returns the
-- value to register.
local Mapping = Module:extend "Mapping"

-- Returns the registered names in order.
local function names(self)
  local state, list = getmetatable(self).__state, {}
  for _, name in ipairs(state.entries) do
    if state.kinds[name] == self._kind then list[#list + 1] = name end
  end
  return list
end

-- Returns an iterator over fields of the elements: over names, values, or both.
local function each(self, with_names, with_values)
  local list, i = names(self), 0
  return function()
    i = i + 1
    local name = list[i]
    if name == nil then return nil end
    if not with_values then return name end
    if not with_names then return self[name] end
    return name, self[name]
  end
end

-- Returns a list of {name, value} from another container of this kind, a list of such pairs, or a
-- table, whose names are then sorted.
local function pairs_of(self, title, values)
  local list = {}
  if Module.is_module(values) and values._kind == self._kind and values.items then
    for name, value in values:items() do list[#list + 1] = {name, value} end
    return list
  end
  args.expect(type(values) == "table" and not Module.is_module(values), title,
    "a list of {name, " .. self._kind .. "}", "values", values)
  if values[1] == nil then
    for _, name in ipairs(ordered_map.keys(values)) do list[#list + 1] = {name, values[name]} end
    return list
  end
  for i, entry in ipairs(values) do
    args.check(args.is_plain(entry) and type(entry[1]) == "string",
      "%s: expected a pair {name, %s} for argument 'values[%d]', got %s", title, self._kind, i,
      args.show(entry))
    list[i] = entry
  end
  return list
end

function Mapping:__len() return #names(self) end

-- pairs(dict): iterates over names and elements in order.
function Mapping:__pairs() return each(self, true, true) end

--- dict:update(values): adds or replaces elements by a list of {name, value}, a table (its names
-- are sorted) or another container; returns the container. Raises an error, and changes nothing,
-- for another value.
function Mapping:update(values)
  local list = pairs_of(self, self:type_name(), values)
  for i, entry in ipairs(list) do list[i] = {entry[1], self:_accept(entry[1], entry[2])} end
  for _, entry in ipairs(list) do self[entry[1]] = entry[2] end
  return self
end

--- Iterates over the names in order: `for name in dict:keys() do`.
function Mapping:keys() return each(self, true, false) end

--- Iterates over the elements in order: `for value in dict:values() do`.
function Mapping:values() return each(self, false, true) end

--- Iterates over names and elements in order: `for name, value in dict:items() do`; so does pairs.
function Mapping:items() return each(self, true, true) end

--- Returns whether there is an element of this name.
function Mapping:contains(name)
  return getmetatable(self).__state.kinds[name] == self._kind
end

--- Removes an element and returns it. Raises an error when there is none of this name.
function Mapping:pop(name)
  args.check(self:contains(name), '%s: expected a name of the container for pop, got %s',
    self:type_name(), args.show(name))
  local value = self[name]
  self:_unregister(name)
  return value
end

--- Removes all elements; returns the container.
function Mapping:clear()
  for _, name in ipairs(names(self)) do self:_unregister(name) end
  return self
end

return Mapping
