-- A helper tensor made inside forward: the mistake that a CPU never shows.
--
--   lutra [--emulate cuda:2] examples/placement/06_mask_in_forward.lua
--
-- lt.ones(...) makes a tensor on the CPU. Inside a model that is on the card it is in the wrong
-- place. On a computer without a card the same program runs: the mistake waits for the day when
-- it meets one.
--
-- test:

local lt = require "lutra"
local nn = lt.nn
local device = lt.best_device()

-- PyTorch: mask = torch.ones(x.shape[0], x.shape[1])
local Wrong = nn.Module:extend "Wrong"
function Wrong:forward(x) -- luacheck: ignore self
  local mask = lt.ones(x:size(1), x:size(2)) -- on the CPU, wherever x is
  return x * mask
end

-- PyTorch: mask = torch.ones(x.shape[0], x.shape[1], device=x.device, dtype=x.dtype)
local Right = nn.Module:extend "Right"
function Right:forward(x) -- luacheck: ignore self
  local mask = lt.ones{x:size(1), x:size(2), device = x.device, dtype = x.dtype}
  return x * mask
end

-- On the CPU both work, and nobody notices.
local x = lt.randn(2, 3)
assert(lt.equal(Wrong()(x), x) and lt.equal(Right()(x), x))
print "on the cpu: the wrong one and the right one give the same"

-- Where x is on a card, only the right one does.
local there = x:to(device)
local ok, message = pcall(Wrong(), there)
if device == "cpu" then
  assert(ok)
  print "skipped: the wrong one fails on a card only. See it: --emulate cuda:2"
else
  print("on " .. device .. ", the wrong one:\n  " .. message)
  assert(not ok and message:find("mul", 1, true) and message:find("is on cpu", 1, true))
end
local result = Right()(there)
print("on " .. device .. ", the right one:", result.shape, result.dtype, result.device)
assert(result.device == device and lt.equal(result:cpu(), x))

-- It keeps the number type, too: with half precision, the wrong one would give float32 back.
local half = x:to "float16"
print("of a float16, the wrong one makes a " .. Wrong()(half).dtype)
assert(Right()(half).dtype == "float16")
assert(Wrong()(half).dtype == "float32")

-- Shorter, and it cannot be forgotten: a tensor like another (17_helper_tensors.lua has more).
local like, new = lt.ones_like(there), there:new_ones(2, 3)
assert(like.device == device and new.device == device and new.dtype == there.dtype)

print "ok: helper tensors take device and dtype from the tensors that come in"
