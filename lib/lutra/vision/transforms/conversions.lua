--- Transforms of the values of pixels: dtypes, normalization, colors, blur.

local lt = require "lutra"
local args = require "lutra.internal.args"
local F = require "lutra.vision.transforms.functional"
local images = require "lutra.vision.transforms.images"
local transform = require "lutra.vision.transforms.transform"

local define, define_random = transform.define, transform.define_random
local conversions = {}

--- transforms.ToTensor(): uint8 images {H, W, C}, {H, W} or {C, H, W} to float32 {C, H, W} from 0
-- to 1: see functional.to_tensor.
conversions.ToTensor = define("ToTensor", "", function(_, img) return F.to_tensor(img) end)

--- transforms.PILToTensor(): {H, W, C} to {C, H, W}; the dtype stays.
conversions.PILToTensor = define("PILToTensor", "", function(_, img)
  return F.pil_to_tensor(img)
end)

--- transforms.ToImage(): {H, W, C} to {C, H, W}; the dtype stays.
conversions.ToImage = define("ToImage", "", function(_, img) return F.to_image(img) end)

--- transforms.ToDtype(dtype, scale = false): casts; with `scale`, the range of pixels changes, too:
-- see functional.to_dtype.
conversions.ToDtype = define("ToDtype", "dtype dtype, bool scale = false", function(self, img)
  return F.to_dtype(img, self.dtype, self.scale)
end)

--- transforms.ConvertImageDtype(dtype = "float32"): transforms.ToDtype with scale.
conversions.ConvertImageDtype = define("ConvertImageDtype", "dtype? dtype = nil",
  function(self, img) return F.to_dtype(img, self.dtype, true) end,
  function(self) self.dtype = self.dtype or "float32" end)

--- transforms.Normalize(mean, std, inplace = false): (img - mean) / std for each channel: see
-- functional.normalize.
conversions.Normalize = define("Normalize",
  "float|floats mean, float|floats std, bool inplace = false", function(self, img)
    return F.normalize(img, self.mean, self.std, self.inplace)
  end)

--- transforms.Lambda(lambd): calls a function with the image.
conversions.Lambda = define("Lambda", "any lambd", function(self, img) return self.lambd(img) end,
  function(self)
    args.expect(args.is_callable(self.lambd), "Lambda", "a function", "lambd", self.lambd)
  end)

--- transforms.Identity(): returns the image.
conversions.Identity = define("Identity", "", function(_, img) return img end)

--- transforms.Grayscale(num_output_channels = 1): the luminance: see functional.rgb_to_grayscale.
conversions.Grayscale = define("Grayscale", "int num_output_channels = 1", function(self, img)
  return F.rgb_to_grayscale(img, self.num_output_channels)
end)

--- transforms.RandomGrayscale(p = 0.1): the luminance, with as many channels as the image, with
-- probability p.
conversions.RandomGrayscale = define_random("RandomGrayscale", "float p = 0.1", function(_, img)
  return F.rgb_to_grayscale(img, img:size(-3))
end)

--- transforms.RGB(): three equal channels of a gray image.
conversions.RGB = define("RGB", "", function(_, img) return F.grayscale_to_rgb(img) end)

local JITTER = "float|floats? brightness = nil, float|floats? contrast = nil, "
  .. "float|floats? saturation = nil, float|floats? hue = nil"
local jitters = {{"brightness", 1.0}, {"contrast", 1.0}, {"saturation", 1.0}, {"hue", 0.0}}

--- transforms.ColorJitter(brightness = nil, contrast = nil, saturation = nil, hue = nil): changes
-- each of them by a random factor, in random order. A number r is the range from 1 - r (at least 0)
-- to 1 + r, for the hue from -r to r (at most 0.5); {low, high} are its ends.
conversions.ColorJitter = define("ColorJitter", JITTER, function(self, img)
  for _, k in ipairs(transform.order(4)) do
    local name = jitters[k][1]
    local range = self[name]
    if range then img = F["adjust_" .. name](img, transform.uniform(range[1], range[2])) end
  end
  return img
end, function(self)
  for _, jitter in ipairs(jitters) do
    local name, center = jitter[1], jitter[2]
    local single = type(self[name]) == "number"
    transform.check_range(self, name, center)
    local range = self[name]
    if range then
      if single and center == 1 then range[1] = math.max(range[1], 0.0) end
      local low, high = center == 1 and 0 or -0.5, center == 1 and math.huge or 0.5
      args.check(range[1] >= low and range[2] <= high, "ColorJitter: expected numbers from %g to "
        .. "%g for argument '%s', got {%g, %g}", low, high, name, range[1], range[2])
      if range[1] == center and range[2] == center then self[name] = nil end
    end
  end
end)

