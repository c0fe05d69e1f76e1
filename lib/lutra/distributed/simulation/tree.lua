--- The tree algorithm of all_reduce, simulated chunk by chunk: NCCL's double binary tree.
--
-- Two binary trees connect the nodes, and each sums one half of the data up to its root and passes
-- the result down. A node that has children in one tree is a leaf of the other one, so that the
-- links of all nodes are used in both directions (Sanders, Speck and Traeff, "Two-tree algorithms
-- for full bandwidth broadcast, reduction and scan", 2009). In a node the GPUs are a chain, whose
-- first GPU has the network link. The data goes through the trees in chunks, one behind the other.
-- The number of latencies is about 2 log2(nodes), where a ring has 2 (p - 1).
--
-- A GPU has one port for sending and one for receiving on each kind of link. A port serves messages
-- one at a time in the order of their times.

local cluster = require "lutra.distributed.simulation.cluster"
local Queue = require "lutra.distributed.simulation.event_queue"

local tree = {}

-- Returns the parent of a node in the first tree of `count` nodes, nil for the root, which is 0. A
-- node's lowest bit is its height, so that odd nodes are leaves.
local function first_parent(node, count)
  if node == 0 then return nil end
  local bit = node & -node
  local up = (node ~ bit) | (bit << 1)
  return up < count and up or node ~ bit
end

--- Returns the parent of a node in tree 1 or 2 of `count` nodes, nil for the root. The second tree
-- is the first one mirrored, or rotated by one where the number of nodes is odd.
function tree.parent(number, node, count)
  if number == 1 then return first_parent(node, count) end
  local function turned(i) return count % 2 == 0 and count - 1 - i or (i + 1) % count end
  local image = count % 2 == 0 and count - 1 - node or (node - 1) % count
  local up = first_parent(image, count)
  return up and turned(up)
end

-- Returns the tree `number` over the GPUs of a cluster: parent[gpu] (nil for the root) and
-- children[gpu], a list.
local function connect(c, number)
  local parent, children = {}, {}
  for gpu = 0, c.count - 1 do children[gpu] = {} end
  for gpu = 0, c.count - 1 do
    local up
    if gpu % c.per_node > 0 then
      up = gpu - 1
    else
      local node = tree.parent(number, gpu // c.per_node, c.nodes)
      up = node and node * c.per_node
    end
    parent[gpu] = up
    if up then table.insert(children[up], gpu) end
  end
  return {parent = parent, children = children}
end

-- The state of one all_reduce.
local Run = {}
Run.__index = Run

-- Sends a message, {tree, chunk, from, to, up}, not before `now`; returns the time at which the
-- sender's port is free.
function Run:send(now, message)
  local c, from, to = self.c, message.from, message.to
  local same = from // c.per_node == to // c.per_node
  local link = same and c.inside or c.network
  local out, into = same and self.inside_out or self.network_out,
    same and self.inside_in or self.network_in
  local occupied = cluster.occupied(link, message.chunk.bytes)
  local start = math.max(now, self.ready[from + 1], self.ready[to + 1], out[from] or 0)
  out[from] = start + occupied
  local received = math.max(start, into[to] or 0) + occupied
  into[to] = received
  self.queue:add(received + link.latency, message)
  self:progress(from, out[from])
  return out[from]
end

-- Notes that a GPU is not done before `time`.
function Run:progress(gpu, time)
  if time > self.finish[gpu + 1] then self.finish[gpu + 1] = time end
end

function Run:send_down(now, gpu, t, chunk)
  for _, child in ipairs(t.children[gpu]) do
    self:send(now, {tree = t, chunk = chunk, from = gpu, to = child})
  end
end

-- Sends a chunk of a leaf to its parent; the next chunk follows when the port is free.
function Run:send_leaf(now, gpu, t, number)
  local chunk = t.chunks[number]
  if not chunk then return end
  local free = self:send(now, {tree = t, chunk = chunk, from = gpu, to = t.parent[gpu], up = true})
  self.queue:add(free, {leaf = gpu, tree = t, next = number + 1})
end

-- Continues after the arrival of a message.
function Run:arrive(now, message)
  local gpu, t, chunk = message.to, message.tree, message.chunk
  self:progress(gpu, now)
  if not message.up then return self:send_down(now, gpu, t, chunk) end
  chunk.arrived[gpu] = (chunk.arrived[gpu] or 0) + 1
  if chunk.arrived[gpu] < #t.children[gpu] then return end
  local up = t.parent[gpu]
  if up then
    self:send(now, {tree = t, chunk = chunk, from = gpu, to = up, up = true})
  else
    self:send_down(now, gpu, t, chunk)
  end
end

-- Returns the list of chunks of `bytes` bytes, each at most `most` large.
local function divide(bytes, most)
  local chunks, count = {}, math.max(1, (bytes + most - 1) // most)
  for i = 1, count do
    chunks[i] = {bytes = bytes * i // count - bytes * (i - 1) // count, arrived = {}}
  end
  return chunks
end

--- Returns for each rank (at rank + 1) the time at which it has the sum of `bytes` bytes on one
-- channel of the cluster `c`. ready: the time from which each rank can send and receive;
-- chunk_bytes: the size of a chunk.
function tree.all_reduce(c, bytes, ready, chunk_bytes)
  local run = setmetatable({c = c, ready = ready, queue = Queue.new(), finish = {},
    inside_out = {}, inside_in = {}, network_out = {}, network_in = {}}, Run)
  for i = 1, c.count do run.finish[i] = ready[i] end
  if c.count == 1 then return run.finish end
  local halves = {bytes - bytes // 2, bytes // 2}
  for number = 1, 2 do
    local t = connect(c, number)
    t.chunks = divide(halves[number], chunk_bytes)
    for gpu = 0, c.count - 1 do
      if #t.children[gpu] == 0 then
        run.queue:add(ready[gpu + 1], {leaf = gpu, tree = t, next = 1})
      end
    end
  end
  for event in run.queue.take, run.queue do
    if event.leaf then
      run:send_leaf(event.time, event.leaf, event.tree, event.next)
    else
      run:arrive(event.time, event)
    end
  end
  return run.finish
end

return tree
