--- lt.vision.models: networks for images with torchvision's structure and parameter names.

local models = {}

for _, part in ipairs{"resnet", "convolutional", "vision_transformer"} do
  for name, make in pairs(require("lutra.vision.models." .. part)) do models[name] = make end
end

return require("lutra.internal.strict_table").strict(models, "models")
