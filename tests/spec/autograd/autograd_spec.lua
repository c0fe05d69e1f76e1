-- The tape as its users see it: programs of views and in-place writes against PyTorch, backward and
-- grad, the rules and their messages, hooks, and what is left in memory.
local lt = require "lutra"
local programs = require "golden_support".cases "programs"
local wide = require "wide_support"

local EXACT = wide.tolerance(1e-10, 2e-5)

local function leaf(data)
  return lt.tensor(data, {dtype = wide.dtype}):requires_grad_()
end

local function fails(text, f, ...)
  local ok, reason = pcall(f, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(reason):find(text, 1, true), ("%q, expected %q"):format(reason, text))
end

describe("views and in-place writes", function()
  for number, program in ipairs(programs) do
    it("have PyTorch's gradients: program " .. number, function()
      local t = {}
      local function matrix(data)
        return lt.tensor(data, {dtype = wide.dtype}):view(3, 4):detach():requires_grad_()
      end
      local env = {t = t, lt = lt, leaf = matrix}
      local code = program.code:gsub("float64", wide.dtype)
      assert(load(code, "=program", "t", env))()
      env.loss:backward()
      local got = {env.loss:item()}
      for k = 1, 2 do
        local g = (t[k].grad or lt.zeros_like(t[k])):view(-1)
        for i = 1, 12 do got[#got + 1] = g[i]:item() end
      end
      for i, want in ipairs(program.values) do
        assert.is_true(math.abs(got[i] - want) <= EXACT * (1 + math.abs(want)),
          ("value %d is %.15g, expected %.15g"):format(i, got[i], want))
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
    local w, out = leaf{1, 2}, lt.zeros({2, 2}, {dtype = wide.dtype})
    local row = out[2]
    assert.is_false(row.requires_grad)
    out[1] = w
    assert.is_true(out.requires_grad)
    assert.is_true(row.requires_grad)
    assert.is_false(out.is_leaf)
  end)
end)

-- What PyTorch 2.15 does with views of a tensor that requires no grad, of which one is a leaf.
describe("a view that is a leaf", function()
  local OF_LEAF = "cannot change self in place: it is a view of a leaf that requires grad"
  local flat, W

  local function of(from, to, x) return (x or flat)[{{from, to}}] end
  local function threes(n) return lt.full({n}, 3, {dtype = wide.dtype}):requires_grad_() end
  local function square(x) (x * x):sum():backward() end

  before_each(function()
    flat = lt.ones(10, {dtype = wide.dtype})
    W = of(1, 5):requires_grad_()
  end)

  it("is not changed in place, nor through its views", function()
    fails("cannot change", function() W:mul_(2) end)
    fails("cannot change", function() W:zero_() end)
    fails(OF_LEAF, function() W[1] = 0 end)
    local v = of(1, 3, W)
    fails("mul_: " .. OF_LEAF, function() v:mul_(2) end)
    fails(OF_LEAF, function() v:copy_(threes(3)) end)
    fails(OF_LEAF, function() of(1, 2, v):add_(1) end)
    local p = lt.nn.Parameter(of(1, 5))
    fails(OF_LEAF, function() p[1] = 0 end)
    local d = of(1, 5):detach():requires_grad_()
    fails(OF_LEAF, function() of(1, 3, d):mul_(2) end)
    assert.are.same({1.0, 1.0, 1.0}, of(1, 3):totable())
    v:sum():backward()
    assert.are.same({1.0, 1.0, 1.0, 0.0, 0.0}, W.grad:totable())
  end)

  it("is changed under no_grad, and through detached views", function()
    local v = of(1, 3, W)
    lt.no_grad(function()
      W:mul_(2)
      v:mul_(2)
    end)
    of(4, 5, W):detach():mul_(5)
    assert.is_true(W.is_leaf)
    square(W)
    assert.are.same({8.0, 8.0, 8.0, 20.0, 20.0}, W.grad:totable())
    assert.is_nil(flat.grad)
  end)

  it("sees the changes of its base and of its base's views that are not recorded", function()
    local sibling = of(4, 7)
    local older = of(1, 2, of(1, 3)) -- of a view from before, which is no leaf
    flat:mul_(2)
    sibling:mul_(2)
    older:mul_(4)
    assert.is_true(W.is_leaf)
    assert.is_false(flat.requires_grad or sibling.requires_grad or older.requires_grad)
    square(W)
    assert.are.same({16.0, 16.0, 4.0, 8.0, 8.0}, W.grad:totable())
  end)

  it("is a result of its base once that was changed on the tape", function()
    for _, case in ipairs{
      {function() return flat end, 10, {6, 6, 6, 6, 6, 0, 0, 0, 0, 0}},
      {function() return of(4, 7) end, 4, {6, 6, 0, 0}},
      {function() return of(1, 3) end, 3, {6, 6, 6}},
    } do
      flat = lt.ones(10, {dtype = wide.dtype})
      local target, w = case[1](), threes(case[2])
      W = of(1, 5):requires_grad_()
      target:mul_(w)
      assert.is_true(flat.requires_grad)
      assert.is_false(W.is_leaf)
      assert.is_true(W.requires_grad)
      square(W)
      assert.is_nil(W.grad)
      assert.are.equal(lt.tensor(case[3]):sum():item(), w.grad:sum():item())
      assert.is_true(lt.equal(lt.tensor(case[3], {dtype = wide.dtype}), w.grad))
      fails("cannot turn requires_grad off: the tensor is not a leaf",
        function() W:requires_grad_(false) end)
    end
  end)

  it("gets no gradient for a use from before that", function()
    local y = W * 2
    flat:mul_(threes(10))
    fails("backward: cannot accumulate the gradient of a leaf", function() y:sum():backward() end)
    flat = lt.ones(10, {dtype = wide.dtype})
    W = of(1, 5):requires_grad_()
    flat[{{6, 10}}] = W * 2
    fails("cannot accumulate the gradient of a leaf", function() flat:sum():backward() end)
  end)

  it("is an ordinary view when it requires no grad any more", function()
    local v = of(1, 3, W)
    W:requires_grad_(false)
    fails(OF_LEAF, function() v:mul_(2) end) -- v still belongs to W's graph
    W:mul_(2)
    of(1, 3, W):mul_(2)
    assert.are.same({4.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0}, flat:totable())
    v:sum():backward()
    assert.is_nil(W.grad)
    local w = threes(5)
    W:mul_(w)
    assert.is_false(W.is_leaf)
    W:sum():backward()
    assert.are.same({4.0, 4.0, 4.0, 2.0, 2.0}, w.grad:totable())
  end)

  it("leaves detached views and parameters alone", function()
    local d, p = of(1, 5):detach():requires_grad_(), lt.nn.Parameter(of(1, 5))
    of(1, 3):mul_(threes(3))
    assert.is_true(d.is_leaf and p.is_leaf)
    square(p)
    assert.are.same({6.0, 6.0, 6.0, 2.0, 2.0}, p.grad:totable())
  end)

  it("is not detached in place, nor is any view", function()
    fails("detach_: cannot detach a view in place", function() W:detach_() end)
    fails("detach_: cannot detach a view in place", function() of(1, 2):detach_() end)
  end)

  it("is freed with the graph that it and its base are in", function()
    local function live()
      collectgarbage()
      collectgarbage()
      return require("lutra.core").memory_live()
    end
    flat, W = nil, nil
    local before = live()
    for _ = 1, 5 do
      local base = lt.ones(10)
      local view = of(1, 5, base):requires_grad_()
      local v = of(1, 3, view)
      base[{{6, 10}}] = view * 2 -- base -> node -> view -> base
      base[{{6, 8}}] = base[{{6, 8}}] * v
      local x = lt.ones(3):requires_grad_()
      local y = x * 2
      x:requires_grad_(false)
      x:mul_(y) -- x -> node -> x
      local z = lt.ones(3):requires_grad_()
      local u = z * 2
      z:detach_()
      z[1] = u[1]
      fails("cannot accumulate the gradient of a leaf", function() x:sum():backward() end)
    end
    assert.are.equal(before, live())
  end)
end)

describe("views of what requires grad", function()
  -- x: e^w in two of its elements, w in the others.
  local function partly_exp(w)
    local x = w * 1
    x:view(2, 2):t()[1]:exp_()
    return x
  end

  it("have higher gradients after changes in place that save their results", function()
    local w = leaf{0.5, -1, 0.25, 2}
    local x = partly_exp(w)
    local first = lt.autograd.grad((x ^ 3):sum(), {w}, {create_graph = true})[1]
    local second = lt.autograd.grad(first:sum(), {w}, {create_graph = true})[1]
    local third = lt.autograd.grad(second:sum(), {w})[1]
    for order, g in ipairs{first, second, third} do
      for i, v in ipairs(w:totable()) do -- of e^3w, and of w^3
        local power = ({3 * v ^ 2, 6 * v, 6})[order]
        local want = i % 2 == 1 and 3 ^ order * math.exp(3 * v) or power
        assert.near(want, g[i]:item(), EXACT * math.max(1, math.abs(want)))
      end
    end
    fails("cannot go through the graph a second time",
      function() lt.autograd.grad(second:sum(), {w}) end)
  end)

  it("are freed with the graph of higher gradients", function()
    local live = require("lutra.core").memory_live
    local function pass()
      local w = leaf{0.5, -1, 0.25, 2}
      local g = lt.autograd.grad(partly_exp(w):square():sum(), {w}, {create_graph = true})[1]
      lt.autograd.grad(g:sum(), {w}, {create_graph = true})
    end
    pass()
    collectgarbage()
    local before = live()
    for _ = 1, 5 do pass() end
    collectgarbage()
    assert.are.equal(before, live())
  end)

  it("are not changed in place because they were made before it did, or under no_grad", function()
    local flat = lt.ones(10)
    local early = flat[{{1, 5}}]
    flat:requires_grad_()
    fails("cannot change self in place: it is a view of a leaf that requires grad",
      function() early:mul_(2) end)
    fails("it is a view of a leaf", function() early:mul_(leaf{1, 2, 3, 4, 5}:to "float32") end)
    local quiet = lt.no_grad(function() return flat[{{1, 5}}] end)
    fails("cannot change", function() quiet:mul_(2) end)
    local result = flat * 1
    local hidden = lt.no_grad(function() return result[{{1, 5}}] end)
    fails("it is a view that was created under no_grad", function() hidden:mul_(2) end)
    lt.no_grad(function()
      early:mul_(2)
      quiet:mul_(2)
      hidden:mul_(2)
    end)
    assert.are.equal(4, flat[1]:item())
    local plain = lt.no_grad(function() return lt.ones(3)[{{1, 2}}] end)
    plain:mul_(2) -- nothing requires grad here
    fails("it is a view that was created under no_grad", function() plain:mul_(flat[{{1, 2}}]) end)
  end)

  it("give no gradient to a leaf that requires none any more", function()
    local x = leaf{1, 2}
    local y, v = x * 2, x[{{1, 1}}]
    x:requires_grad_(false)
    y:sum():backward()
    assert.is_nil(x.grad)
    fails("it is a view of a leaf", function() v:mul_(2) end)
  end)
end)

describe("backward", function()
  it("adds the gradients of parts of a tensor, of all of it, and of parts that overlap", function()
    local data = {}
    for i = 1, 24 do data[i] = i / 8 end
    local leaf_x = lt.tensor(data, {dtype = wide.dtype}):view(4, 6):detach():requires_grad_()
    local x = leaf_x * 1
    local loss = (x * x):sum()
    local want = {}
    for i = 1, 4 do
      want[i] = {}
      for j = 1, 6 do want[i][j] = 2 * data[6 * i - 6 + j] end
    end
    local function use(part, factor, includes)
      loss = loss + factor * part:sum()
      for i = 1, 4 do
        for j = 1, 6 do want[i][j] = want[i][j] + (includes(i, j) and factor or 0) end
      end
    end
    for k, row in ipairs(x:unbind(1)) do use(row, k, function(i) return i == k end) end
    for k, part in ipairs(x:split(2, 2)) do
      use(part, 10 * k, function(_, j) return (j + 1) // 2 == k end)
    end
    use(x:narrow(2, 2, 3):narrow(1, 2, 2), 0.5, function(i, j)
      return (i == 2 or i == 3) and j >= 2 and j <= 4
    end)
    use(x:diagonal(), 7, function(i, j) return i == j end)
    use(x[{{1, 4, 3}}], 3, function(i) return i == 1 or i == 4 end)
    use(x:t():select(1, 6):expand(3, 4), 3, function() return false end)
    for i = 1, 4 do want[i][6] = want[i][6] + 9 end
    x:retain_grad()
    local hooked = 0
    x:register_hook(function() hooked = hooked + 1 end)
    loss:backward()
    assert.equal(1, hooked)
    assert.same(want, x.grad:totable())
    assert.same(want, leaf_x.grad:totable())
  end)

  it("does not change a gradient that the program or another tensor holds", function()
    local x = leaf{1, 2, 3, 4}
    local y, seen = x * 2, nil
    local z = y * 1
    z:register_hook(function(g) seen = g end)
    local given = lt.tensor({1, 1, 1, 1}, {dtype = wide.dtype})
    local first = y:narrow(1, 1, 2)
    lt.autograd.backward({z, first}, {given, lt.tensor({5, 5}, {dtype = wide.dtype})})
    assert.same({1.0, 1.0, 1.0, 1.0}, given:totable())
    assert.same({1.0, 1.0, 1.0, 1.0}, seen:totable())
    assert.same({12.0, 12.0, 2.0, 2.0}, x.grad:totable())
  end)

  it("gives a permuted leaf a grad in its order", function()
    local w = lt.randn(3, 4)
    local uses = {function(x) return x:sum() end, function(x) return (x * x):sum() end,
      function(x) return (x * w):sum() end, function(x) return x:mm(x:t()):sum() end}
    for _, f in ipairs(uses) do
      local x = lt.randn(4, 3):t():requires_grad_()
      f(x):backward()
      assert.same({1, 3}, x.grad:stride())
      assert.is_true(x.grad:equal(lt.autograd.grad(f(x), x)))
    end
  end)

  it("gives a contiguous leaf a contiguous grad, whatever the order of the gradient", function()
    local x, w = lt.randn{2, 3, requires_grad = true}, lt.randn(3, 2)
    local function loss() return (x:t() * w):sum() end
    assert.is_false(lt.autograd.grad(loss(), x):is_contiguous())
    for times = 1, 2 do
      loss():backward()
      assert.is_true(x.grad:is_contiguous() and x.grad:equal(w:t() * times))
    end
  end)

  it("refuses what has no gradient", function()
    fails("backward: expected the tensor to require grad", function() lt.ones(1):backward() end)
    local y = leaf{1, 2} * 2
    fails("expected a gradient for the tensor of shape {2}, got none: it is optional only for "
      .. "one element",
      function() y:backward() end)
    fails("expected a gradient of shape {2} for the tensor, got {3}",
      function() y:backward(lt.ones(3)) end)
    fails("expected a tensor of a float dtype for argument 'self', got \"int64\"",
      function() lt.tensor{1, 2}:requires_grad_() end)
  end)

  it("goes once through a graph, or again with retain_graph", function()
    local x = leaf{1, 2}
    local y = (x * x):sum()
    y:backward{retain_graph = true}
    y:backward()
    assert.are.same({4.0, 8.0}, x.grad:totable())
    fails("backward: cannot go through the graph a second time: an earlier backward freed it "
      .. "(at mul)\nhint: loss:backward{retain_graph = true}",
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
    fails("expected input 2 to be used", function() lt.autograd.grad(x:sign():sum(), {x, w}) end)
  end)

  it("leaves every grad as it was when it fails", function()
    local x, w = leaf{1}, leaf{2}
    local a = x * 1
    local y = (a * a):sum() + (w * 3):sum()
    a:add_(1)
    fails("which mul saved for backward, was changed in place by add_ (version 1, expected 0)",
      function() y:backward() end)
    assert.is_nil(w.grad)
    assert.is_nil(x.grad)
  end)

  it("keeps the rules of leaves", function()
    local x = leaf{1, 2}
    fails("add_: cannot change a leaf that requires grad in place", function() x:add_(1) end)
    fails("cannot change self in place: it is a view of a leaf that requires grad",
      function() x[1] = 0 end)
    lt.no_grad(function() x:add_(1) end)
    assert.are.same({2.0, 3.0}, x:totable())
    fails("cannot turn requires_grad off: the tensor is not a leaf",
      function() (x * 2):requires_grad_(false) end)
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
    local text = 'a gradient of shape {2} ("%s" on "%s"), got one of shape {3}'
    fails(text:format(wide.dtype, device), function()
      local y = leaf{1, 2}
      y:register_hook(function() return lt.ones({3}, {dtype = wide.dtype}) end)
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
