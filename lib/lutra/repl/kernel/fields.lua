--- Fields of a request's content, which may be missing or of any type.

local json = require "lutra.internal.json"

local fields = {}

local function kind_of(value) return value == json.null and "null" or type(value) end

--- Returns the field `name`, a string; raises an error for any other value.
function fields.string(content, name)
  local value = content[name]
  if type(value) == "string" then return value end
  error(("expected a string as '%s', got %s"):format(name, kind_of(value)), 0)
end

--- Returns the field `name`, an integer, or nil when it is missing or null; raises an error for any
-- other value.
function fields.integer(content, name)
  local value = content[name]
  if value == nil or value == json.null then return nil end
  if math.type(value) == "integer" then return value end
  error(("expected an integer as '%s', got %s"):format(name, kind_of(value)), 0)
end

--- Returns whether the field `name` is true.
function fields.flag(content, name) return content[name] == true end

return fields
