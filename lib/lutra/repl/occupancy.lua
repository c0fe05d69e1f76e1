--- The memory use of each device, as data for :devices and :transfers.
--
-- A device's tensors are those that the session's variables hold, by variable, and "other": further
-- allocated memory (results in _1, an autograd graph, locals of functions). This may initialize a
-- driver. A device whose driver fails is listed with the reason.

local core = require "lutra.core"
local inspect = require "lutra.repl.inspect"

local occupancy = {}

-- Returns the address of the first byte of a tensor's storage.
local function address_of(t) return t:data_ptr() - t:storage_offset() * t.itemsize end

-- Returns each storage once, as a list of {tensor, name (of a variable, or its gradients'), path}:
-- for the first variable that holds it, the tensor itself before views of it.
local function owners(session)
  local list, by_memory = {}, {}
  for _, v in ipairs(inspect.variables(session)) do
    inspect.tensors(v.value, v.name, function(path, t, is_grad)
      local memory, is_view = core._memory(t), core._base(t) ~= nil
      local owner = by_memory[memory]
      if owner and (is_view or not owner.is_view) then return end
      if not owner then
        owner = {}
        by_memory[memory], list[#list + 1] = owner, owner
      end
      owner.tensor, owner.path, owner.is_view = t, path, is_view
      owner.name = is_grad and v.name .. " (grad)" or v.name
    end)
  end
  return list
end

-- Returns device -> list of {name, bytes, pinned (whether all are)}, the largest first; and its
-- field `paths`: address of a storage -> the path to its tensor.
local function by_variable(session)
  local devices, items = {}, {}
  for _, owner in ipairs(owners(session)) do
    local t = owner.tensor
    local device, _, bytes = t.device, core._memory(t)
    local list = devices[device] or {paths = {}}
    local key = device .. "\0" .. owner.name
    local item = items[key] or {name = owner.name, bytes = 0, pinned = true}
    if not items[key] then items[key], list[#list + 1] = item, item end
    item.bytes = item.bytes + (device == "meta" and 0 or bytes)
    item.pinned = item.pinned and t:is_pinned()
    list.paths[address_of(t)] = owner.path
    devices[device] = list
  end
  for _, list in pairs(devices) do
    table.sort(list, function(x, y)
      if x.bytes ~= y.bytes then return x.bytes > y.bytes end
      return x.name < y.name
    end)
  end
  return devices
end

local function sum(list)
  local bytes = 0
  for _, item in ipairs(list) do bytes = bytes + item.bytes end
  return bytes
end

-- Returns the allocator's and the driver's data of an accelerator device.
local function query(device, paths)
  local c = core._accelerator
  local properties = core.device_properties(device)
  local free, total = c.memory_info(device)
  local requested = c.memory_stat(device, "requested_bytes")
  return {
    title = properties.name, emulated = properties.emulated, total = total, free = free,
    allocated = (c.memory_stat(device, "allocated_bytes")),
    reserved = (c.memory_stat(device, "reserved_bytes")), requested = requested,
    segments = require("lutra.internal.plot.memory_map").read(c.memory_snapshot(device), paths),
  }
end

local function accelerator_entry(device, tensors)
  local ok, entry = pcall(query, device, tensors.paths or {})
  if not ok then -- the message begins with a line of this file, which is removed
    return {device = device, tensors = tensors, why = (tostring(entry):gsub("^%S+%.lua:%d+: ", ""))}
  end
  entry.device, entry.tensors = device, tensors
  entry.other = math.max(0, entry.requested - sum(tensors))
  entry.rounding = math.max(0, entry.allocated - entry.requested)
  return entry
end

local function cpu_entry(tensors, device_bytes)
  local properties = core.device_properties "cpu"
  local live = math.max(core.memory_live() - device_bytes, sum(tensors))
  return {
    device = "cpu", title = properties.name, tensors = tensors, allocated = live,
    other = live - sum(tensors), total = properties.total_memory, free = properties.free_memory,
  }
end

-- Returns the entries of every accelerator device; sets list.missing and list.accelerated.
local function accelerators(list)
  local devices = {}
  for _, kind in ipairs(core._accelerator.kinds()) do
    local names, why = core._accelerator.names(kind)
    if #names == 0 then list.missing[#list.missing + 1] = {kind = kind, why = why} end
    list.accelerated = list.accelerated or #names > 0
    table.move(names, 1, #names, #devices + 1, devices)
  end
  return devices
end

--- Returns a list of {device, title, emulated, total, free, reserved, allocated (bytes), tensors =
-- list of {name, bytes, pinned}, other, rounding (bytes that are allocated beyond the requested
-- ones), segments (lutra.internal.plot.memory_map; of accelerators), why (the error when the device
-- cannot be queried)}: cpu, accelerators (all, or those of `devices`), meta. Without `devices`, the
-- field `missing` lists {kind, why} of unavailable accelerators, and `accelerated` is true when one
-- is available.
function occupancy.collect(session, devices)
  local tensors, list, device_bytes = by_variable(session), {missing = {}}, 0
  for i, device in ipairs(devices or accelerators(list)) do
    list[i] = accelerator_entry(device, tensors[device] or {})
    device_bytes = device_bytes + (list[i].requested or 0)
  end
  table.insert(list, 1, cpu_entry(tensors.cpu or {}, device_bytes))
  if tensors.meta then
    list[#list + 1] = {device = "meta", title = "(shapes and dtypes, no memory)",
      tensors = tensors.meta}
  end
  return list
end

return occupancy
