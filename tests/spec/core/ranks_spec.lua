-- Elements by rank and running maxima, against loops over the elements: more lines than a block
-- has, ties, NaN and infinities, lines that are not contiguous.
local lt = require "lutra"

-- Integers from -9 to 9 as floats, so with many ties, and some NaN and infinities.
local function sample(rows, columns)
  lt.manual_seed(rows)
  local x = lt.randint(-9, 9, {rows, columns}):float()
  for i = 1, rows, 3 do x[i][i % columns + 1] = lt.nan end
  for i = 2, rows, 3 do x[i][i % columns + 1] = lt.inf end
  return x
end

local function is_nan(v) return v ~= v end

-- The elements of a line in order, NaN last; equal elements by index.
local function order(line)
  local at = {}
  for i = 1, #line do at[i] = i end
  table.sort(at, function(a, b)
    local p, q = line[a], line[b]
    if is_nan(p) or is_nan(q) then
      if is_nan(p) and is_nan(q) then return a < b end
      return is_nan(q)
    end
    if p ~= q then return p < q end
    return a < b
  end)
  return at
end

local function same(a, b) return a == b or is_nan(a) and is_nan(b) end

describe("kthvalue", function()
  it("agrees with sorting, for ranks below and above an eighth of the line", function()
    local x = sample(11, 41)
    for _, k in ipairs{1, 2, 5, 6, 20, 41} do
      local values, at = lt.kthvalue(x, k)
      local columns, at_columns = lt.kthvalue(x:t():contiguous(), k, 1)
      for i = 1, 11 do
        local line = x[i]:tolist()
        local expected = line[order(line)[k]]
        assert.is_true(same(expected, values[i]:item()), ("row %d, rank %d"):format(i, k))
        assert.is_true(same(expected, line[at[i]:item()]))
        assert.is_true(same(expected, columns[i]:item()))
        assert.is_true(same(expected, line[at_columns[i]:item()]))
      end
    end
  end)

  it("has the gradient of the element", function()
    local x = lt.tensor({{5, 2, 9, 1, 7, 3, 8, 4, 6}}, {dtype = "float32", requires_grad = true})
    lt.kthvalue(x, 1):sum():backward()
    assert.same({{0, 0, 0, 1, 0, 0, 0, 0, 0}}, x.grad:long():tolist())
  end)
end)

describe("cummax and cummin", function()
  for _, dtype in ipairs{"float32", "float64", "int64"} do
    it("agree with a loop for lines of " .. dtype, function()
      for _, rows in ipairs{1, 7, 8, 19} do
        local x = dtype == "int64" and lt.randint(-9, 9, {rows, 33}) or sample(rows, 33):to(dtype)
        for name, reaches in pairs{cummax = function(a, b) return a >= b end,
          cummin = function(a, b) return a <= b end} do
          local values, at = lt[name](x, 2)
          local columns, at_columns = lt[name](x:t():contiguous(), 1)
          assert.is_true(at:equal(at_columns:t()))
          for i = 1, rows do
            local line, best = x[i]:tolist(), 1
            for j, v in ipairs(line) do
              if reaches(v, line[best]) or is_nan(v) then best = j end
              assert.is_true(same(line[best], values[i][j]:item()))
              assert.is_true(same(line[best], columns[j][i]:item()))
              assert.equal(best, at[i][j]:item())
            end
          end
        end
      end
    end)
  end
end)

