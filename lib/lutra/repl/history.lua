--- The history of inputs of earlier sessions: one line per cell, with newlines as \n.
--
-- It is appended after each cell, so that a crash loses nothing and concurrent sessions do not
-- overwrite each other; only its owner can read it. Without a home folder, or when it cannot be
-- written, the history is that of the session.

local files = require "lutra.repl.files"
local host = require "lutra.repl.host"
local lexer = require "lutra.repl.lexer"

local history = {}

local most_entries = 5000 -- the maximum number of entries
local most_bytes = 1 << 16 -- the maximum length of an entry of the file
local most_read = 8 << 20 -- the maximum number of bytes read from the file

local function path() return files.user_path("state", "history") end

local function encode(text) return (text:gsub("\\", "\\\\"):gsub("\n", "\\n")) end

local function decode(line)
  return (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
end

--- Returns the code of a cell in one line, for an editor of single lines: without line comments.
-- Strings of several lines keep their newlines.
function history.join(text)
  local parts, space = {}, false
  for kind, token in lexer.tokens(text) do
    local is_space = kind == "space" or kind == "comment" and not token:find "^%-%-%[=*%["
    if not is_space then
      if space and #parts > 0 then parts[#parts + 1] = " " end
      parts[#parts + 1] = token
    end
    space = is_space
  end
  return table.concat(parts)
end

local function offer(text)
  if not host.reads_cells() and text:find "\n" then text = history.join(text) end
  host.add_history(text)
end

local last

-- Returns the end of a file as lines; nil when it cannot be read (as a folder).
local function last_lines(name)
  local file <close> = io.open(name, "rb")
  local size = file and file:seek "end"
  if not size then return nil end
  local from = math.max(0, size - most_read)
  local text = file:seek("set", from) and file:read "a"
  if not text then return nil end
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  if from > 0 then table.remove(lines, 1) end -- it may be incomplete
  return lines
end

--- Loads the entries of the file into the editor.
function history.load()
  local name = path()
  local entries = name and last_lines(name)
  if not entries then return end
  for i = math.max(1, #entries - most_entries + 1), #entries do
    last = decode(entries[i])
    offer(last)
  end
end

--- Adds a cell, unless it is blank or equal to the last one.
function history.add(text)
  text = text:gsub("%s+$", "")
  if text == last or not text:match "%S" or text:find("\0", 1, true) then return end
  last = text
  offer(text)
  local name = path()
  if name and #text <= most_bytes then host.append(name, encode(text) .. "\n") end
end

return history
