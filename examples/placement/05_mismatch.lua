-- Mismatch: what is to be added must be in one place.
--
--   lutra [--emulate cuda:2] examples/placement/05_mismatch.lua
--
-- A processor cannot reach into the memory of another device. So an operation wants all of its
-- tensors on one device, and says which of them is elsewhere. Nothing is moved in secret: a copy
-- costs time, and you are to see it in your program.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

local x = lt.tensor{1.0, 2.0, 3.0, device = device}
local y = lt.tensor{10.0, 20.0, 30.0}

if device ~= "cpu" then
  -- The mistake, and what Lutra says of it: who is where, and what to write.
  local ok, message = pcall(function() return x + y end)
  print("x + y, of " .. x.device .. " and " .. y.device .. ":\n  " .. message)
  assert(not ok)
  for _, text in ipairs {"add", "x is on " .. device, "y is on cpu", "Write y:to(x.device)"} do
    assert(message:find(text, 1, true), text)
  end

  -- In a large program: who made that tensor? While a trace is on, the message says the line.
  local _, _, traced = lt.placement.trace(pcall, function()
    local stranger = lt.ones(3)
    return x + stranger
  end)
  print("\nthe same under lt.placement.trace:\n  " .. traced)
  assert(traced:find "stranger is on cpu %(made at [^\n]*05_mismatch.lua:%d+", traced)
else
  print "skipped: with one device there is no mismatch (--emulate cuda:2)"
end

-- PyTorch: y = y.to(x.device); z = x + y. The cure: bring one to the other. x.device is right on
-- every machine; "cuda" would not be.
local z = x + y:to(x.device)
print("\nx + y:to(x.device):", z)
assert(z.device == x.device and lt.equal(z:cpu(), lt.tensor{11.0, 22.0, 33.0}))

-- A number is no tensor and fits everywhere. So does a CPU tensor without dimensions.
assert(lt.equal((x * 2):cpu(), lt.tensor{2.0, 4.0, 6.0}))
assert(lt.equal((x * lt.tensor(2.0)):cpu(), lt.tensor{2.0, 4.0, 6.0}))

-- Labels are forgotten most often: the images were moved, the labels were not.
local scores, labels = lt.randn{4, 3, device = device}, lt.tensor{1, 3, 2, 1}
if device ~= "cpu" then
  local ok, message = pcall(lt.F.cross_entropy, scores, labels)
  print("\nlabels that stayed behind:\n  " .. message)
  assert(not ok and message:find("is on cpu", 1, true), message)
end
local loss = lt.F.cross_entropy(scores, labels:to(scores.device))
assert(loss.device == device and loss:item() > 0)

print "ok: a mismatch is mended by moving one of the two, once"
