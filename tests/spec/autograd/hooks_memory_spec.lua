-- Hooks and functions with a gradient of their own do not keep their tensors: the collector sees a
-- cycle through them. They run as long as a graph leads to them, whoever holds the tensor.

local lt = require "lutra"
local nn = lt.nn

-- Collects; a graph is let go of in one collection, what hung on it in the next.
local function collect()
  for _ = 1, 3 do collectgarbage() end
end

-- Is the memory of the tensors that f makes given back?
local function assert_collected(f)
  collect()
  local before = lt.memory_live()
  for _ = 1, 3 do f() end
  collect()
  assert.equal(0, lt.memory_live() - before)
end

local function leaf(n) return lt.ones{n or 1000, requires_grad = true} end

describe("A cycle is collected, of", function()
  it("a leaf and its hook", function()
    assert_collected(function()
      local x = leaf()
      x:register_hook(function() return x end)
    end)
  end)

  it("a leaf that was used, and its hook", function()
    assert_collected(function()
      local x = leaf()
      x:register_hook(function() return x.grad end)
      for _ = 1, 2 do (x * 2):sum():backward() end
      local y = x * 3
      y = y + 1 -- luacheck: ignore
    end)
  end)

  it("several leaves and hooks", function()
    assert_collected(function()
      local x, y = leaf(), leaf()
      x:register_hook(function() return y end)
      y:register_hook(function() return x end)
      x:register_hook(function() return x end)
      ;(x * y):sum():backward()
    end)
  end)

  it("a hook that is registered while a graph holds the leaf", function()
    assert_collected(function()
      local x = leaf()
      local y = (x * 2):sum()
      x:register_hook(function() return x end)
      y:backward()
    end)
  end)

  it("a leaf, its view and its hook", function()
    assert_collected(function()
      local x = leaf()
      local view = x:view(10, 100)
      x:register_hook(function() return x end)
      view:sum():backward()
    end)
  end)

  it("an intermediate result and its hook", function()
    assert_collected(function()
      local x = leaf()
      local h = x * 2
      h:register_hook(function() return h end)
      h:sum():backward()
    end)
    assert_collected(function()
      local h = leaf() * 2
      h:register_hook(function() return h end)
    end)
  end)

  it("results of one op and their hooks", function()
    assert_collected(function()
      local a, b = table.unpack((leaf() * 2):chunk(2))
      a:register_hook(function() return a, b end)
      b:register_hook(function() return a, b end)
      ;(a + b):sum():backward()
    end)
  end)

  it("a table that is a hook", function()
    assert_collected(function()
      local x = leaf()
      local hook = setmetatable({x = x}, {__call = function(self, g) return g * self.x end})
      x:register_hook(hook)
      x:sum():backward()
    end)
  end)

  it("a module and the hooks of its parameters", function()
    assert_collected(function()
      local net = nn.Linear(30, 40)
      for p in net:parameters() do
        p:register_hook(function(g) return net and g * 2 end)
      end
      net(lt.ones(2, 30)):sum():backward()
    end)
  end)

  it("a module and its own hooks", function()
    assert_collected(function()
      local net = nn.Sequential(nn.Linear(30, 40), nn.ReLU())
      net:register_forward_hook(function() return nil, net end)
      net:register_forward_pre_hook(function() return nil, net end)
      net(lt.ones(2, 30)):sum():backward()
    end)
  end)

  it("a function of one's own whose context holds its result", function()
    local Double = lt.autograd.Function:extend "Double"
    function Double.forward(ctx, x)
      ctx.y = x * 2
      ctx.x = x
      return ctx.y
    end
    function Double.backward(ctx, g) return g * 2 + 0 * ctx.y end
    assert_collected(function()
      local x = leaf()
      local y = Double(x)
      assert.is_true(y.requires_grad)
    end)
    assert_collected(function() Double(leaf()):sum():backward() end)
  end)

  it("a function of one's own with two results in its context", function()
    local Both = lt.autograd.Function:extend "Both"
    function Both.forward(ctx, x)
      ctx.results = {x * 2, x + 1}
      return table.unpack(ctx.results)
    end
    function Both.backward(_, g, h) return g * 2 + h end
    assert_collected(function()
      local y, z = Both(leaf())
      return y, z
    end)
    assert_collected(function()
      local y, z = Both(leaf());
      (y * z):sum():backward()
    end)
  end)
end)

