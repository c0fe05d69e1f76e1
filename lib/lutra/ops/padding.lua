--- Padding: constants, reflections and copies around the last dims of a tensor.

local lt = require "lutra"
local args = require "lutra.internal.args"
local ops = require("lutra.core")._ops

-- Removes the elements that negative numbers stand for; `pad` becomes a list without them.
local function cut(title, x, pad)
  local rest = {}
  for i = 1, #pad, 2 do
    local dim = x.ndim - (i - 1) // 2
    local left, right = pad[i], pad[i + 1]
    local n = x:size(dim)
    args.check(n + left + right >= 0,
      "%s: cannot pad dim %d, of %d elements, by %d and %d: the result has a negative size", title,
      dim, n, left, right)
    rest[i], rest[i + 1] = math.max(left, 0), math.max(right, 0)
    local first, last = math.max(-left, 0), n - math.max(-right, 0)
    if first > n or last < first then -- the other side adds more than is left
      first, last = math.min(first, n), math.min(first, n)
      rest[i] = rest[i] > 0 and n + left + right or 0
      rest[i + 1] = rest[i] > 0 and 0 or n + left + right
    end
    if last - first < n then x = x:narrow(dim, math.min(first + 1, n), last - first) end
  end
  return x, rest
end

-- Returns whether the borders of x are few of the cache lines of a large result.
local function has_thin_borders(x)
  return x:numel() >= 1 << 17 and x.is_cpu and x:size(-1) >= 256
end

