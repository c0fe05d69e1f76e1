--- Parser and formatter of elementwise expressions.
--
-- This is a Pratt parser over operators.lua; functions are those of calls.lua. Operators are those
-- of Lua, with C's spellings of the same (!=, &&, ||, !, c ? a : b) and ** for ^. In decreasing
-- precedence: ^ (right-associative); unary - and not; * / // %; + -; comparisons; and; or; ? :.

local args = require "lutra.internal.args"
local calls = require "lutra.elementwise.calls"
local source_excerpt = require "lutra.internal.source_excerpt"
local nearest = require "lutra.internal.nearest"
local numbers = require "lutra.internal.numbers"
local operators = require "lutra.elementwise.operators"

local parse = {}

local SPELLED = {["!="] = "~=", ["&&"] = "and", ["||"] = "or", ["**"] = "^", ["!"] = "not"}
local SYMBOLS = {"**", "//", "<=", ">=", "==", "~=", "!=", "&&", "||", "<", ">", "+", "-", "*", "/",
  "%", "^", "(", ")", ",", "?", ":", "!"}
local CONSTANTS = {pi = math.pi, inf = math.huge, nan = math.abs(0 / 0)}
local WORDS = {["and"] = true, ["or"] = true, ["not"] = true} -- operators that are words
local RESERVED = {["true"] = "1", ["false"] = "0", ["nil"] = "a number"} -- and the alternative
local DEEPEST = 200
local UNARY_LEVEL, CHOICE_LEVEL = 6, 0

-- The binary operators, by symbol.
local binary = {}
for op, row in pairs(operators) do
  if row.n == 2 then binary[row.symbol] = {name = op, level = row.level} end
end

-- Raises an error with the position in the expression and an excerpt that marks it.
local function fail(state, at, message, ...)
  local whole = state.text
  local text = select("#", ...) > 0 and message:format(...) or message
  local before = whole:sub(1, at - 1)
  local column = #before:match "[^\n]*$" -- in its line
  args.fail("%s", ("elementwise: cannot read the expression at character %d: %s\n%s"):format(
    (utf8.len(before) or at - 1) + 1, text,
    source_excerpt(whole:match("^[^\n]*", at - column), column + 1, "  ")))
end

local function read_number(text, at)
  local word = text:match("^0[xX]%x+", at)
    or text:match("^%d+%.?%d*[eE][+-]?%d+", at) or text:match("^%.%d+[eE][+-]?%d+", at)
    or text:match("^%d+%.?%d*", at) or text:match("^%.%d+", at)
  return word, word and tonumber(word)
end

-- Returns the unexpected character at a position, printable.
local function unknown(text, at)
  local character = text:match("^[%z\1-\127\194-\244][\128-\191]*", at)
  return character and not character:find "%c" and character or ("\\x%02x"):format(text:byte(at))
end

