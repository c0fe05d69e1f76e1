-- Examples of lt.distributed.simulate.
local lt = require "lutra"

-- Steps of data-parallel training on many GPUs, on a virtual clock: lt.distributed.simulate
local report = lt.distributed.simulate({8 * 2 ^ 20, 4 * 2 ^ 20}, {forward = 0.001,
  backward = 0.002, gpus = {8, 64}, algorithms = {"tree"}})
print(#report, report[2].gpus, report[2].efficiency < 1)  --> 2	64	true

-- Its rows as text: report:table
print(report:table(100):match "efficiency")  --> efficiency
