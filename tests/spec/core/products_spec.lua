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

  it("of a batch of small matrices is right for all layouts", function()
    for _, size in ipairs{{3, 3, 3}, {16, 16, 16}, {8, 20, 5}, {20, 8, 5}, {2, 40, 33}} do
      local m, n, k = table.unpack(size)
      local factors = {lt.randn(9, m, k), lt.randn(9, k, m):transpose(2, 3),
        lt.randn(18, m, k)[{"1:18:2"}]}
      for _, a in ipairs(factors) do
        for _, b in ipairs{lt.randn(9, k, n), lt.randn(9, n, k):transpose(2, 3)} do
          local c = a:bmm(b)
          for i = 1, 9 do is_product(c[i], a[i], b[i], ("%d x %d x %d"):format(m, n, k)) end
        end
      end
    end
  end)

  it("is added in place", function()
    local a, b, c = lt.randn(90, 90), lt.randn(90, 90), lt.randn(90, 90)
    for name, layout in pairs(layouts) do
      local x = layout(c:clone())
      local address = x:data_ptr()
      assert.equal(x, x:addmm_(a, b))
      assert.equal(address, x:data_ptr())
      is_product(x - c, a, b, name)
      x:copy_(c)
      assert.is_true(lt.equal(c:addmm(c, b), x:addmm_(x, b)))
      is_product(x:addmm_(a, b, {beta = 0}), a, b, name)
    end
    local half = c:half()
    assert.is_true(lt.equal(half:addmm(a:half(), b:half()),
      half:clone():addmm_(a:half(), b:half())))
    assert.is_true(lt.equal(c:addmm(a:narrow(2, 1, 0), b:narrow(1, 1, 0)),
      c:clone():addmm_(a:narrow(2, 1, 0), b:narrow(1, 1, 0))))
  end)
end)

describe("lt.cdist", function()
  -- The same by differences, in float64.
  local function by_differences(x, y, p)
    local difference = (x:double():unsqueeze(-2) - y:double():unsqueeze(-3)):abs()
    if p == 1 then return difference:sum(-1) end
    if p == 2 then return difference:square():sum(-1):sqrt() end
    return difference:amax(-1)
  end

  local bounds = {float32 = 1e-5, float64 = 1e-13, float16 = 4e-3, bfloat16 = 3e-2}

  it("is the norm of differences for all sizes and dtypes", function()
    lt.manual_seed(1)
    for dtype, bound in pairs(bounds) do
      for _, p in ipairs{1, 2, math.huge} do
        for _, s in ipairs{{1, 1, 1}, {3, 5, 7}, {70, 33, 16}, {65, 40, 129}, {5, 100, 300}} do
          local x = lt.randn(2, s[1], s[3]):to(dtype)
          local y = lt.randn(2, s[3], s[2]):to(dtype):transpose(2, 3)
          local found = lt.cdist(x, y, p, "donot_use_mm_for_euclid_dist")
          local what = ("p = %s, %s, {%d, %d, %d}"):format(p, dtype, s[1], s[2], s[3])
          assert.equal(dtype, found.dtype, what)
          assert.is_true(lt.allclose(found:double(), by_differences(x, y, p), bound), what)
        end
      end
    end
  end)

  it("is NaN for a row with NaN and for inf - inf, and 0 for rows without elements", function()
    local x = lt.tensor{{1, lt.nan, 3}, {1, 2, 3}, {math.huge, 1, 2}}
    for _, p in ipairs{1, 2, math.huge} do
      local found = lt.cdist(x, x, p)
      local expected = lt.tensor{{lt.nan, lt.nan, lt.nan}, {lt.nan, 0, math.huge},
        {lt.nan, math.huge, lt.nan}}
      assert.is_true(lt.allclose(found, expected, 0, 0, true))
      assert.is_true(lt.equal(lt.zeros(3, 2), lt.cdist(lt.ones(3, 0), lt.ones(2, 0), p)))
      assert.is_true(lt.equal(lt.zeros(0, 2), lt.cdist(lt.ones(0, 3), lt.ones(2, 3), p)))
    end
  end)

  it("does not overflow in float16 for p = 2", function()
    assert.equal(500, lt.cdist(lt.tensor({{300.}}, {dtype = "float16"}),
      lt.tensor({{-200.}}, {dtype = "float16"})):item())
  end)
end)

