--- lt.cuda: NVIDIA GPUs, real or emulated: the functions of lt.accelerator restricted to CUDA
-- devices, and those that only CUDA has.
--
-- A `device` argument is a number (from 0), a full name ("cuda:1"), a tensor on that device, or nil
-- for the current device. A device that does not exist raises an error.

local core = require "lutra.core"
local accelerator = require "lutra.accelerator"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local scopes = require "lutra.internal.scopes"

local c = core._accelerator
local cuda = {}

-- Returns the full name of a CUDA device; `name` is the function's name in errors.
local function on(device, name) return accelerator._device("cuda", device, "cuda." .. name) end

-- Returns a counter of the allocator, 0 without a CUDA device.
local function held(count, device, name)
  if device == nil and not cuda.is_available() then return 0 end
  return count(on(device, name))
end

-- Devices ---------------------------------------------------------------------

--- Returns whether there is a CUDA device, real or emulated.
function cuda.is_available() return core._device_count "cuda" > 0 end

--- Returns whether a CUDA device has been used; devices are initialized on first use.
function cuda.is_initialized() return c.is_ready "cuda" end

--- Returns whether this build of Lutra includes CUDA (or its emulation, when that is selected).
function cuda.is_built() return c.is_built "cuda" end

--- Returns the number of CUDA devices.
function cuda.device_count() return (core._device_count "cuda") end

--- Returns the number of the current device, which "cuda" without a number refers to.
function cuda.current_device() return c.index(on(nil, "current_device")) end

--- Makes a device the current one, which "cuda" without a number refers to.
function cuda.set_device(device)
  args.expect(device ~= nil, "cuda.set_device", 'a device such as 1 or "cuda:1"', "device", device)
  accelerator.set_device_index(on(device, "set_device"))
end

--- Calls f(...) while `device` is the current one, restores the previous device, also after an
-- error, and returns what f returns.
function cuda.with_device(device, f, ...)
  return accelerator.with_device(on(device, "with_device"), f, ...)
end

local properties_meta = {__name = "DeviceProperties"}
local property_order = {
  "name", "major", "minor", "total_memory", "free_memory", "multi_processor_count",
  "max_threads_per_multi_processor", "max_threads_per_block", "warp_size",
  "shared_memory_per_block", "shared_memory_per_block_optin", "L2_cache_size", "emulated",
}

