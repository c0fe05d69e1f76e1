-- Decompositions by cuSOLVER: they stay on the device. Where the library is not found, and for ops
-- that it does not have, the host's LAPACK computes them, with copies that traces count.
local devices = require "device_support"
if devices.elsewhere("cuda/solver", _ENV, {emulate = {"cuda:2", "cuda:2,libraries=off"}}) then
  return
end

local assert = require "luassert"
local lt = require "lutra"
local L = lt.linalg

local dtypes = {"float32", "float64", "complex64", "complex128"}

local function count(f, ...)
  local trace, copies, waits = lt.placement.trace(f, ...), 0, 0
  for _, e in ipairs(trace.events) do
    copies = copies + (e.kind == "copy" and 1 or 0)
    waits = waits + (e.kind == "sync" and 1 or 0)
  end
  return copies, waits
end

local found = count(L.inv_ex, lt.eye(2, {device = "cuda:0"})) == 0 -- else on the CPU

local function close(expected, got)
  assert.same({table.unpack(expected.shape)}, {table.unpack(got.shape)})
  assert.equal("cuda:0", got.device)
  assert.is_true(lt.allclose(expected, got:cpu(), {rtol = 1e-3, atol = 1e-3, equal_nan = true}))
end

-- Compares the results of f on the device with those on the CPU.
local function same(f, ...)
  local host, device = {...}, {}
  for i, x in ipairs(host) do device[i] = x:to "cuda:0" end
  local expected, got = {f(...)}, {f(table.unpack(device))}
  for i = 1, #expected do close(expected[i], got[i]) end
end

-- Returns what is the same for all factors Q and R of a matrix, whose signs may differ.
local function products(q, r) return q:matmul(r), q.mH:matmul(q) end

