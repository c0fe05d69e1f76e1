--- The candidates of a completion as text for the terminal: one a line with its note where there is
-- room for that, else in columns.
--
-- Invariant: no line is wider than the terminal, and there are at most one more than the rows that
-- may be used.

local texts = require "lutra.internal.text"

local listing = {}

-- The words that are shown, and the width of the widest.
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

--- The text for `items` (as complete.at gives them) on `width` columns, in at most `most_rows`
-- lines and one that says how many there are more.
function listing.text(items, width, most_rows)
  local words, widest = words_of(items)
  local noted = false
  for _, item in ipairs(items) do noted = noted or item.note ~= nil end
  if noted and #items <= most_rows then return with_notes(items, words, widest, width) end
  return in_columns(words, widest, width, most_rows)
end

return listing
