-- Composites leave out calls that nobody observes. Their results are the same when autograd or a
-- profile does.

local lt = require "lutra"

local function value_of(x) return x.ndim == 0 and x:item() or x:totable() end

-- Fails unless f gives the expected number or table without observers, with tensors that require
-- grad, and in a profile.
local function gives(want, f, ...)
  local given, tracked = {...}, {}
  for i, x in ipairs(given) do
    tracked[i] = lt.is_tensor(x) and x:detach():requires_grad_() or x
  end
  assert.same(want, value_of(f(table.unpack(given))))
  local result = f(table.unpack(tracked))
  assert.same(want, value_of(result))
  local _, profiled = lt.profiler.profile(function() return f(table.unpack(given)) end)
  assert.same(want, value_of(profiled))
end

describe("a call that nobody observes", function()
  local m = lt.arange(1, 24):float():view(4, 6)

  it("multiplies vectors with any strides", function()
    gives(91.0, lt.dot, m[1], m[1])
    gives(1.0 * 19 + 7 * 20 + 13 * 21 + 19 * 22, lt.dot, m:t()[1], m[4]:narrow(1, 1, 4))
    gives(30.0, lt.dot, lt.full({1}, 2.0):expand(5), lt.tensor{1.0, 2, 3, 4, 5})
    gives(0.0, lt.dot, m[1]:narrow(1, 1, 0), m[1]:narrow(1, 1, 0))
    gives({91.0, 217.0, 343.0, 469.0}, lt.mv, m, m[1])
    local sums = {}
    for j = 1, 6 do
      sums[j] = 0.0
      for i = 1, 4 do sums[j] = sums[j] + (6 * i - 6 + j) * (6 * i - 3) end
    end
    gives(sums, lt.mv, m:t(), m:t()[3])
    gives({0.0, 0.0}, lt.mv, lt.ones(2, 0), lt.ones(0))
  end)

  it("multiplies vectors of any dtype, also under autocast", function()
    for _, dtype in ipairs{"float64", "float16", "bfloat16", "int64", "int32", "uint8",
      "complex64"} do
      local a, b = lt.tensor{1, 2, 3}:to(dtype), lt.tensor({4, 1, 2}):to(dtype)
      local sum = lt.dot(a, b)
      assert.equal(dtype, sum.dtype)
      assert.equal("{}", tostring(sum.shape))
      assert.is_true(lt.equal(sum, lt.tensor(12):to(dtype)), dtype)
      local rows = lt.stack{a, b}:mv(b)
      assert.equal(dtype, rows.dtype)
      assert.equal("{2}", tostring(rows.shape))
      assert.is_true(lt.equal(rows, lt.tensor({12, 21}):to(dtype)), dtype)
    end
    assert.is_false(pcall(lt.dot, lt.tensor{true}, lt.tensor{true}))
    local out = lt.zeros(4)
    assert.equal(out, lt.mv(m, m[1], {out = out}))
    assert.same({91.0, 217.0, 343.0, 469.0}, out:totable())
    lt.autocast("cpu", {}, function()
      assert.equal("bfloat16", lt.matmul(m, m[1]).dtype)
      assert.equal("float32", lt.dot(m[1], m[1]).dtype)
      assert.equal(91, lt.dot(m[1], m[1]):item())
    end)
  end)

  it("draws the same random numbers", function()
    local function drawn(f, ...)
      lt.manual_seed(7)
      local x = f(...)
      return {x, lt.rand(3)} -- the generator is at the same place afterwards
    end
    local function same(a, b) return lt.equal(a[1], b[1]) and lt.equal(a[2], b[2]) end
    for _, dtype in ipairs{"float32", "float64", "float16", "bfloat16", "complex64"} do
      for _, n in ipairs{0, 1, 2, 5, 1025} do
        local options = {dtype = dtype}
        for _, f in ipairs{lt.rand, lt.randn} do
          local alone = drawn(f, n, options)
          local _, profiled = lt.profiler.profile(function() return drawn(f, n, options) end)
          assert.is_true(same(alone, profiled), dtype)
          assert.equal(dtype, alone[1].dtype)
        end
        if dtype ~= "complex64" then
          local function uniform() return lt.empty(n, options):uniform_() end
          local function normal() return lt.empty(n, options):normal_() end
          assert.is_true(same(drawn(lt.rand, n, options), drawn(uniform)), dtype)
          assert.is_true(same(drawn(lt.randn, n, options), drawn(normal)), dtype)
        end
      end
    end
    local a, b = lt.Generator():manual_seed(3), lt.Generator():manual_seed(3)
    assert.is_true(lt.equal(lt.randn({5}, {generator = a}), lt.empty(5):normal_{generator = b}))
    assert.is_true(lt.equal(lt.rand({5}, {generator = a}), lt.empty(5):uniform_{generator = b}))
    assert.is_true(lt.randn{2, requires_grad = true}.requires_grad)
    local ok, message = pcall(lt.normal, 0, -1, {2})
    assert.is_false(ok)
    assert.truthy(tostring(message):find("'std'", 1, true))
    assert.is_false(pcall(lt.randn, -1))
    assert.is_false(pcall(lt.randn, {2}, {dtype = "int64"}))
  end)

  it("converts dtypes, and keeps the order in memory", function()
    local function numbers(x)
      local list = {}
      for i = 1, x:size(1) do
        for j = 1, x:size(2) do list[#list + 1] = tostring(x[i][j]:item() + 0.0) end
      end
      return table.concat(list, " ")
    end
    local layouts = {m, m:t(), m:narrow(2, 2, 3), m[{":", "1:6:2"}], m:narrow(1, 1, 0),
      m[1]:expand(3, 6)}
    for _, x in ipairs(layouts) do
      for _, dtype in ipairs{"float64", "float16", "int64", "uint8", "float32", "complex64"} do
        local alone = x:to{dtype = dtype, copy = true}
        local _, profiled = lt.profiler.profile(function()
          return x:to{dtype = dtype, copy = true}
        end)
        assert.equal(dtype, alone.dtype)
        assert.same(profiled:stride(), alone:stride())
        assert.equal(profiled.shape, alone.shape)
        if dtype ~= "complex64" then assert.equal(numbers(x), numbers(alone), dtype) end
        assert.is_true(lt.equal(profiled, alone))
        assert.not_equal(x:data_ptr(), x:numel() > 0 and alone:data_ptr() or nil)
      end
    end
    assert.equal(1, m:t():double():stride(1))
    assert.same({true, false}, lt.tensor{2.5, 0}:to("bool"):totable())
    assert.equal(m, m:to("float32"))
    local x = lt.tensor{1.0, 2}:requires_grad_()
    x:double():sum():backward()
    assert.same({1.0, 1.0}, x.grad:totable())
  end)

  it("stacks tensors with any strides", function()
    local function stack(dim) return function(...) return lt.stack({...}, dim) end end
    gives({{1.0, 7.0}, {2.0, 8.0}}, stack(1), m:narrow(1, 1, 2):t()[1], m:narrow(1, 1, 2):t()[2])
    gives({{1.0, 2.0}, {7.0, 8.0}}, stack(2), m:narrow(1, 1, 2):t()[1], m:narrow(1, 1, 2):t()[2])
    gives({{1.0, 3.0}, {2.0, 4.0}}, stack(-1), m[1]:narrow(1, 1, 2), m[1]:narrow(1, 3, 2))
    gives({1.0, 2.0}, stack(1), m[1][1], m[1][2])
    gives({{{1.0}, {2.0}}, {{7.0}, {8.0}}}, stack(3), m:narrow(1, 1, 2):narrow(2, 1, 2))
  end)

  it("differentiates what it would have left out", function()
    local x, y = lt.tensor{1.0, 2, 3}:requires_grad_(), lt.tensor{4.0, 5, 6}:requires_grad_()
    lt.dot(x, y):backward()
    lt.stack{x, y}:select(1, 1):sum():backward()
    assert.same({5.0, 6.0, 7.0}, x.grad:totable())
    assert.same({1.0, 2.0, 3.0}, y.grad:totable())
  end)

  it("creates tensors of one value in every dtype", function()
    for _, dtype in ipairs{"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16",
      "int8", "uint8", "bool", "complex64", "complex128"} do
      local zeros = lt.zeros(2, 3, {dtype = dtype})
      local ones = lt.ones_like(lt.zeros(3, {dtype = dtype}))
      assert.equal(dtype, zeros.dtype)
      assert.equal(dtype, ones.dtype)
      assert.is_true(lt.equal(zeros, lt.tensor({{0, 0, 0}, {0, 0, 0}}):to(dtype)), dtype)
      assert.is_true(lt.equal(ones, lt.tensor({1, 1, 1}):to(dtype)), dtype)
    end
    gives({2.5, 2.5}, function() return lt.full({2}, 2.5) end)
    gives({}, function() return lt.zeros(0) end)
    gives(7, function() return lt.full({}, 7) end)
    gives({-3, -3}, function() return lt.full({2}, -3, {dtype = "int8"}) end)
    assert.is_true(lt.zeros{2, requires_grad = true}.requires_grad)
    assert.is_false(pcall(lt.zeros, -1))
    assert.is_false(pcall(lt.zeros, {2}, {dtype = "int64", requires_grad = true}))
  end)
end)
