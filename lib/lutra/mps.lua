--- lt.mps: Apple's GPUs, real or emulated: the functions of lt.accelerator restricted to the
-- device "mps", and those that only Metal has. Those that need the device raise an error without
-- one.
--
-- The dtypes float64 and complex128 do not exist on this device: creating such a tensor there
-- raises an error. All other dtypes do.

local core = require "lutra.core"
local accelerator = require "lutra.accelerator"
local args = require "lutra.internal.args"
local scope_guard = require "lutra.internal.scope_guard"
local strict_table = require "lutra.internal.strict_table"

local c = core._accelerator
local mps = {}

-- Returns the device's name; raises an error that names the function when there is no device.
local function on(name) return c.device("mps", nil, "mps." .. name) end

-- Returns a counter of the allocator, 0 without a device.
local function held(count, name)
  if not mps.is_available() then return 0 end
  return count(on(name))
end

-- Devices ---------------------------------------------------------------------

--- Returns whether there is an Apple GPU, real or emulated.
function mps.is_available() return core._device_count "mps" > 0 end

--- Returns whether this build of Lutra includes Metal (or its emulation, when that is selected).
function mps.is_built() return c.is_built "mps" end

--- Returns the number of devices, 1 or 0.
function mps.device_count() return (core._device_count "mps") end

--- Blocks until all work on the device has completed.
function mps.synchronize() accelerator.synchronize(on "synchronize") end

--- Returns a sorted list of the names of the ops that the device cannot run: those that have
-- neither a Metal kernel nor a form that is composed of other ops. Such an op raises an error;
-- after lt.set_fallback(true) it runs on the CPU, with a copy of its arguments to the CPU and one
-- of its results back, and one warning per op. Dtypes are not considered: no op runs in float64
-- and complex128, which the device does not have.
function mps.unsupported_ops()
  on "unsupported_ops"
  local list = {}
  for _, op in ipairs(core.ops()) do
    if not op.support.mps and op.name:sub(1, 1) ~= "_" then list[#list + 1] = op.name end
  end
  table.sort(list)
  return list
end

-- Memory ----------------------------------------------------------------------

--- Returns the number of bytes allocated to tensors; 0 without a device.
function mps.current_allocated_memory()
  return held(accelerator.memory_allocated, "current_allocated_memory")
end

--- Returns the number of bytes reserved from Metal: allocated to tensors, or cached; 0 without a
-- device.
function mps.driver_allocated_memory()
  return held(accelerator.memory_reserved, "driver_allocated_memory")
end

--- Returns the number of bytes that a program should not exceed, so that the system does not swap.
function mps.recommended_max_memory()
  local _, total = accelerator.get_memory_info(on "recommended_max_memory")
  return total
end

--- Releases cached memory to the system. Memory of live tensors is not affected.
function mps.empty_cache() c.memory_release(on "empty_cache") end

local parse_fraction = args.signature("mps.set_per_process_memory_fraction", "any? fraction = nil")

--- Limits this program to a fraction (0 to 1) of recommended_max_memory; an allocation beyond it
-- raises an out-of-memory error.
function mps.set_per_process_memory_fraction(...)
  local fraction = parse_fraction(...)
  accelerator.set_per_process_memory_fraction(fraction, on "set_per_process_memory_fraction")
end

-- Random numbers --------------------------------------------------------------

--- lt.mps.manual_seed(seed): seeds the default generator, which serves all devices: the same seed
-- gives the same numbers on each.
function mps.manual_seed(...) core.manual_seed(...) end

--- Returns a new random seed, and seeds the default generator with it.
function mps.seed() return core.seed() end

--- Returns the state of the default generator, which serves all devices, as a tensor on the CPU.
function mps.get_rng_state() return core.get_rng_state() end

--- lt.mps.set_rng_state(state): restores a state of the default generator, which serves all
-- devices, that get_rng_state returned.
function mps.set_rng_state(...) core.set_rng_state(...) end

-- Events and kernels ----------------------------------------------------------

--- lt.mps.Event{enable_timing = false}: returns a new event; see lt.accelerator.Event.
function mps.Event(...)
  on "Event"
  return accelerator._new_event("mps", ...)
end

--- lt.mps.compile_shader(source): compiles a source in the Metal Shading Language and returns a
-- library, whose fields are its kernels. Call one as lib.name(arguments..., {threads, group_size,
-- threadgroup_bytes, arg_casts}), with tensors for pointers in device memory, numbers for values
-- (constant float &), lists of numbers for arrays in constant memory and strings with the bytes of
-- structs; the options are optional. threads: the number of threads in all, a number or a list of
-- up to three, by default the number of elements of the first tensor. group_size: the threads of a
-- threadgroup, by default what the device chooses. threadgroup_bytes: the size of the memory
-- [[threadgroup(0)]]. arg_casts: the types of numbers ("int32", or {[3] = "int32"}) for a kernel
-- that a macro declares, whose parameters cannot be read. A kernel has the fields
-- max_threads_per_threadgroup, thread_execution_width and static_thread_group_memory_length.
-- Raises an error with the compiler's messages when compilation fails.
function mps.compile_shader(...) return require("lutra.internal.shader")(...) end

-- Profiler --------------------------------------------------------------------

local profiler, current = {}, nil

local parse_start = args.signature("mps.profiler.start",
  "string mode = 'interval', bool wait_until_completed = false")

--- Marks each op of this thread with a signpost, which Apple's Instruments displays, until stop is
-- called. mode: "interval" (default), "event" for an instant per op, or "interval,event", which is
-- the same as "interval". wait_until_completed: blocks on each op, so that its interval includes
-- the work of the GPU.
function profiler.start(...)
  local mode, wait = parse_start(...)
  args.check(not current, "mps.profiler.start: cannot start the profiler: it is already running")
  for word in (mode .. ","):gmatch "([^,]*)," do
    args.expect(word == "interval" or word == "event", "mps.profiler.start",
      '"interval", "event" or "interval,event"', "mode", mode)
  end
  current = c.signposts(on "profiler.start", mode:find("interval", 1, true) ~= nil, wait)
  args.check(current, "mps.profiler.start: cannot start the profiler: not available in this build")
end

--- Ends what start began. Does nothing when the profiler is not running.
function profiler.stop()
  if current then current:stop() end
  current = nil
end

--- Calls f() between start(mode, wait_until_completed) and stop(), also after an error, and returns
-- what f returns.
function profiler.profile(f, ...)
  args.expect(args.is_callable(f), "mps.profiler.profile", "a function", "f", f)
  profiler.start(...)
  local _ <close> = scope_guard(profiler.stop)
  return f()
end

--- Returns whether Metal can capture its commands to a file: false, not yet supported. Capture them
-- with Xcode.
function profiler.is_metal_capture_enabled() return false end

--- Returns whether Metal's commands are being captured: false, not yet supported.
function profiler.is_capturing_metal() return false end

--- lt.mps.profiler: signposts for Apple's Instruments. Elsewhere they have no effect; lt.profiler
-- measures on every device.
mps.profiler = strict_table.strict(profiler, "lt.mps.profiler")

return strict_table.strict(mps, "lt.mps")
