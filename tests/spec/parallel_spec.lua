-- nn.parallel: a module on several devices computes what it computes on one.

local devices = require "device_support"
local program = require "program_support"

-- Says what every step of a training gives, to the last bit.
local bits = [[
  local lt = require "lutra"
  lt.manual_seed(1)
  local nn, optim = lt.nn, lt.optim
  local net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3)):cuda()
  local model = nn.DataParallel(net)
  local sgd = optim.SGD(model:parameters(), {lr = 0.1, momentum = 0.9})
  for step = 1, 5 do
    local x, y = lt.randn(22, 6), lt.randint(3, {22}):cuda()
    sgd:zero_grad()
    local loss = lt.F.cross_entropy(model(x), y)
    loss:backward()
    sgd:step()
    print(("%a"):format(loss:item()))
    for _, v in ipairs(net[1].weight.grad:reshape(-1):totable()) do print(("%a"):format(v)) end
  end]]

-- Four devices that are slow, with threads in reverse, and memory that is full of NaN and that the
-- host must not touch.
local hard = "LUTRA_EMULATE=cuda:4,memory=256MiB LUTRA_EMULATE_DELAY=50 LUTRA_EMULATE_STRICT=1 "
  .. "LUTRA_EMULATE_POISON=1 LUTRA_EMULATE_ORDER=reverse"

-- A script, or a spec, in a process of its own with an environment; what it prints.
local function run(environment, arguments)
  local result = program.shell(("env -u CUDA_VISIBLE_DEVICES %s %s %s"):format(environment,
    program.quote(program.program), arguments))
  assert.equal(0, result.status, "\n" .. result.out .. result.err)
  return result.out
end

local function describe_the_emulated()
  local function test(title, f)
    it(title, function()
      if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
      f()
    end)
  end

  describe("nn.parallel on four devices", function()
    test("passes under hard conditions", function()
      local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
      run(hard, ("%stests/busted.lua %stests/spec/parallel_spec.lua"):format(root, root))
    end)

    test("trains with the same bits on every run, whatever is slow", function()
      local path = program.file(bits)
      local first = run("LUTRA_EMULATE=cuda:4", path)
      assert.is_true(#first > 500, "it says little: " .. first)
      for _, environment in ipairs {"LUTRA_EMULATE=cuda:4", hard,
        "LUTRA_EMULATE=cuda:4 LUTRA_EMULATE_DELAY=200",
        "LUTRA_EMULATE=cuda:4,peer=off LUTRA_EMULATE_DELAY=200"} do
        assert.equal(first, run(environment, path), environment)
      end
      os.remove(path)
    end)
  end)

  describe("nn.DataParallel without an accelerator", function()
    it("calls the module as it is", function()
      local script = program.file [[
        local lt = require "lutra"
        local nn = lt.nn
        local net = nn.Linear(3, 2)
        local model = nn.DataParallel(net)
        assert(#model.device_ids == 0 and model.output_device == nil)
        local x = lt.randn(4, 3)
        assert(lt.equal(model(x), net(x)))
        assert(lt.equal(nn.parallel.data_parallel(net, x), net(x)))
        net.forward = function(_, ...) return ... end
        assert(select("#", model(1, nil, nil)) == 3)
        print((select(2, pcall(nn.DataParallel, net, {device_ids = {"cpu"}}))))
        print((select(2, pcall(nn.DataParallel, net, {device_ids = {0}}))))]]
      local result = program.shell("env -u LUTRA_EMULATE CUDA_VISIBLE_DEVICES= " ..
        program.quote(program.program) .. " " .. program.quote(script))
      os.remove(script)
      assert.equal(0, result.status, result.err)
      assert.is_truthy(result.out:find("device_ids[1] is cpu", 1, true), result.out)
      assert.is_truthy(result.out:find("no device", 1, true), result.out)
    end)
  end)
end

if devices.elsewhere("parallel", _ENV, {emulate = {"cuda:2,peer=off"}}) then
  return describe_the_emulated()
end

local lt = require "lutra"

local nn, optim, parallel = lt.nn, lt.optim, lt.nn.parallel
local fails = devices.fails
local count = lt.cuda.device_count()

local function mlp(dtype)
  return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)):to{device = "cuda",
    dtype = dtype or "float64"}
