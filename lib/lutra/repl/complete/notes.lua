--- One-line descriptions of values for the list of completions. Runs no user code.

local core = require "lutra.core"
local signatures = require "lutra.repl.complete.signatures"
local static_values = require "lutra.repl.complete.static_values"

local notes = {}

local by_type = {
  string = function(text)
    return #text <= 30 and ("%q"):format(text):gsub("\\\n", "\\n") or #text .. " bytes"
  end,
  number = tostring,
  boolean = tostring,
  ["function"] = function(f, name) return signatures.text(f, name) end,
  userdata = function(value)
    if core._is_freed(value) then return "freed" end
    if static_values.is_tensor(value) then
      return ("%s {%s} %s"):format(value.dtype, table.concat(value.shape, ", "), value.device)
    end
    return static_values.metafield(value, "__name")
  end,
  table = function(t, name)
    if static_values.is_class(t) then return signatures.text(t, name) or "class" end
    local own = static_values.metafield(t, "__name")
    return type(own) == "string" and own or "table"
  end,
}

--- Returns the description of a value called `name`, or nil.
function notes.of(value, name)
  local describe = by_type[type(value)]
  local note = describe and describe(value, name)
  return type(note) == "string" and note or nil
end

-- Returns whether a table is a library that was loaded by require, or one of Lua's.
local function is_library(value)
  for _, library in next, package.loaded do
    if rawequal(library, value) then return true end
  end
  return false
end

--- Returns what a value is: "function", "class", "module" (a library) or "instance".
function notes.type_of(value)
  if type(value) == "function" then return "function" end
  if type(value) ~= "table" then return "instance" end
  if static_values.is_class(value) then return "class" end
  return is_library(value) and "module" or "instance"
end

return notes
