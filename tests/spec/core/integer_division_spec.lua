--- Division of integers by 0: an error, as in PyTorch, before anything is written. On accelerators
-- a number that is 0 is refused at once, and a tensor's 0 is found by the device.

local lt = require "lutra"
local devices = require "device_support"

local INTEGERS = {"uint8", "int8", "int16", "int32", "int64"}

-- Every way to divide integers, out of place and in place.
local WAYS = {
  floor_divide = {function(x, y) return x // y end, function(x, y) return x:floor_divide_(y) end},
  remainder = {function(x, y) return x % y end, function(x, y) return x:remainder_(y) end},
  fmod = {lt.fmod, function(x, y) return x:fmod_(y) end},
  div = {function(x, y) return lt.div(x, y, "floor") end,
    function(x, y) return x:div_(y, "trunc") end},
}

local function ints(values, dtype, device)
  return lt.tensor(values, {dtype = dtype, device = device})
end

-- The error of f(...), which names the op and contains each text.
local function fails(name, texts, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, name .. ": no error was raised")
  for _, text in ipairs {name .. ": cannot divide integers by zero: argument 'other' is ",
    table.unpack(texts)} do
    assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
  end
end

-- The op's name in messages, in place or not.
local function each(f)
  for name, way in pairs(WAYS) do
    f(name, way[1])
    f(name .. "_", way[2])
  end
end

devices.elsewhere("core/integer_division", _ENV) -- and here
local accelerated = os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU"

describe("on the CPU", function()
  if accelerated then return end

  it("a divisor with a 0 is refused, for every integer dtype", function()
    for _, dtype in ipairs(INTEGERS) do
      each(function(name, divide)
        local x = ints({7, 8, 9}, dtype)
        fails(name, {"is 0 at index {2}", "hint: "}, divide, x, ints({1, 0, 2}, dtype))
        fails(name, {"is 0\n"}, divide, x, 0)
        fails(name, {"is 0\n"}, divide, x, ints(0, dtype))
        fails(name, {"is 0 at index {1}"}, divide, x, ints({0}, dtype))
        fails(name, {"is 0 at index {3}"}, divide, x, lt.tensor{true, true, false})
        assert.same({7, 8, 9}, x:totable())
      end)
    end
  end)

  it("the number 0 and false, from both sides", function()
    for name, way in pairs(WAYS) do
      fails(name, {"is 0\n"}, way[1], ints({7}, "int64"), false)
      fails(name, {"is 0 at index {2}"}, way[1], 7, ints({1, 0}, "int64"))
      fails(name, {"is 0"}, way[1], 7, ints(0, "int64"))
    end
    fails("remainder", {"is 0"}, lt.remainder, 7, 0)
  end)

  it("broadcast, transposed, sliced and expanded divisors", function()
    local x = lt.arange(12):view(3, 4)
    local columns = ints({{1, 2, 3}, {4, 0, 0}, {5, 6, 7}, {0, 8, 9}}, "int64")
    local every_other = ints({5, 0, 5, 0, 5, 0, 0, 0}, "int64")
    each(function(name, divide)
      fails(name, {"is 0 at index {3}"}, divide, x, ints({1, 2, 0, 4}, "int64"))
      fails(name, {"is 0 at index {2, 1}"}, divide, x, ints({{1}, {0}, {3}}, "int64"))
      fails(name, {"is 0 at index {1, 4}"}, divide, x, columns:t())
      fails(name, {"is 0 at index {4}"}, divide, x, every_other["::2"])
      fails(name, {"is 0 at index {1, 1}"}, divide, x, ints({0}, "int64"):expand(3, 4))
      fails(name, {"is 0 at index {1, 3}"}, divide, x, ints({1, 2, 0, 4}, "int64"):expand(3, 4))
      assert.same(lt.arange(12):totable(), x:flatten():totable())
    end)
  end)

  it("the first of many zeros, for any number of threads", function()
    local threads = lt.get_num_threads()
    local x = lt.arange(300000)
    local y = lt.ones{300000, dtype = "int64"}
    for _, at in ipairs {300000, 199999, 150001, 1025, 1024, 2} do
      y[at] = 0
      local single = lt.ones{300000, dtype = "int64"}
      single[at] = 0
      for _, n in ipairs {1, 4} do
        lt.set_num_threads(n)
        fails("floor_divide", {"at index {" .. at .. "}"}, function() return x // y end)
        local place = ("at index {%d, %d}"):format((at - 1) % 500 + 1, (at - 1) // 500 + 1)
        fails("remainder", {place},
          function() return x:view(500, 600) % single:view(600, 500):t() end)
      end
    end
    lt.set_num_threads(threads)
    assert.equal(45000150000, x:sum():item())
  end)

  it("in place on a view, the rest of the tensor stays as it was", function()
    local x = lt.arange(6):view(2, 3)
    local column = x[{{}, 2}]
    fails("floor_divide_", {"cannot divide integers by zero: argument 'other' is 0 at index {2}"},
      column.floor_divide_, column, lt.tensor{1, 0})
    fails("remainder_", {"cannot divide integers by zero: argument 'other' is 0 at index {1}"},
      column.remainder_, column, column - column)
    assert.same({{1, 2, 3}, {4, 5, 6}}, x:totable())
    fails("floor_divide_", {"cannot divide integers by zero: argument 'other' is 0 at index {1}"},
      function()
      local y = lt.tensor{0, 1, 2, 3}
      y["1:3"]:floor_divide_(y["1:3"])
    end)
  end)

  it("what is 0 only after the conversion to the result's dtype is named", function()
    local x = ints({7, 8}, "int32")
    fails("floor_divide", {'is 4294967296, which is 0 in "int32"'},
      function() return x // (1 << 32) end)
    fails("remainder", {'is 4294967296, which is 0 in "int32"'},
      function() return x % ints(1 << 32, "int64") end)
    assert.same({0, 0}, (x:long() // (1 << 32)):totable())
  end)

  it("lt.elementwise", function()
    local x, y = lt.tensor{7, 8}, lt.tensor{1, 0}
    fails("", {"cannot divide integers by zero: argument 'other' is 0 at index {2}"},
      lt.elementwise "x // y", x, y)
    fails("", {"cannot divide integers by zero: argument 'other' is 0 at index {2}"},
      lt.elementwise "x % y", x, y)
  end)

  it("bool stays refused", function()
    local _, message = pcall(function() return lt.tensor{true} // lt.tensor{false} end)
    assert.is_truthy(message:find("expected a number dtype, got \"bool\"", 1, true))
  end)
end)

describe("what is not a division of integers by 0", function()
  local device = accelerated and "cuda" or "cpu"

  it("has no elements", function()
    local none = lt.empty{0, dtype = "int64", device = device}
    each(function(_, divide)
      assert.equal(0, divide(none, 0):numel())
      assert.equal(0, divide(none, ints(0, "int64", device)):numel())
    end)
    assert.equal(0, (lt.empty{0, 3, dtype = "int64", device = device}
      // ints({0, 0, 0}, "int64", device)):numel())
  end)

  it("is done in floats", function()
    local inf = math.huge
    assert.same({inf, -inf}, (lt.tensor{1.0, -1.0, device = device} // 0):totable())
    assert.same({inf}, (ints({4}, "int64", device) // 0.0):totable())
    assert.same({inf}, (ints({4}, "int64", device) / 0):totable())
    assert.same({inf}, (lt.tensor{1.5, device = device} // ints({0}, "int64", device)):totable())
    assert.is_truthy((lt.tensor{1.0, device = device} % 0):isnan():item())
    assert.is_truthy(lt.fmod(lt.tensor{1.0, device = device}, 0):isnan():item())
  end)

  it("wraps around for the least integer by -1", function()
    local least = {int8 = -128, int16 = -32768, int32 = -(1 << 31), int64 = math.mininteger}
    for dtype, value in pairs(least) do
      for _, minus in ipairs {-1, ints({-1, -1}, dtype, device)} do
        local x = ints({value, 7}, dtype, device)
        assert.same({value, -7}, (x // minus):totable())
        assert.same({value, -7}, x:div(minus, "trunc"):totable())
        assert.same({0, 0}, (x % minus):totable())
        assert.same({0, 0}, x:fmod(minus):totable())
      end
    end
  end)
end)

describe("without data", function()
  it("a number is refused, and a tensor is not looked at", function()
    local x = lt.ones{2, dtype = "int64", device = "meta"}
    fails("floor_divide", {"is 0"}, function() return x // 0 end)
    assert.same({2}, {(x % x).shape[1]})
  end)
end)

describe("on an accelerator", function()
  if not accelerated then return end

  it("a number, or a tensor of the CPU, is refused at once", function()
    for _, dtype in ipairs(INTEGERS) do
      each(function(name, divide)
        local x = ints({7, 8, 9}, dtype, "cuda")
        fails(name, {"is 0\n"}, divide, x, 0)
        fails(name, {"is 0\n"}, divide, x, lt.tensor(0))
        assert.same({7, 8, 9}, x:totable())
      end)
    end
  end)

  it("a tensor's 0 is found by the device, with its position and the line of the call", function()
    local x = lt.arange{12, device = "cuda"}:view(3, 4)
    for _, dtype in ipairs(INTEGERS) do
      local y = ints({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 1, 0, 0}}, dtype, "cuda")
      for name, way in pairs(WAYS) do
        fails(name, {'is 0 at index {3, 3} (reported later by "cuda:0", which runs '
          .. 'asynchronously); the call was at ', "_spec.lua:", "\nhint: "}, function()
          local _ = way[1](x, y)
          lt.cuda.synchronize()
        end)
        fails(name, {"is 0 at index {3, 3}"}, function() return way[1](x, y):totable() end)
        fails(name, {"is 0 at index {3, 3}"}, function()
          return way[1](x:t(), y:t()["1:4"]):contiguous() and way[1](x, y):cpu()
        end)
      end
    end
    lt.cuda.synchronize()
    assert.same({1, 1, 1}, (x // x)[{{}, 1}]:totable())
  end)

  it("in place: by the call itself, before anything is written", function()
    for name, way in pairs(WAYS) do
      local x = lt.arange{6, device = "cuda"}
      fails(name .. "_", {"is 0 at index {5}"}, way[2], x, lt.tensor{1, 1, 1, 1, 0, 1}:cuda())
      fails(name .. "_", {"is 0 at index {1}"}, way[2], x, x - x)
      lt.cuda.synchronize()
      assert.same({1, 2, 3, 4, 5, 6}, x:totable())
    end
  end)

  it("a 0-d tensor of a wider dtype", function()
    local x = ints({7, 8}, "int32", "cuda")
    fails("floor_divide", {'is 4294967296, which is 0 in "int32"'}, function()
      return (x // ints(1 << 32, "int64", "cuda")):totable()
    end)
  end)
end)
