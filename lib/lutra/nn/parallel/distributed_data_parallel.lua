--- nn.parallel.DistributedDataParallel: data parallelism over the ranks of a process group.
--
-- Each rank has the whole model and computes a part of the batch. All start with the parameters of
-- rank 0, and backward leaves in each parameter the average of the gradients of all ranks
-- (reducer.lua), so the optimizers of all ranks make the same step. Without a process group it is
-- nn.DataParallel: one process drives all devices.
--
-- Invariant: all ranks call forward and backward equally often, so that their collectives match.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local collectives = require "lutra.nn.parallel.collectives"
local data_parallel = require "lutra.nn.parallel.data_parallel"
local environment = require "lutra.distributed.environment"
local Reducer = require "lutra.nn.parallel.reducer"
local scope_guard = require "lutra.internal.scope_guard"
local tree = require "lutra.internal.tree"
local uneven = require "lutra.nn.parallel.uneven"

local TITLE = "DistributedDataParallel"
local FIRST_BUCKET_MB = 1

local DataParallel = data_parallel.DataParallel
local DistributedDataParallel = DataParallel:extend(TITLE)

local parse = args.signature(TITLE, "any? module = nil, list? device_ids = nil, "
  .. "device? output_device = nil, int dim = 1, bool broadcast_buffers = true, "
  .. "bool init_sync = true, any? process_group = nil, float bucket_cap_mb = 25, "
  .. "bool find_unused_parameters = false, bool gradient_as_bucket_view = false, "
  .. "bool static_graph = false")

-- Returns the options of a call as a table.
local function read(...)
  local o = {}
  o.module, o.device_ids, o.output_device, o.dim, o.broadcast_buffers, o.init_sync,
    o.process_group, o.bucket_cap_mb, o.find_unused_parameters, o.gradient_as_bucket_view,
    o.static_graph = parse(...)
  return o
end

-- Returns whether there is a process group. A program that has none does not load the library.
local function in_group()
  local dist = package.loaded["lutra.distributed"]
  return dist ~= nil and dist.is_initialized()
end

