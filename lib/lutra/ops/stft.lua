--- lt.stft and lt.istft: the short-time Fourier transform and its inverse.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local core = require "lutra.core"

local ops = core._ops

-- Returns {b, n} with `by` more elements on both sides.
local function pad(x, by, mode)
  local n = x:size(2)
  args.check(mode ~= "reflect" or by < n, "stft: cannot pad %d elements by reflection at both ends "
    .. "with %d more\nhint: pad_mode = \"constant\"", n, by)
  args.check(mode ~= "circular" or by <= n,
    "stft: cannot pad %d elements circularly with %d more", n, by)
  return lt.F.pad(x, {by, by}, mode)
end

-- Checks the arguments that stft and istft share; returns hop_length, win_length and the window of
-- n_fft numbers, or nil if all of them are 1.
local function prepare(title, x, n_fft, hop, length, window)
  hop, length = hop or n_fft // 4, length or n_fft
  args.check(hop > 0, "%s: expected an integer above 0 for argument 'hop_length', got %d", title,
    hop)
  args.check(length > 0 and length <= n_fft,
    "%s: expected 1 to %d (n_fft) for argument 'win_length', got %d", title, n_fft, length)
  args.check(not window or window.ndim == 1 and window:size(1) == length,
    "%s: expected a vector of %d numbers (win_length) for argument 'window', got %s", title, length,
    window and tostring(window.shape) or "nil")
  if length < n_fft then
    window = window or lt.ones{length, dtype = tensors.real_dtype(x), device = x.device}
    local left = (n_fft - length) // 2
    local function zeros(n) return lt.zeros{n, dtype = window.dtype, device = window.device} end
    window = lt.cat{zeros(left), window, zeros(n_fft - length - left)}
  end
  return hop, window
end

