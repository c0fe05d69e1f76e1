-- Moving a tensor copies it: the original stays on its device.
--
--   lutra [--emulate cuda:2] examples/placement/04_moving.lua
--
-- x:to(device) does not change x. It returns a second tensor with the same values. A program that
-- uses x after x:to(device) uses the old tensor.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

-- PyTorch: moved = original.to("cuda")
local original = lt.tensor{1.0, 2.0, 3.0}
local moved = original:to(device)
print(("the original is on %s, the copy on %s"):format(original.device, moved.device))
assert(original.device == "cpu" and moved.device == device)

-- The usual mistake is to forget the assignment: this line has no effect.
original:to(device)
assert(original.device == "cpu")

if device ~= "cpu" then
  -- They are two tensors: a change of one does not change the other.
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
  print "skipped: moving needs a second device (--emulate cuda:2)"
end

-- A tensor that is already on the device is not copied: `to` returns the same tensor.
local same = moved:to(device)
assert(same == moved, "to() made an unnecessary copy")

-- PyTorch: x.to(device, copy=True). Always copies.
local second = moved:to{device, copy = true}
assert(second ~= moved and not second:shares_storage(moved) and lt.equal(second, moved))

-- PyTorch: x.to(device=device, dtype=torch.float16). Device and dtype in one call.
local half = original:to{device = device, dtype = "float16"}
print(("both at once: %s %s"):format(half.device, half.dtype))
assert(half.device == device and half.dtype == "float16" and original.dtype == "float32")

-- Remember the line with the assignment.
local x = original
x = x:to(device)
assert(x.device == device and lt.equal(x:cpu(), original))

print "ok: x = x:to(device) moves a tensor; x:to(device) alone does not"
