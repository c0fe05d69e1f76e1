--- Automatic augmentation: AutoAugment (Cubuk et al. 2019), RandAugment (Cubuk et al. 2020),
-- TrivialAugmentWide (Müller and Hutter 2021) and AugMix (Hendrycks et al. 2020).
--
-- An operation changes an image by a magnitude. A space is a list of operations; each has a
-- function from a share (0 to 1 in equal steps, "bins"), the height and the width to its magnitude,
-- whose sign is random for some of them.

local lt = require "lutra"
local args = require "lutra.internal.args"
local F = require "lutra.vision.transforms.functional"
local images = require "lutra.vision.transforms.images"
local transform = require "lutra.vision.transforms.transform"

-- Operations by name, called with the image, the magnitude, the interpolation and the fill.
local operations = {
  Identity = function(img) return img end,
  Brightness = function(img, m) return F.adjust_brightness(img, 1 + m) end,
  Color = function(img, m) return F.adjust_saturation(img, 1 + m) end,
  Contrast = function(img, m) return F.adjust_contrast(img, 1 + m) end,
  Sharpness = function(img, m) return F.adjust_sharpness(img, 1 + m) end,
  Posterize = function(img, m) return F.posterize(img, math.tointeger(m)) end,
  Solarize = function(img, m) return F.solarize(img, images.bound("Solarize", img.dtype) * m) end,
  AutoContrast = function(img) return F.autocontrast(img) end,
  Equalize = function(img) return F.equalize(img) end,
  Invert = function(img) return F.invert(img) end,
  Rotate = function(img, m, mode, fill)
    return F.rotate(img, m, {interpolation = mode, fill = fill})
  end,
}

-- Defines the operations that shear by the tangent m and move by m pixels, in x and in y.
for d, axis in ipairs{"X", "Y"} do
  operations["Shear" .. axis] = function(img, m, mode, fill)
    local shear = {0.0, 0.0}
    shear[d] = math.deg(math.atan(m))
    return F.affine(img, 0, {0, 0}, 1, shear, mode, fill, {0, 0})
  end
  operations["Translate" .. axis] = function(img, m, mode, fill)
    local move = {0, 0}
    move[d] = math.modf(m)
    return F.affine(img, 0, move, 1, {0, 0}, mode, fill)
  end
end

