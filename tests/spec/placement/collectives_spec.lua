-- Collectives and messages in traces, statistics, timelines and the virtual clock, from recorded
-- lists of events.

local assert = require "luassert"
local clock = require "lutra.placement.clock"
local collectives = require "lutra.placement.collectives"
local lanes = require "lutra.internal.plot.lanes"
local Trace = require "lutra.placement.trace"

local link = {name = "test", host = 100, peer = 1000, latency = 10, launch = 5}

-- Returns an event of a collective on the CPU; `comm` replaces members of its table.
local function call(name, first, last, comm, members)
  local e = {kind = "collective", name = name, op = name, to = "cpu", device = "cpu", depth = 0,
    bytes = 4000, explicit = true, where = "t.lua:1", begin = first, finish = last,
    comm = {size = 4, rank = 0, group = 0, sequence = 1, tag = 0, sent = 4000, received = 4000,
      link_bytes = 6000, now = true, work = "w1"}}
  for key, value in pairs(comm or {}) do e.comm[key] = value end
  for key, value in pairs(members or {}) do e[key] = value end
  return e
end

local function wait(name, first, last, comm, members)
  local e = call(name, first, last, comm, members)
  e.kind, e.comm.now = "sync", false
  return e
end

-- Returns a trace of a list of events.
local function trace_of(events, of_link)
  local i, times, pair = 0, clock.new(of_link), collectives.new()
  return Trace.new{link = of_link, dropped = function() return 0 end, events = function()
    return function()
      i = i + 1
      local e = events[i]
      if e then
        times(e)
        pair(e)
      end
      return e
    end
  end}
end

