--- FullyShardedDataParallel: a module whose parameters are distributed over the ranks (ZeRO-3).
--
-- The parameters of the wrapped module, without those of wrapped modules inside, become flat
-- parameters, of which this module has the shard of its rank as a parameter `_flat_param`.

local lt = require "lutra"
local args = require "lutra.internal.args"
local collectives = require "lutra.nn.parallel.collectives"
local Flat = require "lutra.distributed.fsdp.flat"
local groups = require "lutra.distributed.groups"
local Unit = require "lutra.distributed.fsdp.unit"
local states = require "lutra.distributed.fsdp.states"
local wrapping = require "lutra.distributed.fsdp.wrapping"

local check = args.check

local FSDP = lt.nn.Module:extend "FullyShardedDataParallel"
FSDP.is_sharded = true

local parse = args.signature("FullyShardedDataParallel", "any module, any? process_group = nil, "
  .. "'FULL_SHARD'|'SHARD_GRAD_OP'|'NO_SHARD' sharding_strategy = 'FULL_SHARD', "
  .. "any? cpu_offload = nil, any? auto_wrap_policy = nil, "
  .. "string? backward_prefetch = 'BACKWARD_PRE', any? mixed_precision = nil, "
  .. "list? ignored_modules = nil, any? param_init_fn = nil, any? device_id = nil, "
  .. "bool sync_module_states = false, bool forward_prefetch = false, "
  .. "bool limit_all_gathers = true, bool use_orig_params = false")

local FLOATS = {float64 = true, float32 = true, float16 = true, bfloat16 = true}
local PRECISIONS = {param_dtype = true, reduce_dtype = true, buffer_dtype = true}

-- Returns the settings of mixed_precision. Raises an error for others.
local function precision_of(given)
  if given == nil then return {} end
  args.expect(args.is_plain(given), "FullyShardedDataParallel", "a table {param_dtype, "
    .. "reduce_dtype, buffer_dtype}", "mixed_precision", given)
  for name, dtype in pairs(given) do
    check(PRECISIONS[name] and FLOATS[dtype], "FullyShardedDataParallel: expected a float dtype "
      .. "for param_dtype, reduce_dtype or buffer_dtype of 'mixed_precision', got %s = %s",
      tostring(name), args.show(dtype))
  end
  return given
end

-- Returns the modules of a list and those below them as a set.
local function set_of(list)
  local set = {}
  for _, module in ipairs(list or {}) do
    args.expect(lt.nn.is_module(module), "FullyShardedDataParallel", "a list of modules",
      "ignored_modules", module)
    for inner in module:modules() do set[inner] = true end
  end
  return set
end

