-- Sends the samples of a batch one by one.
local lt = require "lutra"
local device = "cuda"

local samples = {}
for i = 1, 16 do samples[i] = lt.randn(8) end

local batch = {}
for i, sample in ipairs(samples) do
  batch[i] = sample:to(device) -- T5
end
print(lt.stack(batch):mean():item())
