--- Completion after a dot or a colon: the fields and methods of the value before it.

local expression = require "lutra.repl.complete.expression"
local names = require "lutra.repl.complete.names"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local members = {}

-- Returns whether a value can be called as a method. A module in a field can be called, but takes
-- no self.
local function is_method(value)
  return static_values.is_callable(value) and not static_values.module_state(value)
    and not static_values.is_class(value)
end

--- The source of completions after a dot or a colon.
function members.source(context, add)
  local list = context.read.list
  local colon = tokens.is(list, #list, ":")
  local first = expression.start(context.read, #list - 1)
  local thing = first and expression.resolve(context, first, #list - 1)
  if not thing then return end
  static_values.members(thing, function(name, value)
    if not names.is_identifier(name) then return end
    local method = is_method(value)
    if colon and not method then return end
    local kind = method and (colon and "method" or "function")
    add(name, kind or static_values.is_class(value) and "class" or "field", nil, value)
  end)
end

return members
