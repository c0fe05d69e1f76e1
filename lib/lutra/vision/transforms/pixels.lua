--- Functions on the values of pixels, for lutra.vision.transforms.functional: dtypes,
-- normalization, noise, blur, erasing. Formulas and defaults are those of
-- torchvision.transforms.v2.functional.

local lt = require "lutra"
local args = require "lutra.internal.args"
local images = require "lutra.vision.transforms.images"

local pixels = {}

local function is_channels(n) return n == 1 or n == 3 or n == 4 end

-- Returns {H, W} and {H, W, C} as {C, H, W}.
local function channels_first(pic)
  if pic.ndim == 2 then return pic:unsqueeze(1) end
  if pic.ndim == 3 and is_channels(pic:size(3)) and not is_channels(pic:size(1)) then
    return pic:permute(3, 1, 2):contiguous()
  end
  return pic
end

local parse_to_tensor = args.signature("to_tensor", "Tensor pic")

--- functional.to_tensor(pic): an image as float32 {C, H, W} from 0 to 1. `pic` is uint8: {H, W, C}
-- with 1, 3 or 4 channels (as in NumPy and PIL), {H, W}, or {C, H, W} (as lt.vision.io reads it):
-- the channels are the last dim when only that has size 1, 3 or 4. Other dtypes keep their values
-- and dtype.
function pixels.to_tensor(...)
  local pic = parse_to_tensor(...)
  args.check(pic.ndim == 2 or pic.ndim == 3,
    "to_tensor: expected an image of 2 or 3 dimensions for argument 'pic', got shape %s",
    pic.shape)
  local img = channels_first(pic)
  if img.dtype ~= "uint8" then return img end
  return img:to "float32" / 255
end

local parse_pic = args.signature("pil_to_tensor", "Tensor pic")

--- functional.pil_to_tensor(pic): functional.to_tensor without the change of dtype: {H, W, C} to
-- {C, H, W}.
function pixels.pil_to_tensor(...)
  return channels_first((parse_pic(...)))
end

--- functional.to_image(pic): another name of functional.pil_to_tensor.
pixels.to_image = pixels.pil_to_tensor

-- Integers of one dtype as those of another: by shifts of their bits.
local function shifted(img, dtype)
  local from = images.value_bits("to_dtype", img.dtype)
  local to = images.value_bits("to_dtype", dtype)
  if from > to then return (img >> (from - to)):to(dtype) end
  return img:to(dtype) << (to - from)
end

local parse_to_dtype = args.signature("to_dtype",
  "Tensor img, dtype? dtype = nil, bool scale = false")

--- functional.to_dtype(img, dtype = "float32", scale = false): casts an image. With `scale` the
-- range of values changes, too: integers from 0 to their largest value become floats from 0 to 1.
-- Raises an error where floats have fewer digits than the integers (float32 to int32).
function pixels.to_dtype(...)
  local img, dtype, scale = parse_to_dtype(...)
  dtype = dtype or "float32"
  if img.dtype == dtype then return img end
  if not scale then return img:to(dtype) end
  local float_in, float_out = images.is_float(img), dtype:find "float" ~= nil
  if float_in and float_out then return img:to(dtype) end
  if float_out then return img:to(dtype) * (1.0 / images.bound("to_dtype", img.dtype)) end
  if not float_in then return shifted(img, dtype) end
  args.check(not (dtype == "int64" or dtype == "int32" and img.dtype ~= "float64"),
    "to_dtype: cannot scale %s to %s: floats of this dtype have too few digits", img.dtype, dtype)
  return (img * (images.bound("to_dtype", dtype) + 1.0 - 1e-3)):to(dtype)
end

local parse_convert = args.signature("convert_image_dtype",
  "Tensor image, dtype? dtype = nil")

--- functional.convert_image_dtype(image, dtype = "float32"): functional.to_dtype with scale.
function pixels.convert_image_dtype(...)
  local img, dtype = parse_convert(...)
  return pixels.to_dtype(img, dtype, true)
end

local parse_normalize = args.signature("normalize",
  "Tensor img, float|floats mean, float|floats std, bool inplace = false")

