-- lt.compile on a CUDA device: plans return what plain calls return.

local devices = require "device_support"
if devices.elsewhere("compile/compile_cuda", _ENV) then return end

local lt = require "lutra"
local nn, F, cuda = lt.nn, lt.F, lt.cuda
local device = "cuda:0"

local function same(expected, got, label)
  assert.equal(expected.dtype, got.dtype, label)
  assert.equal(expected.device, got.device, label)
  assert.equal(tostring(expected.shape), tostring(got.shape), label)
  assert.equal(expected.requires_grad, got.requires_grad, label)
  local a, b = expected:detach():to("cpu"):double(), got:detach():to("cpu"):double()
  local close = lt.allclose(a, b, {rtol = 1e-5, atol = 1e-6, equal_nan = true})
  assert.is_true(close, ("%s: expected %s, got %s"):format(label or "", expected, got))
end

local function rand(...) return (lt.rand(...) + 0.25):to(device) end

-- Checks that f and its compiled form return the same for inputs that change, and returns the
-- compiled form.
local function check(f, inputs, options)
  local c = lt.compile(f, options)
  for i = 1, 4 do
    local given = {}
    for k, x in ipairs(inputs) do given[k] = x:is_floating_point() and x * i or x end
    local expected = table.pack(f(table.unpack(given)))
    local got = table.pack(c(table.unpack(given)))
    assert.is_nil(c:reason())
    assert.equal(expected.n, got.n)
    for k = 1, expected.n do same(expected[k], got[k], "result " .. k) end
  end
  return c
end

-- Does the same for gradients of the inputs.
local function check_gradients(f, inputs, options)
  local c = lt.compile(f, options)
  for i = 1, 4 do
    local given = {}
    for k, x in ipairs(inputs) do given[k] = (x * i):requires_grad_() end
    local expected = lt.autograd.grad(f(table.unpack(given)):sum(), given)
    local got = lt.autograd.grad(c(table.unpack(given)):sum(), given)
    assert.is_nil(c:reason())
    for k in ipairs(given) do same(expected[k], got[k], "gradient " .. k) end
  end
  return c
end

local function chain(a, b)
  return ((((a * 2 + b) * a - b):tanh() + a) * 0.5 - b):sigmoid() * a
end

local function norm(a)
  local d = a - a:mean(-1, true)
  return d / ((d * d):mean(-1, true) + 1e-5):sqrt()
end

