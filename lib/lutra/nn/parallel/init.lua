--- nn.parallel: one module on several devices. nn.DataParallel is composed of these functions.

local strict_table = require "lutra.internal.strict_table"
local data_parallel = require "lutra.nn.parallel.data_parallel"

return strict_table.strict({
  DataParallel = data_parallel.DataParallel,
  DistributedDataParallel = require "lutra.nn.parallel.distributed_data_parallel",
  data_parallel = data_parallel.data_parallel,
  scatter = require "lutra.nn.parallel.scatter".scatter,
  replicate = require "lutra.nn.parallel.replicate".replicate,
  parallel_apply = require "lutra.nn.parallel.apply".parallel_apply,
  gather = require "lutra.nn.parallel.gather".gather,
}, "nn.parallel")
