-- lt.compile: a compiled function returns what the function returns, with plans of the expected
-- kinds of steps, also for other shapes, layouts and dtypes. Expected values are those of the plain
-- calls, which other specs compare with PyTorch.

local lt = require "lutra"
local core = require "lutra.core"
local nn, F = lt.nn, lt.nn.functional

local function same(expected, got, tolerance)
  assert.equal(expected.dtype, got.dtype)
  assert.equal(tostring(expected.shape), tostring(got.shape))
  assert.equal(expected.requires_grad, got.requires_grad)
  if expected:numel() == 0 then return end
  local close = lt.allclose(expected:detach():double(), got:detach():double(),
    {rtol = tolerance or 1e-5, atol = tolerance or 1e-6, equal_nan = true})
  assert.is_true(close, ("expected %s, got %s"):format(expected, got))
end

-- Checks that f and its compiled form return the same three times, and returns the compiled form.
local function check(f, ...)
  local c = lt.compile(f)
  local expected = table.pack(f(...))
  for _ = 1, 3 do
    local got = table.pack(c(...))
    assert.equal(expected.n, got.n)
    for i = 1, expected.n do same(expected[i], got[i]) end
  end
  assert.is_nil(c:reason())
  return c
end

local function rand(...) return lt.rand(...) + 0.25 end

