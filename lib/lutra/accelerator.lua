--- lt.accelerator: devices, streams, events and memory of the machine's accelerator, for
-- device-agnostic code.
--
-- The accelerator is the first available of "cuda" and "mps". lt.cuda and lt.mps are these
-- functions restricted to their devices. A `device` argument is a number (from 0), a full name
-- ("cuda:1"), a tensor on that device, or nil for the current device; a device that does not exist
-- raises an error. The counters of memory also accept "cpu". Invariant: the core always gets the
-- full name of a device that exists.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local scope_guard = require "lutra.internal.scope_guard"
local scopes = require "lutra.internal.scopes"
local summary = require "lutra.internal.memory_summary"

local c = core._accelerator
local accelerator = {}

-- Returns the full name of a device of `kind`, or of any accelerator; `title` is the function's
-- name in errors. A plain table contains the arguments of a function whose only argument is the
-- device.
local function named(kind, device, title)
  if args.is_plain(device) and next(device) ~= nil then
    device = args.signature(title, "any? device = nil")(device)
  end
  return c.device(kind, device, title)
end

local function on(device, name) return named(nil, device, "accelerator." .. name) end

-- Returns the full name of a device with an allocator: an accelerator, or "cpu".
local function with_memory(device, name)
  return device == "cpu" and device or on(device, name)
end

-- Returns a counter of the allocator, or its peak; 0 without an accelerator.
local function stat(device, name, quantity, peak)
  if device == nil and not c.kind() then return 0 end
  return (select(peak and 2 or 1, c.memory_stat(with_memory(device, name), quantity)))
end

-- Devices ---------------------------------------------------------------------

--- Returns whether there is an accelerator.
function accelerator.is_available() return c.kind() ~= nil end

--- Returns the number of the accelerator's devices, 0 without an accelerator.
function accelerator.device_count()
  local kind = c.kind()
  return kind and (core._device_count(kind)) or 0
end

--- Returns the type of the accelerator, "cuda" or "mps", or nil without one.
function accelerator.current_accelerator() return c.kind() end

--- Returns the number of the current device, which "cuda" without a number refers to.
function accelerator.current_device_index() return c.index(on(nil, "current_device_index")) end

--- Makes a device the current one, which "cuda" without a number refers to.
function accelerator.set_device_index(device)
  args.expect(device ~= nil, "accelerator.set_device_index", "a device", "device", device)
  c.set_index(on(device, "set_device_index"))
end

--- Calls f(...) while `device` is the current one, restores the previous device, also after an
-- error, and returns what f returns.
function accelerator.with_device(device, f, ...)
  args.expect(args.is_callable(f), "with_device", "a function", "f", f)
  local name = on(device, "with_device")
  local old = c.device(name:match "^%a+", nil, "with_device")
  local _ <close> = scope_guard(c.set_index, old)
  c.set_index(name)
  return f(...)
end

local parse_synchronize = args.signature("accelerator.synchronize", "data? device")

--- Blocks until all work on all streams of a device has completed.
function accelerator.synchronize(...)
  local device = parse_synchronize(...)
  core.synchronize(on(device, "synchronize"))
end

local parse_get_device_capability = args.signature("accelerator.get_device_capability",
  "data? device")

