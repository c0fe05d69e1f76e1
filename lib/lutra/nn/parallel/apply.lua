--- nn.parallel.parallel_apply: calls of several modules, each on its device, that run concurrently.
--
-- One thread calls the modules in order. A call on an accelerator only queues work on the device
-- and returns, so that the devices run at the same time. A module that synchronizes (x:item(),
-- print) delays all modules behind it.

local lt = require "lutra"
local args = require "lutra.internal.args"

local apply = {}

-- A to-be-closed value that appends the replica to the message of an error that is caught. An error
-- that is not caught keeps its stack, and its traceback shows the replica.
local ErrorContext = {}
function ErrorContext:__close(message)
  if type(message) == "string" then error(message .. "\n  in " .. self.text, 0) end
end

--- Returns the description of replica i: "replica 2 of 4, on cuda:1".
function apply.place(i, count, device)
  return ("replica %d of %d%s"):format(i, count, device and ", on " .. device or "")
end

-- Calls a module while `device` is the current device of its type; returns the packed results.
local function call_on(device, module, packed)
  if device == nil or not device:find ":" then
    return table.pack(module(table.unpack(packed, 1, packed.n)))
  end
  return table.pack(lt.accelerator.with_device(device, module,
    table.unpack(packed, 1, packed.n)))
end

--- Calls modules[i] with the packed arguments inputs[i], while devices[i] (a full name, or nil) is
-- the current device. Returns a list of the packed results.
function apply.packed(modules, inputs, devices)
  local outputs = {}
  for i, module in ipairs(modules) do
    local _ <close> = setmetatable({text = apply.place(i, #modules, devices[i])}, ErrorContext)
    outputs[i] = call_on(devices[i], module, inputs[i])
  end
  return outputs
end

-- Packs the arguments of one call: the elements of a plain list, or any other value alone; then
-- `named`.
local function packed(input, named)
  local list = {n = 1, input}
  if args.is_plain(input) then
    list = table.move(input, 1, input.n or #input, 1, {n = input.n or #input})
  end
  if named ~= nil then list.n, list[list.n + 1] = list.n + 1, named end
  return list
end

local parse = args.signature("parallel_apply",
  "list modules, list inputs, list? kwargs_tup = nil, list? devices = nil")

--- Calls modules[i] with inputs[i], one value or a list of arguments, followed by the table
-- kwargs_tup[i]. devices[i] is the current device during the call. Returns a list of the results:
-- a value, or a list when a module returns several. Raises an error when the lists differ in
-- length.
function apply.parallel_apply(...)
  local modules, inputs, named, devices = parse(...)
  for title, list in pairs {inputs = inputs, kwargs_tup = named, devices = devices} do
    args.check(#list == #modules, "parallel_apply: expected %d %s, one for each module, got %d",
      #modules, title, #list)
  end
  local calls, names = {}, {}
  for i = 1, #modules do
    args.check(args.is_callable(modules[i]),
      "parallel_apply: expected a module for argument 'modules[%d]', got %s", i,
      args.show(modules[i]))
    calls[i] = packed(inputs[i], named and named[i])
    names[i] = devices and lt.device(devices[i])
  end
  local outputs = apply.packed(modules, calls, names)
  for i, output in ipairs(outputs) do
    if output.n <= 1 then outputs[i] = output[1] end
  end
  return outputs
end

return apply
