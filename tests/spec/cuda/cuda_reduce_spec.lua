-- Reductions, running sums and sorting on devices, in the layouts and sizes that the tests of ops
-- do not reach. What the CPU gives is expected: exactly from integers, positions and what is
-- largest, within a tolerance from sums of floats.

local devices = require "device_support"

-- Prints the bits of sums that are rounded.
local BITS = [[
  local lt = require "lutra"
  local device = (os.getenv "LUTRA_EMULATE" or ""):find "^mps" and "mps" or "cuda"
  local x = lt.randn({301, 1003}, {generator = lt.Generator(7)}):to(device)
  for _, y in ipairs {x, x:to "bfloat16", device == "cuda" and x:to "float64" or nil} do
    for _, dims in ipairs {{1}, {2}, {1, 2}} do
      for _, name in ipairs {"sum", "prod", "var", "norm", "logsumexp"} do
        local z = name == "norm" and y:norm(3, dims) or y[name](y, dims)
        z = z:cpu():to "float64"
        local weights = lt.arange(1, z:numel(), {dtype = "float64"}):view(z.shape)
        print(("%s %a"):format(name, (z * weights):sum():item()))
      end
    end
    for dim = 1, 2 do print(("%a"):format(y:cumsum(dim):cpu():to "float64":norm():item())) end
    print(("%a"):format(y:view(-1):cumsum(1):cpu():to "float64":norm():item()))
  end
]]

local options = {
  any = true, emulate = {"cuda:2", "mps"}, reverse = true, memory = "1GiB", bits = BITS,
}
if devices.elsewhere("cuda/cuda_reduce", _ENV, options) then return end

local lt = require "lutra"
local core = require "lutra.core"
local DEVICE = devices.device()

local DTYPES = devices.dtypes {
  "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
}
local FLOATS = devices.dtypes {"float16", "bfloat16", "float32", "float64"}
local TOLERANCE = {float64 = 1e-12, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2}

