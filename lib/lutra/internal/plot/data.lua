--- Data for plots: reduces tensors to as many numbers as there are dots, by ops on the tensor's
-- device, and copies these to the host at once.
--
-- NaN and infinities are gaps: a point without y.

local axes = require "lutra.internal.plot.axes"
local lt = require "lutra"

local data = {}

local POINTS = 4000 -- longer curves are reduced

local function fail(message, ...) error(message:format(...), 0) end

-- Returns a list of numbers, of such lists, or of tensors of one element as a tensor.
local function from_table(list, name)
  local numbers = list
  if lt.is_tensor(list[1]) then
    numbers = {}
    for i, t in ipairs(list) do
      numbers[i] = lt.is_tensor(t) and t:numel() == 1 and t:item() or t
    end
  end
  local ok, made = pcall(lt.tensor, numbers, {dtype = "float64", device = "cpu"})
  if not ok then fail("%s: cannot read the table as a list of numbers: %s", name, made) end
  return made
end

--- Returns a value as a tensor to draw: a detached tensor, or one made from a list of numbers.
-- Raises an error for other values.
function data.tensor(value, name)
  if type(value) == "table" then value = from_table(value, name) end
  if not lt.is_tensor(value) then
    fail("%s: expected a tensor or a list of numbers, got a %s", name, type(value))
  end
  if value.device == "meta" then
    fail("%s: cannot show a tensor on \"meta\": it has no data", name)
  end
  value = value:detach()
  return value.dtype == "bool" and value:byte() or value
end

--- Returns the numbers of a small 1-d tensor as a list.
function data.numbers(t) return t:to("cpu"):double():totable() end

local function is_finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

--- Returns a floating-point tensor that can be compared with any number; floating-point tensors are
-- returned unchanged.
function data.float(t)
  if t.dtype == "float32" or t.dtype == "float64" then return t end
  return t:to(t:is_floating_point() and "float32" or t.is_mps and "float32" or "float64")
end

-- Returns the least and the largest finite value of each group of k elements; for a group without
-- finite values, least > largest.
local function extremes(t, k)
  local n = t:numel()
  local groups = n // k
  local low, high = t, t
  if t:is_floating_point() then
    local finite = lt.isfinite(t)
    low, high = lt.where(finite, t, math.huge), lt.where(finite, t, -math.huge)
  end
  local function reduce(x, f)
    local list = data.numbers(f(x:narrow(1, 1, groups * k):reshape(groups, k), 2))
    if groups * k < n then
      list[#list + 1] = f(x:narrow(1, groups * k + 1, n - groups * k)):item()
    end
    return list
  end
  return reduce(low, lt.amin), reduce(high, lt.amax)
end

--- Returns the curve of a 1-d tensor over 1..n for a plot of so many dots in width: {points = list
-- of {x, y or nil}}, or for more than four elements per dot {bars = list of {x, low, high}}, one
-- for each group of elements.
function data.curve(t, dots)
  local n = t:numel()
  if n <= math.max(4 * dots, 2) then
    local points = {}
    for i, y in ipairs(data.numbers(t)) do points[i] = {i, is_finite(y) and y or nil} end
    return {points = points}
  end
  local k = (n + dots - 1) // dots
  local low, high = extremes(t, k)
  local bars = {}
  for i = 1, #low do
    local last = math.min(i * k, n)
    bars[i] = {((i - 1) * k + 1 + last) / 2,
      is_finite(low[i]) and low[i] or nil, is_finite(high[i]) and high[i] or nil}
  end
  return {bars = bars}
end

--- Returns the least and the largest finite value, and the number of values that are not finite;
-- nil without finite values.
function data.range(t)
  local finite = t
  local bad = 0
  if t:is_floating_point() and t:numel() > 0 then
    local mask = lt.isfinite(t)
    bad = t:numel() - mask:count_nonzero():item()
    if bad > 0 then finite = t:masked_select(mask) end
  end
  if finite:numel() == 0 then return nil, nil, bad end
  return finite:amin():item(), finite:amax():item(), bad
end

--- Returns the points of two 1-d tensors: {points}, or for very many {cloud = list of {x, y}}, the
-- dots of a plot of columns x rows dots.
function data.scatter(x, y, columns, rows)
  if x:numel() <= POINTS then
    local xs, ys, points = data.numbers(x), data.numbers(y), {}
    for i = 1, #xs do
      local ok = is_finite(xs[i]) and is_finite(ys[i])
      points[i] = {ok and xs[i] or nil, ok and ys[i] or nil}
    end
    return {points = points}
  end
  x, y = data.float(x), data.float(y):to(x.device)
  local both = lt.isfinite(x):logical_and(lt.isfinite(y))
  x, y = x:masked_select(both), y:masked_select(both)
  local cloud = {}
  if x:numel() == 0 then return {cloud = cloud} end
  local function place(v, count)
    local lo, hi = v:amin():item(), v:amax():item()
    local span = hi > lo and hi / 2 - lo / 2 or 1
    return ((v / 2 - lo / 2) / span * (count - 1)):round():long(), lo, hi
  end
  local px, x_low, x_high = place(x, columns)
  local py, y_low, y_high = place(y, rows)
  local cells = lt.zeros(columns * rows, {device = x.device})
  cells:index_fill_(1, px * rows + py + 1, 1)
  for i, cell in ipairs(cells:to("cpu"):nonzero():flatten():totable()) do
    local column, row = (cell - 1) // rows, (cell - 1) % rows
    cloud[i] = {
      x_low + (x_high - x_low) * (column / math.max(columns - 1, 1)),
      y_low + (y_high - y_low) * (row / math.max(rows - 1, 1)),
    }
  end
  return {cloud = cloud}
end

--- Returns the number of values of a tensor, all finite, in each of `bins` equal parts of lo..hi. A
-- value on an edge counts in the upper part, the largest in the last. One pass per part, one copy
-- to the host.
function data.counts(t, lo, hi, bins)
  local at_least = {}
  for i = 1, bins - 1 do
    at_least[i] = t:ge(axes.at(lo, hi, i / bins)):count_nonzero()
  end
  local above = #at_least > 0 and lt.stack(at_least):to("cpu"):totable() or {}
  local counts, left = {}, t:numel()
  for i = 1, bins do
    local more = above[i] or 0
    counts[i] = left - more
    left = more
  end
  return counts
end

return data
