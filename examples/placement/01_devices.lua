-- Devices: the place where a tensor lives, and where it is computed with.
--
--   lutra [--emulate cuda:2] examples/placement/01_devices.lua
--
-- A device is a memory and something that calculates beside it. "cpu" is the computer itself:
-- its main memory and its processor. "cuda:0" is the first graphics card (GPU) made by NVIDIA: a
-- card with a memory of its own and thousands of small calculators. "mps" is Apple's GPU, and
-- "meta" a place for plans: shapes without numbers. Who has no card practises with
-- `--emulate cuda:2`, which pretends that there are two.
--
-- test:

local lt = require "lutra"

-- PyTorch: x = torch.randn(3, 4); print(x.device). Without a word about devices: on the CPU.
local x = lt.randn(3, 4)
print("made without a device: " .. x.device)
assert(x.device == "cpu" and x.is_cpu)

-- A device is a plain string, so it can be compared, printed and be the key of a table.
local names = {cpu = "the computer itself", meta = "shapes without numbers"}
print("what that is: " .. names[x.device])
assert(names[x.device] == "the computer itself")

-- PyTorch: torch.device("cuda"). lt.device checks a name and gives it in full, with a number.
local device = lt.best_device()
print("the best device of this machine: " .. device)
assert(lt.device(device) == device and lt.device "cpu" == "cpu" and lt.device "meta" == "meta")
local ok, why = pcall(lt.device, "gpu")
print("a name that is none:\n  " .. why)
assert(not ok and why:find("Devices here", 1, true))

-- PyTorch: with torch.device(device): ... Another default, for the time of one function call...
local there = lt.with_device(device, function() return lt.zeros(2) end)
print("made inside with_device: " .. there.device .. ", and after it: " .. lt.zeros(2).device)
assert(there.device == device and lt.zeros(2).device == "cpu")

-- PyTorch: torch.set_default_device(device). ... or from now on.
lt.set_default_device(device)
local new = lt.ones(2)
print("made after set_default_device: " .. new.device)
assert(new.device == device and lt.get_default_device() == device)
lt.set_default_device "cpu"
assert(lt.ones(2).device == "cpu")

-- PyTorch: torch.randn(3, 4, device="cuda"). A bare "cuda" is the current card, at first cuda:0: a
-- card's number counts from 0, as the hardware does; everything else here counts from 1.
if lt.cuda.is_available() then
  local y = lt.randn{3, 4, device = "cuda"}
  print("made on \"cuda\": " .. y.device)
  assert(y.device == "cuda:0" and y.is_cuda and lt.device "cuda" == "cuda:0")
else
  print "skipped: a bare \"cuda\" is a name only where there is such a card (--emulate cuda:2)"
end

print "ok: every tensor knows its device, which is the cpu unless you say otherwise"
