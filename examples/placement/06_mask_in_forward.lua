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

local Wrong = nn.Module:extend "Wrong"
function Wrong:forward(x) -- luacheck: ignore self
  local mask = lt.ones(x:size(1), x:size(2)) -- on the CPU, wherever x is
  return x * mask
end

local Right = nn.Module:extend "Right"
function Right:forward(x) -- luacheck: ignore self
  local mask = lt.ones{x:size(1), x:size(2), device = x.device, dtype = x.dtype}
  return x * mask
end

-- On the CPU both work, and nobody notices.
local x = lt.randn(2, 3)
assert(lt.equal(Wrong()(x), x) and lt.equal(Right()(x), x))

-- Where x is on a card, only the right one does.
local there = x:to(device)
local ok, message = pcall(Wrong(), there)
if device == "cpu" then
  assert(ok)
  print "skipped: the wrong one fails on a card only. See it: --emulate cuda:2"
else
  print(message)
  assert(not ok and message:find("mul", 1, true) and message:find("is on cpu", 1, true))
end
local result = Right()(there)
print("the right one:", result.device, result.dtype)
assert(result.device == device)

-- It keeps the number type, too: with half precision, the wrong one would give float32 back.
local half = x:to "float16"
assert(Right()(half).dtype == "float16")
assert(Wrong()(half).dtype == "float32")

-- Shorter, and it cannot be forgotten: a tensor like another.
assert(lt.ones_like(there).device == device and there:new_ones(2, 3).dtype == there.dtype)

print "ok: helper tensors take device and dtype from the tensors that come in"
