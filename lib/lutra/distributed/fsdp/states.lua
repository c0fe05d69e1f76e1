--- State dicts of wrapped modules, and their whole parameters.
--
-- A state dict has the names of the module without wrappers. Its type is "full" (whole tensors),
-- "sharded" (ShardedTensors: for each parameter the elements that this rank has) or "local" (the
-- flat parameters).

local lt = require "lutra"
local args = require "lutra.internal.args"
local ShardedTensor = require "lutra.distributed.sharded_tensor"
local ordered_map = require "lutra.internal.ordered_map"
local wrapping = require "lutra.distributed.fsdp.wrapping"

local states = {}

-- Returns whether there is such a type of state dicts.
local function is_type(kind)
  return kind == "full" or kind == "sharded" or kind == "local"
end

-- Returns the wrappers in a module, itself included, parents first.
local function wrappers_in(module)
  local list = {}
  for inner in module:modules() do
    if wrapping.is_wrapped(inner) then list[#list + 1] = inner end
  end
  return list
end
states.wrappers_in = wrappers_in

-- ---- saving -------------------------------------------------------------------------

--- Returns tensors for the slots of a flat parameter, cut from a shard: ShardedTensors.
function states.sharded(flat, shard)
  local list = {}
  flat:each_range(function(slot, at, place, count)
    local part = count > 0 and shard:narrow(1, place, count) or shard:narrow(1, 1, 0)
    list[#list + 1] = ShardedTensor(part, slot.shape, {first = count > 0 and at or 1,
      process_group = flat.group})
  end)
  return list
end

--- Returns tensors for the slots of a flat parameter, gathered from the shards of all ranks. With
-- `drop`, this rank takes part and gets an empty list.
function states.whole(flat, shard, drop, to_cpu)
  local full = shard
  if not flat.whole then
    full = lt.empty({flat.padded}, {dtype = shard.dtype, device = shard.device})
    lt.distributed.all_gather_into_tensor(full, shard:contiguous(), {group = flat.group})
  end
  local list = {}
  for i, view in ipairs(drop and {} or flat:views(full)) do
    list[i] = to_cpu and view:to("cpu"):clone() or view:clone()
  end
  if full ~= shard then full:free() end
  return list
end

-- Returns the entries of a flat parameter in a state dict: name -> value.
local function entries_of(unit, flat, rank)
  local options, entries = unit.state_dict_type, {}
  local shard = flat.shard:detach()
  if options.type == "local" and not flat.in_place then
    local ranks = flat.whole and 1 or flat.ranks
    entries[flat.key] = ShardedTensor(shard, {ranks, flat.length},
      {first = (flat.whole and 0 or flat.rank) * flat.length + 1, process_group = flat.group})
    return entries
  end
  local values
  if options.type ~= "full" and not flat.whole then
    values = states.sharded(flat, shard)
  else
    values = states.whole(flat, shard, options.rank0_only and rank ~= 0, options.offload_to_cpu)
  end
  for i, slot in ipairs(flat.slots) do
    for _, owner in ipairs(slot.owners) do entries[owner.path] = values[i] end
  end
  return entries
end

