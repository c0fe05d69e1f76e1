-- Optimizer state, parameters and checkpoints that are distributed over the ranks of a job. The
-- examples run on one rank; with `lutra --nproc 4 train.lua` each rank has a quarter.
local lt = require "lutra"
local dist, nn = lt.distributed, lt.nn
dist.init_process_group()
local function net() return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) end

-- Optimizer state on one rank for each parameter (ZeRO stage 1):
-- lt.distributed.optim.ZeroRedundancyOptimizer
local m = net()
local opt = lt.distributed.optim.ZeroRedundancyOptimizer(m:parameters(),
  {optimizer_class = lt.optim.AdamW, lr = 1e-3})
m(lt.ones(3, 4)):sum():backward()
opt:step()

-- Collect it for a checkpoint on rank 0: opt:consolidate_state_dict
opt:consolidate_state_dict(0)
if dist.get_rank() == 0 then print(#opt:state_dict().state) end  --> 4

-- Save and load on all ranks, in one folder for all:
-- lt.distributed.checkpoint.save, lt.distributed.checkpoint.load
local names = {os.tmpname()}
os.remove(names[1])
dist.broadcast_object_list(names, 0)
local folder = names[1]
lt.distributed.checkpoint.save({model = m, optimizer = opt, epoch = 3}, {checkpoint_id = folder})
local state = {model = net(), epoch = 0}
lt.distributed.checkpoint.load(state, {checkpoint_id = folder})
print(state.epoch, lt.equal(state.model[1].weight, m[1].weight))  --> 3	true

-- A tensor of which each rank has a part: lt.distributed.checkpoint.ShardedTensor, x:full_tensor
local part = lt.distributed.checkpoint.ShardedTensor(lt.arange(1, 6), {2, 3}, {first = 1})
print(part:full_tensor().shape, part:full_tensor()[2][3]:item())  --> {2, 3}	6
print(lt.distributed.checkpoint.ShardedTensor.is(part), part:size(2))  --> true	3

-- Parameters, gradients and optimizer state distributed (ZeRO stage 3):
-- lt.distributed.fsdp.FullyShardedDataParallel, lt.distributed.fsdp.FSDP
local sharded = lt.distributed.fsdp.FullyShardedDataParallel(net(),
  {auto_wrap_policy = {nn.Linear}})
local sgd = lt.optim.SGD(sharded:parameters(), {lr = 0.1, momentum = 0.9})
sharded(lt.ones(3, 4)):sum():backward()
sharded:clip_grad_norm_(1.0)
sgd:step()

-- Wrap modules by their number of parameters: lt.distributed.fsdp.size_based_auto_wrap_policy
local by_size = lt.distributed.fsdp.FSDP(net(), {auto_wrap_policy = function(module, recurse, numel)
  return lt.distributed.fsdp.size_based_auto_wrap_policy(module, recurse, numel, 20)
end})
print(by_size.module[1]:type_name())  --> FullyShardedDataParallel

-- Accumulate gradients without communication: m:no_sync
sharded:no_sync(function() sharded(lt.ones(3, 4)):sum():backward() end)
sharded(lt.ones(3, 4)):sum():backward()

-- Read or change whole parameters: lt.distributed.fsdp.summon_full_params
local function count(x) return x:num_parameters() end
print(lt.distributed.fsdp.summon_full_params(sharded, count))  --> 58

-- State dicts: lt.distributed.fsdp.state_dict_type, lt.distributed.fsdp.set_state_dict_type
local whole = lt.distributed.fsdp.state_dict_type(sharded, "full", function()
  return sharded:state_dict()
end)
print(whole["1.weight"].shape)  --> {8, 4}
lt.distributed.fsdp.set_state_dict_type(sharded, "sharded")
print(sharded:state_dict()["1.weight"])
--> ShardedTensor(elements 1 to 32 of float32, shape = {8, 4})

-- State of optimizers: lt.distributed.fsdp.optim_state_dict,
-- lt.distributed.fsdp.optim_state_dict_to_load
local by_name = lt.distributed.fsdp.optim_state_dict(sharded, sgd)
sgd:load_state_dict(lt.distributed.fsdp.optim_state_dict_to_load(sharded, sgd, by_name))
dist.barrier()
if dist.get_rank() == 0 then os.execute("rm -r " .. folder) end
dist.destroy_process_group()
