-- Pipeline parallelism: one model on two devices that run at the same time.
--
--   lutra [--emulate cuda:2,link=pcie4] examples/placement/24_pipeline.lua
--
-- A model that is too large for one device is split: the first half on cuda:0, the second on
-- cuda:1. In the simple version one of the two is always idle. Therefore the batch is split as
-- well: while the second half computes piece 1, the first half computes piece 2.
--
-- The host only queues work on streams. Events define the order between streams: one stream records
-- an event, another one waits for it.
--
-- test:
-- test on cuda:2:
-- test on cuda:2,link=pcie4:
-- test on cuda:2,peer=off,link=pcie4:

local lt = require "lutra"
local nn, cuda = lt.nn, lt.cuda

local PIECES, IN_FLIGHT = 4, 2

if cuda.device_count() < 2 then
  print "skipped: this needs two GPUs (lutra --emulate cuda:2)"
  os.exit(true, true)
end

lt.manual_seed(1)
-- Split where little data is passed on: 32 elements per row.
local first = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 32)):to "cuda:0"
-- The second half is slower: without a limit cuda:0 would queue all pieces.
local second = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
  nn.Linear(256, 8)):to "cuda:1"
local x = lt.randn{256, 128, device = "cuda:0"}

-- The simple version: the whole batch through the first half, then through the second. Each device
-- is idle half of the time.
local function simple(input) return second(first(input):to "cuda:1") end

-- Streams for copies, so that a device copies and computes at the same time. A copy between devices
-- is ordered on two streams: the current stream of its source and that of its target.
local work = {cuda.current_stream(0), cuda.current_stream(1)}
local copying = {cuda.Stream(0), cuda.Stream(1)}

-- Returns a copy of h on cuda:1, made on the copying streams. Does not block the host.
local function send(h)
  copying[1]:wait_event(work[1]:record_event()) -- after h was computed
  local there = cuda.with_stream(copying[1], function()
    return cuda.with_stream(copying[2], function()
      return h:to{device = "cuda:1", non_blocking = true}
    end)
  end)
  work[2]:wait_event(copying[2]:record_event()) -- after the copy
  -- The memory belongs to the copying stream; it must not be reused while the other stream reads
  -- it.
  there:record_stream(work[2])
  return there
end

local function pipeline(input)
  local results, done = {}, {}
  for k, piece in ipairs(input:chunk(PIECES)) do
    -- At most two pieces between the halves: this limits the memory of queued pieces on cuda:1.
    if k > IN_FLIGHT then work[1]:wait_event(done[k - IN_FLIGHT]) end
    local h = send(first(piece))
    results[k] = second(h)
    done[k] = work[2]:record_event()
  end
  return lt.cat(results)
end

-- 1. The values are those of the whole model.
local whole = nn.Sequential(first, second) -- modules are shared, not copied
local y = pipeline(x)
assert(y.device == "cuda:1" and y:allclose(simple(x), {atol = 1e-5}))
assert(whole:num_parameters() == first:num_parameters() + second:num_parameters())

-- 2. So are the gradients: backward runs each op on the stream of its forward.
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
local expected = gradients(simple)
assert(#expected == whole:num_parameters() and expected:abs():sum():item() > 0)
assert(gradients(pipeline):allclose(expected, {atol = 1e-6}))

-- 3. Nothing blocked the host: it queued the last piece before the first was done.
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

-- 4. The devices ran at the same time. With a link (lutra --emulate cuda:2,link=pcie4) a trace has
-- the times of a model of the hardware, the same on every run.
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

-- Returns the ops of one device, in the order of their stream.
local function ops(list)
  local found = {}
  for _, e in ipairs(list) do
    if e.kind == "op" and e.finish > e.begin then found[#found + 1] = e end
  end
  return found
end

if lt.placement.trace(simple, x).link then
  local large = lt.randn{2^14, 128, device = "cuda:0"} -- more time to compute than to queue
  local alone = draw("one device after the other", simple, large)
  local total, sum, work_of = draw("pipeline", pipeline, large)
  assert(total < sum, "no work overlapped")
  assert(total < alone)
  -- cuda:0 started a piece only after cuda:1 had finished the one two before it. A piece has three
  -- ops on cuda:0 and five on cuda:1.
  local here, there = ops(work_of["cuda:0"]), ops(work_of["cuda:1"])
  for k = IN_FLIGHT + 1, PIECES do
    assert(here[3 * (k - 1) + 1].begin >= there[5 * (k - IN_FLIGHT)].finish)
  end
else
  print "for a timeline of both devices: lutra --emulate cuda:2,link=pcie4"
end

print "ok: one model on two devices, the same values, and both run at the same time"
