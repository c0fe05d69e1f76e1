--- What puts a setting back when a scope ends.

--- An object that calls set(...) when it is closed: `local _ <close> = restore(set, old)`.
local function scope_guard(set, ...)
  local values = table.pack(...)
  return setmetatable({}, {__close = function() set(table.unpack(values, 1, values.n)) end})
end

return scope_guard