-- Returns the names of the parameters that require grad, and the parameters.
local function trained(module)
  local names, list = {}, {}
  for name, p in module:named_parameters() do
    if p.requires_grad then names[#names + 1], list[#list + 1] = name, p end
  end
  return names, list
end

-- Returns the only device of `device_ids`, nil where it was not given. Raises an error unless all
-- parameters are there.
local function check_device(device_ids, parameters, names)
  if not device_ids then return nil end
  args.check(#device_ids == 1, "%s: expected one device for argument 'device_ids', that of this "
    .. "process, got %d", TITLE, #device_ids)
  args.check(device_ids[1] ~= "cpu" and parameters[1].device ~= "cpu", "%s: expected no device_ids "
    .. 'for a module on "cpu"\nhint: %s(module)', TITLE, TITLE)
  local device = core._accelerator.device(nil, device_ids[1], TITLE .. ": device_ids[1]")
  for i, p in ipairs(parameters) do
    args.check(p.device == device, '%s: expected all parameters on "%s", the device of device_ids, '
      .. 'got %q on "%s"\nhint: m:to "%s"', TITLE, device, names[i], p.device, device)
  end
  return device
end

-- Copies the parameters and buffers of rank 0 to all ranks.
local function synchronize_state(self, parameters)
  local list = table.move(parameters, 1, #parameters, 1, {})
  for p in self.module:parameters() do
    if not p.requires_grad then list[#list + 1] = p end
  end
  for b in self.module:buffers() do list[#list + 1] = b end
  collectives.broadcast(list, self._group)
end

-- Sets up the module for the ranks of a process group.
local function construct(self, o)
  args.expect(lt.nn.is_module(o.module), TITLE, "a module", "module", o.module)
  local rank, size = require("lutra.distributed.groups")._place(o.process_group, TITLE)
  args.check(o.bucket_cap_mb > 0, "%s: expected a number above 0 for argument 'bucket_cap_mb', got "
    .. "%g", TITLE, o.bucket_cap_mb)
  local names, parameters = trained(o.module)
  local synchronizes = o.init_sync and size > 1
  if synchronizes then
    collectives.check_parameters(TITLE, names, parameters, o.process_group)
  end
  args.check(#parameters > 0, "%s: expected a module with parameters that require grad, got none\n"
    .. "hint: call the module itself", TITLE)
  self.device_ids = {check_device(o.device_ids, parameters, names)}
  self.module, self.dim, self._group, self._in_group = o.module, o.dim, o.process_group, true
  self.broadcast_buffers, self.require_backward_grad_sync = o.broadcast_buffers, true
  self._sync_buffers_next = true
  if synchronizes then synchronize_state(self, parameters) end
  local cap = o.bucket_cap_mb * 2 ^ 20
  self._reducer = Reducer{names = names, parameters = parameters, group = self._group,
    size = size, rank = rank, cap = cap,
    first = math.min(FIRST_BUCKET_MB * 2 ^ 20, cap), find_unused = o.find_unused_parameters,
    as_view = o.gradient_as_bucket_view, static = o.static_graph}
end

--- nn.parallel.DistributedDataParallel(module, {device_ids, output_device, dim = 1,
-- broadcast_buffers = true, init_sync = true, process_group, bucket_cap_mb = 25,
-- find_unused_parameters = false, gradient_as_bucket_view = false, static_graph = false}): computes
-- what `module` does; backward averages the gradients over the ranks of the process group.
--
-- Parameters and buffers start with the values of rank 0 (init_sync), and buffers get them before
-- each forward pass (broadcast_buffers). Gradients are exchanged in buckets of bucket_cap_mb, the
-- first of 1 MB, while backward runs. When some parameters take no part in the loss,
-- find_unused_parameters = true finds them in each iteration; static_graph = true finds them once,
-- for a graph that is the same in every iteration. With gradient_as_bucket_view grads are views of
-- the buckets, which saves their memory. device_ids = {k} is the device of this process, to which
-- the arguments of forward are moved. Parameters have the names of the module's with the prefix
-- "module.".
--
-- Without lt.distributed.init_process_group it is nn.DataParallel(module, {device_ids,
-- output_device, dim}): the batch is the whole batch, which is split over the devices of this
-- process. The options about processes have no effect then. In a job of several ranks that is an
-- error.
--
-- Raises an error on all ranks when their parameters differ, for a module without parameters that
-- require grad, and for device_ids that are not the device of the parameters.
function DistributedDataParallel:init(...)
  local o = read(...)
  if in_group() then return construct(self, o) end
  args.check(o.process_group == nil, "%s: cannot use a process_group: there is none\nhint: "
    .. "lt.distributed.init_process_group()", TITLE)
  local job = environment.read()
  args.check(not job or job.size == 1, "%s: there is no process group, but %s started %d ranks\n"
    .. "hint: call lt.distributed.init_process_group() first", TITLE, job and job.source,
    job and job.size)
  data_parallel.construct(self, TITLE, o.module, o.device_ids, o.output_device, o.dim)
end

-- Returns the arguments of forward, with tensors moved to the device of this process.
local function move(self, packed)
  local device = self.device_ids[1]
  if not device then return packed end
  for i = 1, packed.n do
    packed[i] = tree.map(packed[i], function(t) return t.device == device and t or t:to(device) end)
  end
  return packed
end

-- Copies the buffers of rank 0 (or of rank `from`) to the others, where they are synchronized
-- before the next forward pass.
function DistributedDataParallel:_broadcast_buffers(from)
  if not self.broadcast_buffers or not self._sync_buffers_next then return end
  local list = {}
  for b in self.module:buffers() do list[#list + 1] = b end
  if #list > 0 then collectives.broadcast(list, self._group, from) end
end

-- Calls the module with packed arguments as part of the process group.
local function run(self, packed)
  local exchanges = core.is_grad_enabled() and self.require_backward_grad_sync
  local in_backward = core._backward_pass() ~= nil -- a checkpoint calls forward again
  if not in_backward then
    local from = self._joining and uneven.forward(self, exchanges)
    if exchanges then self._reducer:prepare() end
    self:_broadcast_buffers(from)
  end
  packed = move(self, packed)
  local results = table.pack(self.module(table.unpack(packed, 1, packed.n)))
  if in_backward then return results end
  self._sync_buffers_next = exchanges
  if core.is_grad_enabled() then self._reducer:expect(exchanges, results) end
  return results
end

--- Returns the module's results. In a process group each rank calls it with its part of the batch.
-- Raises an error when parameters got no gradient in the iteration before.
function DistributedDataParallel:forward(...)
  if not self._in_group then return DataParallel.forward(self, ...) end
  local results = run(self, table.pack(...))
  return table.unpack(results, 1, results.n)
end

--- Calls f(...) and returns its results. Backward passes of forward passes in f do not exchange
-- gradients: they add up in the grads of this rank, until the first backward after it exchanges the
-- sums.
function DistributedDataParallel:no_sync(f, ...)
  args.expect(args.is_callable(f), "no_sync", "a function", "f", f)
  local old = self.require_backward_grad_sync
  local _ <close> = scope_guard(function() self.require_backward_grad_sync = old end)
  self.require_backward_grad_sync = false
  return f(...)
end

local parse_join = args.signature("join", "any? f = nil, bool divide_by_initial_world_size = true, "
  .. "bool enable = true, bool throw_on_early_termination = false")

--- model:join(f, {divide_by_initial_world_size = true, enable = true, throw_on_early_termination =
-- false}): calls f() and returns its results. In f, ranks may train on different numbers of
-- batches: a rank that is done takes part in the exchanges of the others with gradients of zero,
-- and in the end all ranks have the parameters of the last one. Gradients are divided by the number
-- of all ranks, or, with divide_by_initial_world_size = false, of those that still train. With
-- throw_on_early_termination all ranks raise an error when one is done before the others. All ranks
-- of the group call join.
function DistributedDataParallel:join(...)
  local f, by_initial_size, enable, throw = parse_join(...)
  args.expect(args.is_callable(f), "join", "a function", "f", f)
  if not self._in_group or not enable then return f() end
  return uneven.join(self, f, by_initial_size, throw)
end

--- model:register_comm_hook(state, hook): exchanges gradients by hook(state, bucket) in place of an
-- all_reduce of their average. bucket:buffer() is a flat tensor of the gradients of this rank, not
-- divided by the number of ranks; bucket:gradients() and bucket:parameters() are lists,
-- bucket:index() counts from 1, bucket:is_last() is true for the last one, and
-- bucket:set_buffer(tensor) replaces the buffer for a hook that is called by another one. The hook
-- returns a work of lt.distributed on the buffer, or a future (lt.distributed.Future) of a tensor
-- with the results. lt.distributed.algorithms.ddp_comm_hooks.default_hooks has hooks. Raises an
-- error without a process group, for a second hook, and unless `hook` is a function.
function DistributedDataParallel:register_comm_hook(state, hook)
  args.expect(args.is_callable(hook), "register_comm_hook", "a function", "hook", hook)
  args.check(self._in_group, "register_comm_hook: cannot use a hook: there is no process group\n"
    .. "hint: lt.distributed.init_process_group()")
  args.check(not self._reducer.hook, "register_comm_hook: cannot use a second hook: the module has "
    .. "one")
  self._reducer.hook, self._reducer.hook_state = hook, state
end

return DistributedDataParallel
