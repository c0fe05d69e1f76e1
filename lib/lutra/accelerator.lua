--- lt.accelerator: whatever accelerator this machine has, by one set of functions.
--
-- Idea: the first of cuda, mps that is here is *the* accelerator; lt.cuda and lt.mps are
-- faces of what stands here, and differ in which devices they accept.
-- A `device` argument may be a number (from 0), a full name ("cuda:1"), a tensor that is
-- there, or nil for the current device.
-- Invariant: what is handed to the core is always the full name of a device that exists.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local scope_guard = require "lutra.internal.scope_guard"
local scopes = require "lutra.internal.scopes"
local summary = require "lutra.internal.memory_summary"

local c = core._accelerator
local accelerator = {}

-- The full name of a device, for the function `title`: of `kind`, or of any accelerator. A plain
-- table holds the arguments of a function whose only one is the device.
local function named(kind, device, title)
  if args.is_plain(device) and next(device) ~= nil then
    device = args.signature(title, "any? device = nil")(device)
  end
  return c.device(kind, device, title)
end

local function on(device, name) return named(nil, device, "accelerator." .. name) end

-- A count of the allocator's: where there is no accelerator nothing is held.
local function stat(device, name, quantity, peak)
  if device == nil and not c.kind() then return 0 end
  return (select(peak and 2 or 1, c.memory_stat(on(device, name), quantity)))
end

-- Devices ---------------------------------------------------------------------

--- Is there an accelerator?
function accelerator.is_available() return c.kind() ~= nil end

--- How many devices the accelerator has; 0 where there is none.
function accelerator.device_count()
  local kind = c.kind()
  return kind and (core._device_count(kind)) or 0
end

--- The type of the accelerator, "cuda" or "mps"; nil where there is none.
function accelerator.current_accelerator() return c.kind() end

--- The number of the device that a bare "cuda" means now.
function accelerator.current_device_index() return c.index(on(nil, "current_device_index")) end

--- Makes a device the current one: what a bare "cuda" means from now on.
function accelerator.set_device_index(device)
  args.check(device ~= nil, 'accelerator.set_device_index: argument "device" is missing')
  c.set_index(on(device, "set_device_index"))
end

--- Calls f(...) with a device as the current one; returns what f returns.
function accelerator.with_device(device, f, ...)
  args.check(args.is_callable(f), 'with_device: argument "f" is %s, it wants a function',
    args.show(f))
  local name = on(device, "with_device")
  local old = c.device(name:match "^%a+", nil, "with_device")
  local _ <close> = scope_guard(c.set_index, old)
  c.set_index(name)
  return f(...)
end

local parse_synchronize = args.signature("accelerator.synchronize", "data? device")

--- Waits until a device has done its work, on all its streams.
function accelerator.synchronize(...)
  local device = parse_synchronize(...)
  core.synchronize(on(device, "synchronize"))
end

local parse_get_device_capability = args.signature("accelerator.get_device_capability",
  "data? device")

