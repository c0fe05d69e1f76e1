--- lt.vision: images: transforms, datasets, files, grids and models, as torchvision.

return require("lutra.internal.strict_table").strict({
  transforms = require "lutra.vision.transforms",
  datasets = require "lutra.vision.datasets",
  io = require "lutra.vision.io",
  models = require "lutra.vision.models",
  utils = require "lutra.vision.utils",
}, "vision")
