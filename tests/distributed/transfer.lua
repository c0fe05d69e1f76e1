-- Sends 16 MiB from rank 0 to the last rank, of which the half comes back. Run by
-- tests/distributed/namespaces, which counts the bytes on the way.

local lt = require "lutra"
local dist = lt.distributed

dist.init_process_group{timeout = 60}
local rank, last = dist.get_rank(), dist.get_world_size() - 1
local there, back = lt.zeros(16 << 20, {dtype = "uint8"}), lt.zeros(8 << 20, {dtype = "uint8"})
if rank == 0 then
  dist.send(there:fill_(5), last)
  dist.recv(back, {src = last})
  assert(back:eq(6):all():item())
elseif rank == last then
  dist.recv(there, {src = 0})
  dist.send(back:fill_(6), 0)
  assert(there:eq(5):all():item())
end
