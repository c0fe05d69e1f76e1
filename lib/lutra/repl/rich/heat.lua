--- Background colours of cells by value.
--
-- With values of both signs the scale has two sides: blue below 0, orange above, transparent at 0.
-- Otherwise the least value is transparent, and the largest (all values negative: the least) is
-- full.

local heat = {}

local ABOVE, BELOW = "213,94,0", "0,114,178" -- Okabe and Ito (2008)
local FULL = 0.7 -- the opacity of the largest value, at which text is still readable

local function is_finite(v) return v == v and math.abs(v) < math.huge end

-- Returns the least and the largest finite number of a list.
local function range(list)
  local lo, hi
  for _, v in ipairs(list) do
    if is_finite(v) then lo, hi = math.min(lo or v, v), math.max(hi or v, v) end
  end
  return lo, hi
end

--- Returns a function from a number to its colour, for the numbers of a list; nil for numbers that
-- have none. Without different finite numbers no number has a colour.
function heat.scale(list)
  local lo, hi = range(list)
  if not lo or lo == hi then return function() end end
  local function shade(color, share)
    if share ~= share or share < 0.005 then return nil end
    return ("rgba(%s,%.2f)"):format(color, FULL * math.min(share, 1))
  end
  if lo < 0 and hi > 0 then
    local most = math.max(-lo, hi)
    return function(v)
      if is_finite(v) then return shade(v < 0 and BELOW or ABOVE, math.abs(v) / most) end
    end
  end
  local zero, full, color = lo, hi, ABOVE
  if hi <= 0 then zero, full, color = hi, lo, BELOW end
  local span = full / 2 - zero / 2 -- without overflow
  return function(v)
    if is_finite(v) then return shade(color, (v / 2 - zero / 2) / span) end
  end
end

return heat
