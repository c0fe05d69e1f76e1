-- A training step for any device.
--
--   lutra [--emulate cuda:2] examples/placement/16_train_step.lua
--
-- The step has the device as an argument. It moves only the batch: the model was moved once, before
-- the optimizer was created, and the loss stays on the device until the program reads it.
--
-- test:
-- test on mps:

local lt = require "lutra"
local nn, F, optim = lt.nn, lt.F, lt.optim

-- Each line is as in PyTorch.
local function train_step(model, batch, optimizer, device)
  model:train()
  local x, y = batch[1]:to(device), batch[2]:to(device)

  local logits = model(x)
  local loss = F.cross_entropy(logits, y)

  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  return loss:detach()
end

-- The task: find the largest of the first ten of 128 numbers.
lt.manual_seed(4)
local x = lt.randn(640, 128)
local set = lt.data.TensorDataset(x, x[{{}, {1, 10}}]:argmax(2))

-- Trains a new model on a device. Returns its losses, as a table of numbers.
local function train(device)
  lt.manual_seed(5)
  local model = nn.Linear(128, 10):to(device)
  local optimizer = optim.AdamW(model:parameters(), {lr = 3e-2})
  local losses = {}
  local loader = lt.data.DataLoader(set, {batch_size = 32, shuffle = true})
  for _ = 1, 5 do
    for features, labels in loader:iter() do
      losses[#losses + 1] = train_step(model, {features, labels}, optimizer, device)
    end
  end
  assert(model:device() == device and losses[1].device == device)
  assert(not losses[1].requires_grad, "a stored loss has no autograd graph")
  return lt.stack(losses):totable() -- all numbers in one copy
end

local device = lt.best_device()
local here, there = train "cpu", train(device)
print("loss of", "on cpu", "on " .. device)
for _, step in ipairs {1, 20, 50, 100} do
  print(("step %d"):format(step), ("%.5f"):format(here[step]), ("%.5f"):format(there[step]))
end

-- The losses on both devices are equal.
for step = 1, 100 do assert(math.abs(here[step] - there[step]) < 1e-2) end
assert(#there == 100 and there[100] < there[1] / 2, "the loss did not decrease")

if device == "cpu" then print "skipped: both columns are the CPU's (--emulate cuda:2)" end
print "ok: one step for any device, with the same losses"
