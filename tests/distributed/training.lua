-- Trains a small network by DistributedDataParallel on the ranks of the job, and by one process
-- with the whole batch: the parameters and losses agree within rounding. Rank 0 prints "ok ...".
-- Run by tests/distributed/namespaces.

local lt = require "lutra"
local nn, F, optim, dist = lt.nn, lt.nn.functional, lt.optim, lt.distributed

dist.init_process_group{timeout = 60}
local rank, size = dist.get_rank(), dist.get_world_size()
local each, steps = 8, 10

-- Returns a network that is the same on all ranks.
local function network()
  lt.manual_seed(7)
  return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5))
end

-- Trains a network on the rows from `first` to `last` of each batch; returns the last loss.
local function train(net, first, last)
  local optimizer = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
  local loss
  for step = 1, steps do
    lt.manual_seed(100 + step)
    local x, y = lt.randn(each * size, 20), lt.randint(1, 5, {each * size})
    loss = F.cross_entropy(net(x[{{first, last}}]), y[{{first, last}}])
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
  end
  return loss:detach()
end

local whole, parallel = network(), network()
if rank > 0 then -- parameters are broadcast at the start
  for p in parallel:parameters() do p.data:fill_(rank) end
end
local expected = train(whole, 1, each * size)
local loss = train(nn.parallel.DistributedDataParallel(parallel), rank * each + 1,
  (rank + 1) * each)
dist.all_reduce(loss, {op = "avg"})
assert(lt.allclose(loss, expected, {rtol = 1e-4, atol = 1e-6}), "another loss")
local mine = {}
for p in parallel:parameters() do mine[#mine + 1] = p end
local i = 0
for p in whole:parameters() do
  i = i + 1
  assert(lt.allclose(mine[i], p, {rtol = 1e-4, atol = 1e-6}), "other parameters")
end
dist.barrier()
if rank == 0 then print(("ok training of %d steps"):format(steps)) end
