-- Device-agnostic code: one program for NVIDIA GPUs, Apple GPUs and the CPU.
--
--   lutra [--emulate cuda:2] examples/placement/15_any_device.lua
--
-- On a Mac with an Apple chip the GPU is called "mps" (Metal Performance Shaders). A program that
-- asks for the best device once, and takes all other devices from its tensors, runs on all of them.
--
-- test:
-- test on mps:

local lt = require "lutra"

-- PyTorch: torch.backends.mps.is_available()
print("NVIDIA GPU available? " .. tostring(lt.cuda.is_available()))
print("Apple GPU available?  " .. tostring(lt.mps.is_available()))
assert(lt.backends.mps.is_available() == lt.mps.is_available())

-- Choose a device by hand ...
local function get_device()
  if lt.cuda.is_available() then return "cuda" end
  if lt.mps.is_available() then return "mps" end
  return "cpu"
end

-- ... or with lt.best_device.
local device = lt.best_device()
print(("by hand %q, lt.best_device() %q"):format(get_device(), device))
assert(lt.device(get_device()) == device)

-- From here on no line names a device.
lt.manual_seed(3)
local model = lt.nn.Linear(128, 10):to(device)
local x = lt.randn{32, 128, device = device}
local y = model(x):softmax(-1)
print(("the model returns %s on %s"):format(y.shape, y.device))
assert(y.device == device)
assert(lt.allclose(y:sum(2):cpu(), lt.ones(32)))

-- PyTorch: torch.accelerator. The same functions for every accelerator.
local kind, count = lt.accelerator.current_accelerator(), lt.accelerator.device_count()
print(("accelerators: %d%s"):format(count, kind and " of type " .. kind or ""))
if lt.accelerator.is_available() then
  lt.accelerator.synchronize(device)
  assert(lt.accelerator.memory_allocated(device) > 0)
  assert(device:find(kind, 1, true) == 1 and count > 0)
else
  assert(kind == nil and count == 0)
  print "skipped: there is no accelerator (--emulate cuda:2)"
end

-- PyTorch: torch.tensor([1, 2, 3], device="mps"), cpu_tensor.to("mps")
if lt.mps.is_available() then
  local made, moved = lt.tensor{1, 2, 3, device = "mps"}, lt.tensor{4, 5, 6}:to "mps"
  print("on mps:", made + moved)
  assert(lt.equal((made + moved):cpu(), lt.tensor{5, 7, 9}))
  -- Apple GPUs have no float64. unsupported_ops() lists the missing ops.
  assert(not pcall(lt.zeros, {2, device = "mps", dtype = "float64"}))
  print("ops that mps lacks: " .. #lt.mps.unsupported_ops())
else
  local ok, message = pcall(lt.tensor, {1, 2, 3, device = "mps"})
  print("without Apple's GPU, device = \"mps\" is an error:\n  " .. message)
  assert(not ok and message:find("mps", 1, true) and message:find("Available devices", 1, true))
end

print "ok: one line chooses the device, and no other line names one"
