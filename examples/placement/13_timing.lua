-- Time: a clock that is stopped too early measures nothing.
--
--   lutra [--emulate cuda:2] examples/placement/13_timing.lua [--size 200] [--repeats 5]
--
-- y = a:matmul(b) on a card puts the work into a queue and returns; the card is still at it. Who
-- stops the clock there has measured how long it takes to give an order. synchronize() waits
-- until the card is done, before the clock starts (old work) and before it stops (this work).
-- One function here is wrong on purpose: `lutra --lint` finds it by rule T7.
--
-- test:

local lt = require "lutra"
local cli = require "lutra.cli"

local options = cli.parse(arg, {
  {"size", 200, "rows and columns of the matrices"},
  {"repeats", 5, "how often each is measured"},
})
if options.size < 1 or options.repeats < 1 then
  cli.fail "--size and --repeats want numbers of at least 1"
end
local device = lt.best_device()
local size = options.size
local a = lt.randn{size, size, device = device}
local b = lt.randn{size, size, device = device}

-- PyTorch: torch.cuda.synchronize(), here for every kind of card; the CPU has nothing to wait for.
local function synchronize()
  if lt.accelerator.is_available() then lt.accelerator.synchronize(device) end
end

-- PyTorch: start = time.time(); y = a @ b; seconds = time.time() - start
local function wrong()
  local start = lt.clock()
  local y = a:matmul(b)
  return lt.clock() - start, y
end

local function right()
  synchronize()
  local start = lt.clock()
  local y = a:matmul(b)
  synchronize()
  return lt.clock() - start, y
end

-- The least of several: other programs can only make it longer. The first is thrown away: it
-- also loads what the work needs.
local function least(measure)
  measure()
  local best = math.huge
  for _ = 1, options.repeats do best = math.min(best, (measure())) end
  return best
end

print(("without synchronize: %9.3f ms"):format(1e3 * least(wrong)))
print(("with synchronize:    %9.3f ms"):format(1e3 * least(right)))

if device == "cpu" then
  print "skipped: the CPU is done when a call returns, a card is not (--emulate cuda:2)"
else
  print "the first is the time to give the order, the second that of the work"

  -- What can be promised: after right, the queue is empty ...
  local queue = lt.accelerator.current_stream(device)
  local _, done = right()
  assert(queue:query(), "synchronize came back too early")
  assert(done.device == device)
  -- ... and the lint knows the mistake: a clock that is read while the card is still at work.
  local findings = lt.placement.lint(wrong)
  print(("\nthe lint of the first:\n%s\n"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T7")
  -- It has nothing to say of the other one, not even with old work before it.
  assert(#lt.placement.lint(function() return right(), a:matmul(b), right() end) == 0)

  -- PyTorch: torch.cuda.Event(enable_timing=True). A card has clocks of its own: two events in the
  -- queue, and the time between them.
  local first = lt.accelerator.Event{enable_timing = true}
  local last = lt.accelerator.Event{enable_timing = true}
  first:record()
  local y = a:matmul(b)
  last:record()
  last:synchronize()
  print(("by events:           %9.3f ms"):format(first:elapsed_time(last)))
  assert(first:elapsed_time(last) > 0 and y.device == device)
end

-- Reading a result waits as well: numbers are never half done.
local one = lt.ones{size, size, device = device}
assert(one:matmul(one)[{1, 1}]:item() == size)

print "ok: synchronize, start, work, synchronize, stop"
