-- Availability: ask what this machine has before you use it.
--
--   lutra [--emulate cuda:2] examples/placement/02_availability.lua
--
-- A program that says "cuda" fails on a computer without a card of NVIDIA's. So a program asks
-- first, once, and keeps the answer in a variable.
--
-- test:

local lt = require "lutra"

print("CUDA available:", lt.cuda.is_available())
print("CUDA devices:", lt.cuda.device_count())
assert(lt.cuda.is_available() == (lt.cuda.device_count() > 0))

-- Devices are numbered from 0: the last has the number count - 1.
for i = 0, lt.cuda.device_count() - 1 do
  local properties = lt.cuda.get_device_properties(i)
  print(i, lt.cuda.get_device_name(i), ("%.0f MiB"):format(properties.total_memory / 2^20))
  assert(properties.name == lt.cuda.get_device_name(i) and properties.total_memory > 0)
end

-- The pattern that everyone writes: the card where there is one, the CPU elsewhere.
local device = lt.cuda.is_available() and "cuda" or "cpu"
local x = lt.randn{32, 128, device = device}
print("x is on", x.device)
assert(x.device == lt.device(device))

-- A device that is not here is an error that lists those that are.
local ok, why = pcall(lt.zeros, {2, device = "cuda:99"})
print(why)
assert(not ok and why:find("cuda:99", 1, true) and why:find("Devices here: cpu", 1, true))

-- Which card a bare "cuda" means can be asked and changed.
if lt.cuda.device_count() > 1 then
  assert(lt.cuda.current_device() == 0)
  lt.cuda.set_device(1)
  local y = lt.zeros{2, device = "cuda"}
  print("after set_device(1), \"cuda\" means", y.device)
  assert(y.device == "cuda:1" and lt.cuda.current_device() == 1)
  lt.cuda.set_device(0)
else
  print "skipped: choosing among cards takes two of them (--emulate cuda:2)"
end

print "ok: the program found out by itself where it can calculate"
