--- data: datasets, loaders of batches, and readers of data files.

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
  --- data.idx(path): returns the tensor of an IDX file, gzip-compressed or not. Raises an error for
  -- a file that cannot be read.
  idx = function(path) return lt.load_idx(path) end,
}, "data")
