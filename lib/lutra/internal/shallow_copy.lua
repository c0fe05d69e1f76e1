--- Returns a new table with the fields of a table, whose values are shared, and no metatable.
return function(t)
  local new = {}
  for key, value in pairs(t) do new[key] = value end
  return new
end
