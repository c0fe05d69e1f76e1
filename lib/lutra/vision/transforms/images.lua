--- Shared by the functions on images (lutra.vision.transforms.functional): checks of images and
-- sizes, and the dtypes of pixels.
--
-- An image is a tensor {..., C, H, W}: floats are from 0 to 1, integers from 0 to the largest
-- value of their dtype.

local lt = require "lutra"
local args = require "lutra.internal.args"

local images = {}

-- The bits of the values of integer dtypes.
local bits = {uint8 = 8, int8 = 7, int16 = 15, int32 = 31, int64 = 63}

--- The interpolation modes by their names in torchvision.
images.InterpolationMode = require("lutra.internal.strict_table").strict({
  NEAREST = "nearest", NEAREST_EXACT = "nearest-exact", BILINEAR = "bilinear", BICUBIC = "bicubic",
}, "InterpolationMode")

--- Returns whether the image has a float dtype.
function images.is_float(img) return img.dtype:find "float" ~= nil end

--- Returns the number of bits of the values of an integer dtype. Raises an error for any other.
function images.value_bits(title, dtype)
  return args.check(bits[dtype], "%s: expected a float or integer dtype, got \"%s\"", title, dtype)
end

--- Returns the largest value of a pixel: 1 for floats.
function images.bound(title, dtype)
  if dtype:find "float" then return 1.0 end
  return (1 << images.value_bits(title, dtype)) - 1
end

--- Returns `img`. Raises an error unless it has at least `least` (3) dimensions.
function images.check(title, img, least)
  args.check(img.ndim >= (least or 3),
    "%s: expected an image of shape {..., C, H, W} for argument 'img', got shape %s", title,
    img.shape)
  return img
end

--- Returns `img`. Raises an error unless it is an image of 1 or 3 channels.
function images.check_channels(title, img)
  images.check(title, img)
  local channels = img:size(-3)
  args.check(channels == 1 or channels == 3,
    "%s: expected 1 or 3 channels for argument 'img', got %d", title, channels)
  return img
end

--- Returns height and width of a size: a list of one or two integers. Raises an error for any
-- other list, and for sizes below 1.
function images.pair(title, name, size)
  args.check(#size == 1 or #size == 2, "%s: expected 1 or 2 integers for argument '%s', got %d",
    title, name, #size)
  local height, width = size[1], size[2] or size[1]
  args.check(height >= 1 and width >= 1, "%s: expected sizes above 0 for argument '%s', got %d",
    title, name, math.min(height, width))
  return height, width
end

--- Returns the image as {N, C, H, W}.
function images.batch(img)
  if img.ndim == 4 then return img end
  return img:reshape(-1, img:size(-3), img:size(-2), img:size(-1))
end

--- Returns {N, C, H, W} with the dims before C of `like`.
function images.unbatch(img, like)
  local shape = {}
  for d = 1, like.ndim - 3 do shape[d] = like:size(d) end
  for d = -3, -1 do shape[#shape + 1] = img:size(d) end
  return img:reshape(shape)
end

--- Returns a list of numbers as a tensor of the image's dtype and device, {n, 1, 1}.
function images.per_channel(img, values, dtype)
  return lt.tensor(values, {dtype = dtype or img.dtype, device = img.device}):reshape(-1, 1, 1)
end

return images
