-- Streams and events of devices: their order, their lives, what they refuse.

local program = require "program_support"
local devices = require "device_support"
if devices.elsewhere("cuda/streams", _ENV) then return end

local lt = require "lutra"

local cuda, accelerator = lt.cuda, lt.accelerator
local fails = devices.fails
local two = cuda.device_count() > 1

-- A second process, in which every piece of work starts late by a random time.
local function delayed(script)
  local result = devices.script('local lt = require "lutra"\nlocal cuda = lt.cuda\n' .. script,
    "LUTRA_EMULATE_DELAY=200")
  assert.equal(0, result.status, result.err)
end

describe("streams", function()
  it("have a device, a priority, a name", function()
    local s = cuda.Stream()
    assert.same({"cuda:0", 0}, {s.device, s.priority})
    assert.equal("Stream(cuda:0, priority 0)", tostring(s))
    assert.equal("integer", math.type(s.cuda_stream))
    assert.is_true(s.cuda_stream ~= 0)
    assert.is_true(s.priority >= cuda.Stream{priority = -1}.priority)
    assert.equal("cuda:0", cuda.Stream(lt.zeros{1, device = "cuda"}).device)
    assert.equal("cuda:0", accelerator.Stream{device = 0}.device)
    assert.is_nil(s.nothing)
    if two then assert.equal("cuda:1", cuda.Stream(1).device) end
    fails({"cuda.Stream", "cuda:9"}, cuda.Stream, 9)
    fails({"cuda.Stream", 'got "cpu"'}, cuda.Stream, "cpu")
    fails("argument 'priority'", cuda.Stream, {priority = "x"})
    fails("expected an argument name", cuda.Stream, {prority = 1})
    fails('got "cpu"', accelerator.Stream, "cpu")
  end)

  it("are equal when they are the same queue", function()
    local s, t = cuda.Stream(), cuda.Stream()
    assert.is_true(s == s) -- luacheck: ignore
    assert.is_false(s == t)
    assert.is_true(cuda.current_stream() == cuda.default_stream())
    assert.is_true(rawequal(cuda.current_stream(), cuda.current_stream(0)))
    assert.is_false(s == cuda.current_stream())
    assert.equal("Stream(cuda:0, default)", tostring(cuda.default_stream()))
    assert.equal(0, cuda.default_stream().cuda_stream)
    cuda.with_stream(s, function() assert.is_true(rawequal(s, cuda.current_stream())) end)
    fails("cuda.current_stream", cuda.current_stream, 9)
    fails("cuda.default_stream", cuda.default_stream, {})
    fails('got "cpu"', accelerator.current_stream, "cpu")
    fails('got "cpu"', accelerator.default_stream, "cpu")
  end)

  it("are current inside a scope", function()
    local s, default = cuda.Stream(), cuda.default_stream()
    local a, b, c = cuda.with_stream(s, function(x, y)
      assert.is_true(cuda.current_stream() == s)
      return x, nil, y
    end, 1, 2)
    assert.same({1, 2}, {a, c})
    assert.is_nil(b)
    assert.is_true(cuda.current_stream() == default)
    fails("inside", cuda.with_stream, s, function() error "inside" end)
    assert.is_true(cuda.current_stream() == default)
    assert.equal(3, cuda.with_stream(nil, function() return 3 end))
    assert.is_true(rawequal(cuda.with_stream, lt.with_stream))
    fails("expected a function for argument 'f', got nil", cuda.with_stream, s)
    fails({"with_stream", "expected a Stream"}, cuda.with_stream, 3, print)
    fails({"set_stream", "expected a Stream"}, cuda.set_stream, lt.zeros(1))
    cuda.set_stream(s)
    assert.is_true(cuda.current_stream() == s)
    accelerator.set_stream(default)
    assert.is_true(cuda.current_stream() == default)
    if not two then return pending "one device" end
    local there = cuda.Stream(1)
    accelerator.with_stream(there, function()
      assert.equal(1, cuda.current_device())
      assert.is_true(cuda.current_stream() == there)
      assert.is_true(cuda.current_stream(0) == default)
      cuda.with_stream(s, function() assert.equal(0, cuda.current_device()) end)
      assert.equal(1, cuda.current_device())
    end)
    assert.equal(0, cuda.current_device())
    assert.is_true(cuda.current_stream(1) == cuda.default_stream(1))
    cuda.set_stream(there)
    assert.equal(1, cuda.current_device())
    cuda.set_stream(cuda.default_stream(1))
    cuda.set_device(0)
  end)

  it("run their work in order, and wait for each other when asked to", function()
    local script = [[
      local s = cuda.Stream()
      for round = 1, 20 do
        local x = lt.zeros{1000, device = "cuda"}
        for _ = 1, 5 do x:add_(1) end
        s:wait_stream(cuda.current_stream())
        cuda.with_stream(s, function() x:mul_(10) end)
        cuda.current_stream():wait_stream(s)
        x:add_(1)
        assert(x:eq(51):all():item())
        local e = cuda.Event()
        x:add_(1)
        e:record()
        s:wait_event(e)
        local y = cuda.with_stream(s, function() return x * 2 end)
        local done = s:record_event()
        done:wait()
        assert((y - x):eq(52):all():item())
        s:synchronize()
        assert(s:query() and done:query() and e:query())
      end
    ]]
    delayed(script)
    local s = cuda.Stream()
    fails({"wait_stream", "expected a Stream"}, s.wait_stream, s, 3)
    fails({"wait_event", "expected an Event"}, s.wait_event, s, s)
    fails({"record_event", "expected an Event"}, s.record_event, s, 3)
    fails({"query: expected a Stream for argument 'self', got nil"}, s.query)
    fails({"synchronize: expected a Stream for argument 'self', got a tensor of shape {1}"},
      s.synchronize, lt.zeros(1))
    s:wait_stream(s)
  end)

  it("keep memory that they use until they are done", function()
    delayed [[
      local s = cuda.Stream()
      for i = 1, 30 do
        local x = lt.full({50000}, i, {device = "cuda"})
        s:wait_stream(cuda.current_stream())
        local y = cuda.with_stream(s, function() return x * 2 + 0 end)
        x:free()
        local z = lt.full({50000}, -1, {device = "cuda"}) -- may not lie where x was used
        s:synchronize()
        assert(y:eq(2 * i):all():item(), i)
        z:free()
      end
      local x = lt.zeros{10, device = "cuda"}
      x:record_stream(s)
      x:record_stream(cuda.current_stream())
    ]]
    local x, s = lt.zeros{10, device = "cuda"}, cuda.Stream()
    x:record_stream(s)
    fails({"record_stream", "expected a Stream"}, x.record_stream, x, 3)
    fails({"record_stream", 'where self is'}, x.record_stream, lt.zeros(1), s)
    fails("record_stream", x.record_stream, 3, s)
    if two then
      fails({'expected a Stream of "cuda:0", where self is, got one of "cuda:1"'}, x.record_stream,
        x, cuda.Stream(1))
    end
  end)

  it("end when they are closed, or not held any more", function()
    local s
    do
      local t <close> = cuda.Stream()
      t:synchronize()
      s = t
    end
    assert.equal("Stream(closed)", tostring(s))
    for _, name in ipairs {"query", "synchronize", "record_event"} do
      fails({name, "expected an open Stream"}, s[name], s)
    end
    fails("got a closed one", function() return s.device end)
    fails("got a closed one", cuda.with_stream, s, print)
    fails("got a closed one", cuda.set_stream, s)
    s:close()
    assert.is_false(s == cuda.default_stream())
    -- Closed while it is current: the default one takes its place.
    local current = cuda.Stream()
    cuda.set_stream(current)
    current:close()
    assert.is_true(cuda.current_stream() == cuda.default_stream())
    local within = cuda.Stream()
    cuda.with_stream(within, function() within:close() end)
    assert.is_true(cuda.current_stream() == cuda.default_stream())
    cuda.default_stream():close() -- does nothing
    cuda.default_stream():synchronize()
    delayed [[
      for _ = 1, 20 do
        cuda.set_stream(cuda.Stream())
        collectgarbage()
        local x = lt.ones{1000, device = "cuda"} * 2
        cuda.set_stream(cuda.Stream()) -- the one before ends while it still has work
        collectgarbage()
        assert(tostring(cuda.current_stream()):find "priority")
        cuda.current_device()
        cuda.synchronize()
        assert(x:sum():item() == 2000)
      end
    ]]
  end)
end)