-- Puts what the state dict of a wrapper has in place of the entries behind `prefix`.
local function after_save(self, state, prefix)
  local unit = self._fsdp
  local found, rank = {}, lt.distributed.get_rank(unit.group)
  for _, key in ipairs(ordered_map.keys(state)) do
    local name = key:sub(1, #prefix) == prefix and key:sub(#prefix + 1)
    if name then
      found[name:gsub("^module%.", "", 1)] = state[key]
      state[key] = nil
    end
  end
  local drop = unit.state_dict_type.type == "full" and unit.state_dict_type.rank0_only and rank ~= 0
  lt.no_grad(function()
    for _, flat in ipairs(unit.flats) do
      if not flat.in_place then found[flat.key] = nil end
      for name, value in pairs(entries_of(unit, flat, rank)) do found[name] = value end
    end
  end)
  if drop then return end
  for _, name in ipairs(unit.names) do
    if found[name] ~= nil then
      state[prefix .. name], found[name] = found[name], nil
    end
  end
  local rest = ordered_map.keys(found)
  for _, name in ipairs(rest) do state[prefix .. name] = found[name] end
end

-- ---- loading ------------------------------------------------------------------------

--- Copies the elements of `value`, a tensor or a ShardedTensor for a slot, that this rank has into
-- its shard. Returns why that is not possible, or nil.
function states.copy_slot(flat, shard, slot, at, place, count, value)
  if ShardedTensor.is(value) then
    if table.concat(value.shape, ", ") ~= table.concat(slot.shape, ", ") then
      return ("expected shape {%s}, got {%s}"):format(table.concat(slot.shape, ", "),
        table.concat(value.shape, ", "))
    end
    if value.tensor:numel() ~= count or count > 0 and value.first ~= at then
      return ("expected the elements %d to %d of rank %d, got %d to %d\nhint: a checkpoint of "
        .. "lt.distributed.checkpoint loads with any number of ranks"):format(at, at + count - 1,
          flat.rank, value.first, value.first + value.tensor:numel() - 1)
    end
    if count > 0 then shard:narrow(1, place, count):copy_(value.tensor) end
    return nil
  end
  if not lt.is_tensor(value) then return "expected a tensor, got " .. args.show(value) end
  if table.concat(value.shape, ", ") ~= table.concat(slot.shape, ", ") then
    return ("expected shape {%s}, got {%s}"):format(table.concat(slot.shape, ", "),
      table.concat(value.shape, ", "))
  end
  if count > 0 then
    shard:narrow(1, place, count):copy_(value:detach():reshape(-1):narrow(1, at, count))
  end
end

-- Returns why the local state `value` of a flat parameter cannot be loaded, or nil.
local function local_problem(flat, value)
  local ranks = flat.whole and 1 or flat.ranks
  if lt.is_tensor(value) then
    return value:numel() ~= flat.length and ("expected %d elements, got %d"):format(flat.length,
      value:numel()) or nil
  end
  if not ShardedTensor.is(value) then return "expected a tensor, got " .. args.show(value) end
  if value.shape[1] ~= ranks then
    return ("expected a local state dict of %d ranks, got one of %d\nhint: save a \"sharded\" or "
      .. "\"full\" state dict to load it with another number of ranks"):format(ranks,
        value.shape[1])
  end
  local first = (flat.whole and 0 or flat.rank) * flat.length + 1
  if value.shape[2] ~= flat.length or value.first ~= first
    or value.tensor:numel() ~= flat.length then
    return ("expected elements %d to %d of {%d, %d}, got %d to %d of {%s}"):format(first,
      first + flat.length - 1, ranks, flat.length, value.first,
      value.first + value.tensor:numel() - 1, table.concat(value.shape, ", "))
  end
end

-- Returns the value of a slot in the entries that were found, and the name under which.
local function value_of(slot, found)
  for _, owner in ipairs(slot.owners) do
    if found[owner.path] ~= nil then return found[owner.path], owner.path end
  end
end

-- Returns the new shard of a flat parameter from the entries `found`, which it removes from them.
-- Appends to `missing` and `errors`.
local function shard_from(flat, found, prefix, missing, errors)
  local given, key = found[flat.key], flat.key
  if not flat.in_place and given ~= nil then
    found[key] = nil
    local why = local_problem(flat, given)
    if why then errors[#errors + 1] = prefix .. key .. ": " .. why end
    return not why and (ShardedTensor.is(given) and given.tensor or given) or nil
  end
  local shard = flat.shard:detach():clone()
  flat:each_range(function(slot, at, place, count)
    local value, name = value_of(slot, found)
    if value == nil then
      missing[#missing + 1] = prefix .. slot.owners[1].path
    else
      local why = states.copy_slot(flat, shard, slot, at, place, count, value)
      if why then errors[#errors + 1] = prefix .. name .. ": " .. why end
    end
    for _, owner in ipairs(slot.owners) do found[owner.path] = nil end
  end)
  return shard
end

-- Changes the names behind `prefix` in a state dict to those of the wrapper, and its values to
-- shards.
local function before_load(self, state, prefix, _, _, missing, _, errors)
  local unit, found = self._fsdp, ordered_map.new()
  for _, key in ipairs(ordered_map.keys(state)) do
    if type(key) == "string" and key:sub(1, #prefix) == prefix then
      found[key:sub(#prefix + 1)] = state[key]
      state[key] = nil
    end
  end
  lt.no_grad(function()
    for _, flat in ipairs(unit.flats) do
      local shard = shard_from(flat, found, prefix, missing, errors) or flat.shard:detach()
      if flat.in_place then
        for _, owner in ipairs(flat.slots[1].owners) do
          state[prefix .. "module." .. owner.path] = shard
        end
      else
        state[prefix .. flat.key] = shard
      end
    end
  end)
  for name, value in pairs(found) do state[prefix .. "module." .. name] = value end
end

--- Installs the hooks of a wrapper.
function states.install(wrapper)
  wrapper:register_state_dict_post_hook(after_save)
  wrapper:register_load_state_dict_pre_hook(before_load)
end

-- ---- settings -----------------------------------------------------------------------

local parse_type = args.signature("set_state_dict_type",
  "any module, string state_dict_type, bool offload_to_cpu = false, bool rank0_only = false")

--- set_state_dict_type(module, type, {offload_to_cpu = false, rank0_only = false}): sets what
-- m:state_dict() returns for the wrapped modules in `module`: "full" (the default), whole tensors
-- on all ranks, or with rank0_only on rank 0; "sharded", ShardedTensors, which
-- lt.distributed.checkpoint saves and loads with any number of ranks; or "local", the flat
-- parameters, for the same number of ranks (with use_orig_params ShardedTensors). m:state_dict() is
-- called on all ranks. Returns the former settings. Raises an error for another type.
function states.set_state_dict_type(...)
  local module, kind, to_cpu, rank0_only = parse_type(...)
  args.expect(lt.nn.is_module(module), "set_state_dict_type", "a module", "module", module)
  args.check(is_type(kind), "set_state_dict_type: expected \"full\", \"sharded\" or \"local\" for "
    .. "argument 'state_dict_type', got %s", args.show(kind))
  local old = {}
  for _, wrapper in ipairs(wrappers_in(module)) do
    old[wrapper] = wrapper._fsdp.state_dict_type
    wrapper._fsdp.state_dict_type =
      {type = kind, offload_to_cpu = to_cpu, rank0_only = rank0_only}
  end
  return old
end

--- state_dict_type(module, type, f, ...): calls f(...), in which state dicts of the wrapped modules
-- in `module` have this type; see set_state_dict_type. `type` may be a table {type, offload_to_cpu
-- = , rank0_only = }. Returns what f returns.
function states.state_dict_type(module, kind, f, ...)
  args.expect(args.is_callable(f), "state_dict_type", "a function", "f", f)
  local options = {}
  for name, value in pairs(args.is_plain(kind) and kind or {}) do
    if name ~= 1 and name ~= "type" then options[name] = value end
  end
  if args.is_plain(kind) then kind = kind.type or kind[1] end
  local old = states.set_state_dict_type(module, kind, options)
  local _ <close> = setmetatable({}, {__close = function()
    for wrapper, settings in pairs(old) do wrapper._fsdp.state_dict_type = settings end
  end})
  return f(...)
end

-- ---- whole parameters ---------------------------------------------------------------

-- Writes the whole parameters `views` back to the shard of this rank.
local function write_back(flat, views)
  local i = 0
  flat:each_range(function(_, at, place, count)
    i = i + 1
    if count > 0 then
      flat.shard:detach():narrow(1, place, count)
        :copy_(views[i]:detach():reshape(-1):narrow(1, at, count))
    end
  end)
end

--- summon_full_params(module, f) or (module, {writeback = true}, f): calls f(module) while the
-- modules below have their whole parameters, in the dtype of the shards, and the shards are hidden.
-- All ranks call it. With writeback, changes of the values are kept: each rank stores its part.
-- Returns what f returns. Raises an error during a forward pass.
function states.summon_full_params(module, options, f)
  if f == nil then options, f = {}, options end
  args.expect(lt.nn.is_module(module), "summon_full_params", "a module", "module", module)
  args.expect(args.is_callable(f), "summon_full_params", "a function", "f", f)
  args.expect(args.is_plain(options), "summon_full_params", "a table of options", "options",
    options)
  for name in pairs(options) do
    args.check(name == "writeback", "summon_full_params: expected the option writeback, got '%s'",
      tostring(name))
  end
  local summoned = {}
  for _, wrapper in ipairs(wrappers_in(module)) do
    local unit = wrapper._fsdp
    args.check(not (unit.root and unit.root.is_running),
      "summon_full_params: cannot gather the parameters during a forward pass")
    for _, flat in ipairs(unit.flats) do
      flat:free()
      flat:gather(flat.shard.dtype)
      if flat.whole then flat.full = flat.full:clone() end -- which need not be written back
      summoned[#summoned + 1] = {flat = flat, wrapper = wrapper}
    end
  end
  local function finish(keep)
    for _, entry in ipairs(summoned) do
      local flat = entry.flat
      if keep then lt.no_grad(write_back, flat, entry.views) end
      if not flat.in_place then
        getmetatable(entry.wrapper).__state.fields[flat.key] = flat.shard
      end
      flat:free()
    end
  end
  for _, entry in ipairs(summoned) do
    local flat = entry.flat
    entry.views = lt.no_grad(flat.views, flat, flat:ready())
    for i, view in ipairs(entry.views) do
      entry.views[i] = lt._parameter(view:detach(), flat.shard.requires_grad)
    end
    flat:set(entry.views)
    if not flat.in_place then getmetatable(entry.wrapper).__state.fields[flat.key] = nil end
  end
  local results = table.pack(pcall(f, module))
  finish(results[1] and options.writeback ~= false)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

return states
