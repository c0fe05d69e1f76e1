--- Static values of expressions in the text, found without running code.
--
-- Chains (a.b[1]:c(x){y}) are followed step by step through static values
-- (complete/static_values.lua); arithmetic with a tensor is a tensor. The result is a static value
-- or nil.

local calls = require "lutra.repl.complete.calls"
local globals = require "lutra.repl.globals"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local is = tokens.is
local expression = {}

local resolve

local function is_within(range, at) return range ~= nil and range[1] <= at and at <= range[2] end

-- Returns the value of a variable: in the text, of the session, or a global. Uses no metatable of
-- _G.
local function variable(context, name, at)
  local found = context.variables[name]
  while found and is_within(found.value, at) do found = found.outer end -- local x = x.y
  local assigned = context.assigned[name]
  if found and found.value then return resolve(context, found.value[1], found.value[2]) end
  if not found and context.session then
    local variables = context.session.debugger or context.session.locals
    local there, value = variables:get(name)
    if there then return value ~= nil and {value = value} or nil end
  end
  if not found then
    local value = rawget(_G, name)
    if value == nil then value = globals.get(name) end
    if value ~= nil then return {value = value} end
  end
  if assigned and assigned.at < at and not is_within(assigned.value, at) then
    return resolve(context, assigned.value[1], assigned.value[2])
  end
end

local function literal(token)
  if token[1] == "string" then return {value = tokens.unquote(token[2])} end
  if token[1] == "number" then return {value = tonumber(token[2])} end
end

-- Returns the static value at the start of a chain at token i, and the index after it.
local function primary(context, i)
  local list = context.read.list
  local token = list[i]
  if not token then return nil end
  if token[1] == "name" then return variable(context, token[2], i), i + 1 end
  if is(list, i, "(") and context.read.partner[i] then
    local close = context.read.partner[i]
    return resolve(context, i + 1, close - 1), close + 1
  end
  return literal(token), i + 1
end

local function index(context, thing, first, last)
  local key = resolve(context, first, last)
  if key and key.value ~= nil then return static_values.field(thing, key.value) end
  local tensor = thing.like == "tensor" or static_values.is_tensor(thing.value)
  return tensor and {like = "tensor"} or nil
end

-- Returns the index after the arguments of a call at token i, or nil when there is no call; and
-- the string when it is the only argument.
local function arguments(read, i)
  local list = read.list
  if list[i] and list[i][1] == "string" then return i + 1, tokens.unquote(list[i][2]) end
  if not (is(list, i, "(") or is(list, i, "{")) or not read.partner[i] then return nil end
  local one = read.partner[i] == i + 2 and list[i + 1][1] == "string"
  return read.partner[i] + 1, one and tokens.unquote(list[i + 1][2]) or nil
end

-- Follows one step of a chain at token i: returns the next static value and the index after it.
local function step(context, thing, i)
  local read = context.read
  local list = read.list
  if is(list, i, ".") and tokens.name(list, i + 1) then
    return static_values.field(thing, list[i + 1][2]), i + 2
  end
  if is(list, i, "[") and read.partner[i] then
    return index(context, thing, i + 1, read.partner[i] - 1), read.partner[i] + 1
  end
  local self
  if is(list, i, ":") and tokens.name(list, i + 1) then
    self, thing = thing, static_values.field(thing, list[i + 1][2])
    i = i + 2
  end
  local after, text = arguments(read, i)
  if not after or not thing then return nil, after end
  return calls.result(thing, self, text), after
end

local function chain(context, first, last)
  local thing, i = primary(context, first)
  while thing and i <= last do
    local following
    thing, following = step(context, thing, i)
    if not following then return nil end
    i = following
  end
  if i == last + 1 then return thing end
end

local arithmetic = {
  ["+"] = true, ["-"] = true, ["*"] = true, ["/"] = true, ["//"] = true, ["%"] = true, ["^"] = true,
}

-- Returns the indexes of an expression's operators outside brackets; nil when one is not
-- arithmetic.
local function operators(read, first, last)
  local list, found, i = read.list, {}, first
  while i <= last do
    local kind, word = list[i][1], list[i][2]
    if kind == "op" and arithmetic[word] then
      found[#found + 1] = i
    elseif kind == "keyword" or kind == "op" and not word:match "^[%.:,%(%[{]$" then
      return nil
    end
    i = (kind == "op" and read.partner[i] or i) + 1
  end
  return found
end

--- Returns the static value of the tokens first..last of context.read.list, or nil. `context` is
-- {read, session, variables, assigned, depth}.
function expression.resolve(context, first, last)
  if first > last or context.depth > 20 then return nil end
  local found = operators(context.read, first, last)
  if not found then return nil end
  context.depth = context.depth + 1
  local thing
  if #found == 0 then
    thing = chain(context, first, last)
  else
    found[#found + 1] = last + 1
    local from = first
    for _, at in ipairs(found) do
      local operand = from < at and chain(context, from, at - 1)
      if operand and (operand.like == "tensor" or static_values.is_tensor(operand.value)) then
        thing = {like = "tensor"}
        break
      end
      from = at + 1
    end
  end
  context.depth = context.depth - 1
  return thing
end
resolve = expression.resolve

--- Returns the start of the chain that ends with token `last`; nil when none ends there.
function expression.start(read, last)
  local list, i = read.list, last
  while true do
    local token = list[i]
    if not token then return nil end
    local close = is(list, i, ")") or is(list, i, "]") or is(list, i, "}")
    if close then i = read.partner[i] end
    if not i or not (close or token[1] == "name" or token[1] == "string") then return nil end
    local before = i - 1
    if token[1] == "name" then
      if not (is(list, before, ".") or is(list, before, ":")) then return i end
      i = before - 1
    elseif not tokens.ends_expression(list, before) or list[before][1] == "number"
      or list[before][1] == "keyword" then
      return is(list, i, "(") and i or nil -- a parenthesized expression
    else
      i = before
    end
  end
end

return expression
