--- Functions that change the colors of images, for lutra.vision.transforms.functional. Formulas and
-- defaults are those of torchvision.transforms.v2.functional.

local lt = require "lutra"
local args = require "lutra.internal.args"
local images = require "lutra.vision.transforms.images"
local pixels = require "lutra.vision.transforms.pixels"

local color = {}

-- Returns the luminance of a float or integer image of 3 channels as floats, {..., 1, H, W}
-- (ITU-R BT.601).
local function luminance(img)
  local r, g, b = img:narrow(-3, 1, 1), img:narrow(-3, 2, 1), img:narrow(-3, 3, 1)
  return r * 0.2989 + g * 0.587 + b * 0.114
end

local function whole(img, x) return images.is_float(img) and x or x:floor() end

-- Returns img * ratio + other * (1 - ratio), limited to the range of pixels.
local function blend(title, img, other, ratio)
  local mixed = img * (ratio + 0.0) + other * (1.0 - ratio)
  return mixed:clamp(0, images.bound(title, img.dtype)):to(img.dtype)
end

-- Checks the arguments of functional.adjust_...
local function check_factor(title, name, img, factor)
  images.check_channels(title, img)
  args.check(factor >= 0, "%s: expected a number of at least 0 for argument '%s', got %g", title,
    name, factor)
end

local parse_gray = args.signature("rgb_to_grayscale", "Tensor img, int num_output_channels = 1")

--- functional.rgb_to_grayscale(img, num_output_channels = 1): the luminance 0.2989 R + 0.587 G +
-- 0.114 B of {..., 3, H, W}, as one channel or as three equal ones; an image of one channel keeps
-- its values.
function color.rgb_to_grayscale(...)
  local img, channels = parse_gray(...)
  images.check_channels("rgb_to_grayscale", img)
  args.check(channels == 1 or channels == 3,
    "rgb_to_grayscale: expected 1 or 3 for argument 'num_output_channels', got %d", channels)
  local gray = img:size(-3) == 1 and img:clone() or luminance(img):to(img.dtype)
  if channels == 1 then return gray end
  return lt.cat({gray, gray, gray}, -3)
end

--- functional.to_grayscale(img, num_output_channels = 1): another name of
-- functional.rgb_to_grayscale.
color.to_grayscale = color.rgb_to_grayscale

local parse_rgb = args.signature("grayscale_to_rgb", "Tensor img")

--- functional.grayscale_to_rgb(img): three equal channels of {..., 1, H, W}; other images are
-- returned unchanged.
function color.grayscale_to_rgb(...)
  local img = images.check("grayscale_to_rgb", parse_rgb(...))
  if img:size(-3) >= 3 then return img end
  return color.rgb_to_grayscale(img, 3)
end

local parse_brightness = args.signature("adjust_brightness",
  "Tensor img, float brightness_factor")

--- functional.adjust_brightness(img, brightness_factor): multiplies the pixels; 1 keeps them, 0
-- gives black.
function color.adjust_brightness(...)
  local img, factor = parse_brightness(...)
  check_factor("adjust_brightness", "brightness_factor", img, factor)
  return (img * (factor + 0.0)):clamp(0, images.bound("adjust_brightness", img.dtype)):to(img.dtype)
end

local parse_contrast = args.signature("adjust_contrast", "Tensor img, float contrast_factor")

--- functional.adjust_contrast(img, contrast_factor): multiplies the distances from the mean of the
-- luminance; 1 keeps the image, 0 gives gray.
function color.adjust_contrast(...)
  local img, factor = parse_contrast(...)
  check_factor("adjust_contrast", "contrast_factor", img, factor)
  local gray = images.is_float(img) and img or img:to "float32"
  if img:size(-3) == 3 then gray = whole(img, luminance(img)) end
  return blend("adjust_contrast", img, gray:mean({-3, -2, -1}, true), factor)
end

local parse_saturation = args.signature("adjust_saturation",
  "Tensor img, float saturation_factor")

--- functional.adjust_saturation(img, saturation_factor): multiplies the distances from the
-- luminance of each pixel; 1 keeps the image, 0 gives gray.
function color.adjust_saturation(...)
  local img, factor = parse_saturation(...)
  check_factor("adjust_saturation", "saturation_factor", img, factor)
  if img:size(-3) == 1 then return img end
  return blend("adjust_saturation", img, whole(img, luminance(img)), factor)
