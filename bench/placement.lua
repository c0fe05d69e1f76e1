-- Measures the cost of lt.placement: `name <tab> nanoseconds <tab> ratio to the first` per line.
--
--   lutra [--emulate cuda:1] bench/placement.lua
--
-- The same piece of work before the first guard, after a guard and a lint have ended, in a guard,
-- and in a trace; each is the minimum of several rounds. The first two should be equal: without a
-- guard an op has one additional branch.
local lt = require "lutra"

local rounds = 25

-- Collects the garbage of the previous round first.
local function seconds(f)
  collectgarbage()
  local start = lt.clock()
  f()
  return lt.clock() - start
end

local function best_of(f)
  local best = math.huge
  for _ = 1, rounds do best = math.min(best, f()) end
  return best
end

local function compare(name, count, work)
  local function many() for _ = 1, count do work() end end
  local function off() return seconds(many) end
  local first = best_of(off)
  local function say(kind, best)
    io.write(("%s, %s\t%.0f\t%.2f\n"):format(name, kind, best / count * 1e9, best / first))
  end
  say("off", first)
  lt.placement.lint(many)
  lt.placement.guard("allow", many)
  say("off again", best_of(off))
  say("in a guard", best_of(function() return lt.placement.guard("allow", off) end))
  say("in a trace", best_of(function() return select(2, lt.placement.trace(off)) end))
end

local a, b = lt.randn(1), lt.randn(1)
compare("add one element", 2000, function() return a + b end)
if lt.cuda.is_available() then
  local x = lt.ones({}, {device = "cuda"})
  compare("read a number of " .. lt.cuda.get_device_name(0), 200, function() return x:item() end)
end
