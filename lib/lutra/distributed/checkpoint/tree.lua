--- State dicts as trees: tables that contain tables, tensors, sharded tensors and plain values.
--
-- A described tree has {[MARK] = ID} in the place of each tensor, where ID is the path to it. It is
-- what a checkpoint saves beside the tensors, so that a state dict can be rebuilt without a
-- template.
--
-- Invariant: equal paths on different ranks have equal IDs, and different paths different ones.

local lt = require "lutra"
local args = require "lutra.internal.args"
local optimizer_states = require "lutra.distributed.fsdp.optimizer_states"
local ordered_map = require "lutra.internal.ordered_map"
local ShardedTensor = require "lutra.distributed.sharded_tensor"

local tree = {}

local MARK = "lutra.tensor"
local ESCAPES = {["/"] = "~1", ["~"] = "~0", ["#"] = "~2"} -- in the strings of a path

-- Returns whether a value is a table of a state dict.
local function is_table(x) return args.is_plain(x) or ordered_map.is(x) end

--- Returns the ID of a marked place in a described tree, or nil.
function tree.id_of(x) return is_table(x) and x[MARK] or nil end

--- Returns whether a value has the methods state_dict and load_state_dict: a module or an
-- optimizer.
function tree.is_stateful(x)
  return type(x) == "table" and not is_table(x) and not ShardedTensor.is(x)
    and type(x.state_dict) == "function" and type(x.load_state_dict) == "function"
end

-- Returns a path with one more key: its ID, and a name for people and files.
local function below(id, name, key)
  local text = tostring(key)
  return id .. (type(key) == "string" and "/" or "/#") .. text:gsub("[/~#]", ESCAPES),
    name == "" and text or name .. "." .. text
end

--- Returns the state of a stateful value. An optimizer with distributed state gives this rank's.
function tree.state_of(x)
  if type(x._local_state_dict) == "function" then return x:_local_state_dict() end
  if type(x.param_groups) == "table" then return optimizer_states.sharded(x) end
  return x:state_dict()
end

--- Returns a described copy of a state dict, and the list of its tensors: {id, name, shape, dtype,
-- first, count, tensor, sharded}, where the elements from `first` on are in `tensor`. Raises an
-- error of `title` for a value that cannot be saved.
function tree.describe(title, state)
  local leaves, open = {}, {} -- open: the tables that contain the value
  local function visit(value, id, name)
    if tree.is_stateful(value) then value = tree.state_of(value) end
    if lt.is_tensor(value) then
      leaves[#leaves + 1] = {id = id, name = name, shape = {table.unpack(value.shape)},
        dtype = value.dtype, first = 1, count = value:numel(), tensor = value, sharded = false}
      return {[MARK] = id}
    elseif ShardedTensor.is(value) then
      leaves[#leaves + 1] = {id = id, name = name, shape = value.shape, dtype = value.dtype,
        first = value.first, count = value.tensor:numel(), tensor = value.tensor, sharded = true}
      return {[MARK] = id}
    elseif is_table(value) then
      local new = ordered_map.is(value) and ordered_map.new() or {}
      args.check(not open[value], "%s: cannot save %q: it is a table that contains itself", title,
        name)
      open[value] = true
      for _, key in ipairs(ordered_map.keys(value)) do
        new[key] = visit(value[key], below(id, name, key))
      end
      open[value] = nil
      return new
    end
    local kind = type(value)
    args.check(kind == "number" or kind == "string" or kind == "boolean",
      "%s: cannot save %s at %q: expected tensors, numbers, strings, booleans and tables of them",
      title, args.show(value), name)
    return value
  end
  return visit(state, "", ""), leaves
end

--- Returns a described tree with plain tables, which can be sent to other ranks.
function tree.plain(described)
  if not is_table(described) then return described end
  local new = {}
  for key, value in pairs(described) do new[key] = tree.plain(value) end
  return new
end

--- Adds to a described tree what it lacks and `other` has.
function tree.merge(into, other)
  for _, key in ipairs(ordered_map.keys(other)) do
    local value = other[key]
    if into[key] == nil then
      into[key] = value
    elseif is_table(into[key]) and is_table(value) and not tree.id_of(value)
      and not tree.id_of(into[key]) then
      tree.merge(into[key], value)
    end
  end
end

--- Returns the value of a described tree, in which find(id) gives the tensors.
function tree.build(described, find)
  if not is_table(described) then return described end
  local id = tree.id_of(described)
  if id then return find(id) end
  local new = ordered_map.is(described) and ordered_map.new() or {}
  for _, key in ipairs(ordered_map.keys(described)) do
    new[key] = tree.build(described[key], find)
  end
  return new
end

--- Compares a state dict with a described tree. Calls tensor(value, id, name) for each tensor,
-- value(parent, key, saved) for each plain value, and stateful(value, described, name) for each
-- module or optimizer. Raises an error of `title` for what the tree lacks.
function tree.match(title, state, described, visit)
  local function walk(parent, saved, name)
    for _, key in ipairs(ordered_map.keys(parent)) do
      local value, _, path = parent[key], below("", name, key)
      local found = is_table(saved) and saved[key]
      local id = tree.id_of(found)
      local is_tensor = lt.is_tensor(value) or ShardedTensor.is(value)
      args.check(is_table(saved) and saved[key] ~= nil, "%s: the checkpoint lacks %q", title, path)
      args.check(is_tensor == (id ~= nil), "%s: expected %s at %q of the checkpoint, got %s", title,
        is_tensor and "a tensor" or args.show(value), path, id and "a tensor" or args.show(found))
      if is_tensor then
        visit.tensor(value, id, path)
      elseif tree.is_stateful(value) then
        visit.stateful(value, found, path)
      elseif is_table(value) then
        args.check(is_table(found), "%s: expected a table at %q of the checkpoint, got %s", title,
          path, args.show(found))
        walk(value, found, path)
      else
        args.check(not is_table(found), "%s: expected %s at %q of the checkpoint, got a table",
          title, args.show(value), path)
        visit.value(parent, key, found)
      end
    end
  end
  walk(state, described, "")
end

return tree
