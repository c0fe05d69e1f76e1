-- Statistics, sorting, searching, histograms and masked reductions: errors, complex numbers, and
-- results too large for tables of expected values.
local lt = require "lutra"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  return message
end
local function says(text, f, ...)
  assert.equal(text, (message_of(f, ...):gsub("^.-%.lua:%d+: ", "")))
end

local x = lt.tensor{{1.0, 2, 3}, {4, 5, 6}}
local whole = lt.tensor{1, 2, 3}

describe("errors name op, argument, expected and actual value:", function()
  it("dims", function()
    says("median: cannot use dim 3: it is out of range, the tensor has 2 dimensions", lt.median, x,
      3)
    says("mode: cannot use dim -3: it is out of range, the tensor has 2 dimensions", lt.mode, x, -3)
    says("var_mean: cannot use dim 3: it is out of range, the tensor has 2 dimensions", lt.var_mean,
      x, 3)
    says("std_mean: expected each dim once, got dim 1 twice", lt.std_mean, x, {1, -2})
    says("nanmean: cannot use dim 3: it is out of range, the tensor has 2 dimensions", lt.nanmean,
      x, 3)
    says("gradient: expected a size of at least 3 in dim 1, got 2", lt.gradient, x,
      {edge_order = 2})
    says("diff: expected a tensor of at least 1 dim for argument 'self', got {}", lt.diff,
      lt.tensor(1))
    says("renorm: expected a tensor of at least 2 dims for argument 'self', got {3}", lt.renorm,
      lt.ones(3), 2, 1, 1)
    says("cov: expected a tensor of at most 2 dims for argument 'self', got {1, 2, 3}", lt.cov,
      lt.ones(1, 2, 3))
  end)

  it("dtypes", function()
    local float = 'expected a float dtype, got "int64"\nhint: x:to("float32")'
    says("norm: " .. float, lt.norm, whole)
    says("dist: " .. float, lt.dist, whole, whole)
    says("nanmean: " .. float, lt.nanmean, whole)
    says("var_mean: " .. float, lt.var_mean, whole)
    says("std_mean: " .. float, lt.std_mean, whole)
    says('quantile: expected the dtype "float32" or "float64" for argument \'self\', got "int64"',
      lt.quantile, whole, 0.5)
    says('quantile: expected the dtype "float32" for argument \'q\', got "float64"', lt.quantile, x,
      lt.tensor({0.5}, {dtype = "float64"}))
    says('histc: expected a float dtype for argument \'self\', got "int64"', lt.histc, whole)
    says('bincount: expected an integer dtype for argument \'self\', got "float32"', lt.bincount,
      x[1])
  end)

  it("numbers", function()
    says("kthvalue: expected a rank from 1 to 3, the size of dim 2, for argument 'k', got 4",
      lt.kthvalue, x, 4)
    says("quantile: expected a number from 0 to 1 for argument 'q', got 1.5", lt.quantile, x, 1.5)
    says("bincount: expected values from 1 on for argument 'self', got 0", lt.bincount,
      lt.tensor{0, 1})
    says("histc: expected an integer of at least 1 for argument 'bins', got 0", lt.histc, x, 0)
    says("histc: expected a range in ascending order, got 2 to 1", lt.histc, x, 5, 2, 1)
    says("renorm: expected a number above 0 for argument 'p', got 0", lt.renorm, x, 0, 1, 1)
    says("norm: expected a number, 'fro' or 'nuc' for argument 'p', got the string \"two\"",
      lt.norm, x, "two")
    says("gradient: expected 1 or 2 for argument 'edge_order', got 3", lt.gradient, x,
      {edge_order = 3})
  end)

  it("shapes", function()
    says("searchsorted: expected a vector, or the dims of {3} but the last, for argument "
      .. "'sorted_sequence', got {2, 3}", lt.searchsorted, x, lt.ones(3))
    says("bucketize: expected a vector for argument 'boundaries', got {2, 3}", lt.bucketize, 1.0, x)
    says("cov: expected a vector of 3 elements for argument 'fweights', got {2}", lt.cov, x,
      {fweights = lt.tensor{1, 2}})
    says("histogram: expected the shape {2, 3} for argument 'weight', got {3}", lt.histogram, x, 2,
      {weight = lt.ones(3)})
    says("trapezoid: expected 3 elements, the size of dim 2 of 'y', for argument 'x', got 2",
      lt.trapezoid, x, lt.ones(2))
    says("segment_reduce: expected lengths whose sum is 2, the size of dim 1 of argument 'data'",
      lt.segment_reduce, x, "sum", {lengths = lt.tensor{1, 2}})
    says("median: cannot reduce dim 1 of {0, 3}: its size is 0", lt.median, lt.ones(0, 3), 1)
    says("aminmax: cannot reduce dim 1 of {0}: its size is 0", lt.aminmax, lt.ones(0))
  end)

  it("choices", function()
    says("searchsorted: expected 'right' for argument 'side' where right is true, got 'left'",
      lt.searchsorted, lt.ones(2), 1.0, {right = true, side = "left"})
    says("segment_reduce: expected argument 'lengths' or 'offsets', got neither", lt.segment_reduce,
      x, "sum")
    says("trapezoid: expected argument 'x' or 'dx', got both", lt.trapezoid, x, x, 2)
  end)
end)

