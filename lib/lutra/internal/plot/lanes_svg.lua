--- A timeline (lutra.internal.plot.lanes) as an SVG picture, with lines of text below it.

local axes = require "lutra.internal.plot.axes"
local svg = require "lutra.internal.plot.svg"
local texts = require "lutra.internal.text"

local lanes_svg = {}

local WIDTH, HEIGHT, GAP, MARGIN, LINE = 700, 24, 8, 16, 16
local BUSY = 44 -- width of the share of time behind a lane
local TITLE = 8.6 -- width of a letter of the title
local TICKS = 5 -- approximate number of parts of the axis

local arrows = {to_device = "→", to_host = "←", between = "↔", ranks = "≡"}

local legend = {
  {"work", "work"}, {"to_device", "→ copy to a device"}, {"to_host", "← copy to the host"},
  {"between", "↔ copy between devices"}, {"ranks", "≡ between ranks"}, {"wait", "host blocked"},
  {"idle", "idle"},
}

local function tip(span)
  local e = span.event
  local parts = {e.op or e.name or e.kind, texts.seconds((span.finish - span.begin) * 1e-6)}
  if e.kind == "copy" then
    table.insert(parts, 2, ("%s -> %s, %s"):format(e.from, e.to, texts.bytes(e.bytes)))
  end
  if e.kind == "collective" then
    table.insert(parts, 2, ("%s, %s"):format(texts.plural(e.comm.size, "rank"),
      texts.bytes(e.bytes)))
  end
  parts[#parts + 1] = e.where
  return table.concat(parts, ", ")
end

-- Returns the labels that may be written into a box, the longest first.
local function words_of(span)
  local e = span.event
  if span.kind == "work" then return {e.kind == "copy" and "start copy" or e.name or e.op} end
  local arrow = arrows[span.kind]
  return {("%s %s"):format(arrow, texts.bytes(e.bytes or 0)), arrow}
end

-- Appends the boxes of a lane; those too narrow to be distinguished are merged.
local function boxes(lane, picture, left, y, parts)
  local scale = WIDTH / math.max(picture.finish - picture.begin, 1e-9)
  local ends = {} -- kind -> end of its last box
  for _, span in ipairs(lane.spans) do
    local x = (span.begin - picture.begin) * scale
    local width = math.max((span.finish - span.begin) * scale, 1)
    if width > 1 or x + 0.5 >= (ends[span.kind] or 0) then
      x = math.min(x, WIDTH - width)
      local edge = width > 4 and 0.5 or 0 -- a gap between boxes
      parts[#parts + 1] = svg.kind_box(left + x + edge, y, width - 2 * edge, HEIGHT, span.kind,
        tip(span), span.kind ~= "wait" and words_of(span))
      ends[span.kind] = x + width
    end
  end
end

local function axis(picture, left, y, parts)
  local length = math.max(picture.finish - picture.begin, 1e-9)
  for _, tick in ipairs(axes.ticks(0, length, TICKS)) do
    local x = left + WIDTH * tick.value / length
    parts[#parts + 1] = svg.box(x, y, 1, 5, "#777777")
    parts[#parts + 1] = svg.text(x + 3, y + 11,
      tick.value == 0 and "0" or texts.seconds(tick.value * 1e-6), "small")
  end
end

local function legend_of(picture)
  local seen, list = {idle = true}, {}
  for _, lane in ipairs(picture.lanes) do
    for _, span in ipairs(lane.spans) do seen[span.kind] = true end
  end
  for _, item in ipairs(legend) do
    if seen[item[1]] then list[#list + 1] = item end
  end
  return list
end

--- Returns the SVG of a timeline with a title, shortened to one line, and lines of text.
function lanes_svg.text(picture, title, lines)
  local label = 0
  for _, lane in ipairs(picture.lanes) do label = math.max(label, texts.width(lane.name)) end
  local left, widest = MARGIN + label * svg.LETTER + 12, 0
  for _, line in ipairs(lines) do widest = math.max(widest, texts.width(line) * svg.LETTER) end
  local width = math.max(#picture.lanes > 0 and left + WIDTH + BUSY or 0, MARGIN + widest) + MARGIN
  title = title:gsub("%s+", " ")
  local parts = {svg.text(MARGIN, MARGIN + 12,
    texts.cut(title, math.max(40, (width - 2 * MARGIN) // TITLE)), "title")}
  width = math.max(width, 40 * TITLE + 2 * MARGIN)
  local y = MARGIN + 28
  if #picture.lanes > 0 then
    parts[#parts + 1] = svg.text(left + WIDTH + 8, y + 4, "busy", "small")
    y = y + 10
  end
  for _, lane in ipairs(picture.lanes) do
    parts[#parts + 1] = svg.text(MARGIN, y + HEIGHT - 8, lane.name)
    parts[#parts + 1] = svg.kind_box(left, y, WIDTH, HEIGHT, "idle")
    boxes(lane, picture, left, y, parts)
    parts[#parts + 1] = svg.text(left + WIDTH + 8, y + HEIGHT - 8,
      ("%3.0f%%"):format(lane.share * 100), "small")
    y = y + HEIGHT + GAP
  end
  if #picture.lanes > 0 then
    axis(picture, left, y, parts)
    local words, more = svg.legend(left, y + 34, legend_of(picture), WIDTH)
    parts[#parts + 1] = words
    y = y + 50 + more
  end
  for _, line in ipairs(lines) do
    y = y + LINE
    parts[#parts + 1] = svg.text(MARGIN, y, line)
  end
  return svg.picture(width, y + MARGIN, title, parts)
end

return lanes_svg
