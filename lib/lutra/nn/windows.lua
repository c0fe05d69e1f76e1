--- Pools, unfold and fold, padding and resizing as layers: a function of F and its options.

local args = require "lutra.internal.args"
local layers = require "lutra.nn.layers"
local F = require "lutra.nn.functional"

local windows = {}

local WINDOW = "ints kernel_size, ints? stride = nil, ints padding = 0"
local MAXIMA = WINDOW .. ", ints dilation = 1, bool return_indices = false, bool ceil_mode = false"
local AVERAGES = WINDOW .. ", bool ceil_mode = false, bool count_include_pad = true"
local DIVISOR = ", int? divisor_override = nil"
local NORMS = "float norm_type, ints kernel_size, ints? stride = nil, bool ceil_mode = false"
local SIZE, INDICES = "int|list output_size", ", bool return_indices = false"
local FRACTIONAL = "ints kernel_size, ints? output_size = nil, float|floats? output_ratio = nil, "
  .. "bool return_indices = false, Tensor? _random_samples = nil"
local RESIZED = "ints? size = nil, float|floats? scale_factor = nil"

-- Defines a layer that calls the function `f` of F with its options.
local function define(name, signature, f)
  windows[name] = layers.define_function(name, signature, f)
end

-- Defines the inverse of a pool of maxima; forward also takes the indices and the output size.
local function define_unpool(name, f)
  windows[name] = layers.define(name, WINDOW, function(self, x, indices, size)
    return F[f](x, indices, self.kernel_size, self.stride, self.padding, size)
  end)
end

