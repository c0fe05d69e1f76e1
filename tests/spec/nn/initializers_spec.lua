-- nn.init: statistics and properties of what it fills tensors with, and its errors.

local lt = require "lutra"
local support = require "nn_support"

local nn, init = lt.nn, lt.nn.init
local fails, close = support.fails, support.close

local function deviation(x) return x:std():item() end

describe("nn.init", function()
  before_each(function() lt.manual_seed(17) end)

  it("has the gains of PyTorch", function()
    for name, gain in pairs {linear = 1, conv1d = 1, conv2d = 1, conv3d = 1, conv_transpose1d = 1,
      conv_transpose2d = 1, conv_transpose3d = 1, sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2),
      selu = 0.75} do
      assert.equal(gain, init.calculate_gain(name))
    end
    assert.equal(math.sqrt(2 / (1 + 0.01 ^ 2)), init.calculate_gain "leaky_relu")
    assert.equal(1, init.calculate_gain("leaky_relu", 1))
    fails("calculate_gain: expected one of", function() init.calculate_gain "gelu" end)
    assert.same({12, 20}, {init._calculate_fan_in_and_fan_out(lt.empty(5, 3, 2, 2))})
  end)

  it("orthogonal_ makes rows or columns orthogonal", function()
    for _, shape in ipairs {{4, 4}, {3, 7}, {7, 3}, {6, 2, 2}, {1, 1}} do
      local x = lt.empty(shape)
      assert.equal(x, init.orthogonal_(x, 2))
      local m = x:reshape(shape[1], -1)
      local small = m:size(1) <= m:size(2) and m:matmul(m:t()) or m:t():matmul(m)
      close(lt.eye(small:size(1)) * 4, small, 1e-5)
    end
    -- Uniformly distributed: an element of a 2 x 2 rotation or reflection is cos(t), mean 0, and
    -- its square has mean 1/2.
    local sum, squares = 0, 0
    for _ = 1, 2000 do
      local c = init.orthogonal_(lt.empty(2, 2))[{1, 1}]:item()
      sum, squares = sum + c, squares + c * c
    end
    assert.is_true(math.abs(sum / 2000) < 0.07) -- 4 deviations of 0.7 / sqrt(2000)
    assert.is_true(math.abs(squares / 2000 - 0.5) < 0.04)
    local generator = lt.Generator():manual_seed(3)
    local a = init.orthogonal_(lt.empty(3, 3), {generator = generator})
    generator:manual_seed(3)
    close(a, init.orthogonal_(lt.empty(3, 3), {generator = generator}), 0)
    assert.equal(0, init.orthogonal_(lt.empty(0, 3)):numel())
    fails("orthogonal_: expected at least 2 dimensions for argument 'tensor', got shape {3}",
      function() init.orthogonal_(lt.empty(3)) end)
  end)

  it("sparse_ sets a fraction of each column to zero", function()
    local x = init.sparse_(lt.empty(1000, 20), 0.1, 0.5)
    close(lt.full({20}, 100.0), x:eq(0):sum(1):float(), 0)
    assert.is_true(math.abs(deviation(x) - 0.5 * math.sqrt(0.9)) < 0.02)
    assert.equal(2, init.sparse_(lt.empty(3, 1), 0.4):eq(0):sum():item()) -- ceil(1.2)
    assert.equal(0, init.sparse_(lt.empty(3, 2), 0):eq(0):sum():item())
    assert.equal(6, init.sparse_(lt.empty(3, 2), 1):eq(0):sum():item())
    fails("sparse_: expected 2 dimensions", function() init.sparse_(lt.empty(3), 0.1) end)
    fails("'sparsity'", function() init.sparse_(lt.empty(3, 3), 1.5) end)
  end)

  it("dirac_ keeps channels in a convolution", function()
    local x = lt.randn(2, 4, 7)
    local w = init.dirac_(lt.empty(4, 4, 3))
    close(x, lt.F.conv1d(x, w, {padding = 1}), 0)
    local image = lt.randn(1, 2, 5, 5)
    close(image, lt.F.conv2d(image, init.dirac_(lt.empty(2, 2, 3, 3)), {padding = 1}), 0)
    local grouped = init.dirac_(lt.empty(4, 2, 3), 2)
    close(x, lt.F.conv1d(x, grouped, {padding = 1, groups = 2}), 0)
    assert.equal(3, init.dirac_(lt.empty(3, 5, 1, 1, 1)):sum():item())
    fails("dirac_: expected 3 to 5 dimensions", function() init.dirac_(lt.empty(3, 3)) end)
    fails("dirac_: expected a divisor of the number of output channels (3) for argument 'groups', "
      .. "got 2", function() init.dirac_(lt.empty(3, 3, 1), 2) end)
  end)

  it("has the deviations of Glorot's and He's formulas", function()
    local w = lt.empty(300, 200, 3) -- fan_in 600, fan_out 900
    for _, case in ipairs {
      {init.xavier_uniform_, {gain = 2}, 2 * math.sqrt(2 / 1500)},
      {init.xavier_normal_, {gain = 2}, 2 * math.sqrt(2 / 1500)},
      {init.kaiming_uniform_, {mode = "fan_out", nonlinearity = "relu"}, math.sqrt(2 / 900)},
      {init.kaiming_normal_, {a = 1}, math.sqrt(1 / 600)},
    } do
      case[1](w, case[2])
      assert.is_true(math.abs(deviation(w) / case[3] - 1) < 0.01)
      assert.is_true(math.abs(w:mean():item()) < case[3] / 50)
    end
    for _, f in ipairs {init.kaiming_uniform_, init.kaiming_normal_} do
      assert.equal(0, f(lt.empty(3, 0)):numel())
    end
  end)

  it("records nothing and leaves the grad mode", function()
    local p = nn.Parameter(lt.empty(3, 3))
    for _, f in ipairs {init.orthogonal_, init.zeros_, init.eye_} do
      assert.equal(p, f(p))
      assert.is_true(p.is_leaf)
    end
    init.sparse_(p, 0.5)
    assert.is_true(p.is_leaf and lt.is_grad_enabled())
  end)
end)
