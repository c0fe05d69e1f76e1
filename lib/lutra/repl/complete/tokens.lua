--- The tokens before the cursor: pairs of brackets, open brackets, and whether the cursor is in a
-- word, a string or a comment.
--
-- Invariant: positions are those in the text; a token is {kind, text, first}, as the lexer returns
-- it.

local lexer = require "lutra.repl.lexer"

local tokens = {}

local closing = {["("] = ")", ["["] = "]", ["{"] = "}"}

-- Returns whether a comment that reaches the end of the text continues there.
local function goes_on(comment)
  local level = comment:match "^%-%-%[(=*)%["
  if not level then return true end
  local close = "]" .. level .. "]"
  return #comment < #close + 4 + #level or comment:sub(-#close) ~= close
end

-- Returns the opening quote of an unfinished string, and the start of its contents in the token.
local function opening(token)
  local quote = token:match "^[\"']" or token:match "^%[=*%["
  return quote, quote and #quote + 1
end

-- Returns the partner of each bracket, and the list of open brackets. A closing bracket of the
-- wrong kind closes nothing.
local function pair_brackets(list)
  local partner, open = {}, {}
  for i, token in ipairs(list) do
    local word = token[1] == "op" and token[2]
    if closing[word] then
      open[#open + 1] = i
    elseif word == ")" or word == "]" or word == "}" then
      local last = open[#open]
      if last and closing[list[last][2]] == word then
        partner[i], partner[last] = last, i
        open[#open] = nil
      end
    end
  end
  return partner, open
end

--- Reads `text`, which ends at the cursor. Returns {
--   list     the tokens, without spaces and comments, before the word or string at the cursor
--   partner  index of a bracket in the list -> index of its partner
--   open     indexes of the brackets that are open at the cursor, outermost first
--   inside   "word", "string", "comment", "number" or nil
--   prefix   the part of that word or string before the cursor
--   quote    the string's opening quote
--   first    the position at which the prefix starts
-- }
function tokens.read(text)
  local list, last = {}, nil
  for kind, token, first in lexer.tokens(text) do
    last = {kind, token, first}
    if kind ~= "space" and kind ~= "comment" then list[#list + 1] = last end
  end
  local read = {list = list, prefix = "", first = #text + 1}
  local kind, word = last and last[1], last and last[2]
  if kind == "comment" and goes_on(word) then
    read.inside = "comment"
  elseif kind == "name" or kind == "keyword" then
    read.inside, read.prefix, read.first = "word", word, last[3]
  elseif kind == "number" then
    read.inside = "number"
  elseif kind == "bad" and opening(word) then
    local quote, at = opening(word)
    read.inside, read.quote = "string", quote
    read.prefix, read.first = word:sub(at), last[3] + at - 1
  end
  if last and list[#list] == last and read.inside then list[#list] = nil end
  read.partner, read.open = pair_brackets(list)
  return read
end

--- Returns whether token i of the list is the operator (or keyword) `word`.
function tokens.is(list, i, word)
  local token = list[i]
  return token ~= nil and token[2] == word and (token[1] == "op" or token[1] == "keyword")
end

local ends = {name = true, number = true, string = true}
local last_words = {
  [")"] = true, ["]"] = true, ["}"] = true, ["end"] = true, ["nil"] = true, ["true"] = true,
  ["false"] = true, ["..."] = true,
}

--- Returns whether an expression can end with token i.
function tokens.ends_expression(list, i)
  local token = list[i]
  return token ~= nil and (ends[token[1]] or last_words[token[2]] or false)
end

--- Returns the name of a field that a token after `.` or `:` represents, or nil.
function tokens.name(list, i)
  local token = list[i]
  return token and token[1] == "name" and token[2] or nil
end

--- Returns the value of a string token. Numeric escapes stay unchanged.
function tokens.unquote(token)
  local level = token:match "^%[(=*)%["
  if level then
    local body = token:sub(#level + 3):gsub("^\r?\n", "")
    local close = "]" .. level .. "]"
    return body:sub(-#close) == close and body:sub(1, -#close - 1) or body
  end
  local body = token:sub(2)
  if body:sub(-1) == token:sub(1, 1) then body = body:sub(1, -2) end
  return tokens.unescape(body)
end

local letters = {n = "\n", t = "\t", r = "\r", a = "\a", b = "\b", f = "\f", v = "\v"}

--- Returns the value of the text between quotes.
function tokens.unescape(body)
  return (body:gsub("\\(%D)", function(c) return letters[c] or c end))
end

return tokens
