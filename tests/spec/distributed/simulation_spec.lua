-- lt.distributed.simulate: the simulated times of collectives against closed formulas and bounds,
-- the trees, the buckets, and the step.

local lt = require "lutra"
local cluster = require "lutra.distributed.simulation.cluster"
local ring = require "lutra.distributed.simulation.ring"
local tree = require "lutra.distributed.simulation.tree"
local step = require "lutra.distributed.simulation.step"
local Queue = require "lutra.distributed.simulation.event_queue"
local simulate = lt.distributed.simulate
local texts = require "lutra.internal.text"

-- Each GPU is a node of its own: all links are alike, 50 GB/s with 2 microseconds.
local B, LATENCY = 50e9, 2e-6
local function equal_links(count)
  return cluster.new(count, {gpus_per_node = 1, channels = 1, link_bandwidth = 1e15,
    link_latency = 0, network_bandwidth = B, network_latency = LATENCY})
end

-- Nodes of 8 GPUs, one channel: 450 GB/s inside, 50 GB/s between them.
local function nodes(count)
  return cluster.new(count, {gpus_per_node = 8, channels = 1, link_bandwidth = 450e9,
    link_latency = 1e-6, network_bandwidth = 50e9, network_latency = 5e-6})
end

local function from_zero(count)
  local ready = {}
  for i = 1, count do ready[i] = 0 end
  return ready
end

-- Returns the seconds until the last rank is done.
local function last(finish) return cluster.seconds(math.max(table.unpack(finish))) end

local function ring_time(c, bytes) return last(ring(c, bytes, from_zero(c.count))) end
local function tree_time(c, bytes)
  return last(tree.all_reduce(c, bytes, from_zero(c.count), 128 * 1024))
end

-- No all_reduce is faster than this (Patarasuk and Yuan, theorem 1).
local function bound(p, bytes, bandwidth) return 2 * (p - 1) / p * bytes / bandwidth end

describe("the simulated ring", function()
  it("takes 2 (p - 1) (n / p / B + latency) on equal links", function()
    for _, p in ipairs {2, 3, 8, 17, 64, 128} do
      for _, elements in ipairs {p, 1000 * p, 250000 * p} do
        local n = 4 * elements
        local formula = 2 * (p - 1) * (n / p / B + LATENCY)
        local time = ring_time(equal_links(p), n)
        assert.is_true(math.abs(time - formula) < 1e-9, ("%d ranks, %d bytes: %g instead of %g")
          :format(p, n, time, formula))
      end
    end
  end)

  it("is at most one byte per step slower where p does not divide n", function()
    local p, n = 7, 1000001
    local exact = 2 * (p - 1) * (n / p / B + LATENCY)
    local time = ring_time(equal_links(p), n)
    assert.is_true(time >= exact and time <= exact + 2 * (p - 1) / B + 1e-10)
  end)

  it("takes no time for one rank", function()
    assert.equal(0.0, ring_time(equal_links(1), 1000))
    assert.equal(0.0, tree_time(equal_links(1), 1000))
  end)

  it("starts when the last rank is ready", function()
    local p, n = 4, 4000
    local ready = from_zero(p)
    ready[3] = cluster.time(1e-3)
    local formula = 1e-3 + 2 * (p - 1) * (n / p / B + LATENCY)
    local time = last(ring(equal_links(p), n, ready))
    -- Steps before the late rank was needed are done: fewer than all of them remain.
    assert.is_true(time > 1e-3 and time <= formula + 1e-9)
    assert.is_true(time >= formula - (p - 1) * (n / p / B + LATENCY))
  end)

  it("is bounded by its slowest links on nodes of several GPUs", function()
    for _, p in ipairs {16, 64} do
      local n = 64 * 1024 * 1024
      local time = ring_time(nodes(p), n)
      local hops = 2 * (p - 1)
      assert.is_true(time >= bound(p, n, 50e9))
      assert.is_true(time <= hops * (n / p / 50e9 + 5e-6) + 1e-6) -- if all links were the slowest
    end
  end)
end)

