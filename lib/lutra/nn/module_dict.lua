--- nn.ModuleDict: modules by name, in order.

local args = require "lutra.internal.args"
local Mapping = require "lutra.nn.mapping"
local Module = require "lutra.nn.module"

local ModuleDict = Mapping:extend "ModuleDict"
ModuleDict._kind = "module"

function ModuleDict._accept(_, name, value)
  args.check(Module.is_module(value), 'ModuleDict: expected a module for "%s", got %s',
    tostring(name), args.show(value))
  return value
end

--- nn.ModuleDict{{"wte", a}, {"wpe", b}}, a list of names and modules, or nn.ModuleDict{wte = a,
-- wpe = b}, whose names are sorted, or nn.ModuleDict(). dict.wte and dict["wte"] read a module,
-- dict.wte = m sets one, #dict is their number. It has no forward. Raises an error for a value that
-- is no module.
function ModuleDict:init(values)
  if values ~= nil then self:update(values) end
end

return ModuleDict
