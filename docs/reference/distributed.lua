-- Examples of lt.distributed: process groups, collectives, messages and objects. They run in a job
-- of one rank; `lutra --nproc 4` runs them in four.
local lt = require "lutra"

-- Start: lutra --nproc 4 train.lua, or mpirun -np 4 lutra train.lua
print(lt.distributed.is_available() == lt.distributed.is_mpi_available())  --> true
if not lt.distributed.is_available() then return end
lt.distributed.init_process_group{timeout = 60}
local rank, size = lt.distributed.get_rank(), lt.distributed.get_world_size()
local cuda = lt.distributed.is_nccl_available()
local device = cuda and "cuda:" .. lt.distributed.get_node_local_rank(0) or "cpu"
print(lt.distributed.is_initialized(), lt.distributed.get_backend())  --> true	mpi,nccl

-- The sum over all ranks; other reductions
local x = lt.ones(3, {device = device}) * (rank + 1)
lt.distributed.all_reduce(x)
for _, op in ipairs{lt.distributed.ReduceOp.SUM, lt.distributed.ReduceOp.AVG,
  lt.distributed.ReduceOp.MAX, lt.distributed.ReduceOp.MIN, lt.distributed.ReduceOp.PRODUCT} do
  lt.distributed.all_reduce(lt.ones(2), op)
end
lt.distributed.reduce(x, 0) -- on rank 0 only
local work = lt.distributed.all_reduce(lt.ones(1000), {async_op = true})
-- compute something else here
work:wait()

-- The tensor of one rank for all; those of all ranks
lt.distributed.broadcast(x, 0)
local all = {}
for r = 1, size do all[r] = lt.zeros(2) end
lt.distributed.all_gather(all, lt.ones(2))
local whole = lt.zeros(2 * size)
lt.distributed.all_gather_into_tensor(whole, lt.ones(2))
lt.distributed.gather(lt.ones(2), rank == 0 and all or nil, 0)
lt.distributed.scatter(lt.zeros(2), rank == 0 and all or nil, 0)

-- Sums in pieces, and pieces for each rank
local piece = lt.zeros(2)
lt.distributed.reduce_scatter(piece, all)
lt.distributed.reduce_scatter_tensor(piece, whole)
local outs = {}
for r = 1, size do outs[r] = lt.zeros(2) end
lt.distributed.all_to_all(outs, all)
lt.distributed.all_to_all_single(lt.zeros(2 * size), whole)

-- Messages from one rank to another
if size > 1 then
  local right, left = (rank + 1) % size, (rank - 1) % size
  local got = lt.zeros(2)
  for _, w in ipairs(lt.distributed.batch_isend_irecv{
    lt.distributed.P2POp(lt.distributed.isend, lt.ones(2), right),
    lt.distributed.P2POp(lt.distributed.irecv, got, left)}) do w:wait() end
  if rank == 0 then
    lt.distributed.send(lt.ones(2), 1, {tag = 3})
    lt.distributed.send_object_list({"learning rate", 0.1}, 1)
  elseif rank == 1 then
    lt.distributed.recv(got, 0, {tag = 3})
    lt.distributed.recv_object_list({}, 0)
  end
end

-- Lua values of all kinds
local values = {}
lt.distributed.all_gather_object(values, {rank = rank, name = "net"})
print(values[1].name)  --> net
lt.distributed.gather_object(rank, rank == 0 and {} or nil, 0)
lt.distributed.broadcast_object_list({rank, "seed"}, 0)
lt.distributed.scatter_object_list({}, rank == 0 and values or nil, 0)

-- Wait for all ranks; the second names those that do not come
lt.distributed.barrier()
lt.distributed.monitored_barrier{timeout = 30}

-- A group of some ranks, which all ranks create
local group = lt.distributed.new_group{0}
if group ~= lt.distributed.GroupMember.NON_GROUP_MEMBER then
  print(#lt.distributed.get_process_group_ranks(group))  --> 1
  print(lt.distributed.get_global_rank(group, 0), lt.distributed.get_group_rank(group, 0))  --> 0	0
end
lt.distributed.destroy_process_group()