describe("the double binary tree", function()
  it("connects all nodes to one root, in both trees", function()
    for count = 1, 130 do
      for number = 1, 2 do
        local roots = 0
        for node = 0, count - 1 do
          local at, depth = node, 0
          while at do
            assert.is_true(at >= 0 and at < count)
            at, depth = tree.parent(number, at, count), depth + 1
            assert.is_true(depth <= math.log(count, 2) + 3, "a cycle, or too deep")
          end
          if not tree.parent(number, node, count) then roots = roots + 1 end
        end
        assert.equal(1, roots)
      end
    end
  end)

  it("has at most two children at a node, and no node with children in both trees", function()
    for count = 2, 130 do
      local children = {{}, {}}
      for number = 1, 2 do
        for node = 0, count - 1 do
          local up = tree.parent(number, node, count)
          if up then children[number][up] = (children[number][up] or 0) + 1 end
        end
        for _, n in pairs(children[number]) do assert.is_true(n <= 2) end
      end
      local both = 0
      for node in pairs(children[1]) do both = both + (children[2][node] and 1 or 0) end
      assert.is_true(both <= count % 2, ("%d nodes: %d"):format(count, both))
    end
  end)

  it("takes one latency per level, up and down, for a few bytes", function()
    for levels, p in pairs {[1] = 2, [2] = 4, [3] = 8, [5] = 32, [7] = 128} do
      local time = tree_time(equal_links(p), 2)
      local formula = 2 * levels * LATENCY
      assert.is_true(time >= formula and time <= formula + 1e-9, ("%d ranks: %g instead of %g")
        :format(p, time, formula))
    end
  end)

  it("takes n / B and the latencies for two ranks", function()
    local n = 100 * 1024 * 1024
    local time = tree_time(equal_links(2), n)
    -- Each half goes up and then down in chunks of 128 KiB, the last of which follows its sum.
    local chunk = 128 * 1024 / B
    assert.is_true(time >= n / B and time <= n / B + 2 * (chunk + LATENCY) + 1e-9)
  end)

  it("uses most of the bandwidth for many bytes, and never more than there is", function()
    for _, p in ipairs {4, 16, 64} do
      local n = 100 * 1024 * 1024
      local time, least = tree_time(equal_links(p), n), bound(p, n, B)
      assert.is_true(time >= least, ("%d ranks: %g, bound %g"):format(p, time, least))
      assert.is_true(time <= 1.5 * least, ("%d ranks: %g, bound %g"):format(p, time, least))
    end
  end)

  it("is faster than the ring for few bytes on many GPUs, and slower for many on few", function()
    assert.is_true(tree_time(nodes(256), 1024) < ring_time(nodes(256), 1024) / 5)
    local many = 256 * 1024 * 1024
    assert.is_true(tree_time(nodes(8), many) > ring_time(nodes(8), many))
  end)
end)

describe("the queue of events", function()
  it("returns events by time, those of one time in the order in which they were added", function()
    local queue, times = Queue.new(), {}
    for i = 1, 200 do
      times[i] = i * 7919 % 31
      queue:add(times[i], {name = i})
    end
    local previous
    for _ = 1, 200 do
      local event = queue:take()
      assert.equal(times[event.name], event.time)
      if previous then
        assert.is_true(previous.time < event.time
          or previous.time == event.time and previous.name < event.name)
      end
      previous = event
    end
    assert.is_nil(queue:take())
  end)
end)

