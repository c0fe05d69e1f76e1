-- Lazy layers: shapes from the first input, state dicts, printing, errors. Values of PyTorch are in
-- layer_classes_spec.lua.

local lt = require "lutra"
local support = require "nn_support"

local nn = lt.nn
local fails = support.fails

describe("lazy layers", function()
  it("take the number of inputs from the first input and become ordinary layers", function()
    local net = nn.Sequential(nn.LazyConv2d(4, 3, {padding = 1}), nn.LazyBatchNorm2d(),
      nn.Flatten(), nn.LazyLinear(3))
    assert.equal("LazyConv2d(0, 4, kernel_size=3, stride=1, padding=1)", tostring(net[1]))
    assert.equal("LazyLinear(in_features=0, out_features=3, bias=true)", tostring(net[4]))
    assert.is_true(net[4]:has_uninitialized_params())
    local weight = net[4].weight
    local y = net:double()(lt.randn({2, 2, 5, 5}, {dtype = "float64"}))
    assert.equal("{2, 3}", tostring(y.shape))
    assert.equal("Conv2d(2, 4, kernel_size=3, stride=1, padding=1)", tostring(net[1]))
    assert.equal("BatchNorm2d", net[2]:type_name())
    assert.equal("Linear(in_features=100, out_features=3, bias=true)", tostring(net[4]))
    assert.equal(weight, net[4].weight) -- the same parameter, with a shape
    assert.equal("{3, 100}", tostring(weight.shape))
    assert.equal("float64", net[1].bias.dtype)
    y:sum():backward()
    assert.equal("{3, 100}", tostring(weight.grad.shape))
  end)

  it("train with an optimizer made before the first call", function()
    local net = nn.LazyLinear(1)
    local opt = lt.optim.SGD(net:parameters(), {lr = 0.1})
    net(lt.ones(2, 3)):sum():backward()
    local before = net.weight:detach():clone()
    opt:step()
    assert.is_true(lt.allclose(before - 0.2, net.weight:detach()))
  end)

  it("start from the initial values of the ordinary layer", function()
    lt.manual_seed(3)
    local expected = nn.Linear(5, 2)
    local lazy = nn.LazyLinear(2)
    lt.manual_seed(3)
    lazy(lt.ones(5))
    assert.is_true(lt.equal(expected.weight, lazy.weight))
    assert.is_true(lt.equal(expected.bias, lazy.bias))
  end)

  it("load a state dict before and after the first call", function()
    local trained = nn.Linear(7, 3)
    local lazy = nn.LazyLinear(3)
    lazy:load_state_dict(trained:state_dict())
    assert.is_false(lazy:has_uninitialized_params())
    assert.equal("{3, 7}", tostring(lazy.weight.shape))
    local x = lt.randn(2, 7)
    assert.is_true(lt.equal(trained(x), lazy(x)))
    assert.equal("Linear", lazy:type_name())
    fails({"load_state_dict", "weight: expected shape {3, 7}, got {3, 4}"}, function()
      lazy:load_state_dict(nn.Linear(4, 3):state_dict())
    end)
    local copy = nn.LazyLinear(2):clone()
    assert.equal("{2}", tostring(copy(lt.ones(4)).shape))
  end)

  it("accept the options of the ordinary layers in order", function()
    local layer = nn.LazyConvTranspose1d(2, 3, 2, 1, 1, 1, false)
    layer(lt.ones(1, 4, 5))
    assert.equal("ConvTranspose1d(4, 2, kernel_size=3, stride=2, padding=1, output_padding=1, "
      .. "bias=false)", tostring(layer))
    local norm = nn.LazyInstanceNorm1d{affine = true}
    assert.equal("{3, 4}", tostring(norm(lt.randn(3, 4)).shape)) -- without a batch
    assert.equal(3, norm.num_features)
    assert.equal(4, (function()
      local plain = nn.LazyBatchNorm1d{affine = false, track_running_stats = false}
      plain(lt.randn(3, 4))
      return plain.num_features
    end)())
    local meta = lt.with_device("meta", nn.LazyLinear, 2)
    assert.equal("meta", meta(lt.empty(3, 4, {device = "meta"})).device)
  end)

  it("initialize_parameters needs no call", function()
    local layer = nn.LazyConv1d(2, 3)
    layer:initialize_parameters(lt.ones(1, 4, 5))
    assert.equal("{2, 4, 3}", tostring(layer.weight.shape))
    assert.equal("Conv1d", layer:type_name())
  end)

  it("of instance norm have parameters and statistics by default, as PyTorch's", function()
    local layer = nn.LazyInstanceNorm1d()
    layer(lt.randn(2, 3, 4))
    assert.equal("InstanceNorm1d", layer:type_name())
    assert.equal("{3}", tostring(layer.weight.shape))
    assert.equal("{3}", tostring(layer.running_mean.shape))
    assert.is_nil(nn.InstanceNorm1d(3).weight)
    assert.is_nil(nn.LazyInstanceNorm2d({affine = false}).weight)
  end)

  it("report what is wrong", function()
    fails({"LazyConv1d", "2 or 3 dimensions", "{2}"},
      function() nn.LazyConv1d(3, 2)(lt.ones(2)) end)
    fails({"LazyBatchNorm2d", "4 dimensions"}, function() nn.LazyBatchNorm2d()(lt.ones(2, 3)) end)
    fails({"LazyLinear", "a tensor"}, function() nn.LazyLinear(3)(5) end)
    fails({"num_parameters", "LazyLinear", "hint: call the network"},
      function() nn.Sequential(nn.LazyLinear(3)):num_parameters() end)
    fails({"LazyLinear", "out_features"}, function() nn.LazyLinear() end)
  end)
end)
