-- Moves the model first and makes the optimizer then.
local lt = require "lutra"
local nn, F = lt.nn, lt.F
local device = "cuda"

local net = nn.Linear(8, 3):to(device)
local opt = lt.optim.Adam(net:parameters(), {lr = 0.01})
local x, y = lt.randn{64, 8}, lt.randint{1, 3, {64}}

local function step()
  opt:zero_grad()
  F.cross_entropy(net(x), y):backward()
  opt:step()
end

x, y = x:to(device), y:to(device)
step()
step()
