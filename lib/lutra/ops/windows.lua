--- Window functions: lt.signal.windows, and lt.hann_window and its siblings.
--
-- A window is a function of M equally spaced points. They are those of M numbers if the window is
-- symmetric, and the first M of M + 1 if it is periodic.

local lt = require "lutra"
local args = require "lutra.internal.args"

local FLOATS = {float64 = true, float32 = true, float16 = true, bfloat16 = true}

-- Returns the number of intervals between the ends.
local function intervals(n, sym) return sym and n - 1 or n end

-- name -> function(n, sym, ...) with the window's parameters, which returns the first of the n
-- points, their distance, and the function of a tensor of points
local windows = {}

-- The sum of (-1)^i a[i] cos(i k), i from 0.
function windows.general_cosine(n, sym, a)
  args.check(#a > 0, "general_cosine: expected at least one number for argument 'a', got none")
  return 0, 2 * math.pi / intervals(n, sym), function(k)
    local sum = lt.full_like(k, a[1])
    for i = 2, #a do
      sum = sum + (k * (i - 1)):cos() * (i % 2 == 0 and -a[i] or a[i])
    end
    return sum
  end
end

function windows.general_hamming(n, sym, alpha)
  return windows.general_cosine(n, sym, {alpha, 1 - alpha})
end

function windows.hamming(n, sym) return windows.general_hamming(n, sym, 0.54) end
function windows.hann(n, sym) return windows.general_hamming(n, sym, 0.5) end
function windows.blackman(n, sym) return windows.general_cosine(n, sym, {0.42, 0.5, 0.08}) end

function windows.nuttall(n, sym)
  return windows.general_cosine(n, sym, {0.3635819, 0.4891775, 0.1365995, 0.0106411})
end

function windows.bartlett(n, sym)
  return -1, 2 / intervals(n, sym), function(k) return 1 - k:abs() end
end

function windows.cosine(n, sym)
  local step = math.pi / (sym and n or n + 1)
  return 0.5 * step, step, function(k) return k:sin() end
end

function windows.gaussian(n, sym, std)
  args.check(std > 0, "gaussian: expected a number above 0 for argument 'std', got %s", std)
  local scale = 1 / (std * math.sqrt(2))
  return -intervals(n, sym) / 2 * scale, scale, function(k) return (-k:square()):exp() end
end

function windows.exponential(n, sym, center, tau)
  args.check(tau > 0, "exponential: expected a number above 0 for argument 'tau', got %s", tau)
  args.check(not (sym and center),
    "exponential: expected no number for argument 'center' with sym = true, got %s", center)
  center = center or intervals(n, sym) / 2
  return -center / tau, 1 / tau, function(k) return (-k:abs()):exp() end
end

-- I0(y) / I0(beta), y = beta sqrt(1 - r^2) for r from -1 to 1, in float64 on the CPU; from
-- exp(-y) I0(y), which does not overflow.
function windows.kaiser(n, sym, beta)
  local step, size = 2 / intervals(n, sym), math.abs(beta)
  return -beta, beta * step, function(k)
    local r = lt.linspace(-1, (n - 1) * step - 1, n, {dtype = "float64", device = "cpu"})
    local y = ((1 - r) * (1 + r)):clamp(0):sqrt() * size
    local whole = lt.special.i0e(lt.full({}, size, {dtype = "float64", device = "cpu"}))
    return ((y - size):exp() * lt.special.i0e(y) / whole):to(k.device, k.dtype)
  end
end

-- Returns the window of n points with these parameters; that of one point is 1.
local function make(title, count, name, n, sym, dtype, device, requires_grad, ...)
  args.check(n >= 0, "%s: expected an integer of at least 0 for argument '%s', got %d", title,
    count, n)
  dtype = dtype or lt.get_default_dtype()
  args.check(FLOATS[dtype], "%s: expected a float dtype for argument 'dtype', got %q", title, dtype)
  local first, step, fn = windows[name](math.max(n, 2), sym, ...)
  local result
  if n <= 1 then
    result = lt.ones{n, dtype = dtype, device = device}
  else
    result = fn(lt.linspace(first, first + (n - 1) * step, n, {dtype = dtype, device = device}))
  end
  return requires_grad and result:requires_grad_(true) or result
end

-- Defines signal.windows.NAME(M, parameters, sym, options).
local function define(name, parameters, what, example)
  local count = select(2, parameters:gsub(",", ","))
  lt._define{
    signature = "signal.windows." .. name .. "(int M, " .. parameters .. "bool sym = true, "
      .. "dtype? dtype = nil, device? device = nil, bool requires_grad = false)",
    doc = what .. " sym = false: periodic, for spectral analysis.",
    example = "lt.signal.windows." .. name .. (example or "(5)"),
    fn = function(n, ...)
      local given = table.pack(...)
      local sym, dtype, device, requires_grad = table.unpack(given, count + 1, count + 4)
      return make(name, "M", name, n, sym, dtype, device, requires_grad,
        table.unpack(given, 1, count))
    end,
  }
end

define("bartlett", "", "Triangular window of M points, 0 at the ends.")
define("blackman", "", "Blackman window of M points: 0.42 - 0.5 cos k + 0.08 cos 2k.")
define("cosine", "", "Half a sine wave, of M points.")
define("exponential", "float? center = nil, float tau = 1, ",
  "Exponential window of M points: exp(-|i - center| / tau).")
define("gaussian", "float std = 1, ", "Gaussian window of M points, with this standard deviation.")
define("general_cosine", "floats a, ",
  "Sum of cosines, of M points: a[1] - a[2] cos k + a[3] cos 2k - ...", "(5, {0.54, 0.46})")
define("general_hamming", "float alpha = 0.54, ",
  "Hamming window of M points with another coefficient: alpha - (1 - alpha) cos k.")
define("hamming", "", "Hamming window of M points: 0.54 - 0.46 cos k.")
define("hann", "", "Hann window of M points: 0.5 - 0.5 cos k.")
define("kaiser", "float beta = 12, ",
  "Kaiser window of M points: I0(sqrt(beta^2 - k^2)) / I0(beta), k from -beta to beta.")
define("nuttall", "", "Nuttall window of M points: the minimum 4-term Blackman-Harris window.")

-- Defines lt.NAME_window(window_length, periodic, parameters, options) as the window `base`;
-- `convert` returns the parameters of that window.
local function define_window(name, base, parameters, what, convert)
  local count = select(2, parameters:gsub(",", ","))
  local title = name .. "_window"
  lt._define{
    signature = "lt." .. title .. "(int window_length, bool periodic = true, " .. parameters
      .. "dtype? dtype = nil, device? device = nil, bool requires_grad = false)",
    doc = what .. " periodic = false: symmetric, for filters.",
    example = "lt." .. title .. "(5)",
    fn = function(n, periodic, ...)
      local given = table.pack(...)
      local dtype, device, requires_grad = table.unpack(given, count + 1, count + 3)
      return make(title, "window_length", base, n, not periodic, dtype, device, requires_grad,
        convert(table.unpack(given, 1, count)))
    end,
  }
end

local function same(...) return ... end

define_window("bartlett", "bartlett", "", "Triangular window.", same)
define_window("blackman", "blackman", "", "Blackman window: 0.42 - 0.5 cos k + 0.08 cos 2k.", same)
define_window("hann", "hann", "", "Hann window: 0.5 - 0.5 cos k.", same)
define_window("kaiser", "kaiser", "float beta = 12, ", "Kaiser window.", same)
define_window("hamming", "general_cosine", "float alpha = 0.54, float beta = 0.46, ",
  "Hamming window: alpha - beta cos k.", function(alpha, beta) return {alpha, beta} end)