-- Defines a layer that pads `dims` dims with a mode of F.pad. `value` declares one more option.
local function define_padding(name, dims, mode, value)
  windows[name] = layers.define(name, "ints padding" .. (value or ""), function(self, x)
    local padding = self.padding
    args.check(#padding == 1 or #padding == 2 * dims,
      "%s: expected 1 or %d numbers for argument 'padding', got %d", name, 2 * dims, #padding)
    if #padding == 1 then
      local number = padding[1]
      padding = {}
      for i = 1, 2 * dims do padding[i] = number end
    end
    return F.pad(x, padding, mode, self.value)
  end)
end

--- nn.MaxPool1d{kernel_size, stride = kernel_size, padding = 0, dilation = 1, return_indices =
-- false, ceil_mode = false}: maxima of windows of {N, C, L}: see F.max_pool1d. With
-- return_indices, forward returns their indices, too.
define("MaxPool1d", MAXIMA, "max_pool1d")
--- nn.MaxPool2d{kernel_size, stride = kernel_size, padding = 0, dilation = 1, return_indices =
-- false, ceil_mode = false}: maxima of windows of {N, C, H, W}: see F.max_pool2d. With
-- return_indices, forward returns their indices, too.
define("MaxPool2d", MAXIMA, "max_pool2d")
--- nn.MaxPool3d{kernel_size, stride = kernel_size, padding = 0, dilation = 1, return_indices =
-- false, ceil_mode = false}: maxima of windows of {N, C, D, H, W}: see F.max_pool3d. With
-- return_indices, forward returns their indices, too.
define("MaxPool3d", MAXIMA, "max_pool3d")
--- nn.AvgPool1d{kernel_size, stride = kernel_size, padding = 0, ceil_mode = false,
-- count_include_pad = true}: averages of windows of {N, C, L}: see F.avg_pool1d.
define("AvgPool1d", AVERAGES, "avg_pool1d")
--- nn.AvgPool2d{kernel_size, stride = kernel_size, padding = 0, ceil_mode = false,
-- count_include_pad = true, divisor_override = nil}: averages of windows of {N, C, H, W}: see
-- F.avg_pool2d.
define("AvgPool2d", AVERAGES .. DIVISOR, "avg_pool2d")
--- nn.AvgPool3d{kernel_size, stride = kernel_size, padding = 0, ceil_mode = false,
-- count_include_pad = true, divisor_override = nil}: averages of windows of {N, C, D, H, W}: see
-- F.avg_pool3d.
define("AvgPool3d", AVERAGES .. DIVISOR, "avg_pool3d")
--- nn.LPPool1d{norm_type, kernel_size, stride = kernel_size, ceil_mode = false}: norms of windows
-- of {N, C, L}: see F.lp_pool1d.
define("LPPool1d", NORMS, "lp_pool1d")
--- nn.LPPool2d{norm_type, kernel_size, stride = kernel_size, ceil_mode = false}: norms of windows
-- of {N, C, H, W}: see F.lp_pool2d.
define("LPPool2d", NORMS, "lp_pool2d")
--- nn.LPPool3d{norm_type, kernel_size, stride = kernel_size, ceil_mode = false}: norms of windows
-- of {N, C, D, H, W}: see F.lp_pool3d.
define("LPPool3d", NORMS, "lp_pool3d")
--- nn.AdaptiveAvgPool1d(output_size): averages of output_size windows that cover {N, C, L}; false
-- keeps a size.
define("AdaptiveAvgPool1d", SIZE, "adaptive_avg_pool1d")
--- nn.AdaptiveAvgPool2d(output_size): averages of output_size windows that cover {N, C, H, W};
-- false keeps a size.
define("AdaptiveAvgPool2d", SIZE, "adaptive_avg_pool2d")
--- nn.AdaptiveAvgPool3d(output_size): averages of output_size windows that cover {N, C, D, H, W};
-- false keeps a size.
define("AdaptiveAvgPool3d", SIZE, "adaptive_avg_pool3d")
--- nn.AdaptiveMaxPool1d{output_size, return_indices = false}: maxima of output_size windows that
-- cover {N, C, L}; false keeps a size.
define("AdaptiveMaxPool1d", SIZE .. INDICES, "adaptive_max_pool1d")
--- nn.AdaptiveMaxPool2d{output_size, return_indices = false}: maxima of output_size windows that
-- cover {N, C, H, W}; false keeps a size.
define("AdaptiveMaxPool2d", SIZE .. INDICES, "adaptive_max_pool2d")
--- nn.AdaptiveMaxPool3d{output_size, return_indices = false}: maxima of output_size windows that
-- cover {N, C, D, H, W}; false keeps a size.
define("AdaptiveMaxPool3d", SIZE .. INDICES, "adaptive_max_pool3d")
--- nn.FractionalMaxPool2d{kernel_size, output_size = nil, output_ratio = nil, return_indices =
-- false, _random_samples = nil}: maxima of windows at random distances: see
-- F.fractional_max_pool2d.
define("FractionalMaxPool2d", FRACTIONAL, "fractional_max_pool2d")
--- nn.FractionalMaxPool3d{kernel_size, output_size = nil, output_ratio = nil, return_indices =
-- false, _random_samples = nil}: maxima of windows at random distances: see
-- F.fractional_max_pool3d.
define("FractionalMaxPool3d", FRACTIONAL, "fractional_max_pool3d")
--- nn.MaxUnpool1d{kernel_size, stride = kernel_size, padding = 0}: the inverse of nn.MaxPool1d;
-- forward(x, indices, output_size).
define_unpool("MaxUnpool1d", "max_unpool1d")
--- nn.MaxUnpool2d{kernel_size, stride = kernel_size, padding = 0}: the inverse of nn.MaxPool2d;
-- forward(x, indices, output_size).
define_unpool("MaxUnpool2d", "max_unpool2d")
--- nn.MaxUnpool3d{kernel_size, stride = kernel_size, padding = 0}: the inverse of nn.MaxPool3d;
-- forward(x, indices, output_size).
define_unpool("MaxUnpool3d", "max_unpool3d")
--- nn.Unfold{kernel_size, dilation = 1, padding = 0, stride = 1}: the windows of {N, C, H, W} as
-- columns: see F.unfold.
define("Unfold", "ints kernel_size, ints dilation = 1, ints padding = 0, ints stride = 1", "unfold")
--- nn.Fold{output_size, kernel_size, dilation = 1, padding = 0, stride = 1}: sums columns at the
-- elements of their windows: see F.fold.
define("Fold", "ints output_size, ints kernel_size, ints dilation = 1, ints padding = 0, "
  .. "ints stride = 1", "fold")
--- nn.Upsample{size = nil, scale_factor = nil, mode = 'nearest', align_corners = nil,
-- recompute_scale_factor = nil}: resizes images and signals: see F.interpolate.
define("Upsample", RESIZED
  .. ", 'nearest'|'nearest-exact'|'linear'|'bilinear'|'bicubic'|'trilinear'|'area' mode "
  .. "= 'nearest', bool? align_corners = nil, bool? recompute_scale_factor = nil", "interpolate")
--- nn.UpsamplingNearest2d{size = nil, scale_factor = nil}: nn.Upsample with mode 'nearest'.
define("UpsamplingNearest2d", RESIZED, "upsample_nearest")
--- nn.UpsamplingBilinear2d{size = nil, scale_factor = nil}: nn.Upsample with mode 'bilinear' and
-- align_corners.
define("UpsamplingBilinear2d", RESIZED, "upsample_bilinear")
--- nn.PixelShuffle(upscale_factor): {N, C * r^2, H, W} to {N, C, H * r, W * r}: see
-- lt.pixel_shuffle.
define("PixelShuffle", "int upscale_factor", "pixel_shuffle")
--- nn.PixelUnshuffle(downscale_factor): the inverse of nn.PixelShuffle.
define("PixelUnshuffle", "int downscale_factor", "pixel_unshuffle")
--- nn.ChannelShuffle(groups): interleaves the channels of groups: see lt.channel_shuffle.
define("ChannelShuffle", "int groups", "channel_shuffle")
--- nn.ReflectionPad1d(padding): reflections of the elements around {N, C, L}; padding is a number,
-- or {left, right} of the last dim, then of the one before it, ...
define_padding("ReflectionPad1d", 1, "reflect")
--- nn.ReflectionPad2d(padding): reflections of the elements around {N, C, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("ReflectionPad2d", 2, "reflect")
--- nn.ReflectionPad3d(padding): reflections of the elements around {N, C, D, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("ReflectionPad3d", 3, "reflect")
--- nn.ReplicationPad1d(padding): copies of the outer elements around {N, C, L}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("ReplicationPad1d", 1, "replicate")
--- nn.ReplicationPad2d(padding): copies of the outer elements around {N, C, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("ReplicationPad2d", 2, "replicate")
--- nn.ReplicationPad3d(padding): copies of the outer elements around {N, C, D, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("ReplicationPad3d", 3, "replicate")
--- nn.CircularPad1d(padding): the elements of the other end around {N, C, L}; padding is a number,
-- or {left, right} of the last dim, then of the one before it, ...
define_padding("CircularPad1d", 1, "circular")
--- nn.CircularPad2d(padding): the elements of the other end around {N, C, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("CircularPad2d", 2, "circular")
--- nn.CircularPad3d(padding): the elements of the other end around {N, C, D, H, W}; padding is a
-- number, or {left, right} of the last dim, then of the one before it, ...
define_padding("CircularPad3d", 3, "circular")
--- nn.ZeroPad1d(padding): zeros around {N, C, L}; padding is a number, or {left, right} of the last
-- dim, then of the one before it, ...
define_padding("ZeroPad1d", 1, "constant")
--- nn.ZeroPad2d(padding): zeros around {N, C, H, W}; padding is a number, or {left, right} of the
-- last dim, then of the one before it, ...
define_padding("ZeroPad2d", 2, "constant")
--- nn.ZeroPad3d(padding): zeros around {N, C, D, H, W}; padding is a number, or {left, right} of
-- the last dim, then of the one before it, ...
define_padding("ZeroPad3d", 3, "constant")
--- nn.ConstantPad1d(padding, value): a constant around {N, C, L}; padding is a number, or {left,
-- right} of the last dim, then of the one before it, ...
define_padding("ConstantPad1d", 1, "constant", ", Scalar value")
--- nn.ConstantPad2d(padding, value): a constant around {N, C, H, W}; padding is a number, or {left,
-- right} of the last dim, then of the one before it, ...
define_padding("ConstantPad2d", 2, "constant", ", Scalar value")
--- nn.ConstantPad3d(padding, value): a constant around {N, C, D, H, W}; padding is a number, or
-- {left, right} of the last dim, then of the one before it, ...
define_padding("ConstantPad3d", 3, "constant", ", Scalar value")

return windows
