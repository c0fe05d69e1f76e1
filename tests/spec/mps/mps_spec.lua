-- lt.mps, and "mps" as a device: what tensors and modules do on it, which dtypes it has, ops
-- without a kernel.

local devices = require "device_support"
if devices.elsewhere("mps/mps", _ENV, {emulate = {"mps"}, memory = "1GiB"}) then return end

local lt = require "lutra"

local mps, nn = lt.mps, lt.nn
local fails = devices.fails
local on = {device = "mps"}

describe("lt.mps", function()
  it("finds the device", function()
    assert.is_true(mps.is_available() and mps.is_built())
    assert.is_true(lt.backends.mps.is_available() and lt.backends.mps.is_built())
    assert.equal(1, mps.device_count())
    assert.is_false(lt.cuda.is_available())
    assert.equal("mps", lt.best_device())
    assert.equal("mps", lt.accelerator.current_accelerator())
    assert.equal(1, lt.accelerator.device_count())
    assert.equal(0, lt.accelerator.current_device_index())
  end)

  it("accepts mps:0 for mps", function()
    assert.equal("mps", lt.device "mps:0")
    assert.equal("mps", lt.device("mps", 0))
    assert.equal("mps", lt.zeros{2, device = "mps:0"}.device)
    lt.accelerator.set_device_index(0)
    fails('got "mps:1": there is 1 of them, counted from 0', lt.device, "mps:1")
  end)

  it("counts memory", function()
    mps.empty_cache()
    local before = mps.current_allocated_memory()
    local x = lt.ones{1 << 20, device = "mps"}
    assert.equal(before + (4 << 20), mps.current_allocated_memory())
    assert.is_true(mps.driver_allocated_memory() >= mps.current_allocated_memory())
    local most = mps.recommended_max_memory()
    assert.is_true(most >= mps.driver_allocated_memory(), tostring(most))
    x:free()
    assert.equal(before, mps.current_allocated_memory())
    local cached = mps.driver_allocated_memory()
    mps.empty_cache()
    assert.is_true(mps.driver_allocated_memory() < cached)
    assert.equal(mps.current_allocated_memory(), lt.accelerator.memory_allocated "mps")
  end)

  it("limits memory to a fraction of the recommended", function()
    local fraction = 64 / (mps.recommended_max_memory() >> 20)
    mps.set_per_process_memory_fraction(fraction)
    fails('zeros: out of memory on "mps"', lt.zeros, {65, 1 << 18, device = "mps"})
    lt.zeros{32, 1 << 18, device = "mps"}:free()
    mps.set_per_process_memory_fraction(1)
    lt.zeros{65, 1 << 18, device = "mps"}:free()
    fails("a number from 0 to 1", mps.set_per_process_memory_fraction, 2)
    mps.empty_cache()
  end)

  it("synchronizes", function()
    local x = lt.ones{1000, 1000, device = "mps"}
    for _ = 1, 10 do x = x + 1 end
    mps.synchronize()
    lt.synchronize()
    lt.accelerator.synchronize "mps"
    assert.equal(11, x[{1, 1}]:item())
  end)

  it("has events", function()
    local first, last = mps.Event{enable_timing = true}, mps.Event{enable_timing = true}
    assert.is_true(first:query())
    first:record()
    local x = lt.ones{512, 512, device = "mps"}
    x = x:matmul(x)
    last:record()
    last:synchronize()
    assert.is_true(last:query() and last.device == "mps")
    assert.is_true(first:elapsed_time(last) >= 0)
    assert.equal(512, x[{1, 1}]:item())
  end)

  it("has the random numbers of the CPU", function()
    mps.manual_seed(5)
    local state, there = mps.get_rng_state(), lt.rand{1000, device = "mps"}
    mps.set_rng_state(state)
    assert.is_true(lt.equal(there:cpu(), lt.rand(1000)))
    assert.equal("integer", math.type(mps.seed()))
  end)

  it("marks ops for the system's profiler", function()
    local function work() return lt.ones{3, device = "mps"}:exp():sum():item() end
    assert.is_true(math.abs(3 * math.exp(1) - mps.profiler.profile(work)) < 1e-5)
    mps.profiler.start("interval,event", true)
    fails("mps.profiler.start: cannot start the profiler: it is already running",
      mps.profiler.start)
    work()
    mps.profiler.stop()
    mps.profiler.stop()
    fails("no luck", mps.profiler.profile, function() error "no luck" end)
    mps.profiler.start "event" -- the error has stopped it
    mps.profiler.stop()
    fails('expected "interval", "event" or "interval,event" for argument \'mode\'',
      mps.profiler.start, "all")
    assert.is_false(mps.profiler.is_metal_capture_enabled() or mps.profiler.is_capturing_metal())
  end)
end)

