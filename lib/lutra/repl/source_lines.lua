--- Source lines for errors: truncated to the terminal, with tabs as spaces and marks below.
--
-- The text comes from host.sources (cells, -e, stdin, the script as it was loaded), else from the
-- file. Invariant: the output has no control characters, and a mark is under the terminal cell of
-- its character; an unknown line is omitted.

local front = require "lutra.repl.front"
local host = require "lutra.repl.host"
local style = require "lutra.repl.style"

local source_lines = {}

local TAB = 4          -- cells from one tab stop to the next
local PIPE_WIDTH = 100 -- columns when stderr is not a terminal
local LARGEST = 1 << 26 -- the maximum size in bytes of a file that is read
local LONGEST = 20000   -- the maximum length in bytes of a line

-- Returns the text of a file; nil unless it is a regular file, as reading a pipe again would
-- block.
local function file_text(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local size = file:seek "end"
  local text = size and size < LARGEST and file:seek "set" and file:read "a" or nil
  file:close()
  return text
end

--- Returns the text of a chunk by its name (`source` of debug.getinfo), or nil.
function source_lines.text(chunk)
  local kind, name = chunk:match "^([@=])(.*)$"
  if not kind then return chunk end
  return host.sources[kind == "@" and chunk or name] or kind == "@" and file_text(name) or nil
end

--- Returns the first and last position of line `number` of `text`, without its newline; nil beyond
-- the end.
function source_lines.range(text, number)
  if number < 1 then return nil end
  local first = 1
  for _ = 2, number do
    local newline = text:find("\n", first, true)
    if not newline then return nil end
    first = newline + 1
  end
  local last = (text:find("\n", first, true) or #text + 1) - 1
  if text:sub(last, last) == "\r" and last >= first then last = last - 1 end
  return first, last
end

--- Returns line `number` of `text`, or nil; of a very long line only its start.
function source_lines.line(text, number)
  local first, last = source_lines.range(text, number)
  return first and text:sub(first, math.min(last, first + LONGEST))
end

-- Returns the line as a list of {text, cells, position, column}, with tabs and control characters
-- made visible and invalid UTF-8 as question marks. A last item represents the end of the line.
local function characters(line)
  local list, at, column = {}, 1, 0
  while at <= #line do
    local bytes, cells = host.character(line, at)
    local shown = line:sub(at, at + bytes - 1)
    if shown == "\t" then
      cells = TAB - column % TAB
      shown = (" "):rep(cells)
    elseif cells < 0 then
      shown, cells = shown == "\r" and " " or "?", 1
    end
    list[#list + 1] = {shown, cells, at, column}
    column, at = column + cells, at + bytes
  end
  list[#list + 1] = {" ", 1, at, column}
  return list
end

-- Returns the column of the first character that is not a space; nil for an empty line.
local function indentation(list)
  for _, item in ipairs(list) do
    if item[1]:match "%S" then return item[4] end
  end
end

-- Returns the text of the columns `skip` + 1 to `skip` + `room`; dots mark omitted text, except
-- indentation.
local function window(list, skip, indent, room)
  local last = list[#list]
  local left = skip > indent and last[4] > skip and "..." or ""
  local right = last[4] - skip > room and "..." or ""
  local parts, column = {left}, #left
  for _, item in ipairs(list) do
    local from = item[4] - skip
    if from >= #left and from + item[2] <= room - #right then
      parts[#parts + 1] = (" "):rep(from - column) .. item[1] -- half of a wide character
      column = from + item[2]
    end
  end
  parts[#parts + 1] = right ~= "" and (" "):rep(room - 3 - column) .. right or nil
  return (table.concat(parts):gsub("%s+$", ""))
end

-- Returns the first and the last column that `ranges` mark in a line, or nil.
local function extent(list, ranges)
  local first, last
  for _, item in ipairs(list) do
    for _, range in ipairs(ranges) do
      if item[3] >= range[1] and item[3] <= range[2] then
        first, last = first or item[4], item[4] + item[2] - 1
      end
    end
  end
  return first, last
end

-- Returns the marks under the ranges, for the part of the line that is shown.
local function underline(list, ranges, skip, room)
  local columns = {}
  for i = 1, room do columns[i] = " " end
  for _, item in ipairs(list) do
    for _, range in ipairs(ranges) do
      if item[3] >= range[1] and item[3] <= range[2] then
        for c = item[4] - skip + 1, item[4] - skip + item[2] do
          if columns[c] then columns[c] = "^" end
        end
      end
    end
  end
  return (table.concat(columns):gsub("%s+$", ""))
end

-- Returns the first column to show: the indentation, or more when the marks would not be visible.
local function first_column(list, ranges, indent, room)
  local first, last = extent(list, ranges)
  if not first or last - indent < room - 3 then return indent end
  local around = math.max(6, (room - (last - first)) // 2)
  return math.max(indent, math.min(first - around, list[#list][4] - room))
end

local function room_beside(gutter)
  local shown = front.notebook or host.isatty(2)
  local columns = shown and math.max(24, style.width()) or PIPE_WIDTH
  return columns - #gutter
end

local plain, erring, below = "    %4d | ", "  > %4d | ", "         | "

--- Returns line `number` of a chunk for a frame of a traceback; nil when it is unknown or empty.
function source_lines.quote(chunk, number)
  local text = source_lines.text(chunk)
  local line = text and source_lines.line(text, number)
  if not line or not line:match "%S" then return nil end
  local list, gutter = characters(line), plain:format(number)
  local indent = indentation(list)
  return style.paint("faint", gutter, 2) .. window(list, indent, indent, room_beside(gutter))
end

--- Returns line `number` of `text` with its neighbours as one string; nil when there is no such
-- line. `ranges` lists the {first, last} positions of the line that are marked; one behind its end
-- is valid.
function source_lines.block(text, number, ranges)
  local lists, indent = {}, math.huge
  for n = math.max(1, number - 1), number + 1 do
    local line = source_lines.line(text, n)
    -- A newline at the end of the text ends a line and does not start another.
    if line and (n <= number or line ~= "" or source_lines.line(text, n + 1)) then
      lists[n] = characters(line)
      indent = math.min(indent, indentation(lists[n]) or math.huge)
    end
  end
  local list, rows = lists[number], {}
  if not list then return nil end
  if indent == math.huge then indent = 0 end
  local room = room_beside(plain:format(number))
  local skip = first_column(list, ranges, indent, room)
  for n = number - 1, number + 1 do
    local row = lists[n] and window(lists[n], skip, indent, room)
    if n == number then
      rows[#rows + 1] = style.paint("error", erring:format(n), 2) .. row
      local marks = underline(list, ranges, skip, room)
      local before, under = marks:match "^( *)(.+)$"
      if under then rows[#rows + 1] = below .. before .. style.paint("error", under, 2) end
    elseif row then
      rows[#rows + 1] = style.paint("faint", (plain:format(n) .. row):gsub("%s+$", ""), 2)
    end
  end
  return table.concat(rows, "\n")
end

return source_lines