lt._define{
  signature = "lt.stft(Tensor input, int n_fft, int? hop_length = nil, int? win_length = nil, "
    .. "Tensor? window = nil, bool center = true, "
    .. "'reflect'|'constant'|'replicate'|'circular' pad_mode = 'reflect', "
    .. "bool normalized = false, bool? onesided = nil, bool? return_complex = nil, "
    .. "bool? align_to_window = nil)",
  doc = "Short-time Fourier transform: the transforms of n_fft samples each, hop_length (n_fft // "
    .. "4) apart, times a window, of {n} or {b, n}: {b, frequencies, frames}. center: frame t is "
    .. "centered at sample t hop_length + 1, with padding at both ends. onesided (default for real "
    .. "input): n_fft / 2 + 1 frequencies. normalized: times 1 / sqrt(n_fft). return_complex must "
    .. "be given for real input; with false, real and imaginary parts are a last dim.",
  example = "lt.stft(lt.randn(64), 16, {return_complex = true, window = lt.hann_window(16)})",
  method = true,
  fn = function(x, n_fft, hop, length, window, center, mode, normalized, onesided, complex, align)
    local real = not x:is_complex()
    args.check(not real or x:is_floating_point(),
      "stft: expected a float or complex tensor for argument 'self', got %q", x.dtype)
    args.check(x.ndim == 1 or x.ndim == 2,
      "stft: expected 1 or 2 dimensions for argument 'self', got %s", x.shape)
    args.check(align == nil or not center,
      "stft: expected align_to_window only with center = false, got both")
    real = real and not (window and window:is_complex())
    args.check(complex ~= nil or not real,
      "stft: expected a boolean for argument 'return_complex' of real input, got nil\n"
      .. "hint: return_complex = true")
    local batched = x.ndim == 2
    if not batched then x = x:unsqueeze(1) end
    args.check(n_fft > 0, "stft: expected an integer above 0 for argument 'n_fft', got %d", n_fft)
    local own = length
    hop, window = prepare("stft", x, n_fft, hop, length, window)
    if center then x = pad(x, n_fft // 2, mode) end
    if align and own and own < n_fft then
      x = pad(x, (n_fft - own) // 2, "constant")
    end
    args.check(n_fft <= x:size(2), "stft: expected 1 to %d samples for argument 'n_fft', got %d",
      x:size(2), n_fft)
    local frames = x:unfold(2, n_fft, hop)
    if window then frames = frames * window end
    if onesided == nil then onesided = real end
    args.check(real or not onesided,
      "stft: expected onesided = false for complex input or a complex window, got true")
    local scale = normalized and 1 / math.sqrt(n_fft) or 1
    local y
    if onesided then
      y = ops._fft_r2c(frames, 3, scale)
    else
      if real then frames = frames:to(frames.dtype == "float64" and "complex128" or "complex64") end
      y = ops._fft_c2c(frames, {3}, false, scale)
    end
    y = y:transpose(2, 3)
    if not batched then y = y:squeeze(1) end
    return complex == false and lt.view_as_real(y) or y
  end,
}

local MOST_PARTS = 8

-- Adds frames {b, frames, n}, `hop` apart, to sums {b, length}: frames of a few whole hops as rows
-- of one hop each, from the earliest frame on.
local function overlap_add(frames, hop, length)
  local b, count, n = frames:size(1), frames:size(2), frames:size(3)
  local parts = n // hop
  if n % hop == 0 and parts <= MOST_PARTS then
    frames = frames:reshape(b, count, parts, hop)
    local sum
    for part = parts, 1, -1 do
      local rows = lt.F.pad(frames:select(3, part), {0, 0, part - 1, parts - part})
      sum = sum and sum + rows or rows
    end
    return sum:reshape(b, length)
  end
  local first = lt.arange(0, count - 1, {device = frames.device}):unsqueeze(2) * hop
  local at = (first + lt.arange(1, n, {device = frames.device})):reshape(count * n)
  return lt.zeros{b, length, dtype = frames.dtype, device = frames.device}:index_add(2, at,
    frames:reshape(b, count * n))
end

lt._define{
  signature = "lt.istft(Tensor input, int n_fft, int? hop_length = nil, int? win_length = nil, "
    .. "Tensor? window = nil, bool center = true, bool normalized = false, bool? onesided = nil, "
    .. "int? length = nil, bool return_complex = false)",
  doc = "Inverse of stft with the same arguments: the signal whose frames have these transforms "
    .. "{b, frequencies, frames}, with the least squared error (Griffin and Lim 1984): overlapping "
    .. "frames times the window are added and divided by the sum of squared windows. The signal is "
    .. "cut or padded with zeros to length.",
  example = "lt.istft(lt.stft(lt.randn(64), 16, {return_complex = true}), 16)",
  method = true,
  fn = function(x, n_fft, hop, win, window, center, normalized, onesided, length, complex)
    args.check(x:is_complex(), "istft: expected a complex tensor for argument 'input', got %q",
      x.dtype)
    args.check(x.ndim == 2 or x.ndim == 3,
      "istft: expected 2 or 3 dimensions for argument 'input', got %s", x.shape)
    args.check(x:numel() > 0, "istft: expected a tensor with elements for argument 'input', got %s",
      x.shape)
    local batched = x.ndim == 3
    if not batched then x = x:unsqueeze(1) end
    args.check(not (window and window:is_complex()) or complex,
      "istft: expected return_complex = true with a complex window")
    local half, frequencies, frames = n_fft // 2 + 1, x:size(2), x:size(3)
    if onesided == nil then onesided = frequencies == half and half ~= n_fft end
    local expected = onesided and half or n_fft
    args.check(frequencies == expected,
      "istft: expected %d frequencies (%s) in dim -2 of argument 'input', got %d", expected,
      onesided and "n_fft // 2 + 1" or "n_fft", frequencies)
    args.check(not (complex and onesided),
      "istft: expected onesided = false for a complex result, got true")
    hop, window = prepare("istft", x, n_fft, hop, win, window)
    args.check(hop <= (win or n_fft),
      "istft: expected 1 to %d (win_length) for argument 'hop_length', got %d", win or n_fft, hop)
    window = window or lt.ones{n_fft, dtype = tensors.real_dtype(x), device = x.device}
    x = x:transpose(2, 3)
    local scale = normalized and 1 / math.sqrt(n_fft) or 1 / n_fft
    if complex then
      x = ops._fft_c2c(x, {3}, true, scale)
    else
      x = ops._fft_c2r(onesided and x or x:narrow(3, 1, half), 3, n_fft, scale)
    end
    local total = n_fft + hop * (frames - 1)
    local y = overlap_add(x * window, hop, total)
    local weight = overlap_add(window:square():expand(1, frames, n_fft), hop, total)
    local first = center and n_fft // 2 or 0
    local last = length and first + length or center and total - n_fft // 2 or total
    local stop = math.min(last, total)
    args.check(stop >= first, "istft: expected a window overlap, got a signal of %d samples",
      stop - first)
    y, weight = y:narrow(2, first + 1, stop - first), weight:narrow(2, first + 1, stop - first)
    if weight.device ~= "meta" and weight:numel() > 0 then
      args.check(weight:abs():min():item() > 1e-11,
        "istft: cannot divide by the sum of squared windows: it is 0 at some samples")
    end
    y = y / weight
    if last > total then
      y = lt.cat({y, lt.zeros{y:size(1), last - total, dtype = y.dtype, device = y.device}}, 2)
    end
    return batched and y or y:squeeze(1)
  end,
}
