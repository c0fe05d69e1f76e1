-- Integers of 8 and 16 bits: every value has the result that int32 has, wrapped to the dtype.
local lt = require "lutra"

local RANGES = {uint8 = {0, 255}, int8 = {-128, 127}, int16 = {-32768, 32767}}
local ONE = {"neg", "abs", "sign", "sgn", "square", "relu", "floor", "ceil", "round", "trunc",
  "bitwise_not", "logical_not", "isnan", "isinf", "isposinf", "isneginf", "isreal", "isfinite",
  "signbit"}
local TWO = {"add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "eq", "lt", "bitwise_xor",
  "bitwise_left_shift", "bitwise_right_shift"}
local BOUNDS = {{-1, 1}, {0, 6}, {-300, 300}, {300, 400}, {-400, -300}, {-40000, 40000}, {2, -1},
  {-(1 << 40), 1 << 40}, {1 << 40, 1 << 41}, {-(1 << 41), -(1 << 40)}}

for dtype, range in pairs(RANGES) do
  describe(dtype, function()
    local x = lt.arange(range[1], range[2]):to(dtype)
    local y = x:flip(1)
    local wide, other = x:int(), y:int()
    local function same(name, got, want)
      assert.is_true(lt.equal(got, want:to(got.dtype)), name)
    end

    it("has the results of int32", function()
      for _, name in ipairs(ONE) do same(name, x[name](x), wide[name](wide)) end
      for _, name in ipairs(TWO) do same(name, x[name](x, y), wide[name](wide, other)) end
      for _, factor in ipairs {3, -300} do
        same("addcmul", x:addcmul(y, x, factor), wide:addcmul(other, wide, factor))
      end
    end)

    it("wraps in conversions, of any layout", function()
      local both = lt.stack({x, y}, 2)
      for to, bounds in pairs(RANGES) do
        local size, expected = bounds[2] - bounds[1] + 1, {}
        for i, v in ipairs(x:tolist()) do expected[i] = (v - bounds[1]) % size + bounds[1] end
        assert.same(expected, x:to(to):tolist())
        assert.same(expected, both:to(to):select(2, 1):tolist())
        assert.same(expected, both:select(2, 1):to(to):tolist())
        assert.same(expected, both:t():to(to)[1]:tolist())
        assert.same({table.unpack(expected, 3, 39)}, x:narrow(1, 3, 37):to(to):tolist())
        assert.same({expected[4], expected[7], expected[10]}, x["4:10:3"]:to(to):tolist())
        assert.same({expected[7], expected[7]}, x["7:7"]:expand(2):to(to):tolist())
        local column = lt.zeros{x:numel(), 2, dtype = to}:select(2, 2)
        assert.same(expected, column:copy_(x):tolist())
        assert.equal(expected[5], x[5]:to(to):item())
      end
    end)

    it("is shifted by any number of bits", function()
      for _, count in ipairs {-300, -1, 0, 1, 7, 8, 9, 15, 16, 40, 300} do
        for _, name in ipairs {"bitwise_left_shift", "bitwise_right_shift"} do
          same(name .. count, x[name](x, count), wide[name](wide, count))
        end
      end
    end)

    it("is compared with a threshold that it cannot contain", function()
      local f = lt.nn.functional.threshold
      local long = x:long()
      for _, b in ipairs {{5, 3}, {-1, 7}, {-129, 1}, {300, 2}, {40000, 9}, {0, 127}, {119, 0},
        {1 << 40, 5}, {-(1 << 40), 5}, {(1 << 32) + 1, 3}, {2.0 ^ 40, 1}, {-0.5, 7}, {2.5, 1}} do
        local label = ("threshold %g"):format(b[1])
        same(label, f(x, b[1], b[2]), f(long, b[1], b[2]))
        same(label, lt.nn.functional.threshold_(x:clone(), b[1], b[2]), f(long, b[1], b[2]))
      end
    end)

    it("is compared with a threshold between two integers", function()
      local z = lt.tensor({0, 1, 2, 3}, {dtype = dtype})
      local f = lt.nn.functional.threshold
      assert.same({0, 1, 2, 3}, f(z, -0.5, 7):tolist())
      assert.same({7, 7, 7, 3}, f(z, 2.5, 7):tolist())
    end)

    it("is not replaced by a value that it cannot contain", function()
      for _, value in ipairs {range[1] - 1, range[2] + 1, 1 << 40, 1e300} do
        local ok, message = pcall(lt.nn.functional.threshold, x, 0, value)
        assert.is_false(ok, ("value %g"):format(value))
        local expected = ('threshold: cannot convert the number %s to "%s": it does not fit')
          :format(value, dtype)
        assert.matches(expected, message, 1, true)
      end
    end)

    it("is clamped to bounds of which one contains some of its values", function()
      for _, b in ipairs(BOUNDS) do
        local label = ("%d to %d"):format(b[1], b[2])
        local f = lt.nn.functional.hardtanh
        if b[1] <= range[2] and b[2] >= range[1] then
          local long = x:long()
          same(label, x:clamp(b[1], b[2]), long:clamp(b[1], b[2]))
          same(label, x:clamp{min = b[1]}, long:clamp{min = b[1]})
          same(label, x:clamp{max = b[2]}, long:clamp{max = b[2]})
          same(label, x:clone():clamp_(b[1], b[2]), long:clamp(b[1], b[2]))
          if b[1] <= b[2] then same(label, f(x, b[1], b[2]), f(long, b[1], b[2])) end
        else
          local ok, message = pcall(x.clamp, x, b[1], b[2])
          local name, value = "min", b[1]
          if b[1] <= range[2] then name, value = "max", b[2] end
          assert.is_false(ok)
          local expected = ('expected a value in the range of "%s" for argument \'%s\', got %d')
            :format(dtype, name, value)
          assert.matches("clamp: " .. expected, message, 1, true)
          assert.is_false(pcall(f, x, b[1], b[2]))
        end
      end
    end)
  end)
end