end

-- Returns hue, saturation and value, from 0 to 1, of {..., 3, H, W}.
local function rgb_to_hsv(img)
  local high, low = img:amax(-3, true), img:amin(-3, true)
  local range, gray = high - low, high:eq(low)
  local saturation = range / high:masked_fill(gray, 1)
  local distance = (high - img) / range:masked_fill(gray, 1)
  local r, g, b = distance:narrow(-3, 1, 1), distance:narrow(-3, 2, 1), distance:narrow(-3, 3, 1)
  local is_r, is_g = high:eq(img:narrow(-3, 1, 1)), high:eq(img:narrow(-3, 2, 1))
  local hue = lt.where(is_r, b - g, lt.where(is_g, r + 2 - b, g + 4 - r))
  return (hue / 6 + 1):fmod(1), saturation, high
end

-- Returns {..., 3, H, W} of hue, saturation and value.
local function hsv_to_rgb(h, s, v)
  local sector = (h * 6):floor()
  local f = h * 6 - sector
  local p = (v * (1 - s)):clamp(0, 1)
  local q = (v * (1 - s * f)):clamp(0, 1)
  local t = (v * (1 - s * (1 - f))):clamp(0, 1)
  sector = sector:to("int64"):remainder(6) + 1
  local parts = lt.cat({v, p, q, t}, -3) -- the values 1 to 4
  local choice = lt.tensor({{1, 3, 2, 2, 4, 1}, {4, 1, 1, 3, 2, 2}, {2, 2, 4, 1, 1, 3}},
    {dtype = "int64", device = h.device})
  local channels = {}
  for c = 1, 3 do channels[c] = parts:gather(-3, choice[c][sector]) end
  return lt.cat(channels, -3)
end

local parse_hue = args.signature("adjust_hue", "Tensor img, float hue_factor")

--- functional.adjust_hue(img, hue_factor): turns the hue by hue_factor, from -0.5 to 0.5 of the
-- color circle.
function color.adjust_hue(...)
  local img, factor = parse_hue(...)
  images.check_channels("adjust_hue", img)
  args.check(factor >= -0.5 and factor <= 0.5,
    "adjust_hue: expected a number from -0.5 to 0.5 for argument 'hue_factor', got %g", factor)
  if img:size(-3) == 1 or img:numel() == 0 then return img end
  local h, s, v = rgb_to_hsv(pixels.to_dtype(img, "float32", true))
  return pixels.to_dtype(hsv_to_rgb((h + factor):remainder(1), s, v), img.dtype, true)
end

local parse_gamma = args.signature("adjust_gamma", "Tensor img, float gamma, float gain = 1")

--- functional.adjust_gamma(img, gamma, gain = 1): gain * img ^ gamma, of pixels from 0 to 1.
function color.adjust_gamma(...)
  local img, gamma, gain = parse_gamma(...)
  images.check("adjust_gamma", img)
  args.check(gamma >= 0, "adjust_gamma: expected a number of at least 0 for argument 'gamma', got "
    .. "%g", gamma)
  local x = images.is_float(img) and img or pixels.to_dtype(img, "float32", true)
  x = x ^ gamma
  if gain ~= 1 then x = (x * gain):clamp(0, 1) end
  return pixels.to_dtype(x, img.dtype, true)
end

local parse_sharpness = args.signature("adjust_sharpness", "Tensor img, float sharpness_factor")

--- functional.adjust_sharpness(img, sharpness_factor): blends the image with a smoothed one: 0 is
-- the smoothed image, 1 the image, 2 doubles the sharpness.
function color.adjust_sharpness(...)
  local img, factor = parse_sharpness(...)
  check_factor("adjust_sharpness", "sharpness_factor", img, factor)
  local channels, h, w = img:size(-3), img:size(-2), img:size(-1)
  if img:numel() == 0 or h <= 2 or w <= 2 then return img end
  local x = images.batch(images.is_float(img) and img or img:to "float32")
  local kernel = lt.full({channels, 1, 3, 3}, 1 / 13, {dtype = x.dtype, device = x.device})
  kernel[{{}, {}, 2, 2}] = 5 / 13
  local smooth = lt.F.conv2d(x, kernel, nil, 1, 0, 1, channels)
  if not images.is_float(img) then smooth = smooth:round() end
  local out = x:clone()
  local inner = x:narrow(-2, 2, h - 2):narrow(-1, 2, w - 2)
  out:narrow(-2, 2, h - 2):narrow(-1, 2, w - 2):copy_(inner + (smooth - inner) * (1 - factor))
  out = out:clamp(0, images.bound("adjust_sharpness", img.dtype)):to(img.dtype)
  return images.unbatch(out, img)
