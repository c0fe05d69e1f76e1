--- Restores a setting at the end of a scope.

--- Returns a to-be-closed value that calls set(...) when it is closed: `local _ <close> =
-- scope_guard(set, old)`.
local function scope_guard(set, ...)
  local values = table.pack(...)
  return setmetatable({}, {__close = function() set(table.unpack(values, 1, values.n)) end})
end

return scope_guard
