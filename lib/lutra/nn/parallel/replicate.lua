--- nn.parallel.replicate: copies of a module on several devices.
--
-- A replica has the classes, hooks and plain fields of the module, and for each parameter a copy
-- that a differentiable broadcast returned. Backward through a replica therefore accumulates into
-- the parameters of the module itself.
--
-- Invariant: the gradients of a parameter's copies are added in the order of the devices,
-- independent of the order in which they were computed, so that runs are reproducible bit for bit.
-- On the parameter's own device a replica shares memory with the module, buffers included; on
-- other devices changes of a replica's buffers are lost with it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local apply = require "lutra.nn.parallel.apply"
local copy = require "lutra.internal.shallow_copy"
local scatter = require "lutra.nn.parallel.scatter"

local replicate = {}

-- Copies a tensor to each device; on its own device the copy shares memory.
local function send(x, devices)
  local copies = {}
  for i, device in ipairs(devices) do
    copies[i] = device == x.device and x:detach() or x:to(device)
  end
  return copies
end

local Broadcast = lt.autograd.Function:extend "Broadcast"

-- Returns a copy of x for each device.
function Broadcast.forward(ctx, x, devices)
  ctx.home = x.device
  ctx:set_materialize_grads(false)
  return table.unpack(send(x, devices))
end

-- Sums the gradients of the copies on the device of x, in the order of the devices.
function Broadcast.backward(ctx, ...)
  local total
  for i = 1, select("#", ...) do
    local grad = (select(i, ...))
    if grad then
      grad = grad:to(ctx.home)
      total = total and total + grad or grad
    end
  end
  return total
end

-- Returns a map from each parameter and buffer of `network` to its copies, one per device.
local function broadcast_all(network, devices, detach)
  local copies = {}
  for p in network:parameters() do
    copies[p] = {Broadcast(detach and p:detach() or p, devices)}
  end
  for buffer in network:buffers() do
    copies[buffer] = send(buffer:detach(), devices)
  end
  return copies
end

-- Returns a copy of `module` without its children's copies (its fields are those of `module`), and
-- its table of fields.
local function shell(module)
  local meta = copy(getmetatable(module))
  local state = copy(meta.__state)
  local fields = setmetatable(copy(state.fields), getmetatable(state.fields))
  state.entries, state.kinds = copy(state.entries), copy(state.kinds)
  state.transient = copy(state.transient)
  state.fields, state.origin = fields, state.origin or module
  meta.__state, meta.__index = state, fields
  return setmetatable({}, meta), fields
end

-- Makes the replica on device i: copies all modules first, then replaces the tensors and modules
-- in their fields. `place` describes the replica in errors.
local function replica(network, copies, i, place)
  local new, fields_of = {}, {}
  for module in network:modules() do new[module], fields_of[module] = shell(module) end
  for _, fields in pairs(fields_of) do
    for key, value in next, fields do
      if copies[value] then fields[key] = copies[value][i] end
      if new[value] then fields[key] = new[value] end
    end
  end
  getmetatable(new[network]).__state.place = place
  return new[network]
end

--- Returns a list of replicas of a module on devices whose full names are given.
function replicate.on(network, devices, detach)
  local copies, list = broadcast_all(network, devices, detach), {}
  for i, device in ipairs(devices) do
    list[i] = replica(network, copies, i, apply.place(i, #devices, device))
  end
  return list
end

local parse = args.signature("replicate", "any network, list devices, bool detach = false")

--- Returns a list of modules that compute what `network` does, one per device. Gradients flow to
-- the parameters of `network`, unless `detach`. Raises an error when `network` is no module and
-- when the list is empty.
function replicate.replicate(...)
  local network, list, detach = parse(...)
  args.expect(lt.nn.is_module(network), "replicate", "a module", "network", network)
  return replicate.on(network, scatter.devices("replicate", list), detach)
end

return replicate
