--- nn.Sequential and nn.ModuleList: containers of modules in order, named "1", "2"...

local List = require "lutra.nn.list"

--- nn.Sequential: a module that passes each module's output to the next.
local Sequential = List:extend "Sequential"

--- nn.Sequential(a, b, c), nn.Sequential{a, b, c}, or with names: nn.Sequential{{"encoder", a},
-- {"head", b}}, whose modules are also the fields `encoder` and `head`. Raises an error for an
-- argument that is no module.
function Sequential:init(...)
  for _, entry in ipairs(self:_elements("Sequential", true, ...)) do
    self:_add(entry[1], entry[2])
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
  for _, entry in ipairs(self:_elements("ModuleList", false, ...)) do self:_add(nil, entry[2]) end
end

return {Sequential = Sequential, ModuleList = ModuleList}
