-- Examples of DistributedDataParallel over processes: lt.distributed.algorithms, lt.distributed.nn.
local lt = require "lutra"
local nn, dist = lt.nn, lt.distributed
lt.manual_seed(1)

-- Batch normalization over the batches of all processes; in one process it is nn.BatchNorm2d
local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
print(net[2]:isinstance(nn.SyncBatchNorm))  --> true
local norm = nn.SyncBatchNorm(4)
norm(lt.randn(2, 4))
norm:reset_running_stats() -- the mean is 0 again
norm:reset_parameters()
print(norm.running_mean)  --> tensor{0., 0., 0., 0.}

-- A value that will be there: what communication hooks return
local work = {wait = function() return true end, is_completed = function() return true end}
local future = lt.distributed.Future(work, lt.ones(2))
print(future:is_completed(), future:value())  --> true	tensor{1., 1.}
print(future:next(function(f) return f:value() * 2 end):wait())  --> tensor{2., 2.}

-- Average gradients over the processes while backward runs, in fewer bits
if dist.is_available() then
  dist.init_process_group()
  local model = nn.parallel.DistributedDataParallel(net, {bucket_cap_mb = 10})
  local hook = lt.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook
  model:register_comm_hook(nil, hook)
  local images = lt.randn(8, 1, 4, 4)
  model:no_sync(function() model(images):sum():backward() end) -- adds to the grads of this process
  model(images):sum():backward()
end

-- Processes with different numbers of batches
if dist.is_initialized() then
  local model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
  model:join(function()
    for _ = 1, 2 + dist.get_rank() do model(lt.ones(3, 2)):sum():backward() end
  end)
end

-- Other hooks: in float16, and around another hook
if dist.is_initialized() then
  local half = lt.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook
  local plain = lt.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook
  local list = {half, plain,
    lt.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper(plain),
    lt.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_wrapper(plain)}
  for _, hook in ipairs(list) do
    local model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    model:register_comm_hook(nil, hook)
    model(lt.ones(3, 2)):sum():backward()
  end
end

-- A hook of your own gets the gradients of a bucket
if dist.is_initialized() then
  local model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
  model:register_comm_hook(nil, function(_, bucket)
    local buffer = bucket:buffer()
    local sum = dist.all_reduce(buffer, {async_op = true})
    return dist.Future(sum, buffer):next(function(f) return f:value() / dist.get_world_size() end)
  end)
  model(lt.ones(3, 2)):sum():backward()
end

-- Collectives with gradients
if dist.is_initialized() then
  local size = dist.get_world_size()
  local x = lt.ones{2 * size, requires_grad = true}
  lt.distributed.nn.functional.all_reduce(x):sum():backward()
  lt.distributed.nn.functional.broadcast(x, 0):sum():backward()
  lt.distributed.nn.functional.all_gather(x)[1]:sum():backward()
  lt.distributed.nn.functional.reduce_scatter(lt.empty(2), x:chunk(size)):sum():backward()
  lt.distributed.nn.functional.all_to_all_single(lt.empty(2 * size), x):sum():backward()
  dist.all_reduce(x.grad)
  assert(x.grad:sum():item() == 2 * size ^ 3 + 8 * size ^ 2) -- 10 on one rank
  dist.destroy_process_group()
end
