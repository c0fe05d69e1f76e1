--- Tokens of Lua code, also of incomplete or invalid code: iterators over the editor's lexer
-- (src/repl/editor/lexer.c).
--
-- It never fails: invalid text has the kind "bad". Invariant: the concatenated texts of the tokens
-- are the input.

local host = require "lutra.repl.host"

local lexer = {}

--- Iterates over the tokens of `text`: kind, text, first position. Kinds: name keyword number
-- string op comment space bad.
function lexer.tokens(text)
  local at = 1
  return function()
    local first = at
    local kind, last = host.token(text, first)
    if not kind then return nil end
    at = last + 1
    return kind, text:sub(first, last), first
  end
end

--- Returns the list of {kind, text, first} without spaces and comments.
function lexer.significant(text)
  local list = {}
  for kind, token, first in lexer.tokens(text) do
    if kind ~= "space" and kind ~= "comment" then list[#list + 1] = {kind, token, first} end
  end
  return list
end

--- Returns whether the text is a valid variable name: an identifier that is no keyword.
function lexer.is_name(text)
  if not text:find "^[A-Za-z_][A-Za-z0-9_]*$" then return false end
  return lexer.significant(text)[1][1] == "name"
end

return lexer
