--- The plan of a save: which rank writes which elements of which tensor.
--
-- Invariant: the plan depends only on what all ranks hold, so that every rank makes the same one.

local args = require "lutra.internal.args"
local json = require "lutra.internal.json"
local layout = require "lutra.distributed.checkpoint.layout"

local plan = {}

-- Returns the tensors of all ranks by ID, {name, shape, dtype, sharded, held}, and the sorted IDs.
-- `held` is a list of {rank, first, count}. Raises an error when two ranks differ.
local function collect(all)
  local tensors, ids = {}, {}
  for i, leaves in ipairs(all) do
    for _, leaf in ipairs(leaves) do
      local t = tensors[leaf.id]
      local shape = table.concat(leaf.shape, ", ")
      if not t then
        t = {name = leaf.name, shape = leaf.shape, text = shape, dtype = leaf.dtype,
          sharded = leaf.sharded, held = {}, rank = i - 1}
        tensors[leaf.id], ids[#ids + 1] = t, leaf.id
      end
      args.check(t.text == shape and t.dtype == leaf.dtype and t.sharded == leaf.sharded,
        "save: %q differs between ranks: %s%s of shape {%s} on rank %d, %s%s of shape {%s} on rank "
          .. "%d", leaf.name, t.sharded and "sharded " or "", t.dtype, t.text, t.rank,
        leaf.sharded and "sharded " or "", leaf.dtype, shape, i - 1)
      table.insert(t.held, {rank = i - 1, first = leaf.first, count = leaf.count})
    end
  end
  table.sort(ids)
  return tensors, ids
end

local GAP = "save: the shards of %q do not fit together: no rank has element %d of %d"

-- Returns the pieces of a sharded tensor in order, without those that two ranks hold. Raises an
-- error when they do not cover it.
local function pieces_of(t)
  local numel, next_one, pieces = 1, 1, {}
  for _, size in ipairs(t.shape) do numel = numel * size end
  table.sort(t.held, function(a, b)
    if a.first ~= b.first then return a.first < b.first end
    if a.count ~= b.count then return a.count > b.count end
    return a.rank < b.rank
  end)
  for _, piece in ipairs(t.held) do
    if piece.count > 0 and piece.first == next_one then
      pieces[#pieces + 1] = piece
      next_one = piece.first + piece.count
    else
      args.check(piece.count == 0 or piece.first + piece.count <= next_one, GAP, t.name, next_one,
        numel)
    end
  end
  args.check(next_one == numel + 1, GAP, t.name, next_one, numel)
  return pieces
end

-- Returns the piece of a whole tensor, for the holder that has the fewest elements to write so far.
local function whole_of(t, load)
  local best = t.held[1]
  for _, piece in ipairs(t.held) do
    if (load[piece.rank] or 0) < (load[best.rank] or 0) then best = piece end
  end
  load[best.rank] = (load[best.rank] or 0) + best.count
  return {best}
end

-- Returns `name`, with a number when it is used already.
local function unique(used, name)
  local new, n = name, 1
  while used[new] or new == "__metadata__" or new == "" do
    n = n + 1
    new = ("%s#%d"):format(name, n)
  end
  used[new] = true
  return new
end

--- Returns the index of a save of the lists of tensors of all ranks, and the tasks of each rank: a
-- list of {id, name, first, count, sharded} for rank + 1.
function plan.make(all, generation)
  local tensors, ids = collect(all)
  local index, tasks, used, load = layout.new(generation, #all), {}, {}, {}
  for i = 1, #all do tasks[i] = {} end
  for _, id in ipairs(ids) do
    local t = tensors[id]
    local entry = {shape = json.array(t.shape), dtype = t.dtype, sharded = t.sharded,
      pieces = json.array {}}
    for _, piece in ipairs(t.sharded and pieces_of(t) or whole_of(t, load)) do
      local name = unique(used, t.sharded and ("%s@%d"):format(t.name, piece.first) or t.name)
      index.weight_map[name] = layout.shard_name(generation, piece.rank)
      table.insert(entry.pieces, {name, piece.first, piece.count})
      table.insert(tasks[piece.rank + 1], {id = id, name = name})
    end
    index.tensors[id] = entry
  end
  return index, tasks
end

return plan
