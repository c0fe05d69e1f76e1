--- A figure as lines of text, for the terminal: braille dots, blocks of colors, bars; ASCII where
-- the locale is not UTF-8.

local blocks = require "lutra.internal.plot.blocks"
local chart = require "lutra.internal.plot.chart"
local texts = require "lutra.internal.text"

local terminal = {}

local HEIGHT = 18

-- Returns the style of the prompt, or nil in a Lua without it; colors are used on a terminal only.
local function style()
  local ok, found = pcall(require, "lutra.repl.style")
  return ok and found or nil
end

local function paint(color, text)
  local s = style()
  return s and s.paint(color, text) or text
end

local function width()
  local s = style()
  return s and math.max(20, math.min(s.width() - 1, 100)) or 72
end

-- Returns the number of bits of the terminal's colors; nil without.
local function depth()
  local s = style()
  if not s or not s.on(1) or not texts.is_utf8() then return nil end
  local says = os.getenv "COLORTERM" or ""
  return (says:find "truecolor" or says:find "24bit") and 24 or 8
end

-- Returns rows of pixels with at most so many columns and rows: the nearest ones.
local function reduced(rows, columns, lines)
  local h, w = #rows, #rows[1]
  local scale = math.max(1, w / columns, h / lines)
  local out = {}
  for y = 1, math.max(1, math.floor(h / scale)) do
    out[y] = {}
    for x = 1, math.max(1, math.floor(w / scale)) do
      out[y][x] = rows[math.min(h, math.floor((y - 0.5) * scale) + 1)][
        math.min(w, math.floor((x - 0.5) * scale) + 1)]
    end
  end
  return out
end

local function value_of(bar) return ("%.6g"):format(bar.value) end

-- Returns the lines of bars: a row for each, with its name and its value. Lengths are distances
-- from the axis, s.floor.
local function bar_lines(s, room)
  local label_width, value_width, most = 0, 0, 0
  for _, b in ipairs(s.bars) do
    label_width = math.max(label_width, texts.width(b.name))
    value_width = math.max(value_width, #value_of(b))
    most = math.max(most, math.abs(b[3] - s.floor))
  end
  local lines = {}
  for i, b in ipairs(s.bars) do
    local length = most > 0 and math.floor(math.abs(b[3] - s.floor) / most
      * math.max(room - label_width - value_width - 2, 4) + 0.5) or 0
    local mark = texts.is_utf8() and "█" or "#"
    lines[i] = ("%s %s %s"):format(texts.pad(b.name, label_width, true),
      paint(s.kind_of_color, mark:rep(length)), value_of(b))
  end
  return lines
end

-- Returns what chart draws of a series.
local function for_chart(s)
  return {points = s.points, color = s.kind_of_color, scattered = s.kind == "scatter"}
end

local function body(view, room)
  if view.image then
    local rows = reduced(view.image.rows, room, 2 * HEIGHT)
    return blocks.lines(rows, #rows[1], depth())
  end
  if #view.series == 0 then return {"(nothing to draw)"} end
  local curves, lines = {}, {}
  for _, s in ipairs(view.series) do
    if s.points then curves[#curves + 1] = for_chart(s) end
  end
  if #curves > 0 then
    lines = chart.lines(curves, {width = room, height = HEIGHT, utf8 = texts.is_utf8(),
      paint = paint, x_ticks = view.x_ticks, y_ticks = view.y_ticks, x = view.x, y = view.y})
      or {"(no finite values)"}
  end
  for _, s in ipairs(view.series) do
    if s.bars then
      local rows = bar_lines(s, room)
      table.move(rows, 1, #rows, #lines + 1, lines)
    end
  end
  return lines
end

-- Returns the names of the series, in lines of at most `room` columns.
local function legend(series, room)
  local lines, filled = {}, 0
  for _, s in ipairs(series) do
    if s.label then
      local label = texts.cut(s.label, room - 2)
      local name = paint(s.kind_of_color, (texts.is_utf8() and "■ " or "* ") .. label)
      local columns = texts.width(label) + 2
      if #lines > 0 and filled + 3 + columns <= room then
        lines[#lines], filled = lines[#lines] .. "   " .. name, filled + 3 + columns
      else
        lines[#lines + 1], filled = name, columns
      end
    end
  end
  return lines
end

--- Returns a view (lutra.plot.scene) as text.
function terminal.text(view)
  local room, lines = width(), {}
  if view.title then lines[1] = texts.cut(view.title, room) end
  if view.ylabel then lines[#lines + 1] = texts.cut(view.ylabel, room) end
  for _, line in ipairs(body(view, room)) do lines[#lines + 1] = line end
  if view.xlabel then
    local label = texts.cut(view.xlabel, room)
    lines[#lines + 1] = (" "):rep((room - texts.width(label)) // 2) .. label
  end
  if view.image and view.image.range then
    lines[#lines + 1] = ("from %.4g to %.4g"):format(view.image.range[1], view.image.range[2])
  end
  for _, line in ipairs(legend(view.series, room)) do lines[#lines + 1] = line end
  return table.concat(lines, "\n")
end

return terminal
