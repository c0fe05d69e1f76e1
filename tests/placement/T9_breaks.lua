-- Counts the large numbers of a tensor one by one.
local lt = require "lutra"

local x = lt.rand{40, device = "cuda"}
local count = 0
for i = 1, #x do
  if x[i]:item() > 0.5 then count = count + 1 end -- T9
end
print(count)
