-- The cost of item(): reading one number synchronizes the device.
--
--   lutra [--emulate cuda:2,link=pcie4] examples/placement/11_item.lua
--
-- Operations on a GPU are queued and return at once. loss:item() returns a Lua number: it blocks
-- the host until the GPU has finished all queued work and has copied the number. Once per epoch
-- this costs nothing; in every step host and GPU block each other. The first loop is wrong on
-- purpose: `lutra --lint` finds it by rule T1.
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

-- Returns the number of copies that blocked the host, and the result of fn.
local function readings(what, fn)
  local trace, result = lt.placement.trace(fn)
  print(what .. ":\n" .. tostring(trace) .. "\n")
  return trace:totals().blocking, result
end

local many, mean_1 = readings("item in each step", each_step)
local few, mean_2 = readings("item at the end", at_the_end)
print(("the mean loss of both: %.4f, %.4f"):format(mean_1, mean_2))
assert(math.abs(mean_1 - mean_2) < 1e-5)
if device == "cpu" then
  print "skipped: on the CPU item() copies nothing (--emulate cuda:2)"
  assert(many == 0 and few == 0)
else
  assert(many == STEPS and few == 1)
  local findings = lt.placement.lint(each_step)
  print(("\nthe lint of the first:\n%s"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T1" and #lt.placement.lint(at_the_end) == 0)
end

-- detach is necessary, too: without it the sum would hold the autograd graph of every step.
local loss = F.cross_entropy(model(x), y)
assert(loss.requires_grad and not loss:detach().requires_grad)
assert(math.type(loss:item()) == "float", "item returns a Lua number")

-- item requires one element. totable copies many elements at once. PyTorch: x.tolist()
local ok, message = pcall(function() return x:item() end)
print("\nitem of many elements:\n  " .. message .. "\n")
assert(not ok and message:find("one element", 1, true))
local count, list = readings("totable of the same", function() return x:totable() end)
assert(#list == 16 and #list[1] == 8 and count == (device == "cpu" and 0 or 1))

print "ok: sum on the device, read the number once"
