--- Suggestions for syntax errors: constructs of other languages, and blocks without an end.

local other_languages = require "lutra.repl.other_languages"
local lexer = require "lutra.repl.lexer"
local source_location = require "lutra.repl.source_location"
local source_lines = require "lutra.repl.source_lines"

local syntax = {}

local LINES_ABOVE = 3   -- lines above the one that Lua reports that are examined, too
local LARGEST = 1 << 20 -- the maximum size in bytes of code whose blocks are examined

-- Returns a line without the contents of its strings and comments.
local function bare(line)
  local parts = {}
  for kind, text in lexer.tokens(line) do
    parts[#parts + 1] = kind == "comment" and "" or kind == "string" and '""' or text
  end
  return table.concat(parts)
end

local function about_line(line)
  local magic = other_languages.magic(line)
  if magic then return magic end
  local code = bare(line)
  for _, row in ipairs(other_languages.lines) do
    if code:find(row[1]) then return row[2] end
  end
end

local function about_lines(text, number)
  for n = number, math.max(1, number - LINES_ABOVE), -1 do
    local line = source_lines.line(text, n)
    local advice = line and about_line(line)
    if advice then return advice end
  end
end

-- Returns the tokens of a string with their layout: {text, line, indent, first = whether it is the
-- first of its line}.
local function laid_out(text)
  local list, line, at, seen = {}, 1, 1, 0
  for _, token in ipairs(lexer.significant(text)) do
    while true do
      local newline = text:find("\n", at, true)
      if not newline or newline > token[3] then break end
      line, at = line + 1, newline + 1
    end
    local indent = #text:match("^[ \t]*", at):gsub("\t", "    ")
    list[#list + 1] = {text = token[1] == "keyword" and token[2] or "", line = line,
      indent = indent, first = line > seen}
    seen = line
  end
  return list
end

-- Returns the first block that, by the indentation, is closed by the `end` of another one.
local function unclosed(list)
  local open, loop = {}, nil
  for _, token in ipairs(list) do
    local word = token.text
    if word == "for" or word == "while" then
      loop = token
    elseif word == "do" or word == "function" or word == "if" or word == "repeat" then
      open[#open + 1] = word == "do" and loop or token
      if word == "do" then loop = nil end
    elseif word == "end" or word == "until" then
      local block = table.remove(open)
      if block and token.first and token.indent < block.indent then return block end
    end
  end
end

local function has_else_if(list)
  for i = 2, #list do
    local before = list[i - 1]
    if list[i].text == "if" and before.text == "else" and before.line == list[i].line then
      return true
    end
  end
end

local function about_end(text)
  if #text > LARGEST then return nil end
  local list = laid_out(text)
  if has_else_if(list) then return other_languages.else_if end
  local block = unclosed(list)
  return block and ("the '%s' in line %d seems to have no end (by its indentation)"):format(
    block.text, block.line)
end

local ends_block = {["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true}

--- Returns advice about Lua's message for a chunk that cannot be compiled, or nil.
function syntax.hint(message)
  local near = message:match " near '?(.-)'?$"
  if not near then return nil end
  local place = source_location.of(message)
  local text = place and source_lines.text(source_location.chunk(place))
  local advice = text and about_lines(text, place.number)
  if advice then return advice end
  if message:find "'end' expected" and near == "<eof>" then return text and about_end(text) end
  -- Only a return statement must be the last in its block.
  local closes = message:find "<eof> expected" or message:find "'end' expected"
  if closes and not ends_block[near] then return other_languages.after_return end
end

return syntax
