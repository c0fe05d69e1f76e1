--- Lanes (lutra.plot.lanes) as an SVG picture, with lines of text below them.

local plain = require "lutra.profiler.plain"
local svg = require "lutra.plot.svg"
local texts = require "lutra.plot.texts"

local lanes_svg = {}

local LEFT, WIDTH, HEIGHT, GAP, MARGIN, LINE = 100, 700, 22, 8, 16, 16
local TICKS = 4 -- parts of the axis

local function color(kind)
  if kind == "work" or kind == "wait" then return svg.colors[kind] end
  return svg.colors.copy
end

local function tip(span)
  local e = span.event
  local parts = {e.op or e.name or e.kind, plain.seconds((span.finish - span.begin) * 1e-6)}
  if e.kind == "copy" then
    table.insert(parts, 2, ("%s -> %s, %s"):format(e.from, e.to, texts.bytes(e.bytes)))
  end
  parts[#parts + 1] = e.where
  return table.concat(parts, ", ")
end

-- Boxes of a lane; those too narrow to be told apart become one.
local function boxes(lane, picture, y, parts)
  local scale = WIDTH / math.max(picture.finish - picture.begin, 1e-9)
  local ends = {} -- where the last box of a colour ends
  for _, span in ipairs(lane.spans) do
    local x = (span.begin - picture.begin) * scale
    local width = math.max((span.finish - span.begin) * scale, 1)
    local fill = color(span.kind)
    if width > 1 or x + 0.5 >= (ends[fill] or 0) then
      x = math.min(x, WIDTH - width)
      parts[#parts + 1] = svg.box(MARGIN + LEFT + x, y, width, HEIGHT, fill, tip(span))
      ends[fill] = x + width
    end
  end
end

local function axis(picture, y, parts)
  local length = picture.finish - picture.begin
  for i = 0, TICKS do
    local x = MARGIN + LEFT + WIDTH * i / TICKS
    parts[#parts + 1] = svg.box(x, y, 1, 5, "#777777")
    parts[#parts + 1] = svg.text(x + 3, y + 10,
      i == 0 and "0" or plain.seconds(length * i / TICKS * 1e-6), "small")
  end
end

--- The SVG text of a picture with a title and lines of text.
function lanes_svg.text(picture, title, lines)
  local parts, y = {svg.text(MARGIN, MARGIN + 12, title, "title")}, MARGIN + 28
  for _, lane in ipairs(picture.lanes) do
    parts[#parts + 1] = svg.text(MARGIN, y + HEIGHT - 6, lane.name)
    parts[#parts + 1] = svg.box(MARGIN + LEFT, y, WIDTH, HEIGHT, svg.colors.idle)
    boxes(lane, picture, y, parts)
    y = y + HEIGHT + GAP
  end
  if #picture.lanes > 0 then
    axis(picture, y, parts)
    parts[#parts + 1] = svg.legend(MARGIN + LEFT, y + 32, {{svg.colors.work, "work"},
      {svg.colors.copy, "copies"}, {svg.colors.wait, "the host waits"}, {svg.colors.idle, "idle"}})
    y = y + 48
  end
  local widest = 0
  for _, line in ipairs(lines) do
    y = y + LINE
    parts[#parts + 1] = svg.text(MARGIN, y, line)
    widest = math.max(widest, texts.width(line))
  end
  local width = math.max(LEFT + WIDTH + 50, widest * 7.4) + 2 * MARGIN
  return svg.picture(width, y + MARGIN, title, parts)
end

return lanes_svg
