-- Integers and numbers that their dtype cannot hold are compared by value.
local lt = require "lutra"

describe("comparisons of integers with numbers beyond their dtype", function()
  local COMPARE = {
    eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
    lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
    gt = function(a, b) return a > b end, ge = function(a, b) return a >= b end,
    logical_and = function(a, b) return a ~= 0 and b ~= 0 end,
    logical_or = function(a, b) return a ~= 0 or b ~= 0 end,
  }
  local least, largest = -(1 << 31), (1 << 31) - 1
  local VALUES = {uint8 = {0, 1, 255}, int8 = {-128, 0, 1, 127}, int16 = {-32768, 0, 1, 32767},
    int32 = {least, -1, 0, 1, largest}, int64 = {math.mininteger, 0, 1, math.maxinteger}}
  local NUMBERS = {300, -300, 1 << 31, largest, least, least - 1, (1 << 32) + 1, 1 << 40,
    -(1 << 40), math.maxinteger, math.mininteger}

  -- Compares every op with Lua's own comparison of integers. call(op, x, y, n): lt's op.
  local function check(call)
    for dtype, list in pairs(VALUES) do
      local x = lt.tensor(list, {dtype = dtype})
      for name, compare in pairs(COMPARE) do
        for _, n in ipairs(NUMBERS) do
          local expected = {}
          for i, v in ipairs(list) do expected[i] = compare(v, n) end
          assert.same(expected, call(name, x, n):totable(),
            ("%s of %s with %d"):format(name, dtype, n))
        end
      end
    end
  end

  it("compare values", function()
    check(function(name, x, n) return lt[name](x, n) end)
    check(function(name, x, n) return x[name](x, lt.tensor(n)) end) -- of int64
  end)

  it("compare values in place, and of strided tensors", function()
    check(function(name, x, n)
      local y = x:clone()
      return y[name .. "_"](y, n):bool()
    end)
    check(function(name, x, n) return lt[name](lt.stack({x, x}, 2):select(2, 1), n) end)
  end)

  it("compare values in compiled functions", function()
    local compiled = {}
    for name in pairs(COMPARE) do
      compiled[name] = lt.compile(function(x, y) return x[name](x + 0, y) end)
    end
    check(function(name, x, n)
      compiled[name](x, n)
      return compiled[name](x, n)
    end)
  end)
end)
