--- The call that contains the cursor: its function, and the arguments given already.

local expression = require "lutra.repl.complete.expression"
local signatures = require "lutra.repl.complete.signatures"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local is = tokens.is
local arguments = {}

-- Returns the callee that ends before token `at`, its name, and whether it follows a colon.
local function callee(context, at)
  local list = context.read.list
  local first = expression.start(context.read, at - 1)
  if not first then return nil end
  local name = tokens.name(list, at - 1)
  local thing
  if name and is(list, at - 2, ":") then
    local self = expression.resolve(context, first, at - 3)
    thing = self and static_values.field(self, name)
  else
    thing = expression.resolve(context, first, at - 1)
  end
  return {thing = thing, name = name}
end

-- Reads the entries in brackets from token `from` to the end: returns the names given, the number
-- of positional arguments before the last entry, whether that is empty, and its name.
local function entries(list, from, partner)
  local named, positions, i = {}, 0, from
  local started, key = false, nil
  while list[i] do
    local word = list[i][1] == "op" and list[i][2]
    if word == "}" or word == ")" or word == "]" then break end
    if word == "," or word == ";" then
      if started and not key then positions = positions + 1 end
      started, key = false, nil
    else
      if not started and is(list, i + 1, "=") then
        key = tokens.name(list, i)
        if key then named[key] = true end
      end
      started = true
      i = partner[i] and partner[i] > i and partner[i] or i
    end
    i = i + 1
  end
  return named, positions, not started, key
end

-- Adds the names that are given behind the cursor in the same table.
local function add_later(named, text)
  local later = tokens.read(text)
  local depth = 0
  for i, token in ipairs(later.list) do
    local word = token[1] == "op" and token[2]
    if word == "(" or word == "[" or word == "{" then depth = depth + 1 end
    if word == ")" or word == "]" or word == "}" then depth = depth - 1 end
    if depth < 0 then return end
    local name = depth == 0 and tokens.name(later.list, i)
    if name and is(later.list, i + 1, "=") then named[name] = true end
  end
end

-- Returns the position of the bracket that opens the arguments of the call which contains the
-- table at token `open`, as in f{...} or f(a, {...}); or nil.
local function opener(read, open, outer)
  local list = read.list
  if tokens.ends_expression(list, open - 1) then return open end
  if not is(list, open, "{") or not is(list, outer, "(") then return nil end
  return tokens.ends_expression(list, outer - 1) and outer or nil
end

--- Returns the call whose brackets contain the cursor, or nil: {
--   thing      the static value of the callee, or nil
--   name       the callee's name
--   named      set of the names of arguments given by name
--   positions  number of positional arguments before
--   key        the name whose value is at the cursor
--   fresh      true when the entry at the cursor is still empty
--   options    true when the cursor is in a table, where names may be given
-- }
function arguments.call(context)
  local read = context.read
  local list, open = read.list, read.open
  if read.inside == "string" and tokens.ends_expression(list, #list) then -- f "
    local call = callee(context, #list + 1)
    if call then call.named, call.positions, call.fresh = {}, 0, true end
    return call
  end
  local at = open[#open]
  local outer = at and not is(list, at, "[") and opener(read, at, open[#open - 1])
  local call = outer and callee(context, outer)
  if not call then return nil end
  call.named, call.positions, call.fresh, call.key = entries(list, at + 1, read.partner)
  call.options = is(list, at, "{")
  if outer ~= at then
    local _, before = entries(list, outer + 1, read.partner)
    call.positions = call.positions + before
  end
  if call.options and context.after then add_later(call.named, context.after) end
  return call
end

--- Returns the signature of a call (arguments.call), or nil.
function arguments.signature(call)
  local thing = call and call.thing
  if not thing or thing.value == nil then return nil end
  return signatures.of(thing.value, call.name)
end

--- Returns the parameter whose value is at the cursor, or nil.
function arguments.parameter(call)
  local signature = arguments.signature(call)
  if not signature then return nil end
  for i, param in ipairs(signature.params) do
    if call.key then
      if param.name == call.key then return param end
    elseif i == call.positions + 1 then
      return param
    end
  end
end

--- Calls visit(param) for each parameter that has not been given and may be given by name.
function arguments.missing(call, visit)
  local signature = arguments.signature(call)
  for i, param in ipairs(signature and signature.params or {}) do
    local first_list = signature.params[1].list and call.positions > 0
    local by_position
    if first_list then by_position = i == 1 else by_position = i <= call.positions end
    if not by_position and not call.named[param.name] then visit(param) end
  end
end

return arguments