end

-- Equal but for rounding, in float64. On several devices the same numbers are added in another
-- order. Two orders of n additions differ by at most n * 2^-52 times the sizes of the numbers
-- together. Here no result has more than 32 additions behind one another (16 rows, 8 + 5 + 3
-- features), and the sizes come to less than 8 times the largest result. `times` is how often
-- errors are added to.
local function close(wanted, actual, times)
  assert.equal(tostring(wanted.shape), tostring(actual.shape))
  local off = (wanted:cpu() - actual:cpu()):abs():max():item()
  local largest = wanted:abs():max():item()
  assert.is_true(off <= (times or 1) * 32 * 8 * 2^-52 * largest,
    ("off by %g of %g"):format(off, largest))
end

before_each(function() lt.manual_seed(1) end)

local function device_names(tensors)
  local names = {}
  for i, x in ipairs(tensors) do names[i] = x.device end
  return table.concat(names, " ")
end

-- How many copies f() does, none of which it waits for.
local function copies_in_the_background(f)
  local profile, copies = lt.profiler.profile(f, {synchronize = false}), 0
  for event in profile:events() do
    if event.kind == "copy" then
      copies = copies + 1
      assert.is_false(event.blocking, event.from .. " to " .. event.device)
    end
  end
  return copies
end

-- A module that computes fn(self, ...).
local function made_of(fn)
  local Class = nn.Module:extend "Test"
  Class.forward = fn
  return Class()
end

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
    fails({"scatter", "size 8 makes 2 pieces", "size 1 makes 1 piece."}, parallel.scatter,
      {lt.zeros(8), lt.zeros(1)}, {0, 1})
    fails("is missing", parallel.scatter, lt.zeros(2), {})
    fails("cuda:9", parallel.scatter, lt.zeros(2), {0, 9})
    fails({"scatter: a tensor of shape {2} has no dimension 3"}, parallel.scatter, lt.zeros(2),
      {0, 1}, 3)
    fails({"no dimension -2"}, parallel.scatter, lt.zeros(2), {0, 1}, -2)
    fails({"scatter", '"target_devices"'}, parallel.scatter, lt.zeros(2))
  end)
end)

