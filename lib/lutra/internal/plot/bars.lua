--- Bars for a terminal: columns that are each of a kind, as characters and in colours.
--
-- Invariant: kinds that stand in one bar have marks of their own, so colours are never needed.

local bars = {}

local marks = {
  utf8 = {
    used = "█", part = "▄", cached = "▒", others = "░", free = "·", edge = "│",
    work = "█", to_device = "→", to_host = "←", between = "↔", wait = "░", idle = "·",
  },
  ascii = {
    used = "#", part = "+", cached = "=", others = ":", free = ".", edge = "|",
    work = "#", to_device = ">", to_host = "<", between = "=", wait = "~", idle = ".",
  },
}

local styles = {
  used = "name", part = "name", cached = "number", others = "warning", free = "faint",
  edge = "faint", work = "name", to_device = "number", to_host = "number", between = "number",
  wait = "warning", idle = "faint",
}

--- The marks of kinds: a table.
function bars.marks(utf8) return utf8 and marks.utf8 or marks.ascii end

--- "[██··]" of a list of kinds; paint(style, text) colours what stands together.
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
