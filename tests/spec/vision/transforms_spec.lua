-- The classes of lt.vision.transforms: random transforms, containers, printing, errors.

local lt = require "lutra"

local T = lt.vision.transforms
local nn = lt.nn

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

local function contains(text, part) assert.is_truthy(text:find(part, 1, true), text) end

local function same(a, b)
  assert.equal(tostring(a.shape), tostring(b.shape))
  assert.is_true(lt.equal(a, b))
end

before_each(function() lt.manual_seed(1) end)

local image = lt.arange(0, 3 * 6 * 8 - 1):reshape(3, 6, 8):to "uint8"

describe("a transform", function()
  it("is its function with the options", function()
    local F = T.functional
    same(F.resize(image, {3, 4}, "nearest"), T.Resize({3, 4}, "nearest")(image))
    same(F.center_crop(image, 4), T.CenterCrop(4)(image))
    same(F.pad(image, {1, 2}, 7), T.Pad({1, 2}, 7)(image))
    same(F.rgb_to_grayscale(image, 3), T.Grayscale(3)(image))
    same(F.to_dtype(image, "float32", true), T.ToDtype("float32", true)(image))
    same(F.to_dtype(image, "float32", true), T.ConvertImageDtype()(image))
    same(image:to "float32", T.ToDtype("float32")(image))
    local x = T.ToTensor()(image)
    same(F.normalize(x, {0.5}, {0.25}), T.Normalize({0.5}, {0.25})(x))
    assert.equal(5, #T.FiveCrop(3)(image))
    assert.equal(10, #T.TenCrop({2, 3})(image))
    same(image + 1, T.Lambda(function(i) return i + 1 end)(image))
  end)

  it("prints its options, and can be part of nn.Sequential", function()
    assert.equal('Resize(size={4}, interpolation="bilinear", antialias=true)',
      tostring(T.Resize(4)))
    assert.equal("Compose(\n    RandomHorizontalFlip(p=0.5)\n    RandomApply(\n        Lambda("
      .. "lambd=function)\n        p=0.3\n    )\n)", tostring(T.Compose{T.RandomHorizontalFlip(),
      T.RandomApply({T.Lambda(function(x) return x end)}, 0.3)}))
    local net = nn.Sequential(T.ToTensor(), T.Normalize(0.5, 0.5), nn.Flatten())
    assert.equal("{3, 48}", tostring(net(image).shape))
  end)

  it("accepts images of the layouts that programs have", function()
    local to_tensor = T.ToTensor()
    local x = image:to "float32" / 255
    same(x, to_tensor(image))
    same(x, to_tensor(image:permute(2, 3, 1)))
    same(x[{{1, 1}}], to_tensor(image[1]))
    same(x, to_tensor(x))
    contains(message_of(to_tensor, lt.ones(2)), "to_tensor: expected an image of 2 or 3 dimensions")
    assert.equal(T, T.v2)
    assert.equal("bicubic", T.InterpolationMode.BICUBIC)
  end)

  it("passes labels through", function()
    local both = T.Compose{T.RandomCrop(4), T.RandomVerticalFlip(), T.ToTensor()}
    local x, label = both(image, 7)
    assert.equal("{3, 4, 4}", tostring(x.shape))
    assert.equal(7, label)
    x, label = T.Compose{function(a, b) return a[1], b + 1 end}(image, 1)
    same(image[1], x)
    assert.equal(2, label)
  end)
end)

describe("a random transform", function()
  -- How often f() is true in 400 calls.
  local function share(f)
    local n = 0
    for _ = 1, 400 do if f() then n = n + 1 end end
    return n / 400
  end

  it("has its probability, and the seed's values", function()
    for _, p in ipairs{0, 0.3, 1} do
      local flip = T.RandomHorizontalFlip(p)
      local got = share(function() return not lt.equal(flip(image), image) end)
      assert.is_true(math.abs(got - p) < 0.1, got)
    end
    local jitter = T.Compose{T.ColorJitter(0.5, 0.5, 0.5, 0.5), T.RandomResizedCrop(5)}
    lt.manual_seed(3)
    local first = jitter(image)
    lt.manual_seed(3)
    same(first, jitter(image))
    local one = T.RandomChoice({T.Lambda(function() return 1 end), T.Lambda(function()
      return 2 end)}, {3, 1})
    assert.is_true(math.abs(share(function() return one(image) == 1 end) - 0.75) < 0.1)
    assert.is_true(math.abs(share(function()
      return rawequal(T.RandomApply({T.Pad(1)}, 0.2)(image), image) end) - 0.8) < 0.1)
  end)

  it("crops every part of the image", function()
    local crop, seen = T.RandomCrop({4, 5}), {}
    for _ = 1, 300 do
      local x = crop(image)
      assert.equal("{3, 4, 5}", tostring(x.shape))
      local corner = x[{1, 1, 1}]:item()
      local row, column = corner // 8, corner % 8
      same(image:narrow(2, row + 1, 4):narrow(3, column + 1, 5), x)
      seen[corner] = true
    end
    local count = 0
    for _ in pairs(seen) do count = count + 1 end
    assert.equal(3 * 4, count)
    assert.equal("{3, 8, 8}", tostring(T.RandomCrop(8, {padding = 1})(image).shape))
    assert.equal("{3, 20, 9}", tostring(T.RandomCrop({20, 9}, {pad_if_needed = true})(image).shape))
    contains(message_of(T.RandomCrop(9), image),
      "RandomCrop: expected an image of at least {9, 9} pixels, got {6, 8}")
  end)

  it("erases a rectangle of the given share", function()
    local big = lt.ones(3, 40, 50)
    for _, value in ipairs{0, "random", {0, 0.5, 0.25}} do
      local erase = T.RandomErasing{1, scale = {0.1, 0.2}, ratio = {0.5, 2}, value = value}
      for _ = 1, 20 do
        local out = erase(big)
        local changed = (1 - out:eq(big):to "float32"):amax(1)
        local rows, columns = changed:amax(2):sum():item(), changed:amax(1):sum():item()
        assert.equal(rows * columns, changed:sum():item()) -- a rectangle
        local area = rows * columns / 2000
        assert.is_true(area > 0.08 and area < 0.23, area)
      end
    end
    assert.is_true(lt.equal(big, lt.ones(3, 40, 50)))
    T.RandomErasing{1, inplace = true}(big)
    assert.is_false(lt.equal(big, lt.ones(3, 40, 50)))
  end)

  it("keeps shapes and dtypes", function()
    local list = {T.ColorJitter(0.4, {0.5, 1.5}, 0.4, 0.1), T.RandomRotation(30),
      T.RandomAffine(10, {0.1, 0.2}, {0.8, 1.2}, {-5, 5, -3, 3}), T.RandomPerspective(0.5, 1),
      T.GaussianBlur(3, {0.1, 2}), T.RandomGrayscale(1), T.RandomInvert(1), T.RandomPosterize(3, 1),
      T.RandomSolarize(0.5, 1), T.RandomAdjustSharpness(2, 1), T.RandomAutocontrast(1),
      T.RandomEqualize(1), T.GaussianNoise(), T.RandomOrder{T.Identity(), T.RGB()},
      T.RandomVerticalFlip(1), T.RandomErasing(1)}
    for _, x in ipairs{image, image:to "float32" / 255} do
      for _, t in ipairs(list) do
        local out = t(x)
        assert.equal(tostring(x.shape), tostring(out.shape), tostring(t))
        assert.equal(x.dtype, out.dtype, tostring(t))
      end
    end
  end)
end)

describe("transforms report", function()
  it("wrong arguments", function()
    contains(message_of(T.Compose, {1}), "Compose: expected a transform or a function in entry 1")
    contains(message_of(T.RandomHorizontalFlip, 2), "RandomHorizontalFlip: expected a probability")
    contains(message_of(T.ColorJitter, {hue = 0.7}), "ColorJitter: expected numbers from -0.5")
    contains(message_of(T.Lambda, 3), "Lambda: expected a function for argument 'lambd', got 3")
    contains(message_of(T.Normalize(0.5, 0.5), image),
      "normalize: expected a float dtype for argument 'img', got \"uint8\"\nhint: ")
    contains(message_of(T.Normalize({0.5}, {0}), image:float()),
      "normalize: expected numbers other than 0 for argument 'std', got 0")
    contains(message_of(T.CenterCrop, {1, 2, 3}), "CenterCrop: expected 1 or 2 integers")
    contains(message_of(T.FiveCrop(9), image), "five_crop: expected a size of at most {6, 8}")
    contains(message_of(T.Resize(4), lt.ones(4)),
      "resize: expected an image of shape {..., C, H, W}")
    contains(message_of(T.GaussianBlur(4), image), "gaussian_blur: expected odd sizes")
    contains(message_of(function() return T.RandomCorp end),
      'transforms has no field "RandomCorp"\nhint: did you mean \'transforms.RandomCrop\'?')
    local F = T.functional
    contains(message_of(F.adjust_hue, image, 0.6), "adjust_hue: expected a number from -0.5 to 0.5")
    contains(message_of(F.adjust_contrast, image[{{1, 2}}], 1),
      "adjust_contrast: expected 1 or 3 channels for argument 'img', got 2")
    contains(message_of(F.pad, image, {1, 2, 3}), "pad: expected 1, 2 or 4 integers")
    contains(message_of(F.rotate, image, 10, "bilinear", false, {1}),
      "rotate: expected {x, y} for argument 'center'")
    contains(message_of(F.perspective, image), "perspective: expected arguments 'startpoints'")
    contains(message_of(F.to_dtype, image:float(), "int64", true), "to_dtype: cannot scale float32")
  end)
end)

describe("random transforms", function()
  it("draw on the CPU, whatever the default device", function()
    local corners = {{0, 0}, {7, 0}, {7, 5}, {0, 5}}
    local calls = {
      function() return T.RandomHorizontalFlip()(image) end,
      function() return T.RandomOrder{T.RandomVerticalFlip(), T.RandomInvert()}(image) end,
      function() return T.ColorJitter(0.5, 0.5, 0.5, 0.1)(image) end,
      function() return T.RandomCrop(3)(image) end,
      function() return T.AutoAugment()(image) end,
      function() return (T.CutMix()(image:unsqueeze(1), lt.ones{1, 2, device = "cpu"})) end,
      function() return T.functional.perspective(image, corners, corners) end,
      function() return lt.vision.datasets.FakeData(2, {3, 4, 4})[1][1] end,
    }
    for i, call in ipairs(calls) do
      lt.manual_seed(3)
      local expected = call()
      lt.manual_seed(3)
      local out = lt.with_device("meta", call)
      assert.equal("cpu", out.device, i)
      assert.is_true(lt.equal(expected, out), i)
    end
  end)
end)
