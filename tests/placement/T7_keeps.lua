-- Waits for the device before each look at the clock.
local lt = require "lutra"

local a = lt.randn{64, 64, device = "cuda"}
lt.cuda.synchronize()
local start = os.clock()
local b = a:matmul(a)
lt.cuda.synchronize()
local seconds = os.clock() - start
print(b.shape, seconds >= 0)
