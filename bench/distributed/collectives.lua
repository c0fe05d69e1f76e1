-- Measures the collectives of lt.distributed on CPU tensors, as collectives.c measures MPI's.
--
--   mpirun -np 2 lutra bench/distributed/collectives.lua KIND BYTES...
--
-- For each size rank 0 prints `KIND <tab> BYTES <tab> SECONDS`: the time of one call on the slowest
-- rank, the least mean of several batches of calls after a warm-up. All ranks begin each call
-- together, after a barrier.
local lt = require "lutra"
local dist = lt.distributed

dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()

local BATCHES = 10

-- Returns the number of calls in a batch for a size; collectives.c has the same rule.
local function calls_for(bytes) return math.max(1, math.min(100, (16 << 20) // bytes)) end

local kinds = {
  all_reduce = function(whole) dist.all_reduce(whole) end,
  broadcast = function(whole) dist.broadcast(whole, 0) end,
  all_gather = function(whole, part) dist.all_gather_into_tensor(whole, part) end,
  reduce_scatter = function(whole, part) dist.reduce_scatter_tensor(part, whole) end,
}

-- Returns the seconds of one call on the slowest rank.
local function measure(run, bytes)
  local calls, seconds = calls_for(bytes), {}
  local whole, part = lt.ones(bytes // 4), lt.ones(math.max(1, bytes // 4 // size))
  for _ = 1, calls // 10 + 2 do run(whole, part) end
  for k = 1, BATCHES do
    local sum = 0
    for _ = 1, calls do
      dist.barrier()
      local start = lt.clock()
      run(whole, part)
      sum = sum + lt.clock() - start
    end
    seconds[k] = sum / calls
  end
  local slowest = lt.tensor(seconds, {dtype = "float64"})
  dist.all_reduce(slowest, {op = "max"})
  return slowest:min():item()
end

local run = assert(kinds[arg[1]], "usage: collectives.lua KIND BYTES...")
for i = 2, #arg do
  local seconds = measure(run, math.tointeger(tonumber(arg[i])))
  if rank == 0 then print(("%s\t%s\t%.9g"):format(arg[1], arg[i], seconds)) end
end
dist.destroy_process_group()
