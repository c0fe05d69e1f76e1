--- Lays out a figure and draws it with a pen (lutra.plot.svg_pen, lutra.plot.raster_pen).

local axes = require "lutra.internal.plot.axes"
local colors = require "lutra.plot.colors"
local texts = require "lutra.internal.text"

local scene = {}

local LEFT, RIGHT, TOP, BOTTOM = 66, 18, 36, 50
local CHARACTER = 7.4 -- the width of a character in pixels, at most
local INK, GRID, PAPER = {70, 70, 70}, {225, 225, 225}, {255, 255, 255}

local function width_of(text) return CHARACTER * texts.width(text) end

-- Returns the text, cut to a width in pixels.
local function fitted(text, room) return texts.cut(text, math.max(1, room // CHARACTER)) end

--- Returns a list of ticks {value, text} of an axis of logarithms to the base 10.
function scene.log_ticks(lo, hi, count)
  local first, last = math.ceil(lo - 1e-9), math.floor(hi + 1e-9)
  local list, step = {}, math.max(1, math.ceil((last - first + 1) / math.max(count, 1)))
  for k = first, last, step do
    list[#list + 1] = {value = k,
      text = k >= -3 and k <= 4 and ("%g"):format(10.0 ^ k) or ("1e%d"):format(k)}
  end
  if #list >= 2 then return list end
  list = axes.ticks(lo, hi, count)
  for _, tick in ipairs(list) do tick.text = ("%.3g"):format(10.0 ^ tick.value) end
  return list
end

-- Returns the ticks whose labels do not touch, of a list from left to right.
local function spaced(ticks, to_x)
  local list, filled = {}, -math.huge
  for _, tick in ipairs(ticks) do
    local x, half = to_x(tick.value), width_of(tick.text) / 2
    if x - half >= filled then
      list[#list + 1], filled = tick, x + half + CHARACTER
    end
  end
  return list
end

-- Draws the grid, ticks and their labels. Returns the area {left, width, height} of the plot, which
-- leaves room for the labels at its left, and functions from values to pixels.
local function frame(pen, view)
  local height = pen.height - TOP - BOTTOM
  local y_ticks, left = view.y_ticks(view.y[1], view.y[2], height // 50), LEFT
  for _, tick in ipairs(y_ticks) do
    left = math.max(left, width_of(tick.text) + (view.ylabel and 26 or 10))
  end
  local width = pen.width - left - RIGHT
  local function to_x(v) return left + axes.share(v, view.x[1], view.x[2]) * width end
  local function to_y(v) return TOP + (1 - axes.share(v, view.y[1], view.y[2])) * height end
  local x_ticks = view.categories or view.x_ticks(view.x[1], view.x[2], width // 90)
  if not view.categories then
    for _, tick in ipairs(x_ticks) do pen:box(to_x(tick.value) - 0.5, TOP, 1, height, GRID) end
  end
  for _, tick in ipairs(spaced(x_ticks, to_x)) do
    pen:text(to_x(tick.value), TOP + height + 12, tick.text, "center")
  end
  for _, tick in ipairs(y_ticks) do
    local y = to_y(tick.value)
    pen:box(left, y - 0.5, width, 1, GRID)
    pen:text(left - 6, y, tick.text, "right")
  end
  return {left = left, width = width, height = height}, to_x, to_y
end

local function border(pen, area)
  pen:box(area.left, TOP, 1, area.height, INK)
  pen:box(area.left, TOP + area.height, area.width + 1, 1, INK)
end

-- Returns the parts of a line between its gaps, clipped to the plot's width and height by leaving
-- out points far outside.
local function runs(points, to_x, to_y)
  local list, run = {}, {}
  for _, p in ipairs(points) do
    if p[1] and p[2] then
      run[#run + 1] = {to_x(p[1]), to_y(p[2])}
    elseif #run > 0 then
      list[#list + 1], run = run, {}
    end
  end
  if #run > 0 then list[#list + 1] = run end
  return list
end

local function draw_series(pen, s, to_x, to_y)
  if s.kind == "bars" then
    for _, b in ipairs(s.bars) do
      local x1, x2, y1, y2 = to_x(b[1]), to_x(b[2]), to_y(b[3]), to_y(0)
      if s.floor then y2 = to_y(s.floor) end
      pen:box(x1 + 0.5, math.min(y1, y2), math.max(x2 - x1 - 1, 1), math.abs(y2 - y1), s.color)
    end
  elseif s.kind == "scatter" then
    for _, p in ipairs(s.points) do
      if p[1] and p[2] then pen:dot(to_x(p[1]), to_y(p[2]), 3, s.color) end
    end
  else
    for _, run in ipairs(runs(s.points, to_x, to_y)) do
      if #run == 1 then
        pen:dot(run[1][1], run[1][2], 2, s.color)
      else
        pen:polyline(run, s.color, 1.5)
      end
    end
  end
end

-- Returns how many points and bars of the series a box covers.
local function covered(series, x, y, width, height, to_x, to_y)
  local count = 0
  local function add(left, right, top, bottom)
    if right >= x and left <= x + width and bottom >= y and top <= y + height then
      count = count + 1
    end
  end
  for _, s in ipairs(series) do
    for _, p in ipairs(s.points or {}) do
      if p[1] and p[2] then
        local px, py = to_x(p[1]), to_y(p[2])
        add(px, px, py, py)
      end
    end
    for _, b in ipairs(s.bars or {}) do
      local y1, y2 = to_y(b[3]), to_y(s.floor)
      add(to_x(b[1]), to_x(b[2]), math.min(y1, y2), math.max(y1, y2))
    end
  end
  return count
end

-- Draws the names of the series on paper, in the corner where they cover the fewest values.
local function legend(pen, series, area, to_x, to_y)
  local labels, widest = {}, 0
  for _, s in ipairs(series) do
    if s.label then
      local text = fitted(s.label, area.width - 40)
      labels[#labels + 1] = {text = text, color = s.color}
      widest = math.max(widest, width_of(text))
    end
  end
  if #labels == 0 then return end
  local width, height = widest + 28, 16 * #labels + 4
  local right, bottom = area.left + area.width - width - 2, TOP + area.height - height - 2
  local x, y, least = nil, nil, math.huge
  for _, corner in ipairs{{right, TOP + 2}, {area.left + 3, TOP + 2}, {area.left + 3, bottom},
    {right, bottom}} do
    local count = covered(series, corner[1] - 4, corner[2] - 4, width + 8, height + 8, to_x, to_y)
    if count < least then x, y, least = corner[1], corner[2], count end
  end
  pen:box(x, y, width, height, PAPER)
  for i, label in ipairs(labels) do
    local middle = y - 6 + 16 * i
    pen:box(x + 4, middle - 4, 14, 8, label.color)
    pen:text(x + 23, middle, label.text, "left")
  end
end

-- Draws rows of {r, g, b} pixels as boxes; equal neighbors in a row are one.
local function draw_cells(pen, rows, left, top, width, height)
  local h, w = #rows, #rows[1]
  for y, row in ipairs(rows) do
    local first = 1
    for x = 1, w do
      local a, b = row[x], row[x + 1]
      if not b or a[1] ~= b[1] or a[2] ~= b[2] or a[3] ~= b[3] then
        local x1, x2 = left + (first - 1) * width / w, left + x * width / w
        local y1, y2 = top + (y - 1) * height / h, top + y * height / h
        pen:box(x1, y1, x2 - x1, y2 - y1, a)
        first = x + 1
      end
    end
  end
end

-- Draws an image or a heat map in the plot's area; keeps the ratio of its sides.
local function draw_image(pen, image)
  local h, w = #image.rows, #image.rows[1]
  local bar = image.range and 70 or 0
  local room_x, room_y = pen.width - LEFT - RIGHT - bar, pen.height - TOP - BOTTOM
  local scale = math.min(room_x / w, room_y / h)
  local left = LEFT + (room_x - scale * w) / 2
  draw_cells(pen, image.rows, left, TOP, scale * w, scale * h)
  if not image.range then return end
  local x = left + scale * w + 14
  for i = 0, 49 do
    pen:box(x, TOP + i * room_y / 50, 14, room_y / 50 + 0.5, colors.map(1 - i / 49))
  end
  pen:text(x + 20, TOP + 5, ("%.4g"):format(image.range[2]), "left")
  pen:text(x + 20, TOP + room_y - 5, ("%.4g"):format(image.range[1]), "left")
end

--- Draws a view: {series, image, x, y (ranges), x_ticks, y_ticks, categories, title, xlabel,
-- ylabel}, values on logarithmic axes as logarithms.
function scene.draw(pen, view)
  if view.image then
    draw_image(pen, view.image)
  else
    local area, to_x, to_y = frame(pen, view)
    for _, s in ipairs(view.series) do draw_series(pen, s, to_x, to_y) end
    border(pen, area)
    legend(pen, view.series, area, to_x, to_y)
  end
  local function across(text, y)
    if text then pen:text(pen.width / 2, y, fitted(text, pen.width - 8), "center") end
  end
  across(view.title, 16)
  across(view.xlabel, pen.height - 14)
  if view.ylabel then
    pen:text(12, (TOP + pen.height - BOTTOM) / 2, fitted(view.ylabel, pen.height - 8), "center",
      true)
  end
end

return scene
