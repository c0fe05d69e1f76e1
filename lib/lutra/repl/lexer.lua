--- Lua's tokens, for code that may be unfinished or wrong: the editor's own lexer
-- (src/repl/editor/lexer.c), as iterators.
--
-- Never fails: what is no token is one of kind "bad". Invariant: the tokens' texts, in order, are
-- the input.

local host = require "lutra.repl.host"

local lexer = {}

--- Iterates over the tokens of `text`: kind, text, first position.
-- Kinds: name keyword number string op comment space bad.
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

--- The list of {kind, text, first} without spaces and comments.
function lexer.significant(text)
  local list = {}
  for kind, token, first in lexer.tokens(text) do
    if kind ~= "space" and kind ~= "comment" then list[#list + 1] = {kind, token, first} end
  end
  return list
end

--- Is the text a name that a variable can have: an identifier, no keyword?
function lexer.is_name(text)
  if not text:find "^[A-Za-z_][A-Za-z0-9_]*$" then return false end
  return lexer.significant(text)[1][1] == "name"
end

return lexer