-- Where sanitizers make everything slow, and on the second type of device, large tensors are for a
-- few of the ops.
local slow = os.getenv "LUTRA_TEST_DEBUG" or DEVICE == "mps"
local function is_skipped(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return slow and n > 10000
end

local function is_float(dtype) return TOLERANCE[dtype] ~= nil end

-- ---- comparing ---------------------------------------------------------------------------------

local function same(want, got, label, scale)
  if type(want) ~= "userdata" then
    assert.equal(want, got, label)
    return
  end
  assert.equal(DEVICE, tostring(got.device), label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(table.concat(want.shape, ","), table.concat(got.shape, ","), label)
  local here, tolerance = got:cpu(), TOLERANCE[want.dtype]
  if not tolerance and not lt.equal(here, want) or tolerance and
    not lt.allclose(here:to "float64", want:to "float64", tolerance, tolerance * (scale or 1),
      true) then
    error(("%s: got\n%s\nwanted\n%s"):format(label, here:view(-1), want:view(-1)), 0)
  end
end

-- The same call on both devices: the same results, or the same message.
local function compare(f, x, label, scale, ...)
  local want, got = table.pack(pcall(f, x, ...)), table.pack(pcall(f, x:to(DEVICE), ...))
  if not want[1] then
    assert.is_false(got[1], label .. ": does not fail as on the CPU")
    assert.equal(tostring(want[2]), tostring(got[2]), label)
    return
  end
  if not got[1] then error(label .. ": " .. tostring(got[2]), 0) end
  assert.equal(want.n, got.n, label)
  for i = 2, want.n do same(want[i], got[i], label .. ", result " .. i - 1, scale) end
end

-- ---- inputs ------------------------------------------------------------------------------------

lt.manual_seed(3)

-- Numbers with many equals among them.
local numbers
function numbers(dtype, ...)
  if select("#", ...) == 0 then return numbers(dtype, 1):view{} end
  if dtype == "bool" then return lt.randint(0, 1, {...}):to "bool" end
  if is_float(dtype) then return (lt.randint(-20, 20, {...}):to "float64" / 8):to(dtype) end
  return lt.randint(dtype == "uint8" and 0 or -9, 9, {...}):to(dtype)
end
-- Numbers that are seldom equal and whose sums are rounded.
local function noise(dtype, ...)
  if not is_float(dtype) then return numbers(dtype, ...) end
  return lt.randn{...}:to(dtype)
end
-- Numbers whose product is neither 0 nor large.
local function near_one(dtype, ...)
  if not is_float(dtype) then return numbers(dtype, ...) end
  return (lt.rand{...} * 0.2 + 0.9):to(dtype)
end

-- A tensor laid out in memory in another way.
local LAYOUTS = {
  dense = function(x) return x end,
  ["first and last dim exchanged"] = function(x)
    return x:transpose(1, -1):contiguous():transpose(1, -1)
  end,
  ["dims rotated"] = function(x)
    local there, back = {}, {}
    for d = 1, #x.shape do there[d] = d % #x.shape + 1 end
    for d = 1, #x.shape do back[there[d]] = d end
    return x:permute(there):contiguous():permute(back)
  end,
  gaps = function(x) return lt.stack({x, x}, -1)[{"...", 1}] end,
  ["odd offset"] = function(x)
    return lt.cat{lt.zeros_like(x):view(-1):narrow(1, 1, 1), x:reshape(-1)}
      :narrow(1, 2, x:numel()):view(x.shape)
  end,
  broadcast = function(x) return x:narrow(1, 1, 1):expand(x.shape) end,
}
local LAYOUT_NAMES = {}
for name in pairs(LAYOUTS) do LAYOUT_NAMES[#LAYOUT_NAMES + 1] = name end
table.sort(LAYOUT_NAMES)

-- Every set of dims of a tensor.
local function subsets(ndim)
  local all = {}
  for mask = 1, (1 << ndim) - 1 do
    local dims = {}
    for d = 1, ndim do
      if mask >> (d - 1) & 1 == 1 then dims[#dims + 1] = d end
    end
    all[#all + 1] = dims
  end
  return all
end

local ops = core._ops
local FOLDS = {
  {name = "sum", make = noise, dtypes = DTYPES},
  {name = "mean", make = noise, dtypes = FLOATS},
  {name = "prod", make = near_one, dtypes = DTYPES},
  {name = "amax", make = noise, dtypes = DTYPES},
  {name = "amin", make = noise, dtypes = DTYPES},
  {name = "all", make = numbers, dtypes = DTYPES},
  {name = "any", make = numbers, dtypes = DTYPES},
  {name = "count_nonzero", make = numbers, dtypes = DTYPES, no_keepdim = true},
  {name = "_var", make = noise, dtypes = FLOATS, last = {1}},
  {name = "_var", make = noise, dtypes = FLOATS, last = {0}},
  {name = "_norm", make = noise, dtypes = FLOATS, last = {2}},
  {name = "_norm", make = noise, dtypes = FLOATS, last = {1}},
  {name = "_norm", make = noise, dtypes = FLOATS, last = {3.5}},
  {name = "_norm", make = near_one, dtypes = FLOATS, last = {-1}},
  {name = "_norm", make = numbers, dtypes = FLOATS, last = {0}},
  {name = "_norm", make = noise, dtypes = FLOATS, last = {math.huge}},
  {name = "_norm", make = noise, dtypes = FLOATS, last = {-math.huge}},
  {name = "logsumexp", make = noise, dtypes = DTYPES},
}
-- Of one dim, with positions.
local LINES = {"argmax", "argmin", "_max", "_min"}

local function sizes(shape) return table.concat(shape, "x") end
local function title(op)
  return op.last and ("%s(%s)"):format(op.name, op.last[1]) or op.name
end
local function compare_fold(op, x, dims, keepdim, label)
  local dims_label = dims and table.concat(dims, ",") or "all"
  label = ("%s over %s%s of %s"):format(title(op), dims_label, keepdim and " (kept)" or "", label)
  local scale = math.max(1, math.sqrt(x:numel()))
  if op.no_keepdim then return compare(ops[op.name], x, label, scale, dims) end
  compare(ops[op.name], x, label, scale, dims, keepdim, table.unpack(op.last or {}))
end

describe("reductions on a device", function()
  for _, op in ipairs(FOLDS) do
    it("give what the CPU gives: " .. title(op), function()
      for _, dtype in ipairs(op.dtypes) do
        local x = op.make(dtype, 3, 8, 5, 12)
        local all = dtype == "float32" or dtype == "bfloat16" or dtype == "int16"
        for _, name in ipairs(all and LAYOUT_NAMES or {"dims rotated", "gaps"}) do
          local y = LAYOUTS[name](x)
          for i, dims in ipairs(subsets(4)) do
            compare_fold(op, y, dims, i % 2 == 0, dtype .. ", " .. name)
          end
        end
      end
    end)

    it("takes odd shapes: " .. title(op), function()
      local dtypes = {op.dtypes[1], "float16", "float32", "float64", "int64"}
      for _, dtype in ipairs(devices.dtypes(dtypes)) do
        if op.dtypes == DTYPES or is_float(dtype) then
          local label = dtype
          compare_fold(op, op.make(dtype), op.name == "logsumexp" and {} or nil, false, label)
          compare_fold(op, op.make(dtype, 1), {1}, true, label)
          compare_fold(op, op.make(dtype, 1, 7, 1), {1, 3}, false, label)
          compare_fold(op, op.make(dtype, 1, 7, 1), {-2}, false, label)
          compare_fold(op, op.make(dtype, 4, 0), {2}, false, label .. ", empty")
          compare_fold(op, op.make(dtype, 4, 0), {1}, false, label .. ", empty")
          compare_fold(op, op.make(dtype, 0), {1}, true, label .. ", empty")
          local mixed = op.make(dtype, 2, 2, 2, 2, 2, 2, 2):permute{7, 1, 6, 2, 5, 3, 4}
          compare_fold(op, mixed, {1, 4, 5}, false, label)
        end
      end
    end)
  end

  it("take sizes on both sides of each way of sharing the work", function()
    local shapes = {
      {1031}, {2048}, {5000}, {300001}, {300000}, {3, 100000}, {5, 33}, {700, 8}, {700, 9},
      {1000, 31}, {40, 513}, {40, 2049}, {100000, 3}, {20000, 33}, {9, 20000}, {2, 3000, 7},
      {64, 64, 49}, {70000, 2}, {1, 1000, 130},
    }
    local function compare_shape(op, shape)
      local dtypes = {"float32", op.dtypes == DTYPES and "uint8" or "bfloat16"}
      if op.name == "prod" then dtypes[1] = "int32" end
      for _, dtype in ipairs(dtypes) do
        local x = op.make(dtype, table.unpack(shape))
        for _, dims in ipairs(subsets(#shape)) do
          compare_fold(op, x, dims, false, dtype .. " " .. sizes(shape))
        end
      end
    end
    for _, op in ipairs(FOLDS) do
      if not op.last or op.last[1] ~= 3.5 then
        for _, shape in ipairs(shapes) do
          if op.name == "sum" or not is_skipped(shape) then compare_shape(op, shape) end
        end
      end
    end
  end)

  it("cast first where a dtype is asked for", function()
    for _, name in ipairs {"sum", "mean", "prod"} do
      for _, from in ipairs(DTYPES) do
        for _, to in ipairs(DTYPES) do
          if name ~= "mean" or is_float(to) then
            local x = near_one(from, 6, 9)
            compare(ops[name], x, ("%s of %s as %s"):format(name, from, to), 10, {2}, false, to)
          end
        end
      end
    end
  end)

  it("let NaN win, and know infinities", function()
    local nan, inf = 0 / 0, math.huge
    local rows = {
      {1, nan, 3, 2}, {nan, nan, 0, 1}, {inf, 1, -inf, 2}, {-inf, -inf, -inf, -inf},
      {inf, inf, 1, 0}, {-inf, 1, 2, nan}, {-0.0, 0.0, -0.0, 0.0}, {1e38, 3e38, 3e38, 3e38},
      {-inf, 5, 1, 0},
    }
    for _, dtype in ipairs(devices.dtypes {"float32", "float64", "float16", "bfloat16"}) do
      local x = lt.tensor(rows, {dtype = dtype})
      for _, y in ipairs {x, x:t():contiguous():t(), lt.cat({x, x, x, x, x}, 2)} do
        for _, op in ipairs(FOLDS) do compare_fold(op, y, {2}, false, dtype .. " with NaN") end
        for _, name in ipairs(LINES) do
          compare(ops[name], y, name .. " with NaN", 1, 2)
          compare(ops[name], y:t(), name .. " with NaN, columns", 1, 1)
        end
      end
      local long = noise(dtype, 5000)
      long[4000] = nan
      long[4500] = nan
      for _, op in ipairs(FOLDS) do compare_fold(op, long, {1}, false, dtype .. ", a late NaN") end
      for _, name in ipairs(LINES) do compare(ops[name], long, name .. ", a late NaN", 1, 1) end
    end
    compare_fold({name = "sum"}, lt.full({70000}, inf), {1}, false, "infinities")
    compare_fold({name = "sum"}, lt.full({70000}, 1e38), {1}, false, "more than there is")
  end)

  it("say where the first of equals is", function()
    for _, dtype in ipairs(DTYPES) do
      local x = numbers(dtype, 5, 7, 6)
      for _, name in ipairs(LAYOUT_NAMES) do
        local y = LAYOUTS[name](x)
        for _, op in ipairs(LINES) do
          for dim = -3, 3 do
            if dim ~= 0 then
              local label = ("%s of %s along %d, %s"):format(op, dtype, dim, name)
              compare(ops[op], y, label, 1, dim, dim > 1)
            end
          end
          if op:find "arg" then compare(ops[op], y, ("%s of %s, %s"):format(op, dtype, name)) end
        end
      end
      for _, shape in ipairs {{300000}, {100001}, {3, 5000}, {700, 3}, {5, 300, 40}} do
        local z = numbers(dtype, table.unpack(shape))
        for _, op in ipairs(LINES) do
          for dim = 1, #shape do
            compare(ops[op], z, ("%s of %s %s"):format(op, dtype, sizes(shape)), 1, dim)
          end
          if op:find "arg" then compare(ops[op], z, op .. " of all, " .. dtype) end
        end
      end
    end
    for _, op in ipairs(LINES) do
      compare(ops[op], lt.tensor(5.0), op .. ", 0-d", 1, 1)
      compare(ops[op], lt.zeros(0, 3), op .. ", nothing to choose from", 1, 2)
    end
  end)

  it("sum many small floats to the last digits", function()
    local n = 3000000
    for _, shape in ipairs {{n}, {n // 4, 4}} do
      local x = lt.full(shape, 0.1, {device = DEVICE})
      local sum, exact = x:sum():item(), lt.tensor(0.1):item() * n
      assert.is_true(math.abs(sum - exact) < 2e-7 * exact, ("%.9g, not %.9g"):format(sum, exact))
    end
    local columns = lt.full({300000, 3}, 0.1, {device = DEVICE}):sum(1):cpu()
    local exact = lt.tensor(0.1):item() * 300000
    assert.is_true(math.abs(columns[1]:item() - exact) < 2e-7 * exact)
  end)

  it("find the variance far from 0", function()
    for _, dtype in ipairs(devices.dtypes {"float32", "float64"}) do
      local x = lt.randn{50, 3000}:to(dtype) + 10000
      compare_fold({name = "_var", last = {1}}, x, {2}, false, dtype)
      compare_fold({name = "_var", last = {1}}, x, {1}, false, dtype)
      compare_fold({name = "_var", last = {1}}, x, {1, 2}, false, dtype)
      compare_fold({name = "_var", last = {5}}, x:narrow(2, 1, 3), {2}, false, dtype)
    end
  end)

  it("give the same bits on every run", function()
    local x = lt.randn({517, 1003}, {device = DEVICE})
    for _, name in ipairs {"sum", "prod", "logsumexp", "_var", "_norm"} do
      for _, dims in ipairs {{1}, {2}, {1, 2}} do
        local first = ops[name](x, dims)
        for _ = 1, 3 do assert.is_true(lt.equal(first, ops[name](x, dims)), name) end
      end
    end
  end)
end)

-- ---- scans -------------------------------------------------------------------------------------

-- Calls fn(dtype, layout, dim, label) for all dtypes and layouts, and the dims of three, from both
-- ends.
local function along_each_dim(fn)
  for _, dtype in ipairs(DTYPES) do
    for _, name in ipairs(LAYOUT_NAMES) do
      for _, dim in ipairs {-3, -2, -1, 1, 2, 3} do
        fn(dtype, LAYOUTS[name], dim, ("%s along %d, %s"):format(dtype, dim, name))
      end
    end
  end
end

describe("cumsum and cumprod on a device", function()
  it("give what the CPU gives", function()
    along_each_dim(function(dtype, layout, dim, label)
      compare(ops.cumsum, layout(noise(dtype, 3, 11, 4)), "cumsum of " .. label, 10, dim)
      compare(ops.cumprod, layout(near_one(dtype, 3, 11, 4)), "cumprod of " .. label, 10, dim)
    end)
  end)

  it("take sizes on both sides of each way of sharing the work", function()
    local shapes = {
      {7}, {8}, {9}, {255}, {257}, {2048}, {2049}, {16384}, {16385}, {300001}, {3, 40000},
      {100, 70}, {3000, 5}, {70, 300}, {2, 65, 3}, {65, 17000}, {0}, {3, 0},
    }
    for _, dtype in ipairs(devices.dtypes {"float32", "uint8", "int64", "float64", "bfloat16"}) do
      for _, shape in ipairs(shapes) do
        local n = 1
        for _, size in ipairs(shape) do n = n * size end
        if dtype == "float32" or n < 400000 and not is_skipped(shape) then
          for dim = 1, #shape do
            local label = ("%s %s along %d"):format(dtype, sizes(shape), dim)
            local x, y = noise(dtype, table.unpack(shape)), near_one(dtype, table.unpack(shape))
            compare(ops.cumsum, x, "cumsum " .. label, 1000, dim)
            compare(ops.cumprod, y, "cumprod " .. label, 10, dim)
          end
        end
      end
    end
  end)

  it("cast first, take 0-d, and continue after NaN and infinities", function()
    for _, to in ipairs(DTYPES) do
      compare(ops.cumsum, noise("float32", 5, 3), "as " .. to, 1, 1, to)
      compare(ops.cumprod, numbers("int16", 5, 3), "as " .. to, 1, 1, to)
    end
    compare(ops.cumsum, lt.tensor(3), "0-d", 1, 1)
    compare(ops.cumsum, lt.tensor{1, math.huge, 2, -math.huge, 5}, "infinities", 1, 1)
    compare(ops.cumsum, lt.tensor{1, 0 / 0, 2}, "NaN", 1, 1)
  end)
end)

describe("cummax and cummin on a device", function()
  it("give what the CPU gives, of ties the last one", function()
    along_each_dim(function(dtype, layout, dim, label)
      local x = layout(numbers(dtype, 3, 11, 4))
      compare(ops.cummax, x, "cummax of " .. label, 1, dim)
      compare(ops.cummin, x, "cummin of " .. label, 1, dim)
    end)
  end)

  it("take sizes on both sides of each way of sharing the work", function()
    local shapes = {
      {64}, {65}, {1024}, {1025}, {8192}, {300001}, {3, 40000}, {20000, 70}, {70, 20000},
      {2, 65, 3}, {0}, {3, 0},
    }
    for _, dtype in ipairs(devices.dtypes {"float32", "uint8", "int64", "float64"}) do
      for _, shape in ipairs(shapes) do
        if not is_skipped(shape) then
          for dim = 1, #shape do
            local label = ("%s %s along %d"):format(dtype, sizes(shape), dim)
            local op = dim % 2 == 1 and ops.cummax or ops.cummin
            compare(op, noise(dtype, table.unpack(shape)), label, 1, dim)
          end
        end
      end
    end
  end)

  it("continue after NaN and infinities, and find what is far before", function()
    local x = lt.zeros(20000)
    x[3], x[9000] = 5, 5
    compare(ops.cummax, x, "few maxima", 1, 1)
    compare(ops.cummin, -x, "few minima", 1, 1)
    x[12000], x[12001] = 0 / 0, 7
    compare(ops.cummax, x, "NaN", 1, 1)
    compare(ops.cummin, x, "NaN", 1, 1)
    compare(ops.cummax, lt.tensor{-math.huge, 1, 0 / 0, 2, 0 / 0, math.huge}, "NaN twice", 1, 1)
    compare(ops.cummax, lt.tensor(3), "0-d", 1, 1)
  end)
end)

-- ---- sorting -----------------------------------------------------------------------------------

describe("sort and topk on a device", function()
  it("give what the CPU gives", function()
    along_each_dim(function(dtype, layout, dim, label)
      local x = layout(numbers(dtype, 5, 9, 4))
      compare(ops.sort, x, "sort " .. label, 1, dim, dim > 0)
      compare(ops.topk, x, "topk " .. label, 1, 3, dim, dim > 0)
    end)
  end)

  it("keep the order of equals, in both directions, in rows of all lengths", function()
    local shapes = {
      {1}, {2}, {33}, {2048}, {2049}, {70001}, {3, 5000}, {1000, 7}, {4097, 3}, {300, 64},
      {2, 2100, 3}, {0}, {2, 0},
    }
    local dtypes = {"bool", "int16", "float32", "float64", "int64", "bfloat16"}
    for _, dtype in ipairs(devices.dtypes(dtypes)) do
      for _, shape in ipairs(shapes) do
        for dim = 1, dtype ~= "float32" and is_skipped(shape) and 0 or #shape do
          local x, n = numbers(dtype, table.unpack(shape)), shape[dim]
          local label = ("%s %s along %d"):format(dtype, sizes(shape), dim)
          compare(ops.sort, x, "sort " .. label, 1, dim)
          compare(ops.sort, x, "sort down " .. label, 1, dim, true)
          for _, k in ipairs {0, 1, 5, 256, 257, n} do
            if k <= n then
              compare(ops.topk, x, ("topk %d of %s"):format(k, label), 1, k, dim)
              compare(ops.topk, x, ("topk %d smallest of %s"):format(k, label), 1, k, dim, false)
            end
          end
        end
      end
    end
  end)

  it("put NaN with the largest and -0 with 0", function()
    local nan, inf = 0 / 0, math.huge
    for _, dtype in ipairs(FLOATS) do
      local x = lt.tensor({0.0, nan, -0.0, inf, 1, -inf, -1, nan, 0.0, -0.0, -5, 1e-5, -1e-5},
        {dtype = dtype})
      for _, y in ipairs {x, x:view(-1, 1), lt.cat{x, numbers(dtype, 3000), x}} do
        for _, descending in ipairs {false, true} do
          compare(ops.sort, y, dtype, 1, 1, descending)
          compare(ops.topk, y, dtype, 1, 10, 1, descending)
          local values = ops.sort(y:to(DEVICE), 1, descending):cpu():view(-1)
          local want = ops.sort(y, 1, descending):view(-1)
          for i = 1, y:numel() do -- the sign of 0 too
            assert.equal(tostring(want[i]:item()), tostring(values[i]:item()))
          end
        end
      end
    end
  end)

  it("know the ends of integers", function()
    local ends = {
      int8 = {-128, 127}, int16 = {-32768, 32767}, int32 = {-2147483648, 2147483647},
      int64 = {math.mininteger, math.maxinteger}, uint8 = {0, 255},
    }
    for dtype, pair in pairs(ends) do
      local x = lt.tensor({1, pair[1], 0, pair[2], pair[1], 5, pair[2]}, {dtype = dtype})
      compare(ops.sort, x, dtype, 1, 1)
      compare(ops.sort, x, dtype, 1, 1, true)
      for _, op in ipairs {"amax", "amin"} do compare(ops[op], x, dtype .. " " .. op, 1, {1}) end
      for _, op in ipairs(LINES) do compare(ops[op], x, dtype .. " " .. op, 1, 1) end
    end
  end)
end)