--- What a device can do: {supported_dtypes = list of dtypes}.
function accelerator.get_device_capability(...)
  local device = parse_get_device_capability(...)
  local name, list = on(device, "get_device_capability"), {}
  local no_double = name:find "^mps"
  for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16", "int64", "int32",
    "int16", "int8", "uint8", "bool", "complex128", "complex64"} do
    local double = dtype == "float64" or dtype == "complex128"
    if not (no_double and double) then list[#list + 1] = dtype end
  end
  return {supported_dtypes = list}
end

-- Streams and events ----------------------------------------------------------

local parse_stream = args.signature("Stream", "any? device = nil, int priority = 0")

--- A new stream: a queue of work of its own on a device. Streams of a lower priority
-- number go first. Methods: wait_event(event), wait_stream(stream), record_event([event]),
-- query(), synchronize(), close(); fields: device, priority, cuda_stream. Two streams are
-- == when they are the same queue. A stream that is not held any more ends once its
-- work is done.
function accelerator.Stream(...)
  local device, priority = parse_stream(...)
  return c.stream(on(device, "Stream"), priority)
end

local parse_event = args.signature("Event",
  "bool enable_timing = false, bool blocking = false, bool interprocess = false")

-- An event of devices of type `kind`.
local function new_event(kind, ...)
  local timing, _, interprocess = parse_event(...)
  args.check(not interprocess, "Event: events are not shared between processes")
  return c.event(kind, timing)
end

--- A new event: a mark in a stream. Methods: record([stream]), wait([stream]), query(),
-- synchronize(), elapsed_time(end_event) in milliseconds, for events made with
-- {enable_timing = true}, close(); field: device, nil until it is recorded. An event that
-- was never recorded has happened: waiting for it waits for nothing.
function accelerator.Event(...)
  return new_event(on(nil, "Event"):match "^%a+", ...)
end

local parse_current_stream = args.signature("accelerator.current_stream", "data? device")

--- The stream that work of this thread on a device goes to now.
function accelerator.current_stream(...)
  local device = parse_current_stream(...)
  return c.current_stream(on(device, "current_stream"))
end

local parse_default_stream = args.signature("accelerator.default_stream", "data? device")

--- The stream that work on a device goes to when no other was chosen.
function accelerator.default_stream(...)
  local device = parse_default_stream(...)
  return c.default_stream(on(device, "default_stream"))
end

--- Makes a stream the current one of its device, and its device the current one.
function accelerator.set_stream(stream) c.set_stream(stream, "set_stream") end

accelerator.with_stream = scopes.with_stream

-- Memory ----------------------------------------------------------------------

local parse_memory_allocated = args.signature("accelerator.memory_allocated", "data? device")

--- Bytes of a device that tensors hold. This and the three below are 0 where there is none.
function accelerator.memory_allocated(...)
  local device = parse_memory_allocated(...)
  return stat(device, "memory_allocated", "allocated_bytes")
end

local parse_max_memory_allocated = args.signature("accelerator.max_memory_allocated",
  "data? device")

--- The most bytes that tensors held since reset_peak_memory_stats.
function accelerator.max_memory_allocated(...)
  local device = parse_max_memory_allocated(...)
  return stat(device, "max_memory_allocated", "allocated_bytes", true)
end

local parse_memory_reserved = args.signature("accelerator.memory_reserved", "data? device")

--- Bytes had from the driver: what tensors hold and what is cached.
function accelerator.memory_reserved(...)
  local device = parse_memory_reserved(...)
  return stat(device, "memory_reserved", "reserved_bytes")
end

local parse_max_memory_reserved = args.signature("accelerator.max_memory_reserved", "data? device")

--- The most bytes had from the driver since reset_peak_memory_stats.
function accelerator.max_memory_reserved(...)
  local device = parse_max_memory_reserved(...)
  return stat(device, "max_memory_reserved", "reserved_bytes", true)
end

local parse_memory_stats = args.signature("accelerator.memory_stats", "data? device")

--- Everything the allocator of a device counts, by PyTorch's names:
-- "allocated_bytes.all.current", "segment.large_pool.peak", ..., num_alloc_retries,
-- num_ooms, num_device_alloc, num_device_free.
function accelerator.memory_stats(...)
  local device = parse_memory_stats(...)
  return c.memory_stats(on(device, "memory_stats"))
end

--- The same as a text to read; with `abbreviated`, without the parts for each pool.
function accelerator.memory_summary(device, abbreviated)
  local name = on(device, "memory_summary")
  return summary(name, core.device_properties(name), c.memory_stats(name), abbreviated == true)
end

local parse_memory_snapshot = args.signature("accelerator.memory_snapshot", "data? device")

--- Every segment of memory had from the driver and every block in it: a list of {device,
-- address, total_size, allocated_size, active_size, requested_size, segment_type, stream,
-- blocks = list of {address, size, requested_size, state, dtype, shape, where}}; `where`
-- is the line of the program that asked for the block.
function accelerator.memory_snapshot(...)
  local device = parse_memory_snapshot(...)
  return c.memory_snapshot(on(device, "memory_snapshot"))
end

local parse_reset_peak_memory_stats = args.signature("accelerator.reset_peak_memory_stats",
  "data? device")

--- Starts the peaks again, from what is held now.
function accelerator.reset_peak_memory_stats(...)
  local device = parse_reset_peak_memory_stats(...)
  c.memory_reset_peak(on(device, "reset_peak_memory_stats"))
end

local parse_get_memory_info = args.signature("accelerator.get_memory_info", "data? device")

--- Free and total bytes of a device, as its driver says.
function accelerator.get_memory_info(...)
  local device = parse_get_memory_info(...)
  return c.memory_info(on(device, "get_memory_info"))
end

--- Gives the memory that is cached and whole back to the driver, on every device of the
-- accelerator. Frees nothing that a tensor holds. Nothing to do where nothing was used.
function accelerator.empty_cache()
  local kind = c.kind()
  if not kind or not c.is_ready(kind) then return end
  for i = 0, core._device_count(kind) - 1 do c.memory_release(c.device(kind, i, "empty_cache")) end
end

--- Gives pinned memory of the host that is cached back to the system.
function accelerator.empty_host_cache()
  local kind = c.kind()
  if kind and c.is_ready(kind) then c.host_release(kind) end
end

--- Lets this program use at most a fraction (0 to 1) of a device's memory.
function accelerator.set_per_process_memory_fraction(fraction, device)
  args.check(type(fraction) == "number" and fraction >= 0 and fraction <= 1,
    'set_per_process_memory_fraction: argument "fraction" is %s, it wants a number from 0 to 1',
    args.show(fraction))
  c.memory_limit(on(device, "set_per_process_memory_fraction"), fraction)
end

accelerator._new_event, accelerator._device = new_event, named

return strict_table.strict(accelerator, "lt.accelerator")
