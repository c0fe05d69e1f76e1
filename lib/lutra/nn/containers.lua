--- Sequential and ModuleList: modules in a row, named "1", "2"...
--
-- Invariant: child i is registered under the name tostring(i), unless a name was given,
-- and is the field of the integer i as well, so that list[i], #list and ipairs(list)
-- work as on a Lua list.

local args = require "lutra.args"
local Module = require "lutra.nn.module"

-- What both containers share.
local List = Module:extend "List"
List.__numbered = true

function List:__len()
  local count = 0
  while self[count + 1] ~= nil do count = count + 1 end
  return count
end

-- The modules among the arguments: spread, or as one list. An entry may be
-- {name, module} where `named`.
local function entries(title, named, ...)
  local list = table.pack(...)
  if list.n == 1 and args.is_plain(list[1]) then
    list = table.move(list[1], 1, #list[1], 1, {n = #list[1]})
  elseif list.n == 1 and getmetatable(list[1]) and not Module.is_module(list[1])
    and type(list[1]) == "table" then
    list = list[1]
  end
  for i = 1, list.n or #list do
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

--- Adds a module at the end; returns the container.
function List:append(module)
  if not Module.is_module(module) then
    args.fail("%s: append wants a module, got %s", self:type_name(), args.show(module))
  end
  local i = #self + 1
  self:register_module(tostring(i), module)
  self[i] = module
  return self
end

--- Adds the modules of a list at the end; returns the container.
function List:extend(modules)
  -- On a class, extend makes a subclass.
  if not Module.is_module(self) then return Module.extend(self, modules) end
  for _, module in ipairs(entries("extend", false, modules)) do self:append(module) end
  return self
end

--- Puts a module before place i (1 to n + 1), moving the rest; returns the container.
function List:insert(i, module)
  local n = #self
  args.check(math.type(i) == "integer" and i >= 1 and i <= n + 1,
    "%s: insert wants a place from 1 to %d, got %s", self:type_name(), n + 1, args.show(i))
  args.check(Module.is_module(module), "%s: insert wants a module, got %s", self:type_name(),
    args.show(module))
  local tail = {}
  for k = i, n do tail[#tail + 1] = self[k] end
  for k = i, n do
    self[tostring(k)] = nil
    self[k] = nil
  end
  self:append(module)
  for _, other in ipairs(tail) do self:append(other) end
  return self
end

--- Sequential: each module's output is the next one's input.
local Sequential = List:extend "Sequential"

--- nn.Sequential(a, b, c), nn.Sequential{a, b, c}, or with names of your own:
-- nn.Sequential{{"encoder", a}, {"head", b}}, which are then fields.
function Sequential:init(...)
  local list = entries("Sequential", true, ...)
  for i, entry in ipairs(list) do
    if args.is_plain(entry) then
      self:register_module(entry[1], entry[2])
      self[i] = entry[2]
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
