-- Times pools; bench/pooling.py runs it beside PyTorch. Its argument is Lua: a list of
-- {name, shape, function, arguments}. Prints JSON: milliseconds of forward, and of forward and
-- backward, by name.

local lt = require "lutra"
local core = require "lutra.core"
local F = lt.nn.functional

local function measure(f)
  for _ = 1, 3 do f() end
  local times = {}
  for i = 1, 15 do
    local start = core.clock()
    f()
    times[i] = core.clock() - start
  end
  table.sort(times)
  return 1000 * times[8]
end

local parts = {}
for _, case in ipairs(load(arg[1])()) do
  local name, shape, pool, args = case[1], case[2], F[case[3]], case[4]
  local x = lt.randn(shape)
  local y = x:clone():requires_grad_()
  local g = lt.ones_like(pool(x, table.unpack(args)))
  local forward = measure(function()
    lt.no_grad(function() pool(x, table.unpack(args)) end)
  end)
  local both = measure(function()
    y.grad = nil
    pool(y, table.unpack(args)):backward(g)
  end)
  parts[#parts + 1] = ("%q: [%.6f, %.6f]"):format(name, forward, both)
end
print("{" .. table.concat(parts, ", ") .. "}")
