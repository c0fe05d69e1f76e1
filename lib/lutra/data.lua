--- data: datasets, samplers, loaders of batches, and readers of data files.

local lt = require "lutra"
local strict_table = require "lutra.internal.strict_table"
local collating = require "lutra.data.collate"
local samplers = require "lutra.data.samplers"
local subset = require "lutra.data.subset"

local data = {
  Dataset = require "lutra.data.dataset",
  IterableDataset = require "lutra.data.iterable_dataset",
  TensorDataset = require "lutra.data.tensor_dataset",
  StackDataset = require "lutra.data.stack_dataset",
  ConcatDataset = require "lutra.data.concat_dataset",
  ChainDataset = require "lutra.data.chain_dataset",
  Subset = subset.Subset,
  random_split = subset.random_split,
  Sampler = require "lutra.data.sampler",
  distributed = require "lutra.data.distributed",
  DataLoader = require "lutra.data.loader",
  default_collate = collating.default_collate,
  default_convert = collating.default_convert,
  get_worker_info = require("lutra.data.worker_info").get,
  read_csv = require "lutra.data.csv",
  mnist = require "lutra.data.mnist",
  --- data.idx(path): returns the tensor of an IDX file, gzip-compressed or not. Raises an error for
  -- a file that cannot be read.
  idx = function(path) return lt.load_idx(path) end,
}

for name, class in pairs(samplers) do data[name] = class end
data.DistributedSampler = data.distributed.DistributedSampler

return strict_table.strict(data, "data")
