--- lt.mps: Apple's GPUs. These functions are those of lt.accelerator for this kind of device. Those
-- that need a device raise an error without one.

local core = require "lutra.core"
local accelerator = require "lutra.accelerator"
local strict_table = require "lutra.internal.strict_table"

local c = core._accelerator
local mps = {}

-- Returns the device's name; raises an error that names the function when there is no device.
local function on(name) return c.device("mps", nil, "mps." .. name) end

--- Returns whether there is an Apple GPU.
function mps.is_available() return core._device_count "mps" > 0 end

--- Returns whether this build of Lutra includes Metal.
function mps.is_built() return c.is_built "mps" end

--- Returns the number of devices, 1 or 0.
function mps.device_count() return (core._device_count "mps") end

--- Blocks until all work on the device has completed.
function mps.synchronize() accelerator.synchronize(on "synchronize") end

--- lt.mps.manual_seed(seed): seeds the default generator, which serves all devices.
function mps.manual_seed(...) core.manual_seed(...) end

--- Returns the state of the default generator, which serves all devices, as a tensor on the CPU.
function mps.get_rng_state() return core.get_rng_state() end

--- lt.mps.set_rng_state(state): restores a state of the default generator that get_rng_state
-- returned.
function mps.set_rng_state(...) core.set_rng_state(...) end

--- Releases cached memory to the system. Memory of live tensors is not affected.
function mps.empty_cache() c.memory_release(on "empty_cache") end

--- Returns the number of bytes allocated to tensors.
function mps.current_allocated_memory()
  return accelerator.memory_allocated(on "current_allocated_memory")
end

--- Returns the number of bytes reserved from the driver: allocated to tensors, or cached.
function mps.driver_allocated_memory()
  return accelerator.memory_reserved(on "driver_allocated_memory")
end

--- Returns the number of bytes that a program should not exceed.
function mps.recommended_max_memory()
  local _, total = accelerator.get_memory_info(on "recommended_max_memory")
  return total
end

--- Limits this program to a fraction (0 to 1) of the device's memory; an allocation beyond it
-- raises an out-of-memory error.
function mps.set_per_process_memory_fraction(fraction)
  accelerator.set_per_process_memory_fraction(fraction, on "set_per_process_memory_fraction")
end

--- lt.mps.Event{enable_timing = false}: returns a new event; see lt.accelerator.Event.
function mps.Event(...)
  on "Event"
  return accelerator._new_event("mps", ...)
end

--- Returns a sorted list of the names of the ops that the device cannot run.
function mps.unsupported_ops()
  on "unsupported_ops"
  local list = {}
  for _, op in ipairs(core.ops()) do
    if not op.support.mps and op.name:sub(1, 1) ~= "_" then list[#list + 1] = op.name end
  end
  table.sort(list)
  return list
end

return strict_table.strict(mps, "lt.mps")
