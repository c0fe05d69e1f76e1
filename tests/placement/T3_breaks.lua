-- Sends the whole data to the device in every epoch.
local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = "cuda"

local data = lt.randn{256, 8}
local labels = lt.randint{1, 3, {256}, device = device}
local net = nn.Linear(8, 3):to(device)
local opt = lt.optim.Adam(net:parameters(), {lr = 0.01})

for epoch = 1, 5 do
  local x = data:to(device) -- T3
  opt:zero_grad()
  local loss = F.cross_entropy(net(x), labels)
  loss:backward()
  opt:step()
  print(epoch, loss:item())
end
