-- Elementwise ops, creation and rearrangement on CUDA, in the layouts and corner cases that the
-- tests of ops do not reach. The CPU gives the expected values: exactly from integers, bools and
-- moved elements, within a tolerance from floats.

local devices = require "device_support"
if devices.elsewhere("cuda/cuda_elementwise", _ENV, {reverse = true, memory = "1GiB"}) then
  return
end

local lt = require "lutra"
local core = require "lutra.core"
local device = "cuda:0"

local DTYPES = {
  "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
}
-- Relative, and absolute where numbers of about 1 cancel.
local TOLERANCE = {float64 = 1e-12, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2}

local function is_float(dtype) return TOLERANCE[dtype] ~= nil end

local VALUES = {
  bool = {true, false, false, true, true},
  uint8 = {0, 1, 2, 3, 7, 100, 255}, int8 = {0, 1, -1, 2, -3, 100, -128, 127},
  int16 = {0, 1, -1, 2, -3, 1000, -32768, 32767},
  int32 = {0, 1, -1, 2, -3, 1000, -2147483648, 2147483647},
  int64 = {0, 1, -1, 2, -3, 1000, math.mininteger, math.maxinteger},
}
local FLOATS = {
  0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 0.1, -0.3, 7.25, 1e-3, 20.5, math.huge,
  -math.huge, 0 / 0,
}

