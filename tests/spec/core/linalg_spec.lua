-- Linear algebra: errors, batches, and the properties of results that are not unique. Values are in
-- op_values_spec, gradients of real matrices in gradients_spec.
local lt = require "lutra"
local L = lt.linalg

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error")
  local found = message:find(text, 1, true)
  assert.is_true(found ~= nil, ("expected %q in %q"):format(text, message))
end

local function close(a, b, tolerance)
  tolerance = tolerance or 1e-9
  assert.same(a.shape, b.shape)
  assert.is_true(lt.allclose(a, b, {rtol = tolerance, atol = tolerance}))
end

local function random(...)
  return lt.randn(...):to "float64"
end
local function complex(...) return lt.complex(random(...), random(...)) end
local function H(x) return x:transpose(-2, -1):conj() end

describe("errors of linear algebra", function()
  local singular = lt.stack{lt.eye(2), lt.zeros(2, 2)}

  it("name the matrix of a batch that has no result", function()
    raises("the matrix of batch element 2 is singular: element 1 of the diagonal of U is 0",
      lt.inverse, singular)
    raises("cannot solve: the matrix of batch element 2 is singular", L.solve, singular,
      lt.ones(2, 1))
    raises("the matrix of batch element 2 is singular", L.lu_factor, singular)
    raises("batch element 2: it is not positive definite (its leading minor of order 1 is not)",
      L.cholesky, singular)
    raises("the matrix is singular", lt.inverse, lt.zeros(3, 3))
    raises("the iteration did not converge", L.svdvals, lt.full({2, 2}, 0 / 0))
    raises("the matrix contains NaN or infinity", L.eigvals, lt.full({2, 2}, math.huge))
  end)

  it("let an infinite diagonal through: its root, and the sign of its determinant", function()
    for _, n in ipairs{1, 2, 8, 9, 40, 200} do
      for _, dtype in ipairs{"float32", "float64"} do
        local a = lt.eye(n):to(dtype)
        a[1][1] = math.huge
        for _, x in ipairs{a, lt.stack{a, a}} do
          local c, info = L.cholesky_ex(x)
          assert.is_true(lt.equal(x, c), n .. " " .. dtype)
          assert.is_true(info:eq(0):all():item())
          for _, sign in ipairs{1, -1} do
            local s, log = L.slogdet(x * sign)
            local expected = sign ^ n
            assert.is_true(s:eq(expected):all():item(), n .. " " .. dtype)
            assert.is_true(log:eq(math.huge):all():item())
          end
        end
      end
    end
  end)

  it("are infos in the variants _ex", function()
    local _, info = L.inv_ex(singular)
    assert.same({0, 1}, info:totable())
    _, info = L.cholesky_ex(singular)
    assert.same({0, 1}, info:totable())
    assert.equal("int32", info.dtype)
    raises("is singular", L.inv_ex, singular, {check_errors = true})
  end)

  it("name shapes and dtypes", function()
    raises("inverse: expected square matrices for argument 'self', got shape {2, 3}", lt.inverse,
      lt.ones(2, 3))
    raises("expected a matrix or a batch of matrices for argument 'self', got shape {3}", lt.det,
      lt.ones(3))
    raises('expected dtype "float32", "float64", "complex64" or "complex128" for argument '
      .. "'self', got \"float16\"", lt.det, lt.ones(2, 2, {dtype = "float16"}))
    raises("got \"int64\"", L.svd, lt.ones(2, 2, {dtype = "int64"}))
    raises("solve: cannot broadcast the batch dimensions of shapes {2, 3, 3} and {3, 3, 1}",
      L.solve, lt.ones(2, 3, 3), lt.ones(3, 3, 1))
    raises("solve: expected 3 rows, the size of 'A', for argument 'B', got shape {2, 1}", L.solve,
      lt.ones(3, 3), lt.ones(2, 1))
    raises("expected 3 columns, the size of 'A', for argument 'B', got shape {1, 2}", L.solve,
      lt.ones(3, 3), lt.ones(1, 2), {left = false})
    raises("solve: expected the same dtype for arguments 'A' and 'B'", L.solve, lt.eye(2),
      lt.ones(2, 1, {dtype = "float64"}))
    raises("solve: expected matrices for argument 'B' with left = false", L.solve, lt.eye(2),
      lt.ones(2), {left = false})
    raises("cross: expected the size 3 in dimension -1", L.cross, lt.ones(2), lt.ones(2))
    raises("multi_dot: expected at least 2 tensors", L.multi_dot, {lt.ones(2)})
    raises("multi_dot: cannot multiply tensors 1 and 2: the inner sizes 3 and 2 differ",
      L.multi_dot, {lt.ones(2, 3), lt.ones(2, 3)})
    raises("polar: expected at least as many rows as columns", L.polar, lt.ones(2, 3))
    raises("matrix_norm: expected 'fro', 'nuc', 1, -1, 2, -2", L.matrix_norm, lt.eye(2), 3)
    raises("cannot factor without row exchanges", L.lu, lt.eye(2), {pivot = false})
  end)

  it("reject pivots that LAPACK must not use as indices", function()
    local b, pivots = lt.ones(2, 1), lt.tensor({9, 1}, {dtype = "int32"})
    raises("expected an index from 1 to 2 for argument 'pivots', got 9 at index {1}", function()
      return L.lu_solve(lt.eye(2), pivots, b):totable() -- devices report it when they are done
    end)
    raises("expected pivots from 1 to 2", L.ldl_solve, lt.eye(2), pivots, b)
    raises("expected pivots from 1 to 2", L.ldl_solve, lt.eye(2),
      lt.tensor({1, -2}, {dtype = "int32"}), b)
  end)

  it("of gradients say what does not exist", function()
    local x = lt.randn{3, 2, requires_grad = true}
    local _, r = L.qr(x, "r")
    raises('mode "r" computes no Q', function() r:sum():backward() end)
    _, r = L.qr(x, "complete")
    raises("of matrices with more rows than columns has none", function() r:sum():backward() end)
  end)
end)

