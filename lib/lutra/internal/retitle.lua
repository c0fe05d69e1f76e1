--- Calls f(...) of the core for another function: errors have the name `to` in place of `from`.
return function(from, to, f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  local message = results[2]
  if type(message) == "string" then message = message:gsub(from .. ": ", to .. ": ", 1) end
  error(message, 0)
end
