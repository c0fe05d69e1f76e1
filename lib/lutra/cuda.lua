--- lt.cuda: NVIDIA GPUs, real or emulated. A face of lt.accelerator that takes CUDA devices
-- only, and what CUDA alone has.
--
-- A `device` argument may be a number (from 0), a full name ("cuda:1"), a tensor that is
-- there, or nil for the current device.

local core = require "lutra.core"
local accelerator = require "lutra.accelerator"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local scopes = require "lutra.internal.scopes"

local c = core._accelerator
local cuda = {}

-- The full name of a CUDA device.
local function on(device, name) return accelerator._device("cuda", device, "cuda." .. name) end

-- A count of the allocator's: where there is no CUDA device nothing is held.
local function held(count, device, name)
  if device == nil and not cuda.is_available() then return 0 end
  return count(on(device, name))
end

-- Devices ---------------------------------------------------------------------

--- Is there a CUDA device, real or emulated?
function cuda.is_available() return core._device_count "cuda" > 0 end

--- Was a CUDA device used already? Devices are set up when they are first used.
function cuda.is_initialized() return c.is_ready "cuda" end

--- Was this Lutra built with CUDA (for the emulation, where that was asked for)?
function cuda.is_built() return c.is_built "cuda" end

--- How many CUDA devices there are.
function cuda.device_count() return (core._device_count "cuda") end

--- The number of the device that a bare "cuda" means now.
function cuda.current_device() return c.index(on(nil, "current_device")) end

--- Makes a device the current one: what a bare "cuda" means from now on.
function cuda.set_device(device)
  args.check(device ~= nil, 'cuda.set_device: argument "device" is missing: it wants a device, as '
    .. '1 or "cuda:1"')
  accelerator.set_device_index(on(device, "set_device"))
end

--- Calls f(...) with a device as the current one; returns what f returns.
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

--- What is known of a device: name, major, minor, total_memory, free_memory (bytes),
-- multi_processor_count, warp_size, max_threads_per_block, shared_memory_per_block,
-- L2_cache_size, ..., emulated.
function cuda.get_device_properties(...)
  local device = parse_get_device_properties(...)
  return setmetatable(core.device_properties(on(device, "get_device_properties")),
    properties_meta)
end

local parse_get_device_name = args.signature("cuda.get_device_name", "data? device")

--- The name of the hardware.
function cuda.get_device_name(...)
  local device = parse_get_device_name(...)
  return core.device_properties(on(device, "get_device_name")).name
end

local parse_get_device_capability = args.signature("cuda.get_device_capability", "data? device")

--- The compute capability of a device: major, minor.
function cuda.get_device_capability(...)
  local device = parse_get_device_capability(...)
  local properties = core.device_properties(on(device, "get_device_capability"))
  return properties.major, properties.minor
end

local parse_is_bf16_supported = args.signature("cuda.is_bf16_supported",
  "bool including_emulation = true")

--- Can the current device compute in bfloat16? Every one can, older ones slowly, which
-- `including_emulation = false` does not count.
function cuda.is_bf16_supported(...)
  local including_emulation = parse_is_bf16_supported(...)
  if not cuda.is_available() then return false end
  return including_emulation or cuda.get_device_capability() >= 8
end

local parse_peers = args.signature("cuda.can_device_access_peer",
  "device device, device peer_device")

-- The full name of the second device; an error speaks of it.
local function peer_named(peer)
  local ok, name = pcall(on, peer, "can_device_access_peer")
  if ok then return name end
  return args.fail((name:gsub("^.-: ", "", 1):gsub('"device"', '"peer_device"', 1)))
end

--- Can `device` read the memory of `peer_device` by itself?
function cuda.can_device_access_peer(...)
  local device, peer = parse_peers(...)
  return c.can_access_peer(on(device, "can_device_access_peer"), peer_named(peer))
end

local parse_synchronize = args.signature("cuda.synchronize", "data? device")

--- Waits until a device has done its work, on all its streams.
function cuda.synchronize(...)
  local device = parse_synchronize(...)
  accelerator.synchronize(on(device, "synchronize"))
end

-- Memory: see lt.accelerator ----------------------------------------------------

local parse_memory_allocated = args.signature("cuda.memory_allocated", "data? device")

--- Bytes of a device that tensors hold. This and the three below are 0 where there is no CUDA.
function cuda.memory_allocated(...)
  local device = parse_memory_allocated(...)
  return held(accelerator.memory_allocated, device, "memory_allocated")
end

local parse_max_memory_allocated = args.signature("cuda.max_memory_allocated", "data? device")

--- The most bytes that tensors held since reset_peak_memory_stats.
function cuda.max_memory_allocated(...)
  local device = parse_max_memory_allocated(...)
  return held(accelerator.max_memory_allocated, device, "max_memory_allocated")
end

local parse_memory_reserved = args.signature("cuda.memory_reserved", "data? device")

--- Bytes had from the driver: what tensors hold and what is cached.
function cuda.memory_reserved(...)
  local device = parse_memory_reserved(...)
  return held(accelerator.memory_reserved, device, "memory_reserved")
end

local parse_max_memory_reserved = args.signature("cuda.max_memory_reserved", "data? device")

--- The most bytes had from the driver since reset_peak_memory_stats.
function cuda.max_memory_reserved(...)
  local device = parse_max_memory_reserved(...)
  return held(accelerator.max_memory_reserved, device, "max_memory_reserved")
end

local parse_memory_stats = args.signature("cuda.memory_stats", "data? device")

--- Everything the allocator of a device counts, by PyTorch's names:
-- "allocated_bytes.all.current" and so on.
function cuda.memory_stats(...)
  local device = parse_memory_stats(...)
  return accelerator.memory_stats(on(device, "memory_stats"))
