-- Measures what the memory of results costs: `name <tab> microseconds <tab> peak in MB` per line,
-- each row in a process of its own.
--
--   lutra bench/memory.lua [PATTERN]
--
-- The time is the median of the rounds; the peak is that of the resident memory (0 where the system
-- does not tell).
local lt = require "lutra"
local nn, F, optim = lt.nn, lt.F, lt.optim

local rows, names = {}, {}

-- make() returns the function to measure and how often a round calls it.
local function row(name, make)
  rows[name] = make
  names[#names + 1] = name
end

-- Returns 10^6 tables: a big heap for the collector.
local function heap()
  local list = {}
  for i = 1, 1000000 do list[i] = {i} end
  return list
end

for exponent = 4, 7 do
  local n, calls = math.tointeger(10 ^ exponent), math.tointeger(10 ^ (9 - exponent) // 5)
  local suffix = (", 10^%d"):format(exponent)
  local function add(a, b) return function() return a + b end end
  local function products(x, y) return function() return x * x + 7 * y end end
  row("a + b" .. suffix, function() return add(lt.randn(n), lt.randn(n)), calls end)
  row("x * x + 7 * y" .. suffix, function()
    return products(lt.randn(n), lt.randn(n)), calls
  end)
  row("x * x + 7 * y beside 10^6 tables" .. suffix, function()
    local list, f = heap(), products(lt.randn(n), lt.randn(n))
    return function() return f(), #list end, calls
  end)
end

-- Returns a training step.
local function training(net, x, t, rate)
  local opt = optim.AdamW(net:parameters(), {lr = rate})
  return function()
    local loss = F.cross_entropy(net(x):flatten(1, -2), t)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end

row("MLP step 784-512-10, batch 64", function()
  local net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
  return training(net, lt.randn(64, 784), lt.randint(1, 10, {64}), 1e-3), 200
end)

row("transformer step, width 128, batch 12 x 64", function()
  local layer = nn.TransformerEncoderLayer(128, 4, {dim_feedforward = 512, batch_first = true})
  local net = nn.Sequential(nn.Embedding(65, 128), nn.TransformerEncoder(layer, 4),
    nn.Linear(128, 65))
  return training(net, lt.randint(1, 65, {12, 64}), lt.randint(1, 65, {12 * 64}), 1e-3), 10
end)

local function peak()
  local status = io.open "/proc/self/status"
  if not status then return 0 end
  local kb = status:read("a"):match "VmHWM:%s*(%d+)"
  status:close()
  return tonumber(kb) / 1000
end

local function measure(name)
  local f, calls = rows[name]()
  local times = {}
  for round = 1, 9 do
    local start = lt.clock()
    for _ = 1, calls do f() end
    times[round] = (lt.clock() - start) / calls * 1e6
  end
  table.sort(times)
  io.write(("%s\t%.1f\t%.1f\n"):format(name, times[5], peak()))
end

if arg[1] == "--row" then return measure(arg[2]) end
for _, name in ipairs(names) do
  if name:find(arg[1] or "") then
    os.execute(("'%s' '%s' --row '%s'"):format(arg[-1], arg[0], name))
  end
end
