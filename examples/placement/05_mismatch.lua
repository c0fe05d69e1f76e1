-- Mismatch: the operands of an operation must be on the same device.
--
--   lutra [--emulate cuda:2] examples/placement/05_mismatch.lua
--
-- A processor cannot access the memory of another device. An operation therefore requires all of
-- its tensors on one device, and the error names the one that is elsewhere. Lutra copies nothing
-- implicitly: a copy costs time and should be visible in your program.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

local x = lt.tensor{1.0, 2.0, 3.0, device = device}
local y = lt.tensor{10.0, 20.0, 30.0}

if device ~= "cpu" then
  -- The mistake and its error: the device of each tensor, and the fix.
  local ok, message = pcall(function() return x + y end)
  print("x + y on " .. x.device .. " and " .. y.device .. ":\n  " .. message)
  assert(not ok)
  for _, text in ipairs {"add", ('x is on "%s"'):format(device), 'y is on "cpu"',
    "hint: y:to(x.device)"} do
    assert(message:find(text, 1, true), text)
  end

  -- In a large program: in a trace the message also has the line that created each tensor.
  local _, _, traced = lt.placement.trace(pcall, function()
    local stranger = lt.ones(3)
    return x + stranger
  end)
  print("\nthe same in lt.placement.trace:\n  " .. traced)
  assert(traced:find 'stranger is on "cpu" %(made at [^\n]*05_mismatch.lua:%d+', traced)
else
  print "skipped: with one device there is no mismatch (--emulate cuda:2)"
end

-- PyTorch: y = y.to(x.device); z = x + y. The fix: move one of the two. x.device is correct on
-- every machine; "cuda" is not.
local z = x + y:to(x.device)
print("\nx + y:to(x.device):", z)
assert(z.device == x.device and lt.equal(z:cpu(), lt.tensor{11.0, 22.0, 33.0}))

-- A number has no device. A 0-d CPU tensor can be an operand on every device, too.
assert(lt.equal((x * 2):cpu(), lt.tensor{2.0, 4.0, 6.0}))
assert(lt.equal((x * lt.tensor(2.0)):cpu(), lt.tensor{2.0, 4.0, 6.0}))

-- The most frequent mistake: the images were moved, the labels were not.
local scores, labels = lt.randn{4, 3, device = device}, lt.tensor{1, 3, 2, 1}
if device ~= "cpu" then
  local ok, message = pcall(lt.F.cross_entropy, scores, labels)
  print("\nlabels on the CPU:\n  " .. message)
  assert(not ok and message:find('is on "cpu"', 1, true), message)
end
local loss = lt.F.cross_entropy(scores, labels:to(scores.device))
assert(loss.device == device and loss:item() > 0)

print "ok: to fix a mismatch, move one of the two, once"
