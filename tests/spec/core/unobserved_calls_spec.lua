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
