--- Numbers at the ends of their ranges, and NaN as people read it.

local devices = require "device_support"
devices.elsewhere("core/numbers", _ENV) -- and here
local accelerated = os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU"
local device = accelerated and "cuda" or "cpu"

local lt = require "lutra"

local LARGEST = {
  float16 = 65504.0, bfloat16 = 0x1.FEp127, float32 = 0x1.FFFFFEp127,
  float64 = 0x1.FFFFFFFFFFFFFp1023,
}

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  return message
end

local function contains(text, message)
  assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
end

-- PyTorch: to - from may be at most the dtype's largest number.
describe("uniform_", function()
  it("refuses a range that is wider than the dtype", function()
    for dtype, most in pairs(LARGEST) do
      local x = lt.ones{8, dtype = dtype, device = device}
      contains("uniform_: expected from, to and to - from of at most ",
        message_of(x.uniform_, x, -most, most))
      message_of(x.uniform_, x, -most * 0.6, most * 0.6)
      if dtype ~= "float64" then
        message_of(x.uniform_, x, 0, most * 1.01)
        message_of(x.uniform_, x, -most * 1.01, 0)
      end
      assert.same({1, 1, 1, 1, 1, 1, 1, 1}, x:totable())
    end
  end)

  it("fills the widest range that it takes", function()
    for dtype, most in pairs(LARGEST) do
      for _, ends in ipairs {{0, most}, {-most, 0}, {-most / 2, most / 2}} do
        lt.manual_seed(1)
        local x = lt.empty{1000, dtype = dtype, device = device}:uniform_(ends[1], ends[2])
        assert.is_true(x:isfinite():all():item(), dtype)
        local double = x:double()
        local low, high = double:min():item(), double:max():item()
        assert.is_true(low >= ends[1] and high < ends[2], dtype)
        -- 1000 numbers fill more than nine tenths of the range
        assert.is_true(high / most - low / most > 0.9 * (ends[2] / most - ends[1] / most), dtype)
        lt.manual_seed(1)
        local here = lt.empty{1000, dtype = dtype}:uniform_(ends[1], ends[2])
        assert.is_true(lt.equal(here, x:cpu()), dtype .. ": the same numbers on the CPU")
      end
    end
  end)
end)

describe("random_", function()
  it("refuses ends that the dtype cannot hold", function()
    local x = lt.ones{3, dtype = "float16", device = device}
    contains('random_: expected from and to of at most 65504 ("float16"), got from 0 to 1000000',
      message_of(x.random_, x, 0, 1000000))
    message_of(x.random_, x, -70000, 10)
    assert.same({1, 1, 1}, x:totable())
    assert.is_true(x:random_(0, 65504):isfinite():all():item())
    x = lt.empty{100, dtype = "int64", device = device}:random_(math.mininteger, math.maxinteger)
    assert.is_true(x:min():item() < 0 and x:max():item() > 0)
  end)
end)

describe("linspace", function()
  it("is right between the ends of each dtype", function()
    for dtype, most in pairs(LARGEST) do
      local options = {dtype = dtype, device = device}
      assert.same({-most, 0, most}, lt.linspace(-most, most, 3, options):totable())
      assert.same({-most, most}, lt.linspace(-most, most, 2, options):totable())
      assert.same({most, 0, -most}, lt.linspace(most, -most, 3, options):totable())
      local x = lt.linspace(-most, most, 1001, options):double()
      assert.is_true(x:isfinite():all():item())
      for i = 1, 1001 do
        local expected = (i - 501) / 500 * most
        assert.is_true(math.abs(x[i]:item() - expected) <= most * 0.005, dtype .. " at " .. i)
      end
    end
    assert.same({math.mininteger, 0, math.maxinteger},
      lt.linspace(math.mininteger, math.maxinteger, 3, {dtype = "int64", device = device})
        :totable())
  end)

  it("refuses ends that the dtype cannot hold", function()
    contains("linspace: expected a number that fits \"float32\" for argument 'stop', got 1e+39",
      message_of(lt.linspace, 0, 1e39, 3, {device = device}))
    contains("linspace: expected a number that fits \"uint8\" for argument 'stop', got 300",
      message_of(lt.linspace, 0, 300, 3, {dtype = "uint8", device = device}))
    message_of(lt.linspace, -1e5, 1e5, 3, {dtype = "float16", device = device})
    message_of(lt.linspace, 1 << 40, 0, 3, {dtype = "int32", device = device})
  end)
end)

