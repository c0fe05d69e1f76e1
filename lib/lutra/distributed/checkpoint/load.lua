--- lt.distributed.checkpoint.load.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local job = require "lutra.distributed.checkpoint.job"
local layout = require "lutra.distributed.checkpoint.layout"
local tree = require "lutra.distributed.checkpoint.tree"
local ShardedTensor = require "lutra.distributed.sharded_tensor"

local parse = args.signature("load",
  "table state_dict, string checkpoint_id, any? process_group = nil")

-- ---- the tensors of a folder

local Reader = {}
Reader.__index = Reader

-- Returns the reader of the tensors that an index names. Files are opened when they are needed,
-- and mapped into memory.
local function reader(folder, index)
  return setmetatable({folder = folder, index = index, files = {}}, Reader)
end

-- Returns the tensor of a piece, flat. Raises an error when the file lacks it or has another one.
function Reader:piece(entry, name, count)
  local file = self.index.weight_map[name]
  local path = layout.join(self.folder, file)
  if not self.files[file] then
    self.files[file] = {}
    for _, tensor in ipairs((core._load_safetensors(path, true))) do
      self.files[file][tensor[1]] = tensor[2]
    end
  end
  local x = self.files[file][name]
  args.check(x, 'load: cannot read "%s": it lacks tensor %q', path, name)
  args.check(x:numel() == count and x.dtype == entry.dtype, 'load: cannot read "%s": expected %d '
    .. "elements of %s for %q, got %d of %s", path, count, entry.dtype, name, x:numel(), x.dtype)
  return x:flatten()
end

-- Calls visit(part, at) for the parts of the elements from `first` to `last` of a tensor; `at` is
-- the index of the part's first element, counted from `first`.
function Reader:parts(entry, first, last, visit)
  for _, piece in ipairs(entry.pieces) do
    local name, start, count = table.unpack(piece)
    local from, to = math.max(first, start), math.min(last, start + count - 1)
    if from <= to then
      visit(self:piece(entry, name, count):narrow(1, from - start + 1, to - from + 1),
        from - first + 1)
    end
  end
end

-- Returns the whole tensor with an ID; one that is a single piece without a copy.
function Reader:whole(id)
  local entry = self.index.tensors[id]
  args.check(entry, 'load: cannot read "%s": its index lacks tensor %q', self.folder, id)
  local parts = {}
  self:parts(entry, 1, math.maxinteger, function(part) parts[#parts + 1] = part end)
  if #parts == 0 then return lt.empty({table.unpack(entry.shape)}, {dtype = entry.dtype}) end
  return (#parts == 1 and parts[1] or lt.cat(parts)):view({table.unpack(entry.shape)})
end

-- ---- loading

-- Returns the local tensor of a tensor or sharded tensor, and the index of its first element.
local function local_part(x)
  if ShardedTensor.is(x) then return x.tensor, x.first end
  return x, 1
end

-- Adds to `jobs` the copies that the tensors of `state` need, and checks all of them. Adds to
-- `loads` what may still fail, and then changes nothing: load_state_dict of optimizers.
local function plan(state, described, read, jobs, loads)
  tree.match("load", state, described, {
    tensor = function(x, id, name)
      local entry = read.index.tensors[id]
      args.check(entry, "load: the checkpoint's index lacks tensor %q", name)
      local own, saved = table.concat(x.shape, ", "), table.concat(entry.shape, ", ")
      args.check(own == saved, "load: expected shape {%s} for %q of the checkpoint, got {%s}", own,
        name, saved)
      args.check(x.dtype:find "^complex" or not entry.dtype:find "^complex", "load: expected real "
        .. "numbers for %q of the checkpoint, got %s\nhint: a tensor of that dtype", name,
        entry.dtype)
      local part, first = local_part(x)
      read:parts(entry, first, first + part:numel() - 1, function() end) -- opens the files
      jobs[#jobs + 1] = function()
        if part:numel() == 0 then return end
        local flat = part:is_contiguous() and part:detach():view({part:numel()})
          or lt.empty({part:numel()}, {dtype = part.dtype, device = part.device})
        read:parts(entry, first, first + part:numel() - 1, function(source, at)
          flat:narrow(1, at, source:numel()):copy_(source)
        end)
        if not part:is_contiguous() then part:detach():copy_(flat:view(part.shape)) end
      end
    end,
    value = function(parent, key, saved)
      jobs[#jobs + 1] = function() parent[key] = saved end
    end,
    stateful = function(x, saved)
      if lt.nn.is_module(x) then
        local own = x:state_dict()
        plan(own, saved, read, jobs, loads)
        jobs[#jobs + 1] = function() x:load_state_dict(own) end
      else
        local built = tree.build(saved, function(id) return read:whole(id) end)
        loads[#loads + 1] = function() x:load_state_dict(built) end
      end
    end,
  })
end

-- Returns the two lists of what has to be done, in this order, to load a checkpoint into `state`.
local function prepare(state, folder)
  local index = layout.read(folder)
  local described = lt.load(layout.join(folder, index.metadata.values))
  local jobs, loads = {}, {}
  plan(state, described, reader(folder, index), jobs, loads)
  return {loads, jobs}
end

--- lt.distributed.checkpoint.load(state_dict, {checkpoint_id = folder, process_group}): loads a
-- checkpoint of lt.distributed.checkpoint.save into the tensors of `state_dict`, in place, and
-- replaces its other values; all ranks call it. The number of ranks may differ from that of the
-- save. Each rank reads what its tensors and shards need. Modules and optimizers in it get their
-- state by load_state_dict. What the checkpoint has and `state_dict` lacks is ignored. Everything
-- is checked first: an error, which is raised on all ranks, leaves the tensors unchanged.
return function(...)
  local state, folder, group = parse(...)
  args.path("load", "checkpoint_id", folder)
  job.rank(group, "load") -- which raises the error outside of the group
  for _, list in ipairs(job.together(group, "load", nil, prepare, state, folder)) do
    job.together(group, "load", nil, lt.no_grad, function()
      for _, run in ipairs(list) do run() end
    end)
  end
end
