--- The position of an error in a line of source.
--
-- Lua reports only the line. The other parts of its message -- a name and its kind, an operator,
-- the token near a syntax error, the called function -- are searched among the line's tokens.
-- Invariant: no guesses. Each returned token may be the cause of the error; without a match
-- nothing is returned.

local lexer = require "lutra.repl.lexer"
local source_lines = require "lutra.repl.source_lines"

local error_span = {}

-- Metamethod -> its operators; unm and sub are distinguished by the token before them.
local operators = {
  add = {"+"}, sub = {"-"}, mul = {"*"}, div = {"/"}, idiv = {"//"}, mod = {"%"}, pow = {"^"},
  unm = {"-"}, concat = {".."}, len = {"#"}, eq = {"==", "~="}, lt = {"<", ">"},
  le = {"<=", ">="}, band = {"&"}, bor = {"|"}, bxor = {"~"}, bnot = {"~"}, shl = {"<<"},
  shr = {">>"},
}

-- Lua's message for a failed operation without a name -> the operators that may have caused it.
local failed_operators = {
  {"^attempt to perform arithmetic on", {"+", "-", "*", "/", "//", "%", "^"}},
  {"^attempt to perform bitwise operation on", {"&", "|", "~", "<<", ">>"}},
  {"has no integer representation", {"&", "|", "~", "<<", ">>"}},
  {"^attempt to perform 'n//0'", {"//"}},
  {"^attempt to divide by zero", {"//"}},
  {"^attempt to perform 'n%%%%0'", {"%"}},
  {"^attempt to concatenate", {".."}},
  {"^attempt to compare", {"<", ">", "<=", ">="}},
  {"^attempt to get length of", {"#"}},
}

local function set(list)
  local s = {}
  for _, item in ipairs(list) do s[item] = true end
  return s
end

