--- Convolutions and batch norm: errors, sizes, paths that must agree, running statistics.

local lt = require "lutra"
local devices = require "device_support"

-- Once more on emulated devices, in a process of its own.
devices.elsewhere("core/convolution", _ENV)
if os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU" then lt.set_default_device "cuda" end

local F = lt.nn.functional

local function fails(text, fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(message):find(text, 1, true), ("%s\n  in %s"):format(text, message))
end

local function close(a, b, tolerance)
  assert.are.same(tostring(a.shape), tostring(b.shape))
  local limit = b:abs():max():item() * (tolerance or 1e-4) + 1e-6
  assert.is_true((a - b):abs():max():item() <= limit)
end

describe("a convolution", function()
  it("states which argument is wrong", function()
    local x, w = lt.ones(1, 2, 4, 4), lt.ones(3, 2, 3, 3)
    fails("conv2d: expected 3 to 4 dimensions for argument 'input', got 2: {4, 4}", F.conv2d,
      lt.ones(4, 4), w)
    fails("conv2d: expected 4 dimensions for argument 'weight', got 3: {2, 3, 3}", F.conv2d, x,
      lt.ones(2, 3, 3))
    fails("conv2d: expected 1 channels, those of weight, for argument 'input', got shape "
      .. "{1, 2, 4, 4}", F.conv2d, x, lt.ones(3, 1, 3, 3))
    fails("conv2d: expected shape {3}, one number for each output channel, for argument 'bias', "
      .. "got {2}", F.conv2d, x, w, lt.ones(2))
    fails("conv2d: expected integers of at least 1 for argument 'stride', got 0", F.conv2d, x, w,
      nil, 0)
    fails("conv2d: expected integers of at least 0 for argument 'padding', got -1", F.conv2d, x, w,
      nil, 1, -1)
    fails("conv2d: expected integers of at least 1 for argument 'dilation', got -1", F.conv2d, x, w,
      nil, 1, 0, -1)
    fails("conv2d: expected an integer of at least 1 for argument 'groups', got 0", F.conv2d, x, w,
      nil, 1, 0, 1, 0)
    fails("conv2d: expected a multiple of groups, 2, as first size of argument 'weight', got "
      .. "{3, 1, 3, 3}", F.conv2d, x, lt.ones(3, 1, 3, 3), nil, 1, 0, 1, 2)
    fails("conv2d: expected an integer or 2 of them for argument 'stride', got 3", F.conv2d, x, w,
      nil, {1, 1, 1})
    fails("conv2d: cannot use padding 'same' with a stride of 2", F.conv2d, x, w, nil, 2, "same")
    fails("conv2d: cannot move a kernel of shape {3, 3} over input {1, 2, 4, 4}: in dimension 3, "
      .. "its reach of 7 exceeds the padded size 4", F.conv2d, x, w, nil, 1, 0, 3)
    fails("conv2d: expected the same dtype for arguments 'input' and 'weight'", F.conv2d, x,
      w:double())
    fails("conv_transpose1d: expected weight's 3 channels for argument 'input', got shape "
      .. "{1, 2, 5}", F.conv_transpose1d, lt.ones(1, 2, 5), lt.ones(3, 1, 2))
    fails("conv_transpose1d: expected integers less than stride or dilation for argument "
      .. "'output_padding', got 2 with stride 2 and dilation 1", F.conv_transpose1d,
      lt.ones(1, 2, 5), lt.ones(2, 1, 2), nil, 2, 0, 2)
    fails("conv_transpose1d: cannot compute a result of size -2 in dimension 3: input {1, 2, 1}, "
      .. "weight {2, 1, 2}", F.conv_transpose1d, lt.ones(1, 2, 1), lt.ones(2, 1, 2), nil, 1, 2)
  end)

  it("has empty batches and empty channels", function()
    local empty = lt.zeros(0, 2, 4, 4):requires_grad_(true)
    local weight = lt.ones(3, 2, 3, 3):requires_grad_(true)
    local y = F.conv2d(empty, weight, lt.ones(3))
    assert.are.same("{0, 3, 2, 2}", tostring(y.shape))
    y:sum():backward()
    assert.are.equal(0, weight.grad:abs():sum():item())
    assert.are.same("{0, 2, 4, 4}", tostring(empty.grad.shape))
    local none = F.conv2d(lt.zeros(1, 0, 4, 4), lt.ones(2, 0, 3, 3), lt.tensor{1., 2.})
    assert.are.equal(12, none:sum():item())
  end)

  it("on meta has the shape of the result", function()
    local y = F.conv2d(lt.ones{8, 3, 224, 224, device = "meta"},
      lt.ones{64, 3, 7, 7, device = "meta"}, nil, {stride = 2, padding = 3})
    assert.are.same("{8, 64, 112, 112}", tostring(y.shape))
  end)

  it("is a sum of products for every path", function()
    lt.manual_seed(3)
    -- input, weight, stride, padding, dilation, groups: pointwise, depthwise, blocks of images...
    for _, s in ipairs {
      {{3, 4, 5, 6}, {5, 4, 1, 1}, 1, 0, 1, 1}, {{2, 6, 9, 7}, {6, 1, 3, 3}, 1, 1, 1, 6},
      {{2, 6, 9, 7}, {6, 1, 3, 2}, 2, 1, 2, 6}, {{9, 2, 6, 6}, {4, 2, 3, 3}, 1, 1, 1, 1},
      {{1, 3, 40, 33}, {4, 3, 5, 3}, {2, 1}, {2, 0}, 1, 1},
      {{2, 4, 8, 8}, {8, 1, 3, 3}, 1, 1, 1, 4},
    } do
      local x, w = lt.randn(s[1]):double(), lt.randn(s[2]):double()
      local stride = type(s[3]) == "table" and s[3] or {s[3], s[3]}
      local padding = type(s[4]) == "table" and s[4] or {s[4], s[4]}
      local y = F.conv2d(x, w, nil, stride, padding, s[5], s[6])
      local n, groups = s[1][1], s[6]
      local padded = lt.zeros{n, s[1][2], s[1][3] + 2 * padding[1], s[1][4] + 2 * padding[2],
        dtype = "float64"}
      local top, left = padding[1], padding[2]
      padded[{{}, {}, {top + 1, top + s[1][3]}, {left + 1, left + s[1][4]}}] = x
      local sum = lt.zeros_like(y)
      local inputs, outputs = s[2][2], s[2][1] // groups
      for o = 1, s[2][1] do
        local group = (o - 1) // outputs
        for c = 1, inputs do
          for i = 1, s[2][3] do
            for j = 1, s[2][4] do
              local a, b = (i - 1) * s[5], (j - 1) * s[5]
              local part = padded[{{}, group * inputs + c,
                {a + 1, a + 1 + (y:size(3) - 1) * stride[1], stride[1]},
                {b + 1, b + 1 + (y:size(4) - 1) * stride[2], stride[2]}}]
              sum[{{}, o}]:add_(part * w[{o, c, i, j}])
            end
          end
        end
      end
      close(y, sum, 1e-10)
      close(F.conv2d(x:float(), w:float(), nil, stride, padding, s[5], s[6]):double(), sum, 1e-5)
    end
  end)

  it("is the adjoint of the transposed one", function()
    lt.manual_seed(4)
    local x, w = lt.randn(2, 4, 9):double(), lt.randn(6, 2, 3):double()
    local y = F.conv1d(x, w, nil, 2, 1, 1, 2)
    local g = lt.randn(y.shape):double()
    local back = F.conv_transpose1d(g, w, nil, 2, 1, 0, 2)
    assert.is_true(math.abs((y * g):sum():item() - (x * back):sum():item()) < 1e-10)
  end)

  it("is the same for any number of threads and with strided tensors", function()
    lt.manual_seed(5)
    local x, w, b = lt.randn(4, 20, 30, 16), lt.randn(16, 3, 3, 24), lt.randn(24)
    local before = lt.get_num_threads()
    local one
    for threads = 1, 3 do
      lt.set_num_threads(threads)
      local y = F.conv2d(x:permute(1, 4, 2, 3), w:permute(4, 1, 2, 3), b, {padding = 1})
      one = one or y
      close(y, one, 1e-6)
    end
    lt.set_num_threads(before)
  end)
end)

