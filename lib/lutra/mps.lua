--- lt.mps: Apple's GPUs. A face of lt.accelerator; functions that need a device say so where
-- there is none.

local core = require "lutra.core"
local accelerator = require "lutra.accelerator"
local strict_table = require "lutra.internal.strict_table"

local c = core._accelerator
local mps = {}

-- The name of the device; an error, in the name of the function, where there is none.
local function on(name) return c.device("mps", nil, "mps." .. name) end

--- Is there an Apple GPU?
function mps.is_available() return core._device_count "mps" > 0 end

--- Was this Lutra built with Metal?
function mps.is_built() return c.is_built "mps" end

--- How many there are: 1 or 0.
function mps.device_count() return (core._device_count "mps") end

--- Waits until the device has done its work.
function mps.synchronize() accelerator.synchronize(on "synchronize") end

--- Seeds the numbers that random functions draw: one generator serves all devices.
function mps.manual_seed(...) core.manual_seed(...) end

--- The state of the default generator, which serves all devices.
function mps.get_rng_state() return core.get_rng_state() end

--- Puts the default generator back into a state that get_rng_state gave.
function mps.set_rng_state(...) core.set_rng_state(...) end

--- Gives the memory that is cached back to the system.
function mps.empty_cache() c.memory_release(on "empty_cache") end

--- Bytes that tensors hold.
function mps.current_allocated_memory()
  return accelerator.memory_allocated(on "current_allocated_memory")
end

--- Bytes had from the driver: what tensors hold and what is cached.
function mps.driver_allocated_memory()
  return accelerator.memory_reserved(on "driver_allocated_memory")
end

--- Bytes that a program should not go beyond.
function mps.recommended_max_memory()
  local _, total = accelerator.get_memory_info(on "recommended_max_memory")
  return total
end

--- Lets this program use at most a fraction (0 to 1) of the device's memory.
function mps.set_per_process_memory_fraction(fraction)
  accelerator.set_per_process_memory_fraction(fraction, on "set_per_process_memory_fraction")
end

--- A new event: see lt.accelerator.Event.
function mps.Event(...)
  on "Event"
  return accelerator._new_event("mps", ...)
end

--- The names of the ops that the device cannot run, sorted.
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
