--- The ring algorithm of all_reduce, simulated chunk by chunk.
--
-- The data is divided into p chunks for p ranks. In each of 2 (p - 1) steps every rank sends one
-- chunk to the next rank of the ring: p - 1 steps add the chunks up, so that each rank has one
-- chunk of the sum, and p - 1 steps pass these on. Without differences between the links this takes
-- 2 (p - 1) (n / p / B + latency), and no algorithm sends fewer bytes (Patarasuk and Yuan,
-- "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009; Thakur,
-- Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005).
--
-- The ring visits the GPUs node by node, so that one of its hops per node crosses the network. Each
-- link has one sender, whose order of chunks is fixed; therefore the times follow from each other
-- step by step, without a queue of events.

local cluster = require "lutra.distributed.simulation.cluster"

-- Returns for each rank i (at i + 1) the times that its link to the next rank is occupied by a
-- small and by a large chunk, and its latency.
local function hops(c, small)
  local short, long, latency = {}, {}, {}
  for i = 0, c.count - 1 do
    local same = i // c.per_node == (i + 1) % c.count // c.per_node
    local link = same and c.inside or c.network
    short[i + 1] = cluster.occupied(link, small)
    long[i + 1] = cluster.occupied(link, small + 1)
    latency[i + 1] = link.latency
  end
  return short, long, latency
end

--- Returns for each rank (at rank + 1) the time at which it has the sum of `bytes` bytes on one
-- channel of the cluster `c`. ready: the time from which each rank can send and receive.
return function(c, bytes, ready)
  local p, max = c.count, math.max
  local finish, free, have, arrived = {}, {}, {}, {}
  for i = 1, p do
    have[i], finish[i] = ready[i], ready[i]
    free[i] = max(ready[i], ready[i % p + 1]) -- the receiver takes part from then on
  end
  if p == 1 then return finish end
  local small, larger = bytes // p, bytes % p -- the first `larger` chunks have one byte more
  local short, long, latency = hops(c, small)
  for step = 0, 2 * (p - 1) - 1 do
    for i = 1, p do
      local occupied = (i - 1 - step) % p < larger and long[i] or short[i]
      local sent = max(free[i], have[i]) + occupied
      free[i] = sent
      arrived[i % p + 1] = sent + latency[i]
    end
    have, arrived = arrived, have
  end
  for i = 1, p do finish[i] = max(have[i], free[i]) end
  return finish
end
