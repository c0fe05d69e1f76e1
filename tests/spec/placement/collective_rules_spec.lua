-- The rules of the lint about collectives, D1 to D4, from recorded lists of events.

local assert = require "luassert"
local collective_record = require "lutra.placement.collective_record"
local collectives = require "lutra.placement.collectives"
local Findings = require "lutra.placement.findings"

-- Builders of events, in the order of a program. The time goes on by 10 us with each.
local time, works
local function event(e)
  e.begin, e.finish, e.depth, time = time, time + 10, 0, time + 10
  return e
end
local function op(name) return event{kind = "op", name = name, kernel = true, to = "cpu"} end
local function backward() return event{kind = "region", name = "backward", to = "cpu"} end
local function copy(from, to, digest, line, bytes)
  return event{kind = "copy", op = from == "cpu" and "cuda" or "cpu", from = from, to = to,
    bytes = bytes or 400, digest = digest, where = "train.lua:" .. line, explicit = true,
    direct = true, blocking = true, kernels = 0}
end
-- A collective; options: now, op (the function that the program called), bytes, digest, direct
-- (false where the library calls lt.distributed).
local function call(name, line, options)
  options = options or {}
  works = works + 1
  local now = options.now
  if now == nil then now = true end
  return event{kind = "collective", name = name, op = options.op or name, to = "cpu",
    bytes = options.bytes or 400, digest = options.digest, direct = options.direct ~= false,
    where = "train.lua:" .. line,
    comm = {size = 2, rank = 0, group = 0, sequence = works, tag = 0, sent = 400, received = 400,
      link_bytes = 400, now = now, work = works}}
end
local function wait(of)
  return event{kind = "sync", name = of.name, op = "wait", to = of.to, bytes = 0,
    where = "train.lua:99", comm = {size = 2, work = of.comm.work}}
end

-- Returns the findings in a list of events; `dropped` is the number of events without room.
local function findings_of(events, dropped)
  local exchanges, pair = collective_record.new(), collectives.new()
  for _, e in ipairs(events) do
    pair(e)
    exchanges:add(e)
  end
  return Findings.of{copies = {}, elements = {}, clocks = {}, misplaced_states = {},
    collectives = exchanges.list, dropped = dropped or 0}
end

-- Appends events to a list; `add` gets them one at a time.
local function program(fill)
  local list = {}
  fill(function(e)
    list[#list + 1] = e
    return e
  end)
  return list
end

-- Asserts that there is one finding of a rule at a line, whose text has these parts.
local function finds(rule, line, parts, events)
  local findings = findings_of(events)
  local text = tostring(findings)
  assert.equal(1, #findings, text)
  assert.same({rule, "train.lua:" .. line}, {findings[1].rule, findings[1].where}, text)
  for _, part in ipairs(parts) do assert.is_truthy(text:find(part, 1, true), text) end
end

local function finds_nothing(events)
  assert.equal("no findings", tostring(findings_of(events)))
end

-- A step of training: forward, backward, then reduce(add); and the optimizer.
local function steps(count, reduce)
  return program(function(add)
    for _ = 1, count do
      for _ = 1, 6 do add(op "mm") end
      add(backward())
      reduce(add)
      for _ = 1, 6 do add(op "sgd") end
    end
  end)
end

describe("rules about collectives", function()
  before_each(function() time, works = 0, 0 end)

  it("D1: many small collectives, one after another", function()
    local events = program(function(add)
      for _ = 1, 12 do
        add(wait(add(call("all_reduce", 7))))
        add(op "div")
      end
    end)
    finds("D1", 7, {"all_reduce is called 12 times", "400 B each", "lt.cat"}, events)
    finds("D1", 8, {"broadcast is called 8 times"}, program(function(add)
      for _ = 1, 8 do add(call("broadcast", 8)) end
    end))
  end)

  it("D1: not large ones, few, those with work between them, and not those of the library",
    function()
      local function repeated(n, bytes, ops, direct)
        return program(function(add)
          for _ = 1, n do
            add(call("all_reduce", 7, {bytes = bytes, direct = direct}))
            for _ = 1, ops do add(op "mm") end
          end
        end)
      end
      finds_nothing(repeated(20, 1 << 20, 0))
      finds_nothing(repeated(7, 400, 0))
      finds_nothing(repeated(20, 400, 10))
      finds_nothing(repeated(20, 400, 0, false))
    end)

  it("D2: a work without a wait", function()
    local events = program(function(add)
      add(call("all_reduce", 3, {now = false}))
      add(call("all_reduce", 3, {now = false}))
      add(wait(add(call("all_reduce", 4, {now = false}))))
    end)
    finds("D2", 3, {"all_reduce has no wait() (2 times)", "work:wait()"}, events)
    assert.equal(0, #findings_of(events, 10)) -- the wait may not have been recorded
    finds("D2", 5, {"isend has no wait() (once)"},
      {call("send", 5, {now = false, op = "isend"})})
    finds_nothing{call("all_reduce", 3, {now = false, direct = false})}
    finds_nothing{call("all_reduce", 3)}
  end)

  it("D3: gradients that are reduced one by one", function()
    local function reduce(add)
      for _ = 1, 4 do
        add(wait(add(call("all_reduce", 12))))
        add(op "div_")
      end
    end
    finds("D3", 12, {"12 times after backward", "DistributedDataParallel"}, steps(3, reduce))
    finds_nothing(steps(1, reduce)) -- four gradients, once
    finds_nothing(steps(10, function(add) -- in one flat tensor
      add(call("all_reduce", 12))
    end))
    finds_nothing(steps(3, function(add) -- started together
      local list = {}
      for i = 1, 4 do list[i] = add(call("all_reduce", 12, {now = false})) end
      for i = 1, 4 do add(wait(list[i])) end
    end))
  end)

  it("D3: a loss that is averaged and printed in each step is no finding", function()
    finds_nothing(steps(30, function(add)
      add(call("all_reduce", 20, {bytes = 4}))
      add(op "div")
      add(copy("cuda:0", "cpu", 5, 21, 4))
    end))
  end)

  it("D4: a tensor of a device that is reduced by way of the host", function()
    local function by_host(times, back)
      return program(function(add)
        for i = 1, times do
          add(copy("cuda:0", "cpu", 1000 + i, 4))
          add(wait(add(call("all_reduce", 5, {digest = 1000 + i}))))
          if back then add(copy("cpu", "cuda:0", 2000 + i, 6)) end
          for _ = 1, 10 do add(op "mm") end
        end
      end)
    end
    finds("D4", 5, {"all_reduce of 400 B is called on a copy from cuda:0", "3 times", "NCCL"},
      by_host(3, true))
    assert.near(60e-6, findings_of(by_host(3, true))[1].cost, 1e-9) -- of six copies
    finds_nothing(by_host(3, false)) -- only read on the host
    finds_nothing(by_host(2, true))
    finds_nothing(program(function(add) -- data of the host
      for i = 1, 5 do
        add(copy("cuda:0", "cpu", 1000 + i, 4))
        add(call("all_reduce", 5, {digest = 7}))
        add(copy("cpu", "cuda:0", 2000 + i, 6))
        for _ = 1, 10 do add(op "mm") end
      end
    end))
  end)
end)
