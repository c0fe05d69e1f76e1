-- Elementwise ops of broadcast, permuted and cut tensors give what they give for contiguous copies
-- of the same elements.
local lt = require "lutra"

-- sizes whose products are below, at and above the length of a block
local SIZES = {1, 2, 3, 5, 16, 17, 40, 64, 130, 300}
local MOST = 60000

local function random_shape(n)
  while true do
    local shape, numel = {}, 1
    for d = 1, n do
      shape[d] = SIZES[math.random(#SIZES)]
      numel = numel * shape[d]
    end
    if numel <= MOST then return shape end
  end
end

local function values(shape, dtype)
  local x = lt.randint(-9, 10, shape)
  return dtype == "bool" and x:gt(0) or x:to(dtype)
end

-- Returns a tensor of this shape after broadcasting: some dims have one element, all are in a
-- random order in memory, and some are every second part of a larger tensor.
local function operand(shape, dtype, whole)
  local sizes, cut, order, back = {}, {}, {}, {}
  for d, n in ipairs(shape) do
    sizes[d] = not whole and math.random(3) == 1 and 1 or n
    cut[d] = math.random(6) == 1
    table.insert(order, math.random(4) == 1 and math.random(d) or d, d)
  end
  local memory = {}
  for k, d in ipairs(order) do
    memory[k] = cut[d] and 2 * sizes[d] or sizes[d]
    back[d] = k
  end
  local x = values(memory, dtype):permute(table.unpack(back))
  for d = 1, #shape do
    if cut[d] then
      x = math.random(2) == 1 and x:narrow(d, 2, sizes[d])
        or x:slice(d, 1, 2 * sizes[d], 2)
    end
  end
  return x
end

local function dense(x, shape)
  return x:expand(shape):clone():contiguous()
end

describe("an elementwise op of tensors in any layout", function()
  local OPS = {
    float32 = {function(x, y) return x + y end, function(x, y) return x:maximum(y) end,
      function(x, y) return x:lt(y) end, function(x, y, z) return lt.where(z:gt(0), x, y) end},
    float64 = {function(x, y) return x - y end, function(x) return x:neg() end},
    int64 = {function(x, y) return x * y end, function(x, y) return x:eq(y) end},
    uint8 = {function(x, y) return x + y end, function(x, y) return x:ge(y) end},
    bfloat16 = {function(x, y) return x * y end, function(x) return x:to "float64" end,
      function(x, y) return x:lt(y) end, function(x) return x:clamp(-3, 4.5) end},
    float16 = {function(x, y) return x - y end, function(x, y) return x:maximum(y) end,
      function(x) return x ^ 2 end},
    bool = {function(x, y) return x:logical_xor(y) end, function(x) return x:to "int32" end},
    complex64 = {function(x, y) return x * y end},
  }
  for dtype, ops in pairs(OPS) do
    it("has the results of contiguous copies: " .. dtype, function()
      math.randomseed(7)
      lt.manual_seed(7)
      for i = 1, 150 do
        local shape = random_shape(1 + i % 5)
        local x, y, z = operand(shape, dtype), operand(shape, dtype), operand(shape, dtype)
        for k, op in ipairs(ops) do
          local result = op(x:expand(shape), y, z)
          local expected = op(dense(x, shape), dense(y, shape), dense(z, shape))
          assert(result:equal(expected),
            ("op %d of shape {%s}"):format(k, table.concat(shape, ", ")))
        end
        local out = operand(shape, dtype, true)
        local same = dense(out, shape)
        if dtype == "bool" then
          out:logical_or_(y)
          same:logical_or_(dense(y, shape))
        else
          out:mul_(y)
          same:mul_(dense(y, shape))
        end
        assert(out:equal(same), ("in place, shape {%s}"):format(table.concat(shape, ", ")))
      end
    end)
  end

  it("has them where a row returns after other rows", function()
    local x, y = lt.randn(1, 3, 1, 16), lt.randn(4, 3, 10, 32):narrow(4, 1, 16)
    local shape = {4, 3, 10, 16}
    assert.is_true((x + y):equal(dense(x, shape) + dense(y, shape)))
    -- blocks of 128 rows: the 1st and the 65th lie in groups of 130 rows, all others in two
    local z = lt.randn(1, 3, 1, 16)
    local w = lt.randn(80, 3, 130, 20):narrow(4, 3, 16)
    shape = {80, 3, 130, 16}
    assert.is_true((z - w):equal(dense(z, shape) - dense(w, shape)))
  end)
end)

-- Half floats have loops of their own for some layouts; float32 gives the exact sums, products and
-- comparisons, which are rounded once.
describe("an elementwise op of half floats", function()
  local OPS = {function(x, y) return x + y end, function(x, y) return y - x end,
    function(x, y) return x * y end, function(x, y) return x:maximum(y) end,
    function(x, y) return x:le(y) end}

  for _, dtype in ipairs{"bfloat16", "float16"} do
    local function check(result, expected, ...)
      expected = expected.dtype == "bool" and expected or expected:to(dtype)
      assert(result:equal(expected), ("%s, n = %d"):format(...))
    end

    it("has the rounded results of float32 for rows of any length: " .. dtype, function()
      lt.manual_seed(5)
      for _, n in ipairs{1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 130, 300} do
        local memory = lt.randn(6, 2 * n + 1):to(dtype)
        local x, full = memory:narrow(2, 2, n), lt.randn(6, n):to(dtype)
        for k, y in ipairs{lt.randn(n):to(dtype), lt.randn(6, 1):to(dtype), full,
          lt.tensor(0.75, {dtype = dtype})} do
          for i, op in ipairs(OPS) do
            check(op(x, y), op(x:float(), y:float()), ("op %d, y %d"):format(i, k), n)
            check(op(full, y), op(full:float(), y:float()), ("op %d, y %d"):format(i, k), n)
          end
          local same = full:clone()
          check(same:mul_(y), full:float() * y:float(), "in place, y " .. k, n)
        end
        local same = full:clone()
        check(same:add_(same), full:float() * 2, "of itself", n)
      end
    end)

    it("has those of clamps to numbers and of squares: " .. dtype, function()
      local x = lt.cat{lt.randn(100) * 3, lt.tensor{0 / 0, math.huge, -math.huge, -0.0, 0}}
      x = x:to(dtype)
      local function same(a, b)
        b = b:to(dtype)
        assert.is_true(a:isnan():equal(b:isnan()))
        assert.is_true(a:nan_to_num(9):equal(b:nan_to_num(9)))
        assert.is_true(a:signbit():logical_or(a:isnan()):equal(b:signbit():logical_or(b:isnan())))
      end
      for _, bounds in ipairs{{-1, 1}, {0.1, 2.3}, {-math.huge, 0}, {2, -2}, {0 / 0, 1},
        {-1, 0 / 0}, {-0.0, 1}} do
        same(x:clamp(bounds[1], bounds[2]), x:float():clamp(bounds[1], bounds[2]))
        same(x:clamp{min = bounds[1]}, x:float():clamp{min = bounds[1]})
        same(x:clamp{max = bounds[2]}, x:float():clamp{max = bounds[2]})
        same(x:clone():clamp_(bounds[1], bounds[2]), x:float():clamp(bounds[1], bounds[2]))
      end
      same(x ^ 2, x:float() * x:float())
      same(x:pow(2.0), x:float() * x:float())
      same(x ^ 3, x:float() ^ 3)
    end)
  end
end)
