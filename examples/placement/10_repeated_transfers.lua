-- Repeated transfers: what is sent back and forth for nothing.
--
--   lutra [--emulate cuda:2] examples/placement/10_repeated_transfers.lua
--
-- A card computes faster than its cable brings data. A result that is taken home and sent out
-- again in every step costs two journeys and gains nothing. Here the journeys of a poor loop and
-- of a better one are counted.
--
-- test:

local lt = require "lutra"
local device = lt.best_device()
lt.manual_seed(1)

local model = lt.nn.Linear(64, 64):to(device)
local batches = {}
for i = 1, 5 do batches[i] = lt.randn(32, 64) end

local function poor()
  local total = lt.zeros{32, 64, device = device}
  for _, x in ipairs(batches) do
    x = x:to(device)
    local output = model(x)
    local output_cpu = output:cpu() -- home, for no reason
    output = output_cpu:to(device) -- and out again
    total = total + output
  end
  return total
end

local function better()
  local total = lt.zeros{32, 64, device = device}
  for _, x in ipairs(batches) do total = total + model(x:to(device)) end
  return total
end

-- Copies between devices and their bytes, while fn runs.
local function transfers(fn)
  local profile, result = lt.profiler.profile(function() return lt.no_grad(fn) end)
  local to, back, bytes = 0, 0, 0
  for event in profile:events() do
    if event.kind == "copy" then
      bytes = bytes + event.bytes
      if event.device == "cpu" then back = back + 1 else to = to + 1 end
    end
  end
  return result, to, back, bytes
end

local poor_result, poor_to, poor_back, poor_bytes = transfers(poor)
local better_result, better_to, better_back, better_bytes = transfers(better)
print(("poor:   %2d to the device, %d back, %6d bytes"):format(poor_to, poor_back, poor_bytes))
print(("better: %2d to the device, %d back, %6d bytes"):format(better_to, better_back,
  better_bytes))

assert(lt.equal(poor_result, better_result), "the results are the same")
if device == "cpu" then
  print "skipped: on one device nothing crosses a cable, in neither loop (--emulate cuda:2)"
  assert(poor_bytes == 0 and better_bytes == 0)
else
  -- Per batch: one copy against three.
  assert(better_to == #batches and better_back == 0)
  assert(poor_to == 2 * #batches and poor_back == #batches)
  assert(poor_bytes == 3 * better_bytes and better_bytes == 5 * 32 * 64 * 4)
end

-- Taken home once, at the end, for the eyes or for a file: that is what cpu() is for.
local home = better_result:cpu()
assert(home.device == "cpu" and better_result.device == device)

print "ok: send each batch once, leave results where the next step needs them"