end

local parse_summary = args.signature("cuda.memory_summary",
  "any? device = nil, bool abbreviated = false")

--- The same as a text to read; with `abbreviated`, without the parts for each pool.
function cuda.memory_summary(...)
  local device, abbreviated = parse_summary(...)
  return accelerator.memory_summary(on(device, "memory_summary"), abbreviated)
end

local parse_memory_snapshot = args.signature("cuda.memory_snapshot", "data? device")

--- Every segment of memory had from the driver, and every block in it, of one device or,
-- without an argument, of all: a list.
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

--- Starts the peaks again, from what is held now.
function cuda.reset_peak_memory_stats(...)
  local device = parse_reset_peak_memory_stats(...)
  accelerator.reset_peak_memory_stats(on(device, "reset_peak_memory_stats"))
end

local parse_mem_get_info = args.signature("cuda.mem_get_info", "data? device")

--- Free and total bytes of a device, as its driver says.
function cuda.mem_get_info(...)
  local device = parse_mem_get_info(...)
  return accelerator.get_memory_info(on(device, "mem_get_info"))
end

--- Gives the memory that is cached and whole back to the driver, on every device. Frees
-- nothing that a tensor holds.
function cuda.empty_cache() accelerator.empty_cache() end

--- Gives pinned memory of the host that is cached back to the system.
function cuda.empty_host_cache() accelerator.empty_host_cache() end

local parse_fraction = args.signature("cuda.set_per_process_memory_fraction",
  "any? fraction = nil, any? device = nil")

--- Lets this program use at most a fraction (0 to 1) of a device's memory.
function cuda.set_per_process_memory_fraction(...)
  local fraction, device = parse_fraction(...)
  accelerator.set_per_process_memory_fraction(fraction,
    on(device, "set_per_process_memory_fraction"))
end

-- Streams and events ------------------------------------------------------------

local parse_stream = args.signature("cuda.Stream", "any? device = nil, int priority = 0")

--- A new stream of a CUDA device: see lt.accelerator.Stream.
function cuda.Stream(...)
  local device, priority = parse_stream(...)
  return accelerator.Stream(on(device, "Stream"), priority)
end

--- A new event: see lt.accelerator.Event.
function cuda.Event(...)
  on(nil, "Event")
  return accelerator._new_event("cuda", ...)
end

local parse_current_stream = args.signature("cuda.current_stream", "data? device")

--- The stream that work of this thread on a device goes to now.
function cuda.current_stream(...)
  local device = parse_current_stream(...)
  return accelerator.current_stream(on(device, "current_stream"))
end

local parse_default_stream = args.signature("cuda.default_stream", "data? device")

--- The stream that work on a device goes to when no other was chosen.
function cuda.default_stream(...)
  local device = parse_default_stream(...)
  return accelerator.default_stream(on(device, "default_stream"))
end

cuda.set_stream = accelerator.set_stream
cuda.with_stream = scopes.with_stream

-- Kernels -------------------------------------------------------------------------

--- A kernel from its source text, in CUDA C++: lt.cuda.kernel(source, name, options). Call it as
-- kernel({grid, block, shared_bytes}, arguments...) with tensors for pointers and numbers for the
-- rest; grid and block are numbers or lists of up to three. `options`: a list of options of the
-- compiler, NVRTC's on every device ("-DN=16"). The source may include <stdint.h>, <math.h> and
-- others of C's headers, <cuda_fp16.h> and <cuda_bf16.h>.
function cuda.kernel(...) return require("lutra.internal.kernel").new(...) end

-- Random numbers ----------------------------------------------------------------

--- Seeds the numbers that random functions draw. There is one default generator for all
-- devices: the same seed gives the same numbers on each.
function cuda.manual_seed(...) core.manual_seed(...) end

--- The same: one generator serves all devices.
function cuda.manual_seed_all(...) core.manual_seed(...) end

local parse_get_rng_state = args.signature("cuda.get_rng_state", "data? device")

--- The state of the default generator, which serves all devices, as a tensor of the CPU.
function cuda.get_rng_state(...)
  local device = parse_get_rng_state(...)
  on(device, "get_rng_state")
  return core.get_rng_state()
end

local parse_set_rng_state = args.signature("cuda.set_rng_state",
  "Tensor state, any? device = nil")

--- Puts the default generator, which serves all devices, back into a state that
-- get_rng_state gave.
function cuda.set_rng_state(...)
  local state, device = parse_set_rng_state(...)
  on(device, "set_rng_state")
  core.set_rng_state(state)
end

-- Ranges for profilers ------------------------------------------------------------

-- Ranges are counted, not yet shown to NVIDIA's tools.
local nvtx, depth = {}, 0

local function check_message(name, message)
  args.check(type(message) == "string", 'nvtx.%s: argument "msg" is %s, it wants a string',
    name, args.show(message))
end

--- Opens a named range; returns how many are open around it. Nothing looks at ranges
-- yet: the call is there so that programs that mark them run.
function nvtx.range_push(msg)
  check_message("range_push", msg)
  depth = depth + 1
  return depth - 1
end

--- Closes the range that was opened last; returns how many are open around it.
function nvtx.range_pop()
  args.check(depth > 0, "nvtx.range_pop: no range is open")
  depth = depth - 1
  return depth
end

--- Marks a moment. Does nothing yet.
function nvtx.mark(msg) check_message("mark", msg) end

cuda.nvtx = strict_table.strict(nvtx, "lt.cuda.nvtx")

return strict_table.strict(cuda, "lt.cuda")
