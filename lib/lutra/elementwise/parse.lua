--- Elementwise expressions: text to nodes, and back.
--
-- Idea: a Pratt parser over the rows of functions.lua. Lua's operators, with C's spellings of the
-- same (!=, &&, ||, !, c ? a : b) and ** for ^. ^ binds most, and to the right; then unary - and
-- not; * /; + -; comparisons; and; or; ? :.

local args = require "lutra.args"
local rows = require "lutra.elementwise.functions"

local parse = {}

local SPELLED = {["!="] = "~=", ["&&"] = "and", ["||"] = "or", ["**"] = "^", ["!"] = "not"}
local SYMBOLS = {"**", "<=", ">=", "==", "~=", "!=", "&&", "||", "<", ">", "+", "-", "*", "/", "^",
  "(", ")", ",", "?", ":", "!"}
local CONSTANTS = {pi = math.pi}
local DEEPEST = 200
local UNARY_LEVEL, CHOICE_LEVEL = 6, 0

-- Operators between two operands, by symbol.
local binary = {}
for name, row in pairs(rows) do
  if row.symbol and row.n == 2 then binary[row.symbol] = {name = name, level = row.level} end
end

-- Raises a message with the place in the text.
local function stop(state, at, message, ...)
  local text = select("#", ...) > 0 and message:format(...) or message
  local whole = #state.text <= 100 and state.text or state.text:sub(1, 97) .. "..."
  args.fail("%s", ('elementwise: %s at character %d of "%s"'):format(text, at, whole))
end

local function read_number(text, at)
  local word = text:match("^%d+%.?%d*[eE][+-]?%d+", at) or text:match("^%.%d+[eE][+-]?%d+", at)
    or text:match("^%d+%.?%d*", at) or text:match("^%.%d+", at)
  return word, word and tonumber(word)
end