-- Complex numbers: the ops on lists of pairs, computed in Lua.
describe("of complex numbers", function()
  local re = lt.tensor({{1, -0.5, 2}, {0.25, 3, -1}}, {dtype = "float64"})
  local im = lt.tensor({{0.5, 1, -2}, {-1, 0.5, 0.75}}, {dtype = "float64"})
  local z = lt.complex(re, im)

  local function near(expected, got)
    assert.equal("complex128", got.dtype)
    local distance = (lt.real(got) - expected[1]):abs():amax():item()
      + (lt.imag(got) - expected[2]):abs():amax():item()
    assert.is_true(distance < 1e-12, distance)
  end
  -- The product of lists of elements of z, as a pair.
  local function product(indices)
    local a, b = 1, 0
    for _, index in ipairs(indices) do
      local c, d = re[index]:item(), im[index]:item()
      a, b = a * c - b * d, a * d + b * c
    end
    return {a, b}
  end

  it("prod and cumprod multiply", function()
    near(product{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}}, z:prod())
    near(product{{2, 1}, {2, 2}, {2, 3}}, z:prod(2)[2])
    near(product{{1, 2}, {2, 2}}, z:cumprod(1)[{2, 2}])
    near(product{{1, 1}, {1, 2}, {1, 3}}, z:cumprod(2)[{1, 3}])
    near(product{{1, 1}, {1, 2}, {1, 3}}, z:clone():cumprod_(2)[{1, 3}])
    assert.equal("{1, 3}", tostring(z:prod{dim = 1, keepdim = true}.shape))
    near({1, 0}, lt.zeros{0, dtype = "complex128"}:prod())
  end)

  it("long scans have the sums of the parts, and the products of the elements before", function()
    for _, dtype in ipairs {"complex64", "complex128"} do
      for _, shape in ipairs {{9, 70}, {2, 9000}, {9000}, {70, 9}} do
        local v = lt.randn(shape, {dtype = dtype})
        v = v / v:abs()
        for dim = 1, #shape do
          local n, sums, products = shape[dim], v:cumsum(dim), v:cumprod(dim)
          local parts = lt.complex(lt.real(v):cumsum(dim), lt.imag(v):cumsum(dim))
          assert.is_true((sums - parts):abs():max():item() < 1e-4)
          local before = products:narrow(dim, 1, n - 1) * v:narrow(dim, 2, n - 1)
          assert.is_true((products:narrow(dim, 2, n - 1) - before):abs():max():item() < 1e-6)
        end
      end
    end
  end)

  it("scans have gradients", function()
    local w = lt.randn(3, 4, {dtype = "complex128"}):requires_grad_()
    for dim = 1, 2 do
      assert.is_true(lt.autograd.gradcheck(function(v) return v:cumsum(dim) end, {w}))
      assert.is_true(lt.autograd.gradcheck(function(v) return v:cumprod(dim) end, {w}))
      assert.is_true(lt.autograd.gradgradcheck(function(v) return v:cumprod(dim) end, {w}))
    end
  end)

  it("variances add", function()
    local expected = re:var() + im:var()
    assert.equal("float64", z:var().dtype)
    assert.is_true((z:var() - expected):abs():item() < 1e-12)
    assert.is_true((z:std() - expected:sqrt()):abs():item() < 1e-12)
  end)

  it("logsumexp is the logarithm of a sum", function()
    local direct = z:exp():sum(2):log()
    near({lt.real(direct), lt.imag(direct)}, z:logsumexp(2))
    assert.equal(1000, lt.real((z * 0 + 1000):logsumexp(1)):floor()[1]:item())
  end)

  it("logcumsumexp adds elements one by one", function()
    local sums, scan = z:exp():cumsum(2), z:logcumsumexp(2)
    near({lt.real(sums), lt.imag(sums)}, scan:exp())
    -- the imaginary part grows beyond pi, as that of the elements does
    local turning = lt.complex(lt.zeros(4), lt.arange(1, 4) * 3.0):logcumsumexp(1)
    assert.is_true(lt.imag(turning):amax():item() > 4)
  end)

  it("a power of -1 is the reciprocal", function()
    assert.is_true((z:pow(-1) - z:reciprocal()):abs():amax():item() == 0)
    assert.is_true((z:pow(-1) * z - 1):abs():amax():item() < 1e-12)
  end)

  it("norms are of moduli", function()
    assert.is_true((z:norm() - z:abs():norm()):abs():item() < 1e-12)
    assert.equal("float64", z:norm(1).dtype)
  end)
