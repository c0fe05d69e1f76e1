-- The loader pins its batches, so that the copies need not block the host.
local lt = require "lutra"
local device = "cuda"

local dataset = lt.data.TensorDataset(lt.randn{64, 8})
local loader = lt.data.DataLoader(dataset, {batch_size = 16, pin_memory = true})
local net = lt.nn.Linear(8, 3):to(device)

local total = lt.zeros({}, {device = device})
for x in loader:iter() do
  x = x:to(device, {non_blocking = true})
  total:add_(net(x):detach():sum())
end
print(total:item())
