--- DataParallel: one batch on several devices.
--
-- Idea: the batch is cut into pieces, the module is replicated, each replica computes its piece on
-- its device, and the results are put together: scatter, replicate, parallel_apply, gather.
-- Backward takes the same way back, and leaves in each parameter of the module the gradient that
-- one device would have computed, but for rounding. So a training loop stays as it is.
--
-- Invariant: the parameters are on the first device, which is where they are updated. Everything
-- is put into the queues of the devices by one thread, and added in the order of the devices.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"
local apply = require "lutra.nn.parallel.apply"
local gather = require "lutra.nn.parallel.gather"
local replicate = require "lutra.nn.parallel.replicate"
local scatter = require "lutra.nn.parallel.scatter"

local DataParallel = Module:extend "DataParallel"
DataParallel.__parallel = true

-- All devices of the accelerator: none where there is no accelerator.
local function every_device()
  local list = {}
  for i = 1, lt.accelerator.device_count() do list[i] = lt.device(i - 1) end
  return list
end

-- Full names of accelerators' devices, each once.
local function check_devices(title, list)
  local names, seen = {}, {}
  for i, device in ipairs(list) do
    local entry = ("%s: device_ids[%d]"):format(title, i)
    if device == "cpu" or device == "meta" then
      args.fail("%s is %s, it wants a device of an accelerator. A module on %s is called by "
        .. "itself, without %s", entry, device, device, title)
    end
    local name = core._accelerator.device(nil, device, entry)
    if seen[name] then
      args.fail("%s is %s, which is in the list already: name each device once", entry, name)
    end
    seen[name], names[i] = true, name
  end
  return names
end

-- The full name of the device that results are gathered on.
local function check_output(title, device, devices)
  if device == nil then return devices[1] end
  local name = lt.device(device)
  args.check(name ~= "meta", "%s: output_device is meta, where results have no data. Name one that "
    .. 'has memory: "%s", "cpu"', title, devices[1])
  return name
end

local function check_dim(title, dim)
  args.check(dim ~= 0, "%s: dim is 0: dimensions count from 1 (-1 is the last)", title)
end

local function check_module(title, module)
  args.check(Module.is_module(module), '%s: argument "module" is %s, it wants a module', title,
    args.show(module))
  for path, inner in module:named_modules() do
    if inner.__parallel then
      args.fail("%s: %s is a %s already, and cannot be replicated: wrap the outermost module alone",
        title, path == "" and "the module" or ('"%s"'):format(path), inner:type_name())
    end
  end
end

-- Raises an error unless everything in the module is on that device.
local function check_home(title, module, device)
  for _, kind in ipairs {"parameters", "buffers"} do
    for name, tensor in module["named_" .. kind](module) do
      if tensor.device ~= device then
        args.fail("%s: the module must have its parameters and buffers on %s, the first of "
          .. 'device_ids, but "%s" is on %s. Move it first: m:to "%s"', title, device, name,
          tensor.device, device)
      end
    end
  end
end

-- Results of the same place from every replica.
local function gather_results(title, outputs, device, dim)
  local count, results = #outputs, {n = outputs[1].n}
  for i = 2, count do
    if outputs[i].n ~= results.n then
      args.fail("%s: the replicas give different numbers of results: %d and %d", title, results.n,
        outputs[i].n)
    end
  end
  for k = 1, results.n do
    local values = {}
    for i = 1, count do values[i] = outputs[i][k] end
    local path = results.n > 1 and ("result %d"):format(k) or ""
    results[k] = gather.value(title, values, count, device, dim, path)
  end
  return table.unpack(results, 1, results.n)
end