describe("pdist", function()
  it("agrees with a loop over the pairs of rows", function()
    for _, p in ipairs{1, 1.5, 2, math.huge} do
      for _, gradient in ipairs{false, true} do
        local x = lt.randn(13, 5, {dtype = "float64"})
        local found, k = lt.pdist(gradient and x:clone():requires_grad_() or x, p), 0
        assert.same({78}, found.shape)
        for i = 1, 13 do
          for j = i + 1, 13 do
            k = k + 1
            local expected = (x[i] - x[j]):norm(p):item()
            assert.near(expected, found[k]:item(), 1e-12 * expected)
          end
        end
      end
    end
  end)

  it("returns the same with a gradient, for numbers of any size and empty rows", function()
    for _, p in ipairs{1, 2, math.huge} do
      for _, sizes in ipairs{{3, 2}, {150, 40}, {70, 200}, {2, 1}, {4, 0}} do
        for _, scale in ipairs{1e25, 1, 1e-30} do
          local x = lt.randn(sizes) * scale
          assert.is_true(lt.pdist(x, p):equal(lt.pdist(x:clone():requires_grad_(), p)))
        end
      end
      local empty = lt.ones(4, 0):requires_grad_()
      local y = lt.pdist(empty, p)
      assert.is_true(y:equal(lt.zeros(6)))
      y:sum():backward()
      assert.same({4, 0}, empty.grad.shape)
    end
  end)

  it("has the gradient of a loop over the pairs", function()
    local x = lt.randn(9, 37, {dtype = "float64"})
    x[3], x[8] = x[1], x[1]
    for _, p in ipairs{1, 2, math.huge} do
      local found, wanted = x:clone():requires_grad_(), x:clone():requires_grad_()
      local g, k = lt.randn(36, {dtype = "float64"}), 0
      lt.pdist(found, p):backward(g)
      for i = 1, 9 do
        for j = i + 1, 9 do
          k = k + 1
          if not x[i]:equal(x[j]) then ((wanted[i] - wanted[j]):norm(p) * g[k]):backward() end
        end
      end
      assert.is_true(found.grad:allclose(wanted.grad, 1e-12, 1e-12))
      local double = x[{{4, 7}, {1, 3}}]:clone():requires_grad_()
      assert.is_true(lt.autograd.gradgradcheck(function(v) return lt.pdist(v, p) end, {double}))
    end
  end)
end)

describe("kron", function()
  it("agrees with a loop, for short and long rows", function()
    for _, s in ipairs{{2, 3, 4, 5}, {3, 1, 1, 2}, {1, 3, 2, 1}, {2, 2, 2, 20}, {0, 2, 3, 2}} do
      local a, b = lt.randint(-9, 9, {s[1], s[2]}), lt.randint(-9, 9, {s[3], s[4]}):t()
      local c = b:t():contiguous()
      for _, right in ipairs{b:t(), c} do
        local x = lt.kron(a, right)
        assert.same({s[1] * s[3], s[2] * s[4]}, x.shape)
        for i = 1, x:size(1) do
          for j = 1, x:size(2) do
            local k, m = (i - 1) // s[3], (j - 1) // s[4]
            assert.equal(a[{k + 1, m + 1}]:item()
              * c[{i - k * s[3], j - m * s[4]}]:item(), x[{i, j}]:item())
          end
        end
      end
    end
  end)
end)

