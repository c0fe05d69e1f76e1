--- One step of data-parallel training, simulated: forward, backward, and the all_reduce of each
-- bucket of gradients, which starts when backward has computed the last gradient of the bucket.
--
-- Every GPU has a stream that computes and a stream that communicates, and each collective occupies
-- the latter until it is done. What the simulation leaves out: the cores that communication takes
-- from the computation, other jobs on the network, and differences between GPUs.

local cluster = require "lutra.distributed.simulation.cluster"
local ring = require "lutra.distributed.simulation.ring"
local tree = require "lutra.distributed.simulation.tree"

local step = {}

local MIB = 1024 * 1024
-- The first bucket is small, so that communication starts early; PyTorch's value.
local first_bucket = MIB
-- The size of the chunks of the tree, in bytes.
local tree_chunk = 128 * 1024

--- Divides gradients into buckets. sizes: their bytes in the order of the parameters; cap: the
-- bytes from which a bucket is full. Returns a list of {bytes, done}, in the order of backward;
-- `done` is the fraction of all bytes whose gradients exist when the bucket is complete. A bucket
-- consists of whole gradients.
function step.buckets(sizes, cap)
  local total, done, buckets, current = 0, 0, {}, 0
  for _, bytes in ipairs(sizes) do total = total + bytes end
  for i = #sizes, 1, -1 do
    current, done = current + sizes[i], done + sizes[i]
    local limit = #buckets == 0 and math.min(first_bucket, cap) or cap
    if current >= limit or i == 1 then
      buckets[#buckets + 1] = {bytes = current, done = done / total}
      current = 0
    end
  end
  return buckets
end

-- Returns a function (bytes, ready) -> finish that simulates one all_reduce. Where the ranks are
-- ready at the same distances from each other as in an earlier call, its times are used again.
local function simulated(c, algorithm)
  local known = {}
  return function(bytes, ready)
    local first, offsets, finish = math.min(table.unpack(ready)), {}, {}
    for i, time in ipairs(ready) do offsets[i] = time - first end
    local key = bytes .. ":" .. table.concat(offsets, " ")
    if not known[key] then
      local share = (bytes - 1) // c.channels + 1 -- rounded up
      known[key] = algorithm == "ring" and ring(c, share, offsets)
        or tree.all_reduce(c, share, offsets, tree_chunk)
    end
    for i, time in ipairs(known[key]) do finish[i] = first + time end
    return finish
  end
end

-- Returns the time at which the last rank has the gradients of all buckets; `starts` has the
-- earliest time of each of them.
local function reduced(c, all_reduce, buckets, starts)
  local free = {}
  for i = 1, c.count do free[i] = 0 end
  for k, bucket in ipairs(buckets) do
    for i = 1, c.count do free[i] = math.max(free[i], starts[k]) end
    free = all_reduce(bucket.bytes, free)
  end
  return math.max(table.unpack(free))
end

--- Returns the seconds of a step on the cluster `c`: with overlap, and with all collectives after
-- backward. forward, backward and launch (of a collective) are in seconds.
function step.run(c, algorithm, buckets, forward, backward, launch)
  local start, length = cluster.time(forward), cluster.time(backward)
  local compute = start + length
  if c.count == 1 then return cluster.seconds(compute), cluster.seconds(compute) end
  local early, late = {}, {}
  for k, bucket in ipairs(buckets) do
    early[k] = start + math.floor(length * bucket.done) + cluster.time(launch)
    late[k] = compute + cluster.time(launch)
  end
  local all_reduce = simulated(c, algorithm)
  return cluster.seconds(reduced(c, all_reduce, buckets, early)),
    cluster.seconds(reduced(c, all_reduce, buckets, late))
end

return step
