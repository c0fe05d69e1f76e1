--- lt.vision.transforms.functional: the transforms as functions on images, tensors {..., C, H, W}.
-- They run on every device, and autograd records them on float images.

local functional = {InterpolationMode = require("lutra.vision.transforms.images").InterpolationMode}

for _, part in ipairs{"pixels", "geometry", "warps", "color"} do
  for name, f in pairs(require("lutra.vision.transforms." .. part)) do functional[name] = f end
end

return require("lutra.internal.strict_table").strict(functional, "transforms.functional")
