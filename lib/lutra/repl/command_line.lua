--- Parsing of a command's argument: words, split like a shell's line, and options.
--
-- Words are separated by spaces; 'single' and "double" quotes group characters to a word, a
-- backslash escapes the next character (within double quotes only " and \). An unquoted ~ at the
-- start of a word is the home folder. Nothing else is expanded: no $NAME, no *.

local command_line = {}

-- Reads one escaped character, or the end of a quoted part; returns its text and the index after
-- it.
local function escaped(text, at, quote)
  local c = text:sub(at + 1, at + 1)
  if c == "" then return "\\", at + 1 end
  if quote and not c:match '["\\]' then return "\\" .. c, at + 2 end
  return c, at + 2
end

-- Reads a quoted part that starts at `at`; returns its text and the index after it, or nil when it
-- is not closed.
local function quoted(text, at)
  local quote, parts = text:sub(at, at), {}
  at = at + 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == quote then return table.concat(parts), at + 1 end
    if c == "\\" and quote == '"' then
      parts[#parts + 1], at = escaped(text, at, quote)
    else
      parts[#parts + 1], at = c, at + 1
    end
  end
end

-- Reads a word that starts at `at`; returns it and the index after it, or nil and the reason.
local function word_at(text, at)
  local parts, first = {}, at
  while at <= #text and not text:match("^%s", at) do
    local c = text:sub(at, at)
    local part, after
    if c == "'" or c == '"' then
      part, after = quoted(text, at)
      if not part then return nil, ("expected a closing quote %s"):format(c) end
    elseif c == "\\" then
      part, after = escaped(text, at)
    else
      part, after = c, at + 1
    end
    parts[#parts + 1], at = part, after
  end
  local word = table.concat(parts)
  if text:match("^~%f[/%s\0]", first) then word = command_line.home(word) end
  return word, at
end

--- Expands "~/x" to a path in the home folder; returns other paths unchanged.
function command_line.home(path)
  local rest = path:match "^~(/.*)$" or path == "~" and ""
  local home = os.getenv "HOME"
  if not rest or not home or home == "" then return path end
  return home .. rest
end

--- Splits `text`. Returns a list of words, or nil and the reason.
function command_line.split(text)
  local list = {}
  local at = text:match "^%s*()"
  while at <= #text do
    local word, after = word_at(text, at)
    if not word then return nil, after end
    list[#list + 1] = word
    at = text:match("^%s*()", after)
  end
  return list
end

--- Splits the argument of command `name`, which takes at most `most` words. Raises an error that
-- shows `usage` for more words and for invalid quotes.
function command_line.arguments(name, text, most, usage)
  local list, why = command_line.split(text)
  if not list then error(("%s: %s"):format(name, why), 0) end
  if #list > most then
    error(("%s: expected %s, got %d words\nhint: put a name with spaces in quotes"):format(name,
      usage, #list), 0)
  end
  return list
end

--- Quotes `text` as one word of sh.
function command_line.quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- ---- options in front of code: `:prof --sort bytes step()`
-- Only options that the command knows are read; the first other word starts the code, unchanged,
-- so that code may begin with a minus or a comment. When all of the code would be a comment, it is
-- reported as a misspelled option.

-- Returns the word at `at`, which may be quoted, and the index after it and its spaces.
local function option_value(text, at)
  local word, after = text:match('^"([^"]*)"%s*()', at)
  if not word then word, after = text:match("^'([^']*)'%s*()", at) end
  if word then return word, after end
  word, after = text:match("^(%S+)%s*()", at)
  return word and command_line.home(word), after
end

--- Parses options in front of code for the command `name`. `known` is {["--sort"] = read, ...},
-- where read(word) returns the option's value, or nil and what is expected. Returns a table of
-- values by option, and the code. Raises an error that shows `usage` when there is no code, unless
-- it is `optional`.
function command_line.leading_options(name, text, known, usage, optional)
  local values, at = {}, 1
  while true do
    local option, after = text:match("^(%-%-?%a+)%f[%s\0]%s*()", at)
    local read = option and known[option]
    if not read then break end
    local word, behind = option_value(text, after)
    if not word then
      error(("%s: expected a value for option %s\nhint: %s"):format(name, option, usage), 0)
    end
    local value, expected = read(word)
    if value == nil then
      error(("%s: expected %s for option %s, got \"%s\""):format(name, expected, option, word), 0)
    end
    values[option], at = value, behind
  end
  local code = text:sub(at)
  local unknown = code:match "^(%-%-%a%S*)[^\n]*$" -- as code it would be a comment and nothing else
  if unknown then
    error(("%s: unknown option %s\nhint: %s"):format(name, unknown, usage), 0)
  end
  if not optional and not code:match "%S" then
    error(("%s: expected code, got none\nhint: %s"):format(name, usage), 0)
  end
  return values, code
end

--- Reads an integer of at least 1.
function command_line.count(word)
  local n = math.tointeger(tonumber(word))
  if n and n >= 1 then return n end
  return nil, "an integer of at least 1"
end

--- Reads any word.
function command_line.text(word) return word end

--- Returns a reader that accepts one of these words.
function command_line.one_of(...)
  local allowed = {...}
  return function(word)
    for _, w in ipairs(allowed) do
      if w == word then return w end
    end
    return nil, "one of " .. table.concat(allowed, ", ")
  end
end

-- ---- options around an expression: `:plot --bins 5 x`, `:plot x --bins 5`

-- Patterns of an option's value: quoted, or a word.
local values = {'"([^"]*)"', "'([^']*)'", "(%S+)"}

-- Removes one option from the start or the end of `text`. Returns the rest, its name and its
-- value.
local function take_option(text, name, has_value)
  for _, value_pattern in ipairs(has_value and values or {"()"}) do
    local word = "%-%-" .. name .. (has_value and "%s+" or "") .. value_pattern
    local value, rest = text:match("^" .. word .. "%s+(.*)$")
    if not rest then rest, value = text:match("^(.-)%s+" .. word .. "$") end
    if rest then return rest, has_value and command_line.home(value) or value end
  end
end

--- Parses options before or after an expression: "--bins 5 x" -> "x", {bins = "5"}. `known` maps
-- their names to "value" or "flag". An unknown option raises an error.
function command_line.options(command, text, known)
  local found, again = {}, true
  while again do
    again = false
    for name, kind in pairs(known) do
      local rest, value = take_option(text, name, kind == "value")
      if rest then text, found[name], again = rest, value, true end
    end
  end
  local unknown = text:match "^%-%-(%S*)" or text:match "%s%-%-(%a%S*)$"
  if unknown then
    error(("%s: %s --%s"):format(command,
      known[unknown] and "expected a value for option" or "unknown option", unknown), 0)
  end
  return text, found
end

return command_line