end)

describe("large inputs", function()
  it("give the unique values that a table gives", function()
    lt.manual_seed(3)
    local data = lt.randint(1, 500, {4000})
    local seen, distinct = {}, 0
    for _, v in ipairs(data:totable()) do
      if not seen[v] then distinct = distinct + 1 end
      seen[v] = (seen[v] or 0) + 1
    end
    local values, inverse, counts = lt.unique(data, {return_inverse = true, return_counts = true})
    assert.equal(distinct, values:size(1))
    assert.is_true(lt.equal(values[inverse], data))
    assert.is_true(lt.equal(counts, lt.bincount(data)[values]))
    for i, v in ipairs(values:totable()) do assert.equal(seen[v], counts[i]:item()) end
  end)

  it("give the unique rows in order", function()
    lt.manual_seed(4)
    local rows = lt.randint(1, 3, {300, 5})
    local values, inverse = lt.unique(rows, {dim = 1, return_inverse = true})
    assert.is_true(lt.equal(values:index_select(1, inverse), rows))
    local last = ""
    for _, row in ipairs(values:totable()) do
      local text = table.concat(row)
      assert.is_true(last < text)
      last = text
    end
  end)

  it("are searched where sort puts their values", function()
    lt.manual_seed(5)
    local sorted, values = lt.rand(1000):sort(), lt.rand(70000)
    local at = lt.searchsorted(sorted, values)
    local padded = lt.cat{lt.tensor{-1.0}, sorted, lt.tensor{2.0}}
    assert.is_true((padded[at]:lt(values)):all():item())
    assert.is_true((padded[at + 1]:ge(values)):all():item())
  end)

  it("are counted as smaller ones are", function()
    lt.manual_seed(6)
    local data = lt.randint(1, 9, {300000})
    local counts = lt.bincount(data)
    for k = 1, 9 do assert.equal(data:eq(k):sum():item(), counts[k]:item()) end
    local bins = lt.histc(data:float(), 4, 2, 8)
    assert.same({0, 0, 0, 0}, (bins - lt.tensor{
      counts[2] + counts[3], counts[4], counts[5] + counts[6], counts[7] + counts[8]}):totable())
  end)
end)

