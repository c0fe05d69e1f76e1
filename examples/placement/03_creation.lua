-- Creation: make a tensor where it is needed, not somewhere else.
--
--   lutra [--emulate cuda:2] examples/placement/03_creation.lua
--
-- Every function that makes a tensor takes `device`. What is made on the card never crosses the
-- cable between the computer and the card. What is made on the CPU and moved has to.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()

for _, x in ipairs {
  lt.zeros{2, 3, device = device},
  lt.randn{2, 3, device = device},
  lt.arange{5, device = device},
  lt.eye{3, device = device},
  lt.tensor{{1, 2}, {3, 4}, device = device},
} do
  print(x)
  assert(x.device == device)
end

-- How many copies between devices does a function make? A trace writes them down.
local function copies(fn) return lt.placement.trace(fn):totals().copies end

local direct = copies(function() return lt.zeros{500, 500, device = device} end)
local moved = copies(function() return lt.zeros(500, 500):to(device) end)
print(("made there: %d copies; made here and moved: %d"):format(direct, moved))
assert(direct == 0)
assert(moved == (device == "cpu" and 0 or 1))

-- The same seed gives the same numbers, whichever device draws them.
lt.manual_seed(7)
local there = lt.randn{4, device = device}
lt.manual_seed(7)
local here = lt.randn(4)
print(there)
assert(lt.allclose(there:cpu(), here))

if device == "cpu" then print "skipped: on one device there is nothing to copy" end
print "ok: tensors made with `device` are there from the start"