-- Returns a function of two matrices of 24 x 24 elements that applies random elementwise ops,
-- reductions of rows, views and products to them and to earlier results, and returns three results.
local function random_program()
  local steps = {}
  for i = 1, 14 do steps[i] = {math.random(10), math.random(i + 1), math.random(i + 1)} end
  return function(a, b)
    local apply = {
      function(x, y) return x * y end, function(x, y) return x - y end,
      function(x, y) return x * 0.5 + y end, function(x) return x:sin() end,
      function(x) return x:sigmoid() end, function(x) return x:abs() end,
      function(x) return x:mean(-1, true) end, function(x) return (x * x):sum(-1, true):sqrt() end,
      function(x) return x:expand(24, 24):t() * 2 end,
      function(x) return a:matmul(x):tanh() end,
    }
    local v = {a, b}
    for _, s in ipairs(steps) do v[#v + 1] = apply[s[1]](v[s[2]], v[s[3]]) end
    return v[9], v[#v - 1], v[#v]
  end
end

describe("lt.compile", function()
  before_each(function() lt.manual_seed(7) end)

  it("fuses chains of elementwise ops to one step", function()
    local x, y = rand(5, 67), rand(5, 67)
    local c = check(function(a, b)
      return ((((a * 2 + b) * a - b):tanh() + a) * 0.5 - b):sigmoid() * a
    end, x, y)
    local plan = c:plans()[1]
    assert.equal(1, plan.steps)
    assert.equal(10, plan.fused)
  end)

  it("computes the operands of a call in its step", function()
    local x, y, w = rand(9, 9), rand(9, 9), rand(9, 9)
    -- Checks the number of steps of f.
    local function steps(n, f) assert.equal(n, check(f, x, y):plans()[1].steps) end
    steps(1, function(a, b) return a * 2 + b:exp() end)
    steps(1, function(a, b)
      local m = a * 0.9 + b * 0.1
      local v = a * 0.99 + b * b * 0.01
      return a - m / (v:sqrt() + 1e-8), m, v
    end)
    steps(2, function(a, b) return a:exp() * 3 + a:matmul(b) * 2 end)
    steps(3, function(a, b)
      local gate = a:matmul(b)
      return gate * gate:sigmoid() * a:matmul(w)
    end)
    steps(2, function(a, b)
      return (a * 2):sum(-1, true) * (b:exp() - b:amax(-1, true)), a:matmul(b)
    end)
    -- What a product reads comes before it; an operand in another layout is no value of a chain.
    steps(3, function(a, b)
      local m = a * 2
      return m:matmul(b) * 3 + m
    end)
    steps(2, function(a, b) return (a * 2):t() + b * 3 end)
    -- A tensor that changes between two steps.
    local state = {lt.zeros(9, 9), lt.zeros(9, 9)}
    local function f(s)
      return function(a, b)
        local m, k = a * 2, s * 3
        s:add_(b)
        return m + s, k * m
      end
    end
    local plain, compiled = f(state[1]), lt.compile(f(state[2]))
    for _ = 1, 3 do
      local expected, got = table.pack(plain(x, y)), table.pack(compiled(x, y))
      for i = 1, 2 do same(expected[i], got[i]) end
    end
    assert.is_nil(compiled:reason())
  end)

  it("computes random programs", function()
    math.randomseed(7)
    for _ = 1, 60 do check(random_program(), rand(24, 24), rand(24, 24)) end
  end)

  it("computes every elementwise op of one argument in a chain", function()
    local x = rand(3, 70)
    for _, op in ipairs(lt.ops()) do
      local f = rawget(lt, op.name)
      if op.kind == "elementwise" and #op.params == 1 and f then
        local ok = pcall(f, x)
        if ok then check(function(a) return f(a * 0.5) end, x) end
      end
    end
  end)

  it("computes chains of which several ops read a value, to the bit", function()
    local function huber(a, b)
      local d = a - b
      local m = d:abs()
      return lt.where(m:lt(1), 0.5 * d * d, m - 0.5)
    end
    local function chosen(a, b) -- the kept value is each input of an op with three
      local m, d = (a + b):gt(0), a - b
      local e = d * 2
      local u = lt.where(m, e + 1, e) * e
      local v = lt.where(m, u, u + 1) - u
      local w = lt.where((v + 1):gt(0), v, b) + lt.where(v:gt(0), b, v - 1)
      local g = w - a
      return lt.where(g:le(0), g * 3, b) + g / (g + 2), lt.where(u:lt(0), b, g)
    end
    for _, dtype in ipairs {lt.float32, lt.float64} do
      for _, n in ipairs {1, 2, 15, 16, 17, 63, 64, 127, 128, 129, 1000, 5001, 20001} do
        local x, y = lt.randn(n):to(dtype), lt.randn(n):to(dtype)
        x[1], y[n] = n % 2 == 0 and math.huge or 0 / 0, -0.0
        for _, f in ipairs {huber, chosen} do
          local expected, got = table.pack(f(x, y)), table.pack(lt.compile(f)(x, y))
          for i = 1, expected.n do
            local both_nan = expected[i]:isnan():logical_and(got[i]:isnan())
            assert.is_true(expected[i]:eq(got[i]):logical_or(both_nan):all():item())
          end
        end
      end
    end
  end)

  it("computes ops of two arguments, and of numbers", function()
    local x, y = rand(4, 33), rand(4, 33)
    for _, name in ipairs {"add", "sub", "mul", "div", "pow", "atan2", "maximum", "minimum", "fmod",
      "remainder", "hypot", "lt", "ge", "eq"} do
      check(function(a, b) return lt[name](a + 1, b), lt[name](a * 2, 3) end, x, y)
    end
    check(function(a) return a ^ 3, a ^ 2, a ^ -1, 2 ^ a, 1 - a, 3 / a end, x)
    check(function(a, b) return lt.where((a * 2):gt(b), a, b * 3) end, x, y)
    check(function(a, b) return (a * 2):masked_fill(b:gt(0.5), -1) end, x, y)
  end)

  it("computes reductions of rows in the same pass", function()
    for _, n in ipairs {2, 7, 64, 65, 128, 1000, 1024, 5000} do
      local x = lt.randn(6, n)
      local c = check(function(a)
        local e = (a - a:amax(-1, true)):exp()
        return e / e:sum(-1, true)
      end, x)
      assert.equal(1, c:plans()[1].steps)
      c = check(function(a)
        local d = a - a:mean(-1, true)
        return d / ((d * d):mean(-1, true) + 1e-5):sqrt()
      end, x)
      assert.equal(1, c:plans()[1].steps)
      check(function(a)
        local m, v = a:mean(-1), a:var(-1)
        return (a - m:unsqueeze(-1)) * v:rsqrt():unsqueeze(-1), m, v
      end, x)
      check(function(a) return (a * 2):sum(-1), (a * 2):sum(1), (a * 2):sum() end, x)
    end
    check(function(a) return (a:exp() - a:amin(-1, true)):log():amax(-1) end, lt.randn(2, 3, 4, 9))
    check(function(a) return a:softmax(-1) * 2, a:log_softmax(1) + 1 end, lt.randn(3, 9))
  end)

  it("reads operands of other layouts beside reductions of rows", function()
    local x, y = lt.randn(4, 5, 6), lt.randn(5, 4, 6):transpose(1, 2)
    check(function(a, b)
      local v = a
      for _ = 1, 26 do v = v * 0.5 + a end -- more operands than a step has
      v = v + b
      return v * v:sum(-1, true)
    end, x, y)
    -- Beside results {1, 5} of rows: vectors without the first dimension.
    check(function(a, w) return a:sum(-1) + w, (a * 2):amax(-1) * w end, x[{{1, 1}}], lt.randn(5))
    check(function(a, w) return a * (a:sum(-1, true) + w) end, x[{{1, 1}}], lt.randn(5, 1))
  end)

  it("combines elements with a value of their row, on either side", function()
    for _, n in ipairs {2, 63, 64, 65, 128, 300, 384} do
      for _, dtype in ipairs {"float32", "float64"} do
        local x = rand(21, n):to(dtype)
        local w, k = rand(n):to(dtype), rand(21, 1):to(dtype)
        local function chain(a)
          local m, s = a:mean(-1, true), a:sum(-1, true)
          local d = a - m
          return d * s * w + k, (d * d - s) * (d + k) - k, a:gt(m):eq(d:gt(0)), d
        end
        local expected, got = table.pack(chain(x)), table.pack(lt.compile(chain)(x))
        for i = 1, 4 do assert.is_true(lt.equal(expected[i], got[i]), n) end
        for _, name in ipairs {"add", "div", "pow", "atan2", "remainder", "maximum", "ge"} do
          local c = check(function(a)
            local m = a:mean(-1, true)
            return lt[name](a, m), lt[name](m, a), lt[name](m, 2), lt[name](2, m)
          end, x)
          assert.is_true(c:plans()[1].groups > 0)
        end
        check(function(a)
          local s = a:sum(-1, true)
          local m = (s * 9):int() % 7
          return ((a * 100):int() - m) * m, (a:gt(s / n)):eq(s:gt(n / 2)), lt.lerp(a, s, s)
        end, x)
      end
    end
    local c = lt.compile(function(a, b) return (a + 1) // b end)
    local d = lt.compile(function(a) return (a + 1) // 0 end)
    local x = lt.arange(70)
    assert.is_true(lt.equal((x + 1) // 3, c(x, 3)))
    assert.matches("zero", select(2, pcall(c, x, 0)))
    assert.matches("zero", select(2, pcall(d, x)))
  end)

  it("keeps the dtypes of the ops", function()
    for _, dtype in ipairs {"float64", "bfloat16", "float16", "int64", "int32", "int8", "bool"} do
      local x = lt.randint(0, 5, {4, 70}):to(dtype)
      local c = lt.compile(function(a) return a * 2 + a, a / 3, a:sum(-1), a:eq(2) end)
      local expected = {(function(a) return a * 2 + a, a / 3, a:sum(-1), a:eq(2) end)(x)}
      local got = {c(x)}
      for i = 1, 4 do same(expected[i], got[i], dtype:find "16" and 0.02) end
    end
    check(function(a, b) return a + b, (a:double() + b) * 2 end, rand(3, 4), lt.arange(4))
    check(function(a) return a // 3, a % 3, -a // 2 end, lt.arange(20))
    check(function(a) return a * a + 1, a:abs() end, lt.randn{5, dtype = "complex64"})
  end)

  it("broadcasts", function()
    check(function(a, b, d) return (a + b) * d - b, b * 2 end, rand(5, 1, 9), rand(4, 1), rand(9))
    check(function(a, b) return a * b + 1 end, rand(6, 70), lt.tensor(2.5))
    check(function(a, b) return (a * b):exp() + b end, rand(1), rand(3, 3))
  end)

  it("runs views, products, joins and indices", function()
    local x, w = rand(6, 8), rand(8, 5)
    check(function(a) return (a:matmul(w) + 1):relu():t() end, x)
    check(function(a) return a:t():contiguous():view(-1) + 1, a[2] * 2 end, x)
    check(function(a) return a[{{2, 4}}] + a[{{3, 5}}] end, x)
    check(function(a) return lt.cat({a, a * 2}, 2):sum(1), lt.stack{a, a + 1} end, x)
    check(function(a) return a:permute(2, 1):reshape(4, 12):narrow(2, 3, 5) * 2 end, x)
    local at = lt.tensor{1, 3, 5}
    check(function(a) return a:index_select(1, at) * 2, a[at] + 1 end, x)
    check(function(a) local p = a:split(3, 2); return p[1] + p[2], p[3] end, rand(4, 8))
    check(function(a) return a:cumsum(2) + a:sort(2), a:argmax(2), (a:topk(3)) end, x)
  end)

  it("changes intermediate values in place", function()
    local x = rand(5, 6)
    check(function(a) local z = a * 2; z:add_(1):mul_(a); return z, z + 1 end, x)
    check(function(a) local z = a * 2; z[2] = 0; z[{{}, 3}] = a[{{}, 1}]; return z * 2 end, x)
    check(function(a)
      local z = lt.zeros(5, 6)
      z:add_(a)
      return z, lt.ones(3), lt.full({2}, 7)
    end, x)
    check(function(a)
      local z = a + 1
      local row, whole = z[1], z * 3
      z:add_(1)
      row:mul_(2)
      return z, whole, row
    end, x)
    check(function(a) local z = lt.empty(5, 6); z:copy_(a):fill_diagonal_(3); return z end, x)
    check(function(a)
      local z = lt.full_like(a, 3):double()
      z[2] = 5
      return a + z, z:float() * 2
    end, x)
  end)

  it("returns arguments, captured tensors and shared results as they are", function()
    local x, w = rand(3), rand(2)
    local c = lt.compile(function(a) local y = a + 1; return a, w, y, y, a + 1 end)
    for _ = 1, 2 do
      local a, b, y, z, other = c(x)
      assert.equal(x, a)
      assert.is_true(rawequal(x, a))
      assert.is_true(rawequal(w, b))
      assert.not_equal(y:data_ptr(), other:data_ptr())
      y:add_(1)
      same(y, z)
      same(x + 1, other)
    end
    assert.is_nil(c:reason())
    local v = lt.compile(function(a) return a:view(-1), a:t() end)(rand(2, 2))
    assert.equal(4, v:numel())
  end)

  it("makes new results for each call", function()
    local c = lt.compile(function(a) return a * 2 end)
    local x = rand(100)
    local first, second = c(x), c(x + 1)
    assert.not_equal(first:data_ptr(), second:data_ptr())
    same(x * 2, first)
  end)

  it("takes arguments of any shape, layout and kind", function()
    local function f(a, k) return (a * k + 1):relu():sum(-1) end
    local c = lt.compile(f)
    for _, x in ipairs {rand(3, 4), rand(4, 3):t(), rand(2, 3, 4), rand(3, 8)[{{}, {1, 4}}],
      rand(4), rand(0, 4), rand(3, 1):expand(3, 4), rand(3, 4):double()} do
      for _, k in ipairs {2, 2.5, 2} do same(f(x, k), c(x, k)) end
    end
    same(f(lt.tensor(2.0):view(1), 1), c(lt.tensor(2.0):view(1), 1))
    check(function(a) return a * 2 + 1 end, lt.tensor(3.0))
    check(function(a) return a * 2 + 1, a:sum() end, lt.empty(0))
    local g = lt.compile(function(a, b) return a - b end)
    local x, y = rand(3), rand(3)
    same(x - x, g(x, x))
    same(x - y, g(x, y))
    same(y - x, g(y, x))
  end)

  it("takes and returns tables", function()
    local c = lt.compile(function(t, k)
      return {sum = t.a + t.list[1] * k, parts = {t.a, t.list[2]}, name = "x"}, k
    end)
    for _ = 1, 2 do
      local t = {a = rand(3), list = {rand(3), rand(3)}}
      local r, k = c(t, 2)
      same(t.a + t.list[1] * 2, r.sum)
      same(t.list[2], r.parts[2])
      assert.equal("x", r.name)
      assert.equal(2, k)
    end
    assert.is_nil(c:reason())
    assert.equal(1, #c:plans())
  end)

  it("reads captured tensors at each call", function()
    local w, box = rand(3), {b = rand(3)}
    local c = lt.compile(function(a) return a * w + box.b end)
    local x = rand(3)
    same(x * w + box.b, c(x))
    w:mul_(2)
    same(x * w + box.b, c(x))
    w = rand(3)
    same(x * w + box.b, c(x))
    box.b = rand(3)
    same(x * w + box.b, c(x))
    box = {b = rand(3)}
    same(x * w + box.b, c(x))
    w = rand(1)
    same(x * w + box.b, c(x))
    local k = 2
    local d = lt.compile(function(a) return a * k end)
    same(x * 2, d(x))
    k = 3
    same(x * 3, d(x))
  end)

  it("distinguishes numbers of the same value", function()
    local x, n = rand(3), lt.arange(3)
    local c = lt.compile(function(a, k) return a / k end)
    for _, k in ipairs {0.0, -0.0, 2, 2.0, 0 / 0, 0 / 0} do same(x / k, c(x, k)) end
    assert.equal(5, #c:plans())
    local k = 2
    local d = lt.compile(function(a) return a * k end)
    for _, value in ipairs {2, 2.0, 2} do
      k = value
      same(n * k, d(n))
    end
    assert.equal(2, #d:plans())
    k = 0 / 0
    for _ = 1, 3 do same(n * k, d(n)) end
    assert.equal(3, #d:plans())
  end)

  it("creates tensors of a number at each call", function()
    local x = rand(3)
    local c = lt.compile(function(a) local s = lt.tensor(2.0); return a * s, s, s:view(1) end)
    for _ = 1, 3 do
      local y, s, v = c(x)
      same(x * 2, y)
      s:add_(1)
      v:add_(1)
    end
    assert.is_nil(c:reason())
  end)

  it("draws the numbers that plain calls draw", function()
    local f = function(a) return F.dropout(a, 0.5) + lt.rand(4) * lt.randn(4) end
    local c, x = lt.compile(f), rand(4)
    c(x)
    lt.manual_seed(3)
    local one, two = f(x), f(x)
    lt.manual_seed(3)
    same(one, c(x))
    same(two, c(x))
    assert.is_nil(c:reason())
  end)
end)

describe("the reason why lt.compile calls the function itself", function()
  before_each(function() lt.manual_seed(7) end)

  local function falls_back(reason, f, ...)
    local c = lt.compile(f)
    local expected = table.pack(f(...))
    for _ = 1, 2 do
      local got = table.pack(c(...))
      for i = 1, expected.n do
        if lt.is_tensor(expected[i]) then same(expected[i], got[i])
        else assert.same(expected[i], got[i]) end
      end
    end
    assert.truthy(c:reason():find(reason, 1, true), c:reason())
    assert.truthy(tostring(c):find(reason, 1, true))
    assert.equal(c:reason(), c:plans()[1].reason)
    local ok, message = pcall(lt.compile(f, {fullgraph = true}), ...)
    assert.is_false(ok)
    assert.truthy(tostring(message):find(reason, 1, true), message)
  end

  it("is control flow that depends on values", function()
    local x = rand(3)
    falls_back("reads the value", function(a) return a:sum():item() > 0 and a or -a end, x)
    falls_back("reads the values", function(a) return a:totable() end, x)
    falls_back("depends on the data", function(a) return a:nonzero() end, x)
    falls_back("depends on the data", function(a) return a[a:gt(0.5)] end, x)
    falls_back("reads the value", function(a) return a:sum() > lt.tensor(1.0) and a or a * 2 end, x)
  end)

  it("is a tensor made from data, a generator, another device, a hook", function()
    local x = rand(3)
    falls_back("creates a tensor from data", function(a) return a + lt.tensor{1, 2, 3} end, x)
    local g = lt.Generator and lt.Generator()
    if g then
      falls_back("Generator", function(a) return a * 0 + lt.rand{3, generator = g} * 0 end, x)
    end
    falls_back("\"meta\"", function(a) return a, lt.zeros{2, device = "meta"}.shape[1] end, x)
    local w = lt.rand{3, requires_grad = true}
    falls_back("adds a hook", function(a)
      local y = a * w
      y:register_hook(function() end)
      return y
    end, x)
  end)

  it("is a change of an argument", function()
    local c = lt.compile(function(a) return a:add_(1) end)
    local x = lt.zeros(3)
    same(lt.ones(3), c(x))
    same(lt.ones(3) * 2, c(x))
    assert.truthy(c:reason():find("changes an argument in place", 1, true))
    local function f(a) local s = lt.tensor(1.0); s:add_(1); return a * s end
    falls_back("changes a number in place", f, rand(3))
  end)

  it("is a change of a tensor that shares memory with another", function()
    local w, box = lt.zeros(4), {}
    local v = w:view(2, 2)
    local c = lt.compile(function(a)
      box[1] = (box[1] or 0) + 1
      w:add_(1)
      return a + v:sum()
    end)
    same(lt.ones(2) * 4, c(lt.zeros(2)))
    assert.equal(2, box[1])
    assert.truthy(c:reason():find("shares memory", 1, true))
    c = lt.compile(function(a) w:add_(1); return a:sum() end)
    same(w:sum() + 4, c(w))
    assert.truthy(c:reason():find("shares memory", 1, true))
  end)

  it("is a change of a variable that the function reads", function()
    local n = 0
    local c = lt.compile(function(a) n = n + 1; return a * 2 end)
    local x = rand(3)
    same(x * 2, c(x))
    assert.equal(2, n)
    same(x * 2, c(x))
    assert.equal(3, n)
    assert.truthy(c:reason():find("changes a variable", 1, true))
  end)

  it("is an argument on another device, or one without data", function()
    local x, y = rand(3), lt.ones{3, device = "meta"}
    for _, order in ipairs {{x, y}, {y, x}} do
      local c = lt.compile(function(a, b) return a * 2, b end)
      local a, b = c(order[1], order[2])
      assert.equal(order[1].device, a.device)
      assert.equal(order[2], b)
      assert.truthy(c:reason():find('"meta"', 1, true))
    end
    local c = lt.compile(function(a) return a * 2 + 1 end)
    assert.equal("meta", c(y).device)
    assert.truthy(c:reason():find("no data", 1, true))
    same(lt.ones(2) * 2, lt.ones(2) + 1)
  end)

  it("is a bool tensor on memory that is not bool, also of a later call", function()
    local net = {mask = lt.tensor{true, false, true}}
    local given = lt.compile(function(mask) return mask:to("int64") * 10 end)
    local captured = lt.compile(function(a) return a + net.mask:to("int64") end)
    local loose = lt.tensor({5, 0, 255}, {dtype = "uint8"}):view("bool")
    for _, mask in ipairs {net.mask, loose, net.mask} do
      net.mask = mask
      assert.same({10, 0, 10}, given(mask):totable())
      assert.same({2, 1, 2}, captured(lt.ones(3, {dtype = "int64"})):totable())
    end
    local kinds = given:plans()
    assert.equal(2, #kinds)
    assert.truthy(kinds[1].reason:find("not bool", 1, true))
    assert.equal(2, kinds[2].calls)
  end)

  it("is a tensor that is stored outside", function()
    local kept = {}
    local c = lt.compile(function(a) kept.last = a * 2; return a + 1 end)
    local x = rand(3)
    same(x + 1, c(x))
    same(x * 2, kept.last)
    assert.truthy(c:reason():find("stores a tensor", 1, true))
  end)

  it("is an error, which is raised as usual", function()
    local c = lt.compile(function(a, b) return a:matmul(b) end)
    for _ = 1, 2 do
      local ok, message = pcall(c, rand(3, 4), rand(3, 4))
      assert.is_false(ok)
      assert.truthy(tostring(message):find("matmul", 1, true))
    end
    same(lt.ones(2, 2) * 2, c(lt.ones(2, 2), lt.ones(2, 2)))
    assert.has_error(function() lt.compile(3) end)
  end)

  it("is an error in the name of the function that was called", function()
    local many = function(x, t) return F.multilabel_margin_loss(x, t) end
    local cases = {
      {function(x, t) return (lt.one_hot(t, 3):float() * x):sum() end, 3,
        "one_hot: expected an index from 1 to 3 for argument 'self', got 9 at index {3}"},
      {function(x, t) return F.multi_margin_loss(x, t) end, 3,
        "multi_margin_loss: expected an index from 1 to 3 for argument 'target', " ..
        "got 9 at index {3}"},
      {many, 1, "multilabel_margin_loss: expected an index from 1 to 3 for argument 'target', " ..
        "got 9 at index {1, 3}"},
    }
    for _, case in ipairs(cases) do
      local f, rows, expected = table.unpack(case)
      for _, grad in ipairs {false, true} do
        local target = lt.tensor({1, 2, 9}, "int64")
        local x = lt.randn {rows, 3, requires_grad = grad}
        if rows == 1 then target = target:view(1, 3) end
        for _, called in ipairs {f, lt.compile(f)} do
          local ok, message = pcall(called, x, target)
          assert.is_false(ok)
          assert.truthy(tostring(message):find(expected, 1, true), tostring(message))
        end
      end
    end
  end)

  it("is the number of plans", function()
    local f = function(a, k) return a * k end
    local c, x = lt.compile(f), rand(3)
    for k = 1, 40 do same(x * k, c(x, k)) end
    assert.is_true(#c:plans() <= 16)
    assert.truthy(c:reason():find("16 plans", 1, true))
    c:reset()
    same(x * 2, c(x, 2))
    assert.equal(1, #c:plans())
    assert.is_nil(c:reason())
  end)

  it("is autocast", function()
    local c, x = lt.compile(function(a) return a:matmul(a) end), rand(3, 3)
    lt.autocast("cpu", function() assert.equal("bfloat16", c(x).dtype) end)
    assert.equal("float32", c(x).dtype)
  end)
end)

describe("lt.compile with gradients", function()
  before_each(function() lt.manual_seed(7) end)

  -- Checks gradients of the arguments.
  local function gradients(f, ...)
    local c = lt.compile(f)
    local inputs = {}
    for i, x in ipairs {...} do inputs[i] = x:clone():requires_grad_() end
    local expected = lt.autograd.grad(f(table.unpack(inputs)):sum(), inputs, {allow_unused = true})
    for _ = 1, 3 do
      local got = lt.autograd.grad(c(table.unpack(inputs)):sum(), inputs, {allow_unused = true})
      for i in ipairs(inputs) do
        if expected[i] then same(expected[i], got[i]) else assert.falsy(got[i]) end
      end
    end
    assert.is_nil(c:reason())
    return c
  end

  it("computes cheap values again in place of saving them", function()
    local c = gradients(function(a)
      return 0.5 * a * (1 + ((a + 0.044715 * a * a * a) * 0.79788456):tanh())
    end, rand(40, 50))
    assert.equal(4 * 40 * 50, c:plans()[1].saved)
    assert.equal(2, c:plans()[1].steps)
    -- A value of a row is saved for all of its elements.
    c = gradients(function(a)
      local d = a - a:mean(-1, true)
      return d * d * 2 * a * d
    end, rand(40, 300))
    assert.equal(4 * 40, c:plans()[1].saved)
    gradients(function(a)
      local d = a - a:mean(-1, true)
      return d / ((d * d):mean(-1, true) + 1e-5):sqrt() * d * 3
    end, rand(40, 300))
    -- What a product, a result or a kernel reads is saved.
    local w = rand(6, 6)
    gradients(function(a, b)
      local m = a * b + 1
      return (m:matmul(w) * m):softmax(-1) * (m - a) + m:cumsum(2)
    end, rand(5, 6), rand(5, 6))
    -- Views, broadcasts, conditions, integers and conversions.
    gradients(function(a, b)
      local m = (a * b):t()
      local n = m[{{2, 4}}] * 3
      return (n * n * (n + b[1][1])):where(n:gt(0.5), n - 1) * n:double()
    end, rand(5, 6), rand(1, 6))
    gradients(function(a)
      local i = (a * 10):long() * 2 + 1
      return a * a * i * (a * i)
    end, rand(3, 70))
    gradients(function(a)
      local b = a * 3
      b:add_(a):mul_(2)
      return b * b * (b + 1) * a
    end, rand(4, 70))
  end)

  it("computes reductions of rows and what depends on them in one step", function()
    local x, w = rand(20, 70), rand(70)
    local c = gradients(function(a, b) return a * ((a * a):mean(-1, true) + 1e-6):rsqrt() * b end,
      x, w)
    assert.equal(3, c:plans()[1].steps) -- the forward pass, a's gradient, the sums of b's
    c = gradients(function(a)
      local d = a - a:mean(-1, true)
      return d / ((d * d):mean(-1, true) + 1e-5):sqrt() * 2
    end, x)
    assert.equal(2, c:plans()[1].steps)
    math.randomseed(8)
    for _ = 1, 40 do
      local f = random_program()
      gradients(function(a, b)
        local p, q, r = f(a, b)
        return p:sum() + q:sum() + r:sum() + (a * b):sum()
      end, rand(24, 24), rand(24, 24))
    end
  end)

  it("does not read an argument in the backward pass that it need not keep", function()
    local x = rand(4, 5):requires_grad_()
    local w = rand(4, 5):requires_grad_()
    local c = lt.compile(function(a, b) return ((a * 2) * b):sum() end)
    for _ = 1, 2 do
      local before = x:detach():clone()
      local loss = c(x, w)
      lt.no_grad(function() x:add_(1) end)
      same(before * 2, lt.autograd.grad(loss, {w})[1])
    end
  end)

  it("adds those of the parts of a value up in one piece of memory", function()
    local c = gradients(function(a)
      local p = (a * 2):split(16, 2)
      return p[1]:matmul(p[2]:t()):matmul(p[3])
    end, rand(64, 48))
    assert.is_true(c:plans()[1].memory < 3 * 64 * 48 * 4)
    gradients(function(a)
      local b = a:exp()
      return b[1] * b[2] + b[1] * b[{{}, 3}]:sum() + b:sum(1) + b:diagonal():sum()
    end, rand(5, 6))
  end)

  it("computes those of chains, reductions, products and views", function()
    local x, y = rand(5, 6), rand(5, 6)
    gradients(function(a, b) return ((a * 2 + b):tanh() * a - b):sigmoid() end, x, y)
    gradients(function(a, b) return a + b end, x, y)
    gradients(function(a) return a:view(-1) * 1, a end, x)
    gradients(function(a)
      local d = a - a:mean(-1, true)
      return d / ((d * d):mean(-1, true) + 1e-5):sqrt() * a
    end, x)
    gradients(function(a) return (a:softmax(-1) * a):log() end, x)
    gradients(function(a, b) return (a:matmul(b:t()) + 1):relu():t():contiguous() * 2 end, x, y)
    gradients(function(a, b) return lt.cat({a, b * 2}, 1):sum(1) * a[1] end, x, y)
    gradients(function(a, b) return a * b[{{}, {1, 1}}] + b:mean() end, x, y)
    gradients(function(a) local z = a * 2; z[1] = 0; z:mul_(3); return z * a end, x)
    gradients(function(a, b) local z = a * 2; z:mul_(b):mul_(a); return z * z:div_(b) end, x, y)
    gradients(function(a) return F.layer_norm(a, {6}) + F.gelu(a) end, x)
    gradients(function(a, b) return a:pow(3) * 2 + 0 * b:detach() end, x, y)
    gradients(function(a) return a:cumprod(2) * a:prod(1) end, x)
  end)

  it("computes those of captured tensors, and of a part of the results", function()
    local w, x = lt.randn{6, requires_grad = true}, rand(5, 6)
    local function f(a) local h = a * w; return h:tanh(), h:detach() * 2, h:gt(0.5) end
    local c = lt.compile(f)
    for _ = 1, 2 do
      w.grad = nil
      f(x):sum():backward()
      local expected = w.grad
      w.grad = nil
      local a, b, d = c(x)
      assert.is_false(b.requires_grad)
      assert.is_false(d.requires_grad)
      a:sum():backward()
      same(expected, w.grad)
    end
    local g = lt.compile(function(a) return a * w, (a * w * 2):sum() end)
    local _, second = g(x)
    w.grad = nil
    second:backward()
    same((x * 2):sum(1), w.grad)
  end)

  it("checks the values that it saves, and refuses second derivatives", function()
    local x = lt.randn{4, requires_grad = true}
    local w = rand(4)
    local c = lt.compile(function(a) return (a * w):exp() end)
    local y = c(x):sum()
    y:backward{retain_graph = true}
    y:backward()
    assert.has_error(function() y:backward() end)
    y = c(x):sum()
    w:add_(1)
    assert.has_error(function() y:backward() end)
    y = c(x):sum()
    assert.has_error(function() lt.autograd.grad(y, x, {create_graph = true}) end)
    lt.no_grad(function() assert.is_false(c(x).requires_grad) end)
    local first, second = c(x), c(x)
    local one = lt.autograd.grad(first:sum(), x)[1]
    same(one, lt.autograd.grad(second:sum(), x)[1])
  end)

  it("returns saved memory after each backward pass", function()
    local x = lt.randn{1000, 100, requires_grad = true}
    local c = lt.compile(function(a) return a:exp():tanh():sum() end)
    local function live()
      x.grad = nil
      collectgarbage()
      collectgarbage()
      return core.memory_live()
    end
    local before = live()
    for _ = 1, 3 do c(x):backward() end
    local saved, memory = c:plans()[1].saved, c:plans()[1].memory
    assert.is_true(saved >= 4 * x:numel())
    assert.is_true(live() - before < memory + saved / 2)
  end)

  it("frees what calls have saved", function()
    local x = lt.randn{100, requires_grad = true}
    local w = lt.randn{100, requires_grad = true}
    local c = lt.compile(function(a) return (a:exp() * w):tanh():sum(), a * w end)
    local function call(times)
      for i = 1, times do
        x.grad, w.grad = nil, nil
        local loss, y = c(x)
        if i % 3 == 0 then loss:backward() elseif i % 3 == 1 then (y:sum() + loss):backward() end
      end
      x.grad, w.grad = nil, nil
      collectgarbage()
      collectgarbage()
      return core.memory_live(), collectgarbage "count"
    end
    local live, heap = call(50)
    local live_after, heap_after = call(10000)
    assert.equal(live, live_after)
    assert.is_true(heap_after - heap < 200)
    assert.is_nil(c:reason())
  end)
end)

describe("lt.compile of a module", function()
  local function net_of()
    lt.manual_seed(5)
    return nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5),
      nn.Linear(16, 3))
  end

  it("is a module with the same parameters, names and modes", function()
    local net = net_of()
    local c = lt.compile(net)
    assert.is_true(nn.Module.is_module(c))
    assert.equal(net[1].weight, c[1].weight)
    local names = {}
    for name in c:named_parameters() do names[#names + 1] = name end
    assert.same({"1.weight", "1.bias", "2.weight", "2.bias", "5.weight", "5.bias"}, names)
    c:eval()
    assert.is_false(net.training)
    local x = lt.randn(4, 7)
    same(net(x), c(x))
    same(nn.Sequential(c, nn.ReLU())(x), net(x):relu())
    net[1].weight = nn.Parameter(lt.zeros(16, 7))
    same(net(x), c(x))
    net:double()
    same(net(x:double()), c(x:double()))
  end)

  it("trains to the same losses as the module", function()
    local x, t = lt.randn(5, 7), lt.tensor{1, 2, 3, 1, 2}
    local function train(wrap)
      local net = wrap(net_of())
      local opt = lt.optim.Adam(net:parameters(), {lr = 0.01})
      local losses = {}
      lt.manual_seed(9)
      for i = 1, 12 do
        opt:zero_grad()
        local loss = F.cross_entropy(net(x), t)
        loss:backward()
        opt:step()
        losses[i] = loss:item()
      end
      net:eval()
      losses[13] = net(x):sum():item()
      return losses, net
    end
    local expected = train(function(m) return m end)
    local got, net = train(lt.compile)
    for i, loss in ipairs(expected) do assert.is_true(math.abs(loss - got[i]) < 1e-4) end
    assert.is_nil(net:reason())
    assert.equal(2, #net:plans())
  end)

  it("converts floats to narrow integers as plain calls do", function()
    local x = lt.tensor{-5.5, 300, 3, -1000, 1e10, -1e10, lt.nan, lt.inf}
    for _, dtype in ipairs {"int8", "uint8", "int16"} do
      for _, from in ipairs {"float32", "float64", "bfloat16"} do
        local f = function(y) return y:to(dtype) * 1 end
        local c = lt.compile(f)
        assert.is_true(c(x:to(from)):equal(f(x:to(from))), dtype .. " from " .. from)
        assert.is_nil(c:reason())
      end
    end
  end)

  it("accepts the options of torch.compile", function()
    local net = net_of()
    assert.equal(net, lt.compile(net, {disable = true}))
    assert.truthy(lt.compile(net, {mode = "max-autotune", dynamic = true, fullgraph = true}))
  end)
end)
