--- lt.distributed.checkpoint.save.

local lt = require "lutra"
local args = require "lutra.internal.args"
local files = require "lutra.files"
local job = require "lutra.distributed.checkpoint.job"
local layout = require "lutra.distributed.checkpoint.layout"
local plan = require "lutra.distributed.checkpoint.plan"
local tree = require "lutra.distributed.checkpoint.tree"

local parse = args.signature("save",
  "table state_dict, string checkpoint_id, any? process_group = nil")

-- Returns the tensors of a list without the tensors themselves, for other ranks.
local function outlines(leaves)
  local list = {}
  for i, leaf in ipairs(leaves) do
    list[i] = {id = leaf.id, name = leaf.name, shape = {table.unpack(leaf.shape)},
      dtype = leaf.dtype, first = leaf.first, count = leaf.count, sharded = leaf.sharded}
  end
  return list
end

-- Writes the file of this rank, and on the first rank that of the values.
local function write(folder, index, tasks, leaves, merged, rank)
  local by_id, tensors = {}, {}
  for _, leaf in ipairs(leaves) do by_id[leaf.id] = leaf.tensor end
  for _, task in ipairs(tasks) do
    tensors[task.name] = by_id[task.id]:detach():contiguous()
  end
  if next(tensors) then
    lt.save_safetensors(layout.join(folder, layout.shard_name(index.metadata.generation, rank)),
      tensors)
  end
  if rank == 0 then lt.save(merged, layout.join(folder, index.metadata.values)) end
end

-- Returns what the save consists of: generation, described tree and list of tensors of this rank.
local function prepare(state, folder, rank)
  local described, leaves = tree.describe("save", state)
  if rank == 0 then
    local ok, why = files.make(folder)
    args.check(ok or files.kind(folder) == "folder",
      'save: cannot make the folder "%s": %s', folder, tostring(why))
  end
  return {described = described, leaves = leaves,
    generation = rank == 0 and layout.generation(folder) + 1 or 0}
end

--- lt.distributed.checkpoint.save(state_dict, {checkpoint_id = folder, process_group}): writes a
-- checkpoint; all ranks call it with the same folder, which they share. `state_dict` is a table of
-- tensors, sharded tensors, numbers, strings, booleans and tables of them; modules and optimizers
-- in it are saved by their state_dict, and optimizers of a FullyShardedDataParallel so that they
-- load with any number of ranks when the same modules are wrapped. Each rank writes its shards; a
-- tensor that several ranks have is written by one of them. What only some ranks have is saved,
-- too. The folder has the former checkpoint until the new one is complete, and then the new one.
-- Raises an error on all ranks when one fails, or when the shards of a tensor do not fit together.
return function(...)
  local state, folder, group = parse(...)
  args.path("save", "checkpoint_id", folder)
  local rank = job.rank(group, "save")
  local own = job.together(group, "save", nil, prepare, state, folder, rank)
  local all, leaves, merged = job.gather(group, {described = tree.plain(own.described),
    leaves = outlines(own.leaves), generation = own.generation, folder = folder}), {}, own.described
  for i, other in ipairs(all) do
    args.check(other.folder == all[1].folder, "save: expected the same folder on all ranks for "
      .. "argument 'checkpoint_id', got %q on rank 0 and %q on rank %d", all[1].folder,
      other.folder, i - 1)
    leaves[i] = other.leaves
    if i ~= rank + 1 then tree.merge(merged, other.described) end
  end
  local generation = all[1].generation
  local index, tasks = plan.make(leaves, generation)
  local function undo()
    os.remove(layout.join(folder, layout.shard_name(generation, rank)))
    if rank == 0 then os.remove(layout.join(folder, index.metadata.values)) end
  end
  job.together(group, "save", undo, write, folder, index, tasks[rank + 1], own.leaves, merged, rank)
  job.together(group, "save", undo, function()
    if rank == 0 then layout.write(folder, index) end
  end)
  if rank == 0 then layout.clean(folder, generation) end
end
