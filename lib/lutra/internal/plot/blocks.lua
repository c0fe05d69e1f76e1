--- Images for a terminal: two pixels per character in colours, or grey-scale characters.
--
-- A pixel is a number from 0 to 255 or {r, g, b}; nil is left empty.

local blocks = {}

local ramp = " .:-=+*#%@" -- from black to white

local function components(pixel)
  if type(pixel) == "number" then return pixel, pixel, pixel end
  return pixel[1], pixel[2], pixel[3]
end

-- Returns the nearest of xterm's 256 colours: 16..231 are a cube of six levels, 232..255 greys.
local levels = {0, 95, 135, 175, 215, 255}

local function nearest_level(value)
  local best = 1
  for i, level in ipairs(levels) do
    if math.abs(level - value) < math.abs(levels[best] - value) then best = i end
  end
  return best
end

local function indexed(r, g, b)
  local i, j, k = nearest_level(r), nearest_level(g), nearest_level(b)
  local grey = math.max(0, math.min(23, math.floor(((r + g + b) / 3 - 8) / 10 + 0.5)))
  local value = 8 + 10 * grey
  local function distance(x, y, z) return (x - r) ^ 2 + (y - g) ^ 2 + (z - b) ^ 2 end
  if distance(value, value, value) < distance(levels[i], levels[j], levels[k]) then
    return 232 + grey
  end
  return 16 + 36 * (i - 1) + 6 * (j - 1) + k - 1
end

-- Returns the escape code of a foreground (38) or background (48) colour, "38;2;r;g;b".
local function code(ground, pixel, depth)
  local r, g, b = components(pixel)
  if depth == 24 then return ("%d;2;%d;%d;%d"):format(ground, r, g, b) end
  return ("%d;5;%d"):format(ground, indexed(r, g, b))
end

local function cell(top, bottom, depth)
  if top == nil and bottom == nil then return "0", " " end
  if bottom == nil then return "0;" .. code(38, top, depth), "▀" end
  if top == nil then return "0;" .. code(38, bottom, depth), "▄" end
  return code(38, top, depth) .. ";" .. code(48, bottom, depth), "▀"
end

-- Returns two rows of pixels as a line; a colour is written only when it changes.
local function colored_line(upper, lower, width, depth)
  local parts, last = {}, "0"
  for x = 1, width do
    local sgr, mark = cell(upper[x], lower and lower[x], depth)
    if sgr ~= last then parts[#parts + 1] = "\27[" .. sgr .. "m" end
    last = sgr
    parts[#parts + 1] = mark
  end
  if last ~= "0" then parts[#parts + 1] = "\27[0m" end
  return table.concat(parts)
end

-- Returns the brightness of a pixel (weights of ITU-R BT.601).
local function brightness(pixel)
  if type(pixel) ~= "table" then return pixel end
  local r, g, b = components(pixel)
  return 0.299 * r + 0.587 * g + 0.114 * b
end

local function grey_line(upper, lower, width)
  local parts = {}
  for x = 1, width do
    local a, b = brightness(upper[x]), brightness(lower and lower[x])
    local value = a and b and (a + b) / 2 or a or b
    local at = value and 1 + math.floor(value / 256 * #ramp) or 1
    parts[x] = ramp:sub(at, at)
  end
  return (table.concat(parts):gsub(" +$", ""))
end

--- Returns rows of pixels as lines. depth: 24 (bits per pixel), 8 (256 colours), or nil for
-- characters without colour.
function blocks.lines(rows, width, depth)
  local lines = {}
  for y = 1, #rows, 2 do
    lines[#lines + 1] = depth and colored_line(rows[y], rows[y + 1], width, depth)
      or grey_line(rows[y], rows[y + 1], width)
  end
  return lines
end

return blocks