describe("Hooks run", function()
  it("when nothing but the graph holds an intermediate result", function()
    local x, seen = leaf(2), {}
    local loss
    do
      local scale = lt.tensor{2, 3}
      local h = x * 2
      h:register_hook(function(g)
        seen[#seen + 1] = g:totable()
        return g * scale
      end)
      loss = (h * 5):sum()
    end
    collect()
    loss:backward{retain_graph = true}
    collect()
    loss:backward()
    assert.same({{5, 5}, {5, 5}}, seen)
    assert.same({40, 60}, x.grad:totable())
  end)

  it("when nothing but the graph holds a leaf", function()
    local seen = {}
    local loss
    do
      local offset = lt.tensor{1, 2}
      local x = leaf(2)
      loss = (x * 4):sum()
      x:register_hook(function(g) seen[#seen + 1] = (g + offset):totable() end)
    end
    collect()
    loss:backward{retain_graph = true}
    collect()
    loss:backward()
    assert.same({{5, 6}, {5, 6}}, seen)
  end)

  it("after a graph was made and freed", function()
    local x, count = leaf(2), 0
    x:register_hook(function() count = count + 1 end)
    for i = 1, 3 do
      (x * 2):sum():backward()
      collect()
      assert.equal(i, count)
    end
  end)

  it("in their order, and not after handle:remove()", function()
    local x, seen = leaf(1), {}
    local function note(name)
      return function() seen[#seen + 1] = name end
    end
    local y = x * 2
    local handles = {}
    for _, name in ipairs {"a", "b", "c"} do
      x:register_hook(note("leaf " .. name))
      handles[name] = y:register_hook(note(name))
    end
    handles.b:remove()
    handles.b:remove()
    collect()
    y:sum():backward{retain_graph = true}
    assert.same({"a", "c", "leaf a", "leaf b", "leaf c"}, seen)
    handles.a:remove()
    handles, seen = nil, {} -- luacheck: ignore
    collect()
    y:sum():backward()
    assert.same({"c", "leaf a", "leaf b", "leaf c"}, seen)
  end)

  it("and what handle:remove() removed is collected", function()
    local x = leaf()
    local seen = setmetatable({}, {__mode = "v"})
    for i = 1, 3 do
      local big = lt.ones(1000)
      seen[i] = {big}
      local held = seen[i]
      x:register_hook(function() return held end):remove()
    end
    collect()
    assert.same({}, seen)
  end)

  it("of a tensor that was changed in place since", function()
    local x, seen = leaf(2), {}
    local loss
    do
      local h = x * 2
      h:register_hook(function(g) seen[#seen + 1] = "before " .. g:sum():item() end)
      h:mul_(3)
      h:register_hook(function(g) seen[#seen + 1] = "after " .. g:sum():item() end)
      loss = h:sum()
    end
    collect()
    loss:backward()
    assert.same({"after 2.0", "before 6.0"}, seen)
    assert.same({6, 6}, x.grad:totable())
  end)

  it("of a tensor that two objects hold", function()
    local x, seen = leaf(2), 0
    ;(x * 2):sum():backward()
    x.grad = nil
    local function register()
      local same = x:contiguous()
      same:register_hook(function() seen = seen + 1 end)
    end
    register()
    collect()
    ;(x * 2):sum():backward()
    assert.equal(1, seen)
  end)

  it("with retain_grad, and of a result that is a root", function()
    local x, seen = leaf(2), nil
    local h = x * 2
    h:retain_grad()
    h:register_hook(function(g) return g * 10 end)
    collect()
    h:sum():backward{retain_graph = true}
    assert.same({10, 10}, h.grad:totable())
    local root = h:sum()
    root:register_hook(function(g) seen = g:item() end)
    collect()
    root:backward()
    assert.equal(1, seen)
  end)

  it("of custom functions whose results are not referenced", function()
    local Triple = lt.autograd.Function:extend "Triple"
    local ran = 0
    function Triple.forward(ctx, x)
      ctx.factor = lt.tensor(3.0)
      ctx.y = x * ctx.factor
      return ctx.y
    end
    function Triple.backward(ctx, g)
      ran = ran + 1
      return g * ctx.factor
    end
    local x = leaf(2)
    local loss = Triple(Triple(x)):sum()
    collect()
    loss:backward{retain_graph = true}
    collect()
    loss:backward()
    assert.equal(4, ran)
    assert.same({18, 18}, x.grad:totable())
    local y = Triple(x)
    y:add_(1)
    x.grad = nil
    collect()
    y:sum():backward()
    assert.same({3, 3}, x.grad:totable())
  end)
end)

describe("Hooks that do harm while they run", function()
  it("raise their error in the caller, and the graph can be used again", function()
    local x, fail = leaf(2), true
    local h = x * 2
    h:register_hook(function()
      collect()
      if fail then error({code = 7}) end
    end)
    local loss = h:sum()
    local ok, reason = pcall(loss.backward, loss, {retain_graph = true})
    assert.same({false, {code = 7}}, {ok, reason})
    fail = false
    loss:backward()
    assert.same({2, 2}, x.grad:totable())
  end)

  it("release their own tensors and graphs", function()
    local x = leaf(2)
    local all = {h = x * 2}
    all.handle = all.h:register_hook(function()
      all.handle:remove()
      getmetatable(all.h).__gc(all.h)
      all = {}
      collect()
    end)
    all.loss = (all.h * 3):sum()
    all.loss:backward()
    assert.same({6, 6}, x.grad:totable())
    x:register_hook(function()
      x:free()
      collect()
    end)
    pcall(function() (x * 2):sum():backward() end)
    collect()
  end)

  it("free the tensor that they belong to, which has no elements", function()
    local x = lt.ones{0, requires_grad = true}
    x:register_hook(function() x:free() end)
    pcall(function() (x * 2):sum():backward() end)
  end)

  it("register more hooks and run other graphs", function()
    local x, count = leaf(2), 0
    local h = x * 2
    h:register_hook(function()
      h:register_hook(function() count = count + 1 end)
      lt.enable_grad(function()
        local y = leaf(1)
        y:register_hook(function() count = count + 100 end)
        y:sum():backward()
      end)
      collect()
    end)
    h:sum():backward{retain_graph = true}
    assert.equal(100, count)
    h:sum():backward()
    assert.equal(201, count)
  end)

  it("end in the middle of a coroutine that is abandoned", function()
    local x, count = leaf(2), 0
    local co = coroutine.create(function()
      local h = x * 2
      h:register_hook(function() count = count + 1 end)
      local loss = h:sum()
      coroutine.yield(loss)
    end)
    local _, loss = coroutine.resume(co)
    co = nil -- luacheck: ignore
    collect()
    loss:backward()
    assert.equal(1, count)
  end)
end)
