--- Tables that raise an error for a missing field and suggest the nearest name.
--
-- Reading `lt.relue` is a mistake, which is reported at once instead of when nil is called. Fields
-- may still be added, and rawget(lt, "relue") is nil.

local strict_table = {}

local FEW = 8 -- a table with at most so many names is listed completely

-- Returns the suggestion for a missing key: the nearest name, or the list of a few names.
local function about(name, names, key)
  local near = require("lutra.internal.nearest").find(key, names)
  if near then return ("\nhint: did you mean '%s.%s'?"):format(name, near) end
  if #names == 0 or #names > FEW then return "" end
  table.sort(names)
  return "\nhint: its fields are " .. table.concat(names, ", ")
end

--- Raises the error for the missing field `key` of a table that users know as `name`; `others` are
-- valid names beside its own fields.
function strict_table.fail(t, name, key, others)
  local args = require "lutra.internal.args"
  if type(key) ~= "string" then
    return args.fail("%s has no field %s: its fields are named by strings", name, args.show(key))
  end
  local names = require("lutra.internal.nearest").names(t)
  for _, other in ipairs(others or {}) do names[#names + 1] = other end
  return args.fail('%s has no field "%s"%s', name, key, about(name, names, key))
end

--- Makes reading a missing field of `t`, which must have no metatable, an error; returns `t`.
function strict_table.strict(t, name)
  return setmetatable(t, {
    __name = name,
    __index = function(self, key) return strict_table.fail(self, name, key) end,
  })
end

return strict_table
