--- Draws the parts of a plot into an image, uint8 {3, H, W}: see lutra.plot.svg_pen. Lines and
-- circles have soft edges: the color of a pixel is mixed by its distance.

local lt = require "lutra"
local font = require "lutra.plot.font"

local Pen = {}
Pen.__index = Pen

--- Returns a pen for a white picture of that size.
function Pen.new(width, height)
  local self = setmetatable({width = width, height = height, pixels = {}}, Pen)
  for i = 1, width * height do self.pixels[i] = 0xffffff end
  return self
end

-- Mixes a pixel, numbered from 0, with a color by a share from 0 to 1.
local function mix(self, x, y, color, share)
  if x < 0 or y < 0 or x >= self.width or y >= self.height or share <= 0 then return end
  local at = y * self.width + x + 1
  local old, new = self.pixels[at], 0
  share = math.min(share, 1)
  for c = 1, 3 do
    local shift = 24 - 8 * c
    local value = old >> shift & 255
    new = new | math.floor(value + (color[c] - value) * share + 0.5) << shift
  end
  self.pixels[at] = new
end

function Pen:box(x, y, width, height, color)
  local x2, y2 = math.floor(x + width + 0.5) - 1, math.floor(y + height + 0.5) - 1
  local x1, y1 = math.floor(x + 0.5), math.floor(y + 0.5)
  for row = math.max(y1, 0), math.min(math.max(y1, y2), self.height - 1) do
    for column = math.max(x1, 0), math.min(math.max(x1, x2), self.width - 1) do
      self.pixels[row * self.width + column + 1] = color[1] << 16 | color[2] << 8 | color[3]
    end
  end
end

-- Draws a segment. Only pixels near it are visited: along its longer direction.
local function segment(self, x1, y1, x2, y2, color, width)
  local dx, dy = x2 - x1, y2 - y1
  local length = (dx * dx + dy * dy) ^ 0.5
  local steep = math.abs(dy) > math.abs(dx)
  local reach = math.ceil(width) + 1
  local function visit(x, y)
    local along = length > 0 and ((x - x1) * dx + (y - y1) * dy) / length or 0
    along = math.max(0, math.min(length, along))
    local px, py = x1, y1
    if length > 0 then px, py = x1 + dx * along / length, y1 + dy * along / length end
    local distance = ((x - px) ^ 2 + (y - py) ^ 2) ^ 0.5
    mix(self, x, y, color, width / 2 + 0.5 - distance)
  end
  local first, last = steep and y1 or x1, steep and y2 or x2
  if first > last then first, last = last, first end
  local limit = steep and self.height or self.width
  for major = math.max(0, math.floor(first) - reach), math.min(limit - 1,
    math.ceil(last) + reach) do
    local from, to = steep and y1 or x1, steep and dy or dx
    local share = to ~= 0 and math.max(0, math.min(1, (major - from) / to)) or 0
    local minor = math.floor((steep and x1 + dx * share or y1 + dy * share) + 0.5)
    for k = minor - reach, minor + reach do
      if steep then visit(k, major) else visit(major, k) end
    end
  end
end

function Pen:polyline(points, color, width)
  for i = 2, #points do
    local a, b = points[i - 1], points[i]
    segment(self, a[1], a[2], b[1], b[2], color, width)
  end
end

function Pen:dot(x, y, radius, color)
  for row = math.floor(y - radius) - 1, math.ceil(y + radius) + 1 do
    for column = math.floor(x - radius) - 1, math.ceil(x + radius) + 1 do
      mix(self, column, row, color, radius + 0.5 - ((column - x) ^ 2 + (row - y) ^ 2) ^ 0.5)
    end
  end
end

local INK = {34, 34, 34}

function Pen:text(x, y, text, anchor, up)
  local length = font.width(text)
  local start = anchor == "center" and -length // 2 or anchor == "right" and -length or 0
  x, y = math.floor(x + 0.5), math.floor(y + 0.5)
  for _, p in ipairs(font.dots(text)) do
    local along, across = start + p[1], p[2] - font.HEIGHT // 2
    local dx, dy = along, across
    if up then dx, dy = across, -along end
    mix(self, x + dx, y + dy, INK, 1)
  end
end

--- Returns the image, uint8 {3, H, W}.
function Pen:finish()
  local rows = {}
  for y = 1, self.height do
    local row = {}
    for x = 1, self.width do
      local v = self.pixels[(y - 1) * self.width + x]
      row[x] = string.char(v >> 16, v >> 8 & 255, v & 255)
    end
    rows[y] = table.concat(row)
  end
  return lt.frombuffer(table.concat(rows), {dtype = "uint8"}):reshape(self.height, self.width, 3)
    :permute(3, 1, 2):contiguous()
end

return Pen
