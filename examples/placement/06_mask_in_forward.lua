-- A helper tensor created in forward: a mistake that is not visible on the CPU.
--
--   lutra [--emulate cuda:2] examples/placement/06_mask_in_forward.lua
--
-- lt.ones(...) creates a tensor on the CPU. In a model on the GPU it is on the wrong device. On a
-- computer without a GPU the same program runs, so the mistake is found only on a GPU.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

-- PyTorch: mask = torch.ones(x.shape[0], x.shape[1])
local Wrong = nn.Module:extend "Wrong"
function Wrong:forward(x) -- luacheck: ignore self
  local mask = lt.ones(x:size(1), x:size(2)) -- on the CPU, even if x is not
  return x * mask
end

-- PyTorch: mask = torch.ones(x.shape[0], x.shape[1], device=x.device, dtype=x.dtype)
local Right = nn.Module:extend "Right"
function Right:forward(x) -- luacheck: ignore self
  local mask = lt.ones{x:size(1), x:size(2), device = x.device, dtype = x.dtype}
  return x * mask
end

-- On the CPU both work.
local x = lt.randn(2, 3)
assert(lt.equal(Wrong()(x), x) and lt.equal(Right()(x), x))
print "on the cpu: both modules return the same"

-- If x is on a GPU, only the right one works.
local there = x:to(device)
local ok, message = pcall(Wrong(), there)
if device == "cpu" then
  assert(ok)
  print "skipped: the wrong module fails only on a GPU (--emulate cuda:2)"
else
  print("on " .. device .. ", the wrong module:\n  " .. message)
  assert(not ok and message:find("mul", 1, true) and message:find('is on "cpu"', 1, true))
end
local result = Right()(there)
print("on " .. device .. ", the right module:", result.shape, result.dtype, result.device)
assert(result.device == device and lt.equal(result:cpu(), x))

-- It keeps the dtype, too: in half precision the wrong one would return float32.
local half = x:to "float16"
print("the result of the wrong module for float16: " .. Wrong()(half).dtype)
assert(Right()(half).dtype == "float16")
assert(Wrong()(half).dtype == "float32")

-- Shorter: create a tensor like another one (17_helper_tensors.lua has more).
local like, new = lt.ones_like(there), there:new_ones(2, 3)
assert(like.device == device and new.device == device and new.dtype == there.dtype)

print "ok: helper tensors take device and dtype from the inputs"
