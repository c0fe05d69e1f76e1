--- Fields of the library's tables that are not there: an error that names the nearest one.
--
-- Reading `lt.relue` is a mistake, and so is better said at once than when nil is called. A field
-- may still be added, and rawget(lt, "relue") is nil.

local strict_table = {}

local FEW = 8 -- names of a table that are all said

-- What to say of the names that are there, where `key` is not.
local function about(name, names, key)
  local near = require("lutra.internal.nearest").find(key, names)
  if near then return ("\nhint: did you mean '%s.%s'?"):format(name, near) end
  if #names == 0 or #names > FEW then return "" end
  table.sort(names)
  return "\nhint: its fields are " .. table.concat(names, ", ")
end

--- Raises the error for the field `key` of a table that users know as `name`; `others` are names
-- that are there beside its own fields.
function strict_table.fail(t, name, key, others)
  local args = require "lutra.internal.args"
  if type(key) ~= "string" then
    return args.fail("%s has no field %s: its fields are named by strings", name, args.show(key))
  end
  local names = require("lutra.internal.nearest").names(t)
  for _, other in ipairs(others or {}) do names[#names + 1] = other end
  return args.fail('%s has no field "%s"%s', name, key, about(name, names, key))
end

--- Makes reading a field that is not there an error; `t` may have no metatable yet. Returns it.
function strict_table.strict(t, name)
  return setmetatable(t, {
    __name = name,
    __index = function(self, key) return strict_table.fail(self, name, key) end,
  })
end

return strict_table
