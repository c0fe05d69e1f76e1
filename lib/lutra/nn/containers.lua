--- Sequential and ModuleList: modules in a row, named "1", "2"...
--
-- Invariant: child i is registered under the name tostring(i), unless a name was given,
-- and is the field of the integer i as well, so that list[i], #list and ipairs(list)
-- work as on a Lua list. list[-1] is the last module, list[-2] the one before it.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

-- Makes module (or nil) what self[i] reads, beside its registered name.
local function place(self, i, module) getmetatable(self).__state.fields[i] = module end

-- The place that a negative index i counts from the end of n modules; others as they are.
local function from_end(i, n)
  if math.type(i) == "integer" and i < 0 then return n + 1 + i end
  return i
end

-- What both containers share.
local List = Module:extend "List"
List.__numbered = true

function List:__len()
  local count = 0
  while self[count + 1] ~= nil do count = count + 1 end
  return count
end

-- list[i] where no module is: nil after the last, as in a Lua list, so that ipairs ends.
function List.__get_item(class, fields, i)
  local n = #fields
  if i >= 0 then return nil end
  args.check(i >= -n, "%s: expected an index from %d to %d, got %d", class.__name, -n, n, i)
  return fields[from_end(i, n)]
end

-- The modules among the arguments: spread, or as one list. An entry may be
-- {name, module} where `named`.
local function entries(title, named, ...)
  local list = table.pack(...)
  local only = list.n == 1 and list[1]
  if type(only) == "table" and not Module.is_module(only) then
    local n = #only
    args.check(math.type(n) == "integer",
      "%s: argument 1 is %s, it wants a module or a list of modules", title, args.show(only))
    list = table.move(only, 1, n, 1, {n = n})
  end
  for i = 1, list.n do
    local entry = list[i]
    local pair = named and args.is_plain(entry) and type(entry[1]) == "string"
    local module = entry
    if pair then module = entry[2] end
    if not Module.is_module(module) then
      args.fail("%s: argument %d is %s, it wants a module", title, i, args.show(module))
    end
  end
  return list
end

-- Adds a module at the end under a name of its own, or its number.
local function add(self, name, module)
  local i = #self + 1
  if name == nil or name:match "^%d+$" then name = tostring(i) end
  self:register_module(name, module)
  place(self, i, module)
end

-- The registered names in order: that of list[i] is names(list)[i].
local function names(self)
  local list = {}
  for name in self:named_children() do list[#list + 1] = name end
  return list
end

local function check_module(self, method, module)
  if not Module.is_module(module) then
    args.fail("%s: %s wants a module, got %s", self:type_name(), method, args.show(module))
  end
end

--- Adds a module at the end; returns the container.
function List:append(module)
  check_module(self, "append", module)
  add(self, nil, module)
  return self
end

-- list[i] = module: another module in place i, or a new one after the last.
function List:__set_item(i, module)
  local n = #self
  local at = from_end(i, n)
  check_module(self, "an assignment", module)
  args.check(at >= 1 and at <= n + 1, "%s: there is no place %d, there are %d", self:type_name(),
    i, n)
  if at == n + 1 then return add(self, nil, module) end
  self:register_module(names(self)[at], module)
  place(self, at, module)
end

--- Adds the modules of a list at the end; returns the container.
function List:extend(modules)
  -- On a class, extend makes a subclass.
  if not Module.is_module(self) then return Module.extend(self, modules) end
  for _, module in ipairs(entries("extend", false, modules)) do self:append(module) end
  return self
end

--- Puts a module before place i (1 to n + 1; -1 is the last), moving the rest; returns the
-- container.
function List:insert(i, module)
  local n, given = #self, i
  i = from_end(i, n)
  args.check(math.type(i) == "integer" and i >= 1 and i <= n + 1,
    "%s: insert wants a place from 1 to %d, got %s", self:type_name(), n + 1, args.show(given))
  check_module(self, "insert", module)
  local tail, called = {}, names(self)
  for k = i, n do
    tail[#tail + 1] = {called[k], self[k]}
    self[called[k]] = nil
    place(self, k, nil)
  end
  add(self, nil, module)
  for _, entry in ipairs(tail) do add(self, entry[1], entry[2]) end
  return self
end

--- Sequential: each module's output is the next one's input.
local Sequential = List:extend "Sequential"

--- nn.Sequential(a, b, c), nn.Sequential{a, b, c}, or with names of your own:
-- nn.Sequential{{"encoder", a}, {"head", b}}, which are then fields.
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

--- What the modules compute one after the other; any arguments go to the first.
function Sequential:forward(...)
  local first = self[1]
  if first == nil then return ... end
  if self[2] == nil then return first(...) end
  local x = first(...)
  for i = 2, #self do x = self[i](x) end
  return x
end

--- ModuleList: a list whose modules are registered.
local ModuleList = List:extend "ModuleList"

--- nn.ModuleList{a, b, c}, nn.ModuleList(a, b, c) or nn.ModuleList().
function ModuleList:init(...)
  for _, module in ipairs(entries("ModuleList", false, ...)) do self:append(module) end
end

return {Sequential = Sequential, ModuleList = ModuleList}
