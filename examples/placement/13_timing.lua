-- Timing: synchronize before you read the clock.
--
--   lutra [--emulate cuda:2] examples/placement/13_timing.lua [--size 200] [--repeats 5]
--
-- y = a:matmul(b) on a GPU queues the work and returns while it is still running. A clock that is
-- read then measures only the time to queue it. synchronize() blocks until the GPU is done; call it
-- before the clock starts (for earlier work) and before it stops (for this work). One function here
-- is wrong on purpose: `lutra --lint` finds it by rule T7.
--
-- test:

local lt = require "lutra"
local cli = require "lutra.cli"

local options = cli.parse(arg, {
  {"size", 200, "rows and columns of the matrices"},
  {"repeats", 5, "number of measurements of each"},
})
if options.size < 1 or options.repeats < 1 then
  cli.fail "--size and --repeats: expected at least 1"
end
local device = lt.best_device()
local size = options.size
local a = lt.randn{size, size, device = device}
local b = lt.randn{size, size, device = device}

-- PyTorch: torch.cuda.synchronize(). This works for every accelerator; on the CPU it is not needed.
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

-- Returns the minimum of several measurements, because other programs can only slow them down.
-- Discards the first one, which includes initialization.
local function least(measure)
  measure()
  local best = math.huge
  for _ = 1, options.repeats do best = math.min(best, (measure())) end
  return best
end

print(("without synchronize: %9.3f ms"):format(1e3 * least(wrong)))
print(("with synchronize:    %9.3f ms"):format(1e3 * least(right)))

if device == "cpu" then
  print "skipped: operations on the CPU are synchronous (--emulate cuda:2)"
else
  print "the first is the time to queue the work, the second the time of the work"

  -- After right() the queue is empty ...
  local queue = lt.accelerator.current_stream(device)
  local _, done = right()
  assert(queue:query(), "synchronize returned too early")
  assert(done.device == device)
  -- ... and the lint finds the mistake: a clock that is read while the GPU is still running.
  local findings = lt.placement.lint(wrong)
  print(("\nthe lint of the first:\n%s\n"):format(findings))
  assert(#findings == 1 and findings[1].rule == "T7")
  -- It has no findings for right(), even with earlier work in the queue.
  assert(#lt.placement.lint(function() return right(), a:matmul(b), right() end) == 0)

  -- PyTorch: torch.cuda.Event(enable_timing=True). A GPU has its own clock: record two
  -- events in the queue, and read the time between them.
  local first = lt.accelerator.Event{enable_timing = true}
  local last = lt.accelerator.Event{enable_timing = true}
  first:record()
  local y = a:matmul(b)
  last:record()
  last:synchronize()
  print(("by events:           %9.3f ms"):format(first:elapsed_time(last)))
  assert(first:elapsed_time(last) > 0 and y.device == device)
end

-- Reading a result synchronizes as well.
local one = lt.ones{size, size, device = device}
assert(one:matmul(one)[{1, 1}]:item() == size)

print "ok: synchronize, start, work, synchronize, stop"
