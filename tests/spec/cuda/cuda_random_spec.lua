-- Random numbers on devices: the CPU's, for every dtype, size and layout. Uniform numbers,
-- integers, Bernoulli samples, permutations and multinomial samples are the same bit for bit;
-- normal and exponential ones go through logarithms, whose last bits differ.

local devices = require "device_support"
local options = {any = true, emulate = {"cuda:2", "mps"}, reverse = true}
if devices.elsewhere("cuda/cuda_random", _ENV, options) then return end

local lt = require "lutra"
local DEVICE = devices.device()

local DTYPES = devices.dtypes {
  "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
}
local FLOATS = devices.dtypes {"float16", "bfloat16", "float32", "float64"}
local TOLERANCE = {float64 = 1e-13, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2}
-- Around the 4 or 2 elements that a thread makes, and the threads of a block.
local SIZES = {0, 1, 2, 3, 4, 5, 7, 255, 511, 513, 1023, 1025, 4099}

local function same(want, got, label, tolerance)
  assert.equal(DEVICE, tostring(got.device), label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local here = got:cpu()
  if tolerance then
    assert.is_true(lt.allclose(here:to "float64", want:to "float64", tolerance, tolerance), label)
  else
    assert.is_true(lt.equal(here, want), label)
  end
end

-- f(on, g) makes tensors with the generator g, whose device is that to which `on` moves tensors.
-- They are the same on both, and both generators are at the same place afterwards.
local function both(label, f, tolerance)
  local a, b = lt.Generator(77), lt.Generator(77)
  local want = table.pack(f(function(t) return t end, a))
  local got = table.pack(f(function(t) return t:to(DEVICE) end, b))
  for i = 1, want.n do same(want[i], got[i], ("%s, result %d"):format(label, i), tolerance) end
  assert.is_true(lt.equal(a:get_state(), b:get_state()), label)
end

-- Two calls of a method that fills, the second into every other column.
local function fills(label, dtype, n, tolerance, method, ...)
  local arguments = table.pack(...)
  both(("%s %s %d"):format(label, dtype, n), function(on, g)
    arguments[arguments.n + 1] = g
    local x, y = on(lt.zeros({n}, {dtype = dtype})), on(lt.zeros({n, 4}, {dtype = dtype}))
    x[method](x, table.unpack(arguments, 1, arguments.n + 1))
    local columns = y:narrow(2, 2, 2)
    columns[method](columns, table.unpack(arguments, 1, arguments.n + 1))
    return x, y
  end, tolerance)
end

-- The message with which f fails, at once or when the host synchronizes, is the CPU's.
local function fails_alike(f)
  local _, message = pcall(f, function(t) return t end)
  local ok, got = pcall(function()
    f(function(t) return t:to(DEVICE) end)
    lt.accelerator.synchronize(DEVICE)
  end)
  assert.is_false(ok, "no error; expected: " .. tostring(message))
  message = message:match ": (.*)"
  assert.is_truthy(tostring(got):find(message, 1, true),
    ("expected: %s\ngot: %s"):format(message, got))
end

lt.manual_seed(21)

describe("distributions on a device", function()
  for _, dtype in ipairs(FLOATS) do
    it("are the CPU's in " .. dtype, function()
      for _, n in ipairs(SIZES) do
        fills("uniform", dtype, n, nil, "uniform_", 0, 1)
        fills("uniform from 3 to 7.5", dtype, n, nil, "uniform_", 3, 7.5)
        fills("uniform around 0", dtype, n, nil, "uniform_", -0.1, 1e-3)
        fills("normal", dtype, n, TOLERANCE[dtype], "normal_", 0, 1)
        fills("normal of 5", dtype, n, TOLERANCE[dtype], "normal_", 5, 0.25)
        fills("exponential", dtype, n, TOLERANCE[dtype], "exponential_", 1)
        fills("exponential of rate 4", dtype, n, TOLERANCE[dtype], "exponential_", 4)
      end
    end)
  end

  for _, dtype in ipairs(DTYPES) do
    it("give the CPU's integers and Bernoulli samples in " .. dtype, function()
      for _, n in ipairs(SIZES) do
        both(("random %s %d"):format(dtype, n), function(on, g)
          local x, y = on(lt.zeros({n}, {dtype = dtype})), on(lt.zeros({n, 3}, {dtype = dtype}))
          x:random_ {generator = g}
          y:t():random_ {generator = g}
          return x, y
        end)
        fills("random to 1", dtype, n, nil, "random_", 0, 1)
        if dtype ~= "bool" then fills("random to 100", dtype, n, nil, "random_", 3, 100) end
        fills("coins", dtype, n, nil, "bernoulli_", 0.3)
        fills("coins that fall one way", dtype, n, nil, "bernoulli_", 1)
      end
    end)
  end

  it("hold the largest ranges of integers", function()
    for _, dtype in ipairs(devices.dtypes {"int64", "float64", "float32", "bfloat16"}) do
      fills("all", dtype, 100, nil, "random_", math.mininteger, math.maxinteger)
      fills("much", dtype, 100, nil, "random_", -5, 1 << 40)
    end
    fills("all", "float16", 100, nil, "random_", -65504, 65504)
  end)

  it("continue where the last call ended", function()
    both("in turn", function(on, g)
      local results = {}
      for _, dtype in ipairs(FLOATS) do
        local x = on(lt.zeros({7}, {dtype = dtype}))
        results[#results + 1] = x:clone():uniform_(0, 1, g)
        results[#results + 1] = x:clone():random_(1, 9, g)
        results[#results + 1] = x:clone():bernoulli_(0.5, g)
      end
      return table.unpack(results)
    end)
  end)

  it("heed the seed of all devices", function()
    lt.manual_seed(4)
    local want, again = lt.rand(100), lt.randperm(30)
    lt.manual_seed(4)
    same(want, lt.rand({100}, {device = DEVICE}), "rand")
    same(again, lt.randperm(30, {device = DEVICE}), "randperm")
  end)
end)

describe("coins by a tensor of probabilities on a device", function()
  it("are the CPU's", function()
    for _, dtype in ipairs(FLOATS) do
      for _, n in ipairs(SIZES) do
        local p, row = lt.rand(n, 3):to(dtype), lt.rand(3):to(dtype)
        both(dtype .. " " .. n, function(on, g)
          local q = on(p)
          return q:bernoulli(nil, g), q:t():bernoulli(nil, g),
            on(lt.zeros({n, 3}, {dtype = "int32"})):bernoulli_(q, g),
            on(lt.zeros(n, 3)):bernoulli_(on(row), g),
            on(lt.zeros({n, 3}, {dtype = "bool"})):bernoulli_(on(row[1]), g),
            on(lt.zeros(n, 3)):bernoulli_(on(row):select(1, 2), g)
        end)
      end
    end
  end)

  it("report what is not a probability, and leave the tensor unchanged", function()
    for _, bad in ipairs {1.5, -0.25, 0 / 0, math.huge} do
      local p = lt.rand(30, 50)
      p[{3, 7}], p[{20, 1}] = bad, 2
      fails_alike(function(on) return on(p):bernoulli() end)
      fails_alike(function(on) return on(p:t()):bernoulli() end)
      fails_alike(function(on) return on(lt.zeros(2, 30, 50)):bernoulli_(on(p)) end)
      local x = lt.full({30, 50}, 9, {device = DEVICE})
      pcall(function()
        x:bernoulli_(p:to(DEVICE))
        lt.accelerator.synchronize(DEVICE)
      end)
      assert.is_true(lt.equal(x:cpu(), lt.full({30, 50}, 9)))
    end
  end)
end)

describe("permutations on a device", function()
  it("are the CPU's in every dtype", function()
    for _, dtype in ipairs(DTYPES) do
      for _, n in ipairs {0, 1, 2, 3, 100, 127, 5000} do
        if dtype ~= "bool" and not (n > 127 and dtype:match "int8") then
          both(dtype .. " " .. n, function(on, g)
            local device = on(lt.zeros(1)).device
            return lt.randperm(n, g, {dtype = dtype, device = device}),
              lt.randperm(n, g, {dtype = dtype, device = device})
          end)
        end
      end
    end
  end)
end)

describe("multinomial on a device", function()
  it("draws what the CPU draws", function()
    for _, dtype in ipairs(FLOATS) do
      for _, shape in ipairs {{1}, {2}, {7}, {127}, {128}, {129}, {1000}, {1, 5}, {3, 4}, {40, 200},
        {130, 3}} do
        local w = lt.rand(shape):to(dtype) + 0.01
        local n = shape[#shape]
        for layout = 1, 2 do
          if layout == 2 then w = lt.stack({w, w}, -1)[{"...", 1}] end
          both(("%s {%s} layout %d"):format(dtype, table.concat(shape, ", "), layout),
            function(on, g)
              local x = on(w)
              return x:multinomial(1, false, g), x:multinomial(n, false, g),
                x:multinomial((n + 1) // 2, false, g), x:multinomial(1, true, g),
                x:multinomial(100, true, g)
            end)
        end
      end
    end
  end)

  it("leaves out weights of 0", function()
    local w = lt.zeros(3, 300)
    for i = 1, 3 do
      for k = i, 250, 17 * i do w[{i, k}] = k end
    end
    both("zeros", function(on, g)
      return on(w):multinomial(5, false, g), on(w):multinomial(200, true, g)
    end)
  end)

  it("says which weights cannot be drawn from, in the CPU's words", function()
    local w = lt.rand(4, 200) + 0.1
    for _, bad in ipairs {-1, 0 / 0, math.huge} do
      local x = w:clone()
      x[{2, 150}], x[{2, 160}], x[{3, 1}] = bad, -7, -8
      for _, again in ipairs {true, false} do
        fails_alike(function(on) return on(x):multinomial(3, again) end)
      end
    end
    local none, few = w:clone(), w:clone()
    none[3]:fill_(0)
    few[2]:fill_(0)
    few[{2, 7}], few[{2, 9}] = 1, 2
    for _, again in ipairs {true, false} do
      fails_alike(function(on) return on(none):multinomial(3, again) end)
      if #devices.dtypes {"float64"} > 0 then -- a sum of float32 does not overflow in float64
        local huge = w:to "float64"
        huge[1]:fill_(1e307)
        fails_alike(function(on) return on(huge):multinomial(3, again) end)
      end
    end
    fails_alike(function(on) return on(few):multinomial(3, false) end)
    both("two are enough", function(on, g)
      return on(few):multinomial(2, false, g), on(few):multinomial(9, true, g)
    end)
  end)
end)
