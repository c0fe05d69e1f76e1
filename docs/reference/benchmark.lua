-- Examples of lt.utils.benchmark.
local lt = require "lutra"

-- Measure a string of code, or a function: lt.utils.benchmark.Timer
local x = lt.randn(32, 32)
local timer = lt.utils.benchmark.Timer{"x:matmul(y)", setup = "local y = x + 1",
  globals = {x = x}, label = "product", sub_label = "32 x 32", description = "float32"}
local m = timer:timeit(100)
print(m.median > 0, m.number_per_run, m.title)  --> true	100	product: 32 x 32
local two_threads = lt.utils.benchmark.Timer{function() return x + x end, num_threads = 2}
print(two_threads:timeit(10).num_threads)  --> 2

-- As many calls as are needed for a reliable time
print(#timer:blocked_autorange{min_run_time = 0.01}.times >= 1)  --> true
print(timer:adaptive_autorange{threshold = 0.5, max_run_time = 0.1}.mean > 0)  --> true

-- Instructions are not counted: timer:collect_callgrind
print((pcall(timer.collect_callgrind, timer)))  --> false

-- The statistics of times: lt.utils.benchmark.Measurement
local measured = lt.utils.benchmark.Measurement{number_per_run = 10, raw_times = {0.01, 0.02, 0.03},
  task_spec = {label = "add", description = "float32"}}
print(measured.median, measured.has_warnings, measured:meets_confidence(0.6))
--> 0.002	true	true
local again = lt.utils.benchmark.Measurement(1, {0.004}, {task_spec = measured.task_spec})
print(lt.utils.benchmark.Measurement.merge{measured, again}[1].times[4])  --> 0.004

-- A table of measurements: lt.utils.benchmark.Compare
local other = lt.utils.benchmark.Measurement{number_per_run = 1, raw_times = {0.008},
  task_spec = {label = "add", description = "float64"}}
local compare = lt.utils.benchmark.Compare{measured}
compare:extend_results{other}
compare:trim_significant_figures()
compare:highlight_warnings()
compare:colorize{rowwise = true}
print(tostring(compare):match "Times[^\n]*")  --> Times are in milliseconds (ms).
compare:print()

-- Subclasses: Timer:extend, Measurement:extend, Compare:extend
local Long = lt.utils.benchmark.Timer:extend "Long"
function Long:timeit(number) return lt.utils.benchmark.Timer.timeit(self, 10 * number) end
print(Long "lt.ones(2)":timeit(5).number_per_run)  --> 50
print(lt.utils.benchmark.Measurement:extend "Mine", lt.utils.benchmark.Compare:extend "Table")
--> class Mine	class Table