-- n elements of a dtype on the CPU; operands have different orders.
local function values(dtype, n, operand)
  local list, data = VALUES[dtype] or FLOATS, {}
  for i = 1, n do data[i] = list[(i * (2 * operand - 1) + i // #list * operand) % #list + 1] end
  return lt.tensor(data, {dtype = dtype, device = "cpu"})
end

local function same(want, got, label)
  local here = got:to "cpu"
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local tolerance = TOLERANCE[want.dtype] or 0
  local a, b = here:to "float64", want:to "float64"
  if want.dtype == "int64" then -- float64 does not tell them apart
    assert.is_true(lt.equal(here, want), label)
  elseif not lt.allclose(a, b, tolerance, tolerance, true) then
    error(label .. ": got\n" .. tostring(here) .. "\nwanted\n" .. tostring(want), 0)
  end
end

-- Many small results are compared as one, since each copy to the host blocks for the device.
local results = {}
local function same_later(want, got, label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local list = results[want.dtype] or {want = {}, got = {}, label = {}}
  results[want.dtype] = list
  table.insert(list.want, want:reshape(-1))
  table.insert(list.got, got:reshape(-1))
  table.insert(list.label, label)
end
local function compare_results()
  local lists = results
  results = {}
  for _, list in pairs(lists) do
    if not pcall(same, lt.cat(list.want), lt.cat(list.got), "") then
      for k, label in ipairs(list.label) do same(list.want[k], list.got[k], label) end
      error("results together differ from each alone", 0)
    end
  end
end

-- ---- every op, every layout ---------------------------------------------------------------------

-- A layout is a list of operands, each an element count and what makes the operand of a dense
-- tensor of that many elements, the same on each device.
local function dense(...)
  local shape, n = {...}, 1
  for _, size in ipairs(shape) do n = n * size end
  return {n, function(x) return x:view(shape) end}
end
local function sliced(n, first, step)
  return {first + n * step, function(x)
    return core._ops._slice(x, 1, first, n, step)
  end}
end
local function transposed(rows, columns)
  return {rows * columns, function(x) return x:view(columns, rows):t() end}
end
local function permuted(shape, dims)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return {n, function(x) return x:view(shape):permute(dims) end}
end
local function cut(rows, columns, first, kept)
  return {rows * columns, function(x) return x:view(rows, columns):narrow(2, first, kept) end}
end
local function one() return {1, function(x) return x:view{} end} end
local function expanded(...)
  local shape = {...}
  return {1, function(x) return x:expand(shape) end}
end

local LAYOUTS = {
  ["no element"] = {dense(0), dense(0), dense(0)},
  ["no row"] = {dense(3, 0), dense(3, 0), dense(1, 1)},
  ["0-d"] = {one(), one(), one()},
  ["one element"] = {dense(1), one(), dense(1, 1)},
  ["dense, a few"] = {dense(13), dense(13), dense(13)},
  ["dense, several blocks and a rest"] = {dense(2053), dense(2053), dense(2053)},
  ["dense beside one element"] = {dense(1031), one(), dense(1)},
  ["one element first"] = {one(), dense(1031), dense(1031)},
  ["not aligned"] = {sliced(1030, 1, 1), dense(1030), sliced(1030, 3, 1)},
  ["every second"] = {sliced(261, 0, 2), sliced(261, 1, 1), sliced(261, 2, 3)},
  ["transposed"] = {transposed(19, 35), transposed(19, 35), transposed(19, 35)},
  ["one transposed"] = {dense(19, 35), transposed(19, 35), dense(35)},
  ["one transposed, more than a tile"] = {dense(37, 33), transposed(37, 33), dense(33)},
  ["rows of groups, broadcast"] = {dense(6, 16), dense(16), dense(6, 1)},
  ["rows of no groups, broadcast"] = {dense(6, 13), dense(13), dense(6, 1)},
  ["cut rows"] = {cut(9, 27, 1, 24), dense(9, 24), cut(9, 25, 1, 24)},
  ["cut rows, aligned"] = {cut(9, 32, 9, 16), dense(9, 16), cut(9, 48, 17, 16)},
  ["cut rows, not aligned"] = {cut(9, 32, 2, 24), dense(9, 24), cut(9, 48, 3, 24)},
  ["three dimensions, broadcast"] = {dense(4, 1, 24), dense(5, 24), dense(4, 5, 1)},
  ["four dimensions"] = {dense(2, 1, 3, 8), dense(2, 5, 1, 8), dense(1, 5, 3, 8)},
  ["six dimensions"] = {
    permuted({2, 3, 1, 2, 3, 5}, {6, 1, 5, 2, 4, 3}), dense(3, 3, 2, 1),
    permuted({2, 3, 1, 2, 3, 5}, {6, 1, 5, 2, 4, 3}),
  },
  ["expanded"] = {expanded(7, 24), dense(7, 24), expanded(24)},
}
local slow = os.getenv "LUTRA_TEST_DEBUG"
local names = {}
for name in pairs(LAYOUTS) do names[#names + 1] = name end
table.sort(names)

-- The elementwise ops, with what their calls look like.
local OPS = {}
for _, op in ipairs(core.ops()) do
  if op.kind == "elementwise" then
    local inputs, numbers = 0, {}
    for _, param in ipairs(op.params) do
      if param.type == "Tensor" or param.type == "Operand" then inputs = inputs + 1
      else numbers[#numbers + 1] = 2 end
    end
    OPS[#OPS + 1] = {name = op.name, inputs = inputs, numbers = numbers}
  end
end

-- Integers are divided by none that is 0: that is an error, which a device finds later.
local DIVISIONS = {_trunc_divide = true, floor_divide = true, remainder = true, fmod = true}
local function without_zeros(x)
  if x.dtype:find "float" then return x end
  return x:masked_fill(x:eq(0), x.dtype == "bool" or 3)
end

-- The operands of a call, here and there.
local function operands(layout, dtype, inputs, name)
  local here, there = {}, {}
  for k = 1, inputs do
    local count, make = layout[k][1], layout[k][2]
    local x = values(dtype, count, k)
    if DIVISIONS[name] and k == 2 then x = without_zeros(x) end
    here[k], there[k] = make(x), make(x:to(device))
  end
  return here, there
end

local function call(f, tensors, numbers)
  local args = {table.unpack(tensors)}
  for _, number in ipairs(numbers) do args[#args + 1] = number end
  return pcall(f, table.unpack(args))
end

-- The same call on both devices: the same result, or the same message.
local function compare(f, here, there, numbers, label)
  local ok, want = call(f, here, numbers)
  local ok2, got = call(f, there, numbers)
  if not ok then return assert.equal(want, got, label) end
  if not ok2 then error(label .. ": " .. tostring(got), 0) end
  same_later(want, got, label)
end

describe("elementwise ops on CUDA", function()
  for _, op in ipairs(OPS) do
    local f, in_place = core._ops[op.name], core._ops[op.name .. "_"]
    it("give what the CPU gives: " .. op.name, function()
      local function compare_layout(dtype, name)
        local label = ("%s of %s, %s"):format(op.name, dtype, name)
        local here, there = operands(LAYOUTS[name], dtype, op.inputs, op.name)
        if f then compare(f, here, there, op.numbers, label) end
        if in_place and name ~= "expanded" then
          compare(in_place, here, there, op.numbers, label .. ", in place")
        end
      end
      for d, dtype in ipairs(DTYPES) do
        -- where sanitizers make everything slow, each layout is for a third of the dtypes
        for i, name in ipairs(names) do
          if not slow or (i + d) % 3 == 0 then compare_layout(dtype, name) end
        end
        compare_results()
      end
    end)
  end

  it("give what the CPU gives for operands of several dtypes", function()
    for _, name in ipairs{"add", "mul", "lt", "maximum", "_where", "masked_fill", "pow"} do
      local f, inputs = core._ops[name], name:find "^[_m]a?[ws][hk]" and 3 or 2
      for _, first in ipairs(DTYPES) do
        for _, second in ipairs(DTYPES) do
          for _, layout in ipairs{"dense, a few", "rows of groups, broadcast", "one transposed"} do
            local here, there = operands(LAYOUTS[layout], first, 3)
            local here2, there2 = operands(LAYOUTS[layout], second, 3)
            here[2], there[2] = here2[2], there2[2]
            if inputs == 2 then here[3], there[3] = nil, nil end
            compare(f, here, there, {}, ("%s of %s and %s, %s"):format(name, first, second, layout))
          end
        end
        compare_results()
      end
    end
  end)

  it("give what the CPU gives for tiles of several matrices and dtypes", function()
    local layouts = {
      {dense(3, 32, 64), permuted({3, 64, 32}, {1, 3, 2}), dense(64)},
      {dense(2, 3, 2, 33, 34), permuted({2, 3, 2, 34, 33}, {3, 2, 1, 5, 4}), one()},
    }
    local dtypes = {"bool", "uint8", "int32", "int64", "float16", "float32", "float64"}
    for i, layout in ipairs(layouts) do
      for _, first in ipairs(dtypes) do
        for _, second in ipairs(dtypes) do
          local here, there = operands(layout, first, 3)
          local here2, there2 = operands(layout, second, 2)
          local label = ("%s and %s, layout %d"):format(first, second, i)
          here[2], there[2] = here2[2], there2[2]
          compare(core._ops.maximum, {here[1], here[2]}, {there[1], there[2]}, {}, label)
          compare(core._ops.add, {here[3], here[2]}, {there[3], there[2]}, {}, label)
        end
        compare_results()
      end
    end
  end)

  it("take numbers and 0-d tensors of the CPU", function()
    for _, dtype in ipairs(DTYPES) do
      local x = without_zeros(values(dtype, 1029, 1))
      local y = x:to(device)
      for _, number in ipairs{2, 3, 0, -1, 2.5, 0 / 0, math.huge, true, 2147483648, 40000} do
        for _, name in ipairs{"add", "mul", "pow", "lt", "floor_divide", "maximum"} do
          local f, label = core._ops[name], ("%s of %s and %s"):format(name, dtype, number)
          compare(f, {x, number}, {y, number}, {}, label)
          compare(f, {number, x}, {number, y}, {}, label .. ", turned")
          local zero = lt.tensor(number, {device = "cpu"})
          compare(f, {x, zero}, {y, zero}, {}, label .. ", 0-d")
        end
        compare_results()
      end
    end
  end)

  it("saturate a 0-d float of the CPU that becomes an integer", function()
    for _, dtype in ipairs{"int8", "int32", "int64"} do
      for _, number in ipairs{1e10, -1e10, 1e30, 0 / 0, 2.9} do
        local x = lt.arange(1, 9, {dtype = dtype, device = "cpu"})
        local value = lt.tensor(number, {dtype = "float64", device = "cpu"})
        local y = x:to(device)
        compare(lt.masked_fill, {x, x:gt(4), value}, {y, y:gt(4), value}, {}, dtype .. number)
      end
    end
    compare_results()
  end)

  it("do not take a tensor of the CPU that is not 0-d", function()
    local x = lt.ones{3, device = device}
    local ok, message = pcall(lt.add, x, lt.ones{3, device = "cpu"})
    assert.is_false(ok)
    assert.matches("different devices", message, 1, true)
  end)

  it("write what they read: in place, with an operand that is the same tensor", function()
    local x = values("float32", 3000, 1):nan_to_num()
    local y = x:to(device)
    y:mul_(y):add_(y, 0.5):sub_(y:clone())
    x:mul_(x):add_(x, 0.5):sub_(x:clone())
    same(x, y, "in place")
    local m = lt.arange(1, 48, {dtype = "int32", device = device}):view(6, 8)
    m:copy_(m)
    assert.equal(48, m[6][8]:item())
  end)

  it("spread a number in any layout", function()
    for _, dtype in ipairs(DTYPES) do
      for _, value in ipairs{0, 1, 3} do
        for _, n in ipairs{1, 2, 15, 16, 17, 1000, 5003} do
          for first = 0, 3 do
            local label = ("%d of %s from %d, %d"):format(n, dtype, first, value)
            local x = values(dtype, n + 5, 1)
            local y = x:to(device)
            core._ops._slice(x, 1, first, n, 1):fill_(value)
            core._ops._slice(y, 1, first, n, 1):fill_(value)
            same(x, y, label)
          end
        end
        local x = values(dtype, 20 * 24, 2)
        local y = x:to(device)
        for _, t in ipairs{x, y} do
          t:view(20, 24):t()[3]:fill_(value)
          t:view(20, 24):narrow(2, 9, 8):fill_(value)
          t:view(4, 5, 2, 12):narrow(4, 3, 7):fill_(value)
        end
        same(x, y, "rows of " .. dtype)
      end
    end
  end)

  if os.getenv "LUTRA_TEST_GPU" then
    it("reach past 2^31 elements", function()
      local n = 2^31 // 1 | 0
      local x = lt.zeros{n + 9, dtype = "uint8", device = device}
      x:add_(3)
      assert.equal(3, x[n + 9]:item())
      local y = x:narrow(1, 3, n + 5):mul(x:narrow(1, 4, n + 5))
      assert.equal(9, y[n + 5]:item())
      local z = lt.cat{y, x}
      assert.equal(3, z[2 * n + 14]:item())
      assert.equal(9, z[1]:item())
    end)
  end
end)

-- ---- copies and casts ---------------------------------------------------------------------------

describe("copies on CUDA", function()
  it("cast between all dtypes as the CPU does", function()
    local edge = lt.tensor({
      0 / 0, math.huge, -math.huge, 0.0, -0.0, 0.49, -0.51, 1.5, -1.5, 127.9, 128, -129, 255.5, 256,
      -1, 32768, -32769, 65504, 65520, 70000, 2147483647, 2147483648, -2147483649, 1e10, -1e10,
      9.2233720368547758e18, -9.2233720368547758e18, 1e19, -1e19, 1e300, -1e300, 1e-300, 3e-8,
      1.00048828125, 1.0004882812500002, 1.00390625, 1.0039062500000002, 65519.99999,
    }, {dtype = "float64", device = "cpu"}):repeat_interleave(31)
    for _, from in ipairs(DTYPES) do
      local x = is_float(from) and edge:to(from) or values(from, 1178, 1)
      local y = x:to(device)
      for _, to in ipairs(DTYPES) do
        local label = from .. " to " .. to
        same(x:to(to), y:to(to), label)
        same(x:view(38, 31):t():to(to), y:view(38, 31):t():to(to), label .. ", transposed")
        same(core._ops._slice(x, 1, 3, 1100, 1):to(to), core._ops._slice(y, 1, 3, 1100, 1):to(to),
          label .. ", not aligned")
        local a = lt.zeros{31, 38, dtype = to, device = "cpu"}
        local b = a:to(device)
        same(a:t():copy_(x:view(38, 31)), b:t():copy_(y:view(38, 31)), label .. ", to a transpose")
      end
    end
  end)

  it("move elements of every size in any layout", function()
    for _, dtype in ipairs{"uint8", "int16", "float32", "int64"} do
      local x = lt.arange(1, 9600, {dtype = "int64", device = "cpu"}):remainder(251):to(dtype)
      local y = x:to(device)
      local function check(f, label)
        same(f(x), f(y), label .. " of " .. dtype)
      end
      check(function(t) return t:view(96, 100):t():contiguous() end, "transpose")
      check(function(t) return t:view(1200, 8):t():contiguous() end, "transpose of narrow rows")
      check(function(t) return t:view(3, 3200):t():contiguous() end, "transpose of few rows")
      check(function(t) return t:view(4, 6, 10, 40):transpose(2, 3):contiguous() end, "heads")
      check(function(t) return t:view(4, 6, 10, 40):transpose(2, 4):contiguous() end, "outer")
      check(function(t) return t:view(4, 60, 40):transpose(2, 3):contiguous() end, "batch")
      check(function(t)
        return t:view(2, 2, 6, 10, 40):permute(5, 2, 4, 1, 3):contiguous()
      end, "all")
      check(function(t)
        return t:view(2, 2, 3, 2, 10, 2, 20):permute(7, 1, 3, 5, 2, 4, 6):contiguous()
      end,
        "seven dimensions")
      check(function(t) return t:view(240, 40):narrow(2, 3, 24):contiguous() end, "columns")
      check(function(t) return t:view(240, 40):narrow(2, 9, 16):contiguous() end, "aligned columns")
      check(function(t) return t:view(240, 40):narrow(2, 2, 5):contiguous() end, "a few columns")
      check(function(t) return t:narrow(1, 1, 40):expand(30, 40):contiguous() end, "a row again")
      check(function(t)
        return t:narrow(1, 1, 40):view(40, 1):expand(40, 30):contiguous()
      end, "columns again")
      check(function(t)
        local z = lt.zeros{40, 240, dtype = dtype, device = t.device}
        return z:t():copy_(t:view(240, 40)):contiguous()
      end, "into a transpose")
    end
  end)
end)

-- ---- creation and rearrangement -----------------------------------------------------------------

local function both(f, label) same(f "cpu", f(device), label) end

describe("creation on CUDA", function()
  it("counts", function()
    for _, dtype in ipairs(DTYPES) do
      if dtype ~= "bool" then
        both(function(d)
          return lt.arange(5, {dtype = dtype, device = d})
        end, "arange of " .. dtype)
        both(function(d)
          return lt.arange(2, 120, 3, {dtype = dtype, device = d})
        end, "by 3 of " .. dtype)
        both(function(d)
          return lt.arange(5, 1, {dtype = dtype, device = d})
        end, "none of " .. dtype)
      end
    end
    both(function(d) return lt.arange(0, 1, 0.001, {device = d}) end, "by 0.001")
    both(function(d) return lt.arange(3, -3, -0.25, {dtype = "float64", device = d}) end, "down")
    both(function(d)
      return lt.arange(math.maxinteger - 3, math.maxinteger, 1, {device = d})
    end, "high")
  end)

  it("divides a stretch", function()
    for _, dtype in ipairs{"int32", "float16", "bfloat16", "float32", "float64"} do
      for _, n in ipairs{0, 1, 2, 7, 600} do
        both(function(d) return lt.linspace(-3, 5, n, {dtype = dtype, device = d}) end,
          n .. " of " .. dtype)
      end
    end
    local x = lt.linspace(0.1, 0.7, 1001, {dtype = "float64", device = device}):to "cpu"
    assert.equal(0.1, x[1]:item())
    assert.equal(0.7, x[1001]:item())
  end)

  it("makes unit matrices, and constants", function()
    for _, dtype in ipairs(DTYPES) do
      for _, size in ipairs{{0, 0}, {1, 1}, {5, 5}, {3, 200}, {200, 3}, {3, 0}} do
        both(function(d)
          return lt.eye(size[1], size[2], {dtype = dtype, device = d})
        end, "eye of " .. dtype)
      end
      both(function(d) return lt.zeros{7, 3, dtype = dtype, device = d} end, "zeros of " .. dtype)
      both(function(d) return lt.ones{7, 301, dtype = dtype, device = d} end, "ones of " .. dtype)
      both(function(d)
        return lt.full({77}, 1, {dtype = dtype, device = d})
      end, "full of " .. dtype)
    end
    both(function(d) return lt.full({1000}, -2.5, {device = d}) end, "full")
  end)
end)

describe("rearrangement on CUDA", function()
  for _, dtype in ipairs(DTYPES) do
    local x = values(dtype, 4 * 5 * 24, 1)
    local y = x:to(device)
    local function check(f, label) same(f(x), f(y), label) end

    it("joins: " .. dtype, function()
      check(function(t) return lt.cat{t, t} end, "vectors")
      for dim = -3, 3 do
        if dim ~= 0 then
          check(function(t)
            local a = t:view(4, 5, 24)
            return lt.cat({a, a:flip(1), a}, dim)
          end, "dim " .. dim)
        end
      end
      check(function(t)
        return lt.cat({t:view(20, 24), t:view(24, 20):t(), t:view(20, 24):narrow(2, 2, 3)}, 2)
      end, "layouts")
      check(function(t)
        return lt.cat({t:narrow(1, 1, 0), t:view(20, 24), t:view(20, 24)}, 1)
      end, "nothing")
      check(function(t) return lt.cat{t, t:to "float32", t:to "uint8"} end, "dtypes")
      check(function(t) return lt.stack({t, t}, 2) end, "stack")
    end)

    it("keeps triangles: " .. dtype, function()
      for _, diagonal in ipairs{-30, -5, -1, 0, 1, 3, 24, 100, math.maxinteger, math.mininteger} do
        for _, name in ipairs{"triu", "tril"} do
          check(function(t) return lt[name](t:view(4, 5, 24), diagonal) end, name .. diagonal)
          check(function(t) return lt[name](t:view(20, 24):t(), diagonal) end, name .. diagonal)
          check(function(t)
            return t:clone():view(24, 20)[name .. "_"](t:clone():view(24, 20), diagonal)
          end,
            name .. "_" .. diagonal)
        end
      end
      check(function(t) return lt.triu(t:narrow(1, 1, 0):view(0, 3)) end, "nothing")
    end)

    it("turns around: " .. dtype, function()
      for _, dims in ipairs{{1}, {2}, {3}, {1, 3}, {1, 2, 3}, {-1}} do
        local label = "flip " .. table.concat(dims, ",")
        check(function(t) return t:view(4, 5, 24):flip(dims) end, label)
        check(function(t)
          return t:view(24, 5, 4):transpose(1, 3):flip(dims)
        end, label .. " transposed")
      end
      check(function(t) return t[1]:flip{} end, "0-d")
      check(function(t) return t:narrow(1, 1, 0):flip(1) end, "nothing")
    end)

    it("rolls: " .. dtype, function()
      for _, shift in ipairs{0, 1, -1, 7, -30, 479, 480, 1000, math.maxinteger, math.mininteger} do
        check(function(t) return t:roll(shift) end, "vector by " .. shift)
        check(function(t) return t:view(24, 20):t():roll(shift) end, "flat by " .. shift)
        check(function(t)
          return t:view(4, 5, 24):roll({shift, 2}, {2, -1})
        end, "two dims by " .. shift)
        check(function(t) return t:view(24, 5, 4):transpose(1, 3):roll({shift, 3}, {2, 2}) end,
          "one dim twice by " .. shift)
      end
      check(function(t) return t[1]:roll(3) end, "0-d")
      check(function(t) return t:narrow(1, 1, 0):roll(3) end, "nothing")
    end)
  end

  it("refuses what the CPU refuses", function()
    local x = lt.zeros{2, 3, device = device}
    for _, f in ipairs{
      function() return x:flip(3) end, function() return x:flip{1, 1} end,
      function() return lt.cat({x, lt.zeros{3, 3, device = device}}, 2) end,
      function() return lt.cat({x}, 5) end, function() return lt.triu(x[1]) end,
      function() return x:roll({1, 2}, {1}) end,
    } do
      assert.is_false((pcall(f)))
    end
  end)
end)
