--- What lives on each device, as data: :devices draws it.
--
-- A device's tensors are those that the session's variables hold, by the variable, and "other":
-- what the device has given out beyond that (results kept in _1, a graph, locals of functions).
-- Looking may set up a driver. One that fails is not left out: its entry says why.

local core = require "lutra.core"
local look = require "lutra.repl.look"

local occupancy = {}

-- The first byte of its storage, as the device counts.
local function address_of(t) return t:data_ptr() - t:storage_offset() * t.itemsize end

-- device -> list of {name, bytes}: each storage once, for the first variable that holds it; and its
-- field `paths`: address of a storage -> the path to its tensor.
local function by_variable(session)
  local devices, seen = {}, {}
  for _, v in ipairs(look.variables(session)) do
    local counter, paths = look.counter(), {}
    look.tensors(v.value, v.name, function(path, t)
      local memory = core._memory(t)
      if seen[memory] then return end
      seen[memory] = true
      counter.add(t)
      paths[t.device] = paths[t.device] or {}
      paths[t.device][address_of(t)] = path
    end)
    for _, device in ipairs(counter.devices) do
      local list = devices[device] or {paths = {}}
      devices[device] = list
      for address, path in pairs(paths[device]) do list.paths[address] = path end
      local of = counter.by_device[device]
      list[#list + 1] = {name = v.name, bytes = of.bytes, storages = of.storages}
    end
  end
  for _, list in pairs(devices) do
    table.sort(list, function(a, b)
      if a.bytes ~= b.bytes then return a.bytes > b.bytes end
      return a.name < b.name
    end)
  end
  return devices
end

local function sum(list)
  local bytes = 0
  for _, item in ipairs(list) do bytes = bytes + item.bytes end
  return bytes
end

-- What the allocator and the driver of an accelerator's device say.
local function ask(device, paths)
  local c = core._accelerator
  local properties = core.device_properties(device)
  local free, total = c.memory_info(device)
  local requested = c.memory_stat(device, "requested_bytes")
  return {
    title = properties.name, emulated = properties.emulated, total = total, free = free,
    allocated = (c.memory_stat(device, "allocated_bytes")),
    reserved = (c.memory_stat(device, "reserved_bytes")), requested = requested,
    segments = require("lutra.plot.memory_map").read(c.memory_snapshot(device), paths),
  }
end

local function accelerator_entry(device, lives)
  local ok, entry = pcall(ask, device, lives.paths or {})
  if not ok then return {device = device, lives = lives, why = tostring(entry)} end
  entry.device, entry.lives = device, lives
  entry.other = math.max(0, entry.requested - sum(lives))
  entry.rounding = math.max(0, entry.allocated - entry.requested)
  return entry
end

local function cpu_entry(lives, elsewhere)
  local properties = core.device_properties "cpu"
  local live = math.max(core.memory_live() - elsewhere, sum(lives))
  return {
    device = "cpu", title = properties.name, lives = lives, allocated = live,
    other = live - sum(lives), total = properties.total_memory, free = properties.free_memory,
  }
end

--- A list of {device, title, emulated, total, free, reserved, allocated (bytes), lives = list of
-- {name, bytes, storages}, other, rounding (bytes that are allocated beyond what was asked for),
-- segments (lutra.plot.memory_map; of accelerators), why (it could not be asked)}: cpu,
-- accelerators, meta.
-- Its field `missing` lists {kind, why} of accelerators that are not here, `accelerated` says that
-- one is.
function occupancy.collect(session)
  local lives, list, elsewhere = by_variable(session), {missing = {}}, 0
  for _, kind in ipairs {"cuda", "mps"} do
    local count, why = core._device_count(kind)
    if count == 0 then list.missing[#list.missing + 1] = {kind = kind, why = why} end
    list.accelerated = list.accelerated or count > 0
    for i = 0, count - 1 do
      local device = kind == "mps" and "mps" or ("%s:%d"):format(kind, i)
      device = core.device(device)
      local entry = accelerator_entry(device, lives[device] or {})
      elsewhere = elsewhere + (entry.requested or 0)
      list[#list + 1] = entry
    end
  end
  table.insert(list, 1, cpu_entry(lives.cpu or {}, elsewhere))
  if lives.meta then list[#list + 1] = {device = "meta", lives = lives.meta} end
  return list
end

return occupancy
