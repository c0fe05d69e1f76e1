-- Two GPUs of NVIDIA and one of Apple in one program: names, copies between them, what is refused.

local devices = require "device_support"
if devices.elsewhere("mps/both", _ENV, {emulate = {"cuda:2,mps"}}) then return end

local lt = require "lutra"

local accelerator, cuda, mps, nn = lt.accelerator, lt.cuda, lt.mps, lt.nn
local fails = devices.fails

describe("cuda and mps in one program", function()
  it("are both there, and cuda is the accelerator", function()
    assert.is_true(cuda.is_available() and mps.is_available())
    assert.equal("cuda", accelerator.current_accelerator())
    assert.equal(2, accelerator.device_count())
    assert.equal("cuda:0", lt.best_device())
    assert.equal("mps", lt.device "mps")
    fails("Available devices: cpu, cuda:0, cuda:1, mps, meta", lt.device, "tpu")
  end)

  it("each keep a current device of their own", function()
    cuda.with_device(1, function()
      assert.equal("cuda:1", lt.zeros{1, device = "cuda"}.device)
      assert.equal("mps", lt.zeros{1, device = "mps"}.device)
    end)
    accelerator.with_device("mps", function() assert.equal("cuda:0", lt.device "cuda") end)
    lt.set_default_device "mps"
    local x, y = lt.zeros(2), lt.with_device("cuda:1", lt.zeros, 2)
    lt.set_default_device "cpu"
    assert.same({"mps", "cuda:1"}, {x.device, y.device})
  end)

  it("copy to each other through the host", function()
    local x = lt.randn(64, 33)
    local places = {"cpu", "cuda:0", "cuda:1", "mps"}
    for _, from in ipairs(places) do
      for _, to in ipairs(places) do
        local there = x:to(from):t():to(to)
        assert.equal(to, there.device)
        assert.is_true(lt.equal(x:t(), there:cpu()), from .. " to " .. to)
        local into = lt.zeros({33, 64}, {device = to, dtype = "float16"})
        assert.is_true(lt.equal(x:t():half(), into:copy_(x:to(from):t()):cpu()))
      end
    end
  end)

  it("convert float64 on the device that has it", function()
    local wide = lt.randn({5}, {device = "cuda", dtype = "float64"})
    local there = wide:to{device = "mps", dtype = "float32"}
    assert.is_true(lt.equal(wide:float():cpu(), there:cpu()))
    local back = there:to{device = "cuda:1", dtype = "float64"}
    assert.same({"cuda:1", "float64"}, {back.device, back.dtype})
    assert.is_true(lt.equal(there:cpu():double(), back:cpu()))
    fails('cannot use dtype "float64" on "mps"', function() return wide:to "mps" end)
  end)

  it("do not mix in an op", function()
    local x, y = lt.ones(2, {device = "cuda:1"}), lt.ones(2, {device = "mps"})
    fails({"add: cannot use tensors on different devices", 'is on "cuda:1"', 'is on "mps"'},
      function() return x + y end)
    local net = nn.Linear(2, 2):to "mps"
    fails({'"cuda:1"', '"mps"', "weight"}, net, lt.ones{1, 2, device = "cuda:1"})
  end)

  it("have memory of their own", function()
    local before = {cuda.memory_allocated(0), mps.current_allocated_memory()}
    local x = lt.zeros{1 << 18, device = "mps"}
    assert.equal(before[1], cuda.memory_allocated(0))
    assert.equal(before[2] + (1 << 20), mps.current_allocated_memory())
    assert.equal(mps.current_allocated_memory(), accelerator.memory_allocated(x))
    fails("expected a device of type \"cuda\" for argument 'device', got \"mps\"",
      cuda.memory_allocated, "mps")
    x:free()
  end)

  it("have gradients across both", function()
    local w = lt.tensor({1, 2, 3}, {dtype = "float32", requires_grad = true})
    local sum = (w:to "cuda" * 2):sum():to "mps" + (w:mps() * 3):sum()
    sum:backward()
    assert.same({5, 5, 5}, w.grad:totable())
  end)

  it("have events and streams of their own", function()
    local event = mps.Event()
    event:record()
    event:synchronize()
    assert.equal("mps", event.device)
    local stream = cuda.Stream(1)
    fails({'"cuda:1"', '"mps"'}, function() stream:wait_event(event) end)
  end)

  it("take kernels of their own language only", function()
    local lib = mps.compile_shader [==[
      kernel void one(device float *x, uint i [[thread_position_in_grid]]) { x[i] = 1; }]==]
    fails({"one: expected a tensor on \"mps\" for argument 'x'", 'got one on "cuda:0"'}, lib.one,
      lt.zeros{3, device = "cuda:0"})
    local x = lt.zeros{3, device = "mps"}
    lib.one(x)
    assert.same({1, 1, 1}, x:totable())
  end)
end)