describe("oneDNN", function()
  -- Shapes of the input and the weight, and options.
  local CASES = {
    {{4, 16, 20, 20}, {32, 16, 3, 3}, {padding = 1}},
    {{2, 3, 50, 50}, {32, 3, 7, 7}, {padding = 3, stride = 2}},
    {{4, 64, 20, 20}, {64, 1, 3, 3}, {padding = 1, groups = 64}},
    {{4, 32, 20, 20}, {64, 1, 5, 5}, {padding = 2, groups = 32}}, -- rows instead of the library
    {{4, 32, 20, 20}, {32, 1, 5, 5}, {padding = 2, groups = 32}},
    {{4, 32, 20, 20}, {32, 1, 3, 3}, {padding = 2, groups = 32, dilation = 2}},
    {{4, 4, 40, 40}, {4, 1, 3, 3}, {stride = 2, groups = 4}},
    {{4, 64, 10, 10}, {32, 64, 1, 1}, {}},
    {{4, 32, 15, 15}, {32, 8, 3, 3}, {padding = "same", groups = 4, dilation = 2}},
    {{4, 32, 14, 14}, {16, 32, 4, 2}, {padding = "same"}},
    {{4, 6, 14, 14}, {16, 6, 5, 5}, {}},
    {{4, 5, 20, 20}, {32, 5, 3, 3}, {padding = 1, stride = 2}},
  }

  it("computes what Lutra's own kernels compute", function()
    local onednn = lt.backends.onednn
    if not onednn.is_available() then return pending "oneDNN is not installed" end
    assert.is_truthy(onednn.info():find "^oneDNN %d")
    lt.manual_seed(6)
    for _, s in ipairs(CASES) do
      local results = {}
      for k = 1, 2 do
        lt.manual_seed(7)
        onednn.enabled = k == 1
        local x, w, b = lt.randn(s[1]), lt.randn(s[2]), lt.randn(s[2][1])
        for _, t in ipairs {x, w, b} do t:requires_grad_(true) end
        local y = F.conv2d(x, w, b, s[3])
        results[k] = {y, table.unpack(lt.autograd.grad(y:pow(2):sum(), {x, w, b}))}
      end
      onednn.enabled = true
      for i = 1, 4 do close(results[1][i], results[2][i]) end
    end
  end)

  it("rounds bfloat16 once, in results and gradients", function()
    lt.manual_seed(8)
    for _, s in ipairs(CASES) do
      local groups, wide, narrow = s[3].groups or 1
      local x, w, b = lt.randn(s[1]), lt.randn(s[2]), lt.randn(s[2][1])
      local function results(dtype)
        local inputs = {}
        for i, t in ipairs {x, w, b} do
          inputs[i] = t:bfloat16():to("cpu", dtype):detach():requires_grad_()
        end
        local y = F.conv2d(inputs[1], inputs[2], inputs[3], s[3])
        lt.manual_seed(9)
        local g = lt.randn(y.shape):bfloat16():to("cpu", dtype)
        local z = F.conv_transpose2d(g, inputs[2], nil, 2, 0, 0, groups)
        local biased = F.conv_transpose2d(g, inputs[2], z:new_ones(z:size(2)), 1, 0, 0, groups)
        return {y, z, biased, table.unpack(lt.autograd.grad(y, inputs, g))}
      end
      wide, narrow = results "float64", results "bfloat16"
      for i, t in ipairs(narrow) do
        assert.are.equal("bfloat16", t.dtype)
        close(t:double(), wide[i], 1 / 256)
      end
    end
  end)

  it("computes transposed convolutions to few channels", function()
    local onednn = lt.backends.onednn
    if not onednn.is_available() then return pending "oneDNN is not installed" end
    local x, w, b = lt.randn(4, 16, 10, 10), lt.randn(16, 6, 5, 5), lt.randn(6)
    local with = F.conv_transpose2d(x, w, b)
    onednn.enabled = false
    local without = F.conv_transpose2d(x, w, b)
    onednn.enabled = true
    close(with, without)
  end)
end)