local function constant(title, x, pad, value)
  local ndim, negative, padded = x.ndim, false, false
  if #pad % 2 ~= 0 or #pad > 2 * ndim then
    args.fail("%s: expected two numbers for each dim to pad, at most %d, for argument 'pad', got "
      .. "%d numbers", title, 2 * ndim, #pad)
  end
  for i = 1, #pad do negative = negative or pad[i] < 0 end
  if negative then x, pad = cut(title, x, pad) end
  local shape, sizes = {}, x.shape
  for d = 1, ndim do shape[d] = sizes[d] end
  for i = 1, #pad, 2 do
    local dim = ndim - (i - 1) // 2
    shape[dim] = shape[dim] + pad[i] + pad[i + 1]
    padded = padded or pad[i] > 0 or pad[i + 1] > 0
  end
  if not padded then return x:clone() end
  local border = has_thin_borders(x) and x:new_full({}, value)
  local out = border and x:new_empty(shape) or x:new_full(shape, value)
  local place = out
  for i = #pad - 1, 1, -2 do -- outer dims first: their borders are dense
    local dim, left, right = ndim - (i - 1) // 2, pad[i], pad[i + 1]
    local n = sizes[dim]
    if border and left > 0 then place:narrow(dim, 1, left):copy_(border) end
    if border and right > 0 then place:narrow(dim, left + n + 1, right):copy_(border) end
    if n < shape[dim] and n > 0 then place = place:narrow(dim, left + 1, n) end
  end
  if x:numel() > 0 then
    place:copy_(x)
  elseif x.requires_grad then
    out = out + x:sum()
  end
  return out
end

lt._define{
  signature = "lt.constant_pad_nd(Tensor self, ints pad, Scalar value = 0)",
  doc = "self with `value` around its last dims: pad is {left, right} of the last dim, then of the "
    .. "one before it, ...; negative numbers remove elements.",
  example = "lt.constant_pad_nd(lt.ones(2), {1, 2})",
  fn = function(x, pad, value) return constant("constant_pad_nd", x, pad, value) end,
}

-- Returns `count` elements that continue a dim of n elements, before the first or after the last.
local sides = {
  reflect = function(x, dim, n, count, before) -- without a repeated border
    local piece = x:narrow(dim, before and 2 or n - count, count)
    return count > 1 and piece:flip(dim) or piece
  end,
  replicate = function(x, dim, n, count, before)
    local sizes = x.shape
    sizes[dim] = count
    return x:narrow(dim, before and 1 or n, 1):expand(sizes)
  end,
  circular = function(x, dim, n, count, before)
    return x:narrow(dim, before and n - count + 1 or 1, count)
  end,
}

-- Returns x with `left` and `right` elements at the ends of a dim of n elements; negative numbers
-- remove elements, after the others were added.
local function extended(x, dim, n, left, right, side)
  local parts = {x}
  if left > 0 then table.insert(parts, 1, side(x, dim, n, left, true)) end
  if right > 0 then parts[#parts + 1] = side(x, dim, n, right, false) end
  local out = #parts > 1 and lt.cat(parts, dim) or x
  if left >= 0 and right >= 0 then return out end
  return out:narrow(dim, math.max(-left, 0) + 1, n + left + right):contiguous()
end

-- The numbers of lt_PadMode.
local MODE_NUMBERS = {reflect = 0, replicate = 1, circular = 2}

local function check_place(mode, dim, n, left, right)
  local most = mode == "reflect" and n - 1 or mode == "circular" and n or math.huge
  if left > most or right > most then
    args.fail("pad: expected at most %d for mode '%s' in dim %d, of %d elements, for argument "
      .. "'pad', got %d and %d", most, mode, dim, n, left, right)
  end
  local size = n + left + right
  if n <= 0 or size < 0 or size == 0 and mode ~= "circular" then
    args.fail("pad: cannot pad dim %d, of %d elements, by %d and %d with mode '%s': no element is "
      .. "left", dim, n, left, right, mode)
  end
  return size
end

local function by_places(x, pad, mode)
  local k, ndim, shape = #pad // 2, x.ndim, x.shape
  if #pad % 2 ~= 0 or k < 1 or k > 3 or ndim ~= k + 1 and ndim ~= k + 2 then
    args.fail("pad: expected 2 numbers for 2 or 3 dimensions, 4 for 3 or 4, or 6 for 4 or 5 with "
      .. "mode '%s', got %d numbers for shape %s", mode, #pad, shape)
  end
  local once = not (x.requires_grad and lt.is_grad_enabled()) -- one call, without a gradient
  local before, sizes = {}, {}
  for i = 1, k do
    local left, right, dim = pad[2 * i - 1], pad[2 * i], ndim - i + 1
    before[k - i + 1] = left
    sizes[k - i + 1] = check_place(mode, dim, shape[dim], left, right)
    once = once and (mode ~= "circular" or left >= 0 and right >= 0)
  end
  if once then return ops._pad(x, before, sizes, MODE_NUMBERS[mode]) end
  local out = x
  for i = 1, #pad, 2 do
    local dim = x.ndim - (i - 1) // 2
    local left, right, n = pad[i], pad[i + 1], x:size(dim)
    if mode == "circular" then -- elements are removed first
      out = out:narrow(dim, math.max(-left, 0) + 1, n + math.min(left, 0) + math.min(right, 0))
      left, right, n = math.max(left, 0), math.max(right, 0), out:size(dim)
    end
    if left ~= 0 or right ~= 0 then
      out = extended(out, dim, n, left, right, sides[mode])
    end
  end
  return rawequal(out, x) and x:clone() or out
end

lt._define{
  signature = "F.pad(Tensor input, ints pad, "
    .. "'constant'|'reflect'|'replicate'|'circular' mode = 'constant', Scalar? value = nil)",
  doc = "The input with elements around its last dims: pad is {left, right} of the last dim, then "
    .. "of the one before it, ...; negative numbers remove elements. The elements are `value` (0), "
    .. "reflections, the nearest element, or those at the other end.",
  example = 'F.pad(lt.arange(3.):reshape(1, 3), {1, 1}, "reflect")',
  fn = function(x, pad, mode, value)
    if mode == "constant" then return constant("pad", x, pad, value or 0) end
    args.check(value == nil or value == 0, "pad: expected no argument 'value' with mode '%s', got "
      .. "%s", mode, args.show(value))
    return by_places(x, pad, mode)
  end,
}
