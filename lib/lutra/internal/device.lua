--- lt.device: the full name of a device.

local core = require "lutra.core"

local type_of = type
local parse -- made at its first use

local function numbered(...)
  local args = require "lutra.internal.args"
  parse = parse or args.signature("device", "device type, int(>=0)? index = nil")
  local kind, index = parse(...)
  if not index then return core.device(kind) end
  args.check(type_of(kind) == "string" and not kind:find(":", 1, true),
    "device: expected a type such as \"cuda\" for argument 'type' before an index, got %s",
    args.show(kind))
  return core.device(kind .. ":" .. index)
end

--- The full name of a device: lt.device "cuda" is "cuda:0", and so is lt.device("cuda", 0). An
-- error names the devices here when there is none of that name.
return function(type, index, ...)
  if index ~= nil or select("#", ...) > 0 then return numbered(type, index, ...) end
  if type_of(type) == "table" then return numbered(type) end
  return core.device(type)
end