end

local parse_posterize = args.signature("posterize", "Tensor img, int(>=0) bits")

--- functional.posterize(img, bits): keeps the highest `bits` (0 to 8) bits of each pixel.
function color.posterize(...)
  local img, bits = parse_posterize(...)
  args.check(bits <= 8, "posterize: expected an integer from 0 to 8 for argument 'bits', got %d",
    bits)
  if images.is_float(img) then
    local levels = 1 << bits
    return (img * levels):floor():clamp(0, levels - 1) / levels
  end
  local all = images.value_bits("posterize", img.dtype)
  if bits >= all then return img end
  return img & (((1 << bits) - 1) << (all - bits))
end

local parse_invert = args.signature("invert", "Tensor img")

--- functional.invert(img): the negative of an image: the largest value minus each pixel.
function color.invert(...)
  local img = parse_invert(...)
  if images.is_float(img) then return 1.0 - img end
  return img:bitwise_xor(images.bound("invert", img.dtype))
end

local parse_solarize = args.signature("solarize", "Tensor img, float threshold")

--- functional.solarize(img, threshold): inverts the pixels of at least `threshold`.
function color.solarize(...)
  local img, threshold = parse_solarize(...)
  local bound = images.bound("solarize", img.dtype)
  args.check(threshold <= bound,
    "solarize: expected a number of at most %g for argument 'threshold', got %g", bound, threshold)
  return lt.where(img:ge(threshold), color.invert(img), img)
end

local parse_autocontrast = args.signature("autocontrast", "Tensor img")

--- functional.autocontrast(img): stretches each channel so that its smallest pixel becomes 0 and
-- its largest one the largest value.
function color.autocontrast(...)
  local img = images.check_channels("autocontrast", parse_autocontrast(...))
  if img:numel() == 0 then return img end
  local bound = images.bound("autocontrast", img.dtype)
  local x = images.is_float(img) and img or img:to "float32"
  local low, high = x:amin({-2, -1}, true), x:amax({-2, -1}, true)
  local flat = high:eq(low)
  local scale = ((high - low) * (1 / bound)):masked_fill(flat, 1)
  return ((x - low:masked_fill(flat, 0)) / scale):clamp(0, bound):to(img.dtype)
end

-- Returns one channel, uint8 {pixels}, with an even histogram.
local function equalized(channel)
  local index = channel:to "int64" + 1
  local counts = lt.bincount(index, {minlength = 256})
  local sums = counts:cumsum(1)
  local last = index:max():item()
  local step = (channel:numel() - counts[last]:item()) // 255
  if step == 0 then return channel end
  local levels = ((sums + step // 2) // step):clamp(0, 255):to "uint8"
  levels = lt.cat({levels:new_zeros{1}, levels[{{1, 255}}]})
  return levels[index]
end

local parse_equalize = args.signature("equalize", "Tensor img")

--- functional.equalize(img): maps the values of each channel so that their histogram becomes even.
function color.equalize(...)
  local img = images.check("equalize", parse_equalize(...))
  if img:numel() == 0 then return img end
  local bytes = pixels.to_dtype(img, "uint8", true)
  local h, w = img:size(-2), img:size(-1)
  local channels = {}
  for i, channel in ipairs(bytes:reshape(-1, h * w):unbind(1)) do
    channels[i] = equalized(channel)
  end
  return pixels.to_dtype(lt.stack(channels):reshape(img.shape), img.dtype, true)
end

local parse_permute = args.signature("permute_channels", "Tensor img, ints permutation")

--- functional.permute_channels(img, permutation): the channels of {..., C, H, W} in another order,
-- a list of 1-based indices.
function color.permute_channels(...)
  local img, order = parse_permute(...)
  images.check("permute_channels", img)
  args.check(#order == img:size(-3),
    "permute_channels: expected %d indices for argument 'permutation', got %d", img:size(-3),
    #order)
  return img:index_select(-3, lt.tensor(order, {dtype = "int64", device = img.device}))
end

return color
