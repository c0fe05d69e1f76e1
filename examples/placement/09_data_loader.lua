-- Loading data: the set stays on the CPU, each batch is moved when its turn comes.
--
--   lutra [--emulate cuda:2] examples/placement/09_data_loader.lua
--
-- A data set is often larger than a card's memory, so only one batch at a time is sent. The card
-- can fetch a batch by itself, while the program goes on, if two things hold: the batch is in
-- pinned memory, which the system promises never to move about (pin_memory = true), and the
-- program asks not to wait (non_blocking = true). One copy near the end forgets the first, on
-- purpose: `lutra --lint` finds it by rule T6.
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

-- PyTorch: DataLoader(dataset, batch_size=64, shuffle=True, pin_memory=True)
local loader = data.DataLoader(set, {batch_size = 64, shuffle = true, pin_memory = true})
local model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 4)):to(device)
local optimizer = optim.AdamW(model:parameters(), {lr = 0.05})

local losses = {}
for _ = 1, 8 do
  for x, y in loader:iter() do -- PyTorch: for x, y in loader:
    -- What the loader gives is on the CPU, in pinned memory where there is a card.
    assert(x.device == "cpu" and x:is_pinned() == lt.cuda.is_available())

    -- PyTorch: x = x.to(device, non_blocking=True)
    x, y = x:to{device, non_blocking = true}, y:to{device, non_blocking = true}
    assert(x.device == device and y.device == device)

    local loss = F.cross_entropy(model(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    losses[#losses + 1] = loss:detach()
  end
end
local numbers = lt.stack(losses):totable()
print(("loss: %.4f in the first batch, %.4f in the last"):format(numbers[1], numbers[#numbers]))
assert(numbers[#numbers] < numbers[1] / 2, "it has not learnt")
assert(points.device == "cpu", "the set itself never left")

if not lt.cuda.is_available() then
  print "skipped: pinned memory and copies that nobody waits for want a card (--emulate cuda:2)"
else
  -- Who waits, and who does not: a trace knows of every copy.
  local function trace_copy(x, options)
    return lt.placement.trace(function() return x:to(options) end)
  end
  local plain = trace_copy(lt.randn(1000), {device})
  local free = trace_copy(lt.randn(1000):pin_memory(), {device, non_blocking = true})
  print(("\na plain copy:\n%s\n\npinned and non_blocking:\n%s"):format(plain, free))
  assert(plain:totals().copies == 1 and plain:totals().blocking == 1)
  assert(free:totals().copies == 1 and free:totals().blocking == 0)

  -- It takes both. Pinned alone, the program waits; non_blocking alone, the numbers are first
  -- copied to memory that is pinned, which the lint tells.
  assert(trace_copy(lt.randn(1000):pin_memory(), {device}):totals().blocking == 1)
  local findings = lt.placement.lint(trace_copy, lt.randn(1000), {device, non_blocking = true})
  print(("\nnon_blocking alone, the lint:\n%s"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T6")

  -- Is it safe to lose the source while the copy is under way? Here it is: it is kept till the end.
  local batch = lt.ones(1000):pin_memory()
  local there = batch:to{device, non_blocking = true}
  batch = nil -- luacheck: ignore
  collectgarbage()
  assert(there:sum():item() == 1000)
end

print "ok: the loader works on the CPU, the model on the device, a batch crosses once"
