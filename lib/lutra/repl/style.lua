--- Colours of output: the terminal's sixteen colours, so that its theme applies. Notebooks show the
-- same escapes.
--
-- Invariant: escapes are written only when style.on() is true.

local front = require "lutra.repl.front"
local host = require "lutra.repl.host"
local options = require "lutra.repl.options"

local style = {}

-- Select Graphic Rendition, ECMA-48 8.3.117.
local codes = {
  error = "31", warning = "33", heading = "1", faint = "2", name = "36", number = "35",
  string = "32", keyword = "34", comment = "2", match = "1;33",
}

--- The colours of the tokens of a cell that is being typed; those not listed are plain.
style.syntax = {
  keyword = codes.keyword, number = codes.number, string = codes.string, comment = codes.comment,
  match = codes.match, found = "7", command = codes.heading,
}

--- Returns whether escapes may be written to a file (1: stdout, 2: stderr).
function style.on(file)
  local wish = options.value.colors
  if wish ~= "auto" then return wish == "on" end
  local no, term = os.getenv "NO_COLOR", os.getenv "TERM"
  if no and no ~= "" then return false end -- no-color.org
  if front.notebook then return true end
  return term ~= nil and term ~= "" and term ~= "dumb" and host.isatty(file or 1)
end

--- Returns `text` in the colour of `kind`, for that file.
function style.paint(kind, text, file)
  if not style.on(file) then return text end
  return "\27[" .. codes[kind] .. "m" .. text .. "\27[0m"
end

local NOTEBOOK_WIDTH = 100 -- columns of output in a notebook, whose width is not known

--- Returns the width of output in columns.
function style.width()
  local width = options.value.width
  if width > 0 then return width end
  return front.notebook and NOTEBOOK_WIDTH or host.terminal_size() or 80
end

return style
