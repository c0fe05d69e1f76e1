-- Complex numbers: creation, copies, conversions, printing, views, arithmetic, the Lua value, and
-- what refuses them. Values are PyTorch's (golden/complex_values.lua) or follow from mathematics.
-- The spec runs on the CPU and again on emulated CUDA devices.

local lt = require "lutra"
local devices = require "device_support"
local golden = dofile((debug.getinfo(1, "S").source:match "^@(.*)spec/" or "tests/")
  .. "golden/complex_values.lua")

devices.elsewhere("core/complex", _ENV)
local there = (os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU") and "cuda:0" or "cpu"
local C = lt.complex

-- A tensor of pairs {re, im} there.
local function tensor(pairs_of_parts, dtype)
  local list = {}
  for i, z in ipairs(pairs_of_parts) do list[i] = C(z[1] or 0, z[2] or 0) end
  return lt.tensor(list, {dtype = dtype, device = there})
end

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return (tostring(message):gsub("^[^\n]-:%d+: ", ""))
end

-- Holds a tensor to pairs of parts, or to numbers.
local function check(expected, t, tolerance, label)
  assert.equal(#expected, t:numel())
  for i, z in ipairs(t:reshape(-1):totable()) do
    local want = type(expected[i]) == "table" and expected[i] or {expected[i], 0}
    local re, im = lt.is_complex(z) and z.re or z, lt.is_complex(z) and z.im or 0
    local size = math.max(1, math.abs(want[1] or 0), math.abs(want[2] or 0))
    local function alike(a, b) return a == b or math.abs(a - b) <= tolerance * size end
    local near = not want[1] or (alike(re, want[1]) and alike(im, want[2]))
    assert.truthy(near, ("%s, element %d: got %s, expected %s + %si"):format(label or "", i,
      tostring(z), want[1], want[2]))
  end
end

describe("a complex tensor", function()
  it("is created from numbers and from parts", function()
    local z = lt.tensor({{C(1, 2), 3}, {0.5, C(0, -1)}}, {device = there})
    assert.equal("complex64", z.dtype)
    assert.equal("{2, 2}", tostring(z.shape))
    assert.equal(8, z:element_size())
    check({{1, 2}, {3, 0}, {0.5, 0}, {0, -1}}, z, 0)
    local parts = C(lt.tensor({1., 2.}, {device = there}), lt.tensor({3., 4.}, {device = there}))
    check({{1, 3}, {2, 4}}, parts, 0)
    assert.equal("complex128", C(lt.zeros{2, dtype = "float64"}, 1).dtype)
    assert.equal("complex64", C(1, lt.zeros{2, dtype = "int64"}).dtype)
    assert.equal("{3, 2}", tostring(C(lt.zeros(3, 1), lt.zeros(2)).shape))
    check({{0, 2}}, lt.polar(2, lt.tensor({math.pi / 2}, {device = there})), 1e-6)
  end)

  it("is created from parts of any layout and real dtype", function()
    local wide = lt.rand(70, 90, {device = there})
    local cases = {
      {wide, wide:t():contiguous():t()}, {wide:t(), 2}, {-1, wide["::3, 2::5"]},
      {wide[1], wide:narrow(2, 1, 1)}, {lt.zeros(0, 3, {device = there}), 1},
      {wide[1][1], wide[2][2]}, {wide:half(), (wide * 100):int()}, {wide:double(), wide:gt(0.5)},
    }
    for i, parts in ipairs(cases) do
      local z = C(parts[1], parts[2])
      local zero = lt.zeros(z.shape, {device = there})
      assert.equal(i == 8 and "complex128" or "complex64", z.dtype)
      assert.is_true(z:is_contiguous())
      assert.is_true(lt.equal(z.real:double(), (zero:double() + parts[1]):double()), "case " .. i)
      assert.is_true(lt.equal(z.imag:double(), (zero:double() + parts[2]):double()), "case " .. i)
    end
    local x = lt.rand(3, {device = there}):half():requires_grad_()
    C(x, 1):abs():square():sum():backward()
    assert.is_true(lt.allclose(x.grad:float(), 2 * x:detach():float(), 1e-3, 1e-3))
  end)

  it("has the angle, modulus and sign of each element, wherever that is", function()
    local parts = {0.0, -0.0, 1.0, -1.0, 3.0, -0.25, 1e-30, -2e19, math.huge, -math.huge}
    for dtype, near in pairs{complex64 = 2e-7, complex128 = 1e-15} do
      local list = {}
      for _, re in ipairs(parts) do
        for _, im in ipairs(parts) do list[#list + 1] = C(re, im) end
      end
      local z = lt.tensor(list, {dtype = dtype, device = there})
      local angle, size, sign = z:angle():totable(), z:abs():totable(), z:sgn():totable()
      for i, x in ipairs(list) do
        local expected = math.atan(x.im, x.re)
        local finite = math.max(math.abs(x.re), math.abs(x.im)) < math.huge
        local modulus = finite and math.sqrt(x.re ^ 2 + x.im ^ 2) or math.huge
        if modulus == 0 then modulus = math.max(math.abs(x.re), math.abs(x.im)) end
        assert(math.abs(angle[i] - expected) <= 4 * near, ("angle %s: %.17g"):format(x, angle[i]))
        assert.equal(1 / expected < 0, 1 / angle[i] < 0)
        assert(size[i] == modulus or math.abs(size[i] - modulus) <= near * modulus,
          ("abs %s: %.17g"):format(x, size[i]))
        if finite then
          local s = modulus == 0 and C(0, 0) or C(x.re / modulus, x.im / modulus)
          local got = lt.is_complex(sign[i]) and sign[i] or C(sign[i], 0)
          assert(math.abs(got.re - s.re) <= 2 * near and math.abs(got.im - s.im) <= 2 * near,
            ("sgn %s: %s"):format(x, got))
        end
        local alone = z[i]:angle():item()
        assert(alone == angle[i], ("angle of %s alone: %.17g"):format(x, alone))
        assert(z[i]:abs():item() == size[i], ("modulus of %s alone"):format(x))
      end
    end
    local nan = lt.tensor({C(0 / 0, 1), C(1, 0 / 0), C(0 / 0, 0 / 0)}, {device = there})
    for _, v in ipairs(nan:angle():totable()) do assert.is_true(v ~= v) end
    assert.equal(math.huge, lt.tensor({C(0 / 0, math.huge)}, {device = there}):abs():item())
  end)

  it("is created by zeros, ones, full, empty and the random factories", function()
    local options = {dtype = "complex128", device = there}
    check({{0, 0}, {0, 0}}, lt.zeros({2}, options), 0)
    check({{1, 0}, {1, 0}}, lt.ones({2}, options), 0)
    check({{1, 2}, {1, 2}}, lt.full({2}, C(1, 2), {device = there}), 0)
    assert.equal("complex64", lt.full({2}, C(1, 2)).dtype)
    assert.equal("complex128", lt.empty({2}, options).dtype)
    check({{0, 0}}, lt.zeros_like(tensor{{1, 2}}), 0)
    local normal = lt.randn({4000}, options)
    assert.truthy(math.abs(normal:abs():square():mean():item() - 1) < 0.1)
    assert.truthy(math.abs(normal.imag:var():item() - 0.5) < 0.1)
    assert.truthy(lt.rand({50}, options).imag:max():item() < 1)
  end)

  it("is converted from real dtypes, and to bool", function()
    for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
        "int8", "uint8", "bool"} do
      local x = lt.tensor({1, 0, 1}, {dtype = dtype, device = there})
      check({{1, 0}, {0, 0}, {1, 0}}, x:to "complex64", 0, dtype)
      check({{1, 0}, {0, 0}, {1, 0}}, x:to "complex128", 0, dtype)
    end
    assert.same({true, true, false}, tensor{{1, 0}, {0, 1}, {0, 0}}:to("bool"):totable())
    check({{0.5, 0.25}}, tensor({{0.5, 0.25}}, "complex128"):to "complex64", 0)
    assert.equal("complex64", lt.zeros(1):cfloat().dtype)
    assert.equal("complex128", lt.zeros(1):cdouble().dtype)
  end)

  it("is not converted to a real dtype", function()
    local z = tensor{{1, 2}}
    for dtype, value in pairs{float32 = 1.0, int64 = 1, bool = true} do
      assert.are.same({value}, z:to(dtype):totable()) -- except by these methods, as in PyTorch
    end
    local x = lt.zeros{1, device = there}
    assert.matches('copy_: cannot convert "complex64" to "float32": this would discard the '
      .. 'imaginary parts', message_of(x.copy_, x, z), 1, true)
    assert.are.same({1}, z:long():totable())
    assert.matches("expected a real number for argument 'value', got 1 + 2i",
      message_of(x.fill_, x, C(1, 2)), 1, true)
    assert.matches('to "float32": the dtype is real',
      message_of(lt.tensor, {C(1, 2)}, {dtype = "float32"}), 1, true)
  end)

  it("prints by PyTorch's rules", function()
    local function text(...) return tostring(lt.tensor{...}) end
    assert.equal("tensor{1.0000+2.i, 3.5000-1.i}", text(C(1, 2), C(3.5, -1)))
    assert.equal("tensor{1.+2.i, 3.-1.i}", text(C(1, 2), C(3, -1)))
    assert.equal("tensor{1.0000e+05+2.i, 3.0000e+00-1.i}", text(C(1e5, 2), C(3, -1)))
    assert.equal("tensor{10.+2.i,  3.-100.i}", text(C(10, 2), C(3, -100)))
    assert.equal("tensor{nan+infi, 0.+1.i}", (text(C(0 / 0, math.huge), C(0, 1)):gsub("  0", "0")))
    assert.equal("tensor(1.+2.i)", tostring(lt.tensor(C(1, 2))))
    assert.equal('tensor{1.+2.i, dtype = "complex128"}',
      tostring(lt.tensor({C(1, 2)}, {dtype = "complex128"})))
  end)

  it("has a summary of its absolute values", function()
    assert.matches("^c64%[2%] n=2 .* abs: x", tensor{{3, 4}, {0, 1}}:summary())
  end)

  it("has its parts as views", function()
    local z = tensor{{1, 2}, {3, 4}}
    assert.same({1.0, 3.0}, z.real:totable())
    assert.same({2.0, 4.0}, z.imag:totable())
    z.real:add_(10)
    z.imag:fill_(0)
    check({{11, 0}, {13, 0}}, z, 0)
    local pairs_of = lt.view_as_real(z)
    assert.equal("{2, 2}", tostring(pairs_of.shape))
    assert.equal("float32", pairs_of.dtype)
    assert.truthy(pairs_of:shares_storage(z))
    check({{11, 0}, {13, 0}}, lt.view_as_complex(pairs_of), 0)
    local x = lt.ones{2, device = there}
    assert.same({1.0, 1.0}, x.real:totable())
    assert.equal("imag: expected a complex tensor for argument 'self', got \"float32\"",
      message_of(lt.imag, x))
    assert.matches("expected a last dimension of size 2",
      message_of(lt.view_as_complex, lt.zeros(3)), 1, true)
    assert.matches("expected pairs that are contiguous in memory for argument 'self', got "
      .. "strides {3, 1} and offset 0", message_of(lt.view_as_complex, lt.zeros(4, 3)[":, 1:2"]),
        1, true)
    assert.matches('expected dtype "float32" or "float64" for argument \'self\', got "int64"',
      message_of(lt.view_as_complex, lt.zeros{2, dtype = "int64"}), 1, true)
  end)
end)

describe("copies of complex elements", function()
  for _, dtype in ipairs {"complex64", "complex128"} do
    local function numbers(n)
      local list = {}
      for i = 1, n do list[i] = {i, -i} end
      return tensor(list, dtype)
    end

    it("of " .. dtype .. " keep both parts in any layout", function()
      local z = numbers(1200):reshape(30, 40)
      local turned = z:t():contiguous()
      check({{1, -1}}, turned[1][1], 0)
      check({{40 * 29 + 3, -40 * 29 - 3}}, turned[3][30], 0)
      assert.truthy(lt.equal(turned:t(), z))
      assert.truthy(lt.equal(z:flip{1, 2}:flip{1, 2}, z))
      assert.truthy(lt.equal(z:roll({1, 2}, {1, 2}):roll({-1, -2}, {1, 2}), z))
      assert.truthy(lt.equal(lt.cat{z["1:10"], z["11:30"]}, z))
      assert.truthy(lt.equal(z:triu() + z:tril(-1), z))
      assert.truthy(lt.equal(z:expand(2, 30, 40):clone()[2], z))
      assert.truthy(lt.equal(z:cpu(), z:cpu():to(there):cpu()))
      local filled = lt.zeros({5, 7}, {dtype = dtype, device = there})
      filled[":, 2:4"]:fill_(C(1, -2))
      check({{0, 0}, {1, -2}, {1, -2}, {1, -2}, {0, 0}}, filled[5]["1:5"], 0)
    end)

    it("of " .. dtype .. " go by index and by mask", function()
      local z = numbers(6):reshape(2, 3)
      local index = lt.tensor({{3, 1}, {2, 2}}, {device = there})
      check({{3, -3}, {1, -1}, {5, -5}, {5, -5}}, z:gather(2, index), 0)
      check({{3, -3}, {6, -6}}, z:index_select(2, lt.tensor({3}, {device = there})), 0)
      check({{4, -4}, {5, -5}, {6, -6}}, z[lt.tensor({2}, {device = there})], 0)
      local mask = z.real:gt(4)
      check({{5, -5}, {6, -6}}, z[mask], 0)
      check({{1, -1}, {2, -2}, {3, -3}, {4, -4}, {0, 1}, {0, 1}}, z:masked_fill(mask, C(0, 1)), 0)
      check({{9, 9}, {2, -2}, {3, -3}, {4, -4}, {9, 9}, {9, 9}},
        z:scatter(2, lt.tensor({{1, 1}, {2, 3}}, {device = there}), C(9, 9)), 0)
      check({{1, -1}, {2, -2}, {3, -3}, {4, -4}, {1, -1}, {2, -2}},
        z:masked_scatter(mask, numbers(2)), 0)
      check({{1, -1}, {2, -2}, {0, 3}, {4, -4}, {5, -5}, {0, 3}},
        z:index_fill(2, lt.tensor({3}, {device = there}), C(0, 3)), 0)
      local w = z:clone()
      w[1] = C(7, 8)
      w[lt.tensor({2}, {device = there})] = numbers(3)
      check({{7, 8}, {7, 8}, {7, 8}, {1, -1}, {2, -2}, {3, -3}}, w, 0)
      check({{1, -1}, {2, -2}, {3, -3}, {0, 0}, {0, 0}, {0, 0}}, lt.where(z.real:lt(4), z, 0), 0)
      assert.same({{1}, {3}}, tensor({{1, 0}, {0, 0}, {0, 1}}, dtype):nonzero():totable())
      local twice = lt.tensor({1, 1}, {device = there})
      check({{3, -3}, {6, -6}, {9, -9}, {4, -4}, {5, -5}, {6, -6}},
        z:index_put({twice}, numbers(3), true), 0)
    end)
  end
end)

describe("arithmetic of complex tensors", function()
  for _, dtype in ipairs {"complex128", "complex64"} do
    it("gives PyTorch's values in " .. dtype, function()
      local x, y = tensor(golden.x, dtype), tensor(golden.y, dtype)
      local tolerance = dtype == "complex128" and 1e-13 or 1e-5
      local seen = 0
      for name, expected in pairs(golden) do
        if type(expected) == "table" and name ~= "x" and name ~= "y" then
          local result = name:match "^addc" and x[name](x, x, y, {value = 2})
            or ("add sub mul div pow"):find(name, 1, true) and x[name](x, y) or x[name](x)
          check(expected, result, tolerance, name .. " of " .. dtype)
          seen = seen + 1
        end
      end
      assert.equal(32, seen)
    end)
  end

  it("has exact small powers, and the root as a power", function()
    for _, dtype in ipairs {"complex64", "complex128"} do
      local z = tensor({{0, 1}, {1, 2}, {-4, 0}, {0, math.huge}}, dtype)
      check({{0, -1}, {-11, -2}}, (z ^ 3):narrow(1, 1, 2), 0)
      check({{-1, 0}, {-3, 4}}, (z ^ 2):narrow(1, 1, 2), 0)
      check({{0, 2}}, (z ^ 0.5):narrow(1, 3, 1), 0)
      local root = (z ^ 0.5)[4]:item()
      assert.equal("inf inf", root.re .. " " .. root.im)
    end
    assert.equal("-11 - 2i", tostring(C(1, 2) ^ 3))
    assert.equal("0 + 2i", tostring(C(-4, 0) ^ 0.5))
  end)

  it("has functions of large and infinite numbers, as PyTorch", function()
    local inf, half = math.huge, math.pi / 2
    for _, dtype in ipairs {"complex64", "complex128"} do
      local axis = tensor({{0, inf}, {0, -inf}}, dtype)
      check({{0, inf}, {0, -inf}}, axis:sin(), 0, "sin")
      check({{inf, 0}, {inf, 0}}, axis:cos(), 0, "cos")
      check({{0, 1}, {0, -1}}, axis:tan(), 0, "tan")
      check({{inf, inf}, {inf, -inf}}, axis:sqrt(), 0, "sqrt")
      check({{0, half}, {0, -half}}, axis:atanh(), 1e-6, "atanh")
      check({{half, 0}, {half, 0}}, tensor({{inf, 0}, {1e30, 1}}, dtype):atan(), 1e-6, "atan")
      local far = tensor({{1e30, 0}, {3e9, 4e9}, {0, 1e12}}, dtype):atanh()
      check({{0, half}, {0, half}, {0, half}}, far, 1e-6, "atanh of large numbers")
      assert.truthy(math.abs(far[2]:item().re * 25e18 / 3e9 - 1) < 1e-6)
      local line = tensor({{inf, 0}, {-inf, 0}}, dtype)
      check({{inf, 0}, {-inf, 0}}, line:sinh(), 0, "sinh")
      check({{inf, 0}, {inf, 0}}, line:cosh(), 0, "cosh")
      check({{1, 0}, {-1, 0}}, line:tanh(), 0, "tanh")
    end
  end)

  it("conjugates, and compares", function()
    local z = tensor{{1, 2}, {3, 0}}
    check({{1, -2}, {3, 0}}, z:conj(), 0)
    assert.same({false, true}, z:eq(z:conj()):totable())
    assert.same({true, false}, z:ne(z:conj()):totable())
    assert.same({false, true}, z:eq(3):totable())
    assert.same({true, false}, z:eq(C(1, 2)):totable())
    assert.same({false, false}, z:logical_not():totable())
    assert.truthy(lt.allclose(z, z * 1.0000001))
    local odd = tensor{{0 / 0, 1}, {1, math.huge}, {1, 1}}
    assert.same({true, false, false}, odd:isnan():totable())
    assert.same({false, true, false}, odd:isinf():totable())
    assert.same({false, false, true}, odd:isfinite():totable())
    check({{0, 0}, {0, 0}}, z:clone():eq_(5), 0)
    check({{5, 0}, {3, 0}}, tensor{{3, -4}, {3, 0}}:abs(), 0)
    assert.equal("float32", z:abs().dtype)
    assert.equal("float64", z:cdouble():angle().dtype)
    assert.same({3.14159274101257324, 0.0}, lt.tensor({-1, 2}, {device = there}):angle():totable())
  end)

  it("promotes as PyTorch does", function()
    local function gives(expected, a, b) assert.equal(expected, (a * b).dtype) end
    for _, dtype in ipairs {"float16", "bfloat16", "float32", "int64", "uint8", "bool"} do
      gives("complex64", lt.ones{2, dtype = dtype}, lt.ones{2, dtype = "complex64"})
      gives("complex128", lt.ones{2, dtype = dtype}, lt.ones{2, dtype = "complex128"})
    end
    gives("complex128", lt.ones{2, dtype = "float64"}, lt.ones{2, dtype = "complex64"})
    gives("complex64", lt.ones(2), C(0, 1))
    gives("complex128", lt.ones{2, dtype = "float64"}, C(0, 1))
    gives("complex64", lt.ones{2, dtype = "int64"}, C(0, 1))
    gives("complex64", lt.ones(2), lt.tensor(C(0, 1), {dtype = "complex128"}))
    gives("complex64", lt.ones{2, dtype = "complex64"}, 2.5)
    assert.equal("complex64", (lt.empty{2, dtype = "complex64", device = "meta"} + 1).dtype)
    assert.equal("float32", lt.empty{2, dtype = "complex64", device = "meta"}:abs().dtype)
  end)

  it("leaves infinite parts alone where the other factor is 1", function()
    local z = tensor{{1, 0}} + tensor{{math.huge, 2}}
    assert.equal("inf + 2.0i", ("%s + %si"):format(z[1]:item().re, z[1]:item().im))
    local quotient = (tensor{{1, 0}} / tensor{{0, 0}})[1]:item()
    assert.equal(math.huge, quotient.re)
  end)

  it("gives NaN for a quotient by a number with a part that is NaN", function()
    for _, y in ipairs {{lt.nan, 0}, {0, lt.nan}, {lt.nan, lt.nan}} do
      local z = (tensor{{1, 1}} / tensor{y})[1]:item()
      assert.same({true, true}, {z.re ~= z.re, z.im ~= z.im})
    end
  end)
end)

describe("sums and products of complex tensors", function()
  -- exact: small integers
  local function matrix(dtype)
    return tensor({{3, 4}, {2, 0}, {1, 0}, {0, -1}}, dtype):view(2, 2)
  end

  it("are those of the parts", function()
    for _, dtype in ipairs {"complex64", "complex128"} do
      local z = matrix(dtype)
      check({{6, 3}}, z:sum(), 0)
      check({{4, 4}, {2, -1}}, z:sum(1), 0)
      check({{5, 4}, {1, -1}}, z:t():sum(-2), 0)
      check({{2.5, 2}, {0.5, -0.5}}, z:mean{dim = 2, keepdim = true}, 0)
      check({{3, 4}, {5, 4}, {1, 0}, {1, -1}}, z:cumsum(2), 0)
      check({{3, 3}}, z:trace(), 0)
      assert.equal("{2, 1}", tostring(z:mean{dim = 2, keepdim = true}.shape))
      assert.equal(dtype, z:sum().dtype)
    end
    check({{0, 0}, {0, 0}}, lt.zeros{0, 2, dtype = "complex64", device = there}:sum(1), 0)
    check({{1, 2}}, tensor{{1, 2}}[1]:sum(), 0)
    assert.equal("complex128", matrix():sum{dtype = "complex128"}.dtype)
    check({{1.5, 0}}, lt.tensor({1, 2}, {device = there}):mean{dtype = "complex64"}, 0)
    local expanded = tensor{{1, 2}}:expand(3):sum()
    check({{3, 6}}, expanded, 0)
    local odd = tensor{{math.huge, 1}, {1, 0 / 0}}:sum():item()
    assert.equal(math.huge, odd.re)
    assert.truthy(odd.im ~= odd.im)
  end)

  it("add rows of any length, whole or with holes", function()
    -- exact: the parts of element i of row r are small integers
    local function re(r, i) return (r + 3 * i) % 7 - 3 end
    local function im(r, i) return (r * i) % 5 end
    for _, dtype in ipairs {"complex64", "complex128"} do
      for _, n in ipairs {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 70, 600, 1100} do
        local k, rows, sums, every_other, means = 19, {}, {}, {}, {}
        for r = 1, k do
          rows[r], sums[r], every_other[r] = {}, {0, 0}, {0, 0}
          for i = 1, n do
            rows[r][i] = C(re(r, i), im(r, i))
            sums[r] = {sums[r][1] + re(r, i), sums[r][2] + im(r, i)}
            if i % 2 == 1 then
              every_other[r] = {every_other[r][1] + re(r, i), every_other[r][2] + im(r, i)}
            end
          end
          means[r] = {sums[r][1] / n, sums[r][2] / n}
        end
        local z = lt.tensor(rows, {dtype = dtype, device = there})
        check(sums, z:sum(2), 0)
        check(sums, z:t():contiguous():sum(1), 0)
        check(sums, z:t():sum(1), 0)
        check(every_other, z[":, ::2"]:sum(2), 0)
        check(means, z:mean(2), 1e-6)
      end
    end
  end)

  it("multiply rows, columns and pieces of any layout", function()
    -- powers of i and exact halves: i^(1 + 2 + ... + n), times 2^-1 for each element
    local n, k = 40, 3
    for _, dtype in ipairs {"complex64", "complex128"} do
      local units = {C(0, 0.5), C(-0.5, 0), C(0, -0.5), C(0.5, 0)}
      local rows, product = {}, {{1, 0}, {1, 0}, {1, 0}}
      for j = 1, k do
        rows[j] = {}
        for i = 1, n do
          local u, p = units[(i * j) % 4 + 1], product[j]
          rows[j][i] = u
          product[j] = {p[1] * u.re - p[2] * u.im, p[1] * u.im + p[2] * u.re}
        end
      end
      local z = lt.tensor(rows, {dtype = dtype, device = there})
      check(product, z:prod(2), 0)
      check(product, z:t():contiguous():prod(1), 0)
      check(product, z:t():prod(1), 0)
      check(product, lt.stack({z, z}, 3):select(3, 1):prod(2), 0)
      check(product, z:view(k, 1, n):prod{dim = 3, keepdim = true}:view(k), 0)
      check({{1, 0}}, z:narrow(2, 1, 0):prod(), 0)
      assert.equal(dtype, z:prod(2).dtype)
    end
    local long = lt.full({100003}, C(0, 1), {dtype = "complex64", device = there})
    check({{0, -1}}, long:prod(), 0) -- 100003 = 3 mod 4
    check({{0, -1}}, lt.full({3}, C(0, 1), {dtype = "complex64", device = there}):prod(), 0)
    check({{6, 0}}, lt.tensor({1, 2, 3}, {device = there}):prod{dtype = "complex64"}, 0)
  end)

  it("add at indices", function()
    local z, index = tensor{{3, 4}, {0, 0}}, lt.tensor({1, 1}, {device = there})
    local source = tensor{{1, 1}, {0, -3}}
    check({{4, 2}, {0, 0}}, z:index_add(1, index, source), 0)
    check({{5, 0}, {0, 0}}, z:index_add(1, index, source, 2), 0)
    check({{4, 2}, {0, 0}}, z:scatter_add(1, index, source), 0)
    local own = z:clone()
    assert.equal(own, own:index_add_(1, index, source))
    check({{4, 2}, {0, 0}}, own, 0)
  end)

  it("are dot products", function()
    for dtype, bound in pairs {complex64 = 1e-5, complex128 = 1e-13} do
      for _, n in ipairs {0, 1, 7, 1000, 100003} do
        local a, b = lt.randn({n}, {dtype = dtype}), lt.randn({n}, {dtype = dtype})
        local x, y, u, v = a.real:double(), a.imag:double(), b.real:double(), b.imag:double()
        local scale = bound * ((a:abs() * b:abs()):sum():item() + 1)
        local wanted = lt.complex(x:dot(u) - y:dot(v), x:dot(v) + y:dot(u))
        local conjugated = lt.complex(x:dot(u) + y:dot(v), x:dot(v) - y:dot(u))
        assert.equal(dtype, a:dot(b).dtype)
        assert.is_true((a:dot(b) - wanted):abs():item() <= scale)
        assert.is_true((lt.vdot(a, b) - conjugated):abs():item() <= scale)
      end
    end
    local a = lt.randn({5}, {dtype = "complex64"}):requires_grad_()
    a:dot(a).real:backward()
    assert.is_true((a.grad - 2 * a:detach():conj()):abs():max():item() <= 1e-6)
  end)

  it("are products of matrices", function()
    for _, dtype in ipairs {"complex64", "complex128"} do
      local z = matrix(dtype)
      local square = {{-5, 24}, {6, 6}, {3, 3}, {1, 0}}
      check(square, z:mm(z), 0)
      check(square, z:matmul(z), 0)
      check(square, z:unsqueeze(1):bmm(z:unsqueeze(1)), 0)
      check({{-3, 24}, {3, 2}}, z:mv(z[1]), 0)
      check({{-3, 24}}, z[1]:dot(z[1]), 0)
      check({{-5, 24}, {3, 3}, {6, 6}, {1, 0}}, z:t():matmul(z:t()), 0)
      local i = C(0, 1)
      check({{-28, -2}, {-6, 8}, {-3, 4}, {1, 1}}, lt.addmm(z, z, z, {alpha = i, beta = i}), 0)
      check({{4, -10}, {-2, -3}, {-1, -1.5}, {-0.5, -0.5}},
        lt.addmm(z, z, z, {alpha = -0.5, beta = 0.5}), 0)
      check({{-28, -2}, {-6, 8}, {-3, 4}, {1, 1}},
        lt.baddbmm(z:unsqueeze(1), z:unsqueeze(1), z:unsqueeze(1), {alpha = i, beta = i}), 0)
      check({{-2, 28}, {8, 6}, {6, 7}, {3, 0}}, lt.nn.functional.linear(z, z:t(), z[1]), 0)
    end
    assert.equal("{3, 5}", tostring(lt.empty{3, 4, dtype = "complex64", device = "meta"}
      :matmul(lt.empty{4, 5, dtype = "complex64", device = "meta"}).shape))
  end)

  it("count what is not 0", function()
    local z = tensor{{0, 4}, {0, 0}, {0 / 0, 0}}
    assert.truthy(z:any():item())
    assert.falsy(z:all():item())
    assert.truthy(z:narrow(1, 1, 1):all():item())
    assert.equal(2, z:count_nonzero():item())
    assert.same({true, false}, z:narrow(1, 1, 2):view(2, 1):any(2):totable())
  end)

  it("refuse what would drop a part, other dtypes and gradients", function()
    local z, index = matrix(), lt.tensor({1, 2}, {device = there})
    assert.equal("index_add: expected a real number for argument 'alpha', got 0 + 1i",
      message_of(z.index_add, z, 1, index, z, C(0, 1)))
    for _, x in ipairs{z, z.real} do
      assert.matches("index_add: expected a real tensor for argument 'index', got \"complex64\"",
        message_of(x.index_add, x, 1, z[1], x), 1, true)
    end
    assert.equal("bool", z:sum{dtype = "bool"}.dtype)
    assert.equal("baddbmm: expected a real number for argument 'beta', got 0 + 1i",
      message_of(lt.baddbmm, z.real:unsqueeze(1), z.real:unsqueeze(1), z.real:unsqueeze(1),
        {beta = C(0, 1)}))
    assert.matches("addmm: expected a real number for argument 'alpha', got 0 + 1i",
      message_of(lt.addmm, z.real, z.real, z.real, {alpha = C(0, 1)}), 1, true)
    for _, name in ipairs {"mm", "matmul"} do
      assert.matches(name .. ": expected the same dtype for arguments 'self' and '.-', got "
        .. "\"float32\" and \"complex64\"", message_of(z[name], z.real,
        z))
    end
    assert.matches("cannot use dim 3: it is out of range, the tensor has 2 dimensions",
      message_of(z.sum, z, 3), 1, true)
  end)
end)

describe("lt.elementwise of complex numbers", function()
  local many = 10000 -- more than what is left to ops at once

  it("computes as ops do", function()
    local f = lt.elementwise "pow(x, 3) + conj(x) * abs(x) - exp(y) / x"
    for _, dtype in ipairs {"complex64", "complex128"} do
      for _, n in ipairs {3, many} do
        local x = tensor({{1, 2}, {-0.5, 0.25}, {0, -3}}, dtype):repeat_interleave(n // 3)
        local y = lt.ones({1}, {device = there})
        local result = f(x, y)
        assert.equal(dtype, result.dtype)
        assert.truthy(lt.allclose(x ^ 3 + x:conj() * x:abs() - y:exp() / x, result))
      end
    end
    local x = lt.complex(lt.ones({many}, {device = there}), 2)
    assert.equal("float32", lt.elementwise "abs(x) * 2 + 1"(x).dtype)
    assert.truthy(lt.elementwise "x == y"(x, x):all():item())
    check({{1, 2}}, lt.elementwise "where(x ~= 0, x, 1)"(x)[1], 0)
  end)

  it("takes complex numbers as arguments", function()
    local f = lt.elementwise "a * x + b"
    for _, n in ipairs {2, many} do
      local x = lt.ones({n}, {device = there})
      check({{2, 3}}, f(C(0, 3), x, 2)[n], 0)
      assert.equal("complex64", f(C(0, 3), x, 2).dtype)
      assert.equal("complex128", f(C(0, 3), x:double(), 2).dtype)
      check({{0.1, 1}}, f(C(0.1, 0), x:double(), C(0, 1))[n], 0)
    end
    assert.equal("2 + 6i", tostring(f(C(0, 3), 2, 2)))
    assert.equal("-1 + 0i", tostring(lt.elementwise "a * a"(C(0, 1))))
  end)

  it("refuses what ops refuse", function()
    for _, n in ipairs {2, many} do
      local x = lt.complex(lt.ones({n}, {device = there}), 2)
      assert.matches("maximum: expected a real tensor for argument 'self', got \"complex64\"",
        message_of(lt.elementwise "max(x, 1) + x", x), 1, true)
    end
    assert.matches("expected a tensor or a number for argument 'x', got",
      message_of(lt.elementwise "x + 1", {}), 1, true)
  end)

  it("is no program of the recorder", function()
    local core = require "lutra.core"
    local recorder = core._recorder()
    local x = recorder:input("complex64", {2})
    local result = x:abs() + 1
    recorder:stop()
    local made = recorder:program(recorder:mark(), {result})
    if there == "cpu" then
      assert.equal('program: expected a real dtype, got "complex64": complex numbers are not '
        .. 'yet supported',
        message_of(made.run, made, {tensor{{1, 2}, {3, 4}}}))
    end
  end)
end)

describe("what is defined for real numbers only", function()
  it("refuses complex tensors by name", function()
    local z = tensor{{1, 2}, {3, 4}}
    for _, name in ipairs {"floor", "relu", "sign", "sort", "max", "argmax", "nansum", "erf",
        "signbit", "round", "bitwise_not", "softmax"} do
      local along = name == "softmax"
      local text = message_of(function() return along and z[name](z, 1) or z[name](z) end)
      assert.matches("expected a real tensor for argument 'self', got \"complex64\"\nhint: "
        .. "self.real, self.imag or self:abs()", text, 1, true)
      assert.matches("^" .. name .. ": ", text)
    end
    for _, name in ipairs {"lt", "ge", "maximum", "floor_divide", "remainder", "atan2",
        "bitwise_and"} do
      assert.matches(name .. ": expected a real tensor for argument 'self', got \"complex64\"",
        message_of(z[name], z, z), 1, true)
    end
    assert.matches("clamp: expected a real tensor for argument 'self', got \"complex64\"",
      message_of(function() return z:clamp{min = 1} end), 1, true)
    local x = lt.ones{2, device = there}
    assert.equal("maximum: expected a real number for argument 'other', got 0 + 1i",
      message_of(lt.maximum, x, C(0, 1)))
    assert.equal("add: expected a real number for argument 'alpha', got 0 + 1i",
      message_of(lt.add, x, x, {alpha = C(0, 1)}))
    assert.matches('add_: cannot store the result in self: the result is "complex64", self is '
      .. '"float32"',
      message_of(x.add_, x, C(0, 1)), 1, true)
    assert.equal('abs_: expected a real tensor for argument \'self\', got "complex64": the '
      .. 'result is "float32"', message_of(z.abs_, z))
    check({{1, 2}, {3, 4}}, z, 0, "after a refused call")
    assert.matches('expected a tensor of dtype "bool" (a mask) or "int64" (indices), got '
      .. '"complex64"', message_of(function() return x[z] end), 1, true)
  end)

  it("is the gradient that a scalar result does not need", function()
    local z = tensor{{1, 2}}:requires_grad_(true)
    assert.matches('expected a gradient for the tensor of dtype "complex64", got none',
      message_of(function() (z * 2):backward() end), 1, true)
  end)
end)

describe("the gradient of complex numbers", function()
  local function grad_of(f, z, w)
    z = z:detach():requires_grad_(true)
    f(z):backward(w)
    return z.grad
  end

  it("is grad * conj(f'(z)) of holomorphic functions", function()
    local z, w = tensor{{1, 2}, {-0.5, 0.25}}, tensor{{0.5, -1}, {2, 1}}
    for name, slope in pairs{
      exp = function(x) return x:exp() end, sin = function(x) return x:cos() end,
      square = function(x) return x * 2 end, sqrt = function(x) return x:rsqrt() / 2 end,
      log = function(x) return x:reciprocal() end,
      reciprocal = function(x) return -x:reciprocal():square() end,
      tanh = function(x) return 1 - x:tanh():square() end,
    } do
      local got = grad_of(function(x) return x[name](x) end, z, w)
      assert.is_true(lt.allclose(got, w * slope(z):conj(), {rtol = 1e-5, atol = 1e-6}), name)
    end
    local y = tensor{{2, -1}, {1, 1}}
    assert.is_true(lt.allclose(grad_of(function(x) return x * y end, z, w), w * y:conj()))
    assert.is_true(lt.allclose(grad_of(function(x) return x:conj() * y end, z, w), w:conj() * y))
  end)

  it("points along z for |z|, and is real for real numbers", function()
    local z = tensor{{3, 4}, {0, 0}}
    assert.is_true(lt.allclose(grad_of(function(x) return x:abs():sum() end, z),
      tensor{{0.6, 0.8}, {0, 0}}))
    local x = lt.tensor({1, 2}, {dtype = "float32", device = there}):requires_grad_(true)
    ;(x * tensor{{1, 1}, {2, -1}}):backward(tensor{{1, 1}, {1, 0}})
    assert.are.same({2.0, 2.0}, x.grad:totable())
    assert.equal("float32", x.grad.dtype)
  end)
end)

describe("a complex number", function()
  it("has parts, text and equality", function()
    local z = C(1, 2)
    assert.equal(1.0, z.re)
    assert.equal(2.0, z.im)
    assert.equal("1 + 2i", tostring(z))
    assert.equal("0.5 - 1.25i", tostring(C(0.5, -1.25)))
    assert.equal("nan + infi", tostring(C(0 / 0, math.huge)))
    assert.truthy(z == C(1, 2))
    assert.falsy(z == C(1, 3))
    assert.equal("1 + 2i", tostring(tensor{{1, 2}}:item()))
    assert.equal("3 - 4i", tostring(tensor{{1, 2}, {3, -4}}:totable()[2]))
    assert.truthy(lt.is_complex(z) and lt.is_complex(tensor{{1, 2}}))
    assert.falsy(lt.is_complex(1) or lt.is_complex(lt.zeros(1)) or lt.zeros(1):is_complex())
  end)

  it("computes with numbers and tensors", function()
    local z = C(1, 2)
    assert.equal("2 + 4i", tostring(z * 2))
    assert.equal("0 - 2i", tostring(1 - z))
    assert.equal("-3 + 4i", tostring(z * z))
    assert.equal("-3 + 4i", tostring(z ^ 2))
    assert.equal("1 + 0i", tostring(z / z))
    assert.equal("-1 - 2i", tostring(-z))
    assert.equal("1 - 2i", tostring(z:conj()))
    assert.equal(5.0, C(3, 4):abs())
    assert.truthy(math.abs(C(0, 1):angle() - math.pi / 2) < 1e-15)
    local t = lt.tensor({1., 2.}, {device = there})
    check({{1, 2}, {2, 4}}, z * t, 0)
    check({{1, 2}, {2, 4}}, t * z, 0)
    check({{0, 2}, {-1, 2}}, z - t, 0)
    check({{1, 2}, {0.5, 1}}, z / t, 0)
  end)

  it("cannot be changed, and says what it is not", function()
    local z = C(1, 2)
    assert.matches("cannot assign to a complex number: it is immutable",
      message_of(function() z.re = 3 end), 1,
      true)
    assert.matches('expected a field of a complex number (re, im, abs(), angle(), conj()), got '
      .. 'the string "foo"', message_of(function() return z.foo end), 1,
      true)
    assert.matches('cannot add a complex number and the string "a"',
      message_of(function() return z + "a" end), 1, true)
    assert.equal("complex: expected a real number for argument 'real', got 1 + 2i",
      message_of(C, z, 1))
    assert.has_error(function() return z < z end)
    assert.matches("is_complex", message_of(lt.is_complex, "a"), 1, true)
  end)
end)

describe("files", function()
  it("hold complex tensors", function()
    local path = os.tmpname()
    local z = lt.tensor({{C(1, 2), C(3, 4)}, {C(5, 6), C(-7, 0.5)}})
    for _, w in ipairs {z, z:cdouble(), z:t()} do
      lt.save_npy(path, w)
      assert.truthy(lt.equal(lt.load_npy(path), w))
      assert.equal(w.dtype, lt.load_npy(path).dtype)
    end
    os.remove(path)
  end)
end)
