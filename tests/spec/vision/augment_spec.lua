-- Automatic augmentation, MixUp and CutMix: what random transforms keep, and errors. The operations
-- and their magnitudes are compared with torchvision in transforms_values_spec.lua.

local lt = require "lutra"

local T = lt.vision.transforms

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

local function contains(text, part) assert.is_truthy(text:find(part, 1, true), text) end

before_each(function() lt.manual_seed(1) end)

describe("automatic augmentation", function()
  local classes = {"AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"}

  it("keeps shapes and dtypes, and depends on the seed only", function()
    for _, name in ipairs(classes) do
      for _, shape in ipairs{{3, 9, 7}, {1, 9, 7}, {4, 3, 9, 7}} do
        for _, dtype in ipairs{"uint8", "float32"} do
          local img = lt.rand(shape)
          if dtype == "uint8" then img = (img * 255):to "uint8" end
          local t, before = T[name](), img:clone()
          for seed = 1, 10 do
            lt.manual_seed(seed)
            local out, label = t(img, 7)
            assert.equal(tostring(img.shape), tostring(out.shape), name)
            assert.equal(dtype, out.dtype, name)
            assert.equal(7, label)
            lt.manual_seed(seed)
            assert.is_true(lt.equal(out, (t(img))), name)
          end
          assert.is_true(lt.equal(before, img), name)
        end
      end
    end
  end)

  it("uses every operation with both signs", function()
    local img = lt.rand(3, 8, 8)
    local kinds = {}
    for _ = 1, 200 do
      local out = T.RandAugment(1, 20)(img)
      kinds[("%.3f"):format(out:sum():item())] = true
    end
    local count = 0
    for _ in pairs(kinds) do count = count + 1 end
    -- 14 operations, 9 of them with two signs; Identity and flat values may coincide
    assert.is_true(count >= 19 and count <= 23, count)
  end)

  it("leaves the image unchanged where nothing is applied", function()
    local img = lt.rand(3, 8, 8)
    assert.is_true(lt.equal(img, T.RandAugment(0)(img)))
    assert.is_true((T.RandAugment(1, 0).space.ShearX.at(0)) == 0)
  end)

  it("has the policies of the paper", function()
    assert.equal("cifar10", T.AutoAugmentPolicy.CIFAR10)
    local policies = T.AutoAugment.policies
    for _, name in ipairs{"imagenet", "cifar10", "svhn"} do assert.equal(25, #policies[name]) end
    assert.same({{"Posterize", 0.4, 8}, {"Rotate", 0.6, 9}}, policies.imagenet[1])
    assert.same({{"Equalize", 0.8, 0}, {"Equalize", 0.6, 0}}, policies.imagenet[25])
    assert.same({{"Rotate", 0.7, 2}, {"TranslateX", 0.3, 9}}, policies.cifar10[2])
    assert.same({{"ShearX", 0.7, 2}, {"Invert", 0.1, 0}}, policies.svhn[25])
    for _, policy in pairs(policies) do
      for _, steps in ipairs(policy) do
        assert.equal(2, #steps)
        for _, step in ipairs(steps) do assert.is_table(T.AutoAugment.space[step[1]], step[1]) end
      end
    end
  end)

  it("mixes images in proportions that sum to 1", function()
    local flat = lt.full({3, 6, 6}, 0.5) -- shears and moves would bring in zeros: fill with 0.5
    local mix = T.AugMix{all_ops = false, chain_depth = 1, fill = 0.5}
    local found = false
    for _ = 1, 20 do
      local out = mix(flat)
      assert.is_true(out:min():item() >= 0 and out:max():item() <= 1 + 1e-6)
      found = found or (out - flat):abs():max():item() < 1e-6
    end
    assert.is_true(found)
  end)

  it("reports wrong arguments", function()
    contains(message_of(T.RandAugment, 2, 31), "RandAugment: expected an integer from 0 to 30 for "
      .. "argument 'magnitude', got 31")
    contains(message_of(T.AutoAugment, "mnist"), "AutoAugment: expected ")
    contains(message_of(T.AugMix, 11), "AugMix: expected an integer from 1 to 10 for argument "
      .. "'severity', got 11")
    contains(message_of(T.AugMix, {alpha = 0}), "AugMix: expected a number above 0")
    contains(message_of(T.TrivialAugmentWide(), lt.rand(2, 4, 4)),
      "TrivialAugmentWide: expected 1 or 3 channels")
  end)
end)

describe("MixUp and CutMix", function()
  local x = lt.arange(1., 4 * 2 * 6 * 8):reshape(4, 2, 6, 8)
  local labels = lt.tensor{1, 3, 2, 5}

  it("mix each image with the one before it, and the labels in the same proportion", function()
    for _ = 1, 20 do
      local images, rows = T.MixUp{num_classes = 5}(x, labels)
      assert.equal("{4, 5}", tostring(rows.shape))
      local share = rows[{1, 1}]:item()
      assert.is_true(math.abs(rows[{1, 5}]:item() - (1 - share)) < 1e-6)
      assert.is_true((rows:sum(2) - 1):abs():max():item() < 1e-6)
      local expected = x * share + x:roll(1, 1) * (1 - share)
      assert.is_true((images - expected):abs():max():item() < 1e-3)
    end
  end)

  it("cut a rectangle whose share of the area is that of the labels", function()
    local areas = {}
    for _ = 1, 50 do
      local images, rows = T.CutMix{num_classes = 5}(x, labels)
      local other = images:ne(x)
      assert.is_true(lt.equal(images, lt.where(other, x:roll(1, 1), x)))
      local area = other[{1, 1}]:sum():item()
      areas[area] = true
      assert.is_true(math.abs(rows[{1, 1}]:item() - (1 - area / 48)) < 1e-6)
      assert.is_true(math.abs(rows[{3, 3}]:item() - area / 48) < 1e-6)
      -- a rectangle: the rows that have it are alike
      local counts = other[{1, 1}]:sum(2)
      assert.is_true(counts:eq(0):logical_or(counts:eq(counts:max())):all():item())
    end
    local count = 0
    for _ in pairs(areas) do count = count + 1 end
    assert.is_true(count > 5, count)
  end)

  it("accept rows of probabilities, and uint8 images in CutMix", function()
    local rows = lt.eye(4)
    local _, mixed = T.MixUp()(x, rows)
    assert.equal("{4, 4}", tostring(mixed.shape))
    assert.equal("uint8", T.CutMix()(x:fmod(256):to "uint8", rows).dtype)
  end)

  it("report wrong arguments", function()
    local mixup = T.MixUp()
    contains(message_of(mixup, x, labels), "MixUp: expected argument 'num_classes' for labels")
    contains(message_of(mixup, x[1], labels), "MixUp: expected images {N, C, H, W} and labels")
    contains(message_of(mixup, x, lt.eye(3)), "got {4, 2, 6, 8} and {3, 3}")
    contains(message_of(mixup, x), "MixUp: expected a tensor for argument 'labels'")
    contains(message_of(mixup, x:to "uint8", lt.eye(4)), "MixUp: expected images of a float dtype")
    contains(message_of(T.CutMix{num_classes = 3}, x, lt.eye(4)), "expected labels of 3 classes")
    contains(message_of(T.CutMix, 0), "CutMix: expected a number above 0 for argument 'alpha'")
  end)
end)
