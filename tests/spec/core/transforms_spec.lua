--- Fourier transforms of all kinds of sizes against the sum that defines them, linear layouts, the
-- device of the host's kernels, and the errors of transforms and products.

local lt = require "lutra"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local function near(want, got, tolerance, what)
  local function wide(x) return x:to("cpu"):to("complex128") end
  local difference = (wide(want) - wide(got)):abs():max():item()
  assert.is_true(difference <= tolerance, ("%s: %g"):format(what or "", difference))
end

-- The sum of x[j] exp(-2 pi i j k / n), along the last dim, in float64.
local function by_definition(x)
  local n = x:size(-1)
  local k = lt.arange(0, n - 1)
  local angle = k:outer(k):remainder(n):to("float64") * (-2 * math.pi / n)
  local c, s = angle:cos(), angle:sin()
  local re, im = x.real:to "float64", x.imag:to "float64"
  return lt.complex(re:matmul(c) - im:matmul(s), re:matmul(s) + im:matmul(c))
end

before_each(function() lt.manual_seed(7) end)

local function complex_randn(dtype, ...)
  local shape = {...}
  return lt.complex(lt.randn(shape, {dtype = dtype}), lt.randn(shape, {dtype = dtype}))
end

describe("a transform", function()
  it("is the sum that defines it, for sizes with small and large prime factors", function()
    for _, n in ipairs {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 18, 25, 27, 29, 31, 32, 37, 49, 60,
      62, 74, 97, 100, 128, 210, 256, 331, 512, 768, 1009, 1024, 1147, 1184, 2286} do
      for dtype, tolerance in pairs {float64 = 1e-13, float32 = 2e-6} do
        local x = complex_randn(dtype, 3, n)
        local limit, want = tolerance * math.sqrt(n) * 4, by_definition(x)
        local what = ("%d %s"):format(n, dtype)
        near(want, lt.fft.fft(x), limit, what)
        near(x, lt.fft.ifft(lt.fft.fft(x)), limit, what .. " inverse")
        near(want, lt.fft.fft(x:t():contiguous(), {dim = 1}):t(), limit, what .. " columns")
        near(want, lt.fft.fft(x:t():contiguous():t()), limit, what .. " strided")
        local r = x.real:contiguous()
        local half = by_definition(lt.complex(r, lt.zeros_like(r))):narrow(2, 1, n // 2 + 1)
        near(half, lt.fft.rfft(r), limit, what .. " real")
        near(r, lt.fft.irfft(lt.fft.rfft(r), n), limit, what .. " real inverse")
        near(half, lt.fft.rfft(r:t(), {dim = 1}):t(), limit, what .. " real columns")
      end
    end
  end)

  it("of many and of large lines is that of each line", function()
    for _, n in ipairs {16384, 3 * 7 * 1024, 16411, 65536} do
      local x = complex_randn("float64", 2, n)
      local y = lt.fft.fft(x)
      near(x, lt.fft.ifft(y), 1e-13, n .. " inverse")
      for _, k in ipairs {0, 1, 12345 % n, n - 1} do
        local angle = (lt.arange(0, n - 1) * k):remainder(n):to("float64") * (-2 * math.pi / n)
        local wave = lt.polar(lt.ones(n, {dtype = "float64"}), angle)
        near((x * wave):sum(2), y:select(2, k + 1), 1e-10, n .. " at " .. k)
      end
      near(lt.fft.fft(x.real:contiguous()):narrow(2, 1, n // 2 + 1), lt.fft.rfft(x.real), 1e-10,
        n .. " real")
    end
    local x = lt.randn(1000, 24)
    near(lt.fft.rfft(x[777]), lt.fft.rfft(x)[777], 0)
  end)

  it("of large lines has the values of the sum that defines it", function()
    for _, n in ipairs {16384, 16807, 44100, 19 * 1024, 37 * 1024, 97 * 256, 127 * 130, 524288} do
      for dtype, tolerance in pairs {float64 = 1e-13, float32 = 2e-6} do
        local x, limit = complex_randn(dtype, 2, n), tolerance * math.sqrt(n) * 4
        local y, z = lt.fft.fft(x), lt.fft.ifft(x)
        for _, k in ipairs {0, 1, 129, 4099, n // 2, n - 3} do
          local angle = (lt.arange(0, n - 1) * k):remainder(n):to("float64") * (2 * math.pi / n)
          local turn = lt.complex(angle:cos(), angle:sin())
          local wide, what = x:to "complex128", ("%d %s, value %d"):format(n, dtype, k)
          near((wide * turn:conj()):sum(2), y:select(2, k + 1), limit, what)
          near((wide * turn):sum(2), z:select(2, k + 1) * n, limit, what .. " of the inverse")
        end
      end
    end
  end)

  it("of large lines of single precision is that of double precision", function()
    for _, n in ipairs {2048, 37 * 256, 37 * 512, 16384, 3 * 7 * 1024, 65536, 250000, 1 << 19} do
      local x = complex_randn("float32", 2, n)
      local wide = x:to "complex128"
      local limit = 5e-6 * math.sqrt(n)
      near(lt.fft.fft(wide), lt.fft.fft(x):to "complex128", limit, n)
      near(lt.fft.fft(wide:t(), {dim = 1}), lt.fft.fft(x:t(), {dim = 1}):to "complex128", limit,
        n .. " columns")
      near(lt.fft.rfft(wide.real), lt.fft.rfft(x.real):to "complex128", limit, n .. " real")
      near(lt.fft.irfft(wide, n), lt.fft.irfft(x, n):double(), 1e-6, n .. " to real")
    end
  end)

  it("of a line whose parts are large, too, is that of one element", function()
    local n, at = 714 * 16399, 5
    local x = lt.zeros(n, {dtype = "complex64"})
    x[at + 1] = 1
    local y = lt.fft.fft(x)
    for _, k in ipairs {0, 1, 713, 16399, 5000000, n - 1} do
      local angle = -2 * math.pi * (k * at % n) / n
      assert.near(math.cos(angle), y.real[k + 1]:item(), 1e-6)
      assert.near(math.sin(angle), y.imag[k + 1]:item(), 1e-6)
    end
  end)

  it("of real numbers is that of complex numbers, for any dims", function()
    local sizes = {{3, 4, 6}, {2, 5, 7}, {5, 1}, {2, 3, 4, 5}, {2, 512}, {2, 768, 2}, {3, 16, 128}}
    for _, shape in ipairs(sizes) do
      for _, dtype in ipairs {"float32", "float64"} do
        local limit = dtype == "float32" and 1e-4 or 1e-12
        local x = lt.randn(shape, {dtype = dtype})
        local y = x:transpose(1, -1):contiguous():transpose(1, -1)
        local z = lt.complex(x, lt.zeros_like(x))
        for _, dims in ipairs {{-1}, {1}, {-2, -1}, {-1, -2}, {1, 2}, {1, -1}, false} do
          if not dims or #dims == 1 or dims[1] % (#shape + 1) ~= dims[2] % (#shape + 1) then
            for _, name in ipairs {"fftn", "ifftn"} do
              local f, what = lt.fft[name], ("%s %s"):format(name, dtype)
              near(f(z, nil, dims or nil), f(x, nil, dims or nil), limit, what)
              near(f(z, nil, dims or nil, "ortho"), f(y, nil, dims or nil, "ortho"), limit,
                what .. " strided")
            end
          end
        end
      end
    end
    local x = lt.randn(2, 6, 10):requires_grad_(true)
    local w = lt.randn(2, 4, 16)
    local function gradient(v)
      return lt.autograd.grad((lt.fft.fft2(v, {4, 16}):abs() * w):sum(), x)
    end
    near(gradient(x:to "complex64"), gradient(x), 1e-4)
  end)

  it("of a line has the same bits alone and among others", function()
    for _, n in ipairs {5, 8, 29, 132, 1000} do
      for _, dtype in ipairs {"float32", "float64"} do
        local x = complex_randn(dtype, 43, n)
        local r = x.real:contiguous()
        local y, half, back = lt.fft.fft(x), lt.fft.rfft(r), lt.fft.irfft(x)
        local what = ("%d %s"):format(n, dtype)
        for line = 1, 43 do
          near(lt.fft.fft(x[line]), y[line], 0, what)
          near(lt.fft.rfft(r[line]), half[line], 0, what .. " real")
          near(lt.fft.irfft(x[line]), back[line], 0, what .. " real inverse")
        end
        near(y, lt.fft.fft(x:t():contiguous(), {dim = 1}):t(), 0, what .. " columns")
      end
    end
    local x = lt.randn(43, 1024)
    local y, half, back = lt.fft.fft(x), lt.fft.rfft(x), lt.fft.irfft(x)
    for line = 1, 43 do
      near(lt.fft.fft(x[line]), y[line], 0)
      near(lt.fft.rfft(x[line]), half[line], 0)
      near(lt.fft.irfft(x[line]), back[line], 0)
    end
  end)

  it("does not depend on the number of threads", function()
    local x, threads = complex_randn("float32", 64, 1000), lt.get_num_threads()
    local real, line = lt.randn(64, 1024), complex_randn("float32", 229376)
    local function results()
      return {lt.fft.fft(x), lt.fft.fft(x:reshape(-1)), lt.fft.fft(real), lt.fft.fft2(real),
        lt.fft.rfft(real), lt.fft.ifftn(real:reshape(4, 16, 32, 32)), lt.fft.fft(line),
        lt.fft.ifft(line:narrow(1, 1, 131072)), lt.fft.rfft(line.real:contiguous())}
    end
    local several = results()
    lt.set_num_threads(1)
    local one = results()
    lt.set_num_threads(threads)
    for i, y in ipairs(several) do near(y, one[i], 0) end
  end)

  it("keeps NaN in its line", function()
    local x = lt.ones(3, 8)
    x[{2, 3}] = 0 / 0
    local finite = lt.fft.rfft(x):abs():isfinite()
    assert.same({{true, true, true, true, true}, {false, false, false, false, false},
      {true, true, true, true, true}}, finite:totable())
  end)

  it("has the dtype and shape of its result on meta", function()
    local x = lt.empty{2, 9, device = "meta"}
    assert.same({"complex64", 2, 5}, {lt.fft.rfft(x).dtype, table.unpack(lt.fft.rfft(x).shape)})
    assert.same({2, 16}, {table.unpack(lt.fft.irfft(x).shape)})
    assert.equal("complex128", lt.fft.fft(x:to "float64").dtype)
    assert.same({2, 5, 5}, {table.unpack(lt.stft(x, 8, {return_complex = true}).shape)})
  end)
end)

describe("istft", function()
  it("is the inverse of stft for any hop", function()
    for _, hop in ipairs {1, 2, 4, 5, 8, 16} do
      for _, x in ipairs {lt.randn{2, 96, dtype = "float64"}, complex_randn("float64", 96)} do
        local complex = x:is_complex()
        local options = {hop_length = hop, window = lt.rand{16, dtype = "float64"} + 0.5,
          return_complex = true}
        local s = lt.stft(x, 16, options)
        options.return_complex, options.length = complex, 96
        if complex then options.onesided = false end
        local y = lt.istft(s, 16, options)
        local whole = 96 - 96 % hop -- the samples that frames cover
        near(x:narrow(-1, 1, whole), y:narrow(-1, 1, whole), 1e-12, "hop " .. hop)
      end
    end
  end)
end)

describe("the gradient of", function()
  for name, n in pairs {fft = 7, ifft = 8, rfft = 9, ihfft = 6, irfft = 5, hfft = 4} do
    it(name .. " agrees with finite differences, and has a gradient", function()
      local x = lt.randn(2, n, {dtype = "float64"})
      local w = lt.randn(lt.fft[name](x).shape, {dtype = "float64"})
      local function value(v) return (lt.fft[name](v):abs():square() * w):sum() end
      local leaf = x:clone():requires_grad_(true)
      local g = lt.autograd.grad(value(leaf), leaf, {create_graph = true})
      local direction, step = lt.randn(2, n, {dtype = "float64"}), 1e-4
      local slope = (value(x + direction * step) - value(x - direction * step)):item() / (2 * step)
      local got = (g * direction):sum()
      assert.is_true(math.abs(got:item() - slope) < 1e-5 * (1 + math.abs(slope)), name)
      local second = lt.autograd.grad(got, leaf) -- of a quadratic form: H direction
      local sum = value(x + direction * step) + value(x - direction * step)
      local curve = (sum - 2 * value(x)):item() / (step * step)
      assert.is_true(math.abs((second * direction):sum():item() - curve)
        < 1e-3 * (1 + math.abs(curve)), name .. " second")
    end)
  end

  it("complex input of a transform is PyTorch's: the conjugate transpose", function()
    local x = complex_randn("float64", 6):requires_grad_(true)
    lt.fft.fft(x):abs():square():sum():backward()
    near(x:detach() * 12, x.grad, 1e-12)
  end)
end)

describe("the error of", function()
  for what, case in pairs {
    ["no numbers"] = {"fft: expected at least 1 number to transform", function()
      lt.fft.fft(lt.zeros(2, 0))
    end},
    ["a size of 0"] = {"rfft: expected at least 1 number to transform for argument 'n', got 0",
      function() lt.fft.rfft(lt.zeros(2), 0) end},
    ["complex input of rfft"] = {"rfft: expected a real tensor for argument 'input'",
      function() lt.fft.rfft(lt.zeros{2, dtype = "complex64"}) end},
    ["half"] = {"fft: expected \"float32\", \"float64\"",
      function() lt.fft.fft(lt.zeros{2, dtype = "float16"}) end},
    ["a dim twice"] = {"fftn: expected each dim once for argument 'dim', got -1 twice",
      function() lt.fft.fftn(lt.zeros(2, 2), nil, {2, -1}) end},
    ["a dim out of range"] = {"fft: expected a dim of 1 to 1 or -1 to -1 for argument 'dim', got 2",
      function() lt.fft.fft(lt.zeros(2), {dim = 2}) end},
    ["a norm"] = {"norm",
      function() lt.fft.fft(lt.zeros(2), {norm = "half"}) end},
    ["sizes"] = {"fft2: expected one size for each dim for argument 's', got 1 sizes and 2 dims",
      function() lt.fft.fft2(lt.zeros(2, 2), {3}) end},
    ["a long frame"] = {"stft: expected 1 to 10 samples for argument 'n_fft', got 11",
      function() lt.stft(lt.zeros(10), 11, {center = false, return_complex = true}) end},
    ["return_complex"] = {"stft: expected a boolean for argument 'return_complex'",
      function() lt.stft(lt.zeros(10), 4) end},
    ["a window"] = {"stft: expected a vector of 4 numbers (win_length) for argument 'window'",
      function() lt.stft(lt.zeros(10), 4, {window = lt.ones(5), return_complex = true}) end},
    ["windows of 0"] = {"istft: cannot divide by the sum of squared windows", function()
      lt.istft(lt.zeros{5, 3, dtype = "complex64"}, 8, {window = lt.zeros(8)})
    end},
    ["frequencies"] = {"istft: expected 8 frequencies", function()
      lt.istft(lt.zeros{6, 3, dtype = "complex64"}, 8)
    end},
    ["a window's length"] = {"hann: expected an integer of at least 0 for argument 'M', got -1",
      function() lt.signal.windows.hann(-1) end},
    ["a window's dtype"] = {"hann_window: expected a float dtype for argument 'dtype'",
      function() lt.hann_window(4, {dtype = "int64"}) end},
    ["einsum's labels"] = {"einsum: expected size 3 for the label 'j' of operand 2, as before",
      function() lt.einsum("ij,jk", lt.ones(2, 3), lt.ones(4, 5)) end},
    ["einsum's dimensions"] = {"einsum: expected 3 dimensions for operand 1 by its labels",
      function() lt.einsum("ijk", lt.ones(2, 3)) end},
    ["einsum's operands"] = {"einsum: expected 2 operands by the equation, got 1",
      function() lt.einsum("i,j", lt.ones(2)) end},
    ["einsum's result"] = {"einsum: expected the labels of operands in the result, got 'z'",
      function() lt.einsum("i->z", lt.ones(2)) end},
    ["einsum's characters"] = {"einsum: expected letters",
      function() lt.einsum("i1", lt.ones(2)) end},
    ["tensordot's sizes"] = {"tensordot: cannot contract dim 2 of {2, 3} with dim 1 of {4, 5}",
      function() lt.tensordot(lt.ones(2, 3), lt.ones(4, 5), 1) end},
    ["cdist's sizes"] = {"cdist: expected the same last size for arguments 'x1' and 'x2'",
      function() lt.cdist(lt.ones(2, 3), lt.ones(2, 4)) end},
    ["addmv's shape"] = {"addmv: cannot broadcast self {3} to the product {2}",
      function() lt.addmv(lt.ones(3), lt.ones(2, 4), lt.ones(4)) end},
    ["addmm_'s shape"] = {"addmm_: cannot store the result in self",
      function() lt.ones(3):addmm_(lt.ones(2, 3), lt.ones(3, 3)) end},
    ["addr's vectors"] = {"addr: expected a tensor with 1 dimension for argument 'vec1'",
      function() lt.addr(lt.ones(3), lt.ones(2, 2), lt.ones(3)) end},
  } do
    it(what, function() assert.matches(case[1], message_of(case[2]), 1, true) end)
  end
end)

describe("einsum", function()
  -- The sum of products over all values of the labels, by a loop: a list in row-major order.
  local function by_loop(left, right, result, sizes, a, b)
    local labels, out = {}, {}
    for label in pairs(sizes) do labels[#labels + 1] = label end
    local at = {}
    local function element(x, of)
      local index = {}
      for c in of:gmatch "." do index[#index + 1] = math.min(at[c], x:size(#index + 1)) end
      return #index > 0 and x[index]:item() or x:item()
    end
    local function visit(k)
      if k > #labels then
        local place = 0
        for c in result:gmatch "." do place = place * sizes[c] + at[c] - 1 end
        out[place + 1] = (out[place + 1] or 0) + element(a, left) * element(b, right)
        return
      end
      for i = 1, sizes[labels[k]] do
        at[labels[k]] = i
        visit(k + 1)
      end
    end
    visit(1)
    return out
  end

  it("of two tensors is the sum of products for any order of labels", function()
    local sizes = {i = 2, j = 3, k = 4, l = 5}
    for _, case in ipairs{{"ij", "jk", "ik"}, {"ji", "kj", "ki"}, {"ij", "ij", "i"},
      {"ij", "ij", "j"}, {"ijk", "ikl", "ijl"}, {"kij", "lki", "lji"}, {"ij", "ji", ""},
      {"i", "i", ""}, {"ij", "j", "i"}, {"j", "ij", "i"}, {"ijk", "jk", "i"}, {"ij", "kl", "ljki"},
      {"ijkl", "jl", "ki"}, {"ij", "jk", "k"}, {"ij", "j", "ij"}, {"ikj", "jkl", "lik"},
      {"ij", "jk", nil}, {"kj", "ji", nil}} do
      local function tensor(labels, from)
        local shape = {}
        for c in labels:gmatch "." do shape[#shape + 1] = sizes[c] end
        local n = 1
        for _, size in ipairs(shape) do n = n * size end
        return (lt.arange(n, {dtype = "float64"}) + from):remainder(7):sub(3):reshape(shape)
      end
      local left, right, result = case[1], case[2], case[3]
      local a, b = tensor(left, 0), tensor(right, 4)
      local used = {}
      for c in (left .. right):gmatch "." do used[c] = sizes[c] end
      local want = by_loop(left, right, result or "ik", used, a, b)
      local equation = left .. "," .. right .. (result and "->" .. result or "")
      for _ = 1, 2 do -- the second call uses what is known of the equation
        assert.same(want, lt.einsum(equation, a, b):flatten():totable(), equation)
      end
    end
  end)

  it("of one tensor is a sum and an order of its dims", function()
    local sizes, x = {i = 2, j = 3, k = 4}, lt.arange(24.):reshape(2, 3, 4)
    for _, result in ipairs{"ijk", "kij", "jik", "jk", "ki", "j", "k", ""} do
      local want = by_loop("ijk", "", result, sizes, x, lt.tensor(1.0))
      local equation = "ijk->" .. result
      for _ = 1, 2 do
        local y = lt.einsum(equation, x)
        assert.equal(#result, y.ndim)
        assert.same(want, y:flatten():totable(), equation)
      end
      assert.is_false(pcall(lt.einsum, equation, x[1]))
    end
    assert.is_true(lt.equal(x:permute(2, 3, 1), lt.einsum("kij", x))) -- labels in order: i, j, k
    assert.equal(x:data_ptr(), lt.einsum("ijk->kij", x):data_ptr())
  end)

  it("broadcasts a size of 1 where the same equation was used without", function()
    local a, b = lt.arange(6.):reshape(2, 3), lt.arange(12.):reshape(3, 4)
    lt.einsum("ij,jk->ik", a, b)
    assert.same(by_loop("ij", "jk", "ik", {i = 2, j = 3, k = 4}, a, b:narrow(1, 1, 1)),
      lt.einsum("ij,jk->ik", a, b:narrow(1, 1, 1)):flatten():totable())
    assert.is_false(pcall(lt.einsum, "ij,jk->ik", a, lt.ones(4, 3)))
    assert.is_false(pcall(lt.einsum, "ij,jk->ik", a, lt.ones(3)))
    assert.equal("{2, 4}", tostring(lt.einsum("ij,jk->ik", lt.ones(2, 0), lt.ones(0, 4)).shape))
  end)

  it("contracts many operands in an order that needs little memory", function()
    local a = lt.randn(40, 40, {dtype = "float64"})
    local want = a:mm(a):mm(a):mm(a):mm(a:select(2, 1):unsqueeze(2)):squeeze(2)
    near(want, lt.einsum("ab,bc,cd,de,e->a", a, a, a, a, a:select(2, 1)), 1e-9)
    local list = {"ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak"}
    for i = 1, 10 do list[i + 1] = a end
    local power = a
    for _ = 2, 10 do power = power:mm(a) end
    near(power, lt.einsum(table.unpack(list)), 1e-4)
  end)
end)

describe("the transform of numbers without dims", function()
  it("is refused", function()
    for _, dtype in ipairs{"float32", "complex64"} do
      local x = lt.tensor(1.0):to(dtype)
      assert.matches("at least 1 dimension", message_of(function()
        require("lutra.core")._ops._fft_c2c(x, {1}, false, 1)
      end), 1, true)
      assert.equal(1, require("lutra.core")._ops._fft_c2c(x, {}, false, 1).real:item())
    end
  end)
end)

describe("kaiser_window", function()
  it("does not overflow", function()
    -- I0(sqrt(480000)) / I0(800), with y^2 = 800^2 - 400^2, summed with 60 digits.
    local w = lt.kaiser_window(5, false, 800, {dtype = "float64"}):totable()
    assert.is_true(math.abs(w[2] / 3.04581074721122e-47 - 1) < 1e-11)
    assert.are.equal(1, w[3])
    assert.are.same({0, 0, 1, 0, 0}, lt.kaiser_window(5, false, 2.0 ^ 62):totable())
  end)
end)
