--- The autograd graph of a tensor as data that can be drawn.
--
-- A graph is {nodes, total, leaves, by_age}: nodes in the order in which they are found from the
-- tensor, breadth first, at most so many of `total`. A node is {number, name, shape (of what it
-- made), saved (bytes), freed, below = list of nodes and leaves, uses = how many edges lead to it,
-- height = the longest way down to a leaf}. A leaf is {leaf = tensor, name, shape}. What a node
-- leads to that is beyond the limit is {cut = true}. by_age has the nodes, the oldest first.

local core = require "lutra.core"

local graph = {}

local function saved_bytes(node)
  local bytes = 0
  for _, saved in ipairs(node.saved) do bytes = bytes + saved.bytes end
  return bytes
end

-- The leaf's entry, one for each tensor however many edges lead to it.
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

-- What is below was made before: in that order every height is known when it is needed.
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

--- The graph of tensor x with at most `limit` nodes. name_of(leaf tensor) gives its name or nil.
-- A leaf has no nodes.
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

--- Bytes that the nodes keep for backward.
function graph.saved(g)
  local bytes = 0
  for _, node in ipairs(g.nodes) do bytes = bytes + node.saved end
  return bytes
end

return graph
