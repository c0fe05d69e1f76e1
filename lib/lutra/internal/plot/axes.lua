--- Axis ticks: round numbers along the edges of a plot.

local axes = {}

-- Returns 1, 2 or 5 times a power of ten that is near `raw`.
local function round_step(raw)
  local power = 10.0 ^ math.floor(math.log(raw, 10) + 1e-9)
  for _, factor in ipairs {10, 5, 2} do
    if factor * power <= raw * 1.4 then return factor * power end
  end
  return power
end

--- Returns half the width of a range, which does not overflow.
function axes.half(lo, hi) return hi / 2 - lo / 2 end
local half = axes.half

--- Returns the position of `value` between lo (0) and hi (1), for any finite numbers.
function axes.share(value, lo, hi) return half(lo, value) / half(lo, hi) end

--- Returns the value at a share (0 to 1) of lo..hi, for any finite numbers.
function axes.at(lo, hi, share)
  local width = hi + 0.0 - lo
  if width < math.huge then return lo + width * share end
  return lo * (1 - share) + hi * share
end

--- Returns a range that is not empty, also for constant data.
function axes.range(lo, hi)
  if lo < hi then return lo, hi end
  local room = math.max(0.5, math.abs(lo) * 0.1)
  return lo - room, hi + room
end

local function label(value, step)
  if value ~= 0 and (math.abs(value) >= 1e6 or step < 1e-4) then
    local digits = math.ceil(math.log(math.abs(value) / step, 10) - 1e-9)
    return ("%%.%dg"):format(math.max(1, math.min(digits + 1, 17))):format(value)
  end
  local decimals = math.max(0, math.ceil(-math.log(step, 10) - 1e-9))
  return ("%%.%df"):format(decimals):format(value)
end

--- Returns a list of ticks {value, text}: round numbers in lo..hi, about `count`, at most twice as
-- many, and at least two where `count` is 2 and more; with `whole`, integers only.
function axes.ticks(lo, hi, count, whole)
  local raw = half(lo, hi) / math.max(count, 1) * 2
  if whole then raw = math.max(raw, 1) end
  if not (raw > 1e-300 and raw < math.huge) then
    return {{value = lo, text = ("%g"):format(lo)}, {value = hi, text = ("%g"):format(hi)}}
  end
  local step, list = round_step(raw), {}
  local first = math.ceil(lo / step - 1e-9)
  for i = 0, 2 * count do
    local value = (first + i) * step
    if value > hi + half(lo, hi) * 1e-9 then break end
    if value == 0 then value = 0.0 end -- not -0
    list[#list + 1] = {value = value, text = label(value, step)}
  end
  local is_finest = whole and step <= 1
  if #list < 2 and count >= 2 and count < 8 and not is_finest then
    return axes.ticks(lo, hi, count + 1, whole)
  end
  return list
end

return axes
