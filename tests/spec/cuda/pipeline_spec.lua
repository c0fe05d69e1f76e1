-- Two devices at work at the same time: copies between them, a model cut in two by hand, and what a
-- link's clock says of it.

local devices = require "device_support"
local program = require "program_support"

-- Each `test` begins with this: run(f) gives the copies and kernels of f(), with their times.
local seen = [[
  local lt = require "lutra"
  local cuda = lt.cuda
  local function run(f)
    local list = {}
    for _, e in ipairs(lt.placement.trace(f).events) do
      if e.kind == "copy" or e.kind == "op" and e.finish > e.begin then list[#list + 1] = e end
    end
    return list
  end
  local x = lt.ones{1024, 1024, device = "cuda:0"} -- more work than putting it into a queue
]]

local function passes(environment, text)
  local result = devices.script(text, environment)
  assert.equal(0, result.status, result.err)
  return result.out
end

-- The tests that say themselves on which devices they run.
local function describe_the_emulated()
  local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

  local test = devices.emulated_it(_ENV)
  local function on(link, text) return passes("LUTRA_EMULATE=cuda:2," .. link, seen .. text) end

  describe("the virtual time of two devices", function()
    test("has copies between what they come after and what they hold up, on both", function()
      on("link=pcie4", [[
        local e = run(function()
          local y = x + 1
          local there = y:to{device = "cuda:1", non_blocking = true}
          return there + 1, y + 1
        end)
        assert(#e == 4 and e[2].kind == "copy")
        assert(e[2].begin == e[1].finish, "the copy waits for what it copies")
        assert(e[3].begin == e[2].finish, "it has arrived when it is used")
        assert(e[4].begin == e[2].finish, "the source's stream waits until it was read")]])
    end)

    test("has concurrent streams, except where they synchronize", function()
      on("link=pcie4", [[
        local side = cuda.Stream(0)
        local function beside(f) return cuda.with_stream(side, f) end
        local function more() return x + 1, x + 2 end
        local e = run(function() return beside(more), more() end)
        assert(e[3].begin < e[1].finish, "two streams")
        e = run(function()
          beside(more)
          local event = side:record_event()
          beside(more)
          cuda.current_stream(0):wait_event(event)
          more()
        end)
        assert(e[5].begin == e[2].finish and e[5].begin < e[4].finish, "after the event, no later")
        e = run(function()
          beside(more)
          local event = side:record_event()
          beside(more)
          event:synchronize()
          more()
        end)
        assert(e[5].begin >= e[2].finish and e[5].begin < e[4].finish, "the host blocks as long")
        e = run(function()
          beside(more)
          cuda.current_stream(0):wait_stream(side)
          more()
        end)
        assert(e[3].begin == e[2].finish, "after the stream")]])
    end)

    test("counts the bytes of a copy twice where it goes through the host", function()
      -- links.def: bytes a microsecond between devices, and between the host and a device
      for link, rates in pairs {pcie4 = {31508, 31508}, nvlink = {450000, 63015}} do
        for peer, times in pairs {on = 1, off = 2} do
          on(("link=%s,peer=%s"):format(link, peer), ([[
            local trace = lt.placement.trace(function() return x:to "cuda:1" end)
            local text = tostring(trace)
            for _, e in ipairs(trace.events) do
              if e.kind == "copy" then
                local expected = 10 + %d * 4 * 2^20 / %d
                assert(math.abs(e.finish - e.begin - expected) < 1e-9, e.finish - e.begin)
                assert(e.by_host == %s)
                assert((text:find("through the host", 1, true) ~= nil) == e.by_host, text)
              end
            end]]):format(times, rates[times], times == 2))
        end
      end
    end)

    test("is shorter for a pipeline than for one device after the other", function()
      on("link=pcie4", [[
        local PIECES, ROWS = 4, 64
        local function work(h) for _ = 1, 4 do h = h + 1 end return h end
        local function first(piece) return work(piece):narrow(1, 1, ROWS) end
        local function second(h) return work(h["repeat"](h, 1024 // ROWS, 1)) end
        local function pieces(between)
          for _ = 1, PIECES do
            second(first(x):to{device = "cuda:1", non_blocking = true})
            between()
          end
        end
        -- How long it took, and how long the work on cuda:0 and all of it is.
        local function length(f)
          local last, there, sum = 0, 0, 0
          for _, e in ipairs(run(f)) do
            last, sum = math.max(last, e.finish), sum + e.finish - e.begin
            if e.kind == "op" and e.to == "cuda:0" then there = there + e.finish - e.begin end
          end
          return last, there, sum
        end
        local beside, there, sum = length(function() pieces(function() end) end)
        -- While cuda:1 is at a piece, cuda:0 is at the next one, which it is done with sooner. So
        -- of its work only that for the first piece takes time.
        local expected = sum - there * (PIECES - 1) / PIECES
        -- a launch, before anything runs
        assert(math.abs(beside - expected) < 5.1, beside - expected)
        local serial = length(function() pieces(function() cuda.synchronize(1) end) end)
        assert(serial > sum)
        local again = length(function() pieces(function() end) end)
        assert(again == beside)]])
    end)
  end)

  describe("the examples of several devices", function()
    test("are right when every piece of work starts late, in memory full of NaN", function()
      for _, name in ipairs {"22_several_gpus", "23_data_parallel", "24_pipeline"} do
        local result = program.shell(("env LUTRA_EMULATE=cuda:2 LUTRA_EMULATE_DELAY=200 "
          .. "LUTRA_EMULATE_POISON=1 %s %sexamples/placement/%s.lua"):format(
          program.quote(program.program), root, name))
        assert.equal(0, result.status, result.err)
        assert.is_truthy(result.out:find("\nok: ", 1, true), result.out)
      end
    end)

    test("draw a pipeline that takes less than its work", function()
      local result = program.shell(("env LUTRA_EMULATE=cuda:2,link=pcie4 %s %s"):format(
        program.quote(program.program), root .. "examples/placement/24_pipeline.lua"))
      assert.equal(0, result.status, result.err)
      local alone = tonumber(result.out:match "one device after the other: (%d+) micro")
      local total = tonumber(result.out:match "pipeline: (%d+) micro")
      assert.is_true(total < alone, result.out)
      local _, lanes = result.out:gsub("\ncuda:[01] |[.#>]+|", "")
      assert.equal(4, lanes)
    end)
  end)
end

if devices.elsewhere("cuda/pipeline", _ENV, {emulate = {"cuda:2", "cuda:2,peer=off"}}) then
  return describe_the_emulated()
end

local lt = require "lutra"

local nn, optim = lt.nn, lt.optim
local fails = devices.fails

if lt.cuda.device_count() < 2 then
  describe("two devices", function()
    it("are tested where there are two", function() pending "one device" end)
  end)
  return
end

describe("copies between devices", function()
  local emulated = os.getenv "LUTRA_EMULATE" or ""

  it("are the same with and without access of one to the other's memory", function()
    if emulated ~= "" then
      assert.equal(not emulated:find "peer=off", lt.cuda.can_device_access_peer(0, 1))
    end
    for _, dtype in ipairs {"float32", "bfloat16", "int64", "bool"} do
      local x = (lt.arange(1, 6000):reshape(60, 100) % 7):to(dtype)
      for _, there in ipairs {x, x:t(), x:narrow(1, 2, 58):narrow(2, 3, 50), x:expand(2, 60, 100),
        x:narrow(1, 1, 0)} do
        for _, later in ipairs {false, true} do
          local away = there:to "cuda:0":to{device = "cuda:1", non_blocking = later}
          assert.equal("cuda:1", away.device)
          assert.is_true(lt.equal(there, away:to{device = "cuda:0", non_blocking = later}:cpu()))
          local target = lt.zeros(100, 60, {dtype = dtype, device = "cuda:0"}):t()
          assert.is_true(lt.equal(x, target:copy_(x:to "cuda:1"):cpu()))
        end
      end
    end
  end)

  it("wait for what writes the source, and keep it until it was read", function()
    passes("LUTRA_EMULATE_DELAY=200", [[
      local lt = require "lutra"
      for i = 1, 20 do
        local x = lt.full({1000}, i, {device = "cuda:0"}) + 1
        local y = x:to{device = "cuda:1", non_blocking = true}
        x:fill_(-1)
        x = nil
        collectgarbage()
        lt.zeros{1000, device = "cuda:0"}
        assert(y:eq(i + 1):all():item())
      end]])
  end)

  it("lead gradients back to where each tensor is, over streams that wait for events", function()
    passes("LUTRA_EMULATE_DELAY=200 LUTRA_EMULATE_POISON=1", [[
      local lt = require "lutra"
      local cuda = lt.cuda
      local copying = {cuda.Stream(0), cuda.Stream(1)}
      local function send(h)
        copying[1]:wait_stream(cuda.current_stream(0))
        local there = cuda.with_stream(copying[1], cuda.with_stream, copying[2], function()
          return h:to{device = "cuda:1", non_blocking = true}
        end)
        cuda.current_stream(1):wait_event(copying[2]:record_event())
        there:record_stream(cuda.current_stream(1))
        return there
      end
      for i = 1, 10 do
        local a = lt.full({500}, i + 0.0, {requires_grad = true}) -- on the host
        local b = lt.full({500}, 2.0, {device = "cuda:0", requires_grad = true})
        local c = lt.full({500}, 3.0, {device = "cuda:1", requires_grad = true})
        local y = send(a:to "cuda:0" * b * b) * c
        y:sum():backward()
        assert(a.grad.device == "cpu" and a.grad:eq(12):all():item())       -- b^2 c
        assert(b.grad.device == "cuda:0" and b.grad:eq(12 * i):all():item()) -- 2 a b c
        assert(c.grad.device == "cuda:1" and c.grad:eq(4 * i):all():item())  -- a b^2
      end]])
  end)
end)

describe("a model cut over two devices by hand", function()
  it("trains as on one device, and says where its parts are", function()
    local function train(there)
      lt.manual_seed(5)
      local net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)):to "float64"
      net[1]:to "cuda:0"
      net[3]:to(there)
      local sgd = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
      for _ = 1, 5 do
        local x = lt.randn(6, 5, {dtype = "float64"}):to "cuda:0"
        sgd:zero_grad()
        net[3](net[2](net[1](x)):to(there)):pow(2):mean():backward()
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        sgd:step()
      end
      return net
    end
    local one, two = train "cuda:0", train "cuda:1"
    assert.equal("cuda:0 cuda:1", table.concat(two:devices(), " "))
    for i = 1, 3, 2 do -- the same kernels on the same numbers
      assert.is_true(lt.equal(one[i].weight:cpu(), two[i].weight:cpu()))
    end
    fails({'"1.weight" is on "cuda:0"', '"3.weight" is on "cuda:1"'}, two.device, two)
    local x = lt.ones{1, 5, device = "cuda:0", dtype = "float64"}
    fails({"cuda:0", "cuda:1"}, two, x)
    fails({"DataParallel", 'expected all parameters and buffers on "cuda:0", the first of '
      .. 'device_ids, got "3.weight" on "cuda:1"'}, nn.DataParallel(two), x)
  end)
end)
