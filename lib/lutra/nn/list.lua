--- What nn.Sequential, nn.ModuleList and nn.ParameterList share: containers whose elements are in
-- order, named "1", "2"...
--
-- Invariant: element i is registered under the name tostring(i), unless it was given a name, and is
-- also the value of the integer field i, so that list[i], #list and ipairs(list) work as on a Lua
-- list. list[-1] is the last element, list[-2] the one before it; list[{{1, 2}}] is a container of
-- the first two.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

-- Sets the integer field i to a value (or nil), without registering it.
local function set_index(self, i, value) getmetatable(self).__state.fields[i] = value end

-- Converts a negative index, which counts from the end of n elements, to a positive one; returns
-- any other value unchanged.
local function from_end(i, n)
  if math.type(i) == "integer" and i < 0 then return n + 1 + i end
  return i
end

-- The base class. A subclass whose elements are not modules overrides _kind, _accept and _enter.
local List = Module:extend "List"
List.__numbered = true
List._kind = "module"

-- Returns `value` as an element; raises an error of `title` for a value that cannot be one. `place`
-- describes it: "append", "argument 2".
function List._accept(value, title, place)
  if not Module.is_module(value) then
    local class = args.show(value):match "^the class (.*)$"
    args.fail("%s: expected a module for %s, got %s%s", title, place, args.show(value),
      class and ("\nhint: call the class: %s()"):format(class) or "")
  end
  return value
end

-- Registers an element under a name.
function List:_enter(name, value) self:register_module(name, value) end

function List:__len()
  local count = 0
  while self[count + 1] ~= nil do count = count + 1 end
  return count
end

-- Returns the indices of list[{{first, last}}], both from 1 to n; first > last when it is empty.
local function ends_of(class, key, n)
  local range = key[1]
  local valid = #key == 1 and args.is_plain(range) and #range <= 2
  for _, i in ipairs(valid and range or {}) do valid = valid and math.type(i) == "integer" end
  args.check(valid and range[1] ~= 0,
    "%s: expected an index or a range {{first, last}} of integers, got %s", class.__name,
    args.show(key))
  local first, last = range[1] or 1, range[2] or range[1] or n
  return math.max(from_end(first, n), 1), math.min(from_end(last, n), n)
end

-- Returns the name that an element was given, nil when it has only its number.
local function name_in(fields, value)
  for name, other in pairs(fields) do
    if rawequal(value, other) and type(name) == "string" and not name:find "^%d+$" then
      return name
    end
  end
end

-- Returns a container of the same class with the elements of a range, which it shares.
local function slice(class, fields, key)
  local first, last = ends_of(class, key, #fields)
  local part = class()
  for i = first, last do part:_add(name_in(fields, fields[i]), fields[i]) end
  return part
end

-- Reads list[{{first, last}}], and list[i] when the integer field i is not set. Returns nil after
-- the last module, as in a Lua list, so that ipairs ends; raises an error for an index below -n.
function List.__get_item(class, fields, i)
  if type(i) == "table" then return slice(class, fields, i) end
  local n = #fields
  if i >= 0 then return nil end
  args.check(i >= -n, "%s: expected an index from %d to %d, got %d", class.__name, -n, n, i)
  return fields[from_end(i, n)]
end

-- Returns the elements among the arguments, which are the elements themselves or one list of them:
-- a list of {name, element}. With `named`, an argument may be such a pair; otherwise the name is
-- nil. Raises an error for any other value.
function List:_elements(title, named, ...)
  local list = table.pack(...)
  local only = list.n == 1 and list[1]
  if type(only) == "table" and not Module.is_module(only) then
    local n = #only
    args.check(math.type(n) == "integer",
      "%s: expected a %s or a list of %ss for argument 1, got %s", title, self._kind, self._kind,
      args.show(only))
    list = table.move(only, 1, n, 1, {n = n})
  end
  local found = {}
  for i = 1, list.n do
    local entry, name = list[i], nil
    if named and args.is_plain(entry) and type(entry[1]) == "string" then
      name, entry = entry[1], entry[2]
    end
    found[i] = {name, self._accept(entry, title, ("argument %d"):format(i))}
  end
  return found
end

-- Appends an element under `name`, or under its number when the name is nil or a number.
function List:_add(name, value)
  local i = #self + 1
  if name == nil or name:match "^%d+$" then name = tostring(i) end
  self:_enter(name, value)
  set_index(self, i, value)
end

-- Returns the registered names in order: that of list[i] is names(list)[i].
local function names(self)
  local state, list = getmetatable(self).__state, {}
  for _, name in ipairs(state.entries) do
    if state.kinds[name] == self._kind then list[#list + 1] = name end
  end
  return list
end

-- Sets the integer fields anew when an element was assigned or removed by its name.
function List:__changed()
  local state = getmetatable(self).__state
  local called, n = names(self), #self
  for i = 1, math.max(#called, n) do set_index(self, i, state.fields[called[i]]) end
end

-- Removes the elements from index i on; returns a list of {name, element}.
local function take_from(self, i)
  local tail, called = {}, names(self)
  for k = i, #self do
    tail[#tail + 1] = {called[k], self[k]}
    self:_unregister(called[k])
    set_index(self, k, nil)
  end
  return tail
end

--- Appends an element; returns the container. Raises an error for a value that cannot be one.
function List:append(value)
  self:_add(nil, self._accept(value, self:type_name(), "append"))
  return self
end

-- list[i] = value: replaces element i, or appends when i is n + 1.
function List:__set_item(i, value)
  local n = #self
  local at = from_end(i, n)
  value = self._accept(value, self:type_name(), "an assignment")
  args.check(at >= 1 and at <= n + 1, "%s: expected an index from 1 to %d, got %d",
    self:type_name(), n + 1, i)
  if at == n + 1 then return self:_add(nil, value) end
  self:_enter(names(self)[at], value)
  set_index(self, at, value)
end

--- Appends the elements of a list; returns the container. Raises an error, and appends nothing,
-- when one of them is of another kind.
function List:extend(values)
  -- On a class, extend makes a subclass.
  if not Module.is_module(self) then return Module.extend(self, values) end
  for _, entry in ipairs(self:_elements("extend", false, values)) do self:_add(nil, entry[2]) end
  return self
end

--- Inserts an element before index i (1 to n + 1; -1 is the last one) and shifts those behind it;
-- returns the container. Raises an error for an index outside this range.
function List:insert(i, value)
  local n, given = #self, i
  i = from_end(i, n)
  args.check(math.type(i) == "integer" and i >= 1 and i <= n + 1,
    "%s: expected an index from 1 to %d for insert, got %s", self:type_name(), n + 1,
    args.show(given))
  value = self._accept(value, self:type_name(), "insert")
  local tail = take_from(self, i)
  self:_add(nil, value)
  for _, entry in ipairs(tail) do self:_add(entry[1], entry[2]) end
  return self
end

--- list:pop(i = -1): removes element i, by default the last one, and returns it. Raises an error
-- for an index outside the container.
function List:pop(i)
  local n, given = #self, i or -1
  i = from_end(given, n)
  args.check(math.type(i) == "integer" and i >= 1 and i <= n,
    "%s: expected an index from 1 to %d for pop, got %s", self:type_name(), n, args.show(given))
  local tail = take_from(self, i)
  for k = 2, #tail do self:_add(tail[k][1], tail[k][2]) end
  return tail[1][2]
end

return List
