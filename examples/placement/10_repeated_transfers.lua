-- Repeated transfers: unnecessary copies between devices.
--
--   lutra [--emulate cuda:2,link=pcie4] examples/placement/10_repeated_transfers.lua
--
-- A GPU computes faster than the bus transfers data. A result that is copied to the host and back
-- in every step costs two copies and gains nothing. This script counts the copies of a poor loop
-- and of a better one; `link=pcie4` shows what they cost on such a bus. The poor loop is wrong on
-- purpose: `lutra --lint` finds it by rule T2.
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
    local output_cpu = output:cpu() -- to the host, for no reason
    output = output_cpu:to(device) -- and back
    total = total + output
  end
  return total
end

local function better()
  local total = lt.zeros{32, 64, device = device}
  for _, x in ipairs(batches) do total = total + model(x:to(device)) end
  return total
end

-- A trace has every copy between devices, and the line that made it.
local poor_trace, poor_result = lt.placement.trace(lt.no_grad, poor)
local better_trace, better_result = lt.placement.trace(lt.no_grad, better)
print(("the poor loop:\n%s\n\nthe better loop:\n%s"):format(poor_trace, better_trace))

assert(lt.equal(poor_result, better_result), "the results are the same")
local poorer, best = poor_trace:totals(), better_trace:totals()
if device == "cpu" then
  print "skipped: on one device neither loop copies (--emulate cuda:2)"
  assert(poorer.copies == 0 and best.copies == 0)
else
  -- Per batch: one copy and three copies.
  assert(best.copies == #batches and poorer.copies == 3 * #batches)
  assert(best.bytes == 5 * 32 * 64 * 4 and poorer.bytes == 3 * best.bytes)

  -- The lint finds the poor line, and has no findings for the better loop.
  local findings = lt.placement.lint(lt.no_grad, poor)
  print(("\nthe lint of the poor loop:\n%s"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T2")
  assert(#lt.placement.lint(lt.no_grad, better) == 0)
end

-- Copy to the host once, at the end, for a file, a plot or another library: use cpu().
local on_cpu = better_result:cpu()
assert(on_cpu.device == "cpu" and better_result.device == device)

print "ok: copy each batch once, and keep results on the device of the next step"