describe("a tensor on mps", function()
  it("says where it is", function()
    local x = lt.ones{2, 2, device = "mps"}
    assert.equal("mps", x.device)
    assert.is_true(x.is_mps and not (x.is_cuda or x.is_cpu or x.is_meta))
    assert.truthy(tostring(x):find('device=mps', 1, true) or tostring(x):find("mps", 1, true))
    assert.truthy(x:summary():find("mps", 1, true))
  end)

  it("comes and goes by every way", function()
    local x, rows = lt.arange(6):reshape(2, 3), {{1, 2, 3}, {4, 5, 6}}
    for _, there in ipairs {x:to "mps", x:mps(), x:to{device = "mps"}, x:to(lt.zeros(1, on)),
      lt.tensor(rows, on), lt.with_device("mps", lt.tensor, rows),
      x:pin_memory():to{"mps", non_blocking = true}, x:t():mps():t()} do
      assert.equal("mps", there.device)
      assert.is_true(lt.equal(x:to(there.dtype), there:cpu()))
    end
    assert.is_true(lt.equal(x, x:mps():to{"cpu", non_blocking = true}))
    assert.same({{1, 2, 3}, {4, 5, 6}}, x:mps():totable())
  end)

  it("is not mixed with another device", function()
    fails({'add: cannot use tensors on different devices', 'is on "mps"', 'is on "cpu"'},
      function() return lt.ones(2, on) + lt.ones(2) end)
    assert.equal(3, (lt.ones(2, on) + lt.tensor(2))[1]:item()) -- a number on the CPU
  end)

  it("is made there by default", function()
    lt.set_default_device "mps"
    local x = lt.zeros(3)
    lt.set_default_device "cpu"
    assert.equal("mps", x.device)
    assert.equal("cpu", lt.zeros(3).device)
  end)
end)

describe("a module on mps", function()
  it("is moved, trains and is saved", function()
    lt.manual_seed(1)
    local net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    assert.equal(net, net:mps())
    assert.equal("mps", net:device())
    net:to "mps:0"
    local opt = lt.optim.AdamW(net:parameters(), {lr = 0.05})
    local x = lt.randn{64, 4, device = "mps"}
    local y = x:sum{dim = 2, keepdim = true}
    local first, last
    for _ = 1, 60 do
      opt:zero_grad()
      local loss = lt.F.mse_loss(net(x), y)
      loss:backward()
      opt:step()
      first, last = first or loss:item(), loss:item()
    end
    assert.is_true(last < 0.1 * first, ("%g, %g"):format(first, last))
    net:cpu()
    assert.equal("cpu", net:device())
  end)

  it("gets its batches there", function()
    local set = lt.data.TensorDataset(lt.arange(10):float():unsqueeze(2), lt.arange(10))
    local seen, options = 0, {batch_size = 4, device = "mps", pin_memory = true}
    for x, y in lt.data.DataLoader(set, options):iter() do
      assert.same({"mps", "mps"}, {x.device, y.device})
      assert.is_true(lt.equal(x:squeeze(2):long(), y))
      seen = seen + x:size(1)
    end
    assert.equal(10, seen)
  end)
end)

