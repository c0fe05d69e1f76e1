--- lt.vision.datasets: image datasets over local files, as torchvision.datasets. Nothing is
-- downloaded. Images are uint8 tensors {C, H, W}; class labels count from 1.

local datasets = {}

for _, part in ipairs{"mnist", "cifar", "folders", "fake"} do
  for name, class in pairs(require("lutra.vision.datasets." .. part)) do datasets[name] = class end
end

return require("lutra.internal.strict_table").strict(datasets, "datasets")
