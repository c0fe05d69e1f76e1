--- lt.fft: discrete Fourier transforms of one, two and n dims, their sample frequencies and shifts.
--
-- All transforms consist of three kernels: _fft_c2c (complex to complex, any dims), _fft_r2c (real
-- numbers to the first half of their transform, one dim) and _fft_c2r (the reverse).

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"

local ops = core._ops

-- ---- arguments

local REAL = {complex64 = "float32", complex128 = "float64"}
local COMPLEX = {float32 = "complex64", float64 = "complex128"}

-- Returns x as floats of 32 or 64 bits, real or complex.
local function to_floating(title, x)
  if COMPLEX[x.dtype] or REAL[x.dtype] then return x end
  args.check(not x:is_floating_point(),
    "%s: expected \"float32\", \"float64\", a complex or an integer dtype for argument 'input', "
    .. "got %q\nhint: input:to(\"float32\")", title, x.dtype)
  return x:to(lt.get_default_dtype())
end

local function to_complex(title, x)
  x = to_floating(title, x)
  return REAL[x.dtype] and x or x:to(COMPLEX[x.dtype])
end

local function to_real(title, x)
  x = to_floating(title, x)
  args.check(not REAL[x.dtype], "%s: expected a real tensor for argument 'input', got %q", title,
    x.dtype)
  return x
end

-- Returns the factor of a transform of n numbers. A backward transform is the inverse of the
-- forward one with the same norm.
local function scale_of(norm, n, inverse)
  if norm == "ortho" then return 1 / math.sqrt(n) end
  return (norm == "forward") ~= inverse and 1 / n or 1
end

-- Returns x with n elements along dim: the first ones, or with zeros after them.
local function resize(x, dim, n)
  local size = x:size(dim)
  if size == n then return x end
  if size > n then return x:narrow(dim, 1, n) end
  local shape = {table.unpack(x.shape)}
  shape[dim] = n - size
  return lt.cat({x, lt.zeros{shape, dtype = x.dtype, device = x.device}}, dim)
end

local function check_count(title, name, n)
  args.check(n >= 1, "%s: expected at least 1 number to transform for argument '%s', got %d", title,
    name, n)
  return n
end

-- Returns dim counted from 1.
local function wrap(title, x, dim)
  args.check(x.ndim > 0, "%s: expected at least 1 dimension for argument 'input', got 0", title)
  args.check(dim ~= 0 and math.abs(dim) <= x.ndim,
    "%s: expected a dim of 1 to %d or -%d to -1 for argument 'dim', got %d", title, x.ndim, x.ndim,
    dim)
  return dim < 0 and dim + x.ndim + 1 or dim
end

