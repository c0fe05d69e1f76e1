--- State dicts of optimizers of wrapped modules: by the names of the original parameters, and for
-- checkpoints by the numbers of the shards.
--
-- An optimizer has state for shards. A tensor of its state that has the length of a shard is cut
-- like it; numbers are those of each original parameter.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Flat = require "lutra.distributed.fsdp.flat"
local states = require "lutra.distributed.fsdp.states"
local walking = require "lutra.nn.module.walking"
local wrapping = require "lutra.distributed.fsdp.wrapping"

local optimizer_states = {}

-- Returns the names of the parameters of a module without wrappers: {[p] = name} for its own, and
-- {[shard] = {flat, prefix, unit}}.
local function names_of(module)
  local own, flats = {}, {}
  local function visit(inner, prefix)
    if wrapping.is_wrapped(inner) then
      for _, flat in ipairs(inner._fsdp.flats) do
        flats[flat.shard] = {flat = flat, prefix = prefix, unit = inner._fsdp}
      end
      visit(inner.module, prefix)
      return
    end
    for name, p in walking.own(inner, "parameter") do own[p] = own[p] or prefix .. name end
    for name, child in walking.own(inner, "module") do visit(child, prefix .. name .. ".") end
  end
  visit(module, "")
  return own, flats
end

-- Returns the names of the parameter p of an optimizer: one, or those of the slots of its shard.
local function names_for(title, p, own, flats)
  local entry, names = flats[p], {}
  if entry then
    for i, slot in ipairs(entry.flat.slots) do names[i] = entry.prefix .. slot.owners[1].path end
    return names, entry
  end
  args.check(own[p], "%s: the optimizer has a parameter that is not in the module\nhint: make the "
    .. "optimizer from m:parameters() after the module was wrapped", title)
  return {own[p]}
end

-- Returns whether a value of the state of a shard is cut like it. Raises an error for a tensor that
-- is neither that nor a number.
local function is_cut(title, flat, key, value)
  if not lt.is_tensor(value) then return false end
  local is_vector = value.ndim == 1 and value:numel() == flat.length
  args.check(is_vector or value:numel() == 1,
    "%s: cannot cut %q of the state like the parameters: it has shape %s", title, key,
    value.shape)
  return is_vector
end

-- Returns a list of the state of each slot of a shard from the state of the shard.
local function cut(entry, state, rank)
  local flat, options, list = entry.flat, entry.unit.state_dict_type, {}
  for i = 1, #flat.slots do list[i] = {} end
  local keys = {}
  for key in pairs(state) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = state[key]
    local is_vector, values = is_cut("optim_state_dict", flat, key, value), nil
    if is_vector and options.type == "full" or is_vector and flat.whole then
      values = states.whole(flat, value, options.rank0_only and rank ~= 0, options.offload_to_cpu)
    elseif is_vector then
      values = states.sharded(flat, value)
    end
    for i = 1, #flat.slots do
      if values then list[i][key] = values[i] else list[i][key] = value end
    end
  end
  return list
end

-- Raises an error unless the arguments are a module and an optimizer.
local function check_arguments(title, module, optimizer)
  args.expect(lt.nn.is_module(module), title, "a module", "model", module)
  args.expect(type(optimizer) == "table" and type(optimizer.param_groups) == "table", title,
    "an optimizer", "optim", optimizer)
end

