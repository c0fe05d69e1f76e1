--- Formats the candidates of a completion for the terminal: one per line with its note when there
-- is room, else in columns.
--
-- Invariant: no line is wider than the terminal, and there is at most one line more than the
-- allowed rows.

local texts = require "lutra.internal.text"

local listing = {}

-- Returns the words that are shown, and the width of the widest.
local function words_of(items)
  local words, widest = {}, 0
  for i, item in ipairs(items) do
    words[i] = (item.shown or item.text):gsub("%c", "?")
    widest = math.max(widest, texts.width(words[i]))
  end
  return words, widest
end

local function with_notes(items, words, widest, width)
  local lines = {}
  for i, item in ipairs(items) do
    local line = item.note and texts.pad(words[i], widest) .. "  " .. item.note or words[i]
    lines[i] = texts.cut(line:gsub("%c", " "), width)
  end
  return table.concat(lines, "\n")
end

local function in_columns(words, widest, width, most_rows)
  local across = math.max(1, (width + 1) // (widest + 2))
  local shown = math.min(#words, across * most_rows)
  local rows = (shown + across - 1) // across
  local lines = {}
  for row = 1, rows do
    local parts = {}
    for i = row, shown, rows do parts[#parts + 1] = texts.pad(words[i], widest + 2) end
    lines[row] = texts.cut(table.concat(parts):gsub("%s+$", ""), width)
  end
  if shown < #words then lines[#lines + 1] = ("... %d more"):format(#words - shown) end
  return table.concat(lines, "\n")
end

--- Returns the text for `items` (from complete.at) on `width` columns, in at most `most_rows` lines
-- and one that states the number of omitted candidates.
function listing.text(items, width, most_rows)
  local words, widest = words_of(items)
  local noted = false
  for _, item in ipairs(items) do noted = noted or item.note ~= nil end
  if noted and #items <= most_rows then return with_notes(items, words, widest, width) end
  return in_columns(words, widest, width, most_rows)
end

return listing