describe("decompositions of complex matrices", function()
  local a = complex(2, 4, 3)
  local square = a:narrow(-2, 1, 3)
  local hermitian = square:matmul(H(square)) + lt.eye(3):to "complex128"

  it("multiply to the matrix", function()
    local q, r = L.qr(a)
    close(q:matmul(r), a)
    local u, s, vh = L.svd(a, false)
    assert.equal("float64", s.dtype)
    close((u * s:unsqueeze(-2)):matmul(vh), a)
    local p, l, upper = L.lu(a)
    close(p:matmul(l):matmul(upper), a)
    local c = L.cholesky(hermitian)
    close(c:matmul(H(c)), hermitian)
    local w, v = L.eigh(hermitian)
    close((v * w:unsqueeze(-2)):matmul(H(v)), hermitian)
    w, v = L.eig(square)
    close(square:matmul(v), v * w:unsqueeze(-2))
    local root = L.matrix_sqrth(hermitian)
    close(root:matmul(root), hermitian)
    local f, tau = lt.geqrf(a)
    close(lt.orgqr(f, tau), q)
    close(lt.ormqr(f, tau, a, true, true):narrow(-2, 1, 3), r)
  end)

  it("solve systems", function()
    local b = complex(2, 3, 2)
    close(square:matmul(L.solve(square, b)), b)
    close(L.solve(square, H(b), {left = false}):matmul(square), H(b))
    close(square:matmul(lt.inverse(square)), lt.eye(3):to "complex128":expand(2, 3, 3))
    local lu, pivots = L.lu_factor(square)
    close(H(square):matmul(L.lu_solve(lu, pivots, b, {adjoint = true})), b)
    local ld, at = L.ldl_factor(hermitian, {hermitian = true})
    close(hermitian:matmul(L.ldl_solve(ld, at, b, {hermitian = true})), b)
    close(hermitian:matmul(lt.cholesky_solve(b, L.cholesky(hermitian))), b)
    local p = L.pinv(a)
    close(a:matmul(p):matmul(a), a)
    for _, driver in ipairs{"gels", "gelsy", "gelsd", "gelss"} do
      close((L.lstsq(a, complex(2, 4, 1), {driver = driver})):narrow(-2, 1, 0),
        lt.empty(2, 0, 1, {dtype = "complex128"}))
    end
  end)

  it("have determinants", function()
    local sign, size = lt.slogdet(square)
    close(lt.det(square), sign * size:exp())
    close(lt.logdet(square):exp(), lt.det(square))
  end)
end)

