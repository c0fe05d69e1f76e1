--- The autograd graph of a tensor as data that can be drawn.
--
-- A graph is {nodes, total, leaves, by_age}: nodes in breadth-first order from the tensor, at most
-- a limit of the `total`. A node is {number, name, shape (of its result), saved (bytes), freed,
-- below = list of nodes and leaves, uses = number of edges to it, height = length of the longest
-- path to a leaf}. A leaf is {leaf = tensor, name, shape}. A node beyond the limit is represented
-- by {cut = true}. by_age lists the nodes, the oldest first.

local core = require "lutra.core"

local graph = {}

local function saved_bytes(node)
  local bytes = 0
  for _, saved in ipairs(node.saved) do bytes = bytes + saved.bytes end
  return bytes
end

-- Returns the entry of a leaf tensor, the same for all edges to it.
local function leaf_of(g, tensor, shape, name_of)
  local memory = core._memory(tensor)
  local list = g.by_memory[memory] or {}
  g.by_memory[memory] = list
  for _, leaf in ipairs(list) do
    if leaf.leaf == tensor then return leaf end
  end
  local leaf = {leaf = tensor, shape = tostring(shape or tensor.shape), uses = 0, height = 0,
    name = name_of(tensor)}
  list[#list + 1] = leaf
  g.leaves[#g.leaves + 1] = leaf
  return leaf
end

local function link(g, node, raw, name_of)
  for i, input in ipairs(raw.inputs) do
    local below
    if input.leaf then
      below = leaf_of(g, input.leaf, input.shape, name_of)
    else
      below = g.nodes[input.node] or {cut = true, uses = 0, height = 0}
      below.shape = below.shape or input.shape and tostring(input.shape)
    end
    below.uses = below.uses + 1
    node.below[i] = below
  end
end

-- Computes heights. A node is newer than those below it, so by age their heights are known.
local function find_heights(g)
  local by_age = table.move(g.nodes, 1, #g.nodes, 1, {})
  table.sort(by_age, function(a, b) return a.sequence < b.sequence end)
  for _, node in ipairs(by_age) do
    for _, below in ipairs(node.below) do
      node.height = math.max(node.height, below.height + 1)
    end
  end
  g.by_age = by_age
end

--- Returns the graph of tensor x with at most `limit` nodes; a leaf tensor has no nodes.
-- name_of(leaf tensor) returns its name or nil.
function graph.read(x, limit, name_of)
  local list, total = core._graph(x, limit)
  local g = {nodes = {}, leaves = {}, total = total, by_memory = {}}
  for i, raw in ipairs(list) do
    g.nodes[i] = {number = i, name = raw.name, sequence = raw.sequence, freed = raw.freed,
      saved = saved_bytes(raw), below = {}, uses = 0, height = 0}
  end
  if g.nodes[1] then g.nodes[1].shape = tostring(x.shape) end
  for i, raw in ipairs(list) do link(g, g.nodes[i], raw, name_of) end
  find_heights(g)
  return g
end

--- Returns the number of bytes of the tensors saved for backward.
function graph.saved(g)
  local bytes = 0
  for _, node in ipairs(g.nodes) do bytes = bytes + node.saved end
  return bytes
end

return graph
