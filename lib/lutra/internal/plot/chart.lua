--- Charts of curves and points with axes, as lines of text.
--
-- The series of a chart come from lutra.internal.plot.data; a series is {points}, {bars} or
-- {cloud}, with a color. The ranges of the axes are those of the data.

local axes = require "lutra.internal.plot.axes"
local canvas = require "lutra.internal.plot.canvas"
local texts = require "lutra.internal.text"

local chart = {}

local frames = {
  utf8 = {side = "│", tick = "┤", bottom = "─", under = "┬", corner = "└"},
  ascii = {side = "|", tick = "+", bottom = "-", under = "+", corner = "+"},
}

local function widen(range, value)
  if not value then return end
  if not range.lo or value < range.lo then range.lo = value end
  if not range.hi or value > range.hi then range.hi = value end
end

-- Returns the ranges of x and y over all series.
local function ranges(series)
  local x, y = {}, {}
  for _, s in ipairs(series) do
    for _, p in ipairs(s.points or s.cloud or s.bars) do
      widen(x, p[1])
      widen(y, p[2])
      widen(y, p[3])
    end
  end
  return x, y
end

-- Returns a function from values to dots 1..count, and the values of the first and the last dot.
local function scale(range, count, from_top)
  local lo, hi = axes.range(range.lo, range.hi)
  return function(value)
    local share = axes.share(value, lo, hi)
    if from_top then share = 1 - share end
    return 1 + math.floor(share * (count - 1) + 0.5)
  end, lo, hi
end

local function draw_points(c, s, to_x, to_y)
  local last_x, last_y
  for _, p in ipairs(s.points) do
    local x, y = p[1] and p[2] and to_x(p[1]), p[2] and to_y(p[2])
    if y and last_y and not s.scattered then
      c:line(last_x, last_y, x, y, s.color)
    elseif y then
      c:dot(x, y, s.color)
    end
    last_x, last_y = x, y
  end
end

local function draw_cloud(c, s, to_x, to_y)
  for _, p in ipairs(s.cloud) do c:dot(to_x(p[1]), to_y(p[2]), s.color) end
end

-- Draws a bar from the least to the largest value in each column; adjacent bars that would not
-- touch are joined.
local function draw_bars(c, s, to_x, to_y)
  local last
  for _, b in ipairs(s.bars) do
    local now
    if b[2] then
      now = {x = to_x(b[1]), bottom = to_y(b[2]), top = to_y(b[3])}
      c:line(now.x, now.top, now.x, now.bottom, s.color)
      if last and last.top > now.bottom then
        c:line(last.x, last.top, now.x, now.bottom, s.color)
      elseif last and last.bottom < now.top then
        c:line(last.x, last.bottom, now.x, now.top, s.color)
      end
    end
    last = now
  end
end

local function draw(c, series, to_x, to_y)
  for _, s in ipairs(series) do
    local way = s.points and draw_points or s.cloud and draw_cloud or draw_bars
    way(c, s, to_x, to_y)
  end
end

-- Returns the tick label of each row of characters, and the width of the widest.
local function side_labels(lo, hi, rows, dots_y, to_y, ticks)
  local labels, width = {}, 0
  for _, tick in ipairs(ticks(lo, hi, math.max(2, rows // 4))) do
    local row = (to_y(tick.value) - 1) // dots_y + 1
    if not labels[row] then labels[row] = tick.text end
    width = math.max(width, #tick.text)
  end
  return labels, width
end

-- Returns the x axis and the line of its labels, of which those that would touch are omitted.
local function bottom(lo, hi, columns, dots_x, to_x, frame, whole, ticks)
  local marks, numbers, filled = {}, "", 0
  for i = 1, columns do marks[i] = frame.bottom end
  for _, tick in ipairs(ticks(lo, hi, math.max(2, columns // 12), whole)) do
    local column = (to_x(tick.value) - 1) // dots_x + 1
    local start = math.max(1, math.min(column - #tick.text // 2, columns - #tick.text + 1))
    if start > filled + (filled > 0 and 1 or 0) and column <= columns then
      marks[column] = frame.under
      numbers = texts.pad(numbers, start - 1) .. tick.text
      filled = #numbers
    end
  end
  return table.concat(marks), numbers
end

--- Returns the chart as a list of lines; nil when no series has a point. options: width, height (in
-- characters, including the frame), utf8, paint(color, text), whole (the x axis counts integers),
-- x_ticks and y_ticks (functions as axes.ticks, that by default), x and y (ranges {lo, hi}, those
-- of the data by default).
function chart.lines(series, options)
  local x, y = ranges(series)
  for range, given in pairs{[x] = options.x or {x.lo, x.hi}, [y] = options.y or {y.lo, y.hi}} do
    if range.lo then range.lo, range.hi = given[1], given[2] end
  end
  if not x.lo or not y.lo then return nil end
  local frame = options.utf8 and frames.utf8 or frames.ascii
  local rows = math.max(options.height - 2, 2)
  local probe = canvas.new(1, rows, options.utf8)
  local to_y, y_lo, y_hi = scale(y, probe.height, true)
  local labels, label_width = side_labels(y_lo, y_hi, rows, probe.dots_y, to_y,
    options.y_ticks or axes.ticks)
  if options.width - label_width < 5 then labels, label_width = {}, 0 end -- too narrow
  local columns = math.max(options.width - label_width - 1, 4)
  local c = canvas.new(columns, rows, options.utf8)
  local to_x, x_lo, x_hi = scale(x, c.width)
  draw(c, series, to_x, to_y)

  local lines = {}
  for row, text in ipairs(c:lines(options.paint)) do
    local edge = labels[row] and frame.tick or frame.side
    lines[row] = texts.pad(labels[row] or "", label_width, true) .. edge .. text
  end
  local marks, numbers = bottom(x_lo, x_hi, columns, c.dots_x, to_x, frame, options.whole,
    options.x_ticks or axes.ticks)
  local space = (" "):rep(label_width)
  lines[#lines + 1] = space .. frame.corner .. marks
  lines[#lines + 1] = space .. " " .. numbers
  return lines
end

--- Returns the maximum width in dots of a chart of `width` characters.
function chart.dots(width, utf8_terminal)
  return math.max(1, width - 2) * (utf8_terminal and 2 or 1)
end

return chart
