--- Device memory as an SVG picture: usage, the allocator's blocks, and the tensors in them.

local svg = require "lutra.internal.plot.svg"
local texts = require "lutra.internal.text"

local devices_svg = {}

local WIDTH, HEIGHT, MARGIN, LINE, EDGE = 720, 24, 16, 16, 3
local LEFT = MARGIN + 72 -- the left edge of bars, behind their names
local NARROW = 2 -- narrower blocks are merged with adjacent ones
local TITLE = 8.6 -- width of a letter of a title

local keys = {"used", "cached", "others"}
local words = {used = "tensors", cached = "cached", others = "others", free = "free",
  part = "tensors and cache"}

-- Appends the bar of a device's memory usage.
local function fullness(device, y, parts)
  local x, taken = 0, 0
  local function add(key, bytes, width)
    local size = texts.bytes(bytes)
    parts[#parts + 1] = svg.kind_box(LEFT + x, y, width, HEIGHT, key,
      ("%s: %s"):format(words[key], size), {("%s %s"):format(words[key], size), size})
    x, taken = x + width, taken + bytes
  end
  for i, key in ipairs(keys) do
    local bytes = device.shares[i]
    local width = math.min(bytes > 0 and math.max(1, bytes / device.total * WIDTH) or 0, WIDTH - x)
    if width > 0 then add(key, bytes, width) end
  end
  if x < WIDTH then add("free", math.max(0, device.total - taken), WIDTH - x) end
end

local function block_tip(block, segment)
  local list = {block.name, texts.bytes(block.size), block.used and "in use" or "cached",
    block.shape, block.where, segment.type and "segment for " .. segment.type .. " blocks"}
  local parts = {}
  for i = 1, 6 do parts[#parts + 1] = list[i] or nil end
  return table.concat(parts, ", ")
end

-- Merges adjacent narrow blocks, drawn as one box of their kind.
local Crowd = {}
Crowd.__index = Crowd

local function kind_of(used, cached)
  return cached == 0 and "used" or used == 0 and "cached" or "part"
end

-- Adds a block. Blocks of a few points' width share a cell, and cells of one kind a box.
function Crowd:put(block, width)
  self.used = self.used + (block.used and block.size or 0)
  self.cached = self.cached + (block.used and 0 or block.size)
  self.count, self.width = self.count + 1, self.width + width
  if self.width >= NARROW then self:end_cell() end
end

-- Ends the pending cell and adds it to the pending box.
function Crowd:end_cell()
  if self.count == 0 then return end
  local kind, box = kind_of(self.used, self.cached), self.box
  if not box or box.kind ~= kind then
    self:draw()
    box = {kind = kind, x = self.x, width = 0, size = 0, count = 0}
    self.box = box
  end
  box.width, box.count = box.width + self.width, box.count + self.count
  box.size = box.size + self.used + self.cached
  self.x = self.x + self.width
  self.used, self.cached, self.count, self.width = 0, 0, 0, 0
end

-- Draws the pending box.
function Crowd:draw()
  local box = self.box
  if not box then return end
  local width = math.max(1, box.width)
  self.parts[#self.parts + 1] = svg.kind_box(math.min(box.x, LEFT + WIDTH - width), self.y, width,
    HEIGHT, box.kind, ("%s, %s"):format(texts.plural(box.count, "block"), texts.bytes(box.size)))
  self.box = nil
end

-- Draws the pending blocks. Returns the x position of the next block.
function Crowd:finish()
  self:end_cell()
  self:draw()
  return self.x
end

-- Appends the boxes of a segment's blocks from x on.
local function segment_boxes(segment, x, y, scale, parts)
  local crowd = setmetatable({x = x, y = y, parts = parts, used = 0, cached = 0, count = 0,
    width = 0}, Crowd)
  for _, block in ipairs(segment.blocks) do
    local width = block.size * scale
    if width < NARROW then
      crowd:put(block, width)
    else
      x = crowd:finish()
      local edge = width > 4 and 0.5 or 0 -- a gap between boxes
      parts[#parts + 1] = svg.kind_box(x + edge, y, width - 2 * edge, HEIGHT,
        block.used and "used" or "cached", block_tip(block, segment),
        {block.name or not block.used and texts.bytes(block.size) or nil})
      crowd.x = x + width
    end
  end
  crowd:finish()
end

-- Appends the blocks of all segments, scaled by their sizes.
local function blocks(segments, y, parts)
  local total = 0
  for _, segment in ipairs(segments) do total = total + segment.size end
  local edge = math.min(EDGE, WIDTH / (4 * #segments))
  local scale = (WIDTH - edge * (#segments - 1)) / total
  local x = LEFT
  for _, segment in ipairs(segments) do
    segment_boxes(segment, x, y, scale, parts)
    x = x + segment.size * scale + edge
  end
end

--- Returns the SVG of devices: a list of {title, total, shares = {in tensors, cached, of others}
-- (bytes; nil without a total), segments (lutra.internal.plot.memory_map, or nil), numbers, lines
-- (lists of strings)}, and a note at the end (or nil).
function devices_svg.text(list, note)
  local parts, y, widest = {}, MARGIN, 0
  local function write(lines, class, x)
    for _, line in ipairs(lines) do
      y = y + LINE
      parts[#parts + 1] = svg.text(x or LEFT, y, line, class)
      widest = math.max(widest, texts.width(line) * (class == "title" and TITLE or svg.LETTER))
    end
  end
  local function bar(label, draw, what)
    y = y + 8
    parts[#parts + 1] = svg.text(MARGIN, y + HEIGHT - 8, label)
    draw(what, y, parts)
    y = y + HEIGHT
  end
  local seen = {}
  for _, device in ipairs(list) do
    write({device.title}, "title", MARGIN)
    if device.shares then bar("memory", fullness, device) end
    write(device.numbers)
    if device.segments and #device.segments > 0 then
      bar("reserved", blocks, device.segments)
      seen.part = true
    end
    write(device.lines)
    y = y + LINE
  end
  local legend = {}
  for _, kind in ipairs {"used", "cached", "others", "free", "part"} do
    if kind ~= "part" or seen.part then legend[#legend + 1] = {kind, words[kind]} end
  end
  local text, more = svg.legend(MARGIN, y + LINE, legend, LEFT + WIDTH - MARGIN)
  parts[#parts + 1] = text
  y = y + LINE + more
  if note then write({note}, "small", MARGIN) end
  return svg.picture(LEFT + math.max(WIDTH, widest) + MARGIN, y + MARGIN, "devices", parts)
end

return devices_svg
