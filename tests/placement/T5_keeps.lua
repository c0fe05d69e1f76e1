-- Joins the samples on the host and sends the batch.
local lt = require "lutra"
local device = "cuda"

local samples = {}
for i = 1, 16 do samples[i] = lt.randn(8) end

local batch = lt.stack(samples):to(device)
print(batch:mean():item())
