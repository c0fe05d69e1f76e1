--- The argument of a command as words, as a shell splits a line.
--
-- Spaces separate; 'single' and "double" quotes keep a word together, a backslash keeps the next
-- character (within double quotes only before " and \). A ~ at the start of a word, not quoted, is
-- the home folder. Nothing else is expanded: no $NAME, no *.

local words = {}

-- One character after a backslash, or the end of a quoted part: -> text, place after it.
local function escaped(text, at, quote)
  local c = text:sub(at + 1, at + 1)
  if c == "" then return "\\", at + 1 end
  if quote and not c:match '["\\]' then return "\\" .. c, at + 2 end
  return c, at + 2
end

-- A quoted part that opens at `at` -> its text, place after it; nil when it does not end.
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

-- One word that starts at `at` -> the word, place after it; or nil and why not.
local function word_at(text, at)
  local parts, first = {}, at
  while at <= #text and not text:match("^%s", at) do
    local c = text:sub(at, at)
    local part, after
    if c == "'" or c == '"' then
      part, after = quoted(text, at)
      if not part then return nil, ("a quote %s is not closed"):format(c) end
    elseif c == "\\" then
      part, after = escaped(text, at)
    else
      part, after = c, at + 1
    end
    parts[#parts + 1], at = part, after
  end
  local word = table.concat(parts)
  if text:match("^~%f[/%s\0]", first) then word = words.home(word) end
  return word, at
end

--- "~/x" as a path in the home folder; anything else as it is.
function words.home(path)
  local rest = path:match "^~(/.*)$" or path == "~" and ""
  local home = os.getenv "HOME"
  if not rest or not home or home == "" then return path end
  return home .. rest
end

--- Splits `text`. Returns a list of words; or nil and why not.
function words.split(text)
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

--- As split, for the command `name`, with the number of words that it takes at most: what does not
-- fit is an error with `usage`.
function words.arguments(name, text, most, usage)
  local list, why = words.split(text)
  if not list then error(("%s: %s"):format(name, why), 0) end
  if #list > most then
    error(("%s: %d words, it wants %s (a name with spaces goes in quotes)"):format(name, #list,
      usage), 0)
  end
  return list
end

--- `text` as one word of sh.
function words.quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

return words