--- optim_state_dict(model, optim): returns the state of an optimizer of a wrapped module, {state,
-- param_groups}, by the names of the original parameters: whole tensors or ShardedTensors by the
-- type of the module's state dicts (fsdp.state_dict_type, "local" counts as "sharded"). All ranks
-- call it; with rank0_only, other ranks get an empty table. Raises an error for an optimizer of
-- another module, and for state that has not the shape of the parameters.
function optimizer_states.optim_state_dict(model, optim)
  check_arguments("optim_state_dict", model, optim)
  local own, flats = names_of(model)
  local result = {state = {}, param_groups = {}}
  local drop = false
  lt.no_grad(function()
    for k, group in ipairs(optim.param_groups) do
      local new = {params = {}}
      for key, value in pairs(group) do
        if key ~= "params" and key ~= "param_names" then new[key] = value end
      end
      for _, p in ipairs(group.params) do
        local names, entry = names_for("optim_state_dict", p, own, flats)
        table.move(names, 1, #names, #new.params + 1, new.params)
        local state = rawget(optim.state, p)
        if entry then
          local rank = lt.distributed.get_rank(entry.unit.group)
          local options = entry.unit.state_dict_type
          drop = options.type == "full" and options.rank0_only and rank ~= 0
          for i, slot_state in ipairs(state and cut(entry, state, rank) or {}) do
            result.state[names[i]] = slot_state
          end
        elseif state then
          result.state[names[1]] = {}
          for key, value in pairs(state) do result.state[names[1]][key] = value end
        end
      end
      result.param_groups[k] = new
    end
  end)
  return drop and {} or result
end

-- Returns the state of a shard from the states of its slots, some of which may be nil. Raises an
-- error when one does not match.
local function joined(entry, names, saved)
  local flat, new = entry.flat, nil
  local i = 0
  flat:each_range(function(slot, at, place, count)
    i = i + 1
    for key, value in pairs(saved[names[i]] or {}) do
      new = new or {}
      if lt.is_tensor(value) and value:numel() == 1 and #slot.shape ~= value.ndim
        or not (lt.is_tensor(value) or type(value) == "table") then
        new[key] = value
      else
        new[key] = new[key] or lt.zeros({flat.length}, {dtype = flat.shard.dtype,
          device = flat.shard.device})
        local why = states.copy_slot(flat, new[key], slot, at, place, count, value)
        args.check(not why, "optim_state_dict_to_load: %s of %q: %s", key, names[i], why or "")
      end
    end
  end)
  return new
end

--- optim_state_dict_to_load(model, optim, state_dict): returns the result of optim_state_dict, or a
-- state dict of an optimizer of the module that is not wrapped by these names, in the form that
-- optim:load_state_dict takes. Raises an error for the state of another module.
function optimizer_states.optim_state_dict_to_load(model, optim, state_dict)
  check_arguments("optim_state_dict_to_load", model, optim)
  args.check(type(state_dict) == "table" and type(state_dict.state) == "table"
    and type(state_dict.param_groups) == "table", "optim_state_dict_to_load: expected a table "
    .. "{state = ..., param_groups = ...} for argument 'optim_state_dict', got %s",
    args.show(state_dict))
  args.check(#state_dict.param_groups == #optim.param_groups,
    "optim_state_dict_to_load: expected %d groups, got %d", #optim.param_groups,
    #state_dict.param_groups)
  local own, flats = names_of(model)
  local result, number = {state = {}, param_groups = {}}, 0
  lt.no_grad(function()
    for k, group in ipairs(optim.param_groups) do
      local given, known = state_dict.param_groups[k], {}
      for _, name in ipairs(given.params or {}) do known[name] = true end
      local new = {params = {}}
      for key, value in pairs(given) do
        if key ~= "params" and key ~= "param_names" then new[key] = value end
      end
      for i, p in ipairs(group.params) do
        number = number + 1
        local names, entry = names_for("optim_state_dict_to_load", p, own, flats)
        for _, name in ipairs(names) do
          args.check(known[name],
            "optim_state_dict_to_load: group %d lacks the parameter %q", k, name)
        end
        new.params[i] = number
        if entry then
          result.state[number] = joined(entry, names, state_dict.state)
        else
          result.state[number] = state_dict.state[names[1]]
        end
      end
      result.param_groups[k] = new
    end
  end)
  return result
end

-- ---- gradients that are not finite --------------------------------------------------

--- Sets tensors, which are 1 where a gradient of an optimizer has inf or NaN and 0 elsewhere, to 1
-- when those of another rank with shards of the same parameters are. Called by all these ranks.
function optimizer_states.combine_marks(optim, marks)
  local done = {}
  for _, group in ipairs(optim.param_groups) do
    for _, p in ipairs(group.params) do
      local flat = Flat.of(p)
      local ranks = flat and (flat.group or lt.distributed.group.WORLD)
      for _, t in ipairs(ranks and not done[ranks] and marks or {}) do
        if t.device == p.device then
          lt.distributed.all_reduce(t, {op = "max", group = ranks})
        end
      end
      if ranks then done[ranks] = true end
    end
  end
end

-- ---- checkpoints --------------------------------------------------------------------

-- Calls visit(state, flat, i) for the state of each shard of an optimizer in a state dict.
local function each_shard(optim, state, visit)
  local i = 0
  for _, group in ipairs(optim.param_groups) do
    for _, p in ipairs(group.params) do
      i = i + 1
      local flat = Flat.of(p)
      if flat and type(state[i]) == "table" then visit(state[i], flat, i) end
    end
  end
end

--- Returns the state dict of an optimizer, for lt.distributed.checkpoint: in the place of each
-- tensor that is cut like a shard, the list of ShardedTensors for the original parameters, with
-- use_orig_params the only one of them.
function optimizer_states.sharded(optim)
  local saved = optim:state_dict()
  each_shard(optim, saved.state, function(state, flat)
    for key, value in pairs(state) do
      if is_cut("save", flat, key, value) then
        local list = states.sharded(flat, value)
        state[key] = flat.in_place and list[1] or list
      end
    end
  end)
  return saved
end

-- Returns a tensor that is cut like a shard, with the values of the tensors of a list, one for each
-- slot.
local function read_shard(flat, list, read)
  local shard = lt.zeros({flat.length}, {dtype = flat.shard.dtype, device = flat.shard.device})
  local i = 0
  flat:each_range(function(slot, at, place, count)
    i = i + 1
    read(list[i], slot.shape, at, shard:narrow(1, count > 0 and place or 1, count))
  end)
  return shard
end

--- Replaces in a described state dict, which optimizer_states.sharded has returned, the lists by
-- tensors that are cut like the shards of this rank. shape_of(node) returns the shape of a tensor,
-- nil for other values; read(node, shape, first, target) reads its elements from `first` on, and
-- raises an error unless it has this shape. Raises an error for lists of another length.
function optimizer_states.join(optim, described, shape_of, read)
  each_shard(optim, described.state, function(state, flat, i)
    for key, value in pairs(state) do
      local shape, list = shape_of(value), nil
      if shape and flat.in_place and #shape == #flat.slots[1].shape then list = {value} end
      if not shape and type(value) == "table" then list = value end
      if list then
        args.check(#list == #flat.slots, "load: expected %d tensors for %q of the state of shard "
          .. "%d, got %d\nhint: wrap the same modules", #flat.slots, key, i, #list)
        state[key] = read_shard(flat, list, read)
      end
    end
  end)
end

return optimizer_states