-- Calls a module with packed arguments on several devices.
local function run(title, module, packed, devices, output_device, dim)
  check_home(title, module, devices[1])
  local pieces = scatter.pieces(title, packed, devices, dim, packed.n == 0 and 1 or #devices)
  if #devices == 1 and output_device == devices[1] then
    return module(table.unpack(pieces[1], 1, packed.n))
  end
  local used = table.move(devices, 1, #pieces, 1, {})
  local outputs = apply.packed(replicate.on(module, used), pieces, used)
  return gather_results(title, outputs, output_device, dim)
end

local parse = args.signature("DataParallel",
  "any? module = nil, list? device_ids = nil, device? output_device = nil, int dim = 1")

local function construct(self, title, parser, ...)
  local module, device_ids, output_device, dim = parser(...)
  check_module(title, module)
  check_dim(title, dim)
  device_ids = device_ids and check_devices(title, device_ids) or every_device()
  self.module, self.dim, self.device_ids = module, dim, device_ids
  if #device_ids == 0 then return end
  self.output_device = check_output(title, output_device, device_ids)
end

--- nn.DataParallel(module, {device_ids = , output_device = , dim = 1}): computes what `module`
-- does, each device a part of the batch. `device_ids` are numbers (from 0) or names, by default all
-- devices of the accelerator. When it is called the module must be on the first of them; results
-- are gathered on `output_device`, by default the first. Arguments are cut along `dim`: tensors,
-- also in tables; other values go to every device. Scalar results become a vector. Without an
-- accelerator, or with an empty list, the module is called as it is.
--
-- Parameters and their names are those of the module, below "module.". Each call replicates the
-- module: what forward assigns to fields is lost, and so are changes of buffers in place, but for
-- those of the first replica. Hooks run in every replica. Random numbers (dropout) come from the
-- one default generator, replica by replica: other ones than one device draws, the same each run.
function DataParallel:init(...) construct(self, "DataParallel", parse, ...) end

--- What the module computes for the whole batch.
function DataParallel:forward(...)
  local devices = self.device_ids
  if #devices == 0 then return self.module(...) end
  return run(self:type_name(), self.module, table.pack(...), devices, self.output_device, self.dim)
end

function DataParallel:extra_repr()
  local names = {}
  for i, name in ipairs(self.device_ids) do names[i] = ("%q"):format(name) end
  return ("device_ids={%s}, dim=%d"):format(table.concat(names, ", "), self.dim)
end

local parse_function = args.signature("data_parallel", "any? module = nil, any? inputs = nil, "
  .. "list? device_ids = nil, device? output_device = nil, int dim = 1, table? module_kwargs = nil")

--- nn.parallel.data_parallel(module, inputs, {device_ids, output_device, dim, module_kwargs}): one
-- call of a module on several devices. `inputs` is an argument or a list of them, behind which
-- comes the table `module_kwargs`.
local function data_parallel(...)
  local module, inputs, device_ids, output_device, dim, named = parse_function(...)
  check_module("data_parallel", module)
  check_dim("data_parallel", dim)
  local packed = {n = inputs ~= nil and 1 or 0, inputs}
  if args.is_plain(inputs) then
    packed = table.move(inputs, 1, inputs.n or #inputs, 1, {n = inputs.n or #inputs})
  end
  if named then packed.n, packed[packed.n + 1] = packed.n + 1, named end
  local devices = device_ids and check_devices("data_parallel", device_ids) or every_device()
  if #devices == 0 then return module(table.unpack(packed, 1, packed.n)) end
  output_device = check_output("data_parallel", output_device, devices)
  return run("data_parallel", module, packed, devices, output_device, dim)
end

--- DistributedDataParallel: DataParallel under the name that PyTorch has for several processes.
--
-- Lutra has one process for all devices of a machine. So there is nothing to set up: the batch is
-- the whole one, which is cut for the devices, and the gradient is that of the loss over all of it,
-- which is what the mean over processes with equal parts comes to.
local DistributedDataParallel = DataParallel:extend "DistributedDataParallel"

local parse_distributed = args.signature("DistributedDataParallel",
  "any? module = nil, list? device_ids = nil, device? output_device = nil, int dim = 1")

-- PyTorch's options about what processes tell each other.
local of_processes = {process_group = true, bucket_cap_mb = true, broadcast_buffers = true,
  find_unused_parameters = true, gradient_as_bucket_view = true, static_graph = true,
  init_sync = true}

--- nn.parallel.DistributedDataParallel(module, {device_ids = , output_device = , dim = 1}): as
-- nn.DataParallel: one call of the program, no init_process_group, no sampler for each rank. In
-- PyTorch device_ids = {rank} is one process's device; here it is one device for all of the batch,
-- so leave it out.
function DistributedDataParallel:init(...)
  local options = select(select("#", ...) > 0 and -1 or 1, ...)
  for name in pairs(args.is_plain(options) and options or {}) do
    args.check(not of_processes[name], 'DistributedDataParallel: "%s" is about several processes. '
      .. "Lutra drives all devices from one: leave it out, as init_process_group", name)
  end
  construct(self, "DistributedDataParallel", parse_distributed, ...)
end

--- Calls f(...); returns what it returns. In PyTorch, gradients are not exchanged between processes
-- meanwhile; here there are none, and p.grad adds up what each backward gives, as always.
function DistributedDataParallel:no_sync(f, ...) -- luacheck: ignore self
  args.check(args.is_callable(f), "no_sync: argument \"f\" is %s, it wants a function",
    args.show(f))
  return f(...)
end

return {
  DataParallel = DataParallel,
  DistributedDataParallel = DistributedDataParallel,
  data_parallel = data_parallel,
}