describe("buckets", function()
  local MIB = 1024 * 1024

  it("are filled in the order of backward, the first one with 1 MiB", function()
    local sizes = {3 * MIB, 2 * MIB, 2 * MIB, MIB // 2, MIB // 2}
    local buckets = step.buckets(sizes, 4 * MIB)
    assert.equal(3, #buckets)
    assert.equal(MIB, buckets[1].bytes)
    assert.equal(4 * MIB, buckets[2].bytes)
    assert.equal(3 * MIB, buckets[3].bytes)
    assert.equal(1 / 8, buckets[1].done)
    assert.equal(5 / 8, buckets[2].done)
    assert.equal(1.0, buckets[3].done)
  end)

  it("contain every gradient once, whatever their size", function()
    local sizes, total = {}, 0
    for i = 1, 100 do
      sizes[i] = 1 + i * 7919 % 500000
      total = total + sizes[i]
    end
    for _, cap in ipairs {1, 1000, MIB, 25 * MIB} do
      local sum = 0
      for _, bucket in ipairs(step.buckets(sizes, cap)) do sum = sum + bucket.bytes end
      assert.equal(total, sum)
    end
    assert.equal(100, #step.buckets(sizes, 1))
  end)
end)

describe("distributed.simulate", function()
  local MIB = 1024 * 1024
  local function one(model, options)
    options.forward, options.backward = options.forward or 0.01, options.backward or 0.02
    return simulate(model, options)
  end

  it("adds the time of communication to the step without overlap", function()
    -- One bucket on 8 GPUs of one node: the ring's formula, and 5 microseconds for the launch.
    local n = 8 * MIB
    local report = one({n}, {gpus = 8, algorithms = {"ring"}, link_latency = 3e-6})
    assert.equal(1, #report)
    local formula = 2 * 7 * (n / 8 / 450e9 + 3e-6) + 5e-6
    local row = report[1]
    assert.is_true(math.abs(row.communication - formula) < 1e-9)
    assert.is_true(math.abs(row.step_without_overlap - (0.03 + formula)) < 1e-9)
    -- The only bucket is complete at the end of backward: nothing overlaps.
    assert.is_true(math.abs(row.step - row.step_without_overlap) < 1e-9)
    assert.is_true(math.abs(row.efficiency - 0.03 / row.step) < 1e-12)
  end)

  it("hides the buckets that are complete before the end of backward", function()
    -- Four equal gradients of 25 MiB: all but the last bucket have 5 ms each, and need less.
    local sizes = {25 * MIB, 25 * MIB, 25 * MIB, 25 * MIB}
    local options = {gpus = 8, algorithms = {"ring"}, link_latency = 3e-6}
    local row, single = one(sizes, options)[1], one({25 * MIB}, options)[1]
    assert.equal(4, row.buckets)
    assert.is_true(math.abs(row.step - (0.03 + single.communication)) < 1e-8)
    assert.is_true(math.abs(row.communication - (4 * single.communication - 3 * 5e-6)) < 1e-6)
    assert.is_true(row.efficiency > row.efficiency_without_overlap)
  end)

  it("never has a step shorter than the computation or the communication", function()
    local sizes = {}
    for i = 1, 40 do sizes[i] = MIB * (1 + i % 3) end
    local report = one(sizes, {gpus = {1, 2, 8, 16, 64}, bucket_cap_mb = {1, 25}})
    assert.equal(5 * 2 * 2, #report)
    for _, row in ipairs(report) do
      assert.is_true(row.step >= 0.03 - 1e-12 and row.step >= row.communication - 1e-12)
      assert.is_true(row.step <= row.step_without_overlap + 1e-12)
      assert.is_true(row.efficiency <= 1 + 1e-12)
      if row.gpus == 1 then assert.equal(0.0, row.communication) end
    end
  end)

  it("returns the same times again, up to 1024 GPUs", function()
    local options = {gpus = {64, 1024}, forward = 0.01, backward = 0.02}
    local first, second = simulate({MIB, MIB}, options), simulate({MIB, MIB}, options)
    assert.equal(tostring(first), tostring(second))
    for i, row in ipairs(first) do assert.same(row, second[i]) end
    assert.is_truthy(tostring(first):find("1,024  tree", 1, true), tostring(first))
  end)

  it("divides few bytes over any number of links", function()
    -- A byte takes long, as each link has its share of the bandwidth inside the node.
    local report = one({MIB}, {gpus = 16, network_links = math.maxinteger})
    for _, row in ipairs(report) do assert.is_true(row.communication > 1e6) end
  end)

  it("reads the gradients of a module in the order of its parameters", function()
    local nn = lt.nn
    local model = nn.Sequential(nn.Linear(512, 1024), nn.Linear(1024, 512))
    model[1].bias:requires_grad_(false)
    local sizes = {512 * 1024 * 4, 1024 * 512 * 4, 512 * 4}
    local options = {gpus = {8, 16}, bucket_cap_mb = 1, forward = 0.01, backward = 0.02}
    local of_module, of_sizes = simulate(model, options), simulate(sizes, options)
    for i, row in ipairs(of_sizes) do assert.same(row, of_module[i]) end
  end)

  it("measures a loss", function()
    local model, calls = lt.nn.Linear(10, 10), 0
    local report = simulate(model, {gpus = 2, loss = function()
      calls = calls + 1
      return model(lt.ones(5, 10)):sum()
    end})
    assert.is_true(calls > 1 and report[1].step > 0)
  end)

  it("has a table that fits a width", function()
    local report = one({MIB}, {gpus = {8, 1024}})
    assert.is_truthy(report:table():find("without overlap", 1, true))
    local _, table_part = report:table(50):match "^(.-)\n\n(.*)$"
    for line in table_part:gmatch "[^\n]+" do assert.is_true(texts.width(line) <= 50, line) end
    assert.has_error(function() report:table "wide" end)
  end)

  it("raises errors for invalid arguments", function()
    local function fails(text, ...)
      local ok, message = pcall(simulate, ...)
      assert.is_false(ok)
      assert.is_truthy(message:find("distributed.simulate: ", 1, true), message)
      assert.is_truthy(message:find(text, 1, true), message)
    end
    local times = {forward = 0.01, backward = 0.02}
    local function with(name, value)
      return {forward = 0.01, backward = 0.02, [name] = value}
    end
    fails("for argument 'gpus', got 12", {MIB}, with("gpus", {12}))
    fails("for argument 'gpus', got 0", {MIB}, with("gpus", {0}))
    fails("'forward' and 'backward', or 'loss', got none", {MIB}, {gpus = 8})
    fails("'forward' and 'backward', or 'loss', got one", {MIB}, {forward = 1})
    fails("for argument 'model'", lt.ones(2), times)
    fails("a module or a list of sizes for argument 'model'", lt.optim.SGD({lt.ones(2)}, {lr = 1}),
      times)
    fails("positive integers (bytes) in the list of argument 'model', got 0", {0}, times)
    fails("positive integers (bytes) in the list of argument 'model', got 0.5", {0.5}, times)
    fails("positive integers (bytes) in the list of argument 'model', got the string", {"x"}, times)
    fails("at least one gradient", {}, times)
    fails("expected one of nvlink, pcie3, pcie4, pcie5 for argument 'link', got \"ib\"", {MIB},
      with("link", "ib"))
    fails("in the list of argument 'algorithms', got the string \"mesh\"", {MIB},
      with("algorithms", {"mesh"}))
    fails("positive numbers for argument 'bucket_cap_mb', got 0", {MIB}, with("bucket_cap_mb", 0))
    fails("for argument 'network_bandwidth'", {MIB}, with("network_bandwidth", 0))
    fails("for argument 'forward + backward'", {MIB}, {forward = 0, backward = 0})
    fails("at most 1e+06 seconds for argument 'forward + backward', got 1e+300", {MIB},
      {forward = 1e300, backward = 0})
    fails("at most 1e+06 seconds for argument 'network_latency', got inf", {MIB},
      with("network_latency", math.huge))
    fails("at most 1e+06 seconds for argument 'link_latency', got 2000000", {MIB},
      with("link_latency", 2000000))
    fails("at most 2^50 bytes of gradients for argument 'model', got 1.8", {math.maxinteger,
      math.maxinteger}, times)
    fails("returns a loss that requires grad", {MIB}, {loss = function() return 1 end})
  end)
end)
