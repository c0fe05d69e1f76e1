--- What libraries build on: the number of the running backward pass, functions that are called
-- after it, and hooks that get the gradient that is accumulated.

local lt = require "lutra"
local core = require "lutra.core"

local function leaf(...) return lt.tensor({...}, {dtype = "float32"}):requires_grad_() end

describe("a ready hook", function()
  it("runs after the other hooks, before the gradient is in grad", function()
    local x, seen = leaf(1, 2), {}
    core._ready_hook(x, function(g)
      seen[#seen + 1] = {g:totable(), x.grad and x.grad:totable()}
    end)
    x:register_hook(function(g) return g * 10 end)
    local y = x * 3
    y:sum():backward()
    y = x + x
    y:sum():backward()
    assert.same({{{30, 30}}, {{20, 20}, {30, 30}}}, seen)
    assert.same({50, 50}, x.grad:totable())
  end)

  it("is removed by its handle, and ignores what the function returns", function()
    local x, count = leaf(1), 0
    local handle = core._ready_hook(x, function()
      count = count + 1
      return "no tensor"
    end)
    x:sum():backward()
    handle:remove()
    x:sum():backward()
    assert.equal(1, count)
    assert.same({2}, x.grad:totable())
  end)

  it("may not free the gradient", function()
    local x = leaf(1)
    core._ready_hook(x, function(g) g:free() end)
    local ok, message = pcall(function() (x * 2):sum():backward() end)
    assert.is_false(ok)
    assert.matches("a hook freed", message)
    assert.is_nil(x.grad)
  end)

  it("expects a function and a tensor that requires grad", function()
    assert.is_false((pcall(core._ready_hook, leaf(1), 3)))
    local ok, message = pcall(core._ready_hook, lt.ones(1), print)
    assert.is_false(ok)
    assert.matches("requires grad", message)
  end)
end)

describe("a backward pass", function()
  it("has a number of its own, and none outside and in autograd.grad", function()
    local x, seen = leaf(1), {}
    core._ready_hook(x, function() seen[#seen + 1] = core._backward_pass() or "none" end)
    local function loss() return (x * x):sum() end
    loss():backward()
    lt.autograd.backward{loss()}
    lt.autograd.grad(loss(), x)
    assert.equal(3, #seen)
    assert.is_true(math.type(seen[1]) == "integer" and seen[2] > seen[1])
    assert.equal("none", seen[3])
    assert.is_nil(core._backward_pass())
  end)

  it("has its number again after a pass inside of it", function()
    local x, y, seen = leaf(1), leaf(2), {}
    core._ready_hook(x, function()
      seen[1] = core._backward_pass()
      lt.enable_grad(function()
        (y * 2):sum():backward()
        lt.autograd.grad((y * 2):sum(), y)
      end)
      seen[2] = core._backward_pass()
    end)
    x:sum():backward()
    assert.equal(seen[1], seen[2])
  end)

  it("calls queued functions after it, in order, when the grads are set", function()
    local x, log = leaf(1, 2), {}
    core._ready_hook(x, function()
      for k = 1, 2 do
        core._after_backward(function() log[#log + 1] = {k, x.grad:totable()} end)
      end
    end)
    local y = x * 2
    y:sum():backward()
    assert.same({{1, {2, 2}}, {2, {2, 2}}}, log)
  end)

  it("drops queued functions when it fails", function()
    local x, called = leaf(1), false
    local y = x * 2
    core._ready_hook(x, function()
      core._after_backward(function() called = true end)
      error("stop", 0)
    end)
    local ok, message = pcall(function() y:sum():backward() end)
    assert.same({false, "stop"}, {ok, message})
    assert.is_false(called)
    assert.is_nil(core._backward_pass())
    local z = leaf(1)
    z:sum():backward()
    assert.is_false(called)
  end)

  it("raises the error of a queued function; the grads stay", function()
    local x = leaf(1)
    core._ready_hook(x, function() core._after_backward(function() error("late", 0) end) end)
    local ok, message = pcall(function() x:sum():backward() end)
    assert.same({false, "late"}, {ok, message})
    assert.same({1}, x.grad:totable())
    assert.is_nil(core._backward_pass())
  end)

  it("must run when a function is queued", function()
    local ok, message = pcall(core._after_backward, print)
    assert.is_false(ok)
    assert.matches("no backward runs", message)
  end)
end)
