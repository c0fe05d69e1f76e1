--- lt.distributed.checkpoint: checkpoints that all ranks write and read together.

local strict_table = require "lutra.internal.strict_table"

return strict_table.strict({
  save = require "lutra.distributed.checkpoint.save",
  load = require "lutra.distributed.checkpoint.load",
  ShardedTensor = require "lutra.distributed.sharded_tensor",
}, "lt.distributed.checkpoint")
