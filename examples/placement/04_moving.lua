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

-- PyTorch: moved = original.to("cuda")
local original = lt.tensor{1.0, 2.0, 3.0}
local moved = original:to(device)
print(("the original is on %s, the copy on %s"):format(original.device, moved.device))
assert(original.device == "cpu" and moved.device == device)

-- Forgetting the assignment is the usual mistake: this line does nothing that lasts.
original:to(device)
assert(original.device == "cpu")

if device ~= "cpu" then
  -- They are two tensors: a change of one is not seen in the other.
  moved:add_(10)
  print("the copy, after add_(10): ", moved)
  print("the original, as before:  ", original)
  assert(lt.equal(original, lt.tensor{1.0, 2.0, 3.0}))
  assert(lt.equal(moved:cpu(), lt.tensor{11.0, 12.0, 13.0}))

  -- PyTorch: x.cuda(), x.cpu(). Shorter words for the two usual directions.
  local back = moved:cpu()
  assert(back.device == "cpu" and moved.device == device)
  if lt.cuda.is_available() then assert(original:cuda().device == lt.device "cuda") end
else
  print "skipped: with one device there is nowhere to move to (--emulate cuda:2)"
end

-- A tensor that is there already is not copied: the same tensor comes back.
local same = moved:to(device)
assert(same == moved, "to() made a copy that nobody needs")

-- PyTorch: x.to(device, copy=True). Who wants a second one all the same says so.
local second = moved:to{device, copy = true}
assert(second ~= moved and not second:shares_storage(moved) and lt.equal(second, moved))

-- PyTorch: x.to(device=device, dtype=torch.float16). Device and number type in one go.
local half = original:to{device = device, dtype = "float16"}
print(("both at once: %s %s"):format(half.device, half.dtype))
assert(half.device == device and half.dtype == "float16" and original.dtype == "float32")

-- So the line to remember is the one with an assignment.
local x = original
x = x:to(device)
assert(x.device == device and lt.equal(x:cpu(), original))

print "ok: x = x:to(device) is how a tensor is moved; x:to(device) alone is not"
