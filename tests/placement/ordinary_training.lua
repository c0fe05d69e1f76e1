-- A training program as most are: batches, a number now and then, an evaluation in each epoch, the
-- best weights kept and put back, a checkpoint on disk, answers for single samples.
local lt = require "lutra"
local nn, F, optim = lt.nn, lt.F, lt.optim
local device = "cuda"

lt.manual_seed(1)
local x, y = lt.randn{256, 8}, lt.randint(1, 3, {256})
local loader = lt.data.DataLoader(lt.data.TensorDataset(x, y), {batch_size = 32, shuffle = true})
local test_x, test_y = x[{{1, 64}}]:to(device), y[{{1, 64}}]:to(device)

local net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(),
  nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)):to(device)
local opt = optim.Adam(net:parameters(), {lr = 0.01})

local function evaluate()
  net:eval()
  local loss = lt.no_grad(function() return F.cross_entropy(net(test_x), test_y):item() end)
  net:train()
  return loss
end

local path = os.tmpname()
local best, best_state, waited = math.huge, nil, 0
local total = lt.zeros({}, {device = device})
for epoch = 1, 12 do
  total:fill_(0)
  local start, loss = os.clock(), nil
  for batch, labels in loader:iter() do
    opt:zero_grad()
    loss = F.cross_entropy(net(batch:to(device)), labels:to(device))
    loss:backward()
    nn.utils.clip_grad_norm_(net:parameters(), 1)
    opt:step()
    total:add_(loss:detach())
  end
  print("epoch", epoch, total:item() / 8, os.clock() - start, loss)
  for _, group in ipairs(opt.param_groups) do group.lr = group.lr * 0.9 end
  local found = evaluate()
  waited = waited + 1
  if found < best then
    best, best_state, waited = found, {}, 0
    for name, value in pairs(net:state_dict()) do best_state[name] = value:cpu() end
    lt.save_safetensors(path, best_state)
  end
  if waited == 5 then break end
end

net:load_state_dict(best_state)
net:load_state_dict((lt.load_safetensors(path)))
os.remove(path)
net:eval()
for i = 1, 5 do
  print(i, net(x[{{i, i}}]:to(device)):argmax(2):item())
end
print(net(test_x):argmax(2):totable()[1])
