--- nn.Sequential and nn.ModuleList: containers of modules in order, named "1", "2"...
--
-- Invariant: child i is registered under the name tostring(i), unless it was given a name, and is
-- also the value of the integer field i, so that list[i], #list and ipairs(list) work as on a Lua
-- list. list[-1] is the last module, list[-2] the one before it.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

-- Sets the integer field i to `module` (or nil), without registering it.
local function set_index(self, i, module) getmetatable(self).__state.fields[i] = module end

-- Converts a negative index, which counts from the end of n modules, to a positive one; returns any
-- other value unchanged.
local function from_end(i, n)
  if math.type(i) == "integer" and i < 0 then return n + 1 + i end
  return i
end

-- The base class of both containers.
local List = Module:extend "List"
List.__numbered = true

function List:__len()
  local count = 0
  while self[count + 1] ~= nil do count = count + 1 end
  return count
end

-- Reads list[i] when the integer field i is not set. Returns nil after the last module, as in a
-- Lua list, so that ipairs ends; raises an error for an index below -n.
function List.__get_item(class, fields, i)
  local n = #fields
  if i >= 0 then return nil end
  args.check(i >= -n, "%s: expected an index from %d to %d, got %d", class.__name, -n, n, i)
  return fields[from_end(i, n)]
end

-- Returns the modules among the arguments, which are the modules themselves or one list of them.
-- With `named`, an entry may be {name, module}. Raises an error for any other value.
local function entries(title, named, ...)
  local list = table.pack(...)
  local only = list.n == 1 and list[1]
  if type(only) == "table" and not Module.is_module(only) then
    local n = #only
    args.check(math.type(n) == "integer",
      "%s: expected a module or a list of modules for argument 1, got %s", title, args.show(only))
    list = table.move(only, 1, n, 1, {n = n})
  end
  for i = 1, list.n do
    local entry = list[i]
    local pair = named and args.is_plain(entry) and type(entry[1]) == "string"
    local module = entry
    if pair then module = entry[2] end
    if not Module.is_module(module) then
      args.fail("%s: expected a module for argument %d, got %s", title, i, args.show(module))
    end
  end
  return list
end

-- Appends a module under `name`, or under its number when the name is nil or a number.
local function add(self, name, module)
  local i = #self + 1
  if name == nil or name:match "^%d+$" then name = tostring(i) end
  self:register_module(name, module)
  set_index(self, i, module)
end

-- Returns the registered names in order: that of list[i] is names(list)[i].
local function names(self)
  local list = {}
  for name in self:named_children() do list[#list + 1] = name end
  return list
end

local function check_module(self, method, module)
  if not Module.is_module(module) then
    args.fail("%s: expected a module for %s, got %s", self:type_name(), method, args.show(module))
  end
end

--- Appends `module`; returns the container. Raises an error for a value that is no module.
function List:append(module)
  check_module(self, "append", module)
  add(self, nil, module)
  return self
end

-- list[i] = module: replaces module i, or appends when i is n + 1.
function List:__set_item(i, module)
  local n = #self
  local at = from_end(i, n)
  check_module(self, "an assignment", module)
  args.check(at >= 1 and at <= n + 1, "%s: expected an index from 1 to %d, got %d",
    self:type_name(), n + 1, i)
  if at == n + 1 then return add(self, nil, module) end
  self:register_module(names(self)[at], module)
  set_index(self, at, module)
end

--- Appends the modules of a list; returns the container. Raises an error, and appends nothing, when
-- one of them is no module.
function List:extend(modules)
  -- On a class, extend makes a subclass.
  if not Module.is_module(self) then return Module.extend(self, modules) end
  for _, module in ipairs(entries("extend", false, modules)) do self:append(module) end
  return self
end

--- Inserts `module` before index i (1 to n + 1; -1 is the last module) and shifts the modules
-- behind it; returns the container. Raises an error for an index outside this range.
function List:insert(i, module)
  local n, given = #self, i
  i = from_end(i, n)
  args.check(math.type(i) == "integer" and i >= 1 and i <= n + 1,
    "%s: expected an index from 1 to %d for insert, got %s", self:type_name(), n + 1,
    args.show(given))
  check_module(self, "insert", module)
  local tail, called = {}, names(self)
  for k = i, n do
    tail[#tail + 1] = {called[k], self[k]}
    self[called[k]] = nil
    set_index(self, k, nil)
  end
  add(self, nil, module)
  for _, entry in ipairs(tail) do add(self, entry[1], entry[2]) end
  return self
end

--- nn.Sequential: a module that passes each module's output to the next.
local Sequential = List:extend "Sequential"

--- nn.Sequential(a, b, c), nn.Sequential{a, b, c}, or with names: nn.Sequential{{"encoder", a},
-- {"head", b}}, whose modules are also the fields `encoder` and `head`. Raises an error for an
-- argument that is no module.
function Sequential:init(...)
  local list = entries("Sequential", true, ...)
  for _, entry in ipairs(list) do
    if args.is_plain(entry) then
      add(self, entry[1], entry[2])
    else
      self:append(entry)
    end
  end
end

--- Calls the modules in order, each with the output of the one before it; the first gets all
-- arguments. Returns the last output; without modules, the arguments.
function Sequential:forward(...)
  local first = self[1]
  if first == nil then return ... end
  if self[2] == nil then return first(...) end
  local x = first(...)
  for i = 2, #self do x = self[i](x) end
  return x
end

--- nn.ModuleList: a list of modules that are registered with their parent. It has no forward.
local ModuleList = List:extend "ModuleList"

--- nn.ModuleList{a, b, c}, nn.ModuleList(a, b, c) or nn.ModuleList(). Raises an error for an
-- argument that is no module.
function ModuleList:init(...)
  for _, module in ipairs(entries("ModuleList", false, ...)) do self:append(module) end
end

return {Sequential = Sequential, ModuleList = ModuleList}
