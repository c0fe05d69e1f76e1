-- Creation: create a tensor on the device where it is needed.
--
--   lutra [--emulate cuda:2] examples/placement/03_creation.lua
--
-- Every function that creates a tensor takes `device`. A tensor that is created on the GPU needs no
-- copy between the host and the GPU. A tensor that is created on the CPU and moved needs one.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

-- PyTorch: torch.randn(2, 3, device=device), torch.tensor([1, 2, 3], device=device), ...
for name, x in pairs {
  zeros = lt.zeros{2, 3, device = device},
  randn = lt.randn{2, 3, device = device},
  arange = lt.arange{5, device = device},
  eye = lt.eye{3, device = device},
  tensor = lt.tensor{1, 2, 3, device = device},
} do
  assert(x.device == device, name)
end
print(lt.tensor{1, 2, 3, device = device})

-- A trace counts the copies between devices that a function makes.
local function copies(fn)
  local trace, x = lt.placement.trace(fn)
  assert(x.device == device and x:sum():item() == 0)
  return trace:totals().copies
end
local direct = copies(function() return lt.zeros{500, 500, device = device} end)
local moved = copies(function() return lt.zeros(500, 500):to(device) end)
print(("created on the device: %d copies; created on the CPU and moved: %d"):format(direct, moved))
assert(direct == 0)
assert(moved == (device == "cpu" and 0 or 1))

-- The same seed gives the same random numbers on every device.
lt.manual_seed(7)
local there = lt.randn{4, device = device}
lt.manual_seed(7)
local here = lt.randn(4)
print("on the device:", there)
print("on the CPU:   ", here)
assert(there.device == device and lt.allclose(there:cpu(), here))

if device == "cpu" then
  print "skipped: on one device there is nothing to copy (--emulate cuda:2)"
else
  -- PyTorch: torch.randn(3, 4, device="cuda:1"). A particular GPU, by its number.
  local last = lt.device(device):gsub("%d+$", tostring(lt.accelerator.device_count() - 1))
  local x = lt.randn{3, 4, device = last}
  print("on the last GPU of this machine: " .. x.device)
  assert(x.device == last)
end
print "ok: tensors created with `device` need no copy"