describe("products of few rows and a long column", function()
  it("are sums of integers, which are exact, with the other terms of addmv", function()
    for _, dtype in ipairs{"float32", "float64"} do
      for _, k in ipairs{32767, 32768, 32769, 49152, 100003} do
        for m = 1, 5 do
          local a = lt.randint(-2, 3, {m, k}):to(dtype)
          local x, z = lt.randint(-2, 3, {k}):to(dtype), lt.randint(-9, 9, {m}):to(dtype)
          local wanted = (a * x):sum(2) -- below 2^24
          assert.is_true(a:mv(x):equal(wanted))
          assert.is_true(a[m]:dot(x):equal(wanted[m]))
          assert.is_true(a:mv(x:repeat_interleave(2)["::2"]):equal(wanted))
          assert.is_true(lt.addmv(z, a, x, {beta = 3, alpha = -2}):equal(z * 3 - wanted * 2))
          assert.is_true(x:unsqueeze(1):mm(a:t()):equal(wanted:unsqueeze(1)))
        end
      end
    end
  end)

  it("have the same bits for any number of threads, and let NaN and infinity through", function()
    local threads = lt.get_num_threads()
    local a, x, all = lt.randn(3, 200001), lt.randn(200001), {}
    finally(function() lt.set_num_threads(threads) end)
    for n = 1, 3 do
      lt.set_num_threads(n)
      all[n] = a:mv(x)
      assert.is_true(all[n]:equal(all[1]))
    end
    assert.is_true(all[1]:double():allclose(a:double():mv(x:double()), 1e-4, 1e-3))
    a[2][150000], a[3][7] = 0 / 0, math.huge
    local y = a:mv(x:abs() + 1)
    assert.is_true(y[1]:isfinite():item() and y[2]:isnan():item())
    assert.equal(math.huge, y[3]:item())
  end)
end)

describe("bmm with one row or column", function()
  it("is a product of each pair, of dense, transposed, strided and shared matrices", function()
    local function forms(count, rows, columns, dtype)
      local function whole(...) return lt.randint(-4, 4, {...}):to(dtype) end
      return {whole(count, rows, columns), whole(count, columns, rows):transpose(2, 3),
        whole(rows, columns, count):permute(3, 1, 2), whole(count, rows, 2 * columns)[":, :, ::2"],
        whole(1, rows, columns):expand(count, rows, columns)}
    end
    for _, dtype in ipairs{"float32", "float64", "float16", "int64"} do
      for _, s in ipairs{{1, 1, 1}, {1, 10, 1}, {1, 40, 1}, {4, 8, 1}, {1, 8, 4}, {1, 3, 70},
        {33, 5, 1}, {1, 0, 1}} do
        for _, a in ipairs(forms(7, s[1], s[2], dtype)) do
          for _, b in ipairs(forms(7, s[2], s[3], dtype)) do
            local c = a:bmm(b)
            for i = 1, 7 do
              local exact = a[i]:double():unsqueeze(3) * b[i]:double():unsqueeze(1)
              assert.is_true(c[i]:double():equal(exact:sum(2)))
            end
          end
        end
      end
    end
  end)
end)

