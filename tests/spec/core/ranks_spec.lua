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
