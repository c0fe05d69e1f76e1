-- nn.parallel: a module on several devices computes what it computes on one.

local devices = require "device_support"
local support = require "parallel_support"
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
  local test = devices.emulated_it(_ENV)

  describe("nn.parallel on four devices", function()
    test("passes under hard conditions", function()
      local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
      run(hard, ("%stests/busted.lua %stests/spec/nn/parallel_spec.lua "
        .. "%stests/spec/nn/parallel_parts_spec.lua"):format(root, root, root))
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
      assert.is_truthy(result.out:find("'device_ids[1]', got \"cpu\"", 1, true), result.out)
      assert.is_truthy(result.out:find("expected an available device", 1, true), result.out)
    end)
  end)
end

if devices.elsewhere("nn/parallel", _ENV, {emulate = {"cuda:2,peer=off"}}) then
  return describe_the_emulated()
end

local lt = require "lutra"

local nn, optim, parallel = lt.nn, lt.optim, lt.nn.parallel
local fails, made_of, device_names = devices.fails, support.made_of, support.device_names
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
local function close(expected, actual, times)
  assert.equal(tostring(expected.shape), tostring(actual.shape))
  local off = (expected:cpu() - actual:cpu()):abs():max():item()
  local largest = expected:abs():max():item()
  assert.is_true(off <= (times or 1) * 32 * 8 * 2^-52 * largest,
    ("off by %g of %g"):format(off, largest))
end

before_each(function() lt.manual_seed(1) end)

if count < 2 then
  describe("nn.parallel", function()
    it("is tested on two devices", function() pending "one device" end)
  end)
  return
end

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
    local expected = {x.grad}
    for p in net:parameters() do expected[#expected + 1] = p.grad end
    net:zero_grad()
    x.grad = nil
    nn.DataParallel(net)(x):pow(2):mean():backward()
    local got = {x.grad}
    for p in net:parameters() do got[#got + 1] = p.grad end
    assert.equal(#expected, #got)
    for i, grad in ipairs(expected) do close(grad, got[i]) end
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
    local expected = net[1].weight.grad
    net:zero_grad()
    nn.DataParallel(net)(x):sum():backward()
    close(expected, net[1].weight.grad)
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
    fails({"load_state_dict", 'lack the "module."', "m.module:load_state_dict"},
      model.load_state_dict,
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
    -- A loop that leaves it to the collector holds a part of what it took, too.
    local function taken() return lt.cuda.memory_stats(0)["allocated_bytes.all.allocated"] end
    lt.cuda.reset_peak_memory_stats(0)
    local before = taken()
    for _ = 1, 200 do
      net:zero_grad()
      model(x):sum():backward()
    end
    assert.is_true(4 * lt.cuda.max_memory_allocated(0) < taken() - before)
  end)

  it("continues after one device is out of memory", function()
    local size = lt.cuda.get_device_properties(1).total_memory
    local net = made_of(function(self, x)
      if self.greedy and x.device == "cuda:1" then lt.zeros{size, device = x.device} end
      return x * self.w
    end)
    net.w = nn.Parameter(lt.ones{1, device = "cuda"})
    net.greedy = true
    local model = nn.DataParallel(net)
    fails({'out of memory on "cuda:1"', ("in replica 2 of %d, on cuda:1"):format(count)}, model,
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
    fails({'cannot replicate "1": it is a DataParallel already'}, nn.DataParallel,
      nn.Sequential(model))
    fails({"expected a module for argument 'module', got 3"}, nn.DataParallel, 3)
    fails({"expected different devices for argument 'device_ids', got \"cuda:0\" twice"},
      nn.DataParallel, net,
      {device_ids = {0, "cuda"}})
    fails({"DataParallel: expected an accelerator's device for argument 'device_ids[2]', got "
      .. '"cpu"'}, nn.DataParallel, net,
      {device_ids = {0, "cpu"}})
    fails({"'device_ids[1]', got \"meta\""}, parallel.data_parallel, net, lt.ones(2, 5),
      {device_ids = {"meta"}})
    fails({"DataParallel: device_ids[2]: ", "cuda:9"}, nn.DataParallel, net, {device_ids = {0, 9}})
    fails({"DataParallel: device_ids[1]: ", '"mps"'}, nn.DataParallel, net,
      {device_ids = {"mps"}})
    fails({"DataParallel: device_ids[1]: ", "device_ids[1]: expected a device index of at "
      .. "least 0 for argument 'device', got -1"}, nn.DataParallel, net, {device_ids = {-1}})
    fails({"'output_device', got \"meta\""}, nn.DataParallel, net, {output_device = "meta"})
    fails({"DataParallel: expected a dimension from 1", "'dim', got 0"}, nn.DataParallel, net,
      {dim = 0})
    fails({"DataParallel: ", "expected a dimension from 1 to 2",
      "got 3 for a tensor of shape {4, 5}"}, nn.DataParallel(net, {dim = 3}),
      lt.ones(4, 5))
    fails({"DataParallel: expected a module for argument 'module', got nil"}, nn.DataParallel)
    fails({"cuda:1", '"1.weight" on "cuda:0"', 'm:to "cuda:1"'},
      nn.DataParallel(net, {device_ids = {1, 0}}), lt.ones(2, 5))
    fails({"expected an argument name (module, device_ids, output_device, dim), got 'device_id'"},
      nn.DataParallel, net, {device_id = {0}})
    local moved = nn.DataParallel(mlp())
    moved:cpu()
    local wrapped_first = nn.DataParallel(mlp("float32"):cpu()):to "cuda"
    assert.equal("cuda:0", wrapped_first(lt.ones(2, 5)).device)
    fails({"expected all parameters and buffers on", '"1.weight" on "cpu"'}, moved, lt.ones(2, 5))
    fails({"module.1: Linear: expected an input", "of shape {*, 5}"}, model,
      lt.ones(4, 4, {dtype = "float64"}))
    local rows = made_of(function(_, x) return x, {n = x:size(1)} end)
    fails({"DataParallel: ", "different values in result 2.n"}, nn.DataParallel(rows),
      lt.ones(count + 1, 1))
    local uneven = made_of(function(_, x)
      if x.device == "cuda:0" then return x end
      return x, x
    end)
    fails({"DataParallel: ", "as many results from each replica, got 1 and 2"},
      nn.DataParallel(uneven),
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
    fails({"data_parallel: expected a module for argument 'module', got 1"}, parallel.data_parallel,
      1, x)
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
    fails({"DistributedDataParallel: cannot use a process_group", "init_process_group()"},
      parallel.DistributedDataParallel, net, {process_group = 1})
    fails({"DistributedDataParallel", "expected an argument name", "got 'bucket'"},
      parallel.DistributedDataParallel, {net, bucket = 1})
    fails({"register_comm_hook: cannot use a hook", "init_process_group()"},
      model.register_comm_hook, model, nil, print)
    fails({"expected a module"}, parallel.DistributedDataParallel)
    local result = devices.script 'local lt = require "lutra"; lt.nn.DistributedDataParallel(1)'
    assert.is_truthy(result.err:find("lt.nn.parallel.DistributedDataParallel", 1, true), result.err)
    fails({"already"}, nn.DataParallel, model)
    fails({"no_sync: expected a function for argument 'f', got 3"}, model.no_sync, model, 3)
  end)
end)
