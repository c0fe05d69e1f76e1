-- Loading data: the set stays on the CPU, each batch is moved when its turn comes.
--
--   lutra [--emulate cuda:2] examples/placement/09_data_loader.lua
--
-- A data set is often larger than a card's memory, so only one batch at a time is sent. The card
-- can fetch a batch by itself, while the program goes on, if two things hold: the batch is in
-- pinned memory, which the system promises never to move about (pin_memory = true), and the
-- program asks not to wait (non_blocking = true).
--
-- test:

local lt = require "lutra"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data
local device = lt.best_device()
lt.manual_seed(1)

-- 256 points; the class says in which quarter of the plane a point lies.
local points = lt.randn(256, 2)
local above, right = points[{{}, 2}]:gt(0):long(), points[{{}, 1}]:gt(0):long()
local set = data.TensorDataset(points, 1 + 2 * above + right)

local loader = data.DataLoader(set, {batch_size = 64, shuffle = true, pin_memory = true})
local model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 4)):to(device)
local optimizer = optim.AdamW(model:parameters(), {lr = 0.05})

local first, last
for _ = 1, 8 do
  for x, y in loader:iter() do
    -- What the loader gives is on the CPU, in pinned memory where there is a card.
    assert(x.device == "cpu" and x:is_pinned() == lt.cuda.is_available())

    x, y = x:to{device, non_blocking = true}, y:to{device, non_blocking = true}
    assert(x.device == device and y.device == device)

    local loss = F.cross_entropy(model(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    first, last = first or loss:detach(), loss:detach()
  end
end
print("loss of the first batch:", first)
print("loss of the last batch:", last)
assert(last:item() < first:item() / 2, "it has not learnt")
assert(points.device == "cpu", "the set itself never left")

if not lt.cuda.is_available() then
  print "skipped: pinned memory and copies that nobody waits for are of use to a card only"
else
  -- Is non_blocking safe? Here it is: the source is kept until the copy has ended.
  local batch = lt.ones(1000):pin_memory()
  local copy = batch:to{device, non_blocking = true}
  batch = nil -- luacheck: ignore
  collectgarbage()
  assert(copy:sum():item() == 1000)

  -- Who waits, and who does not: a trace knows of every copy.
  local x = lt.randn(1000)
  local pinned = x:pin_memory()
  local plain = lt.placement.trace(function() return x:to(device) end)
  local free = lt.placement.trace(function() return pinned:to{device, non_blocking = true} end)
  print(("a plain copy:\n%s\n\npinned and non_blocking:\n%s"):format(plain, free))
  assert(plain:totals().copies == 1 and plain:totals().blocking == 1)
  assert(free:totals().copies == 1 and free:totals().blocking == 0)
end

print "ok: the loader works on the CPU, the model on the device, a batch crosses once"
