-- item: one number, and why it is dear.
--
--   lutra [--emulate cuda:2,link=pcie4] examples/placement/11_item.lua
--
-- A program puts work into the card's queue and goes on at once. loss:item() asks for a number of
-- Lua's: the program has to wait until the card has done everything before it, and then for the
-- number's journey. Once in an epoch is nothing; in every step it makes card and program take
-- turns in sleeping. The first loop here is wrong on purpose: `lutra --lint` finds it by rule T1.
--
-- test:

local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = lt.best_device()
local STEPS = 20

lt.manual_seed(1)
local model = nn.Linear(8, 3):to(device)
local x = lt.randn{16, 8, device = device}
local y = lt.randint{1, 3, {16}, device = device}

-- PyTorch: total += loss.item(). A number in every step.
local function each_step()
  local total = 0
  for _ = 1, STEPS do total = total + F.cross_entropy(model(x), y):item() end
  return total / STEPS
end

-- PyTorch: total += loss.detach(). A sum that stays on the device; one number at the end.
local function at_the_end()
  local total = lt.zeros{1, device = device}
  for _ = 1, STEPS do total = total + F.cross_entropy(model(x), y):detach() end
  return (total / STEPS):item()
end

-- A trace tells how often the program had to wait for a copy.
local function readings(what, fn)
  local trace, result = lt.placement.trace(fn)
  print(what .. ":\n" .. tostring(trace) .. "\n")
  return trace:totals().blocking, result
end

local many, mean_1 = readings("item in each step", each_step)
local few, mean_2 = readings("item at the end", at_the_end)
print(("the mean loss, read so and so: %.4f, %.4f"):format(mean_1, mean_2))
assert(math.abs(mean_1 - mean_2) < 1e-5)
if device == "cpu" then
  print "skipped: on the CPU a number is already at home; a card makes you wait (--emulate cuda:2)"
  assert(many == 0 and few == 0)
else
  assert(many == STEPS and few == 1)
  local findings = lt.placement.lint(each_step)
  print(("\nthe lint of the first:\n%s"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T1" and #lt.placement.lint(at_the_end) == 0)
end

-- detach matters, too: without it the sum would keep every step's history for backward.
local loss = F.cross_entropy(model(x), y)
assert(loss.requires_grad and not loss:detach().requires_grad)
assert(math.type(loss:item()) == "float", "item gives a plain number")

-- item wants one element. Many come by totable, in one journey. PyTorch: x.tolist()
local ok, message = pcall(function() return x:item() end)
print("\nitem of a whole table:\n  " .. message .. "\n")
assert(not ok and message:find("one element", 1, true))
local count, list = readings("totable of the same", function() return x:totable() end)
assert(#list == 16 and #list[1] == 8 and count == (device == "cpu" and 0 or 1))

print "ok: sum on the device, read the number once"
