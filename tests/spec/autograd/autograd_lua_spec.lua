-- Automatic differentiation as Lua sees it: grad, hooks, functions of one's own, errors in them.
local lt = require "lutra"
local Function = lt.autograd.Function

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function leaf(data) return lt.tensor(data, {dtype = "float64", requires_grad = true}) end

describe("backward", function()
  it("takes its arguments in every spelling", function()
    local x = leaf{1, 2}
    local y = x * x
    y:backward(lt.tensor({1, 1}, {dtype = "float64"}), true)
    y:backward{gradient = lt.tensor({1, 1}, {dtype = "float64"}), retain_graph = true}
    y:sum():backward()
    assert.same({6, 12}, x.grad:totable())
  end)

  it("goes only into the inputs that are named", function()
    local x, w = leaf(2), leaf(3);
    (x * w):backward{inputs = {x}}
    assert.equal(3, x.grad:item())
    assert.is_nil(w.grad);
    (x * w):backward{inputs = w}
    assert.equal(2, w.grad:item())
  end)

  it("works on several tensors at once", function()
    local x = leaf{1, 2}
    lt.autograd.backward({x:sum(), x * 2}, {false, lt.tensor({1, 10}, {dtype = "float64"})})
    assert.same({3, 21}, x.grad:totable())
  end)
end)

describe("autograd.grad", function()
  it("takes the iterator of a module's parameters", function()
    local net, x = lt.nn.Linear(2, 1), lt.ones(3, 2)
    local grads = lt.autograd.grad(net(x):sum(), net:parameters())
    assert.same({{{3, 3}}, {3}}, {grads[1]:totable(), grads[2]:totable()})
    grads = lt.autograd.grad(net.bias:sum(), net:parameters(), {materialize_grads = true})
    assert.same({{{0, 0}}, {1}}, {grads[1]:totable(), grads[2]:totable()})
    local ok, message = pcall(lt.autograd.grad, net(x):sum(), function() return nil end)
    assert.is_false(ok)
    assert.matches("^.*grad: ", message)
  end)

  it("materializes gradients that are missing as zeros", function()
    local x, w = lt.ones{2, requires_grad = true}, lt.ones{3, requires_grad = true}
    local list = lt.autograd.grad((x * 3):sum(), {x, w}, {materialize_grads = true})
    assert.same({{3, 3}, {0, 0, 0}}, {list[1]:totable(), list[2]:totable()})
    assert.same({0, 0, 0}, lt.autograd.grad(x:sum(), w, {materialize_grads = true}):totable())
    assert.matches("grad: cannot materialize gradients of unused inputs with allow_unused = false",
      fails(lt.autograd.grad, x:sum(), w, {materialize_grads = true, allow_unused = false}), 1,
      true)
  end)

  it("computes a batch of gradients", function()
    local x, w = lt.tensor({1, 2, 3}, {requires_grad = true, dtype = "float32"}),
      lt.ones{2, requires_grad = true}
    local options = {grad_outputs = lt.eye(3), is_grads_batched = true}
    assert.same({{2, 0, 0}, {0, 4, 0}, {0, 0, 6}}, lt.autograd.grad(x ^ 2, x, options):totable())
    options.grad_outputs, options.allow_unused = {lt.eye(3)}, true
    local list = lt.autograd.grad({x ^ 2}, {x, w}, options)
    assert.same({{2, 0, 0}, {0, 4, 0}, {0, 0, 6}}, list[1]:totable())
    assert.is_nil(list[2])
    options.allow_unused, options.materialize_grads = nil, true
    assert.same({{0, 0}, {0, 0}, {0, 0}}, lt.autograd.grad({x ^ 2}, {x, w}, options)[2]:totable())
    assert.matches("grad: expected tensors whose first dimension is that of the batch for argument "
      .. "'grad_outputs' with is_grads_batched, got nil",
      fails(lt.autograd.grad, x ^ 2, x, {is_grads_batched = true}), 1, true)
  end)

  it("gives a tensor for a tensor and a list for a list", function()
    local x, w = leaf(2), leaf(3)
    assert.equal(3, lt.autograd.grad(x * w, x):item())
    local list = lt.autograd.grad(x * w, {x, w})
    assert.equal(3, list[1]:item())
    assert.equal(2, list[2]:item())
    assert.is_nil(x.grad)
  end)

  it("makes gradients of gradients", function()
    local x = leaf(2)
    local g = lt.autograd.grad(x ^ 4, x, {create_graph = true})
    assert.equal(32, g:item())
    local h = lt.autograd.grad(g, x, {create_graph = true})
    assert.equal(48, h:item())
    assert.equal(48, lt.autograd.grad(h, x):item())
  end)

  it("says when an input was not used, or gives nil if that is allowed", function()
    local x, w = leaf(2), leaf(3)
    assert.matches("grad: ", fails(lt.autograd.grad, x * 2, {x, w}), 1, true)
    local list = lt.autograd.grad(x * 2, {x, w}, {allow_unused = true})
    assert.equal(2, list[1]:item())
    assert.is_nil(list[2])
    assert.is_nil(lt.autograd.grad(x * 2, w, {allow_unused = true}))
  end)

  it("checks what it gets", function()
    local x = leaf(2)
    assert.matches("grad: expected a tensor or a list of tensors for argument 'outputs', got 3",
      fails(lt.autograd.grad, 3, x), 1, true)
    assert.matches("grad: expected a value for argument 'inputs', got no value",
      fails(lt.autograd.grad, x), 1, true)
    assert.matches("expected 1 gradient for argument 'grad_outputs', one for each tensor, got 2",
      fails(lt.autograd.grad, x * 2, x, {lt.ones(1), lt.ones(1)}), 1, true)
  end)
end)

