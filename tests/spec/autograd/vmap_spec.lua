-- lt.func.vmap: rules for batches give what a loop over the examples gives.
local lt = require "lutra"
local batching = require "lutra.func.batching"
local nn, F, fn = lt.nn, lt.nn.functional, lt.func

local on = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local wide = on:match "^mps" and "float32" or "float64"
local SIZE = 3

-- Returns f(...) for each example, stacked, without vmap.
local function by_loop(f, in_dims, ...)
  local inputs, columns = table.pack(...), {}
  for k = 1, SIZE do
    local own = {}
    for i = 1, inputs.n do
      own[i] = in_dims[i] and inputs[i]:select(in_dims[i], k) or inputs[i]
    end
    for i, t in ipairs{f(table.unpack(own, 1, inputs.n))} do
      columns[i] = columns[i] or {}
      columns[i][k] = t
    end
  end
  for i, column in ipairs(columns) do columns[i] = lt.stack(column) end
  return columns
end

-- Calls f(...) and returns its results as a list, and the names of the ops that ran in a loop.
local function quiet(f, ...)
  local old = batching.looped
  batching.looped = setmetatable({}, {__index = function() return 1 end}) -- no warnings
  local results = table.pack(pcall(f, ...))
  local names = {}
  for name in pairs(batching.looped) do names[#names + 1] = name end
  batching.looped = old
  assert(results[1], results[2])
  return {table.unpack(results, 2, results.n)}, table.concat(names, " ")
end

local function same(expected, results)
  assert.equal(#expected, #results)
  for i, e in ipairs(expected) do
    assert.equal(tostring(e.shape), tostring(results[i].shape))
    assert.equal(e.dtype, results[i].dtype)
    assert.is_true(lt.allclose(e:to "float64", results[i]:to "float64", {rtol = 1e-4, atol = 1e-5,
      equal_nan = true}))
  end
end

-- Checks vmap(f) against the loop; f must run once and need no loop for an op.
local function check(f, in_dims, ...)
  local calls = 0
  local function counted(...)
    calls = calls + 1
    return f(...)
  end
  local results, text = quiet(fn.vmap(counted, {in_dims = in_dims}), ...)
  assert.equal("", text)
  assert.equal(1, calls)
  same(by_loop(f, in_dims, ...), results)
end

local function random(shape, dtype)
  if dtype == "int64" then return lt.randint(1, 6, shape, {device = on}) end
  return (lt.rand(shape, {device = on}) + 0.25):to(dtype)
end

-- Returns the shape with the batch at dim `at`.
local function with_batch(shape, at)
  local list = {table.unpack(shape)}
  table.insert(list, at, SIZE)
  return list
end

-- Checks f with every choice of batched arguments, the batch first and last, in every dtype.
local function check_all(f, shapes, dtypes)
  for _, dtype in ipairs(dtypes or {"float32", wide}) do
    for choice = 1, (1 << #shapes) - 1 do
      for _, last in ipairs{false, true} do
        local dims, inputs = {}, {}
        for i, shape in ipairs(shapes) do
          local mapped = choice & 1 << i - 1 ~= 0
          local at = last and #shape + 1 or 1
          dims[i] = mapped and at
          inputs[i] = random(mapped and with_batch(shape, at) or shape, dtype)
        end
        check(f, dims, table.unpack(inputs))
      end
    end
  end
end

local ALL = {"float32", wide, "int64"}

local UNARY = {"neg", "abs", "exp", "sin", "relu", "sigmoid", "tanh", "sqrt", "log", "square",
  "clone", "contiguous", "detach"}
local BINARY = {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "lt", "ge", "atan2",
  "floor_divide", "remainder"}

describe("vmap's rules", function()
  it("cover functions of elements", function()
    for _, name in ipairs(UNARY) do
      local f = function(x) return lt[name](x) end
      if name == "contiguous" then f = function(x) return x:contiguous() end end
      check_all(f, {{2, 4}}, ALL)
      check_all(f, {{}}, ALL)
    end
    check_all(function(x) return -x * 2 + 1 - x / 3, 2 ^ x, x % 2, x // 2 end, {{2, 2}})
    check_all(function(x) return x:clamp(0.5, 1) end, {{2}, })
    check_all(function(x) return F.gelu(x), F.hardtanh(x), F.silu(x), F.softplus(x) end, {{3}})
  end)

  it("cover functions of two tensors of any ranks", function()
    for _, name in ipairs(BINARY) do
      local f = function(a, b) return lt[name](a, b) end
      for _, shapes in ipairs{{{2, 4}, {2, 4}}, {{4}, {2, 4}}, {{2, 1}, {4}}, {{}, {3}},
          {{}, {}}} do
        check_all(f, shapes, ALL)
      end
    end
    check_all(function(a, b, c) return lt.where(a:gt(b), a, c), lt.lerp(a, b, 0.5),
      lt.addcmul(a, b, c) end, {{2, 3}, {3}, {2, 1}})
    check_all(function(a) return a:masked_fill(a:gt(0.5), 0) end, {{2, 3}})
  end)

  it("keep the dtype that a tensor without dims does not decide", function()
    local x, s = random({SIZE, 2}, "float32"), random({SIZE}, "float64")
    local results = quiet(fn.vmap(function(a, b) return a * b end), x, s)
    assert.equal("float32", results[1].dtype)
    same(by_loop(function(a, b) return a * b end, {1, 1}, x, s), results)
  end)

  it("cover reductions", function()
    for _, name in ipairs{"sum", "mean", "prod", "amax", "amin", "logsumexp", "argmax", "argmin",
        "var", "std", "max", "min", "count_nonzero", "all", "any", "nansum"} do
      local function f(...)
        return (lt[name](...))
      end
      check_all(function(x) return f(x, 1), f(x, -1), f(x, 2) end, {{2, 4}})
      if name ~= "count_nonzero" then
        check_all(function(x) return f(x, 1, {keepdim = true}) end, {{2, 4}})
      end
      if name ~= "logsumexp" then
        check_all(function(x) return f(x) end, {{2, 4}})
        check_all(function(x) return f(x) end, {{5}})
      end
    end
    check_all(function(x) return x:sum(), x:mean(), x:sum(1), x:sum(-1, {keepdim = true}) end, {{}})
    check_all(function(x) return x:sum{1, -1}, x:mean({1, 2}, {keepdim = true}) end, {{2, 3, 2}})
    check_all(function(x) return x:max(1) end, {{4, 2}})
  end)

  it("cover views", function()
    check_all(function(x)
      return x:transpose(1, 2), x:transpose(-1, 1), x:permute(3, 1, 2), x:reshape(2, -1),
        x:flatten(), x:flatten(2), x:unsqueeze(1), x:unsqueeze(-1), x:select(2, 1), x:select(-1, 2),
        x:narrow(1, 1, 1), x[1], x[-1][2], x:swapaxes(1, 3)
    end, {{2, 3, 4}}, ALL)
    check_all(function(x)
      return x:squeeze(), x:squeeze(1), x:unflatten(2, {2, 2}), x:expand(3, 4), x:expand(2, 3, 4)
    end, {{1, 4}})
    check_all(function(x) return x:t(), x.T, x.mT end, {{2, 3}})
    check_all(function(x) return x:expand(2), x:reshape(1), x:unsqueeze(1), x:flatten() end, {{}})
    check_all(function(x) return table.unpack(x:split(2, 1)) end, {{4, 3}})
    check_all(function(x) return table.unpack(x:chunk(2, -1)) end, {{4, 4}})
    check_all(function(x) return table.unpack(x:unbind(2)) end, {{4, 3}})
    check_all(function(x) return x:positive() end, {{2, 3}})
  end)

  it("cover padding and sampling", function()
    for _, mode in ipairs{"reflect", "replicate", "circular"} do
      check_all(function(x) return F.pad(x, {1, 2}, mode) end, {{2, 3}})
      check_all(function(x) return F.pad(x, {1, 1, 0, 1}, mode) end, {{1, 2, 3, 3}})
    end
    check_all(F.grid_sample, {{2, 1, 3, 3}, {2, 2, 2, 2}})
    check_all(F.pairwise_distance, {{2, 3}, {2, 3}})
  end)

  it("cover products", function()
    for _, shapes in ipairs{{{2, 3}, {3, 4}}, {{3}, {3}}, {{3}, {3, 4}}, {{2, 3}, {3}},
        {{2, 2, 3}, {3, 4}}, {{2, 3}, {2, 3, 4}}, {{2, 2, 3}, {2, 3, 4}}, {{3}, {2, 3, 4}},
        {{2, 2, 3}, {3}}} do
      check_all(function(a, b) return a:matmul(b), lt.matmul(a, b) end, shapes)
    end
    check_all(function(a, b) return a:mm(b) end, {{2, 3}, {3, 2}})
    check_all(function(a, b) return a:mv(b) end, {{2, 3}, {3}})
    check_all(function(a, b) return a:dot(b) end, {{3}, {3}})
    check_all(function(a, b) return a:outer(b) end, {{3}, {2}})
    check_all(function(a, b) return a:bmm(b) end, {{2, 2, 3}, {2, 3, 1}})
    for _, x in ipairs{{3}, {4, 3}, {2, 4, 3}} do
      check_all(function(a, w, b) return F.linear(a, w, b) end, {x, {2, 3}, {2}})
    end
    check_all(function(b, a, c) return lt.addmm(b, a, c, {beta = 2, alpha = 3}) end,
      {{4}, {2, 3}, {3, 4}})
    check_all(function(b, a, c) return lt.baddbmm(b, a, c) end, {{2, 2, 4}, {2, 2, 3}, {2, 3, 4}})
  end)

  it("cover functions along a dim", function()
    check_all(function(x)
      return x:softmax(1), x:log_softmax(-1), x:cumsum(2), x:cumprod(1), x:flip{1}, x:argsort(1)
    end, {{3, 4}})
    check_all(function(x) return x:sort(1) end, {{4, 2}})
    check_all(function(x) return x:topk(2) end, {{2, 5}})
    check_all(function(x) return x:roll(1, 1) end, {{4, 2}})
  end)

  it("cover lists and indices", function()
    check_all(function(a, b)
      return lt.cat({a, b}, 1), lt.cat({b, a}, -1), lt.stack({a, b}, 2), lt.stack({a, b}, -1)
    end, {{2, 3}, {2, 3}})
    local rows = lt.tensor({2, 1, 1}, {device = on})
    check_all(function(x) return x:index_select(1, rows) end, {{3, 2}})
    check_all(function(x) return x:gather(1, rows:reshape(1, 3)) end, {{3, 3}})
    check(function(i, w) return F.embedding(i, w) end, {1, false}, random({SIZE, 4}, "int64"),
      random({6, 2}, wide))
  end)

  it("cover losses, normalization and windows", function()
    for _, how in ipairs{"mean", "sum", "none"} do
      check_all(function(a, b)
        return F.mse_loss(a, b, {reduction = how}), F.l1_loss(a, b, {reduction = how}),
          F.binary_cross_entropy_with_logits(a, b, {reduction = how})
      end, {{2, 3}, {2, 3}})
      local x = random({SIZE, 4, 6}, wide)
      local target = random({SIZE, 4}, "int64")
      local function f(a, t)
        return F.cross_entropy(a, t, {reduction = how}),
          F.nll_loss(a:log_softmax(-1), t, {reduction = how, ignore_index = 2})
      end
      check(f, {1, 1}, x, target)
      check(f, {1, false}, x, target[1])
      check(f, {false, 1}, x[1], target)
      check(function(a, t) return F.cross_entropy(a, t, {reduction = how}) end, {1, 1}, x[1]:narrow(
        1, 1, SIZE), target:select(2, 1))
    end
    check_all(function(x, w, b) return F.layer_norm(x, {3}, w, b) end, {{2, 3}, {3}, {3}})
    check_all(function(q, k, v)
      return F.scaled_dot_product_attention{q, k, v, is_causal = true}
    end, {{2, 4, 3}, {2, 5, 3}, {2, 5, 2}})
    check_all(function(q, k, v, m) return F.scaled_dot_product_attention(q, k, v, m) end,
      {{4, 3}, {2, 5, 3}, {1, 5, 2}, {5}})
    check_all(function(q, k, v)
      return F.scaled_dot_product_attention{q, k, v, enable_gqa = true}
    end, {{4, 2, 3}, {2, 5, 3}, {2, 5, 2}})
    local w = random({2, 1, 3, 3}, wide)
    check(function(x) return F.conv2d(x, w) end, {1}, random({SIZE, 2, 1, 5, 5}, wide))
    check(function(x) return F.conv2d(x, w) end, {2},
      random({1, SIZE, 5, 5}, wide))
  end)

  it("cover modules and composites through their parts", function()
    local net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.LayerNorm(3), nn.Linear(3, 2))
    net:to{on, dtype = wide}
    check(function(x) return net(x):detach(), net(x):softmax(-1):detach() end, {1},
      random({SIZE, 4}, wide))
    check(function(x) return F.normalize(x, {dim = 1}), F.huber_loss(x, x * 2) end, {2},
      random({4, SIZE}, wide))
  end)
end)

describe("vmap with derivatives", function()
  it("differentiates norms, which were called before", function()
    local x = lt.arange(1, 6):to(wide):reshape(2, 3)
    x:norm()
    local unit = x / (x * x):sum(2, true):sqrt()
    assert.is_true(lt.allclose(fn.vmap(fn.grad(function(a) return a:norm() end))(x), unit))
    assert.is_true(lt.allclose(fn.vmap(fn.grad(function(a) return lt.dist(a, a * 3) end))(x),
      2 * unit))
  end)

  it("gives gradients of each example", function()
    local net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5)):to{on, dtype = wide}
    local params = {}
    for name, p in net:named_parameters() do params[name] = p:detach() end
    local x, y = random({SIZE, 4}, wide), random({SIZE}, "int64"):clamp(1, 5)
    local calls = 0
    local function loss(p, a, b)
      calls = calls + 1
      return F.cross_entropy(fn.functional_call(net, p, a:unsqueeze(1)), b:unsqueeze(1))
    end
    local results, text = quiet(fn.vmap(fn.grad(loss), {in_dims = {false, 1, 1}}), params, x, y)
    assert.equal("", text)
    assert.equal(1, calls)
    for k = 1, SIZE do
      local one = fn.grad(loss)(params, x[k], y[k])
      for name, g in pairs(one) do assert.is_true(lt.allclose(g, results[1][name][k])) end
    end
  end)

  it("differentiates inside, outside and twice", function()
    local x, w = random({SIZE, 2}, wide), random({2}, wide)
    local function f(a) return (a ^ 3 * w).sum and (a ^ 3 * w):sum() end
    check(fn.grad(f), {1}, x)
    check(function(a) return fn.grad(function(b) return fn.grad(f)(b):sum() end)(a) end, {1}, x)
    local leaf = x:clone():requires_grad_()
    fn.vmap(function(a) return (a ^ 3 * w):sum() end)(leaf):sum():backward()
    assert.is_true(lt.allclose(3 * x ^ 2 * w, leaf.grad))
    local g = fn.grad(function(a) return fn.vmap(fn.grad(f))(a):sum() end)(x)
    assert.is_true(lt.allclose(6 * x * w, g))
  end)

  it("gives the loop's result where gradients join the examples", function()
    local x, w = random({SIZE, 2}, wide), random({2}, wide):requires_grad_()
    local function f(a) return lt.autograd.grad((a * w):sum(), w) end
    same(by_loop(f, {1}, x), (quiet(fn.vmap(f), x)))
  end)
end)

describe("vmap", function()
  it("nests", function()
    local a, b = random({SIZE, 2, 4}, wide), random({5, 4}, wide)
    local calls = 0
    local results, text = quiet(fn.vmap(function(x)
      return fn.vmap(function(y)
        return fn.vmap(function(z)
          calls = calls + 1
          return lt.dot(y, z), (y * z + 1):sum()
        end)(b)
      end)(x)
    end), a)
    assert.equal("", text)
    assert.equal(1, calls)
    assert.is_true(lt.allclose(a:matmul(b:t()), results[1]))
    assert.is_true(lt.allclose(a:matmul(b:t()) + 4, results[2]))
  end)

  it("takes a function of the library", function()
    local a, b = random({SIZE, 4}, wide), random({4}, wide)
    local results, text = quiet(fn.vmap(lt.dot, {in_dims = {1, false}}), a, b)
    assert.equal("", text)
    assert.is_true(lt.allclose(a:mv(b), results[1]))
  end)

  it("calls functions with a faster way for one example once", function()
    local x = lt.randn(5, 4, 4)
    for name, f in pairs {
      aminmax = function(v) return select(2, lt.aminmax(v)) end,
      logcumsumexp = function(v) return v:logcumsumexp(1) end,
      take = function(v) return v:take(lt.tensor{3, 1}) end,
      block_diag = function(v) return lt.block_diag(v, v) end,
      kron = function(v) return lt.kron(v, v) end,
    } do
      local calls, list = {}, {}
      local result = lt.func.vmap(function(v) table.insert(calls, 1); return f(v) end)(x)
      assert.equal(1, #calls, name)
      for i = 1, 5 do list[i] = f(x[i]) end
      assert.is_true(lt.allclose(result, lt.stack(list)), name)
    end
  end)

  it("loops over an op without a rule", function()
    local x = random({SIZE, 3, 3}, wide)
    local function f(a) return lt.linalg.inv(a) * 2 end
    local results, names = quiet(fn.vmap(f), x)
    assert.equal("_linalg_inv", names)
    same(by_loop(f, {1}, x), results)
  end)

  it("loops where a value is read, tensors change or functions are hidden", function()
    local x = random({SIZE, 3}, wide)
    local exp = lt.exp
    for _, f in ipairs{function(a) return a:sum():item() > 3 and a or a * 2 end,
        function(a)
          local out = a:clone()
          out[1] = 5
          return out
        end, function(a) return a:clone():add_(1) end, function(a) return exp(a) end,
        function(a) return a[a:gt(0.5)]:sum() end, function(a) return a.data * 2 end} do
      same(by_loop(f, {1}, x), (quiet(fn.vmap(f), x)))
    end
    assert.is_true(lt.equal(lt.exp(x), exp(x)))
    assert.equal(exp, lt.exp)
  end)

  it("takes parts of chunk_size and places out_dims", function()
    local x = random({5, 2}, wide)
    local seen = {}
    local out = fn.vmap(function(a)
      seen[#seen + 1] = true
      return a * 2
    end, {chunk_size = 2, out_dims = 2})(x)
    assert.equal(3, #seen)
    assert.is_true(lt.equal((x * 2):t(), out))
    assert.is_true(lt.equal(x[1] * 2, fn.vmap(function(a) return a * 2 end, {out_dims = false})(x)))
    assert.equal("{2, 5}", tostring(fn.vmap(function() return lt.ones(2) end, {out_dims = -1})(
      x).shape))
  end)

  it("leaves the library as it was after an error", function()
    local add = lt.add
    local ok, message = pcall(fn.vmap(function(a) return a + lt.ones(7, {device = on}) end),
      random({SIZE, 2}, wide))
    assert.is_false(ok)
    assert.matches("add: ", message, 1, true)
    assert.equal(add, lt.add)
  end)
end)
