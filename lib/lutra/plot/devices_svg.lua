--- Devices as an SVG picture: how full each is, the blocks of its allocator, what lives there.

local svg = require "lutra.plot.svg"
local texts = require "lutra.plot.texts"

local devices_svg = {}

local WIDTH, HEIGHT, MARGIN, LINE, EDGE = 720, 22, 16, 16, 3

local keys = {"used", "cached", "others"}
local key_words = {used = "tensors", cached = "cached", others = "other programs"}

-- The bar of how full a device is.
local function fullness(device, y, parts)
  parts[#parts + 1] = svg.box(MARGIN, y, WIDTH, HEIGHT, svg.colors.free)
  local x = 0
  for i, key in ipairs(keys) do
    local bytes = device.shares[i]
    local width = math.min(bytes > 0 and math.max(1, bytes / device.total * WIDTH) or 0, WIDTH - x)
    if width > 0 then
      parts[#parts + 1] = svg.box(MARGIN + x, y, width, HEIGHT, svg.colors[key],
        ("%s: %s"):format(key_words[key], texts.bytes(bytes)))
    end
    x = x + width
  end
end

local function block_tip(block, segment)
  local list = {texts.bytes(block.size), block.used and "in use" or "cached", block.shape,
    block.where, segment.type and "segment for " .. segment.type .. " blocks"}
  local words = {}
  for i = 1, 5 do words[#words + 1] = list[i] or nil end
  return table.concat(words, ", ")
end

-- The blocks of all segments, by their sizes.
local function blocks(segments, y, parts)
  local total = 0
  for _, segment in ipairs(segments) do total = total + segment.size end
  local edge = math.min(EDGE, WIDTH / (4 * #segments))
  local scale = (WIDTH - edge * (#segments - 1)) / total
  local x = MARGIN
  for _, segment in ipairs(segments) do
    for _, block in ipairs(segment.blocks) do
      parts[#parts + 1] = svg.box(x, y, block.size * scale, HEIGHT,
        svg.colors[block.used and "used" or "cached"], block_tip(block, segment))
      x = x + block.size * scale
    end
    x = x + edge
  end
end

--- The SVG text of devices: list of {title, total, shares = {in tensors, cached, of others} (bytes;
-- nil where there is nothing to fill), segments (lutra.plot.memory_map, may be nil), numbers, lines
-- (lists of texts)}.
function devices_svg.text(list)
  local parts, y, widest = {}, MARGIN, 0
  local function write(lines, class)
    for _, line in ipairs(lines) do
      y = y + LINE
      parts[#parts + 1] = svg.text(MARGIN, y, line, class)
      widest = math.max(widest, texts.width(line) * 7.4)
    end
  end
  for _, device in ipairs(list) do
    write({device.title}, "title")
    y = y + 8
    if device.shares then
      fullness(device, y, parts)
      y = y + HEIGHT
    end
    write(device.numbers)
    if device.segments and #device.segments > 0 then
      blocks(device.segments, y + 8, parts)
      y = y + 8 + HEIGHT
    end
    write(device.lines)
    y = y + LINE
  end
  parts[#parts + 1] = svg.legend(MARGIN, y + LINE, {{svg.colors.used, "tensors"},
    {svg.colors.cached, "cached"}, {svg.colors.others, "other programs"},
    {svg.colors.free, "free"}})
  return svg.picture(math.max(WIDTH, widest) + 2 * MARGIN, y + LINE + MARGIN, "devices", parts)
end

return devices_svg
