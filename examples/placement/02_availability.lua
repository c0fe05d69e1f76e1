-- Availability: check which devices exist before you use them.
--
--   lutra [--emulate cuda:2] examples/placement/02_availability.lua
--
-- A program that uses "cuda" fails on a computer without an NVIDIA GPU. Check once, at the start,
-- and store the device in a variable. Three things are required: a Lutra that was built with CUDA
-- (is_built), the GPU, and its driver (is_available: all three).
--
-- test:

local lt = require "lutra"

-- The devices, their use, and how to check for them.
local function row(...) print(("%-7s %-25s %-24s %s"):format(...)) end
row("device", "use", "check", "here")
row("cpu", "always works", "(always)", true)
row("cuda", "NVIDIA GPUs", "lt.cuda.is_available()", lt.cuda.is_available())
row("mps", "Apple GPUs", "lt.mps.is_available()", lt.mps.is_available())
row("meta", "shapes without data", "(always)", true)
assert(lt.cuda.is_built() or not lt.cuda.is_available())

-- PyTorch: torch.cuda.device_count(), torch.cuda.get_device_name(i). Device numbers count from 0:
-- the last one is count - 1.
local count = lt.cuda.device_count()
print("\nCUDA devices: " .. count)
assert(lt.cuda.is_available() == (count > 0))
for i = 0, count - 1 do
  local properties = lt.cuda.get_device_properties(i)
  print(i, lt.cuda.get_device_name(i), ("%.0f MiB"):format(properties.total_memory / 2^20))
  assert(properties.name == lt.cuda.get_device_name(i) and properties.total_memory > 0)
end
assert(not pcall(lt.cuda.get_device_name, count), "the device with the number count does not exist")

-- PyTorch: device = "cuda" if torch.cuda.is_available() else "cpu"
local device = lt.cuda.is_available() and "cuda" or "cpu"
local x = lt.randn{32, 128, device = device}
print("\nx is on " .. x.device)
assert(x.device == lt.device(device) and x.is_cuda == lt.cuda.is_available())

-- A missing device is an error that gives the reason and lists the available devices.
local ok, why = pcall(lt.zeros, {2, device = "cuda:99"})
print("device cuda:99:\n  " .. why)
assert(not ok and why:find("cuda:99", 1, true) and why:find("Available devices: cpu", 1, true))

-- PyTorch: torch.cuda.set_device(1). Changes the GPU that "cuda" without a number means.
if count > 1 then
  assert(lt.cuda.current_device() == 0)
  lt.cuda.set_device(1)
  local y = lt.zeros{2, device = "cuda"}
  print("after set_device(1), \"cuda\" means " .. y.device)
  assert(y.device == "cuda:1" and lt.cuda.current_device() == 1)
  lt.cuda.set_device(0)
else
  print "skipped: choosing a GPU needs two (--emulate cuda:2)"
end

print "ok: the program chose an available device by itself"
