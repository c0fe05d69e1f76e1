--- Trees: values made of nested tables whose leaves are tensors, as arguments and results of
-- function transforms. A table without a metatable and an ordered table are inner nodes; every
-- other value is a leaf.
--
-- Invariant: the functions visit the fields of a table in the same order: the list part, then the
-- names, sorted (of an ordered table, in its order).

local core = require "lutra.core"
local ordered_map = require "lutra.internal.ordered_map"

local tree = {}

local Ordered = getmetatable(ordered_map.new())

--- Returns whether a value is an inner node, and its metatable.
function tree.is_node(value)
  if type(value) ~= "table" then return false end
  local meta = getmetatable(value)
  return meta == nil or meta == Ordered, meta
end

--- Returns a copy of the tree with f(leaf, k) in place of each leaf that is a tensor; k counts
-- them. Other leaves are the same in the copy.
function tree.map(value, f)
  local count = 0
  local function copy(node)
    if core.is_tensor(node) then
      count = count + 1
      return f(node, count)
    end
    local inner, meta = tree.is_node(node)
    if not inner then return node end
    local result = meta and ordered_map.new() or {}
    for _, key in ipairs(ordered_map.keys(node)) do result[key] = copy(node[key]) end
    return result
  end
  return copy(value)
end

--- Returns the list of the tensors of a tree.
function tree.leaves(value)
  local list = {}
  tree.map(value, function(t)
    list[#list + 1] = t
    return t
  end)
  return list
end

--- Returns the tree with the tensors of `list` in place of its own, in their order.
function tree.fill(value, list)
  return tree.map(value, function(_, k) return list[k] end)
end

return tree
