-- Moving is copying: the original stays where it was.
--
--   lutra [--emulate cuda:2] examples/placement/04_moving.lua
--
-- x:to(device) does not carry x away. It gives a second tensor with the same numbers, and x is
-- still what it was. A program that goes on with x after x:to(device) works with the old one.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

local x = lt.tensor{1.0, 2.0, 3.0}
local moved = x:to(device)
print("x is on", x.device, "the copy is on", moved.device)
assert(x.device == "cpu" and moved.device == device)

-- Forgetting the assignment is the usual mistake: this line does nothing that lasts.
x:to(device)
assert(x.device == "cpu")

if device ~= "cpu" then
  -- They are two tensors: a change of one is not seen in the other.
  moved:add_(10)
  print("the copy:", moved)
  print("the original:", x)
  assert(lt.equal(x, lt.tensor{1.0, 2.0, 3.0}))
  assert(lt.equal(moved:cpu(), lt.tensor{11.0, 12.0, 13.0}))

  -- Shorter words for the two usual directions.
  local back = moved:cpu()
  assert(back.device == "cpu" and moved.device == device)
  if lt.cuda.is_available() then assert(x:cuda().device == lt.device "cuda") end
else
  print "skipped: with one device there is nowhere to move to (--emulate cuda:2)"
end

-- A tensor that is there already is not copied: the same tensor comes back.
local same = moved:to(device)
assert(same == moved, "to() made a copy that nobody needs")

-- Who wants a second one all the same says so.
local second = moved:to{device, copy = true}
assert(second ~= moved and lt.equal(second, moved))

-- Device and number type in one go.
local half = x:to{device = device, dtype = "float16"}
print("both at once:", half.device, half.dtype)
assert(half.device == device and half.dtype == "float16" and x.dtype == "float32")

print "ok: x = x:to(device) is how a tensor is moved; x:to(device) alone is not"
