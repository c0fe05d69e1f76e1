--- lt.distributed.checkpoint.load.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local job = require "lutra.distributed.checkpoint.job"
local layout = require "lutra.distributed.checkpoint.layout"
local optimizer_states = require "lutra.distributed.fsdp.optimizer_states"
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

-- Returns the entry of the index for an ID.
function Reader:entry(id)
  return self.index.tensors[id]
    or args.fail('load: cannot read "%s": its index lacks tensor %q', self.folder, id)
end

-- Reads the elements of a tensor from `first` on into the vector `target`.
function Reader:into(entry, first, target)
  self:parts(entry, first, first + target:numel() - 1, function(source, at)
    target:narrow(1, at, source:numel()):copy_(source)
  end)
end

-- Returns the whole tensor with an ID; one that is a single piece without a copy.
function Reader:whole(id)
  local entry = self:entry(id)
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

-- Raises an error unless the tensor of an entry has a shape.
local function check_shape(entry, shape, name)
  local own, saved = table.concat(shape, ", "), table.concat(entry.shape, ", ")
  args.check(own == saved, "load: expected shape {%s} for %q of the checkpoint, got {%s}", own,
    name, saved)
end

-- Returns the state dict for an optimizer or other value with load_state_dict.
local function state_for(x, described, read)
  local function shape_of(node)
    local id = tree.id_of(node)
    return id and read:entry(id).shape
  end
  local function read_range(node, shape, first, target)
    local id = tree.id_of(node)
    check_shape(read:entry(id), shape, id)
    read:into(read:entry(id), first, target)
  end
  if type(x.param_groups) == "table" and type(described) == "table"
    and type(described.state) == "table" then
    lt.no_grad(optimizer_states.join, x, described, shape_of, read_range)
  end
  return tree.build(described, function(id) return read:whole(id) end)
end

-- Adds to `jobs` the copies that the tensors of `state` need, and checks all of them. Adds to
-- `loads` what may still fail, and then changes nothing: load_state_dict of optimizers.
local function plan(state, described, read, jobs, loads)
  tree.match("load", state, described, {
    tensor = function(x, id, name)
      local entry = read:entry(id)
      check_shape(entry, x.shape, name)
      args.check(x.dtype:find "^complex" or not entry.dtype:find "^complex", "load: expected real "
        .. "numbers for %q of the checkpoint, got %s\nhint: a tensor of that dtype", name,
        entry.dtype)
      local part, first = local_part(x)
      read:parts(entry, first, first + part:numel() - 1, function() end) -- opens the files
      jobs[#jobs + 1] = function()
        if part:numel() == 0 then return end
        local flat = part:is_contiguous() and part:detach():view({part:numel()})
          or lt.empty({part:numel()}, {dtype = part.dtype, device = part.device})
        read:into(entry, first, flat)
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
        local built = state_for(x, saved, read)
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
