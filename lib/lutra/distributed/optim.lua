--- lt.distributed.optim: optimizers whose state is distributed over the ranks of a job.

local strict_table = require "lutra.internal.strict_table"

return strict_table.strict({
  ZeroRedundancyOptimizer = require "lutra.distributed.zero_redundancy_optimizer",
}, "lt.distributed.optim")