describe("logspace", function()
  it("rounds powers that are in the middle of two numbers to the even one", function()
    local function last(power, base, dtype)
      local y = lt.logspace(0, power, power + 1, base, {dtype = dtype})
      return y[power + 1]:item()
    end
    assert.equal(2196, last(3, 13, "float16"))
    assert.equal(3248, last(2, 57, "float16"))
    assert.equal(344, last(3, 7, "bfloat16"))
    assert.equal(288, last(2, 17, "bfloat16"))
    assert.equal(19487172, last(7, 11, "float32"))
    assert.equal(24137568, last(6, 17, "float32"))
    assert.equal(28629152, last(5, 31, "float32"))
  end)
end)

describe("arange", function()
  it("counts its steps between far ends", function()
    local x = lt.arange(-1.7e308, 1.7e308, 1e308, {dtype = "float64", device = device})
    assert.equal(4, x:numel())
    for i, expected in ipairs {-1.7e308, -0.7e308, 0.3e308, 1.3e308} do
      assert.is_true(math.abs(x[i]:item() / expected - 1) < 1e-12)
    end
    -- 2.995 steps: what is only nearly a step does not count
    assert.equal(3, lt.arange(-1.7e308, 1.295e308, 1e308,
      {dtype = "float64", device = device}):numel())
  end)
end)

if accelerated then return end

describe("NaN", function()
  local minus = -(0 / 0)
  local negative = ("%f"):format(0 / 0):sub(1, 1) == "-" and 0 / 0 or minus

  it("has no sign in messages", function()
    local x = lt.ones(3)
    for _, f in ipairs {
      function(v) return lt.dropout(x, v) end,
      function(v) return x:uniform_(v, 1) end,
      function(v) return x:normal_(0, v) end,
      function(v) return x:exponential_(v) end,
      function(v) return x:bernoulli_(v) end,
      function(v) return lt.bernoulli(lt.tensor{v}) end,
      function(v) return lt.multinomial(lt.tensor{1, v}, 1) end,
      function(v) return lt.arange(v) end,
      function(v) return lt.full({2}, v, {dtype = "int32"}) end,
      function(v) return lt.allclose(x, x, v) end,
      function(v) return lt.allclose(x, x, 0, v) end,
      function(v) return lt.zeros(v) end,
      function(v) return x:sum(v) end,
      function(v) return x[v] end,
      function(v) return lt.cross_entropy(lt.ones(1, 2), lt.tensor{1}, {label_smoothing = v}) end,
      function(v) return lt.addmm(lt.ones{2, 2, dtype = "int64"}, lt.ones{2, 2, dtype = "int64"},
        lt.ones{2, 2, dtype = "int64"}, v) end,
      function(v) lt.set_num_threads(v) end,
      function(v) return lt.nn.Dropout(v) end,
      function(v) return lt.nn.Linear(v, 2) end,
      function(v) return lt.optim.SGD({lt.ones{1, requires_grad = true}}, {lr = v}) end,
    } do
      for _, v in ipairs {0 / 0, minus} do
        local message = message_of(f, v)
        contains("nan", message)
        assert.is_nil(message:find("-nan", 1, true), message)
      end
    end
  end)

  it("has no sign as a tensor, an item or a number at the prompt", function()
    local program = require "program_support"
    for _, v in ipairs {0 / 0, minus} do
      local x = lt.tensor{1.0, v}
      for _, text in ipairs {tostring(x), tostring(x[2]), tostring(x[2]:item()),
        tostring(x:totable()[2]), ("%g"):format(x[2]:item()), tostring(x:double()[2]:item()),
        tostring(x:half()[2]:item())} do
        contains("nan", text)
        assert.is_nil(text:find("-nan", 1, true), text)
      end
    end
    local result = program.run "-e 'return 0/0, {0/0, -(0/0)}'"
    assert.is_nil(result.out:find("-nan", 1, true), result.out)
  end)

  it("has no sign in summaries, bars and lists of settings", function()
    local numbers = require "lutra.internal.numbers"
    assert.equal("nan", numbers.text(negative))
    assert.equal("nan", numbers.text(negative, "%8.3f"))
    assert.equal("0.500", numbers.text(0.5, "%.3f"))
    assert.equal("7", numbers.text(7))
    assert.equal("-inf", numbers.text(-math.huge, "%g"))
    local layer = lt.nn.LayerNorm(2)
    layer.eps = negative
    contains("eps=nan", tostring(layer))
    local dropout = lt.nn.Dropout(0.5)
    dropout.p = negative
    contains("p=nan", tostring(dropout))
    local optimizer = lt.optim.Adam({lt.ones{1, requires_grad = true}}, {lr = 0.1})
    optimizer.param_groups[1].lr = negative
    optimizer.param_groups[1].betas = {negative, 0.5}
    contains("lr=nan", tostring(optimizer))
    contains("{nan, 0.5}", tostring(optimizer))
  end)
end)

