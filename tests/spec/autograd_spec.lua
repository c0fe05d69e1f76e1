-- The tape as its users see it: programs of views and in-place writes against PyTorch, backward and
-- grad, the rules and their messages, hooks, and what is left in memory.
local lt = require "lutra"
local programs = require "tests.golden.autograd_programs"

local function leaf(data)
  return lt.tensor(data, {dtype = "float64"}):requires_grad_()
end

local function fails(text, f, ...)
  local ok, reason = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(reason):find(text, 1, true), ("%q, wanted %q"):format(reason, text))
end

describe("views and in-place writes", function()
  for number, program in ipairs(programs) do
    it("have PyTorch's gradients: program " .. number, function()
      local t = {}
      local function matrix(data)
        return lt.tensor(data, {dtype = "float64"}):view(3, 4):detach():requires_grad_()
      end
      local env = {t = t, lt = lt, leaf = matrix}
      assert(load(program.code, "=program", "t", env))()
      env.loss:backward()
      local got = {env.loss:item()}
      for k = 1, 2 do
        local g = (t[k].grad or lt.zeros_like(t[k])):view(-1)
        for i = 1, 12 do got[#got + 1] = g[i]:item() end
      end
      for i, want in ipairs(program.values) do
        assert.is_true(math.abs(got[i] - want) <= 1e-10 * (1 + math.abs(want)),
          ("value %d is %.15g, wanted %.15g"):format(i, got[i], want))
      end
    end)
  end

  it("go through every form of assignment", function()
    local x, w = leaf{1, 2, 3, 4}, leaf{10, 20}
    local y = x * 1
    y[1] = 7
    y[{{2, 3}}] = w
    y[lt.tensor{false, false, false, true}] = 5
    assert.are.same({7.0, 10.0, 20.0, 5.0}, y:totable())
    assert.is_true(y.requires_grad)
    y:mul(lt.tensor{1., 10., 100., 1000.}):sum():backward()
    assert.are.same({0.0, 0.0, 0.0, 0.0}, x.grad:totable())
    assert.are.same({10.0, 100.0}, w.grad:totable())
  end)

  it("make a constant and its views part of the graph", function()
    local w, out = leaf{1, 2}, lt.zeros({2, 2}, {dtype = "float64"})
    local row = out[2]
    assert.is_false(row.requires_grad)
    out[1] = w
    assert.is_true(out.requires_grad)
    assert.is_true(row.requires_grad)
    assert.is_false(out.is_leaf)
  end)
end)

describe("backward", function()
  it("refuses what has no gradient", function()
    fails("backward: the tensor does not require grad", function() lt.ones(1):backward() end)
    local y = leaf{1, 2} * 2
    fails("the tensor has the shape {2}: the gradient can be left out only for one element",
      function() y:backward() end)
    fails("the gradient passed for it has {3}", function() y:backward(lt.ones(3)) end)
    fails("only tensors of a float dtype can require grad, got int64",
      function() lt.tensor{1, 2}:requires_grad_() end)
  end)

  it("goes once through a graph, or again with retain_graph", function()
    local x = leaf{1, 2}
    local y = (x * x):sum()
    y:backward{retain_graph = true}
    y:backward()
    assert.are.same({4.0, 8.0}, x.grad:totable())
    fails("backward: the graph was freed by an earlier backward (at mul). Pass retain_graph = true",
      function() y:backward() end)
    assert.are.same({4.0, 8.0}, x.grad:totable())
  end)

  it("gives zeros where the slope is zero everywhere, or the value was overwritten", function()
    local zeros = {0.0, 0.0, 0.0}
    for name, f in pairs{
      sign = function(x) return x:sign() end,
      floor = function(x) return x:floor() end,
      round = function(x) return x:round() end,
      power = function(x) return x ^ 0 end,
      zero_ = function(x) return (x * 2):zero_() end,
      fill_ = function(x) return (x * 2):fill_(3) end,
      copy_ = function(x) return (x * 2):copy_(lt.ones(3)) end,
      eq_ = function(x) return (x * 2):eq_(1) end,
      uniform_ = function(x) return (x * 2):uniform_() end,
      bernoulli = function(x) return lt.bernoulli(x:clamp(0, 1)) end,
      slices = function(x)
        local y = x * 2
        y[{{1, 2}}]:zero_()
        y[3] = 7
        return y
      end,
    } do
      local x = leaf{-1, 0.5, 2}
      f(x):sum():backward()
      assert.are.same(zeros, x.grad and x.grad:totable(), name)
      assert.are.same(zeros, lt.autograd.grad(f(x):sum(), x):totable(), name)
    end
  end)

  it("gives nothing for what was not used", function()
    local x, w = leaf{1, 2}, leaf{3, 4}
    x:sign():sum():backward()
    assert.is_nil(w.grad)
    assert.is_false((x:gt(0)).requires_grad)
    fails("input 2 was not used", function() lt.autograd.grad(x:sign():sum(), {x, w}) end)
  end)

  it("leaves every grad as it was when it fails", function()
    local x, w = leaf{1}, leaf{2}
    local a = x * 1
    local y = (a * a):sum() + (w * 3):sum()
    a:add_(1)
    fails("mul's gradient but was changed in place since, by add_ (version 1, wanted 0)",
      function() y:backward() end)
    assert.is_nil(w.grad)
    assert.is_nil(x.grad)
  end)

  it("keeps the rules of leaves", function()
    local x = leaf{1, 2}
    fails("add_: a leaf that requires grad cannot be changed in place", function() x:add_(1) end)
    fails("self is a view of a leaf that requires grad", function() x[1] = 0 end)
    lt.no_grad(function() x:add_(1) end)
    assert.are.same({2.0, 3.0}, x:totable())
    fails("only a leaf can stop requiring grad", function() (x * 2):requires_grad_(false) end)
  end)

  it("gives gradients of gradients", function()
    local x = leaf{2}
    local y = (x ^ 4):sum()
    local first = lt.autograd.grad(y, x, {create_graph = true})
    local second = lt.autograd.grad(first:sum(), x, {create_graph = true})
    local third = lt.autograd.grad(second:sum(), x)
    assert.are.same({32.0, 48.0, 48.0}, {first[1]:item(), second[1]:item(), third[1]:item()})
  end)
end)

describe("hooks", function()
  it("see the gradient and may replace it", function()
    local x, seen = leaf{1, 2}, {}
    local y = x * 3
    y:register_hook(function(g) seen.y = g:totable() return g * 10 end)
    x:register_hook(function(g) seen.x = g:totable() end)
    y:sum():backward()
    assert.are.same({y = {1.0, 1.0}, x = {30.0, 30.0}}, seen)
    assert.are.same({30.0, 30.0}, x.grad:totable())
  end)

  it("stop the pass with their own error, and no grad changes", function()
    local x = leaf{1, 2}
    x:register_hook(function() error("mine", 0) end)
    fails("mine", function() (x * 2):sum():backward() end)
    assert.is_nil(x.grad)
    local device = lt.get_default_device()
    local text = "a gradient of shape {2} (float64 on %s) and gave back one of shape {3}"
    fails(text:format(device), function()
      local y = leaf{1, 2}
      y:register_hook(function() return lt.ones({3}, {dtype = "float64"}) end)
      y:sum():backward()
    end)
  end)

  it("may run another backward", function()
    local x, w = leaf{1}, leaf{4}
    local y = x * 1
    y:register_hook(function() lt.enable_grad(function() (w * w):sum():backward() end) end)
    y:mul(7):sum():backward()
    assert.are.same({7.0, 8.0}, {x.grad[1]:item(), w.grad[1]:item()})
  end)
end)

describe("the tape", function()
  it("lets everything go: a graph, used or not, and a graph of a million nodes", function()
    local function live()
      collectgarbage()
      collectgarbage()
      return require("lutra.core").memory_live()
    end
    local x = leaf{1}
    local before = live()
    for _ = 1, 50 do
      local y = x * 1
      y:add_(y:sin())
      y[1] = y[1] * x[1]
      y:exp_()
    end
    do
      local y = x
      for _ = 1, 1000000 do y = y + 1 end
      y:sum():backward()
    end
    x.grad = nil
    assert.are.equal(before, live())
  end)
end)
