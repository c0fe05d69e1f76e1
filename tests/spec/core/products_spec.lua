-- Products of float32 matrices agree with the product in float64, for all layouts of the factors.

local lt = require "lutra"

-- Fails unless c is a @ b within the bound of float32 sums of k products.
local function is_product(c, a, b, what)
  local x, y = a:double(), b:double()
  local bound = (x:abs():matmul(y:abs())) * (a:size(-1) * 2.0 ^ -23)
  assert.is_true(((c:double() - x:matmul(y)):abs():le(bound)):all():item(), what)
end

-- A matrix {m, n} in another layout, with the same values.
local layouts = {
  contiguous = function(x) return x:contiguous() end,
  transposed = function(x) return x:t():contiguous():t() end,
  rows = function(x) -- rows of a wider matrix
    local wide = lt.zeros(x:size(1), x:size(2) + 3)
    wide:narrow(2, 3, x:size(2)):copy_(x)
    return wide:narrow(2, 3, x:size(2))
  end,
  spread = function(x) -- no dense dimension
    local wide = lt.zeros(x:size(1), x:size(2), 2)
    wide:select(3, 2):copy_(x)
    return wide:select(3, 2)
  end,
}

describe("a product of float32 matrices", function()
  it("is right for all shapes and layouts", function()
    lt.manual_seed(1)
    for _, size in ipairs{{1, 1024, 300}, {700, 1, 400}, {65, 77, 129}, {128, 128, 128},
      {33, 500, 17}, {3, 5, 40000}, {2, 200, 1024}} do
      local a, b = lt.randn(size[1], size[3]), lt.randn(size[3], size[2])
      for first, f in pairs(layouts) do
        for second, g in pairs(layouts) do
          local x, y = f(a), g(b)
          is_product(x:matmul(y), a, b, ("%d x %d x %d, %s, %s"):format(size[1], size[2],
            size[3], first, second))
        end
      end
    end
  end)

  it("adds to a matrix, and does not read it with beta = 0", function()
    local a, b, c = lt.randn(100, 120), lt.randn(120, 110), lt.randn(100, 110)
    local x = lt.addmm(c, a, b, {beta = 0.5, alpha = 2})
    is_product((x - c * 0.5) / 2, a, b)
    local nan = lt.full({100, 110}, 0 / 0)
    is_product(lt.addmm(nan, a, b, {beta = 0}), a, b)
  end)

  it("passes on NaN and infinity", function()
    local a, b = lt.ones(100, 120), lt.ones(120, 110)
    a[{3, 5}], b[{7, 9}] = 0 / 0, math.huge
    local c = a:matmul(b)
    assert.equal(110, c[3]:isnan():sum():item())
    assert.equal(99, c:select(2, 9):isinf():sum():item())
    assert.equal(120, c[{1, 1}]:item())
  end)

  it("of a batch is that of its matrices", function()
    local a, b = lt.randn(6, 64, 70), lt.randn(6, 70, 80)
    local c = lt.bmm(a, b)
    for i = 1, 6 do is_product(c[i], a[i], b[i]) end
  end)
end)