-- Returns the tokens from a few lines before line `number` of `text` to a few after, and the
-- indexes of the first and the last that start in the line.
local function tokens_around(text, number)
  local first, last = source_lines.range(text, number)
  local start = source_lines.range(text, math.max(1, number - 3))
  -- Tokens cannot start at a line within a long string or comment.
  if text:sub(1, first):find "%[=*%[" or text:sub(1, first):find "\\\r?\n" then start = 1 end
  local stop = select(2, source_lines.range(text, number + 3)) or #text
  local list, from, to = {}, nil, nil
  for _, token in ipairs(lexer.significant(text:sub(start, stop))) do
    local at = token[3] + start - 1
    list[#list + 1] = {kind = token[1], text = token[2], first = at, last = at + #token[2] - 1}
    if at >= first and at <= last then
      from = from or #list
      to = #list
    end
  end
  return list, from or 1, to or 0
end

local function text_at(list, i) return list[i] and list[i].text end

-- Returns whether the token before an operator may end an operand; then the operator is binary.
local function ends_operand(token)
  if not token then return false end
  if token.kind == "keyword" then
    return set {"end", "nil", "true", "false"}[token.text] or false
  end
  return token.kind ~= "op" or set {")", "]", "}", "..."}[token.text] or false
end

-- Returns the indexes in from..to for which test(i) is true.
local function collect(from, to, test)
  local found = {}
  for i = from, to do
    if test(i) then found[#found + 1] = i end
  end
  return found
end

-- Returns the candidates that pass `test`, or all when none does.
local function prefer(candidates, test)
  local found = {}
  for _, i in ipairs(candidates) do
    if test(i) then found[#found + 1] = i end
  end
  return #found > 0 and found or candidates
end

local function unquoted(text)
  return text:match "^['\"](.*)['\"]$" or text:match "^%[=*%[(.*)%]=*%]$"
end

-- Returns the indexes of `name` as a name of a kind: "global", "local", "upvalue", "field",
-- "method" or "constant"; nil: of any kind.
local function names(list, from, to, name, kind)
  return collect(from, to, function(i)
    local token, before = list[i], text_at(list, i - 1)
    if token.kind == "string" then
      local is_key = before == "[" and text_at(list, i + 1) == "]"
      return unquoted(token.text) == name and (kind == "field" and is_key or kind == "constant")
    end
    if token.kind ~= "name" or token.text ~= name then return false end
    if kind == "field" then return before == "." end
    if kind == "method" then return before == ":" end
    return kind == nil or before ~= "." and before ~= ":"
  end)
end

local function is_called(list, i)
  local after = list[i + 1]
  if after and after.text == "]" then after = list[i + 2] end
  return after ~= nil and (after.kind == "string" or after.text == "(" or after.text == "{")
end

local function is_indexed(list, i)
  local after = text_at(list, i + 1)
  if after == "]" then after = text_at(list, i + 2) end
  return after == "." or after == ":" or after == "["
end

local binary = set {
  "+", "-", "*", "/", "//", "%", "^", "..", "==", "~=", "<", ">", "<=", ">=", "&", "|", "~", "<<",
  ">>", "#",
}

local function is_operand(list, i)
  local first = i
  while text_at(list, first - 1) == "." or text_at(list, first - 1) == ":" do first = first - 2 end
  local after = text_at(list, i + 1)
  return binary[after] or binary[text_at(list, first - 1)] or false
end

-- Returns the indexes of the operators of a metamethod.
local function operator_tokens(list, from, to, event)
  local symbols = operators[event] and set(operators[event])
  if not symbols then return {} end
  local unary = event == "unm" or event == "bnot" or event == "len"
  return collect(from, to, function(i)
    return list[i].kind == "op" and symbols[list[i].text]
      and (ends_operand(list[i - 1]) ~= unary)
  end)
end

-- Returns the indexes of a field or method that the message quotes.
local function quoted_members(list, from, to, message)
  return collect(from, to, function(i)
    local before = text_at(list, i - 1)
    return list[i].kind == "name" and (before == "." or before == ":")
      and message:find("[\"']" .. list[i].text .. "[\"']") ~= nil
  end)
end

-- Returns the indexes of brackets that index.
local function brackets(list, from, to)
  return collect(from, to, function(i) return list[i].text == "[" and ends_operand(list[i - 1]) end)
end

-- Returns the indexes of the function that the line called: `callee` is {name, namewhat} of
-- debug.getinfo.
local function of_callee(list, from, to, message, callee)
  if not callee or not callee.name then return {} end
  local name, kind = callee.name, callee.namewhat
  if kind == "metamethod" then
    if name == "index" or name == "newindex" then
      local members = quoted_members(list, from, to, message)
      return #members > 0 and members or brackets(list, from, to)
    end
    return operator_tokens(list, from, to, name)
  end
  if kind == "for iterator" then
    return collect(from, to, function(i) return list[i].text == "for" end)
  end
  return prefer(names(list, from, to, name, kind), function(i) return is_called(list, i) end)
end

-- Returns the tokens between `in` and `do`.
local function iterated(list, from, to)
  local within = false
  return collect(from, to, function(i)
    local word = list[i].kind == "keyword" and list[i].text
    if word == "in" or word == "do" then
      within = word == "in"
      return false
    end
    return within
  end)
end

-- Returns the variable that the message names: "attempt to index a nil value (field 'x')".
local function of_variable(list, from, to, message)
  if message:find "%(for iterator '" then return iterated(list, from, to) end
  local by_key = message:find "%(field '%?'%)" or message:find "%(field 'integer index'%)"
  if by_key and message:find "^attempt to %a+ a nil" or message:find "^table index is " then
    return brackets(list, from, to)
  end
  local field = message:match " has no field \"([^\"]*)\""
  if field then return names(list, from, to, field, "field") end
  local kind, name = message:match "%((%a+) '([^']*)'%)"
  if not kind then return {} end
  local test = message:find "^attempt to call" and is_called
    or message:find "^attempt to index" and is_indexed or is_operand
  return prefer(names(list, from, to, name, kind), function(i) return test(list, i) end)
end

local function of_operation(list, from, to, message)
  for _, row in ipairs(failed_operators) do
    if message:find(row[1]) then
      local symbols = set(row[2])
      return collect(from, to, function(i)
        return list[i].kind == "op" and symbols[list[i].text]
      end)
    end
  end
  return {}
end

-- Returns the function that the message begins with, if any: "matmul: ...", "linalg.svd: ...", "bad
-- argument #1 to 'rep'".
local function of_title(list, from, to, message)
  local title = message:match "^([%a_][%w_]*):? " or message:match "^[%a.]+%.([%w_]+): "
    or message:match "^bad argument #%d+ to '([^']*)'"
  if not title then return {} end
  local called = collect(from, to, function(i)
    return list[i].kind == "name" and list[i].text == title and is_called(list, i)
  end)
  if #called > 0 then return called end
  return message:find("^" .. title .. ":") and operator_tokens(list, from, to, title) or {}
end

-- Returns the name of an invalid declaration or assignment: "attempt to assign to const variable
-- 'x'".
local function of_declaration(list, from, to, message)
  local name = message:match "const variable '([^']*)'" or message:match "attribute '([^']*)'"
    or message:match "^label '([^']*)'" or message:match "label '([^']*)' for"
  if name then
    return prefer(names(list, from, to, name), function(i) return text_at(list, i + 1) == "=" end)
  end
  local word = message:match "'(for)' " or message:match "^(break) outside"
  return word and collect(from, to, function(i) return list[i].text == word end) or {}
end

-- Returns the token of "near 'x'": the first that Lua rejects after those before it.
local function of_syntax(list, from, to, message, text)
  if message:find "^unfinished string" then
    return collect(from, to, function(i) return list[i].kind == "bad" end)
  end
  local near = message:match " near '(.*)'$"
  if not near then return {} end
  local found = collect(from, to, function(i)
    local token = list[i].text
    local in_part = list[i].kind == "bad" or list[i].kind == "number" or unquoted(token) ~= nil
    return token == near or in_part and token:sub(1, #near) == near
  end)
  if #found < 2 then return found end
  for _, i in ipairs(found) do
    local before = text:sub(1, list[i].last):gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")
    local _, complaint = load(before, "=", "t")
    if complaint and not complaint:find "near <eof>$" then return {i} end
  end
  return found
end

local opens = set {"function", "if", "do", "repeat"}
local closes = set {"end", "until"}

--- Returns which of the tokens from..to of a list of {kind, text} are in a function that starts
-- among them: a boolean for each index.
function error_span.in_functions(list, from, to)
  local blocks, functions, inside = {}, 0, {}
  for i = from, to do
    local word = list[i].kind == "keyword" and list[i].text
    if opens[word] then
      blocks[#blocks + 1] = word
      if word == "function" then functions = functions + 1 end
    elseif closes[word] then
      if table.remove(blocks) == "function" then functions = functions - 1 end
    end
    inside[i] = functions > 0
  end
  return inside
end

-- Returns the position behind the last token, where something is missing.
local function at_the_end(text, number)
  local first, last = source_lines.range(text, number)
  while first and not text:sub(first, last):match "%S" and number > 1 do
    number = number - 1
    first, last = source_lines.range(text, number)
  end
  if not first then return number, {} end
  local behind = #text:sub(first, last):gsub("%s+$", "") + 1
  return number, {{behind, behind}}
end

--- Returns the position of an error that Lua reports for line `number` of `text`. `message` is
-- without its location; `frame` is nil or {callee = debug.getinfo(..., "n") of the function that
-- the line had called, nested = whether the running function starts in this line}. Returns the
-- number of the line to show, an earlier one when the text ends too early, and a list of {first,
-- last} positions in it; each of several may be the cause.
function error_span.find(text, number, message, frame)
  message = message:match "^[^\n]*"
  if message:find " near <eof>$" and not message:find "^unfinished string" then
    return at_the_end(text, number)
  end
  local start = source_lines.range(text, number)
  if not start then return number, {} end
  local list, from, to = tokens_around(text, number)
  local found = of_syntax(list, from, to, message, text)
  for _, rule in ipairs {of_variable, of_callee, of_operation, of_declaration, of_title} do
    if #found > 0 then break end
    found = rule(list, from, to, message, frame and frame.callee)
  end
  if frame and #found > 1 then
    local inside = error_span.in_functions(list, from, to)
    found = prefer(found, function(i) return inside[i] == frame.nested end)
  end
  local ranges = {}
  for i, index in ipairs(found) do
    ranges[i] = {list[index].first - start + 1, list[index].last - start + 1}
  end
  return number, ranges
end

return error_span
