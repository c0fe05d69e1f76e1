-- Prints a tensor of the device in every step.
local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = "cuda"

local net = nn.Linear(8, 3):to(device)
local opt = lt.optim.SGD(net:parameters(), {lr = 0.1})
local x = lt.randn{64, 8, device = device}
local y = lt.randint{1, 3, {64}, device = device}

for step = 1, 12 do
  opt:zero_grad()
  local loss = F.cross_entropy(net(x), y)
  loss:backward()
  opt:step()
  print(step, loss) -- T4
end