describe("flags", function()
  it("can be set and asked", function()
    local x = lt.ones(2)
    x.requires_grad = true
    assert.is_true(x.requires_grad)
    x:requires_grad_(false)
    assert.is_false(x.requires_grad)
    local y = leaf{1} * 2
    assert.is_false(y.is_leaf)
    assert.equal("MulBackward", y.grad_fn)
    assert.is_false(y:detach().requires_grad)
    y:detach_()
    assert.is_true(y.is_leaf)
    assert.is_nil(y.grad_fn)
    assert.matches("expected a boolean, got 1", fails(function() x.requires_grad = 1 end), 1, true)
  end)

  it("keep the gradient of a result when asked", function()
    local x = leaf{1, 2}
    local y = x * 3
    y:retain_grad();
    (y * y):sum():backward()
    assert.same({6, 12}, y.grad:totable())
    assert.same({18, 36}, x.grad:totable())
  end)

  it("gradients can be assigned, and are checked", function()
    local x = leaf{1, 2}
    x.grad = lt.tensor({5, 6}, {dtype = "float64"})
    assert.same({5, 6}, x.grad:totable())
    assert.is_false(pcall(function() x.grad = lt.ones(3) end))
    assert.matches("expected a tensor for argument 'value', got 3",
      fails(function() x.grad = 3 end), 1, true)
    x.data = lt.tensor({7, 8}, {dtype = "float64"})
    assert.same({7, 8}, x:totable())
  end)
end)

