--- nn.parallel.parallel_apply: several modules, each on its device, at the same time.
--
-- Idea: one thread calls them one after the other. A call on an accelerator only puts work into
-- the device's queue and returns, so that the second device starts while the first one works. A
-- module that waits for a result (x:item(), print) makes all later ones wait too.

local lt = require "lutra"
local args = require "lutra.internal.args"

local apply = {}

-- Closed by an error that somebody catches, it says in which of the calls that was. One that
-- nobody catches keeps its stack, and its traceback tells the same.
local Place = {}
function Place:__close(message)
  if type(message) == "string" then error(message .. "\n  in " .. self.text, 0) end
end

--- "replica 2 of 4, on cuda:1"
function apply.place(i, count, device)
  return ("replica %d of %d%s"):format(i, count, device and ", on " .. device or "")
end

-- Calls a module with a device as the current one of its type.
local function call_on(device, module, packed)
  if device == nil or not device:find ":" then
    return table.pack(module(table.unpack(packed, 1, packed.n)))
  end
  return table.pack(lt.accelerator.with_device(device, module,
    table.unpack(packed, 1, packed.n)))
end

--- Calls modules[i] with the packed arguments inputs[i], on devices[i] (a full name, or nil).
-- Returns the packed results.
function apply.packed(modules, inputs, devices)
  local outputs = {}
  for i, module in ipairs(modules) do
    local _ <close> = setmetatable({text = apply.place(i, #modules, devices[i])}, Place)
    outputs[i] = call_on(devices[i], module, inputs[i])
  end
  return outputs
end

-- The arguments of one call: a plain list is spread, any other value is the only one.
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

--- nn.parallel.parallel_apply(modules, inputs, kwargs_tup, devices): calls modules[i] with
-- inputs[i], one value or a list of arguments, behind which comes the table kwargs_tup[i]. Returns
-- a list of what each gave: a value, or a list where there are several.
function apply.parallel_apply(...)
  local modules, inputs, named, devices = parse(...)
  for title, list in pairs {inputs = inputs, kwargs_tup = named, devices = devices} do
    args.check(#list == #modules, "parallel_apply: there are %d modules and %d %s", #modules, #list,
      title)
  end
  local calls, names = {}, {}
  for i = 1, #modules do
    args.check(args.is_callable(modules[i]),
      "parallel_apply: expected a module for element %d of argument 'modules', got %s", i,
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