describe("float64 on mps", function()
  local narrow = {'cannot use dtype "float64" on "mps": the device does not have it', 'float32'}
  local wide = lt.ones({3}, {dtype = "float64"})

  it("is refused where a tensor is made", function()
    for _, make in ipairs {
      function() return lt.zeros{3, device = "mps", dtype = "float64"} end,
      function() return lt.empty{3, device = "mps", dtype = "float64"} end,
      function() return lt.full({3}, 1.5, {device = "mps", dtype = "float64"}) end,
      function() return lt.tensor({1.5}, {device = "mps", dtype = "float64"}) end,
      function() return lt.arange(3, {device = "mps", dtype = "float64"}) end,
      function() return lt.linspace(0, 1, 3, {device = "mps", dtype = "float64"}) end,
      function() return lt.eye{3, device = "mps", dtype = "float64"} end,
      function() return lt.rand{3, device = "mps", dtype = "float64"} end,
      function() return lt.randn{3, device = "mps", dtype = "float64"} end,
      function() return lt.ones_like(lt.ones(3, on), {dtype = "float64"}) end,
      function() return lt.zeros_like(wide, on) end,
      function() return lt.ones(3, on):new_zeros({3}, {dtype = "float64"}) end,
      function() return nn.Linear(2, 2, {device = "mps", dtype = "float64"}) end,
    } do
      fails(narrow, make)
    end
    fails({'cannot use dtype "complex128" on "mps"', 'hint: dtype = "complex64"'}, lt.zeros,
      {3, device = "mps", dtype = "complex128"})
  end)

  it("is refused where a tensor is moved or converted", function()
    local x, net = lt.ones(3, on), nn.Linear(2, 2):to "float64"
    for _, move in ipairs {
      function() return wide:to "mps" end, function() return wide:mps() end,
      function() return wide:to(x) :to "float64" end,
      function() return x:double() end, function() return x:to "float64" end,
      function() return x:to{dtype = "float64"} end, function() return x:type_as(
        lt.ones{1, dtype = "float64"}:to{device = "mps"}) end,
      function() return net:to "mps" end, function() return net:mps() end,
      function() return nn.Linear(2, 2):mps():double() end,
    } do
      fails(narrow, move)
    end
    assert.equal("cpu", net:device())
    fails({'"complex128" on "mps"', "complex64"}, function() return x:to "complex128" end)
  end)

  it("is refused as the dtype of a result", function()
    local x, n = lt.ones(3, on), lt.tensor({1, 2}, {device = "mps", dtype = "int64"})
    fails(narrow, function() return x:sum{dtype = "float64"} end)
    fails(narrow, function() return x:cumsum{dim = 1, dtype = "float64"} end)
    fails(narrow, function() return n + lt.tensor(0.5, {dtype = "float64"}) end)
    lt.set_default_dtype "float64"
    local ok, why = pcall(function()
      fails(narrow, lt.zeros, 3, on)
      fails(narrow, function() return n / 2 end)
      fails(narrow, function() return n:gt(0.5) end)
      assert.equal("float32", (x / 2).dtype)
    end)
    lt.set_default_dtype "float32"
    assert(ok, why)
  end)

  it("is converted by the CPU in a copy", function()
    local x = lt.zeros(3, on)
    assert.is_true(lt.equal(x:copy_(wide):cpu(), lt.ones(3)))
    local there = wide:to{device = "mps", dtype = "float32"}
    assert.same({"mps", "float32"}, {there.device, there.dtype})
    local back = there:to{device = "cpu", dtype = "float64"}
    assert.same({"cpu", "float64"}, {back.device, back.dtype})
    assert.is_true(lt.equal(back, wide))
    local net = nn.Linear(2, 2):mps()
    net:load_state_dict(nn.Linear(2, 2):to("float64"):state_dict())
    assert.equal("float32", net.weight.dtype)
  end)

  it("is refused when it is loaded", function()
    local path = os.tmpname()
    lt.save_npy(path, wide)
    fails(narrow, lt.load_npy, path, on)
    lt.save_safetensors(path, {w = wide})
    fails(narrow, lt.load_safetensors, path, on)
    os.remove(path)
  end)

  it("is no matter of numbers, and of tensors with one on the CPU", function()
    local x = lt.ones(3, on)
    assert.equal("float32", (x * 0.1).dtype)
    local y = x * lt.tensor(0.5, {dtype = "float64"})
    assert.same({"float32", 0.5}, {y.dtype, y[1]:item()})
    assert.same({"int64", 3}, {(x:ne(0):sum()).dtype, x:ne(0):sum():item()})
  end)

  it("is not among the dtypes of the device", function()
    local list = table.concat(lt.accelerator.get_device_capability().supported_dtypes, " ")
    assert.is_nil(list:find "float64" or list:find "complex128")
    assert.is_truthy(list:find "float32" and list:find "complex64" and list:find "int64")
  end)
end)

describe("lt.mps.unsupported_ops", function()
  it("lists the ops that lt.ops() says mps lacks, sorted", function()
    local expected = {}
    for _, op in ipairs(lt.ops()) do
      if not op.support.mps and op.name:sub(1, 1) ~= "_" then expected[#expected + 1] = op.name end
    end
    table.sort(expected)
    assert.same(expected, mps.unsupported_ops())
    assert.is_true(#expected < #lt.ops() / 10)
  end)
end)
