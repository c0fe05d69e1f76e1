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

-- Read a trace: totals, a table, a file for ui.perfetto.dev
local totals = lt.placement.trace(step):totals()
print(type(totals), #lt.placement.trace(step):table() > 0)  --> table	true
local path = os.tmpname()
lt.placement.trace(step):export(path)

-- Collectives of lt.distributed in a trace; one file from the traces of all ranks
local totals_by_group = lt.placement.trace(step):collectives()
print(#totals_by_group)  --> 0
local merged = os.tmpname()
print(#lt.placement.merge_traces(merged, {path}))  --> 1
os.remove(merged)

-- Read findings as a table of text
print(lt.placement.lint(step):table(80) ~= nil)  --> true

-- Read a profile: by op, event by event, as a file for ui.perfetto.dev
local averages = profile:key_averages()
print(averages:table{sort_by = "total"} ~= nil)  --> true
for event in profile:events() do assert(event.name) end
profile:export_chrome_trace(path)
profile:close()
os.remove(path)
