-- Data loading: the data set stays on the CPU, each batch is copied when it is used.
--
--   lutra [--emulate cuda:2] examples/placement/09_data_loader.lua
--
-- A data set is often larger than a GPU's memory, so only one batch at a time is copied. The copy
-- is asynchronous if two conditions hold: the batch is in pinned (page-locked) memory (pin_memory =
-- true), and the copy is requested with non_blocking = true. One copy near the end omits the first
-- condition on purpose: `lutra --lint` finds it by rule T6.
--
-- test:

local lt = require "lutra"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data
local device = lt.best_device()
lt.manual_seed(1)

-- 256 points; the class is the quadrant of the plane.
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
    -- The loader returns batches on the CPU, in pinned memory if there is a GPU.
    assert(x.device == "cpu" and x:is_pinned() == lt.accelerator.is_available())

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
assert(numbers[#numbers] < numbers[1] / 2, "the loss did not decrease")
assert(points.device == "cpu", "the data set itself stays on the CPU")

if not lt.accelerator.is_available() then
  print "skipped: pinned memory and asynchronous copies need a GPU (--emulate cuda:2)"
else
  -- A trace shows which copies block the host.
  local function trace_copy(x, options)
    return lt.placement.trace(function() return x:to(options) end)
  end
  local plain = trace_copy(lt.randn(1000), {device})
  local free = trace_copy(lt.randn(1000):pin_memory(), {device, non_blocking = true})
  print(("\na plain copy:\n%s\n\npinned and non_blocking:\n%s"):format(plain, free))
  assert(plain:totals().copies == 1 and plain:totals().blocking == 1)
  assert(free:totals().copies == 1 and free:totals().blocking == 0)

  -- Both conditions are required. With pinned memory alone the copy blocks; with non_blocking alone
  -- the data are first copied to a pinned buffer, which the lint reports.
  assert(trace_copy(lt.randn(1000):pin_memory(), {device}):totals().blocking == 1)
  local findings = lt.placement.lint(trace_copy, lt.randn(1000), {device, non_blocking = true})
  print(("\nnon_blocking alone, the lint:\n%s"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T6")

  -- The source may be freed while the copy runs: Lutra keeps its memory until the copy is done.
  local batch = lt.ones(1000):pin_memory()
  local there = batch:to{device, non_blocking = true}
  batch = nil -- luacheck: ignore
  collectgarbage()
  assert(there:sum():item() == 1000)
end

print "ok: the loader runs on the CPU, the model on the device, each batch is copied once"
