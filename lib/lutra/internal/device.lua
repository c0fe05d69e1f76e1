--- lt.device: full names of devices.

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

--- Returns the full name of a device: "cuda:0" for lt.device "cuda" and lt.device("cuda", 0).
-- Raises an error that lists the available devices when there is no such device.
return function(type, index, ...)
  if index ~= nil or select("#", ...) > 0 then return numbered(type, index, ...) end
  if type_of(type) == "table" then return numbered(type) end
  return core.device(type)
end