describe("events", function()
  it("mark a moment of a stream", function()
    local s, e = cuda.Stream(), cuda.Event()
    assert.equal("Event(cuda, not recorded)", tostring(e))
    assert.is_nil(e.device)
    assert.is_true(rawequal(e, s:record_event(e)))
    assert.equal("Event(cuda:0)", tostring(e))
    assert.equal("cuda:0", e.device)
    e:synchronize()
    assert.is_true(e:query())
    assert.is_true(rawequal(e, e:record()))
    e:record(s)
    e:wait(s)
    e:wait()
    s:wait_event(e)
    assert.is_nil(e.nothing)
    assert.equal("cuda:0", accelerator.Event():record().device)
    fails("expected an argument name", cuda.Event, {enable_timming = true})
    fails("between processes", cuda.Event, {interprocess = true})
    fails({"enable_timing", "a boolean"}, accelerator.Event, 1)
    fails({"record", "expected a Stream"}, e.record, e, 3)
    fails({"wait", "expected a Stream"}, e.wait, e, 3)
    fails({"query", "expected an Event"}, e.query, s)
    fails({"synchronize", "expected an Event"}, e.synchronize)
  end)

  it("that were never recorded have happened", function()
    local e = cuda.Event {enable_timing = true}
    assert.is_true(e:query())
    e:synchronize()
    e:wait()
    cuda.Stream():wait_event(e)
    fails("the time of 'self': the event was never recorded", e.elapsed_time, e, e)
  end)

  it("measure time", function()
    local from, to = cuda.Event {enable_timing = true}, cuda.Event {enable_timing = true}
    from:record()
    local x = lt.ones{1000, device = "cuda"}
    for _ = 1, 10 do x:add_(1) end
    to:record()
    to:synchronize()
    local t = from:elapsed_time(to)
    assert.equal("float", math.type(t))
    assert.is_true(t >= 0)
    assert.is_true(to:elapsed_time(from) <= 0)
    local plain = cuda.Event():record()
    fails("enable_timing = true", from.elapsed_time, from, plain)
    fails("enable_timing = true", from.elapsed_time, plain, to)
    fails("the time of 'end_event': the event was never recorded", from.elapsed_time, from,
      cuda.Event {enable_timing = true})
    fails("expected an Event", from.elapsed_time, from, 3)
    if not two then return pending "one device" end
    local there = cuda.Event {enable_timing = true}
    there:record(cuda.Stream(1)):synchronize()
    fails({'of "cuda:0"', 'of "cuda:1"'}, from.elapsed_time, from, there)
  end)

  it("that are not reached yet have no time", function()
    delayed [[
      local from, to = cuda.Event{enable_timing = true}, cuda.Event{enable_timing = true}
      from:record()
      local x = lt.ones{100000, device = "cuda"}
      for _ = 1, 200 do x:add_(1) end
      to:record()
      if not to:query() then
        local ok, message = pcall(from.elapsed_time, from, to)
        assert(ok or message:find "not completed", message)
      end
      to:synchronize()
      assert(from:elapsed_time(to) > 0)
    ]]
  end)

  it("stay on their device", function()
    if not two then return pending "one device" end
    local e, s, there = cuda.Event(), cuda.Stream(), cuda.Stream(1)
    e:record(s)
    fails({'"cuda:0"', 'of "cuda:1"'}, e.record, e, there)
    fails({'"cuda:0"', 'of "cuda:1"'}, there.record_event, there, e)
    there:wait_event(e) -- other devices may wait for it
    there:wait_stream(s)
    there:synchronize()
  end)

  it("end", function()
    local e = cuda.Event():record()
    e:close()
    e:close()
    assert.equal("Event(closed)", tostring(e))
    for _, name in ipairs {"record", "wait", "query", "synchronize"} do
      fails({name, "expected an open Event"}, e[name], e)
    end
    local kept
    do
      local f <close> = cuda.Event():record()
      kept = f
    end
    fails("got a closed one", kept.query, kept)
    for _ = 1, 100 do cuda.Event():record() end
    collectgarbage()
    cuda.synchronize()
  end)
end)

