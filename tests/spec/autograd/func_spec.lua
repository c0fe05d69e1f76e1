-- lt.func and lt.autograd.functional: values are PyTorch's; structures, graphs, modules, errors.
local lt = require "lutra"
local golden = require "golden_support"
local nn = lt.nn
local fn, af = lt.func, lt.autograd.functional

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local on = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local kind = on:match "^%a+"
local wide = kind == "mps" and "float32" or "float64"
local function tensor(data) return lt.tensor(data, {dtype = wide, device = on}) end

-- The inputs and functions of tools/golden/function_transforms.py.
local function environment()
  local a = tensor{{0.5, -1.0, 2.0}, {1.5, 0.25, -0.75}}
  return setmetatable({a = a, x = tensor{0.3, -1.2, 2.0}, y = tensor{1.0, 0.5, -2.0},
    f = function(x) return (x:sin() * x):sum() end,
    g = function(x, y) return (x * x * y):sum() + (x * y:exp()):sum() end,
    h = function(x) return (a * x):tanh() end,
    lt = setmetatable({tensor = function(v) return tensor(v) end}, {__index = lt}),
    fn = fn, af = af}, {__index = _G})
end

local function check(expected, result)
  if not expected.list then
    assert.is_true(lt.is_tensor(result))
    assert.equal(tostring(lt.zeros(expected.shape).shape), tostring(result.shape))
    assert.is_false(result.requires_grad)
    local list = result:reshape(-1):totable()
    for i, value in ipairs(expected) do
      assert.is_true(math.abs(value - list[i]) <= (kind == "mps" and 1e-5 or 1e-12) * 10)
    end
    return
  end
  assert.equal(#expected.list, #result)
  for i, e in ipairs(expected.list) do check(e, result[i]) end
end

describe("transforms of functions", function()
  for _, case in ipairs(golden.cases "transforms") do
    it("gives PyTorch's values for " .. case[1], function()
      check(case[2], assert(load("return " .. case[1], "=case", "t", environment()))())
    end)
  end
end)

describe("lt.func", function()
  it("differentiates tables of tensors", function()
    local grads = fn.grad(function(p, x) return (p.w * x + p.b):sum() end)(
      {w = tensor{1, 2}, b = tensor{0, 0}}, tensor{3, 4})
    assert.same({3, 4}, grads.w:totable())
    assert.same({1, 1}, grads.b:totable())
  end)

  it("returns aux and values", function()
    local function f(x) return (x ^ 2):sum(), x * 3 end
    local g, aux = fn.grad(f, {has_aux = true})(tensor{1, 2})
    assert.same({2, 4}, g:totable())
    assert.same({3, 6}, aux:totable())
    local value, grad = fn.value_and_grad(function(x) return (x ^ 2):sum() end)(tensor{1, 2})
    assert.equal(5, value:item())
    assert.same({2, 4}, grad:totable())
    local out, pull, more = fn.vjp(f, tensor{1, 2}, {has_aux = true})
    assert.equal(5, out:item())
    assert.same({2, 4}, pull(tensor(1)):totable())
    assert.same({3, 6}, more:totable())
  end)

  it("stays in the graph of tensors outside, and only there", function()
    local w = tensor{2, 3}:requires_grad_()
    local g = fn.grad(function(x) return (w * x ^ 2):sum() end)(tensor{1, 1})
    assert.is_true(g.requires_grad)
    g:sum():backward()
    assert.same({2, 2}, w.grad:totable())
    assert.is_false(fn.grad(function(x) return (x ^ 2):sum() end)(tensor{1, 1}).requires_grad)
    local x = tensor{3}:requires_grad_()
    local h = fn.grad(function(t) return (t ^ 3):sum() end)(x)
    assert.same({18}, lt.autograd.grad(h:sum(), x):totable())
    lt.no_grad(function()
      assert.same({27}, fn.grad(function(t) return (t ^ 3):sum() end)(x):totable())
    end)
  end)

  it("calls a module with other parameters", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)):to{on, dtype = wide}
    local params = {}
    for name, p in net:named_parameters() do params[name] = lt.ones_like(p):detach() end
    local x = tensor{{1, 2}}
    local before = net(x)
    assert.equal(9, fn.functional_call(net, params, x):item())
    assert.is_true(lt.equal(before, net(x)))
    assert.equal(9, fn.functional_call(net, {params, {}}, {x}):item())
    local grads = fn.grad(function(p) return fn.functional_call(net, p, x):sum() end)(params)
    net:load_state_dict(params)
    net(x):sum():backward()
    for name, p in net:named_parameters() do
      assert.is_true(lt.allclose(p.grad, grads[name]))
    end
    pcall(fn.functional_call, net, params, "no tensor")
    assert.is_true(lt.is_parameter(net[1].weight))
  end)

  it("replaces tied parameters", function()
    local a, b = nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false})
    b.weight = a.weight
    local net = nn.Sequential(a, b)
    local eye = lt.eye(2)
    local x = lt.tensor{{1., 2.}}
    local out = fn.functional_call(net, {["1.weight"] = eye * 2}, x)
    assert.same({{4, 8}}, out:totable())
    assert.matches("strict", fails(fn.functional_call, net, {["1.weight"] = eye}, x, nil,
      {strict = true}), 1, true)
  end)

  it("stacks the state of modules for vmap", function()
    local models = {nn.Linear(3, 2), nn.Linear(3, 2)}
    local params, buffers = fn.stack_module_state(models)
    assert.equal("{2, 2, 3}", tostring(params.weight.shape))
    assert.is_true(params.weight.is_leaf and params.weight.requires_grad)
    assert.is_nil(next(buffers))
    local x = lt.randn(5, 3)
    local out = fn.vmap(function(p, b, t) return fn.functional_call(models[1], {p, b}, t) end,
      {in_dims = {1, 1, false}})(params, buffers, x)
    assert.is_true(lt.allclose(out[2], models[2](x)))
    local norm = nn.BatchNorm1d(2)
    local other = nn.InstanceNorm1d(2, {track_running_stats = true})
    local net = nn.Sequential(norm, other)
    assert.equal(net, fn.replace_all_batch_norm_modules_(net))
    assert.is_nil(norm.running_mean or norm.running_var or norm.num_batches_tracked)
    local batch = tensor{{1, 2}, {3, 5}}:float()
    norm:to(batch):eval()
    assert.is_true(lt.allclose(norm(batch), lt.F.batch_norm(batch, nil, nil, nil, nil, true)))
    assert.is_truthy(other.running_mean)
    assert.matches("replace_all_batch_norm_modules_: expected a module for argument 'root', got 3",
      fails(fn.replace_all_batch_norm_modules_, 3), 1, true)
    assert.matches("stack_module_state: expected modules of one class",
      fails(fn.stack_module_state, {nn.Linear(1, 1), nn.ReLU()}), 1, true)
  end)

  it("gives each example of vmap random numbers as randomness states", function()
    local x = lt.zeros(3, 4)
    local function noise(t) return t + lt.randn(4, {device = on}) end
    assert.matches("vmap: cannot use random numbers", fails(fn.vmap(noise), x), 1, true)
    local same = fn.vmap(noise, {randomness = "same"})(x)
    assert.is_true(lt.equal(same[1], same[2]))
    local different = fn.vmap(noise, {randomness = "different"})(x)
    assert.is_false(lt.equal(different[1], different[2]))
  end)

  it("states what it expects", function()
    local x = tensor{1, 2}
    assert.matches("0-d tensor", fails(fn.grad(function(t) return t end), x), 1, true)
    assert.matches("'argnums'", fails(fn.grad(function(t) return t:sum() end, {argnums = 3}), x),
      1, true)
    assert.matches("floating-point", fails(fn.grad(function(t) return t:sum() end),
      lt.tensor{1, 2}), 1, true)
    assert.matches("shape {2}", fails(fn.jvp, function(t) return t end, {x}, {tensor{1}}), 1, true)
    assert.matches("cotangents", fails(select(2, fn.vjp(function(t) return t end, x)), {}), 1, true)
    assert.matches("same size", fails(fn.vmap(lt.add), lt.ones(2), lt.ones(3)), 1, true)
    assert.matches("got none", fails(fn.vmap(lt.exp, {in_dims = false}), lt.ones(2)), 1, true)
    assert.matches("no parameter or buffer", fails(fn.functional_call, nn.Linear(1, 1), {q = x}, x),
      1, true)
  end)
