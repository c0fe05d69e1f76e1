--- Draws the parts of a plot as SVG. A pen has the methods box, polyline, dot and text, in pixels
-- from the left top; lutra.plot.raster_pen is the other one.

local svg = require "lutra.internal.plot.svg"

local Pen = {}
Pen.__index = Pen

local function hex(color) return ("#%02x%02x%02x"):format(color[1], color[2], color[3]) end

--- Returns a pen for a picture of that size.
function Pen.new(width, height)
  return setmetatable({width = width, height = height, parts = {}}, Pen)
end

local function add(self, format, ...) self.parts[#self.parts + 1] = format:format(...) end

--- Fills a rectangle.
function Pen:box(x, y, width, height, color)
  add(self, '<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>\n', x, y, width, height,
    hex(color))
end

--- Draws a line through a list of points {x, y}.
function Pen:polyline(points, color, width)
  local texts = {}
  for i, p in ipairs(points) do texts[i] = ("%.2f,%.2f"):format(p[1], p[2]) end
  add(self, '<polyline points="%s" fill="none" stroke="%s" stroke-width="%g" '
    .. 'stroke-linejoin="round"/>\n', table.concat(texts, " "), hex(color), width)
end

--- Fills a circle.
function Pen:dot(x, y, radius, color)
  add(self, '<circle cx="%.2f" cy="%.2f" r="%g" fill="%s"/>\n', x, y, radius, hex(color))
end

local anchors = {left = "start", center = "middle", right = "end"}

--- Writes a string, whose middle line is at y. anchor: "left", "center" or "right" of it is at x.
-- `up`: it is turned by 90 degrees.
function Pen:text(x, y, text, anchor, up)
  add(self, '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>\n', x, y + 4, anchors[anchor],
    up and (' transform="rotate(-90 %.1f %.1f)"'):format(x, y) or "", svg.escape(text))
end

--- Returns the SVG.
function Pen:finish(title) return svg.picture(self.width, self.height, title, self.parts) end

return Pen
