-- lt.amp.GradScaler and lt.amp.custom_fwd. The numbers are those of PyTorch's rules: the scale is
-- multiplied by backoff_factor after inf, by growth_factor after growth_interval finite steps.
local lt = require "lutra"
local nn, optim = lt.nn, lt.optim

local on = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local kind = on:match "^%a+"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

describe("GradScaler", function()
  local w, opt, scaler

  before_each(function()
    w = lt.tensor({1., 2.}, {device = on, requires_grad = true})
    opt = optim.SGD({w}, {lr = 1})
    scaler = lt.amp.GradScaler(kind, {init_scale = 8, growth_interval = 2})
  end)

  local function iteration(factor)
    opt:zero_grad()
    scaler:scale((w * factor):sum()):backward()
    scaler:step(opt)
    scaler:update()
  end

  it("scales losses and steps with unscaled gradients", function()
    local loss = scaler:scale((w * 3):sum())
    assert.equal(72, loss:item())
    loss:backward()
    assert.same({24, 24}, w.grad:totable())
    scaler:unscale_(opt)
    assert.same({3, 3}, w.grad:totable())
    scaler:step(opt)
    assert.same({-2, -1}, w:detach():totable())
    local list = scaler:scale{lt.ones(1, {device = on}), {lt.ones(1, {device = on})}}
    assert.equal(8, list[2][1]:item())
  end)

  it("grows after growth_interval steps, and skips steps with inf", function()
    iteration(0)
    assert.equal(8, scaler:get_scale())
    iteration(0)
    assert.equal(16, scaler:get_scale())
    iteration(0)
    assert.equal(1, scaler:state_dict()._growth_tracker)
    local before = w:detach():clone()
    iteration(math.huge)
    assert.equal(8, scaler:get_scale())
    assert.equal(0, scaler:state_dict()._growth_tracker)
    assert.is_true(lt.equal(before, w:detach()))
    iteration(0 / 0)
    assert.equal(4, scaler:get_scale())
  end)

  it("decides for each optimizer on its own", function()
    local v = lt.tensor({1.}, {device = on, requires_grad = true})
    local other = optim.SGD({v}, {lr = 1})
    scaler:scale((w * math.huge):sum() + v:sum()):backward()
    scaler:step(opt)
    scaler:step(other)
    scaler:update()
    assert.same({1, 2}, w:detach():totable())
    assert.same({0}, v:detach():totable())
    assert.equal(4, scaler:get_scale())
  end)

  it("does not grow to inf", function()
    scaler = lt.amp.GradScaler(kind, {init_scale = 2 ^ 127, growth_interval = 1})
    iteration(0)
    assert.equal(2 ^ 127, scaler:get_scale())
  end)

  it("sets and restores its state", function()
    iteration(0)
    scaler:update(32)
    assert.equal(32, scaler:get_scale())
    scaler:set_growth_factor(4)
    scaler:set_backoff_factor(0.25)
    scaler:set_growth_interval(7)
    local state = scaler:state_dict()
    assert.same({scale = 32, growth_factor = 4, backoff_factor = 0.25, growth_interval = 7,
      _growth_tracker = 1}, state)
    local other = lt.amp.GradScaler(kind)
    other:load_state_dict(state)
    assert.same(state, other:state_dict())
    assert.equal(4, other:get_growth_factor())
    assert.equal(0.25, other:get_backoff_factor())
    assert.equal(7, other:get_growth_interval())
    assert.equal(96, other:scale(lt.full({1}, 3., {device = on})):item())
  end)

  it("does nothing when it is not enabled", function()
    scaler = lt.amp.GradScaler(kind, {enabled = false})
    iteration(1)
    assert.is_false(scaler:is_enabled())
    assert.same({0, 1}, w:detach():totable())
    assert.equal(1, scaler:get_scale())
    assert.same({}, scaler:state_dict())
  end)

  it("reports calls in the wrong order", function()
    assert.matches("scale is not set", fails(scaler.step, scaler, opt), 1, true)
    scaler:scale(w:sum()):backward()
    scaler:unscale_(opt)
    assert.matches("cannot unscale twice", fails(scaler.unscale_, scaler, opt), 1, true)
    scaler:step(opt)
    assert.matches("cannot step twice", fails(scaler.step, scaler, opt), 1, true)
    assert.matches("step was called", fails(scaler.unscale_, scaler, opt), 1, true)
    scaler:update()
    assert.matches("got none", fails(scaler.update, scaler), 1, true)
    w.grad = nil
    assert.matches("expected gradients", fails(scaler.step, scaler, opt), 1, true)
    assert.matches("closure", fails(scaler.step, scaler, opt, function() end), 1, true)
  end)

  it("refuses gradients in float16 and invalid factors", function()
    local h = lt.ones(2, {device = on, dtype = "float16"}):requires_grad_()
    local of_half = optim.SGD({h}, {lr = 1})
    scaler:scale(h:sum()):backward()
    assert.matches("float16", fails(scaler.unscale_, scaler, of_half), 1, true)
    assert.matches("'growth_factor'", fails(lt.amp.GradScaler, kind, {growth_factor = 1}), 1, true)
    assert.matches("'backoff_factor'", fails(lt.amp.GradScaler, kind, {backoff_factor = 1}), 1,
      true)
    assert.matches("'device_type'", fails(lt.amp.GradScaler, "tpu"), 1, true)
  end)
end)