describe("pinned memory that is copied more than once", function()
  -- How often the host blocks in f, and what f gives.
  local function waits(f)
    local count, trace, result = 0, lt.placement.trace(f)
    for _, e in ipairs(trace.events) do
      if e.kind == "sync" or e.kind == "copy" and e.blocking then count = count + 1 end
    end
    return count, result
  end

  it("is sent to several streams and devices without blocking the host", function()
    local x = lt.arange(1, 1000000):pin_memory()
    local others = {cuda.Stream(), two and cuda.current_stream(1)}
    local count, list = waits(function()
      local all = {x:to{"cuda:0", non_blocking = true}}
      for _, s in ipairs(others) do
        all[#all + 1] = cuda.with_stream(s, function()
          return x:to{s.device, non_blocking = true}
        end)
      end
      return all
    end)
    assert.equal(0, count)
    assert.equal(1 + #others, #list)
    x:zero_() -- waits until all have read it
    cuda.synchronize()
    if two then cuda.synchronize(1) end
    for _, y in ipairs(list) do assert.equal(1000000 * 1000001 / 2, y:to "int64":sum():item()) end
  end)

  it("is handed to another stream after the first, in this order", function()
    local s, n = cuda.Stream(), 1000000
    for round = 1, 5 do
      local source = lt.full({n}, round, {device = "cuda:0"})
      cuda.synchronize()
      local count, there = waits(function()
        local home = source:to{"cpu", non_blocking = true}
        return cuda.with_stream(s, function()
          return home:to{"cuda:0", non_blocking = true}
        end)
      end)
      assert.equal(0, count)
      s:synchronize()
      assert.equal(round * n, there:sum():item())
    end
  end)
end)

describe("the end of a program", function()
  -- Status 0 and no word on stderr, whatever is still queued, open or current.
  local function ends(script, status)
    for _, environment in ipairs {"LUTRA_X=", "LUTRA_EMULATE_DELAY=200"} do
      local result = devices.script('local lt = require "lutra"\n' .. script, environment)
      assert.same({status or 0, ""}, {result.status, result.err})
    end
  end
  local work = [[
    local s = lt.cuda.Stream()
    kept = {s, lt.cuda.Event():record(s), lt.zeros(9):pin_memory()} -- luacheck: ignore
    lt.cuda.set_stream(s)
    local x = lt.ones{100000, device = "cuda"}
    for _ = 1, 50 do x:add_(1) end
    y = x:to{device = "cpu", non_blocking = true}
  ]]

  it("comes while work is queued", function() ends(work) end)
  it("comes by os.exit", function()
    ends(work .. "os.exit(0)")
    ends(work .. "os.exit(3, true)", 3)
  end)
  -- Each end that waits for what will not come takes two seconds.
  it("comes at once where a stream waits for another", function()
    if not two then return pending "one device" end
    local path = program.file [[
      local lt = require "lutra"
      local a = lt.eye{600, device = "cuda:0"}
      for _ = 1, 40 do a = a:matmul(a) end
      lt.cuda.current_stream(1):wait_event(lt.cuda.current_stream(0):record_event())
      local begin = lt.clock()
      repeat until lt.clock() > begin + 0.05 -- until it waits
      os.exit(0)]]
    local result = program.shell(("timeout 8 sh -c 'for i in 1 2 3 4 5; do %s %s || exit; done'")
      :format(program.program, path))
    os.remove(path)
    assert.same({0, ""}, {result.status, result.err})
  end)

  it("comes with finalizers that use what was ended", function()
    ends(work .. [[
      local s, e, t = kept[1], kept[2], kept[3]
      setmetatable({}, {__gc = function()
        pcall(s.synchronize, s)
        pcall(e.query, e)
        pcall(t.free, t)
        pcall(lt.zeros, {10, device = "cuda"})
      end})]])
  end)
end)