--- Returns {supported_dtypes = list of dtypes}. Those of "mps" do not include float64 and
-- complex128.
function accelerator.get_device_capability(...)
  local device = parse_get_device_capability(...)
  local name, list = on(device, "get_device_capability"), {}
  for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16", "int64", "int32",
    "int16", "int8", "uint8", "bool", "complex128", "complex64"} do
    if c.has_dtype(name, dtype) then list[#list + 1] = dtype end
  end
  return {supported_dtypes = list}
end

-- Streams and events ----------------------------------------------------------

local parse_stream = args.signature("Stream", "any? device = nil, int priority = 0")

--- Returns a new stream, an independent queue of work on a device. Streams with a lower priority
-- number run first. Methods: wait_event(event), wait_stream(stream), record_event([event]),
-- query(), synchronize(), close(); fields: device, priority, cuda_stream. Two streams are equal
-- (==) when they are the same queue. A stream that is garbage-collected is released when its work
-- has completed.
function accelerator.Stream(...)
  local device, priority = parse_stream(...)
  return c.stream(on(device, "Stream"), priority)
end

local parse_event = args.signature("Event",
  "bool enable_timing = false, bool blocking = false, bool interprocess = false")

-- Returns an event of the devices of type `kind`.
local function new_event(kind, ...)
  local timing, _, interprocess = parse_event(...)
  args.check(not interprocess, "Event: cannot use interprocess = true: events are not "
    .. "shared between processes")
  return c.event(kind, timing)
end

--- lt.accelerator.Event{enable_timing = false}: returns a new event, a marker in a stream. Methods:
-- record([stream]), wait([stream]), query(), synchronize(), elapsed_time(end_event) in
-- milliseconds for events made with enable_timing, close(); field: device, nil until the event is
-- recorded. An event that was never recorded counts as completed: waiting for it returns at once.
function accelerator.Event(...)
  return new_event(on(nil, "Event"):match "^%a+", ...)
end

local parse_current_stream = args.signature("accelerator.current_stream", "data? device")

--- Returns the stream on which this thread queues work for a device.
function accelerator.current_stream(...)
  local device = parse_current_stream(...)
  return c.current_stream(on(device, "current_stream"))
end

local parse_default_stream = args.signature("accelerator.default_stream", "data? device")

--- Returns the stream that is current unless another is selected.
function accelerator.default_stream(...)
  local device = parse_default_stream(...)
  return c.default_stream(on(device, "default_stream"))
end

--- Makes a stream the current one of its device, and its device the current one.
function accelerator.set_stream(stream) c.set_stream(stream, "set_stream") end

accelerator.with_stream = scopes.with_stream

-- Memory ----------------------------------------------------------------------

local parse_memory_allocated = args.signature("accelerator.memory_allocated", "data? device")

--- Returns the number of bytes of a device allocated to tensors; 0 without an accelerator.
function accelerator.memory_allocated(...)
  local device = parse_memory_allocated(...)
  return stat(device, "memory_allocated", "allocated_bytes")
end

local parse_max_memory_allocated = args.signature("accelerator.max_memory_allocated",
  "data? device")

--- Returns the peak of memory_allocated since reset_peak_memory_stats; 0 without an accelerator.
function accelerator.max_memory_allocated(...)
  local device = parse_max_memory_allocated(...)
  return stat(device, "max_memory_allocated", "allocated_bytes", true)
end

local parse_memory_reserved = args.signature("accelerator.memory_reserved", "data? device")

--- Returns the number of bytes reserved from the driver: allocated to tensors, or cached; 0 without
-- an accelerator.
function accelerator.memory_reserved(...)
  local device = parse_memory_reserved(...)
  return stat(device, "memory_reserved", "reserved_bytes")
end

local parse_max_memory_reserved = args.signature("accelerator.max_memory_reserved", "data? device")

--- Returns the peak of memory_reserved since reset_peak_memory_stats; 0 without an accelerator.
function accelerator.max_memory_reserved(...)
  local device = parse_max_memory_reserved(...)
  return stat(device, "max_memory_reserved", "reserved_bytes", true)
end

local parse_memory_stats = args.signature("accelerator.memory_stats", "data? device")

--- Returns a table of all counters of a device's allocator, under PyTorch's names:
-- "allocated_bytes.all.current", "segment.large_pool.peak", ..., num_alloc_retries, num_ooms,
-- num_device_alloc, num_device_free. Those of "cpu" count blocks of at least 32 KiB, and what is
-- cached of them.
function accelerator.memory_stats(...)
  local device = parse_memory_stats(...)
  return c.memory_stats(with_memory(device, "memory_stats"))
end

--- lt.accelerator.memory_summary(device, abbreviated = false): returns the counters of memory_stats
-- as a readable string; with `abbreviated`, without the sections per pool.
function accelerator.memory_summary(device, abbreviated)
  local name = with_memory(device, "memory_summary")
  return summary(name, core.device_properties(name), c.memory_stats(name), abbreviated == true)
end

local parse_memory_snapshot = args.signature("accelerator.memory_snapshot", "data? device")

--- Returns a list of all segments reserved from the driver and their blocks: {device, address,
-- total_size, allocated_size, active_size, requested_size, segment_type, stream, blocks = list of
-- {address, size, requested_size, state, dtype, shape, where}}; sizes are in bytes, `where` is the
-- line of the program that allocated the block.
function accelerator.memory_snapshot(...)
  local device = parse_memory_snapshot(...)
  return c.memory_snapshot(on(device, "memory_snapshot"))
end

local parse_reset_peak_memory_stats = args.signature("accelerator.reset_peak_memory_stats",
  "data? device")

--- Sets the peaks to the current values.
function accelerator.reset_peak_memory_stats(...)
  local device = parse_reset_peak_memory_stats(...)
  c.memory_reset_peak(with_memory(device, "reset_peak_memory_stats"))
end

local parse_get_memory_info = args.signature("accelerator.get_memory_info", "data? device")

--- Returns the free and the total bytes of a device, as its driver reports them.
function accelerator.get_memory_info(...)
  local device = parse_get_memory_info(...)
  return c.memory_info(with_memory(device, "get_memory_info"))
end

--- Releases cached segments without a live tensor to the driver, on every device of the
-- accelerator; with "cpu", cached host memory to the system. Memory of live tensors is not
-- affected. Does nothing before the first use of a device.
function accelerator.empty_cache(device)
  if device == "cpu" then return c.memory_release(device) end
  local kind = c.kind()
  if not kind or not c.is_ready(kind) then return end
  for i = 0, core._device_count(kind) - 1 do c.memory_release(c.device(kind, i, "empty_cache")) end
end

--- Releases cached pinned host memory to the system.
function accelerator.empty_host_cache()
  local kind = c.kind()
  if kind and c.is_ready(kind) then c.host_release(kind) end
end

--- Limits this program to a fraction (0 to 1) of a device's memory; an allocation beyond it raises
-- an out-of-memory error.
function accelerator.set_per_process_memory_fraction(fraction, device)
  args.expect(type(fraction) == "number" and fraction >= 0 and fraction <= 1,
    "set_per_process_memory_fraction", "a number from 0 to 1", "fraction", fraction)
  c.memory_limit(on(device, "set_per_process_memory_fraction"), fraction)
end

accelerator._new_event, accelerator._device = new_event, named

return strict_table.strict(accelerator, "lt.accelerator")