describe("batch norm", function()
  it("updates the running statistics in place", function()
    local x = lt.tensor{{1.0, 2.0}, {3.0, 6.0}}
    local mean, var = lt.zeros(2), lt.ones(2)
    F.batch_norm(x, mean, var, nil, nil, {training = true, momentum = 0.5})
    close(mean, lt.tensor{1.0, 2.0}, 1e-6)
    close(var, lt.tensor{1.5, 4.5}, 1e-6)
    F.batch_norm(x, mean, var)
    close(mean, lt.tensor{1.0, 2.0}, 1e-6)
  end)

  it("states which argument is wrong", function()
    fails("batch_norm: expected more than one element in each channel for argument 'input' when "
      .. "'training' is true, got {1, 2}", F.batch_norm, lt.ones(1, 2), nil, nil,
      {training = true})
    fails("batch_norm: expected shape {2}, one number for each channel, for argument 'weight', got "
      .. "{3}", F.batch_norm, lt.ones(4, 2), nil, nil, lt.ones(3), nil, true)
    fails("batch_norm: expected a tensor for argument 'running_mean' when 'training' is false, got "
      .. "nil", F.batch_norm, lt.ones(4, 2), nil, nil)
    fails("batch_norm: expected a float dtype for argument 'input', got \"int64\"", F.batch_norm,
      lt.ones(4, 2):long(), nil, nil, nil, nil, true)
  end)

  it("takes float32 statistics for 16-bit inputs", function()
    local x = lt.randn(4, 3, 5):to "bfloat16"
    local mean, var, w = lt.zeros(3), lt.ones(3), lt.ones(3)
    local y = F.batch_norm(x, mean, var, w, w, {training = true})
    assert.are.equal("bfloat16", y.dtype)
    assert.are.equal("float32", mean.dtype)
  end)

  it("is accurate far from 0", function()
    local x = lt.arange(1000):view(2, 1, 500):float() * 1e-3 + 1e4
    local y = F.batch_norm(x, nil, nil, nil, nil, {training = true})
    assert.is_true(math.abs(y:double():mean():item()) < 1e-2)
    assert.is_true(math.abs(y:double():pow(2):mean():item() - 1) < 2e-3)
  end)
end)