describe("hooks", function()
  it("see gradients and may exchange them", function()
    local x, seen = leaf{1, 2}, nil
    local y = x * 3
    y:register_hook(function(g) seen = g:totable() return g * 10 end);
    (y * 2):sum():backward()
    assert.same({2, 2}, seen)
    assert.same({60, 60}, x.grad:totable())
  end)

  it("can be removed", function()
    local x, n = leaf{1}, 0
    local handle = x:register_hook(function() n = n + 1 end)
    x:sum():backward()
    handle:remove()
    handle:remove()
    x:sum():backward()
    assert.equal(1, n)
  end)

  it("give back their own error objects, and leave all in order", function()
    local object, x = {}, leaf{1}
    local handle = x:register_hook(function() error(object) end)
    local y = x * 2
    local ok, caught = pcall(y.backward, y)
    assert.is_false(ok)
    assert.is_true(rawequal(object, caught))
    handle:remove()
    x.grad = nil;
    (x * 2):backward()
    assert.same({2}, x.grad:totable())
  end)

  it("must be functions that give tensors", function()
    local x = leaf{1}
    assert.matches("register_hook: expected a function for argument 'hook', got 3",
      fails(x.register_hook, x, 3), 1, true)
    x:register_hook(function() return "g" end)
    local y = x * 2
    assert.matches('expected the hook to return a tensor or nil, got the string "g"',
      fails(y.backward, y), 1, true)
    local z = lt.ones(1)
    assert.matches("register_hook: ", fails(z.register_hook, z, print), 1, true)
  end)

  it("may run backward themselves and use coroutines", function()
    local x, inner = leaf{2}, nil
    local y = x * 3
    y:register_hook(function(g)
      inner = coroutine.wrap(function()
        local w = leaf{5}
        lt.enable_grad(function() (w * w):sum():backward() end)
        coroutine.yield(w.grad:item())
      end)()
      return g
    end)
    y:sum():backward()
    assert.equal(10, inner)
    assert.equal(3, x.grad:item())
  end)
end)

