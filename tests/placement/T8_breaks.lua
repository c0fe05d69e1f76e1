-- Goes on with training on the device; Adam's averages stay on the host.
local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = "cuda"

local net = nn.Linear(8, 3)
local opt = lt.optim.Adam(net:parameters(), {lr = 0.01})
local x, y = lt.randn{64, 8}, lt.randint{1, 3, {64}}

local function step()
  opt:zero_grad()
  F.cross_entropy(net(x), y):backward()
  opt:step() -- T8
end

step() -- a first try on the CPU
net:to(device)
x, y = x:to(device), y:to(device)
step()
