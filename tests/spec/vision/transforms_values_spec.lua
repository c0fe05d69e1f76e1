-- lt.vision.transforms.functional against torchvision's values (tools/golden/vision.py), on images
-- of every layout and on devices.

local lt = require "lutra"
local golden = require "golden_support"

local device = os.getenv "LUTRA_TEST_DEVICE" or "cpu"

-- The tensor that a file describes.
local function tensor_of(t)
  return lt.tensor(t.data, {dtype = t.dtype}):reshape(t.shape)
end

local environment = {lt = lt, vision = lt.vision, F = lt.vision.transforms.functional}

-- Functions whose integer results may differ by 1: their sums are rounded in another order.
local function tolerance_of(case)
  if case.out.dtype:find "float" then return 2e-6 end
  return case.code:find "blur" and 1 or case.code:find "hue" and 1 or case.code:find "gamma" and 1
    or case.code:find "sharpness" and 1 or case.code:find "bilinear" and 1 or 0
end

local function check(case, x)
  local out = assert(load("return " .. case.code, case.code, "t", environment
    and setmetatable({x = x}, {__index = environment})))()
  local expected = tensor_of(case.out):to "cpu"
  assert.equal(tostring(expected.shape), tostring(out.shape), case.code)
  assert.equal(expected.dtype, out.dtype, case.code)
  if expected:numel() == 0 then return end
  local scale = math.max(1, case.out.dtype:find "float" and expected:abs():max():item() or 1)
  local difference = (out:to("cpu"):to("float64") - expected:to("float64")):abs():max():item()
  assert.is_true(difference <= tolerance_of(case) * scale,
    ("%s of %s: %g"):format(case.code, x.dtype, difference))
end

describe("the functions of transforms", function()
  local cases = golden.file "vision"

  it("have torchvision's values", function()
    for _, case in ipairs(cases) do check(case, tensor_of(case.x):to(device)) end
  end)

  it("accept views", function()
    for _, case in ipairs(cases) do
      check(case, tensor_of(case.x):transpose(2, 3):contiguous():transpose(2, 3):to(device))
    end
  end)

  it("treat the images of a batch alike", function()
    local F = environment.F
    local x = lt.rand(2, 3, 6, 5)
    for _, f in ipairs{
      function(i) return F.resize(i, 4) end, function(i) return F.rotate(i, 20) end,
      function(i) return F.adjust_hue(i, 0.1) end, function(i) return F.adjust_contrast(i, 2) end,
      function(i) return F.gaussian_blur(i, 3) end, function(i) return F.equalize(i) end,
      function(i) return F.pad(i, 2, {1, 0, 0.5}) end, function(i) return F.autocontrast(i) end,
      function(i) return F.adjust_sharpness(i, 0.5) end,
    } do
      local all = f(x)
      for k = 1, 2 do
        assert.is_true((all[k] - f(x[k])):abs():max():item() < 1e-6)
      end
    end
  end)

  it("are differentiable", function()
    local F = environment.F
    local x = lt.rand{3, 6, 6, requires_grad = true}
    F.normalize(F.rotate(F.resize(x, 8), 30, "bilinear"), {0.5}, {0.5}):sum():backward()
    assert.equal("{3, 6, 6}", tostring(x.grad.shape))
  end)
end)
