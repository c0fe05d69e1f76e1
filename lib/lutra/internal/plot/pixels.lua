--- Images from tensors: interprets dimensions and value range, and scales to a size.
--
-- An image is a tensor {channels, height, width} of float32, 0 to 1, with 1 (grey) or 3 channels.
-- Scaling averages the area of each pixel by two matrix products on the tensor's device; only the
-- scaled image is copied to the host.

local lt = require "lutra"

local pixels = {}

local function fail(message, ...) error("image: " .. message:format(...), 0) end

local is_channels = {[1] = true, [3] = true, [4] = true}

--- Returns a list of {channels, height, width} views of a tensor, at most `limit`, and the total
-- number. Accepted shapes: {H, W}, {C, H, W}, {H, W, C} with C of 1, 3 or 4, {N, H, W}, {N, C, H,
-- W}, {N, H, W, C}; any other raises an error.
function pixels.split(t, limit)
  local n, shape = t.ndim, t.shape
  if t:numel() == 0 then fail("cannot show an empty tensor of shape %s", tostring(shape)) end
  if n == 2 then return {t:unsqueeze(1)}, 1 end
  if n == 3 and is_channels[shape[1]] then return {t}, 1 end
  if n == 3 and is_channels[shape[3]] and shape[3] > 1 then return {t:permute(3, 1, 2)}, 1 end
  if n == 4 and not is_channels[shape[2]] and is_channels[shape[4]] then
    t = t:permute(1, 4, 2, 3)
  elseif n == 3 then
    t = t:unsqueeze(2)
  elseif n ~= 4 or not is_channels[shape[2]] then
    fail("expected shape {H, W}, {C, H, W} or {N, C, H, W} with C of 1, 3 or 4, got %s",
      tostring(shape))
  end
  local list = {}
  for i = 1, math.min(limit, t:size(1)) do list[i] = t:select(1, i) end
  return list, t:size(1)
end

--- Returns the least and the largest value, which map to 0 and 1, and a note when the range is not
-- 0 to 1 or that of bytes.
function pixels.range(list)
  local t = list[1]
  if t.dtype == "uint8" then return 0, 255 end
  if t.dtype == "bool" then return 0, 1 end
  local lo, hi = math.huge, -math.huge
  for _, picture in ipairs(list) do
    local least, most = require("lutra.internal.plot.data").range(picture)
    if least then lo, hi = math.min(lo, least), math.max(hi, most) end
  end
  if lo > hi then fail "cannot show the tensor: no value is finite" end
  if lo >= 0 and hi <= 1 then return 0, 1 end
  if lo >= 0 and hi <= 255 and not t:is_floating_point() then return 0, 255 end
  return lo, hi, ("black is %.4g, white is %.4g"):format(lo, hi)
end

-- Returns the share of each source pixel in each target pixel, as a matrix {target, source}.
local function weights(target, source, device)
  local options = {device = device, dtype = "float32"}
  local scale = source / target
  local first = lt.arange(0, target - 1, options):unsqueeze(2) * scale
  local place = lt.arange(0, source - 1, options):unsqueeze(1)
  local stop = lt.minimum(first + scale, place + 1)
  return (stop - lt.maximum(first, place)):clamp{min = 0} / scale
end

-- Converts values to float32 from 0 to 1; values that are not finite become black.
local function normal(t, lo, hi)
  t = t:to("float32")
  if hi > lo then t = (t - lo) / (hi - lo) else t = t * 0 end
  t = lt.where(lt.isfinite(t), t, 0)
  return t:clamp(0, 1)
end

-- Blends four channels onto white.
local function flatten_alpha(t)
  local alpha = t:narrow(1, 4, 1)
  return t:narrow(1, 1, 3) * alpha + (1 - alpha)
end

--- Returns the image of a view from pixels.split, scaled to width x height.
function pixels.scale(t, lo, hi, width, height)
  t = normal(t, lo, hi)
  if t:size(1) == 4 then t = flatten_alpha(t) end
  if t:size(3) ~= width then t = t:matmul(weights(width, t:size(3), t.device):t()) end
  if t:size(2) ~= height then t = weights(height, t:size(2), t.device):matmul(t) end
  return t
end

--- Returns the size at which width x height fits into room_x x room_y without enlarging it.
function pixels.fit(width, height, room_x, room_y)
  local share = math.min(1, room_x / width, room_y / height)
  return math.max(1, math.floor(width * share + 0.5)), math.max(1, math.floor(height * share + 0.5))
end

--- Returns the rows of an image on the host: lists of {r, g, b} or grey numbers, 0 to 255.
function pixels.rows(t)
  local list = (t * 255):round():to("cpu"):to("int64"):permute(2, 3, 1):totable()
  if t:size(1) == 1 then
    for _, row in ipairs(list) do
      for x, pixel in ipairs(row) do row[x] = pixel[1] end
    end
  end
  return list
end

--- Returns an image as the bytes of a PGM (grey) or PPM (colour) file.
function pixels.ppm(t)
  local rows, bytes = pixels.rows(t), {}
  for _, row in ipairs(rows) do
    for _, pixel in ipairs(row) do
      bytes[#bytes + 1] = type(pixel) == "number" and string.char(pixel)
        or string.char(pixel[1], pixel[2], pixel[3])
    end
  end
  return ("%s\n%d %d\n255\n"):format(t:size(1) == 1 and "P5" or "P6", t:size(3), t:size(2))
    .. table.concat(bytes)
end

return pixels
