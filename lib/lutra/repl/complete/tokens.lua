--- The tokens before the cursor, with what completion asks of them: which brackets belong together,
-- which are still open, and whether the cursor is in a word, a string or a comment.
--
-- Invariant: positions are those of the text that was read; a token is {kind, text, first}, as the
-- lexer gives it.

local lexer = require "lutra.repl.lexer"

local tokens = {}

local closing = {["("] = ")", ["["] = "]", ["{"] = "}"}

-- Does a comment that reaches the end of the text go on there?
local function goes_on(comment)
  local level = comment:match "^%-%-%[(=*)%["
  if not level then return true end
  local close = "]" .. level .. "]"
  return #comment < #close + 4 + #level or comment:sub(-#close) ~= close
end

-- An unfinished string: what opens it, and where its contents start in the token.
local function opening(token)
  local quote = token:match "^[\"']" or token:match "^%[=*%["
  return quote, quote and #quote + 1
end

-- The partner of each bracket, and the list of those that are open. A closing bracket of the wrong
-- kind closes nothing.
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

--- Reads `text`, at whose end the cursor is. Returns {
--   list     the tokens, without spaces and comments, before the word or string at the cursor
--   partner  of a bracket's place in the list: the place of the other one
--   open     places of the brackets that are open at the cursor, outermost first
--   inside   "word", "string", "comment", "number" or nil
--   prefix   what of that word or string is there
--   quote    how the string begins
--   first    where the prefix starts
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

--- Is token i of the list the operator (or keyword) `word`?
function tokens.is(list, i, word)
  local token = list[i]
  return token ~= nil and token[2] == word and (token[1] == "op" or token[1] == "keyword")
end

local ends = {name = true, number = true, string = true}
local last_words = {
  [")"] = true, ["]"] = true, ["}"] = true, ["end"] = true, ["nil"] = true, ["true"] = true,
  ["false"] = true, ["..."] = true,
}

--- Can an expression end with token i?
function tokens.ends_expression(list, i)
  local token = list[i]
  return token ~= nil and (ends[token[1]] or last_words[token[2]] or false)
end

--- The name of a field that a token after `.` or `:` stands for, or nil.
function tokens.name(list, i)
  local token = list[i]
  return token and token[1] == "name" and token[2] or nil
end

--- The text that a string token stands for. Escapes by number stay as they are.
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

--- What the inside of a quoted string stands for.
function tokens.unescape(body)
  return (body:gsub("\\(%D)", function(c) return letters[c] or c end))
end

return tokens
