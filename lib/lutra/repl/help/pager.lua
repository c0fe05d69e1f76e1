--- Long text on a terminal: shown a screen at a time by $PAGER, or by less where that is there.
--
-- Invariant: what goes to a pipe or a file is written as it is.

local host = require "lutra.repl.host"

local pager = {}

-- $PAGER; less with the colours of the text, without clearing the screen; nil: none.
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

--- Shows `text`, which gets a newline at its end.
function pager.show(text)
  local columns, rows = host.terminal_size()
  local long = columns and host.isatty(1) and host.isatty(0)
    and count_rows(text, columns) > (rows or 24) - 1
  local program = long and command()
  io.stdout:flush()
  local pipe = program and io.popen(program, "w")
  if not pipe then
    io.stdout:write(text, "\n")
    return
  end
  pipe:write(text, "\n")
  pipe:close()
end

return pager