-- Returns a space. `limits` are the largest magnitudes: shear, translate(size), rotate, color (also
-- of brightness, contrast and sharpness), and bits {first, last} of posterize.
local function space(limits, names)
  local function up_to(most)
    return {signed = true, at = function(share) return most * share end}
  end
  local all = {
    ShearX = up_to(limits.shear), ShearY = up_to(limits.shear), Rotate = up_to(limits.rotate),
    TranslateX = {signed = true, at = function(s, _, w) return limits.translate(w) * s end},
    TranslateY = {signed = true, at = function(s, h) return limits.translate(h) * s end},
    Posterize = {at = function(s)
      local bits = limits.bits[1] + (limits.bits[2] - limits.bits[1]) * s
      return tonumber(("%.0f"):format(bits)) -- rounds half to even
    end},
    Solarize = {at = function(s) return 1 - s end},
  }
  for _, name in ipairs{"Brightness", "Color", "Contrast", "Sharpness"} do
    all[name] = up_to(limits.color)
  end
  local result = {}
  for name in names:gmatch "%a+" do
    local row = all[name] or {}
    result[#result + 1] = {name = name, at = row.at, signed = row.signed}
    result[name] = result[#result]
  end
  return result
end

local MOVES <const> = "ShearX ShearY TranslateX TranslateY Rotate "
local COLORS <const> = "Brightness Color Contrast Sharpness "
local VALUES <const> = "Posterize Solarize AutoContrast Equalize "

local usual = {shear = 0.3, rotate = 30, color = 0.9, bits = {8, 4},
  translate = function(size) return 150 / 331 * size end}
local wide = {shear = 0.99, rotate = 135, color = 0.99, bits = {8, 2},
  translate = function() return 32 end}
local mild = {shear = 0.3, rotate = 30, color = 0.9, bits = {4, 0},
  translate = function(size) return size / 3 end}

-- Returns the magnitude of an operation at a bin from 0 to bins - 1; 0 where it has none.
local function magnitude_of(operation, bin, bins, img)
  return operation.at and operation.at(bin / (bins - 1), img:size(-2), img:size(-1)) or 0
end

-- Applies an operation to the image, with a random sign.
local function apply(self, img, operation, bin, bins)
  local magnitude = magnitude_of(operation, bin, bins, img)
  if operation.signed and transform.offset(1) == 1 then magnitude = -magnitude end
  return operations[operation.name](img, magnitude, self.interpolation, self.fill)
end

local function any_of(list) return list[transform.offset(#list - 1) + 1] end

local augment = {}

-- Defines a class whose last options are those of the operations. Its field `space` is its list of
-- operations, _magnitude_at(name, bin, bins, img) is the magnitude of one of them, and
-- _apply_operation(img, name, magnitude) applies one.
local function define(name, options, mode, operations_space, forward, check)
  local class = transform.define(name, ("%s'nearest'|'bilinear' interpolation = '%s', "
    .. "float|floats? fill = nil"):format(options, mode), function(self, img)
    images.check_channels(name, img)
    return forward(self, img)
  end, check)
  class.space = operations_space

  function class:_magnitude_at(operation, bin, bins, img)
    return magnitude_of(self.space[operation], bin, bins, img)
  end

  function class:_apply_operation(img, operation, magnitude)
    return operations[operation](img, magnitude, self.interpolation, self.fill)
  end

  return class
end

--- transforms.RandAugment(num_ops = 2, magnitude = 9, num_magnitude_bins = 31, interpolation =
-- "nearest", fill = nil): applies num_ops random operations (shears, moves, colors ...) to an image
-- of 1 or 3 channels, uint8 or float. The magnitude is a level from 0 to num_magnitude_bins - 1.
augment.RandAugment = define("RandAugment",
  "int(>=0) num_ops = 2, int(>=0) magnitude = 9, int(>=2) num_magnitude_bins = 31, ", "nearest",
  space(usual, "Identity " .. MOVES .. COLORS .. VALUES), function(self, img)
    for _ = 1, self.num_ops do
      img = apply(self, img, any_of(self.space), self.magnitude, self.num_magnitude_bins)
    end
    return img
  end, function(self)
    args.check(self.magnitude < self.num_magnitude_bins,
      "RandAugment: expected an integer from 0 to %d for argument 'magnitude', got %d",
      self.num_magnitude_bins - 1, self.magnitude)
  end)

--- transforms.TrivialAugmentWide(num_magnitude_bins = 31, interpolation = "nearest", fill = nil):
-- applies one random operation of a random magnitude: see transforms.RandAugment.
augment.TrivialAugmentWide = define("TrivialAugmentWide", "int(>=2) num_magnitude_bins = 31, ",
  "nearest", space(wide, "Identity " .. MOVES .. COLORS .. VALUES), function(self, img)
    return apply(self, img, any_of(self.space), transform.offset(self.num_magnitude_bins - 1),
      self.num_magnitude_bins)
  end)

-- The policies of AutoAugment, from the appendix of the paper: pairs of operations with their
-- probabilities and their bins from 0 to 9.
local policies = {
  imagenet = "Posterize 0.4 8, Rotate 0.6 9; Solarize 0.6 5, AutoContrast 0.6; "
    .. "Equalize 0.8, Equalize 0.6; Posterize 0.6 7, Posterize 0.6 6; "
    .. "Equalize 0.4, Solarize 0.2 4; Equalize 0.4, Rotate 0.8 8; "
    .. "Solarize 0.6 3, Equalize 0.6; Posterize 0.8 5, Equalize 1; "
    .. "Rotate 0.2 3, Solarize 0.6 8; Equalize 0.6, Posterize 0.4 6; "
    .. "Rotate 0.8 8, Color 0.4 0; Rotate 0.4 9, Equalize 0.6; Equalize 0, Equalize 0.8; "
    .. "Invert 0.6, Equalize 1; Color 0.6 4, Contrast 1 8; Rotate 0.8 8, Color 1 2; "
    .. "Color 0.8 8, Solarize 0.8 7; Sharpness 0.4 7, Invert 0.6; ShearX 0.6 5, Equalize 1; "
    .. "Color 0.4 0, Equalize 0.6; Equalize 0.4, Solarize 0.2 4; "
    .. "Solarize 0.6 5, AutoContrast 0.6; Invert 0.6, Equalize 1; Color 0.6 4, Contrast 1 8; "
    .. "Equalize 0.8, Equalize 0.6",
  cifar10 = "Invert 0.1, Contrast 0.2 6; Rotate 0.7 2, TranslateX 0.3 9; "
    .. "Sharpness 0.8 1, Sharpness 0.9 3; ShearY 0.5 8, TranslateY 0.7 9; "
    .. "AutoContrast 0.5, Equalize 0.9; ShearY 0.2 7, Posterize 0.3 7; "
    .. "Color 0.4 3, Brightness 0.6 7; Sharpness 0.3 9, Brightness 0.7 9; "
    .. "Equalize 0.6, Equalize 0.5; Contrast 0.6 7, Sharpness 0.6 5; "
    .. "Color 0.7 7, TranslateX 0.5 8; Equalize 0.3, AutoContrast 0.4; "
    .. "TranslateY 0.4 3, Sharpness 0.2 6; Brightness 0.9 6, Color 0.2 8; "
    .. "Solarize 0.5 2, Invert 0; Equalize 0.2, AutoContrast 0.6; Equalize 0.2, Equalize 0.6; "
    .. "Color 0.9 9, Equalize 0.6; AutoContrast 0.8, Solarize 0.2 8; "
    .. "Brightness 0.1 3, Color 0.7 0; Solarize 0.4 5, AutoContrast 0.9; "
    .. "TranslateY 0.9 9, TranslateY 0.7 9; AutoContrast 0.9, Solarize 0.8 3; "
    .. "Equalize 0.8, Invert 0.1; TranslateY 0.7 9, AutoContrast 0.9",
  svhn = "ShearX 0.9 4, Invert 0.2; ShearY 0.9 8, Invert 0.7; Equalize 0.6, Solarize 0.6 6; "
    .. "Invert 0.9, Equalize 0.6; Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, AutoContrast 0.8; "
    .. "ShearY 0.9 8, Invert 0.4; ShearY 0.9 5, Solarize 0.2 6; Invert 0.9, AutoContrast 0.8; "
    .. "Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, Solarize 0.3 3; ShearY 0.8 8, Invert 0.7; "
    .. "Equalize 0.9, TranslateY 0.6 6; Invert 0.9, Equalize 0.6; "
    .. "Contrast 0.3 3, Rotate 0.8 4; Invert 0.8, TranslateY 0 2; "
    .. "ShearY 0.7 6, Solarize 0.4 8; Invert 0.6, Rotate 0.8 4; "
    .. "ShearY 0.3 7, TranslateX 0.9 3; ShearX 0.1 6, Invert 0.6; "
    .. "Solarize 0.7 2, TranslateY 0.6 7; ShearY 0.8 4, Invert 0.8; "
    .. "ShearX 0.7 9, TranslateY 0.8 3; ShearY 0.8 5, AutoContrast 0.7; "
    .. "ShearX 0.7 2, Invert 0.1",
}

--- transforms.AutoAugmentPolicy: the names of the policies of transforms.AutoAugment.
augment.AutoAugmentPolicy = require("lutra.internal.strict_table").strict({IMAGENET = "imagenet",
  CIFAR10 = "cifar10", SVHN = "svhn"}, "AutoAugmentPolicy")

-- Returns a policy as a list of lists of {operation, probability, bin}.
local function parse_policy(text)
  local list = {}
  for pair in text:gmatch "[^;]+" do
    local steps = {}
    for name, probability, bin in pair:gmatch "(%a+) ([%d.]+) ?(%d*)" do
      steps[#steps + 1] = {name, tonumber(probability), math.tointeger(tonumber(bin)) or 0}
    end
    list[#list + 1] = steps
  end
  return list
end

--- transforms.AutoAugment(policy = "imagenet", interpolation = "nearest", fill = nil): applies one
-- of the 25 random pairs of operations that were found for a data set, "imagenet", "cifar10" or
-- "svhn", to an image of 1 or 3 channels, uint8 or float.
augment.AutoAugment = define("AutoAugment", "'imagenet'|'cifar10'|'svhn' policy = 'imagenet', ",
  "nearest", space(usual, MOVES .. COLORS .. VALUES .. "Invert"), function(self, img)
    for _, step in ipairs(any_of(self.policies[self.policy])) do
      if transform.uniform(0, 1) <= step[2] then
        img = apply(self, img, self.space[step[1]], step[3], 10)
      end
    end
    return img
  end)
augment.AutoAugment.policies = {}
for name, text in pairs(policies) do augment.AutoAugment.policies[name] = parse_policy(text) end

-- Returns weights that sum to 1, {count, parts}, of a Dirichlet distribution.
local function random_weights(alpha, count, parts, device)
  local concentration = lt.full({parts}, alpha + 0.0, {device = device})
  return lt.distributions.Dirichlet(concentration):sample{count}
end

local every = space(mild, MOVES .. VALUES .. COLORS)
local some = space(mild, MOVES .. VALUES)

--- transforms.AugMix(severity = 3, mixture_width = 3, chain_depth = -1, alpha = 1, all_ops = true,
-- interpolation = "bilinear", fill = nil): mixes an image, or each of a batch {N, C, H, W}, with
-- mixture_width copies to which chain_depth random operations were applied (1 to 3 where it is not
-- above 0), by random weights. severity, from 1 to 10, limits the magnitudes; all_ops = false
-- leaves out brightness, contrast, color and sharpness.
augment.AugMix = define("AugMix", "int(>=1) severity = 3, int(>=1) mixture_width = 3, "
  .. "int chain_depth = -1, float alpha = 1, bool all_ops = true, ", "bilinear", every,
  function(self, img)
    local batch = images.batch(img)
    local n, list = batch:size(1), self.all_ops and every or some
    local shares = random_weights(self.alpha, n, 2, img.device)
    local weights = random_weights(self.alpha, n, self.mixture_width, img.device)
      * shares[{{}, {2}}]
    local function weighted(x, w) return x * w:reshape(n, 1, 1, 1) end
    local mix = weighted(batch, shares[{{}, 1}])
    for i = 1, self.mixture_width do
      local copy = batch
      for _ = 1, self.chain_depth > 0 and self.chain_depth or transform.offset(2) + 1 do
        copy = apply(self, copy, any_of(list), transform.offset(self.severity - 1), 10)
      end
      mix = mix + weighted(copy, weights[{{}, i}])
    end
    return images.unbatch(mix:to(img.dtype), img)
  end, function(self)
    args.check(self.severity <= 10,
      "AugMix: expected an integer from 1 to 10 for argument 'severity', got %d", self.severity)
    args.check(self.alpha > 0, "AugMix: expected a number above 0 for argument 'alpha', got %g",
      self.alpha)
  end)

return augment
