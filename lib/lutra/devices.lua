--- Devices as tables of functions: lt.cuda, lt.mps, lt.backends, and the best one here.

local core = require "lutra.core"

local function is_available(kind)
  return function() return core._device_count(kind) > 0 end
end

local function count(kind)
  return function() return (core._device_count(kind)) end
end

local cuda = {is_available = is_available "cuda", device_count = count "cuda"}

--- The properties of a CUDA device, by its number (from 0) or name.
function cuda.get_device_properties(device)
  if math.type(device) == "integer" then device = "cuda:" .. device end
  return core.device_properties(device or "cuda")
end

--- The name of the hardware.
function cuda.get_device_name(device) return cuda.get_device_properties(device).name end

--- Waits until the device has done its work.
function cuda.synchronize(device)
  if math.type(device) == "integer" then device = "cuda:" .. device end
  core.synchronize(device or "cuda")
end

local mps = {is_available = is_available "mps", device_count = count "mps"}

local devices = {cuda = cuda, mps = mps}

devices.backends = {
  cuda = {is_available = cuda.is_available},
  mps = {is_available = mps.is_available, is_built = mps.is_available},
}

--- "cuda" where there is a GPU, else "mps", else "cpu".
function devices.best_device()
  if cuda.is_available() then return core.device "cuda" end
  return mps.is_available() and "mps" or "cpu"
end

return devices
