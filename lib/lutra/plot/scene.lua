--- Lays out a figure and draws it with a pen (lutra.plot.svg_pen, lutra.plot.raster_pen).

local axes = require "lutra.internal.plot.axes"
local colors = require "lutra.plot.colors"

local scene = {}

local LEFT, RIGHT, TOP, BOTTOM = 66, 18, 36, 50
local INK, GRID = {70, 70, 70}, {225, 225, 225}

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

-- Draws the frame, ticks and texts; returns functions from values to pixels.
local function frame(pen, view)
  local width, height = pen.width - LEFT - RIGHT, pen.height - TOP - BOTTOM
  local function to_x(v) return LEFT + axes.share(v, view.x[1], view.x[2]) * width end
  local function to_y(v) return TOP + (1 - axes.share(v, view.y[1], view.y[2])) * height end
  local x_ticks = view.categories or view.x_ticks(view.x[1], view.x[2], width // 90)
  for _, tick in ipairs(x_ticks) do
    local x = to_x(tick.value)
    if not view.categories then pen:box(x - 0.5, TOP, 1, height, GRID) end
    pen:text(x, TOP + height + 12, tick.text, "center")
  end
  for _, tick in ipairs(view.y_ticks(view.y[1], view.y[2], height // 50)) do
    local y = to_y(tick.value)
    pen:box(LEFT, y - 0.5, width, 1, GRID)
    pen:text(LEFT - 6, y, tick.text, "right")
  end
  return to_x, to_y, width, height
end

local function border(pen, width, height)
  pen:box(LEFT, TOP, 1, height, INK)
  pen:box(LEFT, TOP + height, width + 1, 1, INK)
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

local function legend(pen, series)
  local y = TOP + 12
  for _, s in ipairs(series) do
    if s.label then
      local x = pen.width - RIGHT - 26 - 7.4 * utf8.len(s.label)
      pen:box(x, y - 4, 14, 8, s.color)
      pen:text(x + 19, y, s.label, "left")
      y = y + 16
    end
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
    local to_x, to_y, width, height = frame(pen, view)
    for _, s in ipairs(view.series) do draw_series(pen, s, to_x, to_y) end
    border(pen, width, height)
    legend(pen, view.series)
  end
  if view.title then pen:text(pen.width / 2, 16, view.title, "center") end
  if view.xlabel then pen:text(pen.width / 2, pen.height - 14, view.xlabel, "center") end
  if view.ylabel then pen:text(12, (TOP + pen.height - BOTTOM) / 2, view.ylabel, "center", true) end
end

return scene
