-- Counts on the device, for the whole tensor.
local lt = require "lutra"

local x = lt.rand{40, device = "cuda"}
local count = x:gt(0.5):sum():item()
print(count)