describe("set_num_threads", function()
  it("takes 1 to 1024, and nothing else", function()
    local before = lt.get_num_threads()
    for _, bad in ipairs {100000, 1025, 0, -1, 1 << 40, math.maxinteger, math.mininteger} do
      contains("set_num_threads: expected an integer from 1 to 1024 for argument 'n', got "
        .. bad, message_of(lt.set_num_threads, bad))
    end
    for _, bad in ipairs {1.5, "2", true, 1e30, math.huge, 0 / 0, {}} do
      contains("set_num_threads: expected an integer for argument 'n', got ",
        message_of(lt.set_num_threads, bad))
    end
    contains("got nil", message_of(lt.set_num_threads))
    assert.equal(before, lt.get_num_threads())
    lt.set_num_threads(2)
    assert.equal(2, lt.get_num_threads())
    lt.set_num_threads(before)
  end)

  it("do not scale integers by what is not finite", function()
    local ok, message = pcall(lt.add, lt.ones{2, dtype = "int32"}, 1, {alpha = 1 / 0})
    assert.is_false(ok)
    contains("add: expected a finite number for argument 'alpha', got inf", message)
  end)

  it("keeps to OMP_THREAD_LIMIT, as the number at the start does", function()
    local program = require "program_support"
    local command = ("%s -e %s"):format(program.quote(program.program), program.quote [[
      print(lt.get_num_threads() <= 3, select(2, pcall(lt.set_num_threads, 4)))]])
    local result = program.shell("env OMP_THREAD_LIMIT=3 OMP_NUM_THREADS=100 " .. command)
    contains("true", result.out)
    contains("set_num_threads: expected an integer from 1 to 3 for argument 'n', got 4", result.out)
  end)
end)

describe("limits that an integer dtype cannot hold", function()
  it("limit nothing", function()
    for _, dtype in ipairs{"uint8", "int8", "int16", "int32", "int64"} do
      local list = {}
      for i = 1, 100 do list[i] = i end
      local x = lt.tensor(list, {dtype = dtype})
      local low = dtype == "uint8" and 0 or -100000
      assert.same(list, lt.F.hardtanh(x, low, 100000):totable(), dtype)
      assert.same(list, x:clamp(low, 100000):totable(), dtype)
      assert.same(list, x:clamp(lt.tensor(-3), lt.tensor(1000)):totable(), dtype)
      list[1], list[2] = 3, 3
      assert.same(list, lt.F.hardtanh(x, 3, 100000):totable(), dtype)
      assert.same(list, x:clamp(3, 100000):totable(), dtype)
    end
  end)
end)

describe("limits of int32 and int64", function()
  it("are compared as numbers, whatever their size", function()
    local least, largest = -(1 << 31), (1 << 31) - 1
    local x = lt.tensor({least, -5, 0, largest}, {dtype = "int32"})
    assert.same({least, -5, 0, largest}, x:clamp(-(1 << 40), 1 << 40):totable())
    assert.same({0, 0, 0, largest}, x:clamp{min = 0, max = 1 << 40}:totable())
    assert.same({least, -5, 0, largest}, lt.F.hardtanh(x, -(1 << 40), 1 << 40):totable())
    local y = lt.tensor({math.mininteger, 0, math.maxinteger}, {dtype = "int64"})
    assert.same({math.mininteger, 0, (1 << 62) + 1}, y:clamp{max = (1 << 62) + 1}:totable())
    local ok, message = pcall(x.clamp, x, {min = (1 << 32) + 7})
    assert.is_false(ok)
    assert.matches("clamp: expected a value in the range of \"int32\" for argument 'min', got "
      .. "4294967303", message, 1, true)
  end)
end)
