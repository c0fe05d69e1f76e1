--- data: samples, batches and the files they come from.

local lt = require "lutra"
local subset = require "lutra.data.subset"

return require("lutra.internal.strict_table").strict({
  Dataset = require "lutra.data.dataset",
  TensorDataset = require "lutra.data.tensor_dataset",
  Subset = subset.Subset,
  random_split = subset.random_split,
  DataLoader = require "lutra.data.loader",
  default_collate = require "lutra.data.collate",
  mnist = require "lutra.data.mnist",
  --- data.idx(path): the tensor in an IDX file, packed with gzip or not.
  idx = function(path) return lt.load_idx(path) end,
}, "data")
