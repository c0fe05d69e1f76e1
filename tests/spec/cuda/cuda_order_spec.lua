-- What happens when on a device: backward runs on the streams of forward, memory outlives its last
-- use on any stream, what the CPU lends arrives. All with random delays before each piece of work,
-- so that a wait that is missing shows.

local devices = require "device_support"
if devices.elsewhere("cuda/cuda_order", _ENV) then return end

local lt = require "lutra"

local function delayed(script)
  local result = devices.script([[
    local lt = require "lutra"
    local cuda = lt.cuda
    local function close(x, y)
      assert(lt.allclose(x:cpu(), y:cpu(), 1e-4, 1e-5), tostring(x) .. "\nis not\n" .. tostring(y))
    end
  ]] .. script, "LUTRA_EMULATE_DELAY=300")
  assert.equal(0, result.status, result.err)
end

describe("backward", function()
  it("runs on the streams of forward, and the caller's stream sees the grads", function()
    delayed [[
      for round = 1, 5 do
        lt.manual_seed(round)
        local a, b = lt.randn(40, 40), lt.randn(40, 40)
        local x, y = a:clone():requires_grad_(), b:clone():requires_grad_()
        local plain = (x:matmul(y):tanh() * x):sum()
        plain:backward()
        local dx, dy = a:cuda():requires_grad_(), b:cuda():requires_grad_()
        local s, t = cuda.Stream(), cuda.Stream()
        s:wait_stream(cuda.current_stream())
        local h = cuda.with_stream(s, function() return dx:matmul(dy) end)
        t:wait_stream(s)
        local loss = cuda.with_stream(t, function() return (h:tanh() * dx):sum() end)
        cuda.current_stream():wait_stream(t)
        loss:backward()
        assert(cuda.current_stream() == cuda.default_stream())
        close(dx.grad, x.grad)
        close(dy.grad, y.grad)
      end
    ]]
  end)

  it("is ready on the caller's stream, and runs hooks on that of forward", function()
    delayed [[
      for round = 1, 5 do
        lt.manual_seed(round)
        local a = lt.randn(300, 300)
        local x = a:cuda():requires_grad_()
        local s = cuda.Stream()
        s:wait_stream(cuda.current_stream())
        local seen, sum
        local y, loss = cuda.with_stream(s, function()
          local y = x * 1
          y:retain_grad()
          y:register_hook(function(g)
            seen, sum = cuda.current_stream(), g:sum():item()
          end)
          local z = y
          for _ = 1, 8 do z = z * 2 end
          return y, z:sum()
        end)
        cuda.current_stream():wait_stream(s)
        local got = lt.autograd.grad(loss, {y}, {retain_graph = true})[1]
        assert(got:eq(256):all():item())
        assert(seen == s and sum == 256 * 90000)
        loss:backward()
        assert(y.grad:eq(512):all():item()) -- both passes
        assert(x.grad:eq(256):all():item())
      end
    ]]
  end)

  it("runs a function of one's own on the stream of its forward", function()
    delayed [[
      local Twice = lt.autograd.Function:extend "Twice"
      local seen
      function Twice.forward(ctx, x) return x * 2 end
      function Twice.backward(ctx, g)
        seen = cuda.current_stream()
        return g * 2
      end
      local x = lt.ones{1000, device = "cuda", requires_grad = true}
      local s = cuda.Stream()
      s:wait_stream(cuda.current_stream())
      local y = cuda.with_stream(s, function() return Twice(x):sum() end)
      y:backward()
      assert(seen == s, tostring(seen))
      assert(x.grad:eq(2):all():item(), tostring(x.grad))
    ]]
  end)

  it("works on two devices and two streams", function()
    if lt.cuda.device_count() < 2 then return end
    delayed [[
      local a, b = lt.randn(30, 30), lt.randn(30, 30)
      local x, y = a:clone():requires_grad_(), b:clone():requires_grad_()
      local plain = (x:exp():matmul(y) * y):sum()
      plain:backward()
      local dx, dy = a:to("cuda:0"):requires_grad_(), b:to("cuda:1"):requires_grad_()
      local s = cuda.Stream{device = 1}
      s:wait_stream(cuda.current_stream(1))
      local e = dx:exp()
      local loss = cuda.with_stream(s, function() return (e:to("cuda:1"):matmul(dy) * dy):sum() end)
      loss:backward()
      assert(dx.grad.device == "cuda:0" and dy.grad.device == "cuda:1")
      close(dx.grad, x.grad)
      close(dy.grad, y.grad)
    ]]
  end)

  it("sends the gradient of a 0-d tensor of the CPU back to the CPU", function()
    local w = lt.tensor(2.5):requires_grad_()
    local x = lt.ones{3, device = "cuda"};
    (x * w):sum():backward()
    assert.equal("cpu", w.grad.device)
    assert.equal(3, w.grad:item())
  end)
end)

