-- Examples of lt.placement and lt.profiler.
local lt = require "lutra"
local x = lt.ones(100)
local function step() return (x * x):sum():item() end

-- Copies, blocking calls, ops and memory of a function
local trace, result = lt.placement.trace(step)
print(result, #tostring(trace) > 0)  --> 100.0	true

-- Refuse copies that the program did not ask for
print(lt.placement.guard("disallow", step))  --> 100.0

-- Find copies that could be avoided
local findings = lt.placement.lint(step)
print(#findings, #lt.placement.rules() > 0)  --> 0	true

-- Where the time goes, by op and by named part
local profile = lt.profiler.profile(function()
  lt.profiler.record_function("square", step)
end)
print(#profile:table() > 0)  --> true
lt.profiler.synchronize()
print(#lt.profiler.devices() >= 0)  --> true