-- The tokens: a list of {kind, text or value, at}; the last one's kind is "end".
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
        local is_word = word == "and" or word == "or" or word == "not"
        token = {kind = is_word and "symbol" or "name", text = word, at = at}
      end
    end
    for _, symbol in ipairs(token and {} or SYMBOLS) do
      if text:sub(at, at + #symbol - 1) == symbol then
        word, token = symbol, {kind = "symbol", text = SPELLED[symbol] or symbol, at = at}
        break
      end
    end
    if not token then
      stop(state, at, 'unexpected "%s"', text:match("^[%z\1-\127\194-\244][\128-\191]*", at) or "?")
    end
    tokens[#tokens + 1] = token
    at = at + #word
  end
  tokens[#tokens + 1] = {kind = "end", text = "the end", at = #text + 1}
  return tokens
end

local function peek(state) return state.tokens[state.next] end

local function take(state, symbol)
  local token = peek(state)
  if symbol and not (token.kind == "symbol" and token.text == symbol) then
    stop(state, token.at, token.kind == "end" and "%q is missing" or "%q is wanted, not %q", symbol,
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

local function read_call(state, token)
  local row = rows[token.text]
  if not row or row.symbol and token.text ~= "pow" then
    local names = {}
    for name, r in pairs(rows) do
      if not r.symbol or name == "pow" then names[#names + 1] = name end
    end
    table.sort(names)
    stop(state, token.at, 'no function "%s"; there are %s,', token.text, table.concat(names, " "))
  end
  take(state, "(")
  local list = {}
  if not at_symbol(state, ")") then
    repeat list[#list + 1] = expression(state, CHOICE_LEVEL)
    until not (at_symbol(state, ",") and take(state))
  end
  take(state, ")")
  if #list ~= row.n then
    stop(state, token.at, "%s takes %d argument%s, not %d,", token.text, row.n,
      row.n == 1 and "" or "s", #list)
  end
  return state.arena:call(token.text, table.unpack(list))
end

local function read_name(state, token)
  local name = token.text
  if at_symbol(state, "(") then return read_call(state, token) end
  if state.allowed then
    if not state.allowed[name] then
      if CONSTANTS[name] then return state.arena:number(CONSTANTS[name]) end
      stop(state, token.at, '"%s" is none of the names', name)
    end
  elseif CONSTANTS[name] then
    return state.arena:number(CONSTANTS[name])
  elseif not state.found[name] then
    state.names[#state.names + 1] = name
  end
  state.found[name] = true
  return state.arena:name(name)
end

local function operand(state)
  local token = take(state)
  if token.kind == "number" then return state.arena:number(token.value) end
  if token.kind == "name" then return read_name(state, token) end
  if token.text == "-" then
    local x = expression(state, UNARY_LEVEL)
    return x.f == "number" and state.arena:number(-x.value) or state.arena:call("neg", x)
  end
  if token.text == "not" then return state.arena:call("not", expression(state, UNARY_LEVEL)) end
  if token.text == "+" then return expression(state, UNARY_LEVEL) end
  if token.text == "(" then
    local x = expression(state, CHOICE_LEVEL)
    take(state, ")")
    return x
  end
  return stop(state, token.at, token.kind == "end" and "an operand is missing" or "unexpected %q",
    token.text)
end

--- An operand and the operators behind it that bind more than `level`.
function expression(state, level)
  state.depth = state.depth + 1
  if state.depth > DEEPEST then stop(state, peek(state).at, "more than 200 levels") end
  local left = operand(state)
  while true do
    local token = peek(state)
    local found = token.kind == "symbol" and binary[token.text]
    if found and found.level > level then
      take(state)
      local right = expression(state, token.text == "^" and UNARY_LEVEL - 1 or found.level)
      left = state.arena:call(found.name, left, right)
    elseif at_symbol(state, "?") and level == CHOICE_LEVEL then
      take(state)
      local yes = expression(state, CHOICE_LEVEL)
      take(state, ":")
      left = state.arena:call("where", left, yes, expression(state, CHOICE_LEVEL))
    else
      break
    end
  end
  state.depth = state.depth - 1
  return left
end

--- The node of a text in an arena, and its names: `names`, or those in the text in the order in
-- which they come.
function parse.read(arena, text, names)
  local state = {arena = arena, text = text, next = 1, depth = 0, names = {}, found = {}}
  if names then
    state.allowed = {}
    for _, name in ipairs(names) do state.allowed[name] = true end
  end
  state.tokens = scan(state)
  local root = expression(state, CHOICE_LEVEL)
  local rest = peek(state)
  if rest.kind ~= "end" then stop(state, rest.at, "unexpected %q", rest.text) end
  for _, name in ipairs(names or {}) do
    args.check(state.found[name], 'elementwise: the name "%s" is not in "%s"', name, text)
  end
  return root, names or state.names
end

-- Back to text ---------------------------------------------------------------------------

local function number_text(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  local short = ("%.14g"):format(value)
  if tonumber(short) ~= value then short = ("%.17g"):format(value) end
  return short:find "[%.en]" and short or short .. ".0"
end

local function write(node, level)
  local row = rows[node.f]
  if node.f == "name" then return node.name end
  if node.f == "number" then
    local text = number_text(node.value)
    return text:sub(1, 1) == "-" and level > 0 and "(" .. text .. ")" or text
  end
  local text
  if not row.symbol then
    local list = {}
    for i, part in ipairs(node) do list[i] = write(part, 0) end
    return ("%s(%s)"):format(node.f, table.concat(list, ", "))
  elseif row.n == 1 then
    text = row.symbol .. write(node[1], row.level + (node[1].f == node.f and 1 or 0))
  elseif node.f == "pow" then
    text = write(node[1], row.level + 1) .. "^" .. write(node[2], row.level)
  else
    text = ("%s %s %s"):format(write(node[1], row.level), row.symbol,
      write(node[2], row.level + 1))
  end
  return row.level < level and "(" .. text .. ")" or text
end

--- The text of a node, which reads as that node.
function parse.write(node) return write(node, 0) end

return parse
