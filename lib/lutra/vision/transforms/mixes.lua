--- Transforms of a batch with its labels: MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019).
-- Each image is mixed with the image before it in the batch, the first one with the last one.

local lt = require "lutra"
local args = require "lutra.internal.args"
local transform = require "lutra.vision.transforms.transform"

local mixes = {}

-- Returns the labels as floats {N, classes}: indices from 1 become one-hot rows.
local function rows_of(self, x, labels)
  local name = self:type_name()
  args.expect(lt.is_tensor(x), name, "a tensor", "images", x)
  args.expect(lt.is_tensor(labels), name, "a tensor", "labels", labels)
  args.check(x.ndim == 4 and labels.ndim >= 1 and labels.ndim <= 2
    and x:size(1) == labels:size(1), "%s: expected images {N, C, H, W} and labels {N} or "
    .. "{N, classes}, got %s and %s", name, x.shape, labels.shape)
  if labels.ndim == 1 then
    args.check(self.num_classes, "%s: expected argument 'num_classes' for labels that are indices",
      name)
    labels = lt.F.one_hot(labels, self.num_classes)
  end
  args.check(not self.num_classes or labels:size(2) == self.num_classes,
    "%s: expected labels of %d classes, got %d", name, self.num_classes or 0, labels:size(2))
  return labels.dtype:find "float" and labels or labels:float()
end

-- Returns x * share + (x moved by one in the batch) * (1 - share).
local function mixed(x, share) return x * share + x:roll(1, 1) * (1 - share) end

-- Defines a class; mix(x, share) returns the images and the share that they keep.
local function define(name, mix)
  local class = transform.define(name, "float alpha = 1, int(>=1)? num_classes = nil", nil,
    function(self)
      args.check(self.alpha > 0, "%s: expected a number above 0 for argument 'alpha', got %g", name,
        self.alpha)
    end)

  function class:forward(x, labels)
    local rows = rows_of(self, x, labels)
    local alpha = lt.tensor(self.alpha, {dtype = "float64", device = "cpu"})
    local share = lt.distributions.Beta(alpha, alpha):sample():item()
    local images
    images, share = mix(x, share)
    return images, mixed(rows, share)
  end

  return class
end

--- transforms.MixUp(alpha = 1, num_classes = nil): mixup(images, labels) returns images * share +
-- others * (1 - share), where the others are the batch moved by one and the share is drawn from
-- Beta(alpha, alpha), and the labels {N, num_classes} mixed alike. Images are {N, C, H, W} floats,
-- labels {N} indices from 1, or {N, classes}.
mixes.MixUp = define("MixUp", function(x, share)
  args.check(x.dtype:find "float", "MixUp: expected images of a float dtype, got \"%s\"\n"
    .. "hint: transforms.ToDtype(\"float32\", true) before MixUp", x.dtype)
  return mixed(x, share), share
end)

--- transforms.CutMix(alpha = 1, num_classes = nil): cutmix(images, labels) returns the images with
-- a random rectangle of the batch moved by one, and the labels {N, num_classes} mixed by the areas:
-- see transforms.MixUp. The rectangle's mean area is drawn from Beta(alpha, alpha); what is outside
-- the image is left out.
mixes.CutMix = define("CutMix", function(x, share)
  local h, w = x:size(3), x:size(4)
  local half = 0.5 * (1 - share) ^ 0.5
  local function range(size)
    local center, reach = transform.offset(size - 1), half * size // 1
    return math.tointeger(math.max(center - reach, 0)), math.tointeger(math.min(center + reach,
      size))
  end
  local x1, x2 = range(w)
  local y1, y2 = range(h)
  local out = x:clone()
  if x2 > x1 and y2 > y1 then
    local function part(t) return t:narrow(3, y1 + 1, y2 - y1):narrow(4, x1 + 1, x2 - x1) end
    part(out):copy_(part(x:roll(1, 1)))
  end
  return out, 1 - (x2 - x1) * (y2 - y1) / (w * h)
end)

return mixes
