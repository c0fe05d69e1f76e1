-- Returns the results of a pcall, or raises its error with the name `to` in place of `from`.
local function finish(from, to, ok, ...)
  if ok then return ... end
  local message = ...
  if type(message) == "string" then message = message:gsub(from .. ": ", to .. ": ", 1) end
  error(message, 0)
end

--- Calls f(...) of the core for another function: errors have the name `to` in place of `from`.
return function(from, to, f, ...) return finish(from, to, pcall(f, ...)) end
