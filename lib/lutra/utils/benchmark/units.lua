--- Units of time and significant figures for measurements.

local units = {}

local rows = { -- by the power of 1000
  [-3] = {name = "ns", scale = 1e-9, word = "nanoseconds"},
  [-2] = {name = "us", scale = 1e-6, word = "microseconds"},
  [-1] = {name = "ms", scale = 1e-3, word = "milliseconds"},
  [0] = {name = "s", scale = 1, word = "seconds"},
}

--- Returns the unit {name, scale, word} in which a time in seconds is written: the largest one that
-- is not longer than the time.
function units.of(seconds)
  local power = math.floor(math.log(seconds, 10)) // 3
  return rows[math.max(-3, math.min(0, power))]
end

--- Returns the number of digits before the decimal point of a positive number: 2 for 12.5, 0 for
-- 0.5 and for 1.
function units.digits(x) return math.ceil(math.log(x, 10)) end

--- Returns `x` rounded to `n` significant figures; a half rounds to the even figure.
function units.trim(x, n)
  local scale = 10.0 ^ (units.digits(x) - n)
  local quotient = x / scale
  local rounded = math.floor(quotient + 0.5)
  if quotient % 1 == 0.5 and rounded % 2 == 1 then rounded = rounded - 1 end
  return rounded * scale
end

return units