describe("nn.parallel.gather", function()
  it("puts tensors and tables together on one device", function()
    local a, b = lt.ones{2, 2, device = "cuda:0"}, lt.zeros{1, 2, device = "cuda:1"}
    local all = parallel.gather({a, b}, "cuda:1")
    assert.equal("cuda:1", all.device)
    assert.same({{1, 1}, {1, 1}, {0, 0}}, all:totable())
    local narrow = {a:narrow(1, 1, 1):narrow(2, 1, 1), b:narrow(2, 1, 1)}
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
    fails({"gather: results of shape {2} in .y", "dimension 2", "x:unsqueeze(2)"},
      parallel.gather, {{y = a}, {y = b}}, 0, 2)
    fails("no outputs", parallel.gather, {}, 0)
    fails('"target_device"', parallel.gather, {a, b})
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
    fails({"replicate", "it wants a module"}, parallel.replicate, 3, {0})
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
    fails({"2 modules and 1 inputs"}, parallel.parallel_apply, {one, one}, {1})
    fails({"2 modules and 1 devices"}, parallel.parallel_apply, {one, one}, {1, 2}, nil, {0})
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

describe("nn.DataParallel", function()
  it("computes what one device does, for every size of batch", function()
    local net = mlp()
    local model = nn.DataParallel(net)
    for _, rows in ipairs {0, 1, 2, 3, 4, 7, 16} do
      local x = lt.randn(rows, 5, {dtype = "float64"})
      local y = model(x)
      assert.equal("cuda:0", y.device)
      assert.is_true(y.requires_grad)
      assert.equal(rows, y:size(1))
      if rows > 0 then close(net(x:cuda()), y) end
      assert.is_false(lt.no_grad(model, x).requires_grad)
    end
    local where = nn.DataParallel(net, {output_device = 1})(lt.ones(4, 5, {dtype = "float64"}))
    assert.equal("cuda:1", where.device)
    local single = nn.DataParallel(net, {device_ids = {0}, output_device = "cpu"})
    assert.equal("cpu", single(lt.ones(4, 5, {dtype = "float64"})).device)
    local bare = nn.DataParallel(net, {device_ids = {"cuda:0"}})
    assert.is_true(lt.equal(bare(lt.ones(2, 5, {dtype = "float64"})),
      net(lt.ones(2, 5, {dtype = "float64", device = "cuda"}))))
    local counting = made_of(function(self, v)
      self.calls = (self.calls or 0) + 1
      return v
    end)
    nn.DataParallel(counting, {device_ids = {0}})(lt.ones(3))
    assert.equal(1, counting.calls) -- one device needs no replica
  end)

  it("gives the gradients of one device, to parameters and input", function()
    local net = mlp()
    local x = lt.randn(9, 5, {dtype = "float64", requires_grad = true})
    net(x:cuda()):pow(2):mean():backward()
    local wanted = {x.grad}
    for p in net:parameters() do wanted[#wanted + 1] = p.grad end
    net:zero_grad()
    x.grad = nil
    nn.DataParallel(net)(x):pow(2):mean():backward()
    local got = {x.grad}
    for p in net:parameters() do got[#got + 1] = p.grad end
    assert.equal(#wanted, #got)
    for i, grad in ipairs(wanted) do close(grad, got[i]) end
    assert.equal("cpu cuda:0 cuda:0 cuda:0 cuda:0", device_names(got))
    -- Gradients of gradients go the same way.
    local function penalty(f)
      local grad = lt.autograd.grad(f(x):pow(3):sum(), net[1].weight, {create_graph = true})
      return lt.autograd.grad(grad:pow(2):sum(), net[3].weight)
    end
    close(penalty(function(v) return net(v:cuda()) end), penalty(nn.DataParallel(net)), 2)
  end)

  it("adds up what all uses of a shared parameter give", function()
    local net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)):to{device = "cuda",
      dtype = "float64"}
    net[3].weight = net[1].weight
    local x = lt.randn(6, 4, {dtype = "float64", device = "cuda"})
    net(x):sum():backward()
    local wanted = net[1].weight.grad
    net:zero_grad()
    nn.DataParallel(net)(x):sum():backward()
    close(wanted, net[1].weight.grad)
  end)

  it("trains as one device does", function()
    local function train(wrap)
      lt.manual_seed(4)
      local net = mlp()
      local model = wrap(net)
      local sgd = optim.SGD(model:parameters(), {lr = 0.1, momentum = 0.9})
      local losses = {}
      for step = 1, 5 do
        local x, y = lt.randn(10, 5, {dtype = "float64"}):cuda(), lt.randint(3, {10}):cuda()
        sgd:zero_grad()
        local loss = lt.F.cross_entropy(model(x), y)
        loss:backward()
        sgd:step()
        losses[step] = loss:item()
      end
      return lt.tensor(losses, {dtype = "float64"}), net[1].weight:detach()
    end
    local losses, weight = train(function(net) return net end)
    for _, class in ipairs {nn.DataParallel, parallel.DistributedDataParallel} do
      local other_losses, other_weight = train(class)
      close(losses, other_losses, 5)
      close(weight, other_weight, 5)
    end
  end)

  it("has the parameters of the module, below its name", function()
    local net = mlp()
    local model = nn.DataParallel(net)
    assert.is_true(rawequal(net, model.module))
    local state = model:state_dict()
    assert.is_true(lt.equal(net[1].weight, state["module.1.weight"]))
    model:load_state_dict(nn.DataParallel(mlp()):state_dict())
    fails({"load_state_dict", 'lack "module."', "m.module:load_state_dict"}, model.load_state_dict,
      model, net:state_dict())
    fails({"load_state_dict", 'begin with "module."', "model.module:state_dict()"},
      net.load_state_dict, net, model:state_dict())
    local ok, other = pcall(net.load_state_dict, net, nn.Linear(5, 8):state_dict())
    assert.is_true(not ok and not other:find('"module."', 1, true), other)
    assert.is_truthy(tostring(model):find('device_ids={"cuda:0", "cuda:1"', 1, true))
    model:eval()
    assert.is_false(net[2].training)
  end)

  it("hands arguments, results and modes through", function()
    local seen = {}
    local net = made_of(function(self, x, options, word)
      seen[#seen + 1] = ("%s %s %s %s %s"):format(x.device, options.mask.device, word,
        lt.zeros{1, device = "cuda"}.device, self.training)
      return x + options.mask, nil, {rows = x, word = word}, word
    end)
    local model = nn.DataParallel(net, {device_ids = {0, 1}}):eval()
    local x = lt.arange(1, 4)
    local y, none, more, word = model(x, {mask = x * 10}, "w")
    assert.same({11, 22, 33, 44}, y:totable())
    assert.is_nil(none)
    assert.same({1, 2, 3, 4}, more.rows:totable())
    assert.same({"w", "w"}, {more.word, word})
    assert.same({"cuda:0 cuda:0 w cuda:0 false", "cuda:1 cuda:1 w cuda:1 false"}, seen)
    assert.equal(0, select("#", nn.DataParallel(made_of(function() end))(x)))
    -- Without a tensor every device gets the same; without an argument there is one call.
    local calls = made_of(function(_, n) return lt.ones(n or 1) end)
    assert.equal(3 * count, nn.DataParallel(calls)(3):numel())
    assert.equal(1, nn.DataParallel(calls)():numel())
  end)

  it("cuts along the dimension asked for", function()
    local model = nn.DataParallel(made_of(function(_, x) return x * 2 end), {dim = 2})
    assert.same({{2, 4, 6}}, model(lt.tensor{{1, 2, 3}}):totable())
  end)

  it("gathers a vector of losses", function()
    local model = nn.DataParallel(made_of(function(_, x) return x:mean() end))
    assert.equal(count, model(lt.ones(count, 2)):numel())
  end)

  it("keeps changes of buffers on the first device, loses the others", function()
    local net = made_of(function(self, x)
      self.rows:add_(x:size(1))
      self.calls = self.calls + 1
      return x
    end)
    net:register_buffer("rows", lt.zeros{1, device = "cuda"})
    net.calls = 0
    nn.DataParallel(net, {device_ids = {0, 1}})(lt.ones(5, 1))
    assert.same({3}, net.rows:totable())
    assert.equal(0, net.calls)
  end)

  it("runs hooks in every replica, and none of what they change stays", function()
    local net, seen = mlp(), {}
    local handle = net[1]:register_forward_hook(function(module, inputs, output)
      seen[#seen + 1] = module:device() .. " " .. inputs[1].device
      return output * 0
    end)
    local x = lt.ones(2, 5, {dtype = "float64"})
    local model = nn.DataParallel(net, {device_ids = {0, 1}})
    assert.is_true(lt.equal(net[3].bias, model(x)[2]))
    assert.same({"cuda:0 cuda:0", "cuda:1 cuda:1"}, seen)
    handle:remove()
    model(x)
    assert.equal(2, #seen)
  end)

  it("leaves frozen and unused parameters without a gradient", function()
    local net = mlp()
    net[1].weight:requires_grad_(false)
    net.unused = nn.Parameter(lt.ones{1, device = "cuda"})
    nn.DataParallel(net)(lt.ones(4, 5, {dtype = "float64"})):sum():backward()
    assert.is_nil(net[1].weight.grad)
    assert.is_nil(net.unused.grad)
    assert.is_truthy(net[1].bias.grad)
    -- One that only some replicas use gets its gradient from them; the others send none.
    local some = made_of(function(self, x)
      return x.device == "cuda:1" and x * self.w or x * self.v
    end)
    some.w = nn.Parameter(lt.ones{1, device = "cuda"})
    some.v = nn.Parameter(lt.ones{1, device = "cuda"})
    local y = nn.DataParallel(some, {device_ids = {0, 1}})(lt.ones{4, 1, device = "cuda"}):sum()
    local profile = lt.profiler.profile(function() y:backward() end, {synchronize = false})
    local sent = 0
    for event in profile:events() do
      if event.kind == "copy" and event.device == "cuda:0" then sent = sent + 1 end
    end
    assert.equal(1, sent)
    assert.same({2, 2}, {some.w.grad:item(), some.v.grad:item()})
  end)

  it("waits for no device", function()
    local net = mlp("float32")
    local model, x = nn.DataParallel(net), lt.ones{16, 5, device = "cuda"}
    model(x):sum():backward()
    local profile = lt.profiler.profile(function() model(x):sum():backward() end,
      {synchronize = false})
    local ops = 0
    for event in profile:events() do
      assert.is_true(event.kind ~= "wait", event.name)
      if event.kind == "copy" then
        assert.is_truthy(event.device:find "cuda" and event.from:find "cuda",
          event.from .. " to " .. event.device)
        assert.is_false(event.blocking, event.where)
      end
      if event.kind == "op" then ops = ops + 1 end
    end
    assert.is_true(ops > 0)
  end)

  it("gives the memory of replicas back", function()
    local net, x = mlp(), lt.ones(8, 5, {dtype = "float64", device = "cuda"})
    local model = nn.DataParallel(net)
    local function step()
      net:zero_grad()
      model(x):sum():backward()
      collectgarbage()
      collectgarbage()
      return lt.cuda.memory_allocated(0) + lt.cuda.memory_allocated(1)
    end
    local first = step()
    for _ = 1, 3 do assert.equal(first, step()) end
    -- In a loop that leaves it to the collector memory stays below a limit, too.
    local function peak(steps)
      for _ = 1, steps do
        net:zero_grad()
        model(x):sum():backward()
      end
      return lt.cuda.max_memory_allocated(0)
    end
    lt.cuda.reset_peak_memory_stats(0)
    local early = peak(20)
    assert.is_true(peak(80) <= 2 * early)
  end)

  it("goes on after one device is out of memory", function()
    local size = lt.cuda.get_device_properties(1).total_memory
    local net = made_of(function(self, x)
      if self.greedy and x.device == "cuda:1" then lt.zeros{size, device = x.device} end
      return x * self.w
    end)
    net.w = nn.Parameter(lt.ones{1, device = "cuda"})
    net.greedy = true
    local model = nn.DataParallel(net)
    fails({"out of memory on cuda:1", ("in replica 2 of %d, on cuda:1"):format(count)}, model,
      lt.ones(count))
    assert.equal("cuda:0", lt.device "cuda")
    net.greedy = false
    model(lt.ones(count)):sum():backward()
    assert.equal(count, net.w.grad:item())
    collectgarbage()
    collectgarbage()
    assert.is_true(lt.cuda.memory_allocated(1) < 10000)
  end)

  it("refuses what cannot work, and names the place of an error", function()
    local net = mlp()
    local model = nn.DataParallel(net)
    fails({"DataParallel", "already", "outermost"}, nn.DataParallel, model)
    fails({'"1" is a DataParallel already'}, nn.DataParallel, nn.Sequential(model))
    fails({"it wants a module"}, nn.DataParallel, 3)
    fails({"device_ids[2] is cuda:0, which is in the list already"}, nn.DataParallel, net,
      {device_ids = {0, "cuda"}})
    fails({"DataParallel: device_ids[2] is cpu", "an accelerator"}, nn.DataParallel, net,
      {device_ids = {0, "cpu"}})
    fails({"device_ids[1] is meta"}, parallel.data_parallel, net, lt.ones(2, 5),
      {device_ids = {"meta"}})
    fails({"DataParallel: device_ids[2]: ", "cuda:9"}, nn.DataParallel, net, {device_ids = {0, 9}})
    fails({"DataParallel: device_ids[1]: ", '"mps"'}, nn.DataParallel, net,
      {device_ids = {"mps"}})
    fails({"DataParallel: device_ids[1]: ", "is -1"}, nn.DataParallel, net, {device_ids = {-1}})
    fails({"DataParallel: output_device is meta"}, nn.DataParallel, net, {output_device = "meta"})
    fails({"DataParallel: dim is 0", "count from 1"}, nn.DataParallel, net, {dim = 0})
    fails({"DataParallel: ", "{4, 5} has no dimension 3"}, nn.DataParallel(net, {dim = 3}),
      lt.ones(4, 5))
    fails({'DataParallel: argument "module" is nil, it wants a module'}, nn.DataParallel)
    fails({"cuda:1", '"1.weight" is on cuda:0', 'm:to "cuda:1"'}, nn.DataParallel, net,
      {device_ids = {1, 0}})
    fails({'no argument is called "device_id"'}, nn.DataParallel, net, {device_id = {0}})
    local moved = nn.DataParallel(mlp())
    moved:cpu()
    fails({"must have its parameters", '"1.weight" is on cpu'}, moved, lt.ones(2, 5))
    fails({'Linear (module "module.1" of DataParallel)', "wants {*, 5}"}, model,
      lt.ones(4, 4, {dtype = "float64"}))
    local rows = made_of(function(_, x) return x, {n = x:size(1)} end)
    fails({"DataParallel: ", "different values in result 2.n"}, nn.DataParallel(rows),
      lt.ones(count + 1, 1))
    local uneven = made_of(function(_, x)
      if x.device == "cuda:0" then return x end
      return x, x
    end)
    fails({"DataParallel: ", "different numbers of results: 1 and 2"}, nn.DataParallel(uneven),
      lt.ones(2, 1))
  end)
end)

describe("nn.parallel.data_parallel", function()
  it("is one call on several devices", function()
    local net = mlp()
    local x = lt.randn(6, 5, {dtype = "float64"})
    local out = parallel.data_parallel(net, x, {device_ids = {0, 1}, output_device = 1})
    assert.equal("cuda:1", out.device)
    close(net(x:cuda()), out)
    local sum = made_of(function(_, a, b, named) return a + b * named.k end)
    assert.same({3, 3}, parallel.data_parallel(sum, {lt.ones(2), lt.ones(2)},
      {module_kwargs = {k = 2}}):totable())
    assert.equal(1, parallel.data_parallel(made_of(function() return lt.ones(1) end)):numel())
    fails({"data_parallel", "it wants a module"}, parallel.data_parallel, 1, x)
  end)
end)

describe("nn.parallel.DistributedDataParallel", function()
  it("is a DataParallel, without processes", function()
    local net = mlp()
    local model = parallel.DistributedDataParallel(net)
    local x = lt.randn(6, 5, {dtype = "float64"})
    close(net(x:cuda()), model(x))
    assert.equal(5, model:no_sync(function(a) return a end, 5))
    assert.is_truthy(tostring(model):find "^DistributedDataParallel%(")
    fails({"DistributedDataParallel", '"process_group"', "leave it out"},
      parallel.DistributedDataParallel, net, {process_group = 1})
    fails({"DistributedDataParallel", '"bucket"', "It takes"}, parallel.DistributedDataParallel,
      {net, bucket = 1})
    fails({"wants a module"}, parallel.DistributedDataParallel)
    for _, words in ipairs {"lt.distributed.init_process_group()",
      "lt.nn.DistributedDataParallel(1)"} do
      local result = devices.script('local lt = require "lutra"\n' .. words)
      assert.is_truthy(result.err:find("one process drives all devices", 1, true), result.err)
    end
    fails({"already"}, nn.DataParallel, model)
    fails({"no_sync", "it wants a function"}, model.no_sync, model, 3)
  end)
end)
