--- A line search for a step that meets the strong Wolfe conditions (Nocedal and Wright 2006,
-- Algorithms 3.5 and 3.6, in the form of minFunc by Schmidt, which PyTorch uses).

local FALL, SLOPE = 1e-4, 0.9 -- c1 and c2 of the conditions
local TOLERANCE = 1e-9        -- the bracket times the largest element of the direction

-- Returns the minimum of the cubic with the values f and slopes g at x1 and x2, within `low` and
-- `high` (by default, x1 and x2).
local function cubic_minimum(x1, f1, g1, x2, f2, g2, low, high)
  if not low then low, high = math.min(x1, x2), math.max(x1, x2) end
  local d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
  local square = d1 * d1 - g1 * g2
  if square < 0 or square ~= square then return (low + high) / 2 end
  local d2 = math.sqrt(square)
  local least
  if x1 <= x2 then
    least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
  else
    least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
  end
  return math.min(math.max(least, low), high)
end

-- A step with its loss, gradient and slope: {t, f, g, slope}.
local function evaluate(at, t, direction)
  local f, g = at(t)
  return {t = t, f = f, g = g, slope = g:dot(direction):item()}
end

-- Returns two steps between which the conditions can be met, or one that meets them, and the
-- number of further evaluations.
local function bracket(at, first, point, direction, most)
  local before, count = first, 0
  while count < most do
    if point.f > first.f + FALL * point.t * first.slope or count > 1 and point.f >= before.f then
      return before, point, count
    end
    if math.abs(point.slope) <= -SLOPE * first.slope then return point, nil, count end
    if point.slope >= 0 then return before, point, count end
    local t = cubic_minimum(before.t, before.f, before.slope, point.t, point.f, point.slope,
      point.t + 0.01 * (point.t - before.t), point.t * 10)
    before, point, count = point, evaluate(at, t, direction), count + 1
  end
  return first, point, count
end

-- Returns a step inside a bracket: the minimum of its cubic, unless that is close to an end for the
-- second time or at an end. Its second result is true after the first time.
local function inside(a, b, is_slow)
  local low, high = math.min(a.t, b.t), math.max(a.t, b.t)
  local t = cubic_minimum(a.t, a.f, a.slope, b.t, b.f, b.slope)
  local margin = 0.1 * (high - low)
  if math.min(high - t, t - low) >= margin then return t, false end
  if not is_slow and t < high and t > low then return t, true end
  return math.abs(t - high) < math.abs(t - low) and high - margin or low + margin, false
end

--- Returns loss, gradient, size of a step and the number of evaluations. at(t) returns loss and
-- gradient at t times `direction`; t is the first size to try; f, g and slope are loss, gradient
-- and derivative at 0; `most` is the largest number of iterations.
return function(at, t, direction, f, g, slope, most)
  local first = {t = 0, f = f, g = g, slope = slope}
  local a, b, count = bracket(at, first, evaluate(at, t, direction), direction, most)
  local evaluations, is_slow, is_done = count + 1, false, b == nil
  local size = not is_done and direction:abs():max():item()
  local ends = {a, b or a}
  local low, high = 1, 2
  if ends[1].f > ends[2].f then low, high = 2, 1 end
  while not is_done and count < most and math.abs(ends[2].t - ends[1].t) * size >= TOLERANCE do
    t, is_slow = inside(ends[1], ends[2], is_slow)
    local point = evaluate(at, t, direction)
    evaluations, count = evaluations + 1, count + 1
    if point.f > f + FALL * t * slope or point.f >= ends[low].f then
      ends[high] = point
      low, high = 1, 2
      if ends[1].f > ends[2].f then low, high = 2, 1 end
    else
      is_done = math.abs(point.slope) <= -SLOPE * slope
      if not is_done and point.slope * (ends[high].t - ends[low].t) >= 0 then
        ends[high] = ends[low]
      end
      ends[low] = point
    end
  end
  return ends[low].f, ends[low].g, ends[low].t, evaluations
end