describe("memory", function()
  it("that another stream still reads is not given away", function()
    delayed [[
      local s = cuda.Stream()
      for round = 1, 20 do
        local x = lt.full({1 << 16}, round, {device = "cuda"})
        s:wait_stream(cuda.current_stream())
        local y = cuda.with_stream(s, function() return (x + 0.5):sum() end)
        x:free()
        local z = lt.full({1 << 16}, -1, {device = "cuda"}) -- may not take x's memory yet
        s:synchronize()
        assert(y:item() == (round + 0.5) * (1 << 16), y:item())
      end
    ]]
  end)

  it("of the host is whole when it is read, and may be written when that is called", function()
    delayed [[
      local source = lt.ones(1 << 18):pin_memory()
      for round = 1, 10 do
        source:fill_(round)
        local there = source:to{device = "cuda", non_blocking = true}
        source:fill_(-1)
        local back = (there * 2):to{device = "cpu", non_blocking = true}
        assert(back:is_pinned())
        assert(back:eq(2 * round):all():item(), tostring(back))
      end
    ]]
  end)
end)

describe("the second device", function()
  it("is used without the first", function()
    if lt.cuda.device_count() < 2 then return end
    for _ = 1, 25 do -- what went to the first device's stream ended too late in one run of five
      local result = devices.script [[
        local lt = require "lutra"
        local x = lt.randn{3, 4, device = "cuda:1"}
        local y = lt.tensor{1, 9}:to "cuda:1" * 2
        assert(y[1]:item() == 2 and y[2]:item() == 18, tostring(y))
        assert(x.device == y.device)
      ]]
      assert.equal(0, result.status, result.err)
    end
  end)
end)

describe("what the CPU lends", function()
  local x = lt.arange(12):view(3, 4):to "cuda"

  it("is brought: positions, masks, numbers", function()
    assert.same({{9, 10, 11, 12}, {1, 2, 3, 4}}, x[lt.tensor{3, 1}]:totable())
    assert.same({7, 8, 9, 10, 11, 12}, x[x:cpu():gt(6)]:totable())
    local y = x:clone()
    y[lt.tensor{1, 2}] = 0
    y[x:cpu():eq(12)] = -1
    assert.same({{0, 0, 0, 0}, {0, 0, 0, 0}, {9, 10, 11, -1}}, y:totable())
    assert.same({{2, 4, 6, 8}, {10, 12, 14, 16}, {18, 20, 22, 24}}, (x * lt.tensor(2)):totable())
    assert.equal("cuda:0", (lt.tensor(2) * x).device)
    assert.equal("cuda:0", lt.where(x:gt(3), x, lt.tensor(0)).device)
  end)

  it("is not what is written, nor what has dimensions", function()
    devices.fails('x is on "cuda:0", other is on "cpu"',
      function() return x + lt.ones(4):long() end)
    devices.fails('cannot store the result in self: the result is on "cuda:0", self is on "cpu"',
      function()
      return lt.tensor(1):add_(x[{1, 1}])
    end)
    devices.fails("different devices", function()
      return lt.index_select(x, 1, lt.tensor{1, 2})
    end)
  end)
end)
