-- Devices: where a tensor is stored and where operations on it run.
--
--   lutra [--emulate cuda:2] examples/placement/01_devices.lua
--
-- A device is a processor with a memory. "cpu" is the computer itself: its processor and its main
-- memory. "cuda:0" is the first NVIDIA GPU: a processor with thousands of small cores and a memory
-- of its own. "mps" is Apple's GPU, and tensors on "meta" have shapes and no data. Without a GPU,
-- run this with `--emulate cuda:2`, which emulates two.
--
-- test:

local lt = require "lutra"

-- PyTorch: x = torch.randn(3, 4); print(x.device). The default device is the CPU.
local x = lt.randn(3, 4)
print("created without a device: " .. x.device)
assert(x.device == "cpu" and x.is_cpu)

-- A device is a string, so it can be compared, printed and used as the key of a table.
local names = {cpu = "the computer itself", meta = "shapes without numbers"}
print("that is: " .. names[x.device])
assert(names[x.device] == "the computer itself")

-- PyTorch: torch.device("cuda"). lt.device checks a name and returns it with its number.
local device = lt.best_device()
print("the best device of this machine: " .. device)
assert(lt.device(device) == device and lt.device "cpu" == "cpu" and lt.device "meta" == "meta")
local ok, why = pcall(lt.device, "gpu")
print("an unknown name:\n  " .. why)
assert(not ok and why:find("Available devices", 1, true))

-- PyTorch: with torch.device(device): ... Changes the default during one function call ...
local there = lt.with_device(device, function() return lt.zeros(2) end)
print("created in with_device: " .. there.device .. ", and after it: " .. lt.zeros(2).device)
assert(there.device == device and lt.zeros(2).device == "cpu")

-- PyTorch: torch.set_default_device(device). ... or until it is changed again.
lt.set_default_device(device)
local new = lt.ones(2)
print("created after set_default_device: " .. new.device)
assert(new.device == device and lt.get_default_device() == device)
lt.set_default_device "cpu"
assert(lt.ones(2).device == "cpu")

-- PyTorch: torch.randn(3, 4, device="cuda"). "cuda" without a number is the current GPU, at first
-- cuda:0: device numbers count from 0, as in CUDA; all other indices in Lutra count from 1.
if lt.cuda.is_available() then
  local y = lt.randn{3, 4, device = "cuda"}
  print("created on \"cuda\": " .. y.device)
  assert(y.device == "cuda:0" and y.is_cuda and lt.device "cuda" == "cuda:0")
else
  print "skipped: \"cuda\" needs a GPU (--emulate cuda:2)"
end

print "ok: every tensor has a device; the default is cpu"