-- Returns the list of tokens {kind, text or value, at}; the kind of the last one is "end".
local function scan(state)
  local text, at, tokens = state.text, 1, {}
  while true do
    at = text:find("%S", at)
    if not at then break end
    local word, value = read_number(text, at)
    local token
    if word then
      token = {kind = "number", value = value, text = word, at = at}
    else
      word = text:match("^[%a_][%w_]*", at)
      if word then
        token = {kind = WORDS[word] and "symbol" or "name", text = word, at = at}
      end
    end
    if text:find("^%-%-", at) then
      fail(state, at, '"--" begins a comment in Lua, "- -" is two signs')
    end
    for _, symbol in ipairs(token and {} or SYMBOLS) do
      if text:sub(at, at + #symbol - 1) == symbol then
        word, token = symbol, {kind = "symbol", text = SPELLED[symbol] or symbol, at = at}
        break
      end
    end
    if not token then
      fail(state, at, 'unexpected "%s"', unknown(text, at))
    end
    tokens[#tokens + 1] = token
    at = at + #word
  end
  tokens[#tokens + 1] = {kind = "end", text = "the end", at = #text + 1}
  return tokens
end

local function peek(state) return state.tokens[state.next] end

local function consume(state, symbol)
  local token = peek(state)
  if symbol and not (token.kind == "symbol" and token.text == symbol) then
    fail(state, token.at, token.kind == "end" and "expected %q" or "expected %q, got %q", symbol,
      token.text)
  end
  state.next = state.next + 1
  return token
end

local function at_symbol(state, symbol)
  local token = peek(state)
  return token.kind == "symbol" and token.text == symbol
end

local expression

local function fail_unknown_function(state, token, why)
  local names = calls.names()
  local near = not why and nearest.find(token.text, names)
  fail(state, token.at, 'there is no function "%s"; %s', token.text, why
    or near and ('did you mean "%s"?'):format(near)
    or "the functions are " .. table.concat(names, " "))
end

local function arity_text(found)
  if found.least == found.most then
    return ("%d argument%s"):format(found.most, found.most == 1 and "" or "s")
  end
  return ("%d to %d arguments"):format(found.least, found.most)
end

local function read_call(state, token)
  local found, why = calls.find(token.text)
  if not found then fail_unknown_function(state, token, why) end
  consume(state, "(")
  local list = {}
  if not at_symbol(state, ")") then
    repeat list[#list + 1] = expression(state, CHOICE_LEVEL)
    until not (at_symbol(state, ",") and consume(state))
  end
  consume(state, ")")
  if #list < found.least or #list > found.most then
    fail(state, token.at, "expected %s for %s, got %d", arity_text(found), token.text, #list)
  end
  return state.arena:call(found.op, table.unpack(list))
end

local function read_name(state, token)
  local name = token.text
  if at_symbol(state, "(") then return read_call(state, token) end
  local given = state.allowed and state.allowed[name]
  if not given and CONSTANTS[name] then return state.arena:number(CONSTANTS[name]) end
  if RESERVED[name] then
    fail(state, token.at, 'expected %s, got "%s"', RESERVED[name], name)
  elseif state.allowed and not given then
    fail(state, token.at, '"%s" is not one of the names', name)
  elseif not given and calls.find(name) then
    fail(state, token.at, '"%s" is a function: expected its arguments in parentheses', name)
  elseif not state.found[name] and not state.allowed then
    state.names[#state.names + 1] = name
  end
  state.found[name] = true
  return state.arena:name(name)
end

-- Returns whether a node may be an operand of and, or, not, which accept only conditions: the Lua
-- idiom `x > 0 and 1 or 2` would not select a value here.
local function is_test(node)
  local operator = operators[node.f]
  if operator then return operator.test end
  local found = calls.find(node.f)
  return node.f == "name" or node.f == "where" or found and found.test
end

local function check_test(state, at, node)
  if not is_test(node) then
    fail(state, at, "and, or and not combine tests such as x > 0; to choose a value, "
      .. "write where(x > 0, 1, 2) or x > 0 ? 1 : 2")
  end
  return node
end

local function operand(state)
  local token = consume(state)
  if token.kind == "number" then return state.arena:number(token.value) end
  if token.kind == "name" then return read_name(state, token) end
  if token.text == "-" then
    local x = expression(state, UNARY_LEVEL)
    return x.f == "number" and state.arena:number(-x.value) or state.arena:call("neg", x)
  end
  if token.text == "not" then
    local x = check_test(state, token.at, expression(state, UNARY_LEVEL))
    return state.arena:call("logical_not", x)
  end
  if token.text == "+" then return expression(state, UNARY_LEVEL) end
  if token.text == "(" then
    local x = expression(state, CHOICE_LEVEL)
    consume(state, ")")
    return x
  end
  return fail(state, token.at, token.kind == "end" and "expected an operand" or "unexpected %q",
    token.text)
end

-- Parses an operand and the operators behind it with a precedence above `level`.
function expression(state, level)
  state.depth = state.depth + 1
  if state.depth > DEEPEST then
    fail(state, peek(state).at, "it nests more than 200 levels deep")
  end
  local left = operand(state)
  while true do
    local token = peek(state)
    local found = token.kind == "symbol" and binary[token.text]
    if found and found.level > level then
      consume(state)
      local right = expression(state, token.text == "^" and UNARY_LEVEL - 1 or found.level)
      if WORDS[token.text] then
        check_test(state, token.at, left)
        check_test(state, token.at, right)
      end
      left = state.arena:call(found.name, left, right)
    elseif at_symbol(state, "?") and level == CHOICE_LEVEL then
      consume(state)
      local yes = expression(state, CHOICE_LEVEL)
      consume(state, ":")
      left = state.arena:call("where", left, yes, expression(state, CHOICE_LEVEL))
    else
      break
    end
  end
  state.depth = state.depth - 1
  return left
end

--- Parses an expression into an arena. Returns its node and the names of its arguments: `names`, or
-- those in the expression in order of appearance. Raises an error for a syntax error.
function parse.read(arena, text, names)
  local state = {arena = arena, text = text, next = 1, depth = 0, names = {}, found = {}}
  if names then
    state.allowed = {}
    for _, name in ipairs(names) do state.allowed[name] = true end
  end
  state.tokens = scan(state)
  local root = expression(state, CHOICE_LEVEL)
  local rest = peek(state)
  if rest.kind ~= "end" then fail(state, rest.at, "unexpected %q", rest.text) end
  for _, name in ipairs(names or {}) do
    args.check(state.found[name], "elementwise: expected names that the expression \"%s\" uses for "
      .. "argument 'names', got \"%s\"", text, name)
  end
  return root, names or state.names
end

-- Formatting -----------------------------------------------------------------------------

local function number_text(value)
  if value ~= value or value == math.huge or value == -math.huge then return numbers.text(value) end
  if math.type(value) == "integer" then return ("%d"):format(value) end
  local short = ("%.14g"):format(value)
  if tonumber(short) ~= value then short = ("%.17g"):format(value) end
  return short:find "[%.en]" and short or short .. ".0"
end

-- Formats a node. `most` is {the number of nodes that may still be written}: the nodes of a
-- derivative share operands, which the text would repeat.
local function write(node, level, most)
  local row = operators[node.f]
  most[1] = most[1] - 1
  if most[1] < 0 then return "..." end
  if node.f == "name" then return node.name end
  if node.f == "number" then
    local text = number_text(node.value)
    return text:sub(1, 1) == "-" and level > 0 and "(" .. text .. ")" or text
  end
  local text
  if not row then
    local list = {}
    for i, part in ipairs(node) do list[i] = write(part, 0, most) end
    return ("%s(%s)"):format(calls.spelled(node.f), table.concat(list, ", "))
  elseif row.n == 1 then
    text = row.symbol .. write(node[1], row.level + (node[1].f == node.f and 1 or 0), most)
  elseif node.f == "pow" then
    text = write(node[1], row.level + 1, most) .. "^" .. write(node[2], row.level, most)
  else
    text = ("%s %s %s"):format(write(node[1], row.level, most), row.symbol,
      write(node[2], row.level + 1, most))
  end
  return row.level < level and "(" .. text .. ")" or text
end

--- Returns the expression of a node, which parses to the same node; "..." replaces the rest after
-- `most` nodes (10000 by default).
function parse.write(node, most) return write(node, 0, {most or 10000}) end

return parse
