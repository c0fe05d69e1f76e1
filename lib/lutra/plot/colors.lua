--- Colors of plots: {r, g, b} from 0 to 255, by name, from a palette, from a color map.

local args = require "lutra.internal.args"

local colors = {}

-- Okabe and Ito (2008): distinguishable with color blindness.
local palette = {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0},
  {86, 180, 233}, {110, 110, 110}, {0, 0, 0}}

-- Their kinds for lutra.repl.style, in the terminal.
local kinds = {"name", "error", "string", "keyword", "number", "warning"}

local named = {
  black = {0, 0, 0}, white = {255, 255, 255}, red = {214, 39, 40}, green = {44, 160, 44},
  blue = {31, 119, 180}, orange = {255, 127, 14}, purple = {148, 103, 189}, gray = {127, 127, 127},
  grey = {127, 127, 127}, yellow = {230, 200, 30}, brown = {140, 86, 75}, pink = {227, 119, 194},
  cyan = {23, 190, 207},
}

-- Points of matplotlib's map viridis, evenly spaced (Smith and van der Walt 2015, public domain).
local viridis = {{68, 1, 84}, {72, 40, 120}, {62, 74, 137}, {49, 104, 142}, {38, 130, 142},
  {31, 158, 137}, {53, 183, 121}, {110, 206, 88}, {181, 222, 43}, {253, 231, 37}}

--- Returns color i of the palette.
function colors.of(i) return palette[(i - 1) % #palette + 1] end

--- Returns the kind of color i in the terminal.
function colors.kind(i) return kinds[(i - 1) % #kinds + 1] end

-- Returns whether the value is a list of three integers from 0 to 255.
local function is_rgb(color)
  if not args.is_plain(color) or #color ~= 3 then return false end
  for _, c in ipairs(color) do
    if math.type(c) ~= "integer" or c < 0 or c > 255 then return false end
  end
  return true
end

--- Returns {r, g, b} of a name, of "#rrggbb" or of {r, g, b}; raises an error for any other value.
function colors.parse(title, color)
  if color == nil or is_rgb(color) then return color end
  if type(color) == "string" then
    local r, g, b = color:match "^#(%x%x)(%x%x)(%x%x)$"
    if r then return {tonumber(r, 16), tonumber(g, 16), tonumber(b, 16)} end
  end
  return args.check(named[color], "%s: expected a name of a color, \"#rrggbb\" or {r, g, b} from "
    .. "0 to 255 for argument 'color', got %s", title, args.show(color))
end

--- Returns the color of a share from 0 to 1 of the color map; white for NaN.
function colors.map(share)
  if share ~= share then return {255, 255, 255} end
  local at = math.max(0, math.min(1, share)) * (#viridis - 1)
  local i = math.min(at // 1, #viridis - 2)
  local low, high, rest = viridis[math.tointeger(i) + 1], viridis[math.tointeger(i) + 2], at - i
  local out = {}
  for c = 1, 3 do out[c] = math.floor(low[c] + (high[c] - low[c]) * rest + 0.5) end
  return out
end

return colors