describe("custom_fwd and custom_bwd", function()
  local function make(cast)
    local Product = lt.autograd.Function:extend "Product"
    local seen = {}
    Product.forward = lt.amp.custom_fwd(function(ctx, a, b)
      ctx:save_for_backward(a, b)
      seen.forward = lt.mm(a, b).dtype
      return lt.mm(a, b)
    end, {device_type = kind, cast_inputs = cast})
    Product.backward = lt.amp.custom_bwd(function(ctx, g)
      local a, b = ctx:saved()
      seen.backward = lt.mm(a, b).dtype
      return g:to(a.dtype):mm(b:t()), a:t():mm(g:to(a.dtype))
    end, {device_type = kind})
    return Product, seen
  end

  it("run backward with the settings of forward", function()
    local Product, seen = make()
    local a = lt.ones(2, 2, {device = on}):requires_grad_()
    local y = lt.autocast(kind, {dtype = "bfloat16"}, Product, a, a)
    assert.equal("bfloat16", y.dtype)
    y:sum():backward()
    assert.same({forward = "bfloat16", backward = "bfloat16"}, seen)
    assert.equal("float32", a.grad.dtype)
  end)

  it("cast inputs", function()
    local Product, seen = make "float32"
    local a = lt.ones(2, 2, {device = on}):requires_grad_()
    local y = lt.autocast(kind, {dtype = "bfloat16"}, function() return Product(lt.mm(a, a), a) end)
    assert.equal("float32", y.dtype)
    y:sum():backward()
    assert.same({forward = "float32", backward = "float32"}, seen)
  end)

  it("belong together", function()
    local Wrong = make()
    Wrong.forward = function(_, a) return a * 2 end
    local a = lt.ones(2, 2, {device = on}):requires_grad_()
    assert.matches("custom_fwd", fails(lt.autograd.grad, Wrong(a):sum(), a), 1, true)
  end)
end)

describe("register_post_accumulate_grad_hook", function()
  it("runs after the gradient is in grad", function()
    local m = nn.Linear(2, 1):to(on)
    local seen = {}
    local handle = m.weight:register_post_accumulate_grad_hook(function(p)
      seen[#seen + 1] = p.grad:totable()[1]
      p.grad = nil
    end)
    for _ = 1, 2 do m(lt.ones(1, 2, {device = on})):sum():backward() end
    assert.same({{1, 1}, {1, 1}}, seen)
    assert.is_nil(m.weight.grad)
    handle:remove()
    lt.autograd.backward{m(lt.ones(1, 2, {device = on})):sum()}
    assert.equal(2, #seen)
    assert.same({{1, 1}}, m.weight.grad:totable())
    local x = lt.ones(1)
    assert.matches("leaf tensor that requires grad",
      fails(x.register_post_accumulate_grad_hook, x, print), 1, true)
  end)
end)