describe("a trace of collectives", function()
  it("counts a call and its wait once, and knows how long it was blocked on others", function()
    local trace = trace_of{call("all_reduce", 0, 10),
      wait("all_reduce", 10, 110, {arrived = 60000, finished = 100000})}
    local sums = trace:collectives()
    assert.equal(1, #sums)
    local s = sums[1]
    assert.same({"all_reduce", 0, 4, "cpu", 1, 4000, 4000, 6000}, {s.name, s.group, s.size,
      s.device, s.count, s.sent, s.received, s.link_bytes})
    assert.near(100e-6, s.time, 1e-12) -- from the call to the end of the transfer
    assert.near(60e-6, s.waiting, 1e-12)
    assert.near(6000 / 40e-6, s.bandwidth, 1)
    local totals = trace:totals()
    assert.same({1, 0, 4000, 4000}, {totals.collectives, totals.syncs, totals.sent,
      totals.received})
    assert.near(110e-6, totals.time, 1e-12)
    assert.near(60e-6, totals.waiting, 1e-12)
  end)

  it("counts an asynchronous call as blocked from its wait on", function()
    for first, waiting in pairs {[10] = 50, [45] = 15, [70] = 0} do
      local trace = trace_of{call("all_reduce", 0, 2, {now = false}),
        wait("all_reduce", first, 110, {arrived = 60000, finished = 100000})}
      local s = trace:collectives()[1]
      assert.near(waiting * 1e-6, s.waiting, 1e-12)
      assert.near(100e-6, s.time, 1e-12)
      assert.near(6000 / 40e-6, s.bandwidth, 1)
    end
    local open = trace_of{call("all_reduce", 0, 2, {now = false, arrived = 60000})}
    assert.equal(0, open:totals().waiting)
  end)

  it("lists asynchronous calls and their waits apart, and each group", function()
    local trace = trace_of{call("all_reduce", 0, 1, {now = false}),
      call("all_reduce", 1, 2, {now = false, work = "w2", sequence = 2}),
      call("all_gather", 2, 3, {group = 3, size = 2, work = "w3"}),
      wait("all_gather", 3, 13, {work = "w3"}), wait("all_reduce", 13, 20),
      wait("all_reduce", 20, 30, {work = "w2"})}
    assert.same({3, 2}, {trace:totals().collectives, trace:totals().syncs})
    local text = trace:table(100)
    assert.is_truthy(text:find("t%.lua:1 +all_reduce +4 ranks +2 .* cpu, async"), text)
    assert.is_truthy(text:find("t%.lua:1 +all_gather +2 ranks of group 3 +1"), text)
    assert.is_truthy(text:find("wait for all_reduce +2 "), text)
    assert.is_truthy(text:find("\nall_gather +3 +2 +cpu +1 "), text)
    assert.is_truthy(text:find("\nall_reduce +world +4 +cpu +2 "), text)
    assert.is_truthy(text:find("3 collectives, 11.7 KiB sent", 1, true), text)
    assert.equal(2, #trace:collectives())
  end)

  it("does not take the end of a wait for that of a transfer, where only a stream waits", function()
    local device = {to = "cuda:0"}
    local e = call("all_reduce", 0, 10, {}, device)
    local trace = trace_of{e, wait("all_reduce", 10, 12, {}, device)}
    assert.is_nil(e.done)
    local s = trace:collectives()[1]
    assert.same({1, 6000}, {s.count, s.link_bytes})
    assert.is_nil(s.time)
    assert.is_nil(s.bandwidth)
    assert.is_truthy(trace:table():find "cuda:0 +1 +3.9 KiB +3.9 KiB +0 ns *\n", trace:table())
    assert.near(12e-6, trace:totals().time, 1e-12) -- of the host
  end)

  it("keeps messages of one work together, and not those of a work that was freed", function()
    local function message(name, work)
      return call(name, 0, 0, {work = work, peer = 1, now = false})
    end
    local batch = {message("send", "w1"), message("recv", "w1"), wait("send", 1, 2),
      message("send", "w1"), {kind = "sync", to = "cpu", begin = 0, finish = 0, op = "event",
        bytes = 0}, message("send", "w1"), wait("send", 3, 4)}
    for _, e in ipairs(batch) do
      if e.comm then e.comm.sequence = nil end
    end
    local trace = trace_of(batch)
    assert.equal(2, #batch[3].calls)
    assert.is_nil(batch[4].waited)
    assert.equal(batch[7], batch[6].waited)
    assert.is_truthy(trace:table():find "send +rank 0 %-> rank 1 +3 ", trace:table())
    assert.is_truthy(trace:table():find "recv +rank 1 %-> rank 0 +1 ", trace:table())
  end)

  it("has a lane of its own, in which calls follow each other", function()
    local trace = trace_of{call("all_reduce", 0, 1, {now = false}),
      call("all_reduce", 1, 2, {now = false, work = "w2"}),
      wait("all_reduce", 2, 20), wait("all_reduce", 20, 30, {work = "w2"})}
    local picture = lanes.read(trace.events)
    local lane = picture.lanes[2]
    assert.equal("cpu comm", lane.name)
    assert.same({"ranks", 0, 20, 20, 30}, {lane.spans[1].kind, lane.spans[1].begin,
      lane.spans[1].finish, lane.spans[2].begin, lane.spans[2].finish})
  end)

  it("says nothing about collectives where there are none", function()
    local trace = trace_of{}
    assert.equal(0, trace:totals().collectives)
    assert.same({}, trace:collectives())
    assert.equal("no copies between devices, no waits", trace:table())
  end)
end)

describe("the virtual clock", function()
  it("gives a collective the time of a ring over the link between devices", function()
    local e = call("all_reduce", 0, 0, {}, {to = "cuda:0"})
    trace_of({e}, link)
    assert.equal(6 * 10 + 6000 / 1000, e.done - e.arrived) -- 2 * 3 steps
    assert.same({0, 5}, {e.begin, e.finish}) -- the host only queues it
    local sums = collectives.sums{e}[1]
    assert.equal(0, sums.waiting) -- all ranks call at the same time
    assert.near(6000 / 66e-6, sums.bandwidth, 1)
    local gather = call("all_gather", 0, 0, {link_bytes = 12000}, {to = "cuda:0"})
    trace_of({gather}, link)
    assert.equal(3 * 10 + 12000 / 1000, gather.done - gather.arrived)
  end)

  it("runs collectives beside kernels, after the work before them, and before that after the wait",
    function()
      local function kernel()
        return {kind = "op", kernel = true, name = "mm", op = "mm", to = "cuda:0", depth = 0,
          bytes = 10e6, stream = "s"}
      end
      local device = {to = "cuda:0", stream = "s"}
      local before, e, beside = kernel(), call("all_reduce", 0, 0, {now = false}, device), kernel()
      local w, after = wait("all_reduce", 0, 0, {}, device), kernel()
      trace_of({before, e, beside, w, after}, link)
      assert.equal(before.finish, e.arrived)
      assert.equal(before.finish, beside.begin)
      assert.is_true(e.done > beside.finish)
      assert.equal(e.done, after.begin)
      assert.equal(w.begin, w.finish) -- a stream waits, not the host
    end)

  it("blocks the host on the CPU, and runs the calls of a group one after the other", function()
    local a, b = call("barrier", 0, 0, {now = false, link_bytes = 0}),
      call("all_reduce", 0, 0, {now = false, work = "w2"})
    local w = wait("all_reduce", 0, 0, {work = "w2"})
    trace_of({a, b, w}, link)
    assert.equal(a.done, b.arrived)
    assert.equal(b.done, w.finish)
  end)
end)
