--- Interpolation of images and signals: one dimension after the other, each by the core's op
-- _resample.

local lt = require "lutra"
local args = require "lutra.internal.args"
local ops = require("lutra.core")._ops

-- The numbers of lt_ResampleMode.
local NEAREST <const>, EXACT <const>, LINEAR <const>, CUBIC <const> = 0, 1, 2, 3
local SMOOTH <const> = 2 -- added to LINEAR and CUBIC
local FIXED <const> = 8 -- weights of few bits
local ROUNDED <const> = {float16 = 16, bfloat16 = 32} -- weights of these dtypes

-- F.interpolate's modes: the number of spatial dims that each accepts, from and to; its number
local MODES = {
  nearest = {1, 3, NEAREST}, ["nearest-exact"] = {1, 3, EXACT}, linear = {1, 1, LINEAR},
  bilinear = {2, 2, LINEAR}, trilinear = {3, 3, LINEAR}, bicubic = {2, 2, CUBIC}, area = {1, 3},
}

-- Returns the sizes of the result, and for each dim the factor that determines coordinates; 0: the
-- quotient of the sizes.
local function sizes_of(title, shape, size, factor, recompute)
  local k = #shape - 2
  args.check((size == nil) ~= (factor == nil),
    "%s: expected either argument 'size' or argument 'scale_factor', got %s", title,
    size and "both" or "neither")
  if type(factor) == "number" then factor = {factor} end
  local given = size or factor
  local name = size and "size" or "scale_factor"
  args.check(#given == 1 or #given == k, "%s: expected 1 or %d numbers for argument '%s', got %d",
    title, k, name, #given)
  args.check(not (size and recompute),
    "%s: expected argument 'scale_factor' with argument 'recompute_scale_factor', got size", title)
  local sizes, scales = {}, {}
  for d = 1, k do
    local v = given[#given == 1 and 1 or d]
    sizes[d] = size and v or math.floor(shape[2 + d] * v)
    scales[d] = (size or recompute) and 0 or v
    if sizes[d] <= 0 or shape[2 + d] <= 0 then
      args.fail("%s: expected sizes above 0, got %d elements in dim %d of the input and %d of the "
        .. "result", title, shape[2 + d], 2 + d, sizes[d])
    end
  end
  return sizes, scales
end

-- Resizes uint8 as PyTorch does: by weights that are multiples of a power of two, and with results
-- that are rounded, halves up, after each dim. The CPU's sums are exact in float32, too, unless
-- antialias averages many elements, by small weights.
local function resampled_bytes(x, sizes, scales, mode, corners)
  local out = x
  for d = x.ndim, 3, -1 do
    if sizes[d - 2] ~= x:size(d) then
      local many = mode >= LINEAR + SMOOTH and sizes[d - 2] < x:size(d)
      local narrow = x.is_cpu and not many or x.device:find "^mps"
      out = out:to(narrow and "float32" or "float64")
      out = ops._resample(out, d, sizes[d - 2], mode + FIXED, corners, scales[d - 2])
    end
  end
  return rawequal(out, x) and x:clone() or out:to(x.dtype)
end

local function resampled(x, shape, sizes, scales, mode, corners)
  local bytes = x.dtype == "uint8"
  if bytes and mode >= LINEAR then
    return resampled_bytes(x, sizes, scales, mode, corners)
  end
  local wide = bytes or mode >= LINEAR and x.dtype:find "16" -- rounded once, at the end
  if wide and mode == LINEAR and x.ndim ~= 4 then mode = mode + ROUNDED[x.dtype] end
  local out = wide and x:to "float32" or x
  local ndim = #shape
  local function resize(d)
    local size, scale = sizes[d - 2], scales[d - 2]
    local same = size == shape[d] and (mode == NEAREST or mode % FIXED == LINEAR or scale == 0)
    if not same then out = ops._resample(out, d, size, mode, corners, scale) end
  end
  -- The last dim is the slowest one: it is resized when the others are small.
  for d = 3, ndim do
    if sizes[d - 2] < shape[d] then resize(d) end
  end
  for d = ndim, 3, -1 do
    if sizes[d - 2] >= shape[d] then resize(d) end
  end
  if rawequal(out, x) then return x:clone() end
  return wide and out:to(x.dtype) or out
end

local function interpolate(title, x, size, factor, mode, corners, recompute, antialias)
  local allowed, shape = MODES[mode], x.shape
  local k = #shape - 2
  if k < 1 or k > 3 then
    args.fail("%s: expected 3 to 5 dimensions for argument 'input', got shape %s", title, shape)
  end
  if k < allowed[1] or k > allowed[2] then
    args.fail("%s: expected %s dimensions for argument 'input' with mode '%s', got shape %s", title,
      allowed[1] == allowed[2] and allowed[1] + 2 or "3 to 5", mode, shape)
  end
  local kind = allowed[3]
  args.check(corners == nil or kind and kind >= LINEAR,
    "%s: expected no argument 'align_corners' with mode '%s'", title, mode)
  args.check(not antialias or k == 2 and kind and kind >= LINEAR,
    "%s: expected mode 'bilinear' or 'bicubic' with argument 'antialias', got '%s'", title, mode)
  args.check(x.dtype:find "float" or x.dtype == "uint8",
    "%s: expected a float dtype or uint8 for argument 'input', got %s", title, x.dtype)
  local sizes, scales = sizes_of(title, shape, size, factor, recompute)
  if not kind then return lt.nn.functional["adaptive_avg_pool" .. k .. "d"](x, sizes) end
  if antialias then kind = kind + SMOOTH end
  return resampled(x, shape, sizes, scales, kind, corners == true)
end

local KINDS = "'nearest'|'nearest-exact'|'linear'|'bilinear'|'bicubic'|'trilinear'|'area' "

lt._define{
  signature = "F.interpolate(Tensor input, ints? size = nil, float|floats? scale_factor = nil, "
    .. KINDS .. "mode = 'nearest', bool? align_corners = nil, "
    .. "bool? recompute_scale_factor = nil, bool antialias = false)",
  doc = "Resizes {N, C, L}, {N, C, H, W} or {N, C, D, H, W} to `size`, or by scale_factor. "
    .. "align_corners: the corners of input and result coincide. antialias: bilinear and bicubic "
    .. "average all elements when they make the input smaller.",
  example = 'F.interpolate(lt.arange(2.):reshape(1, 1, 2), {4}, {mode = "linear"})',
  fn = function(...) return interpolate("interpolate", ...) end,
}

lt._define{
  signature = "F.upsample(Tensor input, ints? size = nil, float|floats? scale_factor = nil, "
    .. KINDS .. "mode = 'nearest', bool? align_corners = nil)",
  doc = "F.interpolate, by its former name.",
  example = "F.upsample(lt.arange(2.):reshape(1, 1, 2), {4})",
  fn = function(...) return interpolate("upsample", ...) end,
}

lt._define{
  signature = "F.upsample_nearest(Tensor input, ints? size = nil, "
    .. "float|floats? scale_factor = nil)",
  doc = "F.interpolate with mode 'nearest'.",
  example = "F.upsample_nearest(lt.arange(2.):reshape(1, 1, 2), {4})",
  fn = function(x, size, factor)
    return interpolate("upsample_nearest", x, size, factor, "nearest")
  end,
}

lt._define{
  signature = "F.upsample_bilinear(Tensor input, ints? size = nil, "
    .. "float|floats? scale_factor = nil)",
  doc = "F.interpolate with mode 'bilinear' and align_corners.",
  example = "F.upsample_bilinear(lt.arange(4.):reshape(1, 1, 2, 2), {3, 3})",
  fn = function(x, size, factor)
    return interpolate("upsample_bilinear", x, size, factor, "bilinear", true)
  end,
}