--- functional.normalize(img, mean, std, inplace = false): (img - mean) / std for each channel of a
-- float image {..., C, H, W}; mean and std are lists with a number for each channel, or one number.
function pixels.normalize(...)
  local img, mean, std, inplace = parse_normalize(...)
  images.check("normalize", img)
  args.check(images.is_float(img),
    "normalize: expected a float dtype for argument 'img', got \"%s\"\n"
    .. "hint: transforms.ToTensor() or transforms.ToDtype(\"float32\", true) before Normalize",
    img.dtype)
  local channels = img:size(-3)
  local function values(name, list)
    if type(list) == "number" then list = {list} end
    args.check(#list == 1 or #list == channels or channels == 1,
      "normalize: expected 1 or %d numbers for argument '%s', got %d", channels, name, #list)
    return list
  end
  mean, std = values("mean", mean), values("std", std)
  for _, s in ipairs(std) do
    args.check(s ~= 0, "normalize: expected numbers other than 0 for argument 'std', got 0")
  end
  mean, std = images.per_channel(img, mean), images.per_channel(img, std)
  if inplace then return img:sub_(mean):div_(std) end
  return (img - mean) / std
end

local parse_erase = args.signature("erase", "Tensor img, int(>=0) i, int(>=0) j, int(>=0) h, "
  .. "int(>=0) w, any v, bool inplace = false")

--- functional.erase(img, i, j, h, w, v, inplace = false): {..., C, H, W} with the rectangle of h
-- rows and w columns, i rows below and j columns right of the corner, overwritten by v: a number,
-- or a tensor that broadcasts to {..., C, h, w}.
function pixels.erase(...)
  local img, i, j, h, w, v, inplace = parse_erase(...)
  images.check("erase", img)
  args.expect(type(v) == "number" or lt.is_tensor(v), "erase", "a number or a tensor", "v", v)
  local out = inplace and img or img:clone()
  h, w = math.min(h, img:size(-2) - i), math.min(w, img:size(-1) - j)
  if h <= 0 or w <= 0 then return out end
  local part = out:narrow(-2, i + 1, h):narrow(-1, j + 1, w)
  if lt.is_tensor(v) then part:copy_(v) else part:fill_(v) end
  return out
end

-- Returns the weights of a Gaussian of n pixels.
local function gaussian(n, sigma, options)
  local last = (n - 1) / (2 * math.sqrt(2))
  local x = lt.linspace(-last, last, n, options) / sigma
  return lt.softmax(-(x * x), 1)
end

local parse_blur = args.signature("gaussian_blur",
  "Tensor img, ints kernel_size, float|floats? sigma = nil")

--- functional.gaussian_blur(img, kernel_size, sigma = nil): smooths {..., C, H, W} by a Gaussian of
-- kernel_size pixels (odd; {x, y} or one number) with standard deviation sigma ({x, y} or one
-- number; 0.15 * kernel_size + 0.35 by default).
function pixels.gaussian_blur(...)
  local img, sizes, sigma = parse_blur(...)
  images.check("gaussian_blur", img)
  local x_size, y_size = images.pair("gaussian_blur", "kernel_size", sizes)
  args.check(x_size % 2 == 1 and y_size % 2 == 1,
    "gaussian_blur: expected odd sizes for argument 'kernel_size', got {%d, %d}", x_size, y_size)
  if sigma == nil then sigma = {x_size * 0.15 + 0.35, y_size * 0.15 + 0.35} end
  if type(sigma) == "number" then sigma = {sigma} end
  args.check(#sigma == 1 or #sigma == 2,
    "gaussian_blur: expected 1 or 2 numbers for argument 'sigma', got %d", #sigma)
  for _, s in ipairs(sigma) do
    args.check(s > 0, "gaussian_blur: expected numbers above 0 for argument 'sigma', got %g", s)
  end
  if img:numel() == 0 then return img end
  local channels, float = img:size(-3), images.is_float(img)
  local x = images.batch(float and img or img:to "float32")
  local options = {dtype = x.dtype, device = x.device}
  local kernel = gaussian(y_size, sigma[2] or sigma[1], options):unsqueeze(-1)
    * gaussian(x_size, sigma[1], options)
  kernel = kernel:expand(channels, 1, y_size, x_size):contiguous()
  x = lt.F.pad(x, {x_size // 2, x_size // 2, y_size // 2, y_size // 2}, "reflect")
  x = lt.F.conv2d(x, kernel, nil, 1, 0, 1, channels)
  if not float then x = x:round():to(img.dtype) end
  return images.unbatch(x, img)
end

local parse_noise = args.signature("gaussian_noise",
  "Tensor img, float mean = 0, float sigma = 0.1, bool clip = true")

--- functional.gaussian_noise(img, mean = 0, sigma = 0.1, clip = true): adds normal noise, of pixels
-- from 0 to 1, to a float or uint8 image; `clip` limits the result to the range of pixels.
function pixels.gaussian_noise(...)
  local img, mean, sigma, clip = parse_noise(...)
  args.check(sigma >= 0, "gaussian_noise: expected a number of at least 0 for argument 'sigma', "
    .. "got %g", sigma)
  args.check(images.is_float(img) or img.dtype == "uint8",
    "gaussian_noise: expected a float dtype or uint8 for argument 'img', got \"%s\"", img.dtype)
  if images.is_float(img) then
    local out = img + (lt.randn_like(img) * sigma + mean)
    return clip and out:clamp(0, 1) or out
  end
  local noise = lt.randn_like(img, {dtype = "float32"}) * (sigma * 255) + mean * 255
  local out = img:to "int16" + noise:to "int16"
  return (clip and out:clamp(0, 255) or out & 255):to "uint8"
end

return pixels
