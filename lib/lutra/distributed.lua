--- lt.distributed: several processes, on one machine or many, that train together.
--
-- Each process of a job has a rank, from 0 on, and runs the same program. Collectives are calls
-- that all ranks of a process group make, in the same order: broadcast, all_reduce, all_gather...
-- CPU tensors travel through MPI, CUDA tensors through NCCL; both libraries are found when
-- init_process_group is called. `lutra --nproc 4 train.lua` or mpirun starts the ranks.
--
-- The argument `group` is a process group of new_group; without it, it is that of all ranks. With
-- async_op = true a collective returns a work at once, and work:wait() ends the call.
--
-- Names and meanings are those of torch.distributed. Ranks are numbered from 0, as devices are; in
-- a list with an entry for each rank, that of rank r is list[r + 1].

local core = require "lutra.core"
local strict_table = require "lutra.internal.strict_table"

local distributed = {}

--- The names of the reductions: ReduceOp.SUM is "sum".
distributed.ReduceOp = strict_table.strict({}, "ReduceOp")
for name in pairs(core._communication.reductions()) do
  distributed.ReduceOp[name:upper()] = name
end

for _, name in ipairs {"groups", "collectives", "messages", "objects"} do
  for key, value in pairs(require("lutra.distributed." .. name)) do
    if not key:find "^_" then distributed[key] = value end
  end
end

return strict_table.lazy(distributed, "distributed", {
  Future = "lutra.distributed.future",
  algorithms = "lutra.distributed.algorithms",
  checkpoint = "lutra.distributed.checkpoint",
  fsdp = "lutra.distributed.fsdp",
  nn = "lutra.distributed.nn",
  optim = "lutra.distributed.optim",
  simulate = "lutra.distributed.simulation",
})
