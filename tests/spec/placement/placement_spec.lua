-- lt.placement: traces, errors about devices and the virtual clock.

local devices = require "device_support"
if devices.elsewhere("placement/placement", _ENV) then return end

local assert = require "luassert"
local lt = require "lutra"
local program = require "program_support"

local placement = lt.placement
local fails = devices.fails

-- The events of one kind.
local function of_kind(trace, kind)
  local list = {}
  for _, e in ipairs(trace.events) do
    if e.kind == kind then list[#list + 1] = e end
  end
  return list
end

local function this_line(level)
  return ("placement_spec.lua:%d"):format(debug.getinfo((level or 1) + 1, "l").currentline)
end

local function ends_with(text, ending)
  assert.equal(ending, text:sub(-#ending), text)
end

describe("placement.trace", function()
  it("gives the trace, then what the function returned", function()
    local trace, a, b, c = placement.trace(function(...) return ..., nil end, 1, 2)
    assert.equal("trace", getmetatable(trace).__name)
    assert.same({1, nil}, {a, b})
    assert.is_nil(c)
    assert.equal("no copies between devices, no waits", tostring(trace))
  end)

  it("knows each copy's direction, bytes, line, and whether it blocked the host", function()
    local x = lt.randn{10, 10}
    local up, down
    local trace = placement.trace(function()
      local y = x:to "cuda"; up = this_line()
      local _ = y:cpu(); down = this_line()
    end)
    local copies = of_kind(trace, "copy")
    assert.equal(2, #copies)
    local first, second = copies[1], copies[2]
    assert.same({"cpu", "cuda:0", 400, true, true, "to"},
      {first.from, first.to, first.bytes, first.blocking, first.explicit, first.op})
    assert.same({"cuda:0", "cpu", 400, true, true, "cpu"},
      {second.from, second.to, second.bytes, second.blocking, second.explicit, second.op})
    ends_with(first.where, up)
    ends_with(second.where, down)
    assert.is_true(first.begin <= first.finish and first.finish <= second.begin)
    assert.is_nil(first.tensor)
  end)

  it("knows where the tensor that is copied was made", function()
    local made
    local trace = placement.trace(function()
      local x = lt.randn{3}; made = this_line()
      return x:to "cuda"
    end)
    ends_with(of_kind(trace, "copy")[1].tensor, made)
  end)

  it("distinguishes explicit from implicit copies", function()
    local x = lt.randn({4}, {device = "cuda"})
    local calls = {
      {true, function() return x:sum():item() end}, {true, function() return x:totable() end},
      {true, function() return lt.zeros(4):copy_(x) end},
      {true, function() return select(2, pcall(x.cpu, x)) end},
      {true, function() return lt.nn.Linear(2, 2):to "cuda" end},
      {true, function() return lt.tensor({1, 2}, {device = "cuda"}) end},
      {false, function() return tostring(x) end},
      {false, function() return x[lt.tensor{1, 2}] end},
      {false, function() return x[1] > x[2] end},
      {false, function() return lt.tensor({x[1], 2}, {device = "cpu"}) end},
      {false, function() return ("%s"):format(x) end},
    }
    for i, call in ipairs(calls) do
      local trace = placement.trace(function() local _ = call[2]() end)
      local copies = of_kind(trace, "copy")
      assert.is_true(#copies > 0, "no copy in call " .. i)
      for _, e in ipairs(copies) do
        assert.equal(call[1], e.explicit, ("call %d: %s"):format(i, e.op))
      end
    end
  end)

  it("knows waits, pinned memory and asynchronous copies", function()
    local x = lt.randn{100}:pin_memory()
    local trace = placement.trace(function()
      local _ = x:to("cuda", {non_blocking = true})
      lt.cuda.synchronize()
    end)
    local copy, sync = of_kind(trace, "copy")[1], of_kind(trace, "sync")[1]
    assert.is_false(copy.blocking)
    assert.is_true(copy.pinned)
    assert.same({"synchronize", "cuda:0"}, {sync.op, sync.to})
  end)

  it("knows that the size of a mask's selection blocks the host", function()
    local x = lt.ones({4}, {device = "cuda"})
    for op, select in pairs {index = function() local y = x[x:gt(0)]; return y end,
      nonzero = function() local y = x:nonzero(); return y end} do
      local waits = of_kind(placement.trace(select), "sync")
      assert.same({1, op, "cuda:0"}, {#waits, waits[1] and waits[1].op, waits[1] and waits[1].to})
    end
    placement.guard("disallow_explicit", function() return #x[x:gt(0)] end)
  end)

  it("works inside lt.profiler, around it, and in backward", function()
    local w = lt.randn({3}, {requires_grad = true})
    local inner, outer
    local prof = lt.profiler.profile(function()
      outer = placement.trace(function()
        inner = lt.profiler.profile(function() (w:to "cuda"):sum():backward() end)
      end)
    end)
    local copies = of_kind(outer, "copy")
    assert.same({"cpu", "cuda:0", "cuda:0", "cpu"},
      {copies[1].from, copies[1].to, copies[2].from, copies[2].to})
    assert.equal("backward", copies[2].op)
    for _, p in ipairs {prof, inner} do
      local count = 0
      for e in p:events() do count = count + (e.kind == "copy" and 1 or 0) end
      assert.equal(2, count)
    end
  end)

  it("adds up alike copies in its table, at most as wide as asked", function()
    local x = lt.randn{256}
    local trace = placement.trace(function()
      for _ = 1, 5 do local _ = x:to "cuda" end
    end)
    local text = trace:table()
    assert.is_truthy(text:find("cpu ?%-> ?cuda:0 +5 +5.0 KiB"), text)
    assert.is_truthy(text:find("5 copies, 5.0 KiB, 5 blocking", 1, true), text)
    for _, width in ipairs {40, 120} do
      for line in trace:table(width):gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) <= width, line)
      end
    end
    assert.same({5, 5120, 5, 0}, {trace:totals().copies, trace:totals().bytes,
      trace:totals().blocking, trace:totals().implicit})
  end)

  it("exports JSON of the Trace Event Format", function()
    local trace = placement.trace(function() return lt.ones{2}:to "cuda":sum():item() end)
    local path = os.tmpname()
    trace:export(path)
    local file <close> = assert(io.open(path))
    local text = file:read "a"
    os.remove(path)
    assert.is_truthy(text:find('"traceEvents":[', 1, true))
    assert.is_truthy(text:find('"name":"cpu -> cuda:0"', 1, true), text)
    assert.is_truthy(text:find('"name":"cuda:0 -> cpu"', 1, true), text)
    fails({"trace:export", "'path', got 5"}, trace.export, trace, 5)
    fails({"trace:export", "cannot write"}, trace.export, trace, "/no/such/folder/t.json")
  end)

  it("says how many events there was no room for", function()
    local listener <close> = require("lutra.placement.event_reader").new(5)
    local x = lt.ones{2}
    for _ = 1, 10 do x = x * 2 end
    local trace = require("lutra.placement.trace").new(listener)
    assert.is_true(#trace.events <= 5 and #trace.events > 0) -- those of composites are left out
    assert.is_true(trace.dropped >= 5)
  end)

  it("lets errors through and hears nothing more", function()
    fails("placement.trace", placement.trace, 5)
    fails("boom", placement.trace, function() error "boom" end)
    assert.is_nil(lt.ones{2}:to("cuda").grad)
    local trace = placement.trace(function() end)
    assert.equal(0, #trace.events)
  end)
end)

describe("an error about devices", function()
  local nn, device = lt.nn, "cuda:0"

  -- That fn(...) fails, and says so in its first line.
  local function says(expected, fn, ...)
    local text = fails("cannot use tensors on different devices", fn, ...)
    local line = text:match "different devices: ([^\n]*\n[^\n]*)"
    assert.is_truthy(line:find(expected, 1, true), ("%q is not in: %s"):format(expected, text))
    return text
  end

  it("names local variables, parameters, upvalues and globals, and the fix", function()
    local x, w = lt.ones{2, 3}, lt.ones{2, 3, device = device}
    local text = says('x is on "cpu", w is on "cuda:0"\nhint: x:to(w.device)',
      function() local y = x + w; return y end)
    assert.is_truthy(text:find("x has the shape {2, 3}, w {2, 3}", 1, true), text)
    says('b is on "cuda:0", a is on "cpu"\nhint: a:to(b.device)',
      function(a, b) local y = b * a; return y end, x, w)
    rawset(_G, "global_x", x)
    says('global_x is on "cpu", y is on "cuda:0"\nhint: global_x:to(y.device)',
      load("local y = ...; local z = global_x + y", "=tests/spec/placement/placement_spec.lua"), w)
    rawset(_G, "global_x", nil)
    coroutine.wrap(function(inside)
      says('inside is on "cpu"', function() local y = inside + w; return y end)
    end)(x)
    says('z is on "cpu"', function(y) -- the newest of several
      local z = y
      local sum = z + w
      return sum
    end, x)
  end)

  it("names fields, and of what has no name the tensor that it is a view of", function()
    local batch = {lt.ones{2}, labels = lt.ones{2, device = device}}
    says('batch[1] is on "cpu", batch.labels is on "cuda:0"\nhint: '
      .. 'batch[1]:to(batch.labels.device)',
      function() local y = batch[1] + batch.labels; return y end)
    local x = lt.ones{2, 3}
    local text = says('a view of x is on "cpu", batch.labels is on "cuda:0"\nhint: '
      .. 'x:to(batch.labels.',
      function() local y = x[{{}, 1}] + batch.labels; return y end)
    assert.is_truthy(text:find("a view of x has the shape {2}, batch.labels {2}", 1, true), text)
    says('self is on "cpu", batch.labels is on "cuda:0"\nhint: self:to(batch.labels.device)',
      function() local y = (batch[1] * 2) + batch.labels; return y end)
    says('batch.labels is on "cuda:0", other is on "cpu"\nhint: other:to(batch.labels.device)',
      function() local y = batch.labels + (batch[1] * 2); return y end)
    says('tensors[1] is on "cpu", tensors[2] is on "cuda:0"',
      function() return (lt.cat{batch[1] * 2, batch.labels * 2}) end)
  end)

  it("names parameters and moves their module", function()
    local x = lt.ones{2, 4, device = device}
    local net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    local text = says('x is on "cuda:0", net[1].weight is on "cpu"\nhint: net:to(x.device)',
      function() local y = net(x); return y end)
    assert.is_nil(text:find "net.1.weight") -- not twice
    says('net[2].weight is on "cpu"\nhint: net:to(x.device)',
      function() local y = x:matmul(net[2].weight:t()); return y end)
  end)

  it("inside forward names self and the parameter, or says that it is none", function()
    local Scaled = nn.Module:extend "Scaled"
    function Scaled:init()
      self.fc = nn.Linear(4, 4)
      self.mask = lt.ones{4}
    end
    function Scaled:forward(v)
      v = self.fc(v)
      v = v * self.mask
      return v
    end
    local model, x = Scaled(), lt.ones{2, 4, device = device}
    local text = says('v is on "cuda:0", self.fc.weight is on "cpu"\nhint: model:to(v.device)',
      function() local y = model(x); return y end)
    assert.is_truthy(text:find('\n  model.fc.weight is on cpu', 1, true), text)
    model:to(device)
    says('v is on "cuda:0", self.mask is on "cpu"\nhint: self.mask:to(v.device)',
      function() local y = model(x); return y end)
  end)

  it("says where they were made or moved while a trace is on", function()
    local made, moved
    local function add()
      local x = lt.randn{3}; made = this_line()
      local w = lt.randn{3}:to "cuda"; moved = this_line()
      local sum = x + w
      return sum
    end
    local text = fails('different devices: x is on "cpu" (made at', placement.trace, add)
    local first, second = text:match(
      'x is on "cpu" %(made at (%S+)%), w is on "cuda:0" %(moved at (%S+)%)\nhint: '
        .. 'x:to%(w.device%)\n')
    ends_with(assert(first, text), made)
    ends_with(assert(second, text), moved)
    says('x is on "cpu", w is on "cuda:0"\nhint: ', add)
    local net
    fails('net.weight is on "cpu" (made at', placement.trace, function()
      net = nn.Linear(3, 2)
      local y = net(lt.randn{4, 3, device = device})
      return y
    end)
    fails('x is on "cpu" (made at', placement.guard, "disallow", placement.trace, add)
    assert.is_truthy(placement.lint(add).error:find('w is on "cuda:0" (moved at', 1, true))
  end)
end)

describe("the virtual clock", function()
  local script = [[
    local lt = require "lutra"
    local x = lt.ones{1000000}
    local trace = lt.placement.trace(function()
      local y = x:to "cuda"
      for _ = 1, 3 do y = y * 2 end
      local p = lt.ones{1000000}:pin_memory():to("cuda", {non_blocking = true})
      local s = y:sum():item()
      lt.cuda.synchronize()
    end)
    for _, e in ipairs(trace.events) do
      if e.kind ~= "alloc" and e.kind ~= "free" then
        print(e.kind, e.virtual, ("%.3f %.3f"):format(e.begin, e.finish))
      end
    end]]
  local function run(what)
    local path = program.file(script)
    local result = program.shell(("env LUTRA_EMULATE=%s %s %s"):format(what,
      program.quote(program.program), program.quote(path)))
    os.remove(path)
    assert.equal(0, result.status, result.err)
    return result.out
  end

  it("gives the same times on every run, by the link", function()
    if os.getenv "LUTRA_TEST_GPU" then return pending "emulated links only" end
    local first = run "cuda:2,link=pcie4"
    assert.equal(first, run "cuda:2,link=pcie4")
    assert.are_not.equal(first, run "cuda:2,link=pcie3")
    assert.is_truthy(first:find "copy\ttrue")
    -- 4 MB, not pinned, at half of 31.508 GB/s, after 10 us of latency and 5 us of queueing
    local begin, finish = first:match "copy\ttrue\t(%S+) (%S+)"
    assert.is_true(math.abs(finish - begin - (10 + 4e6 / 15754)) < 0.01, first)
    assert.is_truthy(run "cuda:2":find "copy\tnil")
  end)

  it("is exported in lanes without overlap, while streams overlap", function()
    if os.getenv "LUTRA_TEST_GPU" then return pending "emulated links only" end
    local path, json = program.file([[
      local lt = require "lutra"
      local x = lt.ones{1000, 1000}:pin_memory()
      local y = lt.ones{1000, 1000, device = "cuda"}
      lt.cuda.with_stream(lt.cuda.Stream(), function()
        for _ = 1, 3 do local _ = x:to("cuda", {non_blocking = true}) * 2 end
      end)
      for _ = 1, 30 do y = y * 2 end
      lt.cuda.synchronize()]]), os.tmpname()
    local result = program.shell(("env LUTRA_EMULATE=cuda:2,link=pcie4 %s --trace %s %s"):format(
      program.quote(program.program), json, program.quote(path)))
    os.remove(path)
    assert.equal(0, result.status, result.err)
    local lanes, names = {}, {}
    for line in io.lines(json) do
      local lane = line:match '"pid":%d+,"tid":%d+'
      local name = line:match '"thread_name","args":{"name":"([^"]+)"'
      if name then names[lane] = name end
      local first, length = line:match '"ts":([%d.]+),"dur":([%d.]+)'
      if first and tonumber(length) > 0 then
        first, length = math.floor(first * 1000 + 0.5), math.floor(length * 1000 + 0.5)
        local span = lanes[lane] or {first = first, last = 0}
        assert.is_true(first >= span.last, line) -- of this script none are nested
        lanes[lane], span.last = span, first + length
      end
    end
    os.remove(json)
    local copies, ops
    for lane, span in pairs(lanes) do
      if names[lane] == "copies of stream 1" then copies = span end
      if names[lane] == "ops" and lane:find '"pid":2' then ops = span end
    end
    assert.is_true(copies.first < ops.last and ops.first < copies.last)
  end)

  it("expects a known link", function()
    local result = program.run "--emulate cuda:2,link=string -e 'x = 1'"
    assert.equal(2, result.status)
    assert.is_truthy(result.err:find('expected a link (pcie3', 1, true))
  end)
end)