describe("histograms", function()
  it("count each element in its bin, and none outside", function()
    lt.manual_seed(8)
    for _, dtype in ipairs {"float32", "float64"} do
      for _, n in ipairs {1, 3, 600, 200000} do
        local data = lt.randint(-40, 140, {n}):to(dtype) / 8
        if n > 1 then data[1], data[2] = lt.nan, 10 end
        local found, edge = lt.histc(data, 20, 0, 10), 10
        assert.equal(dtype, found.dtype)
        for k = 1, 20 do
          local low, high = edge * (k - 1) / 20, edge * k / 20
          local inside = data:ge(low):logical_and(k == 20 and data:le(high) or data:lt(high))
          assert.equal(inside:sum():item(), found[k]:item())
        end
      end
    end
  end)

  it("span the range of the data", function()
    assert.same({2, 1, 0, 1}, lt.histc(lt.tensor{1., 2, 1, 4}, 4):totable())
    assert.same({0, 0, 3, 0}, lt.histc(lt.full({3}, 2.5), 4):totable())
  end)
end)

describe("indices of triangles", function()
  it("are those of the elements of a triangle of ones", function()
    for _, shape in ipairs {{1, 1}, {7, 4}, {4, 7}, {300, 211}, {0, 3}} do
      local row, col = table.unpack(shape)
      for _, offset in ipairs {0, 1, -1, 3, -3, 100, -100, 1000000, -1000000} do
        local ones = lt.ones(row, col)
        for which, f in pairs {tril = lt.tril_indices, triu = lt.triu_indices} do
          local expected = ones[which](ones, offset):nonzero():t()
          local found = f(row, col, offset)
          assert.same({expected.shape[1], expected.shape[2]}, {found.shape[1], found.shape[2]})
          assert.is_true(found:eq(expected):all():item())
        end
      end
    end
    assert.equal("float32", lt.triu_indices(2, 2, 0, "float32").dtype)
  end)

  it("need a shape", function()
    says("tril_indices: expected an integer of at least 0 for argument 'row', got -1",
      lt.tril_indices, -1, 2)
    says("triu_indices: expected an integer of at least 0 for argument 'col', got -2",
      lt.triu_indices, 1, -2)
  end)
end)

describe("reductions of views with holes or overlaps in memory", function()
  lt.manual_seed(7)
  local data = lt.randint(-9, 9, {120, 700}):float()
  local long = lt.randint(-9, 9, {3, 70000}):float()
  local views = {
    rows = data:narrow(2, 5, 600), columns = data:t():narrow(1, 5, 600),
    windows_of_rows = data:unfold(1, 3, 1), windows_of_columns = data:unfold(2, 40, 3),
    short_windows = data:unfold(2, 3, 1), repeated = data:unsqueeze(2):expand(120, 2, 700),
    cube = data:view(4, 30, 700):narrow(2, 2, 20):transpose(1, 3), long = long:narrow(2, 1, 69999),
    long_windows = long:unfold(1, 2, 1), half = data:half():narrow(2, 3, 500),
    integers = data:int():narrow(2, 3, 500),
  }
  for name, view in pairs(views) do
    it("equal those of a contiguous copy: " .. name, function()
      local copy = view:contiguous()
      local dims = {{1}, {view.ndim}, {1, view.ndim}, {1, 2}}
      assert.equal(copy:sum():item(), view:sum():item())
      assert.equal(copy:amax():item(), view:amax():item())
      for _, dim in ipairs(dims) do
        assert.is_true(lt.equal(copy:sum(dim), view:sum(dim)))
        assert.is_true(lt.equal(copy:amin(dim, true), view:amin(dim, true)))
      end
    end)
  end
end)

