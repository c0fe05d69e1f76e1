-- Availability: ask what this machine has before you use it.
--
--   lutra [--emulate cuda:2] examples/placement/02_availability.lua
--
-- A program that says "cuda" fails on a computer without a card of NVIDIA's. So a program asks
-- first, once, and keeps the answer in a variable. Three things must be there: a Lutra that was
-- built with CUDA (is_built), the card, and its driver (is_available: all three).
--
-- test:

local lt = require "lutra"

-- The devices, what they are for, and how to ask for them.
local function row(...) print(("%-7s %-25s %-24s %s"):format(...)) end
row("device", "when to use", "the question", "here")
row("cpu", "always works", "(always)", true)
row("cuda", "NVIDIA's cards", "lt.cuda.is_available()", lt.cuda.is_available())
row("mps", "Apple's chips", "lt.mps.is_available()", lt.mps.is_available())
row("meta", "plans: shapes, no numbers", "(always)", true)
assert(lt.cuda.is_built() or not lt.cuda.is_available())

-- PyTorch: torch.cuda.device_count(), torch.cuda.get_device_name(i). Devices are numbered from 0:
-- the last has the number count - 1.
local count = lt.cuda.device_count()
print("\nCUDA devices: " .. count)
assert(lt.cuda.is_available() == (count > 0))
for i = 0, count - 1 do
  local properties = lt.cuda.get_device_properties(i)
  print(i, lt.cuda.get_device_name(i), ("%.0f MiB"):format(properties.total_memory / 2^20))
  assert(properties.name == lt.cuda.get_device_name(i) and properties.total_memory > 0)
end
assert(not pcall(lt.cuda.get_device_name, count), "there is no card with the number count")

-- PyTorch: device = "cuda" if torch.cuda.is_available() else "cpu". What everyone writes.
local device = lt.cuda.is_available() and "cuda" or "cpu"
local x = lt.randn{32, 128, device = device}
print("\nx is on " .. x.device)
assert(x.device == lt.device(device) and x.is_cuda == lt.cuda.is_available())

-- A device that is not here is an error that says why, and which ones are.
local ok, why = pcall(lt.zeros, {2, device = "cuda:99"})
print("asking for cuda:99:\n  " .. why)
assert(not ok and why:find("cuda:99", 1, true) and why:find("Devices here: cpu", 1, true))

-- PyTorch: torch.cuda.set_device(1). Which card a bare "cuda" means can be asked and changed.
if count > 1 then
  assert(lt.cuda.current_device() == 0)
  lt.cuda.set_device(1)
  local y = lt.zeros{2, device = "cuda"}
  print("after set_device(1), \"cuda\" means " .. y.device)
  assert(y.device == "cuda:1" and lt.cuda.current_device() == 1)
  lt.cuda.set_device(0)
else
  print "skipped: choosing among cards takes two of them (--emulate cuda:2)"
end

print "ok: the program found out by itself where it can calculate"
