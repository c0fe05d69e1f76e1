-- Pipeline: one model over two devices, both at work at the same time.
--
--   lutra [--emulate cuda:2] examples/placement/24_pipeline.lua
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
-- test on cuda:2,peer=off:

local lt = require "lutra"
local nn, cuda = lt.nn, lt.cuda

local PIECES, IN_FLIGHT = 4, 2

if cuda.device_count() < 2 then
  print "skipped: this needs two GPUs. Two to practise on: lutra --emulate cuda:2"
  os.exit(true, true)
end

lt.manual_seed(1)
local first = nn.Sequential(nn.Linear(128, 256), nn.Tanh()):to "cuda:0"
-- The second half has more to do: cuda:0 would run far ahead if nothing held it back.
local second = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
  nn.Linear(256, 8)):to "cuda:1"
local x = lt.randn{256, 128, device = "cuda:0"}

-- The simple way: the batch goes through the first half, then through the second. Right, and half
-- of the time each device does nothing.
local function simple(input) return second(first(input):to "cuda:1") end

-- The streams that copies run on, so that a device copies and computes at the same time. A copy
-- between devices is ordered on both: its source's stream and its target's.
local work = {cuda.current_stream(0), cuda.current_stream(1)}
local copying = {cuda.Stream(0), cuda.Stream(1)}

-- When things happened, on the clock of cuda:0, which is the only one that can be compared with
-- itself: what cuda:1 does is marked on a stream of cuda:0 that waits for it.
local watch, marks = cuda.Stream(0), {}
local function mark(name, k, stream)
  if stream == work[2] then
    watch:wait_event(stream:record_event())
    stream = watch
  end
  local event = cuda.Event{enable_timing = true}
  event:record(stream)
  marks[name .. k] = event
  return event
end

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
  local results = {}
  mark("begin", 0, work[1])
  for k, piece in ipairs(input:chunk(PIECES)) do
    -- Not more than two pieces between the halves: it bounds the memory that waits on cuda:1.
    if k > IN_FLIGHT then work[1]:wait_event(marks["second ends" .. k - IN_FLIGHT]) end
    mark("first begins", k, work[1])
    local h = first(piece)
    mark("first ends", k, work[1])
    h = send(h)
    mark("second begins", k, work[2])
    results[k] = second(h)
    mark("second ends", k, work[2])
  end
  return lt.cat(results)
end

-- 1. The values are those of the model that is not cut.
local whole = nn.Sequential(first, second) -- modules are shared, not copied
local y = pipeline(x)
assert(y.device == "cuda:1" and y:allclose(simple(x), {atol = 1e-5}))
assert(whole:num_parameters() == first:num_parameters() + second:num_parameters())

-- 2. So are the gradients: backward takes the same way back, each op on the stream it ran on.
local function gradients(f)
  whole:zero_grad()
  f(x):pow(2):mean():backward()
  local list = {}
  for p in whole:parameters() do list[#list + 1] = p.grad:clone() end
  return list
end
local wanted = gradients(simple)
assert(#wanted == 8) -- a weight and a bias of each of four layers
for i, grad in ipairs(gradients(pipeline)) do
  assert(grad.device == wanted[i].device and grad:allclose(wanted[i], {atol = 1e-6}))
end

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

-- 4. The devices worked side by side. The order of events shows it on every machine, fast or slow:
-- cuda:1 was done with piece 1 before cuda:0 began piece 3, so nobody waited for a whole batch.
cuda.synchronize(0)
cuda.synchronize(1)
local function at(name, k) return marks.begin0:elapsed_time(marks[name .. k]) end
for k = 1, PIECES do
  assert(at("first ends", k) <= at("second begins", k), "a piece was used before it was there")
  if k > IN_FLIGHT then assert(at("second ends", k - IN_FLIGHT) <= at("first begins", k)) end
end

-- The picture of it: one row for a device, a digit for the piece that it works on.
print "when each device worked, from left to right, and on which piece:"
local total, WIDTH = at("second ends", PIECES), 60
for i, half in ipairs {"first", "second"} do
  local lane = {}
  for column = 1, WIDTH do
    local t = (column - 0.5) / WIDTH * total
    lane[column] = "."
    for k = 1, PIECES do
      if at(half .. " begins", k) <= t and t < at(half .. " ends", k) then lane[column] = k end
    end
  end
  print(("cuda:%d |%s|"):format(i - 1, table.concat(lane)))
end
print(("%.2f ms for %d pieces"):format(total, PIECES))

print "ok: one model over two devices, the same values, and neither waits for the whole batch"