describe("selection by rank", function()
  -- Compares kthvalue and the medians along a dim with the stable sort.
  local function check(data, dim)
    local n, nan = data:size(dim), data:ne(data)
    local sorted, order = data:sort{dim = dim, stable = true}
    local function same(k, value, index)
      local text = ("rank %d along dim %d of %s %s"):format(k, dim, data.dtype, data.shape)
      assert.is_true(lt.equal(index, order:narrow(dim, k, 1)), text)
      assert.is_true(lt.equal(value:nan_to_num(9), sorted:narrow(dim, k, 1):nan_to_num(9)), text)
    end
    for _, k in ipairs{1, n // 3 + 1, n // 2 + 1, n} do same(k, data:kthvalue(k, dim, true)) end
    for _, k in ipairs{1, n // 9, n // 2} do -- few elements are found in another way
      local values, indices = data:topk(k, dim, false)
      assert.is_true(lt.equal(indices, order:narrow(dim, 1, k)))
      assert.is_true(values:nan_to_num(9):equal(sorted:narrow(dim, 1, k):nan_to_num(9)))
    end
    if not nan:any():item() then
      same((n + 1) // 2, data:median(dim, true))
      same((n + 1) // 2, data:nanmedian(dim, true))
    elseif data.ndim == 1 then
      local numbers = n - nan:sum():item()
      same(numbers + 1, data:median(dim, true))
      same(math.max(1, (numbers + 1) // 2), data:nanmedian(dim, true))
    end
  end

  local function each_shape(make)
    local shapes = {{1}, {33}, {1000}, {20000}, {3, 4}, {50, 60}, {7, 300, 5}, {200, 1, 40}}
    for _, shape in ipairs(shapes) do
      local data = make(shape)
      for d = 1, #shape do check(data, d) end
      if #shape == 2 then check(data:t(), 1) end
    end
  end

  for _, dtype in ipairs{"float32", "float64", "float16", "bfloat16"} do
    it("finds the elements that sort finds: " .. dtype, function()
      each_shape(function(shape) return lt.randn(shape):to(dtype) end)
      each_shape(function(shape) return (2 * lt.randn(shape)):round():to(dtype) end)
      each_shape(function(shape)
        local data = lt.randn(shape)
        return lt.where(data:gt(0.5), lt.nan, lt.where(data:lt(-1), -0.0, data)):to(dtype)
      end)
      each_shape(function(shape) return lt.full(shape, lt.nan, {dtype = dtype}) end)
    end)
  end

  for _, dtype in ipairs{"int64", "int32", "int16", "int8", "uint8", "bool"} do
    it("finds the elements that sort finds: " .. dtype, function()
      each_shape(function(shape) return lt.randint(0, 1, shape):to(dtype) end)
      each_shape(function(shape) return lt.randint(-100, 100, shape):to(dtype) end)
      if dtype == "int64" then
        each_shape(function(shape) return lt.randint(-100, 100, shape) * (1 << 56) end)
      end
    end)
  end

  it("finds in many short lines what it finds in each of them, with NaN, too", function()
    for _, n in ipairs{1, 2, 9, 10, 63, 64, 65} do
      local data = (3 * lt.randn(130, n)):round() -- with equal elements
      data = lt.where(lt.rand(130, n):lt(1 / n), lt.nan, data)
      data[1], data[2], data[3] = lt.nan, math.huge, -0.0
      for name, f in pairs{
        median = function(t) return t:median(-1) end,
        nanmedian = function(t) return t:nanmedian(-1) end,
        kthvalue = function(t) return t:kthvalue(n // 2 + 1, -1) end,
        quantile = function(t) return t:quantile(0.3, -1) end,
      } do
        local values, places = f(data)
        for k = 1, 130 do
          local value, place = f(data[k])
          local a, b = value:item(), values[k]:item()
          assert.is_true(a == b or (a ~= a and b ~= b), name)
          assert.is_true(not place or place:equal(places[k]), name)
        end
      end
    end
  end)
end)

describe("isin", function()
  it("agrees with comparisons, for many elements", function()
    local function check(elements, tests)
      local same = elements:unsqueeze(-1):eq(tests):any(-1)
      assert.is_true(lt.equal(lt.isin(elements, tests), same))
      assert.is_true(lt.equal(lt.isin(elements:t(), tests), same:t()))
    end
    for _, dtype in ipairs{"float32", "float64", "float16", "int64", "uint8", "bool"} do
      for _, n in ipairs{17, 100, 1000} do
        check(lt.randint(0, 250, {70, 50}):to(dtype), lt.randint(0, 250, {n}):to(dtype))
      end
    end
    local data = lt.randn(70, 50)
    data[1][2], data[2][1], data[3][3] = lt.nan, lt.inf, -0.0
    check(data, lt.cat{data:select(2, 1), lt.zeros(20), lt.full({30}, lt.nan)})
    check(data, lt.full({100}, lt.nan))
  end)
end)

describe("searchsorted", function()
  it("agrees with a search of each value", function()
    local function place(sequence, n, value, right)
      local low, high = 0, n
      while low < high do
        local middle = (low + high) // 2
        local at = sequence[middle + 1]
        local stops = at >= value -- false for NaN
        if right then stops = at > value end
        if stops then high = middle else low = middle + 1 end
      end
      return low + 1
    end
    for _, dtype in ipairs{"float32", "float64", "int64", "int8"} do
      for _, n in ipairs{0, 1, 2, 7, 100, 1000} do
        for _, m in ipairs{0, 1, 31, 32, 33, 200} do
          local row = lt.randint(-5, 5, {n}):to(dtype):sort()
          local values = lt.randint(-6, 6, {m}):to(dtype)
          if row:is_floating_point() and m > 8 and n > 8 then values[3], row[n] = lt.nan, lt.nan end
          for _, right in ipairs{false, true} do
            local found = lt.searchsorted(row, values, false, right):tolist()
            local sequence, wanted = row:tolist(), values:tolist()
            for j = 1, m do assert.equal(place(sequence, n, wanted[j], right), found[j]) end
          end
        end
      end
    end
  end)
end)

describe("counts", function()
  it("agree with comparisons: mode", function()
    for _, dtype in ipairs{"float32", "float64", "int64", "uint8"} do
      -- long lines are sorted, short ones are not
      local data = lt.randint(0, 20, dtype == "int64" and {30, 3000} or {30, 70}):to(dtype)
      for d = 1, 2 do
        local values, at = data:mode(d)
        local lines = d == 1 and data:t() or data
        for i = 1, lines:size(1) do
          local line, best, most = lines[i]:tolist(), nil, 0
          local counts, last = {}, {}
          for j, v in ipairs(line) do counts[v], last[v] = (counts[v] or 0) + 1, j end
          for v = 0, 20 do
            if (counts[v] or 0) > most then best, most = v, counts[v] end
          end
          assert.equal(best, values[i]:item())
          assert.equal(last[best], at[i]:item())
        end
      end
    end
    local value, at = lt.tensor{lt.nan, 2, lt.nan, 3, 3, lt.nan}:mode()
    assert.same({3, 5}, {value:item(), at:item()})
    value, at = lt.full({100}, lt.nan):mode()
    assert.is_true(value:isnan():item())
    assert.equal(1, at:item())
  end)

  it("agree with sums of weights: bincount", function()
    for _, dtype in ipairs{"int64", "int32", "uint8"} do
      for _, n in ipairs{0, 1, 100, 300000} do
        local data = lt.randint(1, 200, {n}):to(dtype)
        for _, least in ipairs{0, 5, 300} do
          local counts = data:bincount(nil, least)
          assert.equal("int64", counts.dtype)
          assert.is_true(lt.equal(counts:double(), data:bincount(lt.ones(n), least):double()))
        end
      end
    end
  end)

  it("are the same on one thread: nonzero and multinomial", function()
    local data, w = lt.rand(300, 40, 30):gt(0.6), lt.rand(100, 200)
    local function results()
      lt.manual_seed(7)
      return {data:nonzero(), w:multinomial(10), w:multinomial(10, true),
        w:flatten():multinomial(10)}
    end
    local threads, all = lt.get_num_threads(), results()
    lt.set_num_threads(1)
    local one = results()
    lt.set_num_threads(threads)
    for i = 1, 4 do assert.is_true(lt.equal(all[i], one[i])) end
    local at = all[1]
    assert.is_true(data[{at:select(2, 1), at:select(2, 2), at:select(2, 3)}]:all():item())
  end)
end)

describe("a reduction of a strided vector", function()
  for _, dtype in ipairs{"float32", "float64", "bfloat16", "int8", "int64", "bool", "complex64"} do
    it("of " .. dtype .. " is that of its copy", function()
      for _, n in ipairs{1, 2, 17, 1000, 5000} do
        local column = lt.randn(n, 3):mul(2):to(dtype):select(2, 2)
        local sum, of_copy = column:sum(), column:contiguous():sum()
        local exact = not column:is_floating_point() and not column:is_complex()
        -- Floats may be added in another order.
        assert.is_true(exact and sum:equal(of_copy)
          or not exact and lt.allclose(sum, of_copy, 1e-5, 1e-5))
      end
    end)
  end

  it("has the sums of integers, on diagonals and repeated elements", function()
    assert.equal(500 * 501, lt.arange(1000):reshape(500, 2):select(2, 2):sum():item())
    assert.equal(1 + 12 + 23, lt.arange(30):reshape(3, 10):diagonal():sum():item())
    assert.equal(1 + 5 + 9, lt.arange(9):reshape(3, 3):trace():item())
    assert.equal(21, lt.full({1}, 3.):expand(7):sum():item())
  end)
end)

describe("trapezoid", function()
  it("is the sum of the trapezoids, along each dim", function()
    local y = lt.randn{7, 9, 5, dtype = "float64"}
    for dim = 1, 3 do
      local n = y:size(dim)
      local sides = y:narrow(dim, 2, n - 1) + y:narrow(dim, 1, n - 1)
      for _, dx in ipairs{1, 0.25, -2} do
        local expected = (sides * (dx / 2)):sum(dim)
        assert.is_true(lt.allclose(lt.trapezoid(y, {dx = dx, dim = dim}), expected))
      end
    end
  end)

  it("takes 0, 1 and 2 points, integers and infinity", function()
    for n = 0, 1 do assert.is_true(lt.trapezoid(lt.ones(3, n)):equal(lt.zeros(3))) end
    assert.is_true(lt.trapezoid(lt.tensor{{1, 4}, {3, 0}}):equal(lt.tensor{2.5, 1.5}))
    local bytes = lt.trapezoid(lt.tensor({100, 120, 127, 127}, {dtype = "int8"}))
    assert.equal("float32", bytes.dtype)
    assert.equal(360.5, bytes:item())
    assert.equal(math.huge, lt.trapezoid(lt.tensor{math.huge, 1, 2}):item())
  end)

  it("adds 16-bit floats up beyond their range", function()
    for _, dtype in ipairs{"float16", "bfloat16"} do
      local area = lt.trapezoid(lt.ones({70001}, {dtype = dtype}), {dx = 1e-4})
      assert.equal(dtype, area.dtype)
      assert.equal(7, area:item())
    end
    local rounded = lt.trapezoid(lt.arange(0, 99):to("bfloat16"))
    assert.equal(4896, rounded:item())
  end)

  it("is cumulative for integers, whose products with dx do not wrap", function()
    for _, dtype in ipairs{"uint8", "int8", "int64"} do
      local y = lt.tensor({1, 3, 5}, {dtype = dtype})
      assert.is_true(lt.cumulative_trapezoid(y, {dx = -100}):equal(lt.tensor{-200., -600.}))
      assert.equal("float32", lt.cumulative_trapezoid(y[{{1, 0}}]).dtype)
    end
  end)
end)