--- transforms.GaussianBlur(kernel_size, sigma = {0.1, 2}): smooths by a Gaussian with a random
-- standard deviation between two numbers: see functional.gaussian_blur.
conversions.GaussianBlur = define("GaussianBlur",
  "ints kernel_size, float|floats? sigma = nil", function(self, img)
    local sigma = transform.uniform(self.sigma[1], self.sigma[2])
    return F.gaussian_blur(img, self.kernel_size, {sigma, sigma})
  end, function(self)
    self.sigma = self.sigma or {0.1, 2.0}
    if type(self.sigma) == "number" then self.sigma = {self.sigma, self.sigma} end
    transform.check_range(self, "sigma", 0.0)
    args.check(self.sigma[1] > 0,
      "GaussianBlur: expected numbers above 0 for argument 'sigma', got %g", self.sigma[1])
    images.pair("GaussianBlur", "kernel_size", self.kernel_size)
  end)

--- transforms.GaussianNoise(mean = 0, sigma = 0.1, clip = true): adds normal noise: see
-- functional.gaussian_noise.
conversions.GaussianNoise = define("GaussianNoise",
  "float mean = 0, float sigma = 0.1, bool clip = true", function(self, img)
    return F.gaussian_noise(img, self.mean, self.sigma, self.clip)
  end)

--- transforms.RandomInvert(p = 0.5): functional.invert with probability p.
conversions.RandomInvert = define_random("RandomInvert", "float p = 0.5", function(_, img)
  return F.invert(img)
end)

--- transforms.RandomPosterize(bits, p = 0.5): functional.posterize with probability p.
conversions.RandomPosterize = define_random("RandomPosterize", "int(>=0) bits, float p = 0.5",
  function(self, img) return F.posterize(img, self.bits) end)

--- transforms.RandomSolarize(threshold, p = 0.5): functional.solarize with probability p.
conversions.RandomSolarize = define_random("RandomSolarize", "float threshold, float p = 0.5",
  function(self, img) return F.solarize(img, self.threshold) end)

--- transforms.RandomAdjustSharpness(sharpness_factor, p = 0.5): functional.adjust_sharpness with
-- probability p.
conversions.RandomAdjustSharpness = define_random("RandomAdjustSharpness",
  "float sharpness_factor, float p = 0.5",
  function(self, img) return F.adjust_sharpness(img, self.sharpness_factor) end)

--- transforms.RandomAutocontrast(p = 0.5): functional.autocontrast with probability p.
conversions.RandomAutocontrast = define_random("RandomAutocontrast", "float p = 0.5",
  function(_, img) return F.autocontrast(img) end)

--- transforms.RandomEqualize(p = 0.5): functional.equalize with probability p.
conversions.RandomEqualize = define_random("RandomEqualize", "float p = 0.5", function(_, img)
  return F.equalize(img)
end)

--- transforms.RandomErasing(p = 0.5, scale = {0.02, 0.33}, ratio = {0.3, 3.3}, value = 0, inplace =
-- false): overwrites, with probability p, a rectangle of a random share of the area (`scale`) and
-- ratio of height to width by `value`: a number, a list with one for each channel, or "random",
-- normal noise (Zhong et al. 2017).
conversions.RandomErasing = define_random("RandomErasing", "float p = 0.5, floats? scale = nil, "
  .. "floats? ratio = nil, any? value = nil, bool inplace = false", function(self, img)
  local channels, h, w = table.unpack(F.get_dimensions(img))
  for _ = 1, 10 do
    local area = h * w * transform.uniform(self.scale[1], self.scale[2])
    local ratio = math.exp(transform.uniform(math.log(self.ratio[1]), math.log(self.ratio[2])))
    local eh, ew = transform.round((area * ratio) ^ 0.5), transform.round((area / ratio) ^ 0.5)
    if eh < h and ew < w then
      local value = self.value
      if value == "random" then
        value = lt.randn({channels, eh, ew}, {device = img.device})
      elseif type(value) == "table" then
        args.check(#value == 1 or #value == channels,
          "RandomErasing: expected 1 or %d numbers for argument 'value', got %d", channels, #value)
        value = images.per_channel(img, value)
      end
      return F.erase(img, transform.offset(h - eh), transform.offset(w - ew), eh, ew, value,
        self.inplace)
    end
  end
  return img
end, function(self)
  self.scale, self.ratio = self.scale or {0.02, 0.33}, self.ratio or {0.3, 3.3}
  self.value = self.value or 0
  transform.check_range(self, "scale")
  transform.check_range(self, "ratio")
  local value = self.value
  args.expect(type(value) == "number" or value == "random" or args.is_plain(value),
    "RandomErasing", "a number, a list of numbers or 'random'", "value", value)
end)

return conversions