describe("factors of real matrices", function()
  -- Orders around those of the blocks in which they are computed.
  local orders = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 129, 200}
  local function near(a, b, n)
    local bound = a.dtype == "float64" and 1e-11 or 3e-3
    assert.same(a.shape, b.shape)
    assert.equal("", (a - b):abs():max():item() <= bound and "" or "differ at " .. n)
  end

  for _, dtype in ipairs{"float32", "float64"} do
    it("multiply to the matrix and solve systems in " .. dtype, function()
      lt.manual_seed(7)
      for _, n in ipairs(orders) do
        local b, c = lt.randn(n, 7, {dtype = dtype}), lt.randn(3, n, {dtype = dtype})
        local eye = lt.eye(n, {dtype = dtype})
        local a = lt.randn(n, n, {dtype = dtype}) + eye * (2 * n ^ 0.5) -- not singular
        a = a:flip(1) -- with exchanges of rows
        local p, l, u = L.lu(a)
        near(p:mm(l):mm(u), a, n)
        near(a:mm(L.inv(a)), eye, n)
        near(a:mm(L.solve(a, b)), b, n)
        near(L.solve(a, c, {left = false}):mm(a), c, n)
        local s = a:mm(a:t()) / n
        local r = L.cholesky(s)
        near(r, r:tril(), n)
        near(r:mm(r:t()), s, n)
        near(L.cholesky(s, true), r:t(), n)
        near(r:mm(L.solve_triangular(r, b, {upper = false})), b, n)
        near(L.solve_triangular(r:t(), c, {upper = true, left = false}):mm(r:t()), c, n)
        local unit = l * 1 -- ones on the diagonal, which is not read
        local options = {upper = false, unitriangular = true}
        near(unit:mm(L.solve_triangular(unit + eye, b, options)), b, n)
        near(select(2, L.slogdet(s)), r:diagonal():log():sum() * 2, n)
      end
    end)

    it("are orthogonal and triangular in " .. dtype, function()
      for _, shape in ipairs{{1, 1}, {3, 3}, {8, 8}, {9, 9}, {32, 32}, {33, 33}, {65, 65}, {5, 2},
        {2, 5}, {40, 70}, {130, 70}, {200, 3}} do
        for _, scale in ipairs{1, 1e-30, 1e30} do -- squares are out of the range of float32
          local a = lt.randn(shape[1], shape[2], {dtype = dtype})
          local b, n = a * scale, shape[1] .. " x " .. shape[2]
          for _, mode in ipairs{"reduced", "complete"} do
            local q, r = L.qr(b, mode)
            near(q:mm(r / scale), a, n)
            near(q:t():mm(q), lt.eye(q:size(2), {dtype = dtype}), n)
            assert.is_true(lt.equal(r, r:triu()))
          end
          local h, tau = lt.geqrf(b)
          local _, r = L.qr(b, "r")
          assert.is_true(lt.equal(r, h:narrow(1, 1, r:size(1)):triu()))
          if shape[1] >= shape[2] then near(L.householder_product(h, tau):mm(r / scale), a, n) end
        end
      end
    end)

    it("are orthogonal where columns are subnormal in " .. dtype, function()
      local tiny = dtype == "float32" and 1e-42 or 1e-318
      for _, shape in ipairs{{1, 1}, {14, 9}, {40, 33}} do
        local q = L.qr(lt.randn(shape[1], shape[2], {dtype = dtype}) * tiny)
        near(q:t():mm(q), lt.eye(q:size(2), {dtype = dtype}), shape[1])
      end
    end)

    it("of matrices that are not square multiply to them in " .. dtype, function()
      for _, shape in ipairs{{1, 40}, {40, 1}, {10, 100}, {100, 10}, {17, 33}, {90, 65}} do
        local a = lt.randn(shape[1], shape[2], {dtype = dtype})
        local p, l, u = L.lu(a)
        near(p:mm(l):mm(u), a, shape[1])
      end
    end)

    it("have LAPACK's info in " .. dtype, function()
      local a = lt.eye(70, {dtype = dtype})
      a[50][50] = 0
      local _, _, info = L.lu_factor_ex(a)
      assert.equal(50, info:item())
      _, info = L.inv_ex(a)
      assert.equal(50, info:item())
      a[50][50] = -1
      _, info = L.cholesky_ex(a)
      assert.equal(50, info:item())
    end)
  end

  it("do not depend on the number of threads", function()
    local before, a = lt.get_num_threads(), lt.randn(150, 150)
    local s = a:mm(a:t()) + lt.eye(150) * 150
    local function all() return {L.lu_factor(a), L.inv(a), L.cholesky(s), L.solve(a, s)} end
    local many = all()
    lt.set_num_threads(1)
    local one = all()
    lt.set_num_threads(before)
    for i, x in ipairs(one) do assert.is_true(lt.equal(x, many[i])) end
  end)
