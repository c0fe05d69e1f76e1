-- Pipeline: one model over two devices, both at work at the same time.
--
--   lutra [--emulate cuda:2,link=pcie4] examples/placement/24_pipeline.lua
--
-- A model that is too large for one device is cut in two: the first half on cuda:0, the second on
-- cuda:1. Done simply, one of the two always waits for the other. So the batch is cut as well:
-- while the second half computes piece 1, the first half computes piece 2.
--
-- The host only puts work into queues, which are called streams. What must happen after what is
-- said with events: marks in one stream that another one waits for.
--
-- test:
-- test on cuda:2:
-- test on cuda:2,link=pcie4:
-- test on cuda:2,peer=off,link=pcie4:

local lt = require "lutra"
local nn, cuda = lt.nn, lt.cuda

local PIECES, IN_FLIGHT = 4, 2

if cuda.device_count() < 2 then
  print "skipped: this needs two GPUs. Two to practise on: lutra --emulate cuda:2"
  os.exit(true, true)
end

lt.manual_seed(1)
-- Cut where little is handed over: 32 numbers a row.
local first = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 32)):to "cuda:0"
-- The second half has more to do: cuda:0 would run far ahead if nothing held it back.
local second = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
  nn.Linear(256, 8)):to "cuda:1"
local x = lt.randn{256, 128, device = "cuda:0"}

-- The simple way: the batch goes through the first half, then through the second. Right, and half
-- of the time each device does nothing.
local function simple(input) return second(first(input):to "cuda:1") end

-- The streams that copies run on, so that a device copies and computes at the same time. A copy
-- between devices is ordered on both: its source's stream and its target's.
local work = {cuda.current_stream(0), cuda.current_stream(1)}
local copying = {cuda.Stream(0), cuda.Stream(1)}

-- h on cuda:1, by the copying streams. Nobody waits here but the streams for each other.
local function send(h)
  copying[1]:wait_event(work[1]:record_event()) -- h must have been computed
  local there = cuda.with_stream(copying[1], function()
    return cuda.with_stream(copying[2], function()
      return h:to{device = "cuda:1", non_blocking = true}
    end)
  end)
  work[2]:wait_event(copying[2]:record_event()) -- and must have arrived
  -- The memory is the copying stream's; it must not be given away while the other reads it.
  there:record_stream(work[2])
  return there
end

local function pipeline(input)
  local results, done = {}, {}
  for k, piece in ipairs(input:chunk(PIECES)) do
    -- Not more than two pieces between the halves: it bounds the memory that waits on cuda:1.
    if k > IN_FLIGHT then work[1]:wait_event(done[k - IN_FLIGHT]) end
    local h = send(first(piece))
    results[k] = second(h)
    done[k] = work[2]:record_event()
  end
  return lt.cat(results)
end

-- 1. The values are those of the model that is not cut.
local whole = nn.Sequential(first, second) -- modules are shared, not copied
local y = pipeline(x)
assert(y.device == "cuda:1" and y:allclose(simple(x), {atol = 1e-5}))
assert(whole:num_parameters() == first:num_parameters() + second:num_parameters())

-- 2. So are the gradients: backward takes the same way back, each op on the stream it ran on.
local function gradients(f) -- as one vector
  whole:zero_grad()
  f(x):pow(2):mean():backward()
  local list = {}
  for p in whole:parameters() do
    assert(p.grad.device == p.device)
    list[#list + 1] = p.grad:flatten():to "cuda:0"
  end
  return lt.cat(list)
end
local wanted = gradients(simple)
assert(#wanted == whole:num_parameters() and wanted:abs():sum():item() > 0)
assert(gradients(pipeline):allclose(wanted, {atol = 1e-6}))

-- 3. The host waited for nothing: it had queued the last piece long before the first was done.
local profile = lt.profiler.profile(function() pipeline(x) end, {synchronize = false})
local copies = 0
for event in profile:events() do
  assert(event.kind ~= "wait")
  if event.kind == "copy" then
    copies = copies + 1
    assert(not event.blocking and event.from == "cuda:0" and event.device == "cuda:1")
  end
end
assert(copies == PIECES)

-- 4. The devices worked side by side. With a link (lutra --emulate cuda:2,link=pcie4) a trace knows
-- what all of it would take on real hardware, the same on every run.
local WIDTH = 60
local function draw(name, f, input)
  local trace = lt.placement.trace(f, input)
  local work_of, total, sum = {["cuda:0"] = {}, ["cuda:1"] = {}}, 0, 0
  for _, e in ipairs(trace.events) do
    if e.kind == "copy" or e.kind == "op" and work_of[e.to] then
      table.insert(work_of[e.to], e)
      total, sum = math.max(total, e.finish), sum + e.finish - e.begin
    end
  end
  print(("%s: %.0f microseconds (# computes, > receives)"):format(name, total))
  for _, device in ipairs {"cuda:0", "cuda:1"} do
    local lane = {}
    for column = 1, WIDTH do
      local t = (column - 0.5) / WIDTH * total
      lane[column] = "."
      for _, e in ipairs(work_of[device]) do
        if lane[column] ~= "#" and e.begin <= t and t < e.finish then
          lane[column] = e.kind == "op" and "#" or ">"
        end
      end
    end
    print(("%s |%s|"):format(device, table.concat(lane)))
  end
  return total, sum, work_of
end

-- The ops of one device, in the order of their queue.
local function ops(list)
  local found = {}
  for _, e in ipairs(list) do
    if e.kind == "op" and e.finish > e.begin then found[#found + 1] = e end
  end
  return found
end

if lt.placement.trace(simple, x).link then
  local large = lt.randn{2^14, 128, device = "cuda:0"} -- more work than giving the orders for it
  local alone = draw("one device after the other", simple, large)
  local total, sum, work_of = draw("pipeline", pipeline, large)
  assert(total < sum, "nothing went on beside anything else")
  assert(total < alone)
  -- cuda:0 began a piece when cuda:1 was done with the one two before it, not earlier: of three and
  -- five ops a piece.
  local here, there = ops(work_of["cuda:0"]), ops(work_of["cuda:1"])
  for k = IN_FLIGHT + 1, PIECES do
    assert(here[3 * (k - 1) + 1].begin >= there[5 * (k - IN_FLIGHT)].finish)
  end
else
  print "for a picture of the two at work: lutra --emulate cuda:2,link=pcie4"
end

print "ok: one model over two devices, the same values, and neither waits for the whole batch"