describe("lt.compile on CUDA", function()
  before_each(function() lt.manual_seed(7) end)

  it("computes chains, reductions, products, views and indices", function()
    local x, y = rand(5, 6), rand(5, 6)
    local index = lt.tensor({3, 1}, {device = device})
    check(chain, {x, y})
    check(norm, {x})
    check(function(a, b) return (a:matmul(b:t()) + 1):relu():t():contiguous() * 2 end, {x, y})
    check(function(a, b) return lt.cat({a, b * 2}, 1):sum(1), a:view(-1) * 2, a:t() end, {x, y})
    check(function(a) return a[index], a[{{2, 4}}] + 1, a:index_select(2, index) end, {x})
    check(function(a) return a:sort(2), a:argmax(2), a:gt(0.5):sum(2) end, {x})
    check(function(a) return F.softmax(a, -1), F.layer_norm(a, {6}), a:cumsum(1), a:half() * 2 end,
      {x})
    check(function(a) local z = a * 2; z[1] = 0; z:mul_(3); return z, z:long() + 1 end, {x})
  end)

  it("runs chains as one kernel", function()
    if not devices.can_compile() then return pending "needs a compiler" end
    local x, y = rand(5, 67), rand(5, 67)
    local function count(c)
      local plan = c:plans()[1]
      return {plan.steps, plan.groups, plan.fused}
    end
    assert.same({1, 1, 10}, count(check(chain, {x, y})))
    -- with rows, columns, other dtypes, several results, in another order of dimensions
    assert.same({2, 2, 5}, count(check(function(a, b, row, column)
      local z = (a:t() * row + column):t()
      return z * b:to "float32", z:gt(1), z
    end, {x, lt.randint(0, 5, {5, 67}):to(device), rand(5), rand(67, 1)})))
    assert.same({2, 1, 3}, count(check(function(a, b)
      return ((a + b):half() * 2):sum()
    end, {x, y})))
    check(function(a) return (a * 1e9):long() + 1, (a:gt(0.5):long() * 3 + 1) // 2 end, {x})
  end)

  it("computes gradients", function()
    local x, y = rand(5, 6), rand(5, 6)
    check_gradients(chain, {x, y})
    check_gradients(norm, {x})
    check_gradients(function(a, b) return (a:matmul(b:t()) + 1):relu() * b:sum() end, {x, y})
    check_gradients(function(a, b) return lt.cat({a, b * 2}, 1):sum(1) * a[1] end, {x, y})
  end)

  it("computes attention, embeddings and convolutions, with gradients", function()
    local options = {mode = "reduce-overhead"}
    local q = rand(2, 2, 5, 4)
    local function attend(x)
      return F.scaled_dot_product_attention(x, x * 2, x, {is_causal = true})
    end
    local plan = check_gradients(attend, {q}, options):plans()[1]
    assert.is_nil(plan.graph_reason)
    assert.equal(2, plan.graphs)
    local table_, index = rand(7, 4), lt.randint(1, 7, {3, 5}):to(device)
    check_gradients(function(w) return F.embedding(index, w) * 2 end, {table_}, options)
    check_gradients(function(x, w) return F.max_pool2d(F.conv2d(x, w), 2) end,
      {rand(2, 3, 6, 6), rand(4, 3, 3, 3)}, options)
  end)

  it("falls back where tensors are on several devices", function()
    local x, w = rand(3), lt.ones(3)
    local c = lt.compile(function(a) return a * w:to(device) end)
    same(x, c(x))
    assert.truthy(c:reason():find("\"cpu\"", 1, true), c:reason())
  end)

  it("runs on the current stream, and not in a capture", function()
    local x, y, side = rand(50), rand(50), cuda.Stream()
    local c = lt.compile(chain)
    local expected = chain(x, y)
    side:wait_stream(cuda.current_stream())
    for _ = 1, 3 do
      same(expected, c(x, y))
      local z = cuda.with_stream(side, function() return c(x, y) end)
      side:synchronize()
      same(expected, z)
    end
    local plans = #c:plans()
    local g = cuda.CUDAGraph()
    local z = cuda.graph(g, function() return c(x, y) end)
    g:replay()
    same(expected, z)
    assert.equal(2, plans)
    assert.equal(plans, #c:plans())
  end)

  it("draws the numbers that plain calls draw", function()
    local f = function(a) return F.dropout(a, 0.5) + lt.rand{4, device = device} end
    for _, mode in ipairs {"default", "reduce-overhead"} do
      local c, x = lt.compile(f, {mode = mode}), rand(4)
      c(x)
      lt.manual_seed(3)
      local expected = {f(x), f(x), f(x)}
      lt.manual_seed(3)
      for i = 1, 3 do same(expected[i], c(x)) end
    end
  end)

  it("runs steps where a graph cannot be captured, and in a capture", function()
    local options = {mode = "reduce-overhead"}
    local x = lt.eye(3):to(device) * 2 + 1
    local function inverse(a) return lt.linalg.inv(a) * 2 + a end
    local first = lt.compile(inverse) -- the record loads lt.linalg
    first(x)
    assert.is_nil(first:reason())
    local c = check(inverse, {x}, options)
    local plan = c:plans()[1]
    assert.equal(0, plan.graphs)
    assert.truthy(plan.graph_reason:find("cannot decompose or solve", 1, true), plan.graph_reason)
    assert.truthy(tostring(c):find("no graph: ", 1, true))
    c = check(chain, {x, x}, options)
    local g = cuda.CUDAGraph()
    local z = cuda.graph(g, function() return c(x, x) end)
    g:replay()
    same(chain(x, x), z)
  end)

  it("replays graphs with reduce-overhead", function()
    local options = {mode = "reduce-overhead"}
    local x, y = rand(5, 6), rand(5, 6)
    local function graphs(c) return c:plans()[1].graphs end
    local c = lt.compile(chain, options)
    local results, expected = {}, {}
    for i = 1, 4 do
      results[i], expected[i] = c(x * i, y), chain(x * i, y)
      assert.equal(i > 1 and 1 or 0, graphs(c))
      assert.is_nil(c:plans()[1].graph_reason)
    end
    for i = 1, 4 do same(expected[i], results[i]) end -- the results have memory of their own
    assert.equal(1, graphs(check(function(a, b)
      return a:matmul(b:t()):softmax(-1), a:view(-1), a:t() * 2, a, (a + b)[{{}, {2, 3}}]
    end, {x, y}, options)))
    assert.equal(1, graphs(check(norm, {rand(9, 8):t()[{{2, 4}}]}, options)))
    assert.equal(2, graphs(check_gradients(chain, {x, y}, options)))
    assert.equal(2, graphs(check_gradients(function(a, b)
      return F.softmax(a:matmul(b:t()) + 1, -1):matmul(a) * b:sum()
    end, {x, y}, options)))
    assert.equal(0, graphs(check(chain, {x, y})))
  end)

  it("keeps what several calls save, with graphs", function()
    local x = rand(6):requires_grad_()
    local c = lt.compile(function(a) return (a:exp() * a):tanh():sum() end,
      {mode = "reduce-overhead"})
    local function gradient(y, options) return lt.autograd.grad(y, x, options)[1] end
    for _ = 1, 3 do
      local a, b = x * 1, x * 2
      local expected = {gradient((a:exp() * a):tanh():sum()),
        gradient((b:exp() * b):tanh():sum())}
      local one, two = c(x * 1), c(x * 2)
      same(expected[2], gradient(two))
      same(expected[1], gradient(one, {retain_graph = true}))
      same(expected[1], gradient(one))
    end
    assert.equal(2, c:plans()[1].graphs)
  end)

  it("uses captured tensors where they are, with graphs", function()
    local w, x = rand(4), rand(4)
    local c = lt.compile(function(a) return a * w + 1 end, {mode = "reduce-overhead"})
    for i = 1, 10 do
      if i == 4 then w = rand(4) else w:add_(1) end
      same(x * w + 1, c(x))
    end
    assert.equal(1, c:plans()[1].graphs)
    for _ = 1, 10 do
      w = rand(4)
      same(x * w + 1, c(x))
    end
    assert.equal(0, c:plans()[1].graphs)
    assert.truthy(c:plans()[1].graph_reason:find("captured tensors change", 1, true))
    w = rand(4)
    local writes = lt.compile(function(a) w:add_(a); return w * 2 end, {mode = "reduce-overhead"})
    local sum = w:clone()
    for _ = 1, 5 do
      sum = sum + x
      same(sum * 2, writes(x))
      same(sum, w)
    end
    assert.equal(1, writes:plans()[1].graphs)
  end)

  it("trains a module to the losses of the module", function()
    local x, t = lt.randn(8, 7):to(device), lt.randint(1, 3, {8}):to(device)
    local function train(wrap)
      lt.manual_seed(5)
      local net = wrap(nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.GELU(),
        nn.Dropout(0.2), nn.Linear(16, 3)):to(device))
      local opt = lt.optim.SGD(net:parameters(), {lr = 0.01})
      local losses = {}
      lt.manual_seed(9)
      for i = 1, 6 do
        opt:zero_grad()
        local loss = F.cross_entropy(net(x * i), t)
        loss:backward()
        opt:step()
        losses[i] = loss:item()
      end
      net:eval()
      losses[7] = net(x):sum():item()
      return losses, net
    end
    local expected = train(function(m) return m end)
    for _, mode in ipairs {"default", "reduce-overhead"} do
      local got, net = train(function(m) return lt.compile(m, {mode = mode}) end)
      for i, loss in ipairs(expected) do assert.is_true(math.abs(loss - got[i]) < 1e-4) end
      assert.is_nil(net:reason())
      assert.equal(mode == "default" and 0 or 2, net:plans()[2].graphs)
    end
  end)
end)
