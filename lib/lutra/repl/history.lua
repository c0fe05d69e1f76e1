--- The history of inputs of earlier sessions: one line per cell, with newlines as \n.
--
-- It is appended after each cell, so that a crash loses nothing and concurrent sessions do not
-- overwrite each other; only its owner can read it. Without a home folder, or when it cannot be
-- written, the history is that of the session.

local files = require "lutra.repl.files"
local front = require "lutra.repl.front"
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

-- Adds an entry to the line editor. In a notebook there is none, and nothing is added.
local function offer(text)
  if front.notebook then return end
  if not host.reads_cells() and text:find "\n" then text = history.join(text) end
  host.add_history(text)
end

local last
local size_before -- the size of the file before this session added an entry, or nil

-- Returns the size of a file; nil when it cannot be read (as a folder).
local function size_of(name)
  local file <close> = io.open(name, "rb")
  return file and file:seek "end"
end

-- Returns the entries at the end of the first `size` bytes of a file, oldest first.
local function read_entries(name, size)
  local file <close> = io.open(name, "rb")
  if not file or not size then return {} end
  local from = math.max(0, size - most_read)
  local text = file:seek("set", from) and file:read(size - from)
  if not text then return {} end
  local lines, entries = {}, {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  local first = from > 0 and 2 or 1 -- the first line may be incomplete
  for i = math.max(first, #lines - most_entries + 1), #lines do
    entries[#entries + 1] = decode(lines[i])
  end
  return entries
end

--- Returns the entries that the file had before this session added any, oldest first.
function history.earlier()
  local name = path()
  return name and read_entries(name, size_before or size_of(name)) or {}
end

--- Loads the entries of the file into the editor.
function history.load()
  for _, text in ipairs(history.earlier()) do
    last = text
    offer(text)
  end
end

--- Adds a cell to the file and the editor, unless it is blank or equal to the last one.
function history.add(text)
  text = text:gsub("%s+$", "")
  if text == last or not text:match "%S" or text:find("\0", 1, true) then return end
  last = text
  offer(text)
  local name = path()
  size_before = size_before or name and size_of(name) or 0
  if name and #text <= most_bytes then host.append(name, encode(text) .. "\n") end
end

return history