-- Returns the dims of a transform, counted from 1, and their sizes. `half`: the last dim of the
-- input has n / 2 + 1 of its n numbers.
local function geometry(title, x, s, dim, half)
  local dims, sizes = {}, {}
  if dim then
    local seen = {}
    for i, d in ipairs(dim) do
      dims[i] = wrap(title, x, d)
      args.check(not seen[dims[i]], "%s: expected each dim once for argument 'dim', got %d twice",
        title, d)
      seen[dims[i]] = true
    end
  else
    local count = s and #s or x.ndim
    args.check(count <= x.ndim, "%s: expected at most %d sizes for argument 's', got %d", title,
      x.ndim, count)
    for i = 1, count do dims[i] = x.ndim - count + i end
  end
  args.check(not s or #s == #dims, "%s: expected one size for each dim for argument 's', got %d "
    .. "sizes and %d dims", title, s and #s or 0, #dims)
  for i, d in ipairs(dims) do
    local n = s and s[i] ~= -1 and s[i] or x:size(d)
    if half and i == #dims and not (s and s[i] ~= -1) then n = 2 * (n - 1) end
    sizes[i] = check_count(title, "s", n)
  end
  return dims, sizes
end

-- Returns x resized to the sizes along the dims, and the number of elements that are transformed
-- together.
local function fit(x, dims, sizes, half)
  local n = 1
  for i, d in ipairs(dims) do
    n = n * sizes[i]
    x = resize(x, d, half and i == #dims and sizes[i] // 2 + 1 or sizes[i])
  end
  return x, n
end

-- ---- transforms of any dims; those of one and of two dims call them

local function complex_transform(title, x, s, dim, norm, inverse)
  x = to_floating(title, x)
  local dims, sizes = geometry(title, x, s, dim)
  local n
  x, n = fit(x, dims, sizes)
  return ops._fft_c2c(x, dims, inverse, scale_of(norm, n, inverse))
end

-- The first half of the transform of real numbers; of the inverse, the conjugate.
local function real_transform(title, x, s, dim, norm, inverse)
  x = to_real(title, x)
  local dims, sizes = geometry(title, x, s, dim)
  args.check(#dims > 0, "%s: expected at least 1 dim for argument 'dim', got none", title)
  local n
  x, n = fit(x, dims, sizes)
  local last = table.remove(dims)
  local y = ops._fft_r2c(x, last, scale_of(norm, n, inverse))
  if #dims > 0 then y = ops._fft_c2c(y, dims, false, 1) end
  return inverse and y:conj() or y
end

-- The real numbers whose transform has this first half; of the forward transform, with the
-- conjugate.
local function hermitian_transform(title, x, s, dim, norm, inverse)
  x = to_complex(title, x)
  local dims, sizes = geometry(title, x, s, dim, true)
  args.check(#dims > 0, "%s: expected at least 1 dim for argument 'dim', got none", title)
  local n
  x, n = fit(x, dims, sizes, true)
  if not inverse then x = x:conj() end
  local last = table.remove(dims)
  if #dims > 0 then x = ops._fft_c2c(x, dims, true, 1) end
  return ops._fft_c2r(x, last, sizes[#sizes], scale_of(norm, n, inverse))
end

local NORM = "'backward'|'forward'|'ortho'? norm = nil"
local SCALES = " norm: the factor is 1 / n in the inverse (\"backward\", the default), in the "
  .. "forward transform (\"forward\"), or 1 / sqrt(n) in both (\"ortho\")."

-- Defines a transform of one, two and n dims.
local function define(name, transform, inverse, what, example)
  local ones = name .. "(Tensor input, int? n = nil, dim dim = -1, " .. NORM .. ")"
  lt._define{
    signature = "fft." .. ones,
    doc = what .. " along dim. input is cut or padded with zeros to n." .. SCALES,
    example = "lt.fft." .. name .. "(" .. example .. ")",
    fn = function(x, n, dim, norm)
      if n then check_count(name, "n", n) end
      return transform(name, x, n and {n}, {dim}, norm, inverse)
    end,
  }
  lt._define{
    signature = "fft." .. name .. "2(Tensor input, ints? s = nil, dims dim = {-2, -1}, " .. NORM
      .. ")",
    doc = what .. " over two dims. input is cut or padded with zeros to the sizes s." .. SCALES,
    example = "lt.fft." .. name .. "2(lt.ones(4, 4))",
    fn = function(x, s, dim, norm) return transform(name .. "2", x, s, dim, norm, inverse) end,
  }
  lt._define{
    signature = "fft." .. name .. "n(Tensor input, ints? s = nil, dims? dim = nil, " .. NORM .. ")",
    doc = what .. " over all dims, or those of dim, or the last ones for which s has sizes. input "
      .. "is cut or padded with zeros to the sizes s." .. SCALES,
    example = "lt.fft." .. name .. "n(lt.ones(2, 4, 4))",
    fn = function(x, s, dim, norm) return transform(name .. "n", x, s, dim, norm, inverse) end,
  }
end

define("fft", complex_transform, false, "Discrete Fourier transform", "lt.tensor{0, 1, 0, 0}")
define("ifft", complex_transform, true, "Inverse discrete Fourier transform",
  "lt.tensor{4, 0, 0, 0}")
define("rfft", real_transform, false,
  "Discrete Fourier transform of real numbers, the first n / 2 + 1 values of the last dim,",
  "lt.tensor{0, 1, 0, 0}")
define("irfft", hermitian_transform, true,
  "Inverse of rfft: real numbers, 2 (m - 1) of m values unless the size is given,",
  "lt.tensor{4, 0, 0}")
define("hfft", hermitian_transform, false,
  "Discrete Fourier transform of a Hermitian sequence, of which the first half is given: real "
  .. "numbers, 2 (m - 1) of m values unless the size is given,", "lt.tensor{1, 2, 3}")
define("ihfft", real_transform, true,
  "Inverse of hfft: the first n / 2 + 1 values of the last dim,", "lt.tensor{1, 2, 3, 4}")

-- ---- sample frequencies and shifts

local OPTIONS = "dtype? dtype = nil, device? device = nil, bool requires_grad = false"

local function frequencies(title, first, last, n, d, dtype, device, requires_grad)
  args.check(n >= 1, "%s: expected an integer of at least 1 for argument 'n', got %d", title, n)
  dtype = dtype or lt.get_default_dtype()
  local steps = lt.arange(first, last, {dtype = dtype, device = device})
  if first < 0 then
    local half = (n + 1) // 2
    steps = lt.cat{steps:narrow(1, n - half + 1, half), steps:narrow(1, 1, n - half)}
  end
  local result = steps * (1 / (n * d))
  return requires_grad and result:requires_grad_(true) or result
end

lt._define{
  signature = "fft.fftfreq(int n, float d = 1, " .. OPTIONS .. ")",
  doc = "Frequencies of the values of fft of n samples at distance d: {0, 1 .. (n - 1) // 2, "
    .. "-(n // 2) .. -1} / (d n).",
  example = "lt.fft.fftfreq(5)",
  fn = function(n, ...) return frequencies("fftfreq", -(n // 2), (n - 1) // 2, n, ...) end,
}

lt._define{
  signature = "fft.rfftfreq(int n, float d = 1, " .. OPTIONS .. ")",
  doc = "Frequencies of the values of rfft of n samples at distance d: {0, 1 .. n // 2} / (d n).",
  example = "lt.fft.rfftfreq(5)",
  fn = function(n, ...) return frequencies("rfftfreq", 0, n // 2, n, ...) end,
}

-- Rolls each dim by half its size; `more` is 1 to round the half up.
local function shift(title, x, dim, more)
  local dims, shifts = {}, {}
  if dim then
    for i, d in ipairs(dim) do dims[i] = wrap(title, x, d) end
  else
    for d = 1, x.ndim do dims[d] = d end
  end
  if #dims == 0 then return x end
  for i, d in ipairs(dims) do shifts[i] = (x:size(d) + more) // 2 end
  return x:roll(shifts, dims)
end

lt._define{
  signature = "fft.fftshift(Tensor input, dims? dim = nil)",
  doc = "Moves the zero frequency to the middle: rolls each dim, or those of dim, by half its "
    .. "size.",
  example = "lt.fft.fftshift(lt.fft.fftfreq(4))",
  fn = function(x, dim) return shift("fftshift", x, dim, 0) end,
}

lt._define{
  signature = "fft.ifftshift(Tensor input, dims? dim = nil)",
  doc = "The inverse of fftshift.",
  example = "lt.fft.ifftshift(lt.tensor{-2, -1, 0, 1})",
  fn = function(x, dim) return shift("ifftshift", x, dim, 1) end,
}