-- Each is called with matrices {n, n}, positive definite ones, and right sides {n, 3}.
local rows = {
  cholesky = function(_, p) return L.cholesky(p) end,
  ["cholesky, upper"] = function(_, p) return L.cholesky(p, {upper = true}) end,
  ["cholesky_ex of indefinite matrices"] = function(a) return select(2, L.cholesky_ex(a)) end,
  lu_factor_ex = function(a) return L.lu_factor_ex(a) end,
  ["lu_factor_ex of wide matrices"] = function(_, _, b) return L.lu_factor_ex(b.mT) end,
  inv = function(_, p) return L.inv(p) end,
  solve = function(_, p, b) return L.solve(p, b) end,
  ["solve, right"] = function(_, p, b) return L.solve(p, b.mT, {left = false}) end,
  ["solve_triangular, upper"] = function(_, p, b)
    return L.solve_triangular(p, b, {upper = true})
  end,
  ["solve_triangular, right"] = function(_, p, b)
    return L.solve_triangular(p, b.mT, {upper = false, left = false})
  end,
  ["solve_triangular, unit"] = function(_, p, b)
    return L.solve_triangular(p / 9, b, {upper = false, unitriangular = true})
  end,
  det = function(a) return L.det(a) end,
  slogdet = function(a) return L.slogdet(a) end,
  qr = function(a) return products(L.qr(a)) end,
  ["qr of tall matrices"] = function(_, _, b) return products(L.qr(b, {mode = "complete"})) end,
  ["qr, r of wide matrices"] = function(_, _, b)
    local _, r = L.qr(b.mT, {mode = "r"})
    return r.mH:matmul(r)
  end,
  ["geqrf and householder_product"] = function(a)
    local reflections, tau = lt.geqrf(a)
    return products(L.householder_product(reflections, tau), reflections:triu())
  end,
  ormqr = function(a, _, b)
    local reflections, tau = lt.geqrf(a)
    local q = L.householder_product(reflections, tau)
    return lt.ormqr(reflections, tau, b, true, true) - q.mH:matmul(b),
      lt.ormqr(reflections, tau, b.mT, false) - b.mT:matmul(q)
  end,
  eigvalsh = function(_, p) return L.eigvalsh(p) end,
  ["eigh, upper"] = function(_, p)
    local l, v = L.eigh(p, "U")
    return l, (v * l:unsqueeze(-2)):matmul(v.mH), v.mH:matmul(v)
  end,
  svdvals = function(_, _, b) return L.svdvals(b) end,
  ["svd of tall matrices"] = function(_, _, b)
    local u, s, v = L.svd(b, {full_matrices = false})
    return s, (u * s:unsqueeze(-2)):matmul(v), v:matmul(v.mH)
  end,
  ["svd of wide matrices"] = function(_, _, b)
    local u, s, v = L.svd(b.mT)
    local k = s.shape[#s.shape]
    return s, (u[{"...", {1, k}}] * s:unsqueeze(-2)):matmul(v[{"...", {1, k}, {}}]), v:matmul(v.mH)
  end,
}

describe("decompositions on CUDA", function()
  for name, f in pairs(rows) do
    it("give the CPU's values: " .. name, function()
      lt.manual_seed(3)
      for _, dtype in ipairs(dtypes) do
        for _, batch in ipairs{{}, {1}, {3}, {2, 2}} do
          for _, n in ipairs{1, 5, batch[1] == 3 and 130 or 4} do
            local shape = {table.unpack(batch)}
            shape[#shape + 1] = n
            shape[#shape + 1] = n
            local a = lt.randn(shape, {dtype = dtype})
            shape[#shape] = 3
            local b = lt.randn(shape, {dtype = dtype})
            same(f, a / n, a:matmul(a.mH) / n + lt.eye(n, {dtype = dtype}), b)
          end
        end
      end
    end)
  end

  it("accept strided matrices and matrices without elements", function()
    local a = lt.randn(6, 8)
    local p = a:matmul(a.mT) + lt.eye(6)
    same(function(x) return L.cholesky(x[{{1, 6, 2}, {1, 6, 2}}]) end, p)
    same(function(x) return L.inv(x.mT) end, p)
    same(function(x) return L.inv(x:expand(3, 6, 6)) end, p)
    same(L.inv, lt.zeros(0, 3, 3))
    same(L.cholesky, lt.zeros(2, 0, 0))
    same(L.det, lt.zeros(2, 0, 0))
    same(L.solve, lt.eye(3), lt.zeros(3, 0))
  end)

  it("use the library where it is", function()
    local emulated = os.getenv "LUTRA_EMULATE"
    if emulated then assert.equal(not emulated:find("libraries=off", 1, true), found) end
  end)

  it("run on every device and stream", function()
    local p = lt.randn(40, 40)
    p = p:matmul(p.mT) + lt.eye(40)
    local expected = L.inv(p)
    for i = lt.cuda.device_count() - 1, 0, -1 do
      local device = "cuda:" .. i
      local side = lt.cuda.Stream(device)
      local x = p:to(device)
      local inverse
      lt.cuda.synchronize(device)
      lt.cuda.with_stream(side, function() inverse = L.inv(x) end)
      side:synchronize()
      assert.equal(device, inverse.device)
      assert.is_true(lt.allclose(expected, inverse:cpu(), {rtol = 1e-3, atol = 1e-3}))
    end
  end)

  it("report singular matrices", function()
    local x = lt.stack{lt.eye(2), lt.zeros(2, 2)}:to "cuda:0"
    assert.error_matches(function() L.inv(x) end,
      "cannot invert: the matrix of batch element 2 is singular: element 1 of the diagonal of U")
    assert.error_matches(function() L.cholesky(-x[1]) end,
      "not positive definite %(its leading minor of order 1 is not%)")
    local _, info = L.inv_ex(x)
    assert.same({0, 1}, info:totable())
  end)

  it("report pivots that are no rows", function()
    local lu = lt.eye(2):to "cuda:0"
    for _, device in ipairs{"cpu", "cuda:0"} do
      assert.error_matches(function()
        lt.lu_unpack(lu:to(device), lt.tensor({1, 3}, {dtype = "int32", device = device}))
        lt.cuda.synchronize()
      end, "expected an index from 1 to 2 for argument 'pivots', got 3 at index {2}")
    end
  end)

  it("copy only what the host computes", function()
    local x = lt.tensor({{4.0, 1}, {1, 3}}, {device = "cuda:0"})
    assert.equal(found and 0 or 3, (count(L.inv_ex, x)))
    assert.equal(found and 0 or 3, (count(L.cholesky_ex, x)))
    assert.equal(found and 0 or 2, (count(lt.det, x)))
    assert.equal(found and 0 or 3, (count(L.qr, x)))
    assert.equal(found and 0 or 3, (count(lt.geqrf, x)))
    assert.equal(found and 0 or 3, (count(L.eigh, x)))
    assert.equal(found and 0 or 4, (count(L.svd, x)))
    assert.equal(3, (count(L.eig, x)))
    assert.equal(found and 0 or 4, (count(L.lu, x)))
  end)

  if found then
    it("block the host only to raise errors", function()
      local x = lt.tensor({{4.0, 1}, {1, 3}}, {device = "cuda:0"})
      assert.equal(0, (select(2, count(L.cholesky_ex, x))))
      assert.equal(1, (select(2, count(L.cholesky, x))))
    end)
  end
end)
