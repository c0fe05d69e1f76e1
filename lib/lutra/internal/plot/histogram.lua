--- A histogram as lines of text: a row for each bin, with a bar of its count.

local axes = require "lutra.internal.plot.axes"
local texts = require "lutra.internal.text"

local histogram = {}

local eighths = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

-- Returns a bar of `eights` eighths of a character.
local function bar(eights, utf8_terminal)
  if not utf8_terminal then return ("#"):rep(math.max(1, (eights + 4) // 8)) end
  return eighths[8]:rep(eights // 8) .. (eighths[eights % 8] or "")
end

-- Formats the edges with as few digits as distinguish them.
local function edge_texts(edges)
  for digits = 3, 17 do
    local list, seen, same = {}, {}, false
    for i, edge in ipairs(edges) do
      list[i] = ("%%.%dg"):format(digits):format(edge)
      same = same or seen[list[i]]
      seen[list[i]] = true
    end
    if not same or digits == 17 then return list end
  end
end

--- Returns the edges of `bins` equal parts of lo..hi.
function histogram.edges(lo, hi, bins)
  local edges = {}
  for i = 0, bins do edges[i + 1] = axes.at(lo, hi, i / bins) end
  edges[bins + 1] = hi
  return edges
end

--- Returns the lines for the counts between edges. options: width, utf8, paint(text) colours bars.
function histogram.lines(edges, counts, options)
  local labels, label_width, most, number_width = edge_texts(edges), 0, 0, 0
  for i, count in ipairs(counts) do
    label_width = math.max(label_width, #labels[i], #labels[i + 1])
    most = math.max(most, count)
    number_width = math.max(number_width, #texts.count(count))
  end
  local room = math.max(options.width - 2 * label_width - number_width - 6, 4)
  local lines = {}
  for i, count in ipairs(counts) do
    local eights = most > 0 and math.floor(count / most * room * 8 + 0.5) or 0
    if count > 0 and eights == 0 then eights = 1 end
    local text = eights > 0 and bar(eights, options.utf8) or ""
    lines[i] = ("%s .. %s %s%s"):format(texts.pad(labels[i], label_width, true),
      texts.pad(labels[i + 1], label_width, true),
      text ~= "" and options.paint(text) .. " " or "", texts.count(count))
  end
  return lines
end

return histogram
