--- Collects tables that contain tensors on one rank.
--
-- The tables travel as objects in which a description takes the place of each tensor; the tensors
-- themselves follow as messages, without a copy through a string.

local lt = require "lutra"
local args = require "lutra.internal.args"

local state_exchange = {}

local MARK = "lutra tensor"

-- Returns a value in which descriptions take the place of tensors, which are appended to `tensors`.
local function described(value, tensors)
  if lt.is_tensor(value) then
    tensors[#tensors + 1] = value
    return {[MARK] = #tensors, shape = {table.unpack(value.shape)}, dtype = value.dtype,
      device = value.device}
  end
  if not args.is_plain(value) then return value end
  local new = {}
  for key, inner in pairs(value) do new[key] = described(inner, tensors) end
  return new
end

-- Returns the described value with new tensors, which are appended to `tensors`, by number.
local function restored(value, device, tensors)
  if not args.is_plain(value) then return value end
  if value[MARK] then
    local place = value.device == "cpu" and "cpu" or device
    tensors[value[MARK]] = lt.empty(value.shape, {dtype = value.dtype, device = place})
    return tensors[value[MARK]]
  end
  local new = {}
  for key, inner in pairs(value) do new[key] = restored(inner, device, tensors) end
  return new
end

-- Returns the device of the first tensor of a list that is not on the CPU.
local function accelerator_of(tensors)
  for _, x in ipairs(tensors) do
    if x.device ~= "cpu" then return x.device end
  end
end

--- Returns on the rank `to` of `group` the list of the values of all ranks, nil on the others. All
-- ranks of the group call it. Tensors that are not on the CPU arrive on the device of this rank's
-- `parameters`, a list of tensors, which are equal on all ranks but for their device.
function state_exchange.gather(value, to, group, parameters)
  local dist = lt.distributed
  local ranks = dist.get_process_group_ranks(group)
  local rank, tensors = dist.get_rank(group), {}
  local device = accelerator_of(parameters)
  if device then -- messages need its communicator, which the first collective makes
    dist.all_reduce(lt.zeros({1}, {device = device}), {group = group})
  end
  local own = described(value, tensors)
  local parts = rank == to and {} or nil
  dist.gather_object(own, parts, ranks[to + 1], group)
  if rank ~= to then
    for _, x in ipairs(tensors) do
      dist.send(x:detach():contiguous(), ranks[to + 1], {group = group})
    end
    return nil
  end
  for i, part in ipairs(parts) do
    local received = {}
    parts[i] = i == rank + 1 and value or restored(part, device, received)
    for _, x in ipairs(received) do dist.recv(x, {src = ranks[i], group = group}) end
  end
  return parts
end

return state_exchange
