-- Layers of pools, padding and resizing: each is its function of F with its options.

local lt = require "lutra"
local nn = lt.nn
local F = nn.functional

local signal, image, volume = lt.randn(2, 4, 8), lt.randn(2, 4, 8, 8), lt.randn(1, 4, 8, 8, 8)

local function same(expected, actual)
  assert.are.equal(tostring(expected.shape), tostring(actual.shape))
  assert.is_true(lt.equal(expected, actual))
end

describe("layers of windows", function()
  it("pool", function()
    for k, x in ipairs{signal, image, volume} do
      local name = k .. "d"
      same(F["max_pool" .. name](x, 3, 2, 1, 1, true), nn["MaxPool" .. name](3, 2, 1, {
        ceil_mode = true})(x))
      local y, i = nn["MaxPool" .. name]{2, return_indices = true}(x)
      same(F["max_unpool" .. name](y, i, 2), nn["MaxUnpool" .. name](2)(y, i))
      same(F["max_unpool" .. name](y, i, 2, nil, 0, x.shape),
        nn["MaxUnpool" .. name](2)(y, i, x.shape))
      same(F["avg_pool" .. name](x, 3, 2, 1, false, false), nn["AvgPool" .. name](3, 2, 1, false,
        false)(x))
      same(F["lp_pool" .. name](x:abs(), 2, 2), nn["LPPool" .. name](2, 2)(x:abs()))
      same(F["adaptive_avg_pool" .. name](x, 3), nn["AdaptiveAvgPool" .. name](3)(x))
      same(F["adaptive_max_pool" .. name](x, 3), nn["AdaptiveMaxPool" .. name](3)(x))
      local _, at = nn["AdaptiveMaxPool" .. name](3, true)(x)
      assert.are.equal("int64", at.dtype)
    end
    same(F.adaptive_avg_pool2d(image, {3, false}), nn.AdaptiveAvgPool2d{3, false}(image))
    local samples = lt.rand(2, 4, 2)
    same(F.fractional_max_pool2d(image, 2, 5, nil, false, samples),
      nn.FractionalMaxPool2d{2, output_size = 5, _random_samples = samples}(image))
    assert.are.equal("{1, 4, 4, 4, 4}", tostring(nn.FractionalMaxPool3d{2, output_ratio = 0.5}(
      volume).shape))
  end)

  it("pad", function()
    for k, x in ipairs{signal, image, volume} do
      local name, all = "Pad" .. k .. "d", {}
      for i = 1, 2 * k do all[i] = i % 3 end
      same(F.pad(x, all, "reflect"), nn["Reflection" .. name](all)(x))
      same(F.pad(x, all, "replicate"), nn["Replication" .. name](all)(x))
      same(F.pad(x, all, "circular"), nn["Circular" .. name](all)(x))
      same(F.pad(x, all), nn["Zero" .. name](all)(x))
      same(F.pad(x, all, "constant", 2.5), nn["Constant" .. name](all, 2.5)(x))
      for i = 1, 2 * k do all[i] = 2 end
      same(F.pad(x, all), nn["Zero" .. name](2)(x))
    end
    local ok, text = pcall(nn.ZeroPad2d{1, 2, 3}, image)
    assert.is_false(ok)
    assert.is_truthy(tostring(text):find("ZeroPad2d: expected 1 or 4 numbers for argument "
      .. "'padding', got 3", 1, true))
  end)

  it("rearrange and resize", function()
    local columns = F.unfold(image, {2, 3}, 1, 1, 2)
    same(columns, nn.Unfold({2, 3}, 1, 1, 2)(image))
    same(F.fold(columns, {8, 8}, {2, 3}, 1, 1, 2), nn.Fold({8, 8}, {2, 3}, 1, 1, 2)(columns))
    same(F.interpolate(image, nil, {2, 1.5}, "bilinear", true),
      nn.Upsample{scale_factor = {2, 1.5}, mode = "bilinear", align_corners = true}(image))
    same(F.upsample_nearest(image, 5), nn.UpsamplingNearest2d(5)(image))
    same(F.upsample_bilinear(image, nil, 2), nn.UpsamplingBilinear2d{scale_factor = 2}(image))
    same(lt.pixel_shuffle(image, 2), nn.PixelShuffle(2)(image))
    same(lt.pixel_unshuffle(image, 2), nn.PixelUnshuffle(2)(image))
    same(lt.channel_shuffle(image, 2), nn.ChannelShuffle(2)(image))
  end)

  it("print their options", function()
    assert.are.equal("MaxPool2d(kernel_size=3, stride={2, 1}, padding=0, dilation=1, "
      .. "return_indices=false, ceil_mode=false)", tostring(nn.MaxPool2d(3, {2, 1})))
    assert.are.equal("Upsample(scale_factor=2, mode=nearest)",
      tostring(nn.Upsample{scale_factor = 2}))
  end)
end)