end)

describe("the determinant", function()
  it("of singular matrices has a gradient: the cofactors", function()
    local x = lt.tensor({{1.0, 2, 0}, {2, 4, 0}, {1, 1, 3}}, {dtype = "float64"}):requires_grad_()
    lt.det(x):backward()
    close(x.grad, lt.tensor({{12.0, -6, -2}, {-6, 3, 1}, {0, 0, 0}}, {dtype = "float64"}))
  end)
end)

describe("matrices without elements", function()
  it("have the results of empty sums and products", function()
    assert.equal(1.0, lt.det(lt.empty(0, 0)):item())
    assert.same({2, 0, 0}, {table.unpack(lt.inverse(lt.empty(2, 0, 0)).shape)})
    local u, s, v = L.svd(lt.empty(3, 0))
    assert.is_true(lt.equal(u, lt.eye(3)))
    assert.equal(0, s:numel())
    assert.same({0, 0}, {table.unpack(v.shape)})
    assert.is_true(lt.equal(L.householder_product(lt.ones(1, 1), lt.empty{0}), lt.ones(1, 1)))
    local solution, _, _, singular = L.lstsq(lt.ones(3, 0), lt.ones(3, 1), {driver = "gelsd"})
    assert.same({0, 1, 0}, {solution:size(1), solution:size(2), singular:numel()})
    local q, r = L.qr(lt.empty(2, 0), "complete")
    assert.is_true(lt.equal(q, lt.eye(2)))
    assert.same({2, 0}, {table.unpack(r.shape)})
    assert.same({0}, {table.unpack(L.eigvals(lt.empty(0, 0)).shape)})
    assert.equal(0, L.matrix_rank(lt.empty(2, 0)):item())
  end)
end)