function properties_meta.__tostring(self)
  local lines = {}
  for _, key in ipairs(property_order) do
    local value = self[key]
    if key:find "memory" or key == "L2_cache_size" then
      value = value and ("%d  -- %.5g MiB"):format(value, value / (1 << 20))
    elseif type(value) == "string" then
      value = ("%q"):format(value)
    end
    if value ~= nil then lines[#lines + 1] = ("  %s = %s"):format(key, tostring(value)) end
  end
  return "DeviceProperties {\n" .. table.concat(lines, "\n") .. "\n}"
end

local parse_get_device_properties = args.signature("cuda.get_device_properties", "data? device")

--- Returns the properties of a device: name, major, minor, total_memory, free_memory (bytes),
-- multi_processor_count, warp_size, max_threads_per_block, shared_memory_per_block, L2_cache_size,
-- ..., emulated.
function cuda.get_device_properties(...)
  local device = parse_get_device_properties(...)
  return setmetatable(core.device_properties(on(device, "get_device_properties")),
    properties_meta)
end

local parse_get_device_name = args.signature("cuda.get_device_name", "data? device")

--- Returns the name of the hardware.
function cuda.get_device_name(...)
  local device = parse_get_device_name(...)
  return core.device_properties(on(device, "get_device_name")).name
end

local parse_get_device_capability = args.signature("cuda.get_device_capability", "data? device")

--- Returns the compute capability of a device: major, minor.
function cuda.get_device_capability(...)
  local device = parse_get_device_capability(...)
  local properties = core.device_properties(on(device, "get_device_capability"))
  return properties.major, properties.minor
end

local parse_is_bf16_supported = args.signature("cuda.is_bf16_supported",
  "bool including_emulation = true")

--- Returns whether the current device can compute in bfloat16. All devices can; with
-- including_emulation = false, only those with hardware support (compute capability 8.0) count.
function cuda.is_bf16_supported(...)
  local including_emulation = parse_is_bf16_supported(...)
  if not cuda.is_available() then return false end
  return including_emulation or cuda.get_device_capability() >= 8
end

local parse_peers = args.signature("cuda.can_device_access_peer",
  "device device, device peer_device")

-- Returns the full name of the second device; its errors name the argument `peer_device`.
local function peer_named(peer)
  local ok, name = pcall(on, peer, "can_device_access_peer")
  if ok then return name end
  return args.fail((name:gsub("^.-: ", "", 1):gsub("(['\"])device%1", "%1peer_device%1", 1)))
end

--- Returns whether `device` can access the memory of `peer_device` directly.
function cuda.can_device_access_peer(...)
  local device, peer = parse_peers(...)
  return c.can_access_peer(on(device, "can_device_access_peer"), peer_named(peer))
end

local parse_synchronize = args.signature("cuda.synchronize", "data? device")

--- Blocks until all work on all streams of a device has completed.
function cuda.synchronize(...)
  local device = parse_synchronize(...)
  accelerator.synchronize(on(device, "synchronize"))
end

-- Memory: see lt.accelerator ----------------------------------------------------

local parse_memory_allocated = args.signature("cuda.memory_allocated", "data? device")

--- Returns the number of bytes of a device allocated to tensors; 0 without a CUDA device.
function cuda.memory_allocated(...)
  local device = parse_memory_allocated(...)
  return held(accelerator.memory_allocated, device, "memory_allocated")
end

local parse_max_memory_allocated = args.signature("cuda.max_memory_allocated", "data? device")

--- Returns the peak of memory_allocated since reset_peak_memory_stats; 0 without a CUDA device.
function cuda.max_memory_allocated(...)
  local device = parse_max_memory_allocated(...)
  return held(accelerator.max_memory_allocated, device, "max_memory_allocated")
end

local parse_memory_reserved = args.signature("cuda.memory_reserved", "data? device")

--- Returns the number of bytes reserved from the driver: allocated to tensors, or cached; 0 without
-- a CUDA device.
function cuda.memory_reserved(...)
  local device = parse_memory_reserved(...)
  return held(accelerator.memory_reserved, device, "memory_reserved")
end

local parse_max_memory_reserved = args.signature("cuda.max_memory_reserved", "data? device")

--- Returns the peak of memory_reserved since reset_peak_memory_stats; 0 without a CUDA device.
function cuda.max_memory_reserved(...)
  local device = parse_max_memory_reserved(...)
  return held(accelerator.max_memory_reserved, device, "max_memory_reserved")
end

local parse_memory_stats = args.signature("cuda.memory_stats", "data? device")

--- Returns a table of all counters of a device's allocator, under PyTorch's names:
-- "allocated_bytes.all.current" and so on.
function cuda.memory_stats(...)
  local device = parse_memory_stats(...)
  return accelerator.memory_stats(on(device, "memory_stats"))
end

local parse_summary = args.signature("cuda.memory_summary",
  "any? device = nil, bool abbreviated = false")

--- Returns the counters of memory_stats as a readable string; with `abbreviated`, without the
-- sections per pool.
function cuda.memory_summary(...)
  local device, abbreviated = parse_summary(...)
  return accelerator.memory_summary(on(device, "memory_summary"), abbreviated)
end

local parse_memory_snapshot = args.signature("cuda.memory_snapshot", "data? device")

--- Returns a list of all segments reserved from the driver and their blocks, of one device or,
-- without an argument, of all. lt.accelerator.memory_snapshot lists the fields.
function cuda.memory_snapshot(...)
  local device = parse_memory_snapshot(...)
  if device ~= nil then return accelerator.memory_snapshot(on(device, "memory_snapshot")) end
  local all = {}
  for i = 0, cuda.device_count() - 1 do
    local list = accelerator.memory_snapshot(on(i, "memory_snapshot"))
    table.move(list, 1, #list, #all + 1, all)
  end
  return all
end

local parse_reset_peak_memory_stats = args.signature("cuda.reset_peak_memory_stats", "data? device")

--- Sets the peaks to the current values.
function cuda.reset_peak_memory_stats(...)
  local device = parse_reset_peak_memory_stats(...)
  accelerator.reset_peak_memory_stats(on(device, "reset_peak_memory_stats"))
end

local parse_mem_get_info = args.signature("cuda.mem_get_info", "data? device")

--- Returns the free and the total bytes of a device, as its driver reports them.
function cuda.mem_get_info(...)
  local device = parse_mem_get_info(...)
  return accelerator.get_memory_info(on(device, "mem_get_info"))
end

--- Releases cached segments without a live tensor to the driver, on every device. Memory of live
-- tensors is not affected.
function cuda.empty_cache() accelerator.empty_cache() end

--- Releases cached pinned host memory to the system.
function cuda.empty_host_cache() accelerator.empty_host_cache() end

local parse_fraction = args.signature("cuda.set_per_process_memory_fraction",
  "any? fraction = nil, any? device = nil")

--- Limits this program to a fraction (0 to 1) of a device's memory; an allocation beyond it raises
-- an out-of-memory error.
function cuda.set_per_process_memory_fraction(...)
  local fraction, device = parse_fraction(...)
  accelerator.set_per_process_memory_fraction(fraction,
    on(device, "set_per_process_memory_fraction"))
end

-- Streams and events ------------------------------------------------------------

local parse_stream = args.signature("cuda.Stream", "any? device = nil, int priority = 0")

--- Returns a new stream of a CUDA device; see lt.accelerator.Stream.
function cuda.Stream(...)
  local device, priority = parse_stream(...)
  return accelerator.Stream(on(device, "Stream"), priority)
end

--- lt.cuda.Event{enable_timing = false}: returns a new event; see lt.accelerator.Event.
function cuda.Event(...)
  on(nil, "Event")
  return accelerator._new_event("cuda", ...)
end

local parse_current_stream = args.signature("cuda.current_stream", "data? device")

--- Returns the stream on which this thread queues work for a device.
function cuda.current_stream(...)
  local device = parse_current_stream(...)
  return accelerator.current_stream(on(device, "current_stream"))
end

local parse_default_stream = args.signature("cuda.default_stream", "data? device")

--- Returns the stream that is current unless another is selected.
function cuda.default_stream(...)
  local device = parse_default_stream(...)
  return accelerator.default_stream(on(device, "default_stream"))
end

cuda.set_stream = accelerator.set_stream
cuda.with_stream = scopes.with_stream

-- Graphs --------------------------------------------------------------------------

--- Returns a new graph, which lt.cuda.graph captures. Methods: replay() queues the captured work on
-- the current stream; reset() frees it; pool() is its private memory, for graphs that share it;
-- capture_begin([pool]) and capture_end() capture without a function.
function cuda.CUDAGraph()
  on(nil, "CUDAGraph")
  return require("lutra.internal.cuda_graph").new()
end

--- lt.cuda.graph(g, {pool, stream}, f, ...), or lt.cuda.graph(g, f, ...): captures the work that
-- f(...) queues on the current CUDA device in the graph g, without running it, and returns what f
-- returns. g:replay() runs it: tensors that f returned then hold new values, computed from those
-- that the tensors f used have by then. Numbers, sizes and CPU tensors with one element keep their
-- values of the capture; random numbers of the default generator are new ones at each replay.
-- Calls for which the host would block (item, synchronize, printing, copies from and to memory that
-- is not pinned), Fourier transforms, decompositions of matrices and random numbers of another
-- Generator raise an error, which ends the capture. Run f once before the capture, so that kernels
-- are compiled and the state of optimizers exists.
function cuda.graph(...) return require("lutra.internal.cuda_graph").graph(...) end

--- Returns whether work on the current stream is captured in a graph.
function cuda.is_current_stream_capturing()
  return require("lutra.internal.cuda_graph").is_current_stream_capturing()
end

--- Returns a pool of private memory, which captures can share: lt.cuda.graph(g, {pool = pool}, f).
function cuda.graph_pool_handle()
  return require("lutra.internal.cuda_graph").graph_pool_handle()
end

-- Kernels -------------------------------------------------------------------------

--- Compiles a kernel from CUDA C++ source and returns it. Call it as kernel({grid, block,
-- shared_bytes}, arguments...), with tensors for pointer parameters and numbers for the others;
-- grid and block are numbers or lists of up to three. `options` is a list of options of the
-- compiler NVRTC ("-DN=16"). The source may include <stdint.h>, <math.h> and other C headers,
-- <cuda_fp16.h> and <cuda_bf16.h>. Raises an error with the compiler's messages when compilation
-- fails.
function cuda.kernel(...) return require("lutra.internal.kernel").new(...) end

-- Random numbers ----------------------------------------------------------------

--- Seeds the default generator, which serves all devices: the same seed gives the same numbers on
-- each.
function cuda.manual_seed(...) core.manual_seed(...) end

--- The same as manual_seed, as one generator serves all devices.
function cuda.manual_seed_all(...) core.manual_seed(...) end

local parse_get_rng_state = args.signature("cuda.get_rng_state", "data? device")

--- Returns the state of the default generator, which serves all devices, as a tensor on the CPU.
function cuda.get_rng_state(...)
  local device = parse_get_rng_state(...)
  on(device, "get_rng_state")
  return core.get_rng_state()
end

local parse_set_rng_state = args.signature("cuda.set_rng_state",
  "Tensor state, any? device = nil")

--- Restores a state of the default generator, which serves all devices, that get_rng_state
-- returned.
function cuda.set_rng_state(...)
  local state, device = parse_set_rng_state(...)
  on(device, "set_rng_state")
  core.set_rng_state(state)
end

-- Ranges for profilers ------------------------------------------------------------

-- The number of open ranges. Ranges are counted but not yet passed to NVIDIA's tools.
local nvtx, depth = {}, 0

local function check_message(name, message)
  args.expect(type(message) == "string", "nvtx." .. name, "a string", "msg", message)
end

--- Opens a named range; returns the number of ranges that were open. Not yet supported by
-- profilers: programs with ranges run, and nothing displays them.
function nvtx.range_push(msg)
  check_message("range_push", msg)
  depth = depth + 1
  return depth - 1
end

--- Closes the range that was opened last; returns the number of ranges that are still open. Raises
-- an error when none is open.
function nvtx.range_pop()
  args.check(depth > 0, "nvtx.range_pop: cannot close a range: none is open")
  depth = depth - 1
  return depth
end

--- Marks an instant. It has no effect yet.
function nvtx.mark(msg) check_message("mark", msg) end

cuda.nvtx = strict_table.strict(nvtx, "lt.cuda.nvtx")

return strict_table.strict(cuda, "lt.cuda")