-- Broadcasts buffers, and the parameters that no wrapper below has, from the first rank of the
-- group.
local function synchronize(module, group)
  local list = {}
  wrapping.each_module(module, "", {}, function(inner)
    for p in inner:parameters{recurse = false} do list[#list + 1] = p end
  end)
  for x in module:buffers() do list[#list + 1] = x end
  collectives.broadcast(list, group)
end

-- Returns the flat parameters of a list of {p, owners}: one for each dtype, with and without
-- gradient; with `single`, one for each parameter.
local function flats_of(entries, single, options)
  local lists, by_key = {}, {}
  for i, entry in ipairs(entries) do
    local key = single and i or ("%s %s %s"):format(entry.p.dtype, entry.p.device,
      tostring(entry.p.requires_grad))
    if not by_key[key] then
      by_key[key] = {}
      lists[#lists + 1] = by_key[key]
    end
    table.insert(by_key[key], entry)
  end
  for i, list in ipairs(lists) do
    local is_float = FLOATS[list[1].p.dtype]
    lists[i] = Flat.new(list, {group = options.group, ranks = options.ranks,
      rank = options.rank, whole = options.whole, in_place = single,
      param_dtype = is_float and options.precision.param_dtype or nil,
      reduce_dtype = is_float and (options.precision.reduce_dtype
        or options.precision.param_dtype) or nil})
  end
  return lists
end

-- Converts the floating-point buffers below a module that no other wrapper has.
local function convert_buffers(module, ignored, dtype)
  wrapping.each_module(module, "", ignored, function(inner)
    for name, x in inner:named_buffers{recurse = false} do
      if FLOATS[x.dtype] then inner[name] = x:to{dtype = dtype} end
    end
  end)
end

-- Raises an error for options that are not supported.
local function check_options(module, prefetch, offload, init_fn)
  args.expect(lt.nn.is_module(module), "FullyShardedDataParallel", "a module", "module", module)
  check(not wrapping.is_wrapped(module), "FullyShardedDataParallel: the module is wrapped already")
  check(lt.distributed.is_initialized(), "FullyShardedDataParallel: expected a process group, got "
    .. "none\nhint: lt.distributed.init_process_group()")
  check(prefetch == nil or prefetch == "BACKWARD_PRE" or prefetch == "BACKWARD_POST" or
    prefetch == "NONE", "FullyShardedDataParallel: expected \"BACKWARD_PRE\", \"BACKWARD_POST\" or "
    .. "\"NONE\" for argument 'backward_prefetch', got %s", args.show(prefetch))
  check(offload == nil or offload == false, "FullyShardedDataParallel: cpu_offload is not yet "
    .. "supported")
  check(init_fn == nil, "FullyShardedDataParallel: param_init_fn is not yet supported\nhint: "
    .. "m:to_empty(device) and initialize the module before it is wrapped")
end

-- Returns the arguments of the wrappers of modules below.
local function inner_options(given, ignored)
  local options = {}
  for name, value in pairs(given) do options[name] = value end
  options.auto_wrap_policy, options.ignored_modules = nil, nil
  options.sync_module_states, options.device_id = false, nil
  options._ignored = ignored
  return options
end

-- Sets up a wrapper of `module` with options by name.
local function set_up(self, module, options)
  local rank, ranks = groups._place(options.process_group, "FullyShardedDataParallel")
  local precision, ignored = options.precision, options._ignored
  if options.device_id ~= nil then
    local device = options.device_id
    if math.type(device) == "integer" then device = "cuda:" .. device end
    module:to(device)
  end
  if options.sync_module_states then synchronize(module, options.process_group) end
  if options.auto_wrap_policy ~= nil then
    local inner = inner_options(options, ignored)
    wrapping.wrap_below(module, wrapping.policy(options.auto_wrap_policy), ignored,
      function(child) return FSDP._wrap(child, inner) end, {})
  end
  if precision.buffer_dtype then convert_buffers(module, ignored, precision.buffer_dtype) end
  local names = wrapping.names(module)
  local entries = wrapping.parameters(module, ignored)
  self.module = module
  local flats = flats_of(entries, options.use_orig_params, {group = options.process_group,
    rank = rank, ranks = ranks, whole = options.sharding_strategy == "NO_SHARD",
    precision = precision})
  for i, flat in ipairs(flats) do
    flat.key = i == 1 and "_flat_param" or "_flat_param_" .. i
    if options.use_orig_params then
      flat.key = "module." .. flat.slots[1].owners[1].path
    else
      self:register_parameter(flat.key, flat.shard)
    end
  end
  self._fsdp = Unit.new{module = module, flats = flats, names = names,
    group = options.process_group, strategy = options.sharding_strategy,
    backward_prefetch = options.backward_prefetch,
    forward_prefetch = options.forward_prefetch, inputs_dtype = precision.param_dtype,
    state_dict_type = {type = "full"}}
  states.install(self)
end

--- lt.distributed.fsdp.FullyShardedDataParallel(module, {process_group, sharding_strategy =
-- "FULL_SHARD", auto_wrap_policy, mixed_precision, ignored_modules, sync_module_states = false,
-- backward_prefetch = "BACKWARD_PRE", forward_prefetch = false, use_orig_params = false,
-- device_id}): a module that computes what `module` does, of whose parameters, gradients and
-- optimizer state each rank has a part.
--
-- Each wrapper gathers its parameters before forward and before backward, frees them afterwards,
-- and averages the gradients over the ranks. auto_wrap_policy wraps modules below first: a list of
-- classes or of modules, or a function(module, recurse, numel); the largest wrapped module
-- determines the memory for gathered parameters. Make the optimizer afterwards, from
-- m:parameters(), which are the shards.
--
-- sharding_strategy: "FULL_SHARD"; "SHARD_GRAD_OP" keeps gathered parameters from forward to
-- backward; "NO_SHARD" keeps all parameters on each rank. mixed_precision = {param_dtype,
-- reduce_dtype, buffer_dtype}: parameters are gathered and used in param_dtype, gradients reduced
-- in reduce_dtype, the shards keep their dtype. ignored_modules keep their own parameters.
-- sync_module_states broadcasts parameters and buffers from rank 0 first; without it all ranks must
-- have the same. forward_prefetch and backward_prefetch ("BACKWARD_PRE", "BACKWARD_POST", "NONE")
-- gather the next module's parameters while one computes. With use_orig_params, each parameter is
-- sharded alone and keeps its name, so that an optimizer may group them. device_id moves the module
-- to a device first. limit_all_gathers has no effect. Raises an error outside a process group, for
-- a parameter that two wrapped modules share, and for cpu_offload and param_init_fn.
function FSDP:init(...)
  local module, group, strategy, offload, policy, prefetch, precision, ignored, init_fn, device,
    sync, forward_prefetch, _, original = parse(...)
  check_options(module, prefetch, offload, init_fn)
  set_up(self, module, {process_group = group, sharding_strategy = strategy,
    auto_wrap_policy = policy, backward_prefetch = prefetch,
    precision = precision_of(precision), device_id = device, sync_module_states = sync,
    forward_prefetch = forward_prefetch, use_orig_params = original, _ignored = set_of(ignored)})
end

-- A wrapper of a module below another one, with options by name.
local Inner = FSDP:extend "FullyShardedDataParallel"
function Inner:init(module, options) set_up(self, module, options) end
function FSDP._wrap(module, options) return Inner(module, options) end

--- Calls the wrapped module.
function FSDP:forward(...) return self._fsdp:forward(self, ...) end

--- Iterates over the shards and the parameters that are not sharded.
function FSDP:parameters(...)
  self._fsdp:settle()
  return lt.nn.Module.parameters(self, ...)
end

--- Iterates over the names and values of the shards and the parameters that are not sharded.
function FSDP:named_parameters(...)
  self._fsdp:settle()
  return lt.nn.Module.named_parameters(self, ...)
end

--- m:no_sync(f, ...): calls f(...), in which backward keeps the whole gradients on each rank; the
-- next backward outside adds and reduces them. Returns what f returns. Raises an error for a module
-- inside another wrapper.
function FSDP:no_sync(f, ...)
  args.expect(args.is_callable(f), "no_sync", "a function", "f", f)
  local unit = self._fsdp
  unit:find_root(self)
  check(unit.root == unit, "no_sync: expected the outermost wrapper, got one inside another")
  local old = unit.sync
  unit.sync = false
  local _ <close> = setmetatable({}, {__close = function() unit.sync = old end})
  return f(...)
end

--- Wrappers cannot be copied: raises an error.
function FSDP.clone()
  args.fail("clone: cannot copy a FullyShardedDataParallel\nhint: wrap a copy of the module")
end

local parse_clip = args.signature("clip_grad_norm_", "float max_norm, float norm_type = 2")

-- Returns the gradients of a module, as lists of those that are sharded and of the others, which
-- all ranks have.
local function gradients_of(self)
  local is_shard, sharded, whole = {}, {}, {}
  for module in self:modules() do
    for _, flat in ipairs(wrapping.is_wrapped(module) and module._fsdp.flats or {}) do
      is_shard[flat.shard] = not flat.whole
    end
  end
  for p in self:parameters() do
    if p.grad then table.insert(is_shard[p] and sharded or whole, p.grad) end
  end
  return sharded, whole
end

-- Returns the sum of |x|^order over the elements of tensors, or with order inf the largest |x|, as
-- a tensor of float64.
local function power_sum(tensors, order, device)
  local total = lt.zeros({}, {dtype = "float64", device = device})
  for _, x in ipairs(tensors) do
    if x:numel() > 0 then
      local y = x:abs():to{dtype = total.dtype, device = device}
      total = order == math.huge and total:maximum(y:max()) or total + y:pow(order):sum()
    end
  end
  return total
end

--- m:clip_grad_norm_(max_norm, {norm_type = 2}): multiplies all gradients by max_norm / norm where
-- that is less than 1; the norm is that of the gradients of all ranks as one vector. All ranks call
-- it. Returns the norm, 0 without parameters. Raises an error for an order that is not above 0.
function FSDP:clip_grad_norm_(...)
  local max_norm, order = parse_clip(...)
  check(order > 0, "clip_grad_norm_: expected a number above 0 for argument 'norm_type', got %g",
    order)
  return lt.no_grad(function()
    local sharded, whole = gradients_of(self)
    local first = self:parameters()()
    if not first then return lt.tensor(0.0) end
    local total = power_sum(sharded, order, first.device)
    lt.distributed.all_reduce(total, {op = order == math.huge and "max" or "sum",
      group = self._fsdp.group})
    local rest = power_sum(whole, order, first.device)
    total = order == math.huge and total:maximum(rest) or (total + rest):pow(1 / order)
    lt.nn.utils.clip_grads_with_norm_(self:parameters(), max_norm, total)
    return total:to(first.dtype)
  end)
end

return FSDP
