-- Ranks: data parallelism with one process for each device.
--
--   lutra [--emulate cuda:2] [--nproc 2] examples/placement/26_data_parallel_ranks.lua
--
-- 23_data_parallel.lua drives all GPUs from one process. With many GPUs, and with several machines,
-- there is one process for each GPU. The processes are a job; each has a number, its rank, from 0
-- on. All of them run this same script. They have no memory in common, so they exchange tensors by
-- collectives: calls that every rank makes. Without --nproc the job has one rank, and the script
-- says the same with fewer participants.
--
-- test:
-- test on cuda:2:

local lt = require "lutra"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data
local dist = lt.distributed

if not dist.is_available() then
  print "skipped: ranks need MPI (apt install openmpi-bin), for devices lutra --emulate cuda:2"
  os.exit(true, true)
end

-- PyTorch: dist.init_process_group(backend). CPU tensors go through MPI, CUDA tensors through NCCL.
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()

-- One rank prints: otherwise every line appears once for each rank.
local function say(...) if rank == 0 then print(...) end end

-- 1. A rank uses one device: that of its number on its machine. set_device makes it "cuda".
local device = "cpu"
local number = dist.get_node_local_rank(0)
if number < lt.cuda.device_count() then
  lt.cuda.set_device(number)
  device = "cuda:" .. number
end
say(("a job of %d; rank %d is on %s"):format(size, rank, device))

-- 2. broadcast: all ranks get the tensor of one of them.
local x = lt.full({3}, 10.0 * rank + 1, {device = device})
dist.broadcast(x, 0)
say("broadcast from rank 0:", x)
assert(lt.equal(x:cpu(), lt.full({3}, 1.0)))

-- 3. all_reduce: all ranks get the sum (or avg, max, min, product) of the tensors of all.
local sum = lt.full({3}, rank + 1.0, {device = device})
dist.all_reduce(sum)
say("all_reduce of 1, 2, ...:", sum)
assert(lt.equal(sum:cpu(), lt.full({3}, size * (size + 1) / 2)))

-- 4. How all_reduce works: a ring. The tensor is cut into one chunk for each rank. In every step
-- each rank sends a chunk to the next rank and receives one from the rank before it. In the first
-- size - 1 steps it adds what it receives; then each rank has one chunk of the sum, and these
-- chunks go round once more. Every rank sends 2 (size - 1) / size of the tensor, however many ranks
-- there are: twice as many GPUs need hardly more time. (The guide distributed.md has a picture.)
local function ring_all_reduce(tensor)
  local chunks = tensor:chunk(size)
  local after, before = (rank + 1) % size, (rank - 1) % size
  for step = 0, 2 * (size - 1) - 1 do
    local sent = chunks[(rank - step) % size + 1]
    local changed = chunks[(rank - step - 1) % size + 1]
    local received = lt.empty_like(changed)
    local works = dist.batch_isend_irecv {
      dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, received, before),
    }
    for _, work in ipairs(works) do work:wait() end
    if step < size - 1 then changed:add_(received) else changed:copy_(received) end
  end
end

local by_hand = lt.arange(0, 4 * size - 1, {dtype = "float32", device = device}) * (rank + 1)
local expected = by_hand:clone()
dist.all_reduce(expected)
ring_all_reduce(by_hand)
say("the ring by hand:", by_hand)
assert(lt.equal(by_hand:cpu(), expected:cpu()))

-- 5. DistributedDataParallel. Every rank has the whole model and computes a part of the batch.
-- The wrapper broadcasts the parameters of rank 0 at the start; backward leaves in every parameter
-- the average of all ranks' gradients. So all ranks make the same step, and the models stay equal.
local function make_model()
  lt.manual_seed(1)
  return nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3)):to(device)
end

-- Trains a model on batches of 24 * size rows, of which `part` selects those of this rank.
local function train(model, part)
  local sgd, losses = optim.SGD(model:parameters(), {lr = 0.1}), {}
  local random = lt.Generator():manual_seed(2)
  for step = 1, 5 do
    local rows = lt.randn(24 * size, 10, {generator = random})
    local input = part(rows):to(device)
    local labels = input[{{}, 1}]:gt(0):to "int64" + 1
    sgd:zero_grad()
    local loss = F.cross_entropy(model(input), labels)
    loss:backward()
    sgd:step()
    losses[step] = loss:detach()
  end
  return lt.stack(losses)
end

local alone, parallel = make_model(), nn.parallel.DistributedDataParallel(make_model())
local losses = train(alone, function(rows) return rows end)
local own = train(parallel, function(rows) return rows:chunk(size)[rank + 1] end)
-- A rank's loss is that of its rows; the average of all ranks is that of the batch.
dist.all_reduce(own, {op = "avg"})
say("losses alone:   ", losses)
say("losses parallel:", own)
assert(lt.allclose(losses:cpu(), own:cpu(), {atol = 1e-5}))
for name, p in parallel.module:named_parameters() do
  assert(p:allclose(alone:state_dict()[name], {atol = 1e-5}), name .. " differs from one process")
end

-- 6. DistributedSampler gives each rank other samples of a data set; set_epoch changes the order.
local set = data.TensorDataset(lt.arange(12 * size))
local sampler = data.distributed.DistributedSampler(set, {shuffle = true})
sampler:set_epoch(1)
local loader = data.DataLoader(set, {batch_size = 4, sampler = sampler})
local mine = {}
for batch in loader:iter() do mine[#mine + 1] = batch end
local all = {}
dist.all_gather_object(all, lt.cat(mine):totable()) -- any value, of a few kilobytes
local seen, samples = {}, 0
for _, list in ipairs(all) do
  for _, sample in ipairs(list) do
    assert(not seen[sample], "two ranks got the same sample")
    seen[sample], samples = true, samples + 1
  end
end
say(("each rank got %d of %d samples"):format(#all[1], samples))
assert(samples == #set)

-- 7. Save on one rank, when all have the same parameters. The others must not read too early.
local file = {rank == 0 and os.tmpname() or ""}
dist.broadcast_object_list(file, {src = 0})
if rank == 0 then lt.save_safetensors(file[1], parallel.module:state_dict()) end
dist.barrier()
make_model():load_state_dict(lt.load_safetensors(file[1]))
dist.barrier()
if rank == 0 then os.remove(file[1]) end

dist.destroy_process_group()
say "ok: each rank computed a part of the batch, and all have the model of the whole batch"