describe("many small matrices", function()
  it("have the same results as each of them", function()
    local a = random(300, 3, 3)
    local all = lt.inverse(a)
    for i = 1, 300, 37 do close(all[i], lt.inverse(a[i])) end
    local u, s, v = L.svd(a, false)
    close((u * s:unsqueeze(-2)):matmul(v), a)
  end)

  -- Expands along the first row.
  local function determinant(a)
    local n, sum = a:size(1), 0
    if n == 1 then return a[1][1]:item() end
    for k = 1, n do
      local columns = {}
      for j = 1, n do
        if j ~= k then columns[#columns + 1] = j end
      end
      local minor = a:narrow(1, 2, n - 1):index_select(2, lt.tensor(columns))
      sum = sum + (k % 2 == 1 and 1 or -1) * a[1][k]:item() * determinant(minor)
    end
    return sum
  end

  -- Counts around those of the blocks in which they are computed.
  for _, dtype in ipairs{"float32", "float64"} do
    it("are factored, inverted and solved by blocks in " .. dtype, function()
      lt.manual_seed(3)
      local bound = dtype == "float64" and 1e-10 or 1e-2
      local function near(x, y)
        assert.same(x.shape, y.shape)
        assert.is_true((x - y):abs():max():item() <= bound)
      end
      for n = 1, 9 do
        local eye = lt.eye(n, {dtype = dtype})
        for _, count in ipairs{1, 7, 8, 16, 17, 40} do
          local a = (lt.randn(count, n, n, {dtype = dtype}) + 5 * eye):flip(2)
          local b = lt.randn(count, n, 3, {dtype = dtype})
          local long = lt.randn(count, n, 9, {dtype = dtype})
          local s = a:matmul(a.mT)
          local p, l, u = L.lu(a)
          near(p:matmul(l):matmul(u), a)
          assert.is_true(lt.equal(l, l:tril()) and l:abs():max():item() <= 1)
          near(a:matmul(L.inv(a)), eye:expand(count, n, n))
          near(a.mT:matmul(L.inv(a.mT)), eye:expand(count, n, n))
          near(a:matmul(L.solve(a, b)), b)
          near(a:matmul(L.solve(a, long)), long)
          near(a:matmul(L.solve(a, b[1]:expand(count, n, 3))), b[1]:expand(count, n, 3))
          near(L.solve(a, b.mT, {left = false}):matmul(a), b.mT)
          local r = L.cholesky(s)
          assert.is_true(lt.equal(r, r:tril()))
          near(r:matmul(r.mT) / 25, s / 25)
          near(L.cholesky(s, true), r.mT)
          local sign, log = L.slogdet(a)
          near(sign * log:exp() / L.det(a), lt.ones{count, dtype = dtype})
          for _, k in ipairs{1, count} do
            if n < 7 then near(L.det(a)[k] / determinant(a[k]), lt.tensor(1, {dtype = dtype})) end
            for _, f in ipairs{L.inv, L.det, L.lu_factor} do -- the bits of a matrix by itself
              assert.is_true(lt.equal((f(a))[k], (f(a[k]))))
            end
            assert.is_true(lt.equal(r[k], L.cholesky(s[k])))
            assert.is_true(lt.equal(L.solve(a, b)[k], L.solve(a[k], b[k])))
          end
        end
      end
    end)

    it("have LAPACK's pivots and info in " .. dtype, function()
      local function near(x, y) assert.is_true(math.abs(x:item() - y) < 1e-6) end
      -- The first of equally large elements is the pivot, and a NaN is larger than all.
      local a = lt.tensor({{{1.0, 2, 3}, {-4, 5, 6}, {4, 5, 7}}, {{0, 0, 1}, {0, 0, 2}, {0, 3, 1}},
        {{1, 2, 3}, {0 / 0, 1, 1}, {math.huge, 1, 1}}}, {dtype = dtype})
      local lu, pivots, info = L.lu_factor_ex(a)
      assert.same({{2, 3, 3}, {1, 3, 3}}, pivots:narrow(1, 1, 2):totable())
      assert.equal(2, pivots[3][1]:item())
      assert.same({0, 1, 0}, info:totable())
      assert.same({{0, 0, 1}, {0, 3, 1}, {0, 0, 2}}, lu[2]:totable())
      local _, inverse_info = L.inv_ex(a)
      assert.same({0, 1, 0}, inverse_info:totable())
      assert.equal(0, lt.det(a)[2]:item())
      assert.equal(-math.huge, select(2, L.slogdet(a))[2]:item())
      local tiny = dtype == "float32" and 1e-38 or 1e-300
      local d = lt.tensor({{-tiny, tiny, 1, 1}, {tiny, 0 / 0, 1, 1}, {1 / tiny, -1 / tiny, -1, 2}},
        {dtype = dtype})
      local sign, log = L.slogdet(d:diag_embed())
      assert.same({-1, 1}, {sign[1]:item(), sign[3]:item()})
      assert.is_true(sign[2]:isnan():item() and log[2]:isnan():item())
      near(log[1] / (2 * math.log(tiny)), 1)
      near(log[3] / (-2 * math.log(tiny) + math.log(2)), 1)
      local s = lt.eye(5, {dtype = dtype}):expand(20, 5, 5):clone()
      s[3][4][4], s[20][1][1], s[9][5][5] = -1, 0, 0 / 0
      local _, orders = L.cholesky_ex(s)
      local expected = lt.zeros{20, dtype = "int32"}
      expected[3], expected[20], expected[9] = 4, 1, 5
      assert.is_true(lt.equal(orders, expected))
      raises("batch element 3: it is not positive definite (its leading minor of order 4 is not)",
        L.cholesky, s)
    end)
  end
end)

describe("matrix_exp", function()
  it("is exact for nilpotent matrices and rotations, and finite for large norms", function()
    close(lt.matrix_exp(lt.tensor({{0.0, 3}, {0, 0}}, {dtype = "float64"})),
      lt.tensor({{1.0, 3}, {0, 1}}, {dtype = "float64"}))
    local t = 20.5
    close(lt.matrix_exp(lt.tensor({{0, t}, {-t, 0}}, {dtype = "float64"})),
      lt.tensor({{math.cos(t), math.sin(t)}, {-math.sin(t), math.cos(t)}}, {dtype = "float64"}))
    close(lt.matrix_exp(lt.tensor({{0, 1e300}, {0, 0}}, {dtype = "float64"})),
      lt.tensor({{1, 1e300}, {0, 1}}, {dtype = "float64"}))
  end)

  it("of a batch scales each matrix by its own norm", function()
    local angles = {1e-30, 0.5, 3, 40, 700}
    local turns, expected = {}, {}
    for i, t in ipairs(angles) do
      turns[i] = lt.tensor({{0, t}, {-t, 0}}, {dtype = "float64"})
      expected[i] = lt.tensor({{math.cos(t), math.sin(t)}, {-math.sin(t), math.cos(t)}},
        {dtype = "float64"})
    end
    close(lt.matrix_exp(lt.stack(turns)), lt.stack(expected))
    local single = lt.matrix_exp(lt.stack(turns):to "float32"):to "float64"
    for i, t in ipairs(angles) do
      local exact = lt.matrix_exp(turns[i]:to "float32":to "float64")
      local bound = 1e-7 + t * 2 ^ -24 / 8 -- an eighth of the effect of rounding the matrix
      assert.is_true((single[i] - exact):abs():max():item() <= bound)
    end
  end)

  it("of a batch with NaN or infinity is right for the other matrices", function()
    for _, value in ipairs{0 / 0, math.huge} do
      local y = lt.matrix_exp(lt.stack{lt.eye(2) * 5, lt.full({2, 2}, value)}):to "float64"
      close(y[1] / math.exp(5), lt.eye(2):to "float64", 1e-6)
      assert.is_true(y[2]:isfinite():logical_not():all():item())
    end
  end)

  it("is the inverse of that of the negative, and has the eigenvalues' exponentials", function()
    lt.manual_seed(5)
    local a = random(40, 40)
    close(lt.matrix_exp(a):mm(lt.matrix_exp(-a)) / 1e4, lt.eye(40):to "float64" / 1e4)
    local s = a + a:t()
    local w, v = L.eigh(s)
    close(lt.matrix_exp(s) / w:max():exp(), (v * (w - w:max()):exp()):mm(v:t()))
  end)
end)

describe("eigenvectors of symmetric matrices", function()
  local epsilon = {float32 = 2 ^ -23, float64 = 2 ^ -52}

  -- Checks a v = v w, v^T v = 1 and the order of w, in units of the dtype's precision.
  local function decomposes(a, name, options)
    local w, v = L.eigh(a, options)
    local n, x, d, q = a:size(-1), a:double(), w:double(), v:double()
    local unit = epsilon[a.dtype] * math.max(x:abs():max():item(), 1e-300) * n
    local text = ("%s, %d rows, %s"):format(name, n, a.dtype)
    local residual = (x:mm(q) - q * d):abs():max():item() / unit
    local square = (q:t():mm(q) - lt.eye(n):double()):abs():max():item()
    assert.is_true(residual < 8, ("%s: residual %g"):format(text, residual))
    assert.is_true(square < 60 * epsilon[a.dtype], ("%s: v^T v - 1 is %g"):format(text, square))
    assert.is_true(n == 1 or w:diff():min():item() >= 0, text .. ": order")
    local alone = L.eigvalsh(a, options):double()
    assert.is_true((alone - d):abs():max():item() / unit < 8, text .. ": eigvalsh")
    return d
  end

  local function band(dtype, diagonal, beside)
    return lt.diag(diagonal) + lt.diag(beside, 1) + lt.diag(beside, -1):to(dtype)
  end

  for _, dtype in ipairs{"float32", "float64"} do
    it("are orthogonal for any eigenvalues, " .. dtype, function()
      lt.manual_seed(3)
      for _, n in ipairs{1, 2, 3, 7, 19, 20, 21, 40, 67, 150} do
        local a = lt.randn({n, n}, {dtype = dtype})
        local q = L.qr(a)
        local function with(values)
          local s = (q * values:to(dtype)):mm(q:t())
          return (s + s:t()) / 2
        end
        local i = lt.arange(n):to(dtype)
        decomposes(a + a:t(), "random")
        decomposes(a:mm(a:t()), "positive")
        decomposes(lt.eye(n):to(dtype), "identity")
        decomposes(lt.zeros({n, n}, {dtype = dtype}), "zero")
        decomposes(lt.ones({n, n}, {dtype = dtype}), "rank one")
        decomposes(with((i / 2):floor()), "pairs")
        decomposes(with(0.5 ^ i), "graded")
        decomposes(with(1 + epsilon[dtype] * i), "nearly equal")
        decomposes(band(dtype, (i - n / 2):abs(), lt.ones({n - 1}, {dtype = dtype})), "Wilkinson")
        for _, scale in ipairs{1e-30, 1e30} do decomposes((a + a:t()) * scale, "scale") end
      end
    end)

    it("belong to known eigenvalues, " .. dtype, function()
      for _, n in ipairs{5, 20, 33, 150} do
        local beside = -lt.ones({n - 1}, {dtype = dtype})
        local w = decomposes(band(dtype, lt.full({n}, 2, {dtype = dtype}), beside), "differences")
        local exact = 2 - 2 * (lt.arange(1, n):double() * (math.pi / (n + 1))):cos()
        assert.is_true((w - exact):abs():max():item() < 16 * epsilon[dtype])
      end
    end)

    it("are computed from one triangle, and for each matrix of a batch, " .. dtype, function()
      local a = lt.randn({3, 30, 30}, {dtype = dtype})
      local lower, upper = a:tril(), a:triu()
      local w, v = L.eigh(a)
      local symmetric = lower + a:tril(-1):transpose(-2, -1)
      local unit = 1000 * epsilon[dtype]
      close(v:matmul(v:transpose(-2, -1) * w:unsqueeze(-1)), symmetric, unit)
      assert.same(w:tolist(), (L.eigh(lower)):tolist())
      w, v = L.eigh(a, {UPLO = "U"})
      symmetric = upper + a:triu(1):transpose(-2, -1)
      close(v:matmul(v:transpose(-2, -1) * w:unsqueeze(-1)), symmetric, unit)
      assert.same(w:tolist(), (L.eigh(upper, {UPLO = "U"})):tolist())
    end)
  end

  it("do not depend on the number of threads", function()
    lt.manual_seed(4)
    local a, threads = lt.randn(300, 300), lt.get_num_threads()
    a = a + a:t()
    local w, v = L.eigh(a)
    for _, n in ipairs{1, 2, 3} do
      lt.set_num_threads(n)
      local x, y = L.eigh(a)
      assert.is_true(x:equal(w) and y:equal(v))
    end
    lt.set_num_threads(threads)
  end)

  it("report NaN and infinity", function()
    for _, value in ipairs{0 / 0, math.huge} do
      local a = lt.eye(40)
      a[{3, 3}] = value
      raises("the iteration did not converge", L.eigvalsh, a)
    end
  end)
end)
