--- Options in front of the code that a command is given: `:prof --sort bytes step()`.
--
-- Only the options that the command knows are taken; everything from the first other word on is the
-- code, as it stands, so that code may begin with a minus or a comment. Where all of it would be a
-- comment, it is an option that is misspelt.

local words = require "lutra.repl.words"

local flags = {}

-- The word at `at`, which may be in quotes, and the place behind it and its spaces.
local function word_at(text, at)
  local quoted, after = text:match('^"([^"]*)"%s*()', at)
  if not quoted then quoted, after = text:match("^'([^']*)'%s*()", at) end
  if quoted then return quoted, after end
  local word
  word, after = text:match("^(%S+)%s*()", at)
  return word and words.home(word), after
end

--- Reads the options of the command `name`. `known` is {["--sort"] = read, ...}, where read(word)
-- gives the option's value, or nil and what is wanted. Returns a table of values by option, and the
-- code. Errors when there is no code, unless it is `optional`; `usage` is said then.
function flags.read(name, text, known, usage, optional)
  local values, at = {}, 1
  while true do
    local option, after = text:match("^(%-%-?%a+)%f[%s\0]%s*()", at)
    local read = option and known[option]
    if not read then break end
    local word, behind = word_at(text, after)
    if not word then error(("%s: %s wants a value; usage: %s"):format(name, option, usage), 0) end
    local value, wanted = read(word)
    if value == nil then
      error(("%s: %s is \"%s\", it wants %s"):format(name, option, word, wanted), 0)
    end
    values[option], at = value, behind
  end
  local code = text:sub(at)
  local unknown = code:match "^(%-%-%a%S*)[^\n]*$" -- as code it would be a comment and nothing else
  if unknown then
    error(("%s: %s is no option; usage: %s"):format(name, unknown, usage), 0)
  end
  if not optional and not code:match "%S" then
    error(("%s: no code; usage: %s"):format(name, usage), 0)
  end
  return values, code
end

--- A reader of a whole number of at least 1.
function flags.count(word)
  local n = math.tointeger(tonumber(word))
  if n and n >= 1 then return n end
  return nil, "a whole number of at least 1"
end

--- A reader of any word.
function flags.text(word) return word end

--- A reader of one of these words.
function flags.one_of(...)
  local allowed = {...}
  return function(word)
    for _, w in ipairs(allowed) do
      if w == word then return w end
    end
    return nil, "one of " .. table.concat(allowed, ", ")
  end
end

return flags