describe("aminmax", function()
  it("agrees with amin and amax for every dtype, layout and number of pieces", function()
    for _, dtype in ipairs{"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
      "bfloat16", "float32", "float64"} do
      for _, n in ipairs{1, 7, 1000, 50001} do
        local x = lt.randint(-90, 90, {n, 2}):to(dtype)
        for _, t in ipairs{x, x:t(), x:select(2, 1), x[1][1]} do
          local low, high = t:aminmax()
          assert.equal(dtype, low.dtype)
          assert.equal(dtype, high.dtype)
          assert.same({}, low.shape)
          assert.is_true(low:equal(t:amin()) and high:equal(t:amax()))
        end
      end
    end
  end)

  it("is NaN if any element is NaN", function()
    for _, dtype in ipairs{"float16", "float32", "float64"} do
      local x = lt.rand(40000):to(dtype)
      x[30000] = lt.nan
      local low, high = x:aminmax()
      assert.is_true(is_nan(low:item()) and is_nan(high:item()))
    end
  end)
end)

describe("logcumsumexp", function()
  -- The logarithms of cumulative sums of e^x, by a loop.
  local function expected(line)
    local top, sum, result = -math.huge, 0, {}
    for i, x in ipairs(line) do
      if x ~= x or top ~= top then
        top = lt.nan
      elseif x > top then
        sum, top = (top == -math.huge and 0 or sum * math.exp(top - x)) + 1, x
      elseif top < math.huge and x > -math.huge then
        sum = sum + math.exp(x - top)
      end
      result[i] = (top ~= top or top == math.huge or top == -math.huge) and top
        or top + math.log(sum)
    end
    return result
  end

  it("keeps a first element that is much smaller than the others", function()
    for _, values in ipairs {{1e-10, 31}, {1e-20, 5}, {1e-10, 500}, {1.5, 20}} do
      for _, dtype in ipairs {"float64", "float32"} do
        local x = lt.tensor(values, {dtype = dtype})
        assert.equal(x[1]:item(), x:logcumsumexp(1)[1]:item())
      end
    end
  end)

  local function agrees(x, dim)
    local found = x:logcumsumexp(dim)
    assert.equal(x.dtype, found.dtype)
    local lines, results = x:movedim(dim, -1):reshape(-1, x:size(dim)),
      found:movedim(dim, -1):reshape(-1, x:size(dim))
    local bound = x.dtype == "float64" and 1e-13 or x.dtype == "float32" and 1e-6 or 5e-3
    for i = 1, lines:size(1) do
      local line = results[i]:double():tolist()
      for j, e in ipairs(expected(lines[i]:double():tolist())) do
        local size = math.max(1, math.abs(e))
        assert.is_true(same(e, line[j]) or math.abs(e - line[j]) <= bound * size,
          ("%s: expected %s, got %s"):format(x.dtype, e, line[j]))
      end
    end
  end

  it("agrees with a loop", function()
    for _, dtype in ipairs{"float16", "float32", "float64"} do
      for _, scale in ipairs{1, 30, 1000} do
        for _, shape in ipairs{{1, 1}, {3, 700}, {300, 37}} do
          local x = (lt.randn(shape[1], shape[2]) * scale):to(dtype)
          agrees(x, 1)
          agrees(x, 2)
          agrees(x:t(), 1)
        end
      end
      agrees(lt.arange(600):mul(5):to(dtype):view(600, 1), 1)
      agrees(lt.arange(600):mul(-5):to(dtype):view(600, 1), 1)
    end
  end)

  it("follows infinities and NaN", function()
    local inf, nan = math.huge, lt.nan
    for _, line in ipairs{{-inf, -inf, 1, -inf, 2}, {1, inf, 2, inf, -inf}, {-inf, inf, inf},
      {1, nan, inf, 2}, {inf, nan, -inf}} do
      for _, dtype in ipairs{"float32", "float64"} do
        agrees(lt.tensor({line, line}, {dtype = dtype}), 2)
        agrees(lt.tensor({line, line}, {dtype = dtype}):t():contiguous(), 1)
        agrees(lt.cat{lt.randn(300):to(dtype), lt.tensor(line, {dtype = dtype}),
          lt.randn(300):to(dtype)}:view(1, -1), 2)
      end
    end
    assert.same({0, 3}, lt.ones(0, 3):logcumsumexp(1).shape)
  end)
end)