describe("a product of complex matrices", function()
  -- Integers, whose products are exact in every order.
  local function parts(...) return lt.randint(-4, 4, {...}), lt.randint(-4, 4, {...}) end
  local function forms(dtype, count, rows, columns)
    local function whole(...)
      local re, im = parts(...)
      return lt.complex(re:double(), im:double()):to(dtype)
    end
    return {whole(count, rows, columns), whole(count, columns, rows):transpose(2, 3),
      whole(rows, columns, count):permute(3, 1, 2), whole(count, rows, 2 * columns)[":, :, ::2"],
      whole(count, rows + 1, columns + 2)[{{}, {2, -1}, {2, -2}}],
      whole(1, rows, columns):expand(count, rows, columns)}
  end
  -- The product of matrices {.., n, k} and {.., k, m} by sums of products of parts.
  local function by_parts(a, b)
    local re, im = a.real:double():unsqueeze(-1), a.imag:double():unsqueeze(-1)
    local re_b, im_b = b.real:double():unsqueeze(-3), b.imag:double():unsqueeze(-3)
    return lt.complex((re * re_b - im * im_b):sum(-2), (re * im_b + im * re_b):sum(-2))
  end

  it("is exact for all sizes and layouts, one and in batches", function()
    lt.manual_seed(2)
    for _, dtype in ipairs{"complex64", "complex128"} do
      for _, s in ipairs{{1, 1, 1}, {2, 2, 2}, {1, 9, 4}, {5, 7, 1}, {8, 8, 8}, {3, 17, 33},
        {20, 40, 21}, {1, 0, 3}, {0, 2, 3}, {2, 3, 0}} do
        for _, a in ipairs(forms(dtype, 11, s[1], s[2])) do
          for _, b in ipairs(forms(dtype, 11, s[2], s[3])) do
            local expected = by_parts(a, b):to(dtype)
            assert.is_true(a:bmm(b):equal(expected))
            assert.is_true(a[3]:mm(b[3]):equal(expected[3]))
          end
        end
      end
    end
  end)

  it("is exact where threads share it, and on one thread", function()
    lt.manual_seed(3)
    local threads = lt.get_num_threads()
    for _, s in ipairs{{1, 70, 300, 90}, {300, 9, 12, 10}, {3, 120, 70, 130}, {40, 1, 200, 300}} do
      local a, b = forms("complex64", s[1], s[2], s[3])[2], forms("complex64", s[1], s[3], s[4])[1]
      local expected = by_parts(a, b):to("complex64")
      assert.is_true(a:bmm(b):equal(expected))
      lt.set_num_threads(1)
      local one = a:bmm(b)
      lt.set_num_threads(threads)
      assert.is_true(one:equal(expected))
    end
  end)

  it("passes on NaN and infinity, by the products of parts, to a row and a column", function()
    local a, b = lt.ones{20, 30, dtype = "complex128"}, lt.ones{30, 9, dtype = "complex128"}
    a[{3, 4}], b[{5, 6}] = lt.complex(0 / 0, 1), lt.complex(1, math.huge)
    local nan = a:mm(b).real:isnan()
    assert.is_true(nan[3]:all():item())
    assert.is_true(nan[":, 6"]:all():item()) -- 0 * inf
    assert.equal(9 + 20 - 1, nan:sum():item())
    assert.equal(math.huge, a:mm(b)[{1, 6}]:item().im)
  end)
end)

describe("einsum", function()
  it("sums products of scattered elements", function()
    local a, b = lt.randint(-4, 4, {5, 6, 7}), lt.randint(-4, 4, {6, 5, 7})
    for _, dtype in ipairs{"float32", "int32", "float16", "complex64"} do
      local x, y = a:to(dtype), b:to(dtype)
      local product = x * y:transpose(1, 2)
      for equation, dims in pairs{["ijk,jik->k"] = {1, 2}, ["ijk,jik->ik"] = {2},
        ["ijk,jik->jk"] = {1}, ["ijk,jik->i"] = {2, 3}, ["ijk,jik->j"] = {1, 3}} do
        local found = lt.einsum(equation, x, y)
        assert.equal(x.dtype, found.dtype)
        assert.is_true(found:equal(product:sum(dims, false, dtype)), equation .. dtype)
      end
    end
  end)

  it("has the dtypes of matrix products for scattered elements", function()
    local a, b = lt.ones(5, 6, 7), lt.ones(6, 5, 7)
    lt.autocast("cpu", function()
      assert.equal("bfloat16", lt.einsum("ijk,jik->k", a, b).dtype)
      assert.equal("bfloat16", lt.einsum("ijk,ijk->i", a, a).dtype)
    end)
    assert.has_error(function() lt.einsum("ijk,jik->k", a:bool(), b:bool()) end)
    assert.has_error(function() lt.einsum("ijk,ijk->i", a:bool(), a:bool()) end)
  end)
end)
