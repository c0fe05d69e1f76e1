--- The logo that front ends show beside the kernel's name: a matrix in a rounded square, with the
-- moon of Lua. One list of shapes is written as SVG and drawn as PNG.

local core = require "lutra.core"
local png = require "lutra.internal.png"

local logo = {}

-- Shapes in a square of 64 x 64: {x, y, width, height, corner radius, color, opacity}; a circle is
-- a square whose radius is half its width.
local shapes = {{2, 2, 60, 60, 13, {0x30, 0x3f, 0x9f}, 1}}
local opacity = {{0.35, 0.6, 0.85}, {0.55, 0.95, 0.5}, {0.8, 0.45, 0.3}}
for row, values in ipairs(opacity) do
  for column, value in ipairs(values) do
    shapes[#shapes + 1] = {column * 14 - 3, row * 14 - 1, 12, 12, 2, {255, 255, 255}, value}
  end
end
shapes[#shapes + 1] = {46, 5, 13, 13, 6.5, {0xff, 0xc1, 0x07}, 1}

--- Returns the logo as SVG.
function logo.svg()
  local out = {'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" '
    .. 'height="64">'}
  for _, s in ipairs(shapes) do
    local x, y, width, height, radius, color, alpha = table.unpack(s)
    out[#out + 1] = ('<rect x="%g" y="%g" width="%g" height="%g" rx="%g" fill="#%02x%02x%02x" '
      .. 'fill-opacity="%g"/>'):format(x, y, width, height, radius, color[1], color[2], color[3],
      alpha)
  end
  out[#out + 1] = "</svg>\n"
  return table.concat(out, "\n")
end

-- Returns whether the point is inside a shape.
local function inside(s, x, y)
  local left, top, right, bottom, r = s[1], s[2], s[1] + s[3], s[2] + s[4], s[5]
  if x < left or x > right or y < top or y > bottom then return false end
  local dx = math.max(left + r - x, x - (right - r), 0)
  local dy = math.max(top + r - y, y - (bottom - r), 0)
  return dx * dx + dy * dy <= r * r
end

-- Adds the color of the point to `sum`: red, green, blue, each times alpha, and alpha.
local function add_point(sum, x, y)
  local color, alpha = {0, 0, 0}, 0
  for _, s in ipairs(shapes) do
    if inside(s, x, y) then
      for c = 1, 3 do color[c] = color[c] * (1 - s[7]) + s[6][c] * s[7] end
      alpha = alpha + (1 - alpha) * s[7]
    end
  end
  for c = 1, 3 do sum[c] = sum[c] + color[c] * alpha end
  sum[4] = sum[4] + alpha
end

local SAMPLES = 3 -- points of a pixel in each direction

-- Returns red, green, blue and alpha of a pixel, from 0 to 255.
local function pixel(x, y, scale)
  local sum = {0, 0, 0, 0}
  for i = 0, SAMPLES * SAMPLES - 1 do
    add_point(sum, (x + (i % SAMPLES + 0.5) / SAMPLES) * scale,
      (y + (i // SAMPLES + 0.5) / SAMPLES) * scale)
  end
  local result = {0, 0, 0, math.floor(255 * sum[4] / SAMPLES ^ 2 + 0.5)}
  if sum[4] > 0 then
    for c = 1, 3 do result[c] = math.floor(sum[c] / sum[4] + 0.5) end
  end
  return result
end

--- Returns the logo as the bytes of a PNG file of size x size pixels.
function logo.png(size)
  local rows = {}
  for y = 1, size do
    rows[y] = {}
    for x = 1, size do rows[y][x] = pixel(x - 1, y - 1, 64 / size) end
  end
  return png.encode(core.tensor(rows, {dtype = "uint8"}))
end

return logo
