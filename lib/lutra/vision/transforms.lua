--- lt.vision.transforms: callable objects that transform images, as torchvision.transforms.v2 on
-- tensors. An image is a tensor {..., C, H, W}; uint8 from 0 to 255, or floats from 0 to 1.

local transforms = {
  functional = require "lutra.vision.transforms.functional",
  InterpolationMode = require("lutra.vision.transforms.images").InterpolationMode,
}

for _, part in ipairs{"containers", "conversions", "crops", "augment", "mixes"} do
  for name, class in pairs(require("lutra.vision.transforms." .. part)) do
    transforms[name] = class
  end
end

--- lt.vision.transforms.v2: the same table.
transforms.v2 = transforms

return require("lutra.internal.strict_table").strict(transforms, "transforms")
