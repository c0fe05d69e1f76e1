-- Saved tensors: hooks, checkpoints, anomaly detection, once_differentiable.
local lt = require "lutra"
local nn = lt.nn
local programs = require "program_support"
local graph = lt.autograd.graph
local checkpoint = lt.utils.checkpoint

local on = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local kind = on:match "^%a+"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function leaf(data) return lt.tensor(data, {device = on, requires_grad = true}) end

describe("saved_tensors_hooks", function()
  it("stores what pack_hook returns", function()
    local x, packed, unpacked = leaf{1., 2.}, 0, 0
    local y = graph.saved_tensors_hooks(function(t)
      packed = packed + 1
      assert.is_false(t.requires_grad)
      return {t:cpu(), t.device}
    end, function(p)
      unpacked = unpacked + 1
      return p[1]:to(p[2])
    end, function() return (x:exp() * x):sum() end)
    y:backward()
    assert.is_true(packed >= 2 and unpacked == packed)
    local expected = (x:detach():exp() * (x:detach() + 1))
    assert.is_true(lt.allclose(expected, x.grad))
  end)

  it("works with second derivatives and in-place ops", function()
    local x = leaf{2., 3.}
    local y = graph.saved_tensors_hooks(function(t) return t:clone() end,
      function(t) return t end, function() return ((x * 1):mul_(x):exp_()):sum() end)
    local g = lt.autograd.grad(y, x, {create_graph = true})
    local second = lt.autograd.grad(g:sum(), x)
    local t = x:detach()
    assert.is_true(lt.allclose((t * t):exp() * t * 2, g:detach()))
    assert.is_true(lt.allclose((t * t):exp() * (t * t * 4 + 2), second))
  end)

  it("uses the innermost pair, and ends with its scope", function()
    local x, outer, inner = leaf{1.}, 0, 0
    local function counter(f) return function(t) f() return t end end
    graph.saved_tensors_hooks(counter(function() outer = outer + 1 end), function(t) return t end,
      function()
        x:exp()
        graph.saved_tensors_hooks(counter(function() inner = inner + 1 end),
          function(t) return t end, function() x:exp() end)
        x:exp()
      end)
    x:exp()
    assert.equal(2, outer)
    assert.equal(1, inner)
  end)

  it("may be active when the program ends", function()
    -- The debug build fails here when the functions are not freed.
    local file = programs.file([[
      local lt = require "lutra"
      local function same(t) return t end
      local scope = coroutine.wrap(function()
        lt.autograd.graph.saved_tensors_hooks(same, same, coroutine.yield)
      end)
      scope()
      print(#lt.ones{2, requires_grad = true}:exp())]], ".lua")
    local result = programs.run(programs.quote(file))
    assert.are.same({0, "2\n", ""}, {result.status, result.out, result.err})
  end)

  it("reports errors of the hooks", function()
    local x = leaf{1.}
    assert.matches("no room", fails(graph.saved_tensors_hooks, function() error "no room" end,
      print, function() return x:exp() end), 1, true)
    local y = graph.saved_tensors_hooks(function(t) return t end, function() end,
      function() return x:exp() end)
    assert.matches("'unpack_hook' to return a tensor", fails(lt.autograd.grad, y:sum(), x), 1, true)
    assert.matches("'pack_hook'", fails(graph.saved_tensors_hooks, 1, print, print), 1, true)
    assert.matches("pin_memory", fails(graph.save_on_cpu, {pin = true}, print), 1, true)
  end)

  it("keeps tensors on the CPU with save_on_cpu", function()
    local x = leaf{1., 2.}
    local y = graph.save_on_cpu({pin_memory = true}, function() return (x:exp()):sum() end)
    y:backward()
    assert.equal(x.device, x.grad.device)
    assert.is_true(lt.allclose(x:detach():exp(), x.grad))
  end)
end)

describe("checkpoint", function()
  it("gives the gradients of the plain function, with dropout", function()
    local net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1)):to(on)
    local x = lt.randn(3, 4, {device = on}):requires_grad_()
    lt.manual_seed(1)
    net(x):sum():backward()
    local expected, own = x.grad, net[1].weight.grad
    x.grad = nil
    net:zero_grad()
    lt.manual_seed(1)
    local y = checkpoint(net, x, {use_reentrant = false})
    lt.rand(5)
    local state = lt.get_rng_state()
    y:sum():backward()
    assert.is_true(lt.equal(state, lt.get_rng_state()))
    assert.is_true(lt.equal(expected, x.grad))
    assert.is_true(lt.equal(own, net[1].weight.grad))
  end)

  it("calls the function again, as far as necessary", function()
    local calls, ended = 0, 0
    local function f(t)
      calls = calls + 1
      local r = t:exp()
      ended = ended + 1
      return r
    end
    local x = leaf{1.}
    checkpoint.checkpoint(f, x):sum():backward()
    assert.equal(2, calls)
    assert.equal(1, ended)
    checkpoint.set_checkpoint_early_stop(false, function()
      checkpoint.checkpoint(f, x):sum():backward()
    end)
    assert.equal(3, ended)
    lt.no_grad(checkpoint.checkpoint, f, x)
    assert.equal(5, calls)
  end)

  it("works with captured tensors, second derivatives and a second backward", function()
    local w, x = leaf{3.}, leaf{2.}
    local y = checkpoint(function(t) return w * t ^ 3 end, x)
    local g = lt.autograd.grad(y, x, {create_graph = true})
    assert.equal(36, g:item())
    assert.equal(36, lt.autograd.grad(g, x, {retain_graph = true}):item())
    assert.equal(12, lt.autograd.grad(g, w):item())
    local z = checkpoint(function(t) return (t:exp() * t):sum() end, x)
    local first = lt.autograd.grad(z, x, {retain_graph = true})
    assert.is_true(lt.equal(first, lt.autograd.grad(z, x)))
  end)

  it("nests, and works with several results and arguments that are no tensors", function()
    local x = leaf{1., 2.}
    local function f(t, scale)
      local inner = checkpoint(function(u) return u:sin() * scale end, t)
      return inner:exp(), inner:sum()
    end
    local a, b = checkpoint(f, x, 2)
    local g = lt.autograd.grad(a:sum() + b, x)
    local p, q = f(x, 2)
    assert.is_true(lt.allclose(lt.autograd.grad(p:sum() + q, x), g))
  end)

  it("repeats autocast", function()
    local net = nn.Linear(4, 4):to(on)
    local x = lt.randn(2, 4, {device = on}):requires_grad_()
    local y = lt.autocast(kind, {dtype = "bfloat16"}, function()
      return checkpoint(function(t) return net(net(t)):tanh() end, x)
    end)
    assert.equal("bfloat16", y.dtype)
    y:float():sum():backward()
    assert.equal("float32", x.grad.dtype)
  end)

  it("cuts a Sequential into segments", function()
    local net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh()):to(on)
    local x = lt.randn(2, 3, {device = on}):requires_grad_()
    local y = checkpoint.checkpoint_sequential(net, 2, x)
    assert.is_true(lt.equal(net(x), y))
    local g = lt.autograd.grad(y:sum(), x)
    assert.is_true(lt.allclose(lt.autograd.grad(net(x):sum(), x), g))
    assert.matches("from 1 to 4", fails(checkpoint.checkpoint_sequential, net, 5, x), 1, true)
  end)

  it("reports a function that does something else the second time", function()
    local x, calls = leaf{1., 2.}, 0
    local y = checkpoint(function(t)
      calls = calls + 1
      return calls == 1 and t:exp():sin() or t:exp()
    end, x)
    assert.matches("checkpoint: expected the function to save the same number",
      fails(lt.autograd.grad, y:sum(), x), 1, true)
    local z = checkpoint(function(t)
      calls = calls + 1
      return calls % 2 == 1 and t:exp() or t[{{1, 1}}]:exp()
    end, x)
    assert.matches("expected a tensor of shape", fails(lt.autograd.grad, z:sum(), x), 1, true)
    assert.matches("'function'", fails(checkpoint.checkpoint, 3), 1, true)
  end)
end)

describe("detect_anomaly", function()
  it("names the line of the op whose gradient is NaN", function()
    local x, line = leaf{-1.}, nil
    local message = fails(lt.autograd.detect_anomaly, function()
      local y = x:sqrt()
      line = debug.getinfo(1, "l").currentline - 1
      y:sum():backward()
    end)
    assert.matches("the gradient of input 1 of sqrt has NaN", message, 1, true)
    assert.matches("checkpoint_spec.lua:" .. line, message, 1, true)
    assert.is_nil(x.grad)
    assert.is_false(lt.autograd.is_anomaly_enabled())
    x:sqrt():sum():backward()
    assert.is_true(x.grad:isnan():all():item())
  end)

  it("names the line of the op whose gradient fails", function()
    local Broken = lt.autograd.Function:extend "Broken"
    function Broken.forward(_, t) return t * 2 end
    local x = leaf{1., 2.}
    local message = fails(lt.autograd.detect_anomaly, {check_nan = false}, function()
      local t = x * 1
      local y = t * t
      t:add_(1)
      y:sum():backward()
    end)
    assert.matches("was changed in place", message, 1, true)
    assert.matches("hint: the forward call was at", message, 1, true)
  end)

  it("can be switched without a scope", function()
    lt.autograd.set_detect_anomaly(true, {check_nan = false})
    assert.is_true(lt.autograd.is_anomaly_enabled())
    assert.is_false(lt.autograd.is_anomaly_check_nan_enabled())
    lt.autograd.set_detect_anomaly(false)
    assert.is_false(lt.autograd.is_anomaly_enabled())
    assert.matches("'mode'", fails(lt.autograd.set_detect_anomaly, 1), 1, true)
    assert.matches("check_nan", fails(lt.autograd.detect_anomaly, {nan = true}, print), 1, true)
  end)
end)

describe("once_differentiable", function()
  it("refuses second derivatives", function()
    local Cube = lt.autograd.Function:extend "Cube"
    function Cube.forward(ctx, t)
      ctx:save_for_backward(t)
      return t ^ 3
    end
    Cube.backward = lt.autograd.once_differentiable(function(ctx, g)
      return g * 3 * ctx:saved() ^ 2
    end)
    local x = leaf{2.}
    assert.equal(12, lt.autograd.grad(Cube(x):sum(), x):item())
    local g = leaf{1.}
    local first = lt.autograd.grad(Cube(x), x, {grad_outputs = g, create_graph = true})
    assert.matches("once_differentiable", fails(lt.autograd.grad, first:sum(), g), 1, true)
  end)
end)
