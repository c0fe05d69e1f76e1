--- Padding: reflections and copies around the last dims of a tensor.

local lt = require "lutra"
local args = require "lutra.internal.args"
local retitle = require "lutra.internal.retitle"
local ops = require("lutra.core")._ops

-- name -> function that returns `count` elements that continue a dim of n elements, before the
-- first or after the last.
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
    if mode == "constant" then
      return retitle("constant_pad_nd", "pad", ops.constant_pad_nd, x, pad, value)
    end
    args.check(value == nil or value == 0, "pad: expected no argument 'value' with mode '%s', got "
      .. "%s", mode, args.show(value))
    return by_places(x, pad, mode)
  end,
}
