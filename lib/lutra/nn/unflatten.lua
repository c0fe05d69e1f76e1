--- nn.Unflatten: splits one dimension into several.

local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

local Unflatten = Module:extend "Unflatten"

local parse = args.signature("Unflatten", "dim dim, sizes unflattened_size")

--- nn.Unflatten(dim, unflattened_size): replaces dimension `dim` (1-based) by dimensions of the
-- given sizes, of which one may be -1; the inverse of nn.Flatten.
function Unflatten:init(...) self.dim, self.unflattened_size = parse(...) end

--- Maps {..., product of sizes, ...} to {..., sizes, ...}. Raises an error for another size.
function Unflatten:forward(x)
  return self:check_tensor(x):unflatten(self.dim, self.unflattened_size)
end

function Unflatten:extra_repr()
  return ("dim=%d, unflattened_size={%s}"):format(self.dim,
    table.concat(self.unflattened_size, ", "))
end

return Unflatten
