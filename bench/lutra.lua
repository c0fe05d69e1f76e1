-- Measures the ops and training steps of bench/compare in Lutra. Prints `name <tab> seconds` per
-- line. bench/peers.py measures the same work in PyTorch; bench/ops.py has many more rows.
--
--   lutra bench/lutra.lua [name ...]
local lt = require "lutra"
local core = require "lutra.core"
local nn, F, optim = lt.nn, lt.F, lt.optim

local wanted = {}
for _, name in ipairs(arg or {}) do wanted[name] = true end

-- Prints the time of one piece of work: the minimum of several runs of `f`, which does `n` pieces.
local function measure(name, n, f, runs)
  if next(wanted) and not wanted[name] then return end
  f()
  local best = math.huge
  for _ = 1, runs or 7 do
    local start = core.clock()
    f()
    best = math.min(best, core.clock() - start)
  end
  io.write(("%s\t%.9g\n"):format(name, best / n))
  io.flush()
end

lt.manual_seed(1)

local a, b = lt.randn(1), lt.randn(1)
measure("add one element", 100000, function()
  for _ = 1, 100000 do local _ = a + b end
end)

local g = lt.randn(1):requires_grad_()
measure("add one element, with grad", 100000, function()
  for _ = 1, 100000 do local _ = g + b end
end)

local x = lt.randn(10000000)
measure("exp 10^7", 1, function() return x:exp() end)

local p, q = lt.randn(512, 512), lt.randn(512, 512)
measure("sgemm 512", 16, function()
  for _ = 1, 16 do local _ = p:mm(q) end
end)

-- Returns a function that runs `count` training steps.
local function training(count, net, opt, loss_of)
  return function()
    for _ = 1, count do
      local loss = loss_of(net)
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
  end
end

-- The MLP of the MNIST example, on a batch of 64.
local net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
local images, labels = lt.rand(64, 784), lt.randint(1, 10, {64})
measure("MLP 784-256-10 step, SGD", 50, training(50, net,
  optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}),
  function(m) return F.cross_entropy(m(images), labels) end))

-- A tiny network, whose time is overhead.
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
local points, values = lt.rand(4, 2), lt.rand(4, 1)
measure("MLP 2-16-1 step, SGD", 500, training(500, net, optim.SGD(net:parameters(), {lr = 0.1}),
  function(m) return F.mse_loss(m(points), values) end))
