-- Layers of convolutions and batch norm: parameters, initial values, modes, state dicts.

local lt = require "lutra"
local support = require "nn_support"

local nn, F = lt.nn, lt.F
local fails, close = support.fails, support.close

local function names(module)
  local list = {}
  for name in pairs(module:state_dict()) do list[#list + 1] = name end
  return table.concat(list, " ")
end

describe("layers of convolutions", function()
  it("have PyTorch's parameters and initial bounds", function()
    lt.manual_seed(1)
    local layer = nn.Conv2d(8, 16, {3, 5}, {groups = 2})
    assert.equal("{16, 4, 3, 5}", tostring(layer.weight.shape))
    assert.equal("{16}", tostring(layer.bias.shape))
    local bound = 1 / math.sqrt(4 * 15)
    for _, p in ipairs {layer.weight, layer.bias} do
      local most = p:abs():max():item()
      assert.is_true(most <= bound and most > 0.5 * bound)
    end
    local up = nn.ConvTranspose1d(8, 6, 3, {groups = 2, bias = false})
    assert.equal("{8, 3, 3}", tostring(up.weight.shape))
    assert.is_nil(up.bias)
  end)

  it("compute what the functions do", function()
    local x = lt.randn(2, 4, 9, 8)
    local layer = nn.Conv2d(4, 6, 3, {stride = 2, padding = {1, 0}, dilation = 2, groups = 2})
    local y = F.conv2d(x, layer.weight, layer.bias, 2, {1, 0}, 2, 2)
    assert.is_true(lt.equal(y, layer(x)))
    local up = nn.ConvTranspose2d(4, 6, 3, {stride = 2, output_padding = 1})
    assert.is_true(lt.equal(F.conv_transpose2d(x, up.weight, up.bias, 2, 0, 1), up(x)))
    assert.equal("{2, 6, 19, 18}", tostring(nn.ConvTranspose2d(4, 6, 3, {stride = 2})(x,
      {19, 18}).shape))
    assert.equal("{3, 5}", tostring(nn.Conv1d(2, 3, 3, {padding = "same"})(lt.ones(2, 5)).shape))
  end)

  it("pad by padding_mode", function()
    local x = lt.randn(1, 1, 6)
    local layer = nn.Conv1d(1, 2, 3, {padding = 1, padding_mode = "circular"})
    local padded = F.pad(x, {1, 1}, "circular")
    assert.is_true(lt.equal(F.conv1d(padded, layer.weight, layer.bias), layer(x)))
    local same = nn.Conv1d(1, 2, 4, {padding = "same", padding_mode = "reflect"})
    assert.equal("{1, 2, 6}", tostring(same(x).shape))
  end)

  it("print their options", function()
    assert.equal("Conv2d(3, 8, kernel_size={3, 1}, stride=2, padding=1, bias=false)",
      tostring(nn.Conv2d(3, 8, {3, 1}, {stride = 2, padding = 1, bias = false})))
    assert.equal("ConvTranspose1d(2, 4, kernel_size=3, stride=2, output_padding=1, groups=2)",
      tostring(nn.ConvTranspose1d(2, 4, 3, {stride = 2, output_padding = 1, groups = 2})))
  end)

  it("state what is wrong", function()
    fails("multiples of groups", function() nn.Conv2d(3, 4, 3, {groups = 2}) end)
    fails("'padding_mode'", function() nn.Conv2d(3, 4, 3, {padding_mode = "none"}) end)
    fails("'kernel_size'", function() nn.Conv2d(3, 4, {1, 2, 3}) end)
    fails("'output_size'", function()
      nn.ConvTranspose1d(1, 1, 2, {stride = 2})(lt.ones(1, 1, 3), {9})
    end)
  end)
end)

describe("layers of batch norm", function()
  it("have PyTorch's state dict", function()
    assert.equal("weight bias running_mean running_var num_batches_tracked",
      names(nn.BatchNorm2d(3)))
    assert.equal("", names(nn.BatchNorm1d(3, {affine = false, track_running_stats = false})))
  end)

  it("update the running statistics in training mode only", function()
    local layer = nn.BatchNorm1d(2)
    local x = lt.tensor{{1.0, 2.0}, {3.0, 6.0}}
    layer(x)
    close({shape = {2}, data = {0.2, 0.4}}, layer.running_mean, 1e-6, "mean")
    close({shape = {2}, data = {1.1, 1.7}}, layer.running_var, 1e-6, "var")
    assert.equal(1, layer.num_batches_tracked:item())
    layer:eval()
    local y = layer(x)
    close({shape = {2}, data = {0.2, 0.4}}, layer.running_mean, 1e-6, "mean")
    assert.is_true(math.abs(y[{1, 1}]:item() - 0.8 / math.sqrt(1.1 + 1e-5)) < 1e-5)
    layer:reset_running_stats()
    assert.equal(0, layer.num_batches_tracked:item())
  end)

  it("average all batches without momentum", function()
    local layer = nn.BatchNorm1d(1, {momentum = false})
    layer(lt.tensor{{1.0}, {3.0}})
    layer(lt.tensor{{5.0}, {7.0}})
    close({shape = {1}, data = {4}}, layer.running_mean, 1e-6, "mean")
  end)

  it("check their input", function()
    fails({"BatchNorm2d", "4 dimensions"}, function() nn.BatchNorm2d(3)(lt.ones(2, 3)) end)
    fails({"BatchNorm1d", "3 channels"}, function() nn.BatchNorm1d(3)(lt.ones(2, 4)) end)
    fails("more than one element", function() nn.BatchNorm1d(3)(lt.ones(1, 3)) end)
  end)

  it("train a small network", function()
    lt.manual_seed(2)
    local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
      nn.Linear(4 * 36, 2))
    local x, labels = lt.randn(8, 1, 8, 8), lt.tensor{1, 2, 1, 2, 1, 2, 1, 2}
    local opt = lt.optim.Adam(net:parameters(), {lr = 1e-2})
    local first, last
    for _ = 1, 20 do
      local loss = F.cross_entropy(net(x), labels)
      opt:zero_grad()
      loss:backward()
      opt:step()
      first, last = first or loss:item(), loss:item()
    end
    assert.is_true(last < 0.3 * first)
  end)
end)
