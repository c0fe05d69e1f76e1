--- Lua's tokens, for code that may be unfinished or wrong.
--
-- Source: the Lua 5.4 reference manual, 3.1. Never fails: what is no token is one of kind "bad".
-- Invariant: the tokens' texts, in order, are the input.

local lexer = {}

local keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
    return then true until while]]):gmatch "%a+" do
  keywords[word] = true
end

local function long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, last = text:find("]" .. level .. "]", at + #level + 2, true)
  return last or #text, last ~= nil
end

local function quoted(text, at)
  local quote = text:sub(at, at)
  local i = at + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == quote then return i, true end
    if c == "\n" then return i - 1, false end
    if c == "\\" then
      if text:match("^z", i + 1) then
        i = text:match("^%s*()", i + 2) - 1
      else
        i = i + 1
      end
    end
    i = i + 1
  end
  return #text, false
end

local operators = {
  "...", "<<", ">>", "//", "==", "~=", "<=", ">=", "::", "..",
}

local function operator(text, at)
  for _, op in ipairs(operators) do
    if text:sub(at, at + #op - 1) == op then return at + #op - 1 end
  end
  return text:match("^[%+%-%*/%%%^#&~|<>=%(%){}%[%];:,%.]()", at) and at
end

local function number(text, at)
  if not text:match("^%.?%d", at) then return nil end
  local exponent = text:match("^0[xX]", at) and "[pP]" or "[eE]"
  local i = at
  while true do
    local after = text:match("^" .. exponent .. "[%+%-]?()", i) or text:match("^[%w_%.]()", i)
    if not after then return i - 1 end
    i = after
  end
end

-- The kind and the last position of the token that starts at `at`.
local function scan(text, at)
  local last = text:match("^%s+()", at)
  if last then return "space", last - 1 end
  local word = text:match("^[%a_][%w_]*", at)
  if word then return keywords[word] and "keyword" or "name", at + #word - 1 end
  if text:sub(at, at + 1) == "--" then
    local stop = long_bracket(text, at + 2)
    return "comment", stop or (text:find("\n", at, true) or #text + 1) - 1
  end
  last = number(text, at)
  if last then return "number", last end
  local closed
  last, closed = long_bracket(text, at)
  if last then return closed and "string" or "bad", last end
  if text:match("^[\"']", at) then
    last, closed = quoted(text, at)
    return closed and "string" or "bad", last
  end
  last = operator(text, at)
  if last then return "op", last end
  return "bad", at
end

--- Iterates over the tokens of `text`: kind, text, first position.
-- Kinds: name keyword number string op comment space bad.
function lexer.tokens(text)
  local at = 1
  return function()
    if at > #text then return nil end
    local first = at
    local kind, last = scan(text, first)
    at = last + 1
    return kind, text:sub(first, last), first
  end
end

--- The list of {kind, text, first} without spaces and comments.
function lexer.significant(text)
  local list = {}
  for kind, token, first in lexer.tokens(text) do
    if kind ~= "space" and kind ~= "comment" then list[#list + 1] = {kind, token, first} end
  end
  return list
end

return lexer