describe("a function of one's own", function()
  local Exp = Function:extend "Exp"
  function Exp.forward(ctx, x)
    local y = x:exp()
    ctx:save_for_backward(y)
    return y
  end
  function Exp.backward(ctx, g)
    local y = ctx:saved()
    return g * y
  end

  it("joins the graph", function()
    local x = leaf{0, 1}
    local y = Exp(x)
    assert.equal("ExpBackward", y.grad_fn)
    assert.is_true(lt.equal(x:exp(), y));
    (y * 2):sum():backward()
    assert.is_true(lt.equal(2 * x:exp(), x.grad))
    assert.is_true(lt.equal(x:exp(), Exp.apply(x)))
    assert.is_false(Exp(lt.ones(1)).requires_grad)
    assert.is_false(lt.no_grad(Exp, x).requires_grad)
    assert.equal("autograd.Function Exp", tostring(Exp))
  end)

  it("is differentiated twice, also when its result is gone", function()
    for _, keep in ipairs{true, false} do
      local x = leaf(0.5)
      local kept = {}
      local y = Exp(x)
      local loss = y * 1
      if keep then kept[1] = y end
      y = nil -- luacheck: ignore
      collectgarbage()
      local g = lt.autograd.grad(loss, x, {create_graph = true})
      local h = lt.autograd.grad(g, x, {create_graph = true})
      local k = lt.autograd.grad(h, x)
      assert.is_true(math.abs(g:item() - math.exp(0.5)) < 1e-12)
      assert.is_true(math.abs(h:item() - math.exp(0.5)) < 1e-12)
      assert.is_true(math.abs(k:item() - math.exp(0.5)) < 1e-12)
      assert.equal(keep and 1 or 0, #kept)
    end
  end)

  it("has several arguments and results, of which some are no tensors", function()
    local Scale = Function:extend "Scale"
    function Scale.forward(ctx, x, factor, w)
      ctx.factor = factor
      ctx:save_for_backward(x, w)
      assert.same({true, false, false}, ctx.needs_input_grad)
      return x * factor, "text", x * w
    end
    function Scale.backward(ctx, g1, g2)
      local x, w = ctx:saved()
      assert.equal(2, #x)
      return g1 * ctx.factor + g2 * w, nil, nil
    end
    local x, w = leaf{1, 2}, lt.tensor({3, 4}, {dtype = "float64"})
    local a, text, b = Scale(x, 10, w)
    assert.equal("text", text)
    a:sum():backward{retain_graph = true} -- b got no gradient: zeros
    assert.same({10, 10}, x.grad:totable());
    (a + b):sum():backward()
    assert.same({10 + 13, 10 + 14}, x.grad:totable())
  end)

  it("may get nil for results without a gradient", function()
    local seen
    local Two = Function:extend "Two"
    function Two.forward(ctx, x)
      ctx:set_materialize_grads(false)
      return x * 1, x * 2
    end
    function Two.backward(_, g1, g2)
      seen = {g1 == nil, g2 == nil}
      return g2 * 2
    end
    local x = leaf(1)
    local _, b = Two(x)
    b:backward()
    assert.same({true, false}, seen)
    assert.equal(2, x.grad:item())
  end)

  it("marks results that have no gradient", function()
    local seen
    local Order = Function:extend "Order"
    function Order.forward(ctx, x, materialize)
      local order = x:argsort():to "float64"
      local unused = x * 5
      ctx:mark_non_differentiable(order, unused, x * 7)
      ctx:save_for_backward(order, x)
      ctx:set_materialize_grads(materialize)
      return x * 2, order, unused, x
    end
    function Order.backward(ctx, g, none, also_none, last)
      local order, x = ctx:saved()
      assert.is_false(order.requires_grad)
      assert.is_true(x.requires_grad)
      seen = {none and none:totable() or "nil", also_none and also_none:totable() or "nil"}
      return (g or 0) * 2 + (last or 0)
    end
    for materialize, expected in pairs{
      [true] = {{0.0, 0.0}, {0.0, 0.0}}, [false] = {"nil", "nil"},
    } do
      local x = leaf{2, 1}
      local y, order, unused = Order(x, materialize)
      assert.is_true(y.requires_grad)
      assert.is_false(order.requires_grad or unused.requires_grad)
      assert.is_true(order.is_leaf)
      assert.is_nil(order.grad_fn)
      assert.same({2, 1}, order:totable());
      (y + order * unused):sum():backward()
      assert.same({2, 2}, x.grad:totable())
      assert.same(expected, seen)
    end
    local None = Function:extend "None"
    function None.forward(ctx, x)
      ctx:mark_non_differentiable(x)
      return x
    end
    local x = leaf{2, 1}
    local y = None(x)
    assert.is_false(y.requires_grad)
    assert.is_nil(y.grad_fn)
    assert.same({2, 1}, y:totable())
    assert.is_true(x.requires_grad)
    function None.forward(ctx, t)
      ctx:mark_non_differentiable(t * 1, 3)
      return t * 1
    end
    assert.matches("mark_non_differentiable: expected a tensor for argument 2, got 3",
      fails(None, x), 1, true)
  end)

  it("changes its arguments in place", function()
    local Triple = Function:extend "Triple"
    function Triple.forward(ctx, x, w)
      ctx:mark_dirty(x:mul_(3))
      ctx:save_for_backward(x, w)
      return x
    end
    function Triple.backward(ctx, g)
      local x, w = ctx:saved()
      assert.same({6, 6}, x:totable())
      assert.same({1, 1}, w:totable())
      return g * 3
    end
    local a, w = leaf{1, 1}, lt.ones(2)
    local x = a * 2
    local y = Triple(x, w)
    assert.is_true(rawequal(x, y))
    assert.same({6, 6}, x:totable());
    (x * x):sum():backward() -- 36 a^2
    assert.same({72, 72}, a.grad:totable())
    -- A tensor that required no gradient gets the function as its history.
    local plain, seen = lt.ones(2), nil
    local Put = Function:extend "Put"
    function Put.forward(ctx, t, value)
      t:copy_(value)
      ctx:mark_dirty(t)
      return t, value * 2
    end
    function Put.backward(_, g, g2)
      seen = {g:totable(), g2:totable()}
      return nil, g + g2 * 2
    end
    local result, double = Put(plain, a)
    assert.is_true(rawequal(result, plain))
    assert.is_true(plain.requires_grad)
    assert.is_false(plain.is_leaf)
    plain:mul_(5) -- goes on from there
    a.grad = nil
    lt.autograd.backward{plain:sum() + double:sum()}
    assert.same({{5, 5}, {1, 1}}, seen)
    assert.same({7, 7}, a.grad:totable())
  end)

  it("reports a changed argument as a changed tensor is reported", function()
    local Triple = Function:extend "Triple"
    function Triple.forward(ctx, x)
      ctx:mark_dirty(x:mul_(3))
      return x
    end
    function Triple.backward(_, g) return g * 3 end
    local a = leaf{1, 1}
    assert.matches("Triple: cannot change an input in place: it is a leaf that requires grad",
      fails(Triple, a), 1, true)
    local x = a * 2
    local square = x * x
    Triple(x)
    assert.matches("in place", fails(function() square:sum():backward() end), 1, true)
    assert.matches("Triple: cannot change an input in place: it is a view",
      fails(Triple, (a * 2):narrow(1, 1, 1)), 1, true)
    assert.same({3}, Triple(lt.ones(2):narrow(1, 1, 1)):totable()) -- nothing is recorded
    local Lost = Function:extend "Lost"
    function Lost.forward(ctx, t)
      ctx:mark_dirty(t:mul_(3))
      return t * 1
    end
    for _, t in ipairs{lt.ones(2), a * 2} do
      assert.matches("Lost: expected every tensor of ctx:mark_dirty among the results of forward",
        fails(Lost, t), 1, true)
    end
    function Lost.forward(ctx, t)
      ctx:mark_dirty(t, 3)
      return t
    end
    assert.matches("mark_dirty: expected a tensor for argument 2, got 3", fails(Lost, a), 1, true)
    -- A result that is no argument, and one without a gradient.
    function Lost.forward(ctx, t, differentiable)
      local r = differentiable and t * 2 or t:mul_(3)
      ctx:mark_dirty(r)
      if not differentiable then ctx:mark_non_differentiable(r) end
      return r
    end
    function Lost.backward(_, g) return g * 2 end
    a = leaf{1, 1}
    Lost(a, true):sum():backward()
    assert.same({2, 2}, a.grad:totable())
    assert.is_false(Lost(a * 2, false).requires_grad)
  end)

  it("lets the collector see what a changed argument holds", function()
    local Triple = Function:extend "Triple"
    function Triple.forward(ctx, x)
      ctx:mark_dirty(x:mul_(3))
      ctx:save_for_backward(x)
      return x
    end
    function Triple.backward(_, g) return g * 3 end
    local gone = setmetatable({}, {__mode = "k"})
    do
      local x = Triple(leaf{1, 1} * 2)
      gone[x] = true
    end
    for _ = 1, 4 do collectgarbage() end
    assert.is_nil(next(gone))
  end)

  it("has what it saved as a list too", function()
    local Product = Function:extend "Product"
    function Product.forward(ctx, x, w)
      ctx:save_for_backward(x, nil, w)
      return x * w
    end
    function Product.backward(ctx, g)
      local saved = ctx.saved_tensors
      assert.equal("table", type(saved))
      assert.is_nil(saved[2])
      assert.is_nil(ctx.no_such_field)
      return g * saved[3], g * saved[1]
    end
    local x, w = leaf{1, 2}, leaf{3, 4}
    local y = Product(x, w)
    y:sum():backward{retain_graph = true}
    assert.same({3, 4}, x.grad:totable())
    assert.same({1, 2}, w.grad:totable())
    y:sum():backward()
    assert.matches("cannot go through the graph a second time: an earlier backward freed it",
      fails(function() y:sum():backward() end), 1, true)
    local Kept = Function:extend "Kept"
    local context
    function Kept.forward(ctx, t)
      context = ctx
      ctx:save_for_backward(t)
      return t * 1
    end
    function Kept.backward(_, g) return g end
    Kept(x):sum():backward()
    assert.matches("Kept: cannot run backward a second time", fails(function()
      return context.saved_tensors
    end), 1, true)
  end)

  it("raises the error objects of its backward", function()
    local object = setmetatable({}, {__name = "my error"})
    local Bad = Function:extend "Bad"
    function Bad.forward(_, x) return x * 1 end
    function Bad.backward() error(object) end
    local x = leaf(1)
    local y = Bad(x)
    local ok, caught = pcall(y.backward, y)
    assert.is_false(ok)
    assert.is_true(rawequal(object, caught))
    assert.is_nil(x.grad)
  end)

  it("saves nil, results and the same tensor twice", function()
    local Twice = Function:extend "Twice"
    local kept
    function Twice.forward(ctx, n, x, _, w)
      local y, z = x * n, w:exp()
      ctx:save_for_backward(nil, z, x, z, y, nil)
      return y, n, z
    end
    function Twice.backward(ctx, g, h)
      kept = table.pack(ctx:saved())
      return nil, g * 2, nil, h * kept[2]
    end
    local x, w = leaf{1, 2}, leaf{0, 0}
    local y, n, z = Twice(2, x, nil, w)
    assert.equal(2, n)
    ;(y + z):sum():backward()
    assert.equal(6, kept.n)
    assert.is_true(kept[1] == nil and kept[6] == nil)
    assert.is_true(kept[2] == z and kept[4] == z and kept[3] == x and kept[5] == y)
    assert.same({{2, 2}, {1, 1}}, {x.grad:totable(), w.grad:totable()})
  end)

  it("gets an error that says what is wrong", function()
    local Bad = Function:extend "Bad"
    local x = leaf{1, 2}
    assert.matches("has no function forward", fails(Bad, x), 1, true)
    function Bad.forward(ctx, t)
      ctx:save_for_backward(t)
      return t * 1
    end
    local y = Bad(x)
    assert.matches("has no function backward", fails(function() y:sum():backward() end), 1, true)
    function Bad.backward() return "g" end
    y = Bad(x)
    assert.matches('expected a tensor or nil for gradient 1 of backward, got the string "g"',
      fails(function() y:sum():backward() end), 1, true)
    function Bad.backward() return lt.ones{3, dtype = "float64"} end
    y = Bad(x)
    assert.matches("Bad", fails(function() y:sum():backward() end), 1, true)
    function Bad.backward(_, g) return g, g end
    y = Bad(x)
    assert.matches("expected at most 1 gradients from backward",
      fails(function() y:sum():backward() end), 1, true)
    function Bad.backward(ctx, g) return g * ctx:saved() end
    local w = x * 1
    y = Bad(w)
    w:add_(1)
    assert.matches("changed in place", fails(function() y:sum():backward() end), 1, true)
    function Bad.forward(ctx, t)
      ctx:save_for_backward(3)
      return t * 1
    end
    assert.matches("expected tensors for ctx:save_for_backward, got 3", fails(Bad, x), 1, true)
  end)

  it("frees its saved tensors, and reports that the second time", function()
    local x = leaf{1, 2}
    local y = Exp(x)
    y:sum():backward{retain_graph = true}
    y:sum():backward()
    assert.matches("cannot go through the graph a second time: an earlier backward freed it",
      fails(function() y:sum():backward() end), 1, true)
  end)

  it("needs a name", function()
    assert.matches("extend: expected a string for argument 'name', got nil",
      fails(Function.extend, Function), 1, true)
  end)
end)

describe("the scopes of autograd", function()
  it("are those of lt", function()
    for _, name in ipairs{"no_grad", "enable_grad", "inference_mode", "set_grad_enabled"} do
      assert.equal(lt[name], lt.autograd[name])
    end
  end)
end)