end)

describe("lt.autograd.functional", function()
  it("makes differentiable results with create_graph", function()
    local x = tensor{1, 2}:requires_grad_()
    local j = af.jacobian(function(t) return t ^ 3 end, x, {create_graph = true})
    j:sum():backward()
    assert.same({6, 12}, x.grad:totable())
    assert.is_false(af.jacobian(function(t) return t ^ 3 end, x).requires_grad)
  end)

  it("checks that outputs depend on inputs with strict", function()
    local x = tensor{1, 2}
    local zero = af.jacobian(function() return x end, x)
    assert.equal(0, zero:abs():sum():item())
    assert.matches("does not depend", fails(af.jacobian, function() return x end, x,
      {strict = true}), 1, true)
    assert.matches("'v'", fails(af.vjp, function(t) return t end, x), 1, true)
    assert.matches("one element", fails(af.hessian, function(t) return t end, x), 1, true)
  end)
end)

describe("gradcheck", function()
  local x

  before_each(function()
    if kind == "mps" then pending "needs float64" end
    x = lt.rand(2, 3, {dtype = "float64", device = on}):requires_grad_()
  end)

  it("accepts right gradients", function()
    local function f(a, b) return a:sin() * b, (a * b):sum() end
    local y = lt.rand(3, {dtype = "float64", device = on}):requires_grad_()
    assert.is_true(lt.autograd.gradcheck(f, {x, y}))
    assert.is_true(lt.autograd.gradgradcheck(f, {x, y}))
    assert.is_true(lt.autograd.gradcheck(function(a) return a:t() * 2 end, x))
    local z = lt.complex(lt.rand(3, {dtype = "float64", device = on}),
      lt.rand(3, {dtype = "float64", device = on})):requires_grad_()
    assert.is_true(lt.autograd.gradcheck(function(t) return t * t end, z))
  end)

  it("finds wrong gradients", function()
    local Wrong = lt.autograd.Function:extend "Wrong"
    function Wrong.forward(_, t) return t * 2 end
    function Wrong.backward(_, g) return g * 3 end
    assert.matches("numerical 2, analytical 3", fails(lt.autograd.gradcheck, Wrong, x), 1, true)
    assert.is_false(lt.autograd.gradcheck(Wrong, x, {raise_exception = false}))
    local First = lt.autograd.Function:extend "First"
    function First.forward(ctx, t)
      ctx:save_for_backward(t)
      return t ^ 3
    end
    function First.backward(ctx, g) return g * (ctx:saved():detach() ^ 2) * 3 end
    assert.is_true(lt.autograd.gradcheck(First, x))
    assert.is_false(lt.autograd.gradgradcheck(First, x, {raise_exception = false}))
  end)

  it("expects an input that requires grad", function()
    assert.matches("requires grad", fails(lt.autograd.gradcheck, lt.sin, lt.ones(2)), 1, true)
    assert.matches("hint: input 1 is float32, of too low a precision: use float64",
      fails(lt.autograd.gradcheck, lt.exp, lt.ones(2):requires_grad_()), 1, true)
  end)
end)
