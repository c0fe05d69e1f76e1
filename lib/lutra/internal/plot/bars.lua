--- Bars for a terminal: one character per column, by kind, with colours.
--
-- Invariant: each kind in a bar has its own character, so that colours are not needed to read it.

local bars = {}

local marks = {
  utf8 = {
    used = "█", part = "▄", cached = "▒", others = "░", free = "·", edge = "│",
    work = "█", to_device = "→", to_host = "←", between = "↔", ranks = "≡", wait = "░",
    idle = "·",
  },
  ascii = {
    used = "#", part = "+", cached = "=", others = ":", free = ".", edge = "|",
    work = "#", to_device = ">", to_host = "<", between = "=", ranks = "*", wait = "~",
    idle = ".",
  },
}

local styles = {
  used = "name", part = "name", cached = "number", others = "warning", free = "faint",
  edge = "faint", work = "name", to_device = "number", to_host = "number", between = "number",
  ranks = "number", wait = "warning", idle = "faint",
}

--- Returns the table of the characters of kinds.
function bars.marks(utf8) return utf8 and marks.utf8 or marks.ascii end

--- Returns the bar of a list of kinds, such as "[██··]"; paint(style, text) colours each run.
function bars.line(columns, utf8, paint)
  local text, parts, i = bars.marks(utf8), {}, 1
  while i <= #columns do
    local first, kind = i, columns[i]
    while columns[i] == kind do i = i + 1 end
    parts[#parts + 1] = paint(styles[kind], text[kind]:rep(i - first))
  end
  return "[" .. table.concat(parts) .. "]"
end

return bars
