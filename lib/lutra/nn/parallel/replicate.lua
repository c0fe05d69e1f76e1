--- nn.parallel.replicate: a module once more on each of several devices.
--
-- Idea: a replica has the classes, hooks and plain fields of the module, and in the place of each
-- parameter a copy of it that was broadcast from it, an ordinary result of an op. So backward
-- through a replica reaches the parameters of the module itself, and nothing needs to be gathered.
--
-- Invariant: the gradients of a parameter's copies are added in the order of the devices, whatever
-- order they were computed in: the same bits on every run. On the parameter's own device a replica
-- shares memory with the module, buffers included; elsewhere what a replica does to its buffers
-- is lost with it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local apply = require "lutra.nn.parallel.apply"
local scatter = require "lutra.nn.parallel.scatter"

local replicate = {}

-- A tensor on each of several devices; on its own it shares memory.
local function send(x, devices)
  local copies = {}
  for i, device in ipairs(devices) do
    copies[i] = device == x.device and x:detach() or x:to(device)
  end
  return copies
end

local Broadcast = lt.autograd.Function:extend "Broadcast"

function Broadcast.forward(ctx, x, devices)
  ctx.home = x.device
  ctx:set_materialize_grads(false)
  return table.unpack(send(x, devices))
end

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

-- tensor -> its copies, one for each device, for what stands in the modules of `network`.
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

local function copy(t)
  local new = {}
  for key, value in next, t do new[key] = value end
  return new
end

-- A module like `module`, whose fields are yet the same.
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

-- The replica on device i: all its modules first, then what their fields hold. `place` is what an
-- error calls it.
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

--- The replicas of a module on devices whose full names are given.
function replicate.on(network, devices, detach)
  local copies, list = broadcast_all(network, devices, detach), {}
  for i, device in ipairs(devices) do
    list[i] = replica(network, copies, i, apply.place(i, #devices, device))
  end
  return list
end

local parse = args.signature("replicate", "any network, list devices, bool detach = false")

--- nn.parallel.replicate(network, devices, detach = false): a list of modules that compute what
-- `network` does, one for each device. Their parameters lead gradients back to those of `network`,
-- unless `detach`.
function replicate.replicate(...)
  local network, list, detach = parse(...)
  args.check(lt.nn.is_module(network), 'replicate: argument "network" is %s, it wants a module',
    args.show(network))
  return replicate.on(network, scatter.devices("replicate", list), detach)
end

return replicate
