-- Any device: one program for NVIDIA's cards, Apple's and for none.
--
--   lutra [--emulate cuda:2] examples/placement/15_any_device.lua
--
-- On a Mac with Apple's own chips the GPU is called "mps" (Metal Performance Shaders). A program
-- that never writes "cuda" but asks for the best device once, and takes everything else from its
-- tensors, runs on all of them.
--
-- test:

local lt = require "lutra"

print("NVIDIA:", lt.cuda.is_available(), "Apple:", lt.mps.is_available())
assert(lt.backends.mps.is_available() == lt.mps.is_available())

-- The universal selector, written out ...
local function get_device()
  if lt.cuda.is_available() then return "cuda" end
  if lt.mps.is_available() then return "mps" end
  return "cpu"
end

-- ... and as it comes with Lutra.
local device = lt.best_device()
print("the selector says", get_device(), "best_device says", device)
assert(lt.device(get_device()) == device)

-- From here on no line knows what the device is.
lt.manual_seed(3)
local model = lt.nn.Linear(128, 10):to(device)
local x = lt.randn{32, 128, device = device}
local y = model(x):softmax(-1)
print(y.shape, y.device)
assert(y.device == device)
assert(lt.allclose(y:sum(2):cpu(), lt.ones(32)))

-- lt.accelerator is the same set of functions for every kind of card; without one, it says so.
print("accelerator:", lt.accelerator.current_accelerator(), lt.accelerator.device_count())
if lt.accelerator.is_available() then
  lt.accelerator.synchronize(device)
  assert(lt.accelerator.memory_allocated(device) > 0)
  assert(device:find(lt.accelerator.current_accelerator(), 1, true) == 1)
else
  print "skipped: there is no accelerator whose memory and queue could be asked (--emulate cuda:2)"
end

-- What the devices do not share: Apple's know no float64. Where it matters, ask.
if lt.mps.is_available() then
  assert(not pcall(lt.zeros, {2, device = "mps", dtype = "float64"}))
  print("ops that mps lacks:", #lt.mps.unsupported_ops())
else
  local ok, message = pcall(lt.zeros, {2, device = "mps"})
  print(message)
  assert(not ok and message:find("mps", 1, true) and message:find("Devices here", 1, true))
end

print "ok: the device is chosen in one line, and no other line names one"
