-- Devices: the place where a tensor lives, and where it is computed with.
--
--   lutra [--emulate cuda:2] examples/placement/01_devices.lua
--
-- A device is a memory and something that calculates beside it. "cpu" is the computer itself:
-- its main memory and its processor. "cuda:0" is the first graphics card (GPU) made by NVIDIA: a
-- card with a memory of its own and thousands of small calculators. Who has no such card
-- practises with `--emulate cuda:2`, which pretends that there are two.
--
-- test:

local lt = require "lutra"

-- A tensor that is made without a word about devices is on the CPU.
local x = lt.randn(3, 4)
print("made without a device:", x.device)
assert(x.device == "cpu" and x.is_cpu)

-- A device is a plain string: it can be compared, printed and be the key of a table.
local names = {cpu = "the computer itself", meta = "shapes without numbers"}
print(x.device, names[x.device])
assert(names[x.device] == "the computer itself")

-- lt.device checks a name. A bare "cuda" becomes the name of the current card.
local device = lt.best_device()
print("the best device of this machine:", device)
assert(lt.device(device) == device)
local ok, why = pcall(lt.device, "gpu")
print("a name that is none:", why)
assert(not ok and why:find("Devices here", 1, true))

-- The default can be another, for the time of one function call...
local there = lt.with_device(device, function() return lt.zeros(2) end)
assert(there.device == device and lt.zeros(2).device == "cpu")

-- ... or from now on.
lt.set_default_device(device)
local new = lt.ones(2)
print("made after set_default_device:", new.device)
assert(new.device == device and lt.get_default_device() == device)
lt.set_default_device "cpu"
assert(lt.ones(2).device == "cpu")

-- A card's number counts from 0, as the hardware does; everything else here counts from 1.
if lt.cuda.is_available() then
  assert(lt.device "cuda" == "cuda:" .. lt.cuda.current_device())
  assert(lt.zeros{2, device = "cuda"}.device == lt.device "cuda")
else
  print "skipped: a bare \"cuda\" is a name only where there is such a card"
end

print "ok: every tensor knows its device, which is the cpu unless you say otherwise"
