--- Splits a cell of a notebook into pieces, which run one after the other: Lua code, and lines with
-- a command (`:whos`), a shell command (`!ls`) or a question (`?x`, `x??`).
--
-- Such a line starts in the first column, or is the first of the cell, and the Lua code before it
-- is complete: no line within a string, a comment, a call or a block is a command. A line `:name(`
-- directly below an expression calls a method of it.

local cell = require "lutra.repl.cell"
local commands = require "lutra.repl.commands"
local lexer = require "lutra.repl.lexer"
local other_languages = require "lutra.repl.other_languages"
local session = require "lutra.repl.session"
local texts = require "lutra.internal.text"

local pieces = {}

local function status(text) return (cell.read(text, "=cell")) end

-- Returns whether one of the lines is more than a line comment.
local function has_code(lines, first, last)
  for i = first, last do
    if lines[i]:find "^%s*[^%s%-]" or lines[i]:find "^%s*%-[^%-]" then return true end
  end
  return false
end

-- Returns whether a method of the expression that ends with a token could be called in the next
-- line.
local function ends_object(token)
  local kind, word = token[1], token[2]
  return kind == "name" or kind == "string" or word == ")" or word == "]" or word == "}"
end

-- Returns whether a line that looks like a command calls a method of the value before it, whose
-- last token is `last`.
local function is_method(line, before, last)
  if before:find "\n%s*$" or not ends_object(last) then return false end
  local word, rest = line:match "^:%s*([%a_][%w_]*)%s*(.*)$"
  if not word or not commands.find(word) then return true end
  return rest:find "^[%({\"']" ~= nil or rest:find "^%[=*%[" ~= nil
end

-- Returns what a single line is: "command", "shell", "help", or "lua" for a command of IPython,
-- which Lua reports with a hint; nil for other Lua code.
local function looks_like(line)
  if not line:find "^%s*[:!?%%]" and not line:find "%?%s*$" then return nil end
  if other_languages.magic(line) then return "lua" end
  return session.kind(line)
end

-- Returns the kind of line i (looks_like), or nil when it belongs to the Lua code from line `first`
-- on.
local function kind_at(lines, i, first)
  local line = lines[i]
  local kind = looks_like(line)
  if not kind or line:find "^%s" and has_code(lines, first, i - 1) then return nil end
  local before = table.concat(lines, "\n", first, i - 1)
  local tokens = lexer.significant(before)
  local last = tokens[#tokens]
  if last and last[1] == "bad" and last[2]:find "^%[" then return nil end -- within a long string
  if status(before) == "incomplete" then return nil end
  return not (kind == "command" and last and is_method(line, before, last)) and kind or nil
end

-- Returns the code in the line of a command that takes code or an expression, without the options
-- before it; nil for other lines.
local function code_in(line)
  local word, rest = line:match "^%s*:%s*(%S*)%s*(.-)%s*$"
  local row = word and commands.find(word)
  local usage = row and row.usage or ""
  if not (usage:find "CODE" or usage:find "EXPR") then return nil end
  local code = rest
  repeat
    rest = code
    code = rest:gsub("^%-%-?%a[%w%-]*%s+%S+%s*", "")
  until code == rest
  return code, usage:find "%[CODE%]" ~= nil
end

-- Returns the last line of the command in line i, and whether its code is incomplete. Without code
-- in its line, the code is the rest of the cell; else it continues until it is complete. `first`:
-- there is no code before the command.
local function command_end(lines, i, first)
  local code, optional = code_in(lines[i])
  if not code then return i, false end
  if code == "" then return (first or not optional) and #lines or i, false end
  local last = i
  while status(code) == "incomplete" do
    if last == #lines then return last, true end
    last = last + 1
    code = code .. "\n" .. lines[last]
  end
  return last, false
end

-- Returns the last line of a shell command, which a backslash at the end continues.
local function shell_end(lines, i)
  while lines[i]:find "\\$" and i < #lines do i = i + 1 end
  return i
end

local function is_code(text)
  if text:find "^%s*[^%s%-]" then return true end
  return #lexer.significant(text) > 0 or status(text) ~= "complete"
end

--- Returns the pieces of a cell as a list of {kind, text, line}. kind: "lua", "command", "shell" or
-- "help"; line: the number of its first line in the cell. The text of Lua code has newlines before
-- it, so that its line numbers are those of the cell. Comments alone are no piece. `incomplete` is
-- true in a command whose code the end of the cell cuts off.
function pieces.split(text)
  local lines = texts.lines((text:gsub("\r\n?", "\n")))
  local list, first, i = {}, 1, 1 -- first: of the Lua code before line i
  local function add(kind, from, to)
    local code = table.concat(lines, "\n", from, to)
    if kind == "lua" and not is_code(code) then return nil end
    if kind == "lua" then code = ("\n"):rep(from - 1) .. code end
    list[#list + 1] = {kind = kind, text = code, line = from}
    return list[#list]
  end
  while i <= #lines do
    local kind = kind_at(lines, i, first)
    local last = i
    if kind then
      add("lua", first, i - 1)
      local incomplete
      if kind == "command" then last, incomplete = command_end(lines, i, #list == 0) end
      if kind == "shell" then last = shell_end(lines, i) end
      add(kind, i, last).incomplete = incomplete or nil
      first = last + 1
    end
    i = last + 1
  end
  add("lua", first, #lines)
  return list
end

-- Returns whether the last line is the beginning of a command's name, below complete code.
local function begins_command(text)
  local before, line = text:match "^(.-)([^\n]*)$"
  if not line:find "^:%a*$" then return false end
  local found
  for _, row in ipairs(commands.rows) do
    found = found or row.name:find(line:sub(2), 1, true) == 1
  end
  return found and status(before) ~= "incomplete", #before
end

--- Returns the kind of the piece that contains the cursor behind `point` bytes, and the cell's text
-- from the beginning of that piece on, with the number of bytes before it. For Lua code this is the
-- whole text, with spaces in place of the pieces before it.
function pieces.at(text, point)
  local before = text:sub(1, point):gsub("\r\n", " \n"):gsub("\r", "\n") -- of the same length
  local is_name, offset = begins_command(before)
  if is_name then return "command", text:sub(offset + 1), offset end
  local list = pieces.split(before)
  local last = list[#list]
  local lines = texts.lines(before)
  if last and last.kind ~= "lua" then
    local height = #texts.lines(last.text)
    if last.line + height - 1 == #lines then
      offset = #table.concat(lines, "\n", 1, last.line - 1) + (last.line > 1 and 1 or 0)
      return last.kind, text:sub(offset + 1), offset
    end
  end
  for _, piece in ipairs(list) do
    if piece.kind ~= "lua" then
      for n = piece.line, piece.line + #texts.lines(piece.text) - 1 do
        lines[n] = (" "):rep(#lines[n])
      end
    end
  end
  return "lua", table.concat(lines, "\n") .. text:sub(point + 1), 0
end

return pieces
