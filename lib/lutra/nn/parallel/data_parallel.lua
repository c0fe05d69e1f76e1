--- nn.DataParallel: data parallelism: each device computes a part of the batch.
--
-- A call splits the batch (scatter), copies the module to each device (replicate), computes each
-- part on its device (parallel_apply), and joins the results (gather). Backward runs through the
-- same steps in reverse and leaves in each parameter the gradient that one device would have
-- computed, up to rounding. The training loop does not change.
--
-- Invariant: the parameters are on the first device, where they are updated. One thread queues all
-- work, and gradients are added in the order of the devices.

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

-- Returns the devices of the accelerator; an empty list without one.
local function every_device()
  local list = {}
  for i = 1, lt.accelerator.device_count() do list[i] = lt.device(i - 1) end
  return list
end

-- Returns the full names of a list of devices. Raises an error for cpu, meta, and a device listed
-- twice.
local function check_devices(title, list)
  local names, seen = {}, {}
  for i, device in ipairs(list) do
    local entry = ("%s: device_ids[%d]"):format(title, i)
    if device == "cpu" or device == "meta" then
      args.fail("%s: expected an accelerator's device for argument 'device_ids[%d]', got \"%s\"\n"
        .. "hint: without %s: module(x)", title, i, device, title)
    end
    local name = core._accelerator.device(nil, device, entry)
    if seen[name] then
      args.fail("%s: expected different devices for argument 'device_ids', got \"%s\" twice", title,
        name)
    end
    seen[name], names[i] = true, name
  end
  return names
end

-- Returns the full name of the device that results are gathered on, by default the first device.
-- Raises an error for meta.
local function check_output(title, device, devices)
  if device == nil then return devices[1] end
  local name = lt.device(device)
  args.check(name ~= "meta", "%s: expected a device with memory for argument 'output_device', got "
    .. '"meta"\nhint: "%s" or "cpu"', title, devices[1])
  return name
end

local function check_dim(title, dim)
  args.check(dim ~= 0,
    "%s: expected a dimension from 1 (or -1 for the last) for argument 'dim', got 0", title)
end

local function check_module(title, module)
  args.expect(Module.is_module(module), title, "a module", "module", module)
  for path, inner in module:named_modules() do
    if inner.__parallel then
      args.fail("%s: cannot replicate %s: it is a %s already\nhint: wrap only the outermost module",
        title, path == "" and "the module" or ('"%s"'):format(path), inner:type_name())
    end
  end
end

-- Raises an error unless all parameters and buffers are on the first device.
local function check_module_device(title, module, device)
  for _, kind in ipairs {"parameters", "buffers"} do
    for name, tensor in module["named_" .. kind](module) do
      if tensor.device ~= device then
        args.fail('%s: expected all parameters and buffers on "%s", the first of '
          .. 'device_ids, got "%s" on "%s"\nhint: m:to "%s"', title, device, name,
          tensor.device, device)
      end
    end
  end
end

-- Joins the results of the replicas, result k of each to one, and returns them. Raises an error
-- when the replicas return different numbers of results.
local function gather_results(title, outputs, device, dim)
  local count, results = #outputs, {n = outputs[1].n}
  for i = 2, count do
    if outputs[i].n ~= results.n then
      args.fail("%s: expected as many results from each replica, got %d and %d", title, results.n,
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

-- Calls a module with packed arguments on several devices; returns its gathered results.
local function run(title, module, packed, devices, output_device, dim)
  check_module_device(title, module, devices[1])
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

-- Sets up a module for several devices of this process.
local function construct(self, title, module, device_ids, output_device, dim)
  check_module(title, module)
  check_dim(title, dim)
  device_ids = device_ids and check_devices(title, device_ids) or every_device()
  self.module, self.dim, self.device_ids = module, dim, device_ids
  if #device_ids == 0 then return end
  self.output_device = check_output(title, output_device, device_ids)
end

--- nn.DataParallel(module, {device_ids, output_device, dim = 1}): computes what `module` does, with
-- each device computing a part of the batch. `device_ids` are numbers (from 0) or names, by
-- default all devices of the accelerator. During a call the module must be on the first of them;
-- results are gathered on `output_device`, by default the first. Tensor arguments, also those in
-- tables, are split along `dim`; other values are passed to every device. Scalar results become a
-- vector. Without an accelerator, or with an empty list, the module is called directly.
--
-- Parameters have the names of the module's with the prefix "module.". Each call replicates the
-- module: what forward assigns to fields is lost, and so are in-place changes of buffers, except
-- those of the first replica. Hooks run in every replica. Random numbers (dropout) are drawn from
-- the one default generator, replica by replica: they differ from those of one device and are the
-- same on each run.
function DataParallel:init(...) construct(self, "DataParallel", parse(...)) end

--- Returns the module's results for the whole batch. Raises an error when the module is not on the
-- first device, and when the arguments cannot be split.
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

--- Calls a module once on several devices, as nn.DataParallel does. `inputs` is one argument or a
-- list of them, followed by the table `module_kwargs`. Returns the gathered results.
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

return {DataParallel = DataParallel, data_parallel = data_parallel, construct = construct}
