-- The functions that nn.DataParallel is made of: scatter, replicate, parallel_apply, gather.

local devices = require "device_support"
local support = require "parallel_support"

if devices.elsewhere("nn/parallel_parts", _ENV, {emulate = {"cuda:2,peer=off"}}) then return end

local lt = require "lutra"

local nn, parallel = lt.nn, lt.nn.parallel
local fails, made_of, device_names = devices.fails, support.made_of, support.device_names
local copies_in_the_background = support.copies_in_the_background
local count = lt.cuda.device_count()

if count < 2 then
  describe("nn.parallel", function()
    it("is tested on two devices", function() pending "one device" end)
  end)
  return
end

describe("nn.parallel.scatter", function()
  it("cuts tensors as chunk does, a piece for each device", function()
    local x = lt.arange(1, 12):reshape(6, 2)
    local pieces = parallel.scatter(x, {0, "cuda:1"})
    assert.equal("cuda:0 cuda:1", device_names(pieces))
    assert.same({{1, 2}, {3, 4}, {5, 6}}, pieces[1]:totable())
    assert.same({{7, 8}, {9, 10}, {11, 12}}, pieces[2]:totable())
    pieces = parallel.scatter(x, {1, 0}, 2)
    assert.equal("cuda:1 cuda:0", device_names(pieces))
    assert.same({{2}, {4}, {6}, {8}, {10}, {12}}, pieces[2]:totable())
    assert.equal(2, #parallel.scatter(x, {0, 1}, {dim = -1}))
  end)

  it("takes plain tables apart, and gives other values to all", function()
    local x, object = lt.arange(1, 4), setmetatable({}, {})
    local shared = {x}
    local parts = parallel.scatter({x = x, list = {x * 10, "word"}, n = 3, object = object,
      f = print, a = shared, b = shared}, {0, 1})
    assert.equal(2, #parts)
    for i, part in ipairs(parts) do
      assert.same({2 * i - 1, 2 * i}, part.x:totable())
      assert.same({20 * i - 10, 20 * i}, part.list[1]:totable())
      assert.equal("word", part.list[2])
      assert.equal(3, part.n)
      assert.is_true(rawequal(object, part.object))
      assert.equal(print, part.f)
      assert.is_true(rawequal(part.a, part.b))
    end
    local loop = {x}
    loop.self = loop
    parts = parallel.scatter(loop, {0, 1})
    assert.is_true(rawequal(parts[2], parts[2].self))
    assert.same({"a", "a"}, parallel.scatter("a", {0, 1}))
  end)

  it("makes fewer pieces of fewer rows, and one of none", function()
    assert.equal("cuda:0", device_names(parallel.scatter(lt.zeros(1, 3), {0, 1})))
    local pieces = parallel.scatter(lt.zeros(0, 3), {0, 1})
    assert.equal(1, #pieces)
    assert.equal("{0, 3}", tostring(pieces[1].shape))
  end)

  it("does not wait for what it sends from pinned memory", function()
    local x = lt.ones(6, 2):pin_memory()
    assert.equal(2, copies_in_the_background(function() parallel.scatter(x, {0, 1}) end))
  end)

  it("lets gradients back", function()
    local x = lt.ones(3, {requires_grad = true})
    local pieces = parallel.scatter(x, {0, 1})
    ;(pieces[1]:sum():cpu() + (pieces[2] * 5):sum():cpu()):backward()
    assert.same({1, 1, 5}, x.grad:totable())
  end)

  it("refuses what it cannot cut", function()
    fails({"scatter", "without dimensions", "x:item()"}, parallel.scatter, {lt.tensor(1)}, {0, 1})
    fails({"scatter", "size 8 gives 2 pieces", "size 1 gives 1 piece\n"}, parallel.scatter,
      {lt.zeros(8), lt.zeros(1)}, {0, 1})
    fails("scatter: expected at least one device, got none", parallel.scatter, lt.zeros(2), {})
    fails("cuda:9", parallel.scatter, lt.zeros(2), {0, 9})
    fails({"scatter: expected a dimension from 1 to 1", "got 3 for a tensor of shape {2}"},
      parallel.scatter, lt.zeros(2),
      {0, 1}, 3)
    fails({"got -2 for a tensor"}, parallel.scatter, lt.zeros(2), {0, 1}, -2)
    fails({"scatter", "expected a list for argument 'target_devices', got no value"},
      parallel.scatter, lt.zeros(2))
  end)
end)

describe("nn.parallel.gather", function()
  it("puts tensors and tables together on one device", function()
    local a, b = lt.ones{2, 2, device = "cuda:0"}, lt.zeros{1, 2, device = "cuda:1"}
    local all = parallel.gather({a, b}, "cuda:1")
    assert.equal("cuda:1", all.device)
    assert.same({{1, 1}, {1, 1}, {0, 0}}, all:totable())
    local narrow = {a:narrow(1, 1, 1):narrow(2, 1, 1), b:narrow(2, 1, 1)}
    local odd = setmetatable({}, {__len = function() return "x" end})
    fails({"outputs", "a list"}, parallel.gather, odd, "cpu")
    assert.same({{1, 0}}, parallel.gather(narrow, "cpu", {dim = 2}):totable())
    assert.equal(2, copies_in_the_background(function() parallel.gather({a, b}, "cpu") end))
    local tables = parallel.gather({{x = a, {a, 5}}, {x = b, {b, 5}}}, 0)
    assert.equal("{3, 2}", tostring(tables.x.shape))
    assert.equal("{3, 2}", tostring(tables[1][1].shape))
    assert.equal(5, tables[1][2])
    assert.equal("same", parallel.gather({"same", "same"}, 0))
    local function looped(x)
      local t, shared = {}, {x}
      t.self, t.a, t.b = t, shared, shared
      return t
    end
    local loop = parallel.gather({looped(a), looped(b)}, 0)
    assert.is_true(rawequal(loop, loop.self) and rawequal(loop.a, loop.b))
    assert.equal("{3, 2}", tostring(loop.a[1].shape))
  end)

  it("makes a vector of scalars, and warns where warnings are on", function()
    local result = devices.script([[
      local lt = require "lutra"
      warn "@on"
      local v = lt.nn.parallel.gather({lt.tensor(1, {device = "cuda:0"}),
        lt.tensor(2, {device = "cuda:1"})}, 0)
      print(v.device, table.unpack(v:totable()))]])
    assert.equal("cuda:0\t1\t2\n", result.out)
    assert.is_truthy(result.err:find("gather: scalars", 1, true), result.err)
  end)

  it("refuses what differs", function()
    local a, b = lt.ones{2, device = "cuda:0"}, lt.ones{2, device = "cuda:1"}
    fails({"gather", "different values"}, parallel.gather, {1, 2}, 0)
    fails({"different values", ".x[2]"}, parallel.gather, {{x = {a, 1}}, {x = {b, 2}}}, 0)
    fails({"different tables", '"y"'}, parallel.gather, {{x = a}, {x = b, y = b}}, 0)
    fails({"different tables", '"y"'}, parallel.gather, {{x = a, y = a}, {x = b}}, 0)
    fails({"different values"}, parallel.gather, {a, 1}, 0)
    fails({"different numbers of dimensions"}, parallel.gather, {a, b:sum()}, 0)
    fails({"gather: cannot concatenate results of shape {2} in .y", "dimension 2",
      "x:unsqueeze(2)"},
      parallel.gather, {{y = a}, {y = b}}, 0, 2)
    fails("at least one output", parallel.gather, {}, 0)
    fails("expected a device such as \"cpu\" for argument 'target_device', got no value",
      parallel.gather, {a, b})
  end)
end)

describe("nn.parallel.replicate", function()
  it("gives modules of the same class with their tensors on the devices", function()
    local net = nn.ModuleList{nn.Linear(2, 2), nn.LayerNorm(2)}:cuda()
    net[3] = net[1] -- a shared module
    net:register_buffer("b", lt.ones{2, device = "cuda"})
    net.note = "kept"
    local replicas = parallel.replicate(net, {0, 1})
    for i, r in ipairs(replicas) do
      assert.equal("cuda:" .. i - 1, r:device())
      assert.equal(tostring(net), tostring(r))
      assert.equal(3, #r)
      assert.is_true(rawequal(r[1], r[3]))
      assert.is_false(rawequal(r[1], net[1]))
      assert.equal("kept", r.note)
      assert.is_false(r[1].weight.is_leaf)
      assert.is_true(lt.equal(net[1].weight:cpu(), r[1].weight:cpu()))
    end
    replicas[1].b:add_(1)
    replicas[2].b:add_(5)
    assert.same({2, 2}, net.b:totable())
    for _, p in ipairs {parallel.replicate(net, {1, 0}, true)[1][1].weight} do
      assert.is_false(p.requires_grad)
    end
    fails({"replicate: expected a module for argument 'network', got 3"}, parallel.replicate, 3,
      {0})
  end)

  it("adds the gradients in the order of the devices", function()
    if count < 3 then return pending "two devices" end
    -- (1e8 - 1e8) + 1 is 1, in float32; in another order it is 0.
    local net = nn.Linear(1, 1, {bias = false}):cuda()
    local x = lt.tensor{{1e8}, {-1e8}, {1}}
    nn.DataParallel(net, {device_ids = {0, 1, 2}})(x):sum():backward()
    assert.equal(1, net.weight.grad:item())
    net:zero_grad()
    nn.DataParallel(net, {device_ids = {0, 1, 2}})(x[3]:expand(3, 1)):sum():backward()
    assert.equal(3, net.weight.grad:item())
  end)
end)

describe("nn.parallel.parallel_apply", function()
  it("calls each module with its arguments on its device", function()
    local function forward(_, a, b, more)
      return a, b, more and more.k, lt.zeros{1, device = "cuda"}.device
    end
    local out = parallel.parallel_apply({made_of(forward), made_of(forward)}, {{1, 2}, "x"},
      {{k = 3}, {k = 4}}, {0, 1})
    assert.same({1, 2, 3, "cuda:0", n = 4}, out[1])
    assert.equal("cuda:1", out[2][4])
    assert.equal("cuda:0", lt.device "cuda")
    local one = made_of(function(_, x) return x end)
    assert.same({7, 8}, parallel.parallel_apply({one, one}, {7, 8}))
    assert.equal(9, parallel.parallel_apply({one}, {9}, nil, {"cpu"})[1])
    fails({"expected a module for argument 'modules[2]', got 7"}, parallel.parallel_apply,
      {one, 7}, {1, 2})
    fails({"expected 2 inputs, one for each module, got 1"}, parallel.parallel_apply, {one, one},
      {1})
    fails({"expected 2 devices, one for each module, got 1"}, parallel.parallel_apply, {one, one},
      {1, 2}, nil, {0})
    local failing = made_of(function(_, x) return x == 2 and error "inside" end)
    fails({"inside\n  in replica 2 of 2, on cuda:1"}, parallel.parallel_apply, {failing, failing},
      {1, 2}, nil, {0, 1})
    fails({"inside\n  in replica 1 of 1"}, parallel.parallel_apply, {failing}, {2})
    assert.equal("cuda:0", lt.device "cuda")
    local object = setmetatable({}, {})
    local ok, caught = pcall(parallel.parallel_apply, {made_of(function() error(object) end)}, {1})
    assert.is_true(not ok and rawequal(object, caught))
    -- what nobody catches has its stack, and the traceback the place
    local result = devices.script [[
      local nn = require("lutra").nn
      local Odd = nn.Module:extend "Odd"
      function Odd:forward(x) return x.device == "cuda:0" and x or error "outside" end
      local model = nn.DataParallel(Odd(), {device_ids = {0, 1}})
      model(require("lutra").ones(4))]]
    assert.equal(1, result.status)
    assert.is_truthy(result.err:find("module (Odd, replica 2 of 2, on cuda:1)", 1, true),
      result.err)
    assert.is_truthy(result.err:find("in method 'forward'", 1, true), result.err)
  end)
end)
