--- Shows long text on a terminal one screen at a time, with $PAGER or less; a notebook shows it in
-- its own pager.
--
-- Invariant: output to a pipe or a file is written unchanged.

local front = require "lutra.repl.front"
local host = require "lutra.repl.host"
local command_line = require "lutra.repl.command_line"

local pager = {}

-- Returns the pager: $PAGER, or less with colours and without clearing the screen; nil without
-- one.
local function command()
  local wish = os.getenv "PAGER"
  if wish and wish ~= "" then return wish end
  if os.execute "command -v less >/dev/null 2>&1" then return "less -RFX" end
end

local function count_rows(text, columns)
  local rows = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local cells = utf8.len((line:gsub("\27%[[%d;]*m", ""))) or #line
    rows = rows + math.max(1, (cells + columns - 1) // columns)
  end
  return rows
end

-- Shows the text with `program`, from a file: leaving a pipe before its end would end this
-- program.
local function page(program, text)
  local path = os.tmpname()
  local file = io.open(path, "w")
  if not file then return false end
  file:write(text, "\n")
  file:close()
  os.execute(("%s <%s"):format(program, command_line.quote(path)))
  os.remove(path)
  return true
end

--- Shows `text` with a newline appended.
function pager.show(text)
  if front.notebook then return front.notebook:page(text) end
  local columns, rows = host.terminal_size()
  local long = columns and host.isatty(1) and host.isatty(0)
    and count_rows(text, columns) > (rows or 24) - 1
  local program = long and command()
  io.stdout:flush()
  if not (program and page(program, text)) then io.stdout:write(text, "\n") end
end

return pager
