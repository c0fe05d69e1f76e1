-- Operators: elementwise, broadcast, promoted as in PyTorch; comparison gives one boolean.
local lt = require "lutra"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

describe("arithmetic", function()
  local a, b = lt.tensor{7, -7, 3}, lt.tensor{2, 2, -2}

  it("is elementwise", function()
    assert.same({9, -5, 1}, (a + b):totable())
    assert.same({5, -9, 5}, (a - b):totable())
    assert.same({14, -14, -6}, (a * b):totable())
    assert.same({3.5, -3.5, -1.5}, (a / b):totable())
    assert.same({3, -4, -2}, (a // b):totable())
    assert.same({1, 1, -1}, (a % b):totable())
    assert.same({49, 49, 9}, (a ^ 2):totable())
    assert.same({-7, 7, -3}, (-a):totable())
  end)

  it("takes numbers on either side", function()
    assert.same({8, -6, 4}, (1 + a):totable())
    assert.same({-6, 8, -2}, (1 - a):totable())
    assert.same({1, -1}, (7 // lt.tensor{7, -7}):totable())
    assert.same({0.5, 0.25}, (1 / lt.tensor{2, 4}):totable())
    assert.same({4, 8}, (2 ^ lt.tensor{2, 3}):totable())
    assert.same({1, 0}, (10 % lt.tensor{3, 5}):totable())
  end)

  it("promotes: a Lua integer is a Python int, a Lua float a Python float", function()
    local i32, f16 = lt.ones{1, dtype = "int32"}, lt.ones{1, dtype = "float16"}
    assert.equal("int32", (i32 + 1).dtype)
    assert.equal("float32", (i32 + 1.0).dtype)
    assert.equal("float16", (f16 + 1.5).dtype)
    assert.equal("float16", (i32 + f16).dtype)
    assert.equal("float32", (i32 / i32).dtype)
    assert.equal("int64", (lt.tensor{true} + 1).dtype)
    assert.equal("float64", (lt.ones{1, dtype = "float64"} + lt.tensor{1}).dtype)
    assert.equal("int32", (i32 + lt.tensor(5)).dtype) -- 0 dims count only by category
  end)

  it("broadcasts", function()
    assert.same({{11, 21}, {12, 22}}, (lt.tensor{{1}, {2}} + lt.tensor{10, 20}):totable())
    assert.matches("add: ", fails(function() return lt.ones(2) + lt.ones(3) end), 1, true)
    assert.matches("{2}", fails(function() return lt.ones(2) + lt.ones(3) end), 1, true)
  end)

  it("broadcasts whichever operand is smaller", function()
    local m, row, column, one = lt.tensor{{1, 2, 3}, {4, 5, 6}}, lt.tensor{10, 20, 30},
      lt.tensor{{100}, {200}}, lt.tensor{7}
    assert.same({{-9, -18, -27}, {-6, -15, -24}}, (m - row):totable())
    assert.same({{9, 18, 27}, {6, 15, 24}}, (row - m):totable())
    assert.same({{99, 98, 97}, {196, 195, 194}}, (column - m):totable())
    assert.same({{90, 80, 70}, {190, 180, 170}}, (column - row):totable())
    assert.same({3, 13, 23}, (row - one[1]):totable())
    assert.same({{-5, -4, -3}, {-2, -1, 0}}, (m - lt.tensor{6}):totable())
    assert.same({{{3}}}, (lt.tensor(10):reshape(1, 1, 1) - one):totable())
    assert.same({{2001, 4002, 6003}, {4004, 8005, 12006}},
      lt.addcmul(m, row, column, {value = 2}):totable())
    assert.same({{false, true, true}, {true, true, true}}, m:gt(lt.tensor{1, 1, 1}):totable())
    for _, pair in ipairs{{lt.ones(0, 3), lt.ones(3)}, {lt.ones(3), lt.ones(0, 3)}} do
      assert.same({0, 3}, {table.unpack((pair[1] + pair[2]).shape)})
    end
    assert.same({0}, {table.unpack((lt.ones(1) * lt.ones(0)).shape)})
  end)

  it("broadcasts in place to the shape of self only", function()
    local m, row = lt.tensor{{1, 2, 3}, {4, 5, 6}}, lt.tensor{10, 20, 30}
    assert.same({{11, 22, 33}, {14, 25, 36}}, m:add_(row):totable())
    assert.same({{22, 44, 66}, {28, 50, 72}}, m:mul_(lt.tensor(2)):totable())
    assert.matches("add_: cannot store the result in self: the result has the shape {2, 3}, self "
      .. "has {3}", fails(function() row:add_(m) end), 1, true)
    assert.matches("has the shape {1, 3}, self has {3}",
      fails(function() row:add_(lt.ones(1, 3)) end), 1, true)
    assert.same({10, 20, 30}, row:totable())
    assert.same({{0, 0, 0}, {6, 6, 6}}, m:sub_(m[1]):totable())
  end)

  it("wraps around and survives division by zero where integers do", function()
    assert.equal(math.mininteger, (lt.tensor(math.maxinteger) + 1):item())
    assert.equal(math.mininteger, (lt.tensor(math.mininteger) // -1):item())
    assert.equal(math.huge, (lt.tensor{1.0} / 0):item())
    local nan = (lt.tensor{0.0} / 0):item()
    assert.is_true(nan ~= nan)
  end)

  it("is recorded for gradients", function()
    local x = lt.tensor({2.0, 3.0}, {requires_grad = true});
    ((x * x + 2 * x - x / 2) ^ 2 / 4 - (-x)):sum():backward()
    -- f = (x^2 + 1.5 x)^2 / 4 + x;  f' = (x^2 + 1.5 x)(2 x + 1.5) / 2 + 1
    assert.same({7 * 5.5 / 2 + 1, 13.5 * 7.5 / 2 + 1}, x.grad:totable())
  end)
end)

describe("logic", function()
  it("is bitwise on integers and logical on bools", function()
    local a, b = lt.tensor{12, 10}, lt.tensor{10, 6}
    assert.same({8, 2}, (a & b):totable())
    assert.same({14, 14}, (a | b):totable())
    assert.same({6, 12}, (a ~ b):totable())
    assert.same({-13, -11}, (~a):totable())
    assert.same({24, 20}, (a << 1):totable())
    assert.same({6, 5}, (a >> 1):totable())
    assert.same({8, 8}, (a & 8):totable())
    local t, f = lt.tensor{true, true}, lt.tensor{true, false}
    assert.same({true, false}, (t & f):totable())
    assert.same({true, true}, (t | f):totable())
    assert.same({false, true}, (t ~ f):totable())
    assert.same({false, true}, (~f):totable())
  end)

  it("refuses floats", function()
    assert.matches("bitwise_and: ", fails(function() return lt.ones(1) & lt.ones(1) end), 1, true)
  end)
end)

describe("comparison", function()
  local a, b = lt.tensor(1), lt.tensor(2.0)

  it("of single elements is a boolean", function()
    assert.is_true(a < b)
    assert.is_true(a <= b)
    assert.is_false(a > b)
    assert.is_false(b <= a)
    assert.is_true(a < 2)
    assert.is_true(0 < a)
    assert.is_true(lt.tensor{{3}} >= 3)
  end)

  it("of more is an error that names the method", function()
    assert.matches("lt: cannot compare with <: it gives one boolean in Lua, a tensor of shape "
      .. "{2} has 2 elements",
      fails(function() return lt.ones(2) < 1 end), 1, true)
    assert.matches("write a:lt(b) for a < b, a:gt(b) for a > b",
      fails(function() return lt.ones(2) > 1 end), 1, true) -- Lua calls 1 < lt.ones(2)
    assert.matches("write a:le(b) for a <= b, a:ge(b) for a >= b",
      fails(function() return lt.ones(2) <= lt.ones(2) end), 1, true)
    assert.matches("lt: expected a tensor or a number for argument 'other', got the string \"a\"",
      fails(function() return lt.ones(1) < "a" end), 1, true)
  end)

  it("by == is identity, by methods elementwise", function()
    local x = lt.ones(2)
    local y = x
    assert.is_true(x == y)
    assert.is_false(x == lt.ones(2))
    assert.is_false(x == 1)
    assert.same({true, true}, x:eq(lt.ones(2)):totable())
    assert.same({true, false}, lt.tensor{1, 2}:lt(2):totable())
    assert.same({false, true}, lt.tensor{1, 2}:ge(2):totable())
    assert.same({false, true}, lt.tensor{true, false}:ne(true):totable())
  end)
end)

describe("length", function()
  it("is the first dimension", function()
    assert.equal(2, #lt.zeros(2, 3))
    assert.equal(0, #lt.tensor{})
  end)
end)

describe("rows of views", function()
  it("of any length are combined element by element", function()
    for n = 15, 131 do
      local numbers, expected = lt.arange(1, 8 * (n + 1)):view(8, n + 1):fmod(11), {}
      for r = 1, 8 do
        expected[r] = {}
        for k = 1, n do
          local number = (r - 1) * (n + 1) + k
          expected[r][k] = number % 11 * ((number + 1) % 11)
        end
      end
      for _, dtype in ipairs{"float32", "float64", "int16", "uint8"} do
        local x = numbers:to(dtype)
        assert.same(expected, (x[{{}, {2, -1}}] * x[{{}, {1, -2}}]):long():totable())
      end
    end
  end)
end)
