-- Layers and losses as classes: printing, options, random layers, errors, other devices.

local lt = require "lutra"
local support = require "nn_support"

local nn, F = lt.nn, lt.F
local fails, close = support.fails, support.close

-- Runs fn with the function that receives Lua's warnings replaced; returns the list of messages.
local function warnings(fn)
  local list, original = {}, warn
  _G.warn = function(message) list[#list + 1] = message end
  local ok, message = pcall(fn)
  _G.warn = original
  assert(ok, message)
  return list
end

-- Fails unless fn(...) raises an error at a line of this file with the given texts.
local function rejects(texts, fn, ...)
  local given = table.pack(...)
  fails(texts, function() local _ = fn(table.unpack(given, 1, given.n)) end)
end

describe("layers print their options", function()
  for layer, text in pairs {
    ["nn.ReLU6()"] = "ReLU6()",
    ["nn.Mish(true)"] = "Mish(inplace=true)",
    ["nn.ELU(0.5)"] = "ELU(alpha=0.5)",
    ["nn.Hardtanh{min_val = -2.5, max_val = 2.5}"] = "Hardtanh(min_val=-2.5, max_val=2.5)",
    ["nn.Hardtanh{min_value = -2.5}"] = "Hardtanh(min_val=-2.5, max_val=1)",
    ["nn.Threshold(0.1, 20, true)"] = "Threshold(threshold=0.1, value=20, inplace=true)",
    ["nn.GLU()"] = "GLU(dim=-1)",
    ["nn.PReLU(3)"] = "PReLU(num_parameters=3)",
    ["nn.Softplus()"] = "Softplus(beta=1, threshold=20)",
    ["nn.Softmax()"] = "Softmax()",
    ["nn.Softmax(1)"] = "Softmax(dim=1)",
    ["nn.Dropout2d(0.25)"] = "Dropout2d(p=0.25)",
    ["nn.AlphaDropout()"] = "AlphaDropout(p=0.5)",
    ["nn.InstanceNorm2d(3)"] =
      "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)",
    ["nn.BatchNorm1d(3, {bias = false})"] = "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, "
      .. "bias=false, track_running_stats=true)",
    ["nn.GroupNorm(2, 4)"] = "GroupNorm(2, 4, eps=1e-05, affine=true)",
    ["nn.RMSNorm({2, 3})"] = "RMSNorm({2, 3}, eps=nil, elementwise_affine=true)",
    ["nn.LocalResponseNorm(2)"] = "LocalResponseNorm(size=2, alpha=0.0001, beta=0.75, k=1)",
    ["nn.Bilinear(2, 3, 4)"] =
      "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=true)",
    ["nn.Unflatten(2, {2, 5})"] = "Unflatten(dim=2, unflattened_size={2, 5})",
    ["nn.Embedding(9, 3, {padding_idx = 1, max_norm = 2, norm_type = 1})"] =
      "Embedding(9, 3, padding_idx=1, max_norm=2, norm_type=1)",
    ['nn.EmbeddingBag(9, 3, {mode = "sum"})'] = "EmbeddingBag(9, 3, mode=sum)",
    ["nn.CosineSimilarity()"] = "CosineSimilarity()",
    ["nn.BCEWithLogitsLoss()"] = "BCEWithLogitsLoss()",
    ["nn.ParameterList{lt.ones(2, 3)}"] =
      "ParameterList(\n  (1): Parameter containing: [float32 of size 2x3]\n)",
    ["nn.ModuleDict{{'b', nn.ReLU()}, {'a', nn.Tanh()}}"] =
      "ModuleDict(\n  (b): ReLU()\n  (a): Tanh()\n)",
  } do
    it(layer, function()
      assert.equal(text, tostring(load("return " .. layer, layer, "t", {nn = nn, lt = lt})()))
    end)
  end
end)

describe("options of layers", function()
  it("inplace overwrites the input", function()
    for _, layer in ipairs {nn.ReLU(true), nn.ReLU6(true), nn.ELU(1, true), nn.SELU(true),
      nn.CELU{inplace = true}, nn.Mish(true), nn.Hardtanh{inplace = true}, nn.Hardswish(true),
      nn.Hardsigmoid(true), nn.Threshold(0, 5, true), nn.RReLU{inplace = true}, nn.SiLU(true),
      nn.LeakyReLU{inplace = true}, nn.Dropout{inplace = true}, nn.AlphaDropout{inplace = true},
    } do
      local x = lt.tensor {-2.0, -0.5, 0.5, 7}
      local y = layer(x)
      assert.equal(x:data_ptr(), y:data_ptr(), tostring(layer))
      assert.is_false(lt.equal(lt.tensor {-2.0, -0.5, 0.5, 7}, x), tostring(layer))
    end
  end)

  it("Identity accepts any arguments", function()
    local x = lt.ones(2)
    assert.equal(x, nn.Identity(54, {unused = 0.1})(x))
  end)

  it("older options of losses take precedence", function()
    assert.equal("sum", nn.MSELoss(false).reduction)
    assert.equal("none", nn.BCELoss{reduce = false}.reduction)
  end)

  it("weights of losses are buffers", function()
    local loss = nn.BCEWithLogitsLoss{weight = lt.ones(3), pos_weight = lt.ones(3)}
    assert.same({"weight", "pos_weight"}, support.list(1, loss:named_buffers()))
    assert.equal("float64", loss:double().pos_weight.dtype)
    assert.equal(3, nn.CrossEntropyLoss(lt.ones(3)).weight:numel())
  end)

  it("softmax without dim and different shapes of losses warn once", function()
    local list = warnings(function()
      assert.equal("{2, 3}", tostring(nn.Softmin()(lt.ones(2, 3)).shape))
      nn.Softmin()(lt.ones(2, 3))
      close(lt.tensor(1.0):double(), F.smooth_l1_loss(lt.ones(3, 1), lt.zeros(3), {beta = 0}), 1e-6)
      nn.MSELoss()(lt.ones(3, 1), lt.zeros(3))
    end)
    assert.is_true(#list <= 2)
    for _, text in ipairs(list) do
      assert.is_truthy(text:find("argument 'dim'", 1, true) or text:find("broadcast", 1, true))
    end
    assert.equal("{3, 3}", tostring(nn.L1Loss{reduction = "none"}(lt.ones(3, 1),
      lt.zeros(3)).shape))
  end)

  it("embeddings from a table share its memory", function()
    local rows = lt.tensor {{1.0, 2.0}, {3.0, 4.0}}
    local layer = nn.Embedding.from_pretrained(rows)
    assert.is_false(layer.weight.requires_grad)
    assert.equal(rows:data_ptr(), layer.weight:data_ptr())
    assert.is_true(nn.Embedding.from_pretrained{rows, freeze = false}.weight.requires_grad)
    assert.equal(2, nn.Embedding.from_pretrained(rows, {padding_idx = -1}).padding_idx)
    local bag = nn.EmbeddingBag.from_pretrained(rows, {mode = "sum"})
    assert.is_false(bag.weight.requires_grad)
    close(lt.tensor({{4, 6}}):double(), bag(lt.tensor {{1, 2}}), 1e-6)
  end)
end)

describe("random layers", function()
  before_each(function() lt.manual_seed(1) end)

  it("zero channels with probability p and keep the mean", function()
    for name, shape in pairs {Dropout1d = {40, 50, 3}, Dropout2d = {40, 50, 3, 2},
      Dropout3d = {40, 50, 3, 2, 2}} do
      local y = nn[name](0.25)(lt.ones(shape)):reshape(2000, -1)
      local zeros = y:eq(0)
      assert.is_true(lt.equal(zeros:any(2), zeros:all(2)), name)
      local count = zeros:all(2):sum():item()
      assert.is_true(count > 400 and count < 600, name)
      assert.is_true(math.abs(y:max():item() - 1 / 0.75) < 1e-6)
    end
  end)

  it("keep mean and variance: AlphaDropout", function()
    local x = lt.randn(100, 1000)
    for _, layer in ipairs {nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)} do
      local y = layer(x)
      assert.is_true(math.abs(y:mean():item()) < 0.03)
      assert.is_true(math.abs(y:std():item() - 1) < 0.03)
      assert.equal(x, layer:eval()(x))
    end
  end)

  it("draw slopes: RReLU", function()
    local y = nn.RReLU(0.2, 0.4)(-lt.ones(10000))
    assert.is_true(y:max():item() <= -0.2 and y:min():item() >= -0.4)
    assert.is_true(math.abs(y:mean():item() + 0.3) < 0.005)
    close(lt.tensor(-0.3):double(), nn.RReLU(0.2, 0.4):eval()(lt.tensor(-1.0)), 1e-6)
  end)
end)

describe("AdaptiveLogSoftmaxWithLoss", function()
  it("gives the log-probabilities of all classes, and the likeliest one", function()
    lt.manual_seed(2)
    local layer = nn.AdaptiveLogSoftmaxWithLoss(6, 9, {3, 5}, {div_value = 2})
    assert.equal("{5, 6}", tostring(layer.head.weight.shape))
    assert.equal("{1, 6}", tostring(layer.tail[2][1].weight.shape))
    local x, labels = lt.randn(9, 6), lt.arange(1, 9)
    local all = layer:log_prob(x)
    close(lt.ones(9):double(), all:exp():sum(2), 1e-5)
    local output, loss = layer(x, labels)
    close(all:gather(2, labels:unsqueeze(2)):squeeze(2):detach():double(), output, 1e-5)
    assert.is_true(math.abs(loss:item() + output:mean():item()) < 1e-6)
    assert.is_true(lt.equal(all:argmax(2), layer:predict(x)))
    rejects({"labels from 1 to 9", "from 1 to 10"}, layer, x, labels + labels:eq(9):to "int64")
    rejects({"expected shapes {N, 6} and {N}"}, layer, x, lt.tensor {1, 2})
    rejects({"'cutoffs'", "got 9"}, nn.AdaptiveLogSoftmaxWithLoss, 6, 9, {3, 9})
    rejects({"'cutoffs'", "got none"}, nn.AdaptiveLogSoftmaxWithLoss, 6, 9, {})
    rejects({"LinearCrossEntropyLoss", "'weight'"}, nn.LinearCrossEntropyLoss,
      {6, 9, weight = lt.ones(3)})
  end)
end)

describe("CrossMapLRN2d", function()
  it("normalizes by a window and, as in PyTorch, by the first channel", function()
    -- PyTorch 2.15.0: nn.CrossMapLRN2d(size, alpha=1.0)(torch.arange(1., 6.).reshape(1, 5, 1, 1))
    for size, expected in pairs {
      [3] = {0.479207328, 0.544545591, 0.496680078, 0.457726032, 0.655996557},
      [4] = {0.544331054, 0.647322362, 0.602638759, 0.560186925, 0.800657220},
    } do
      local y = nn.CrossMapLRN2d(size, {alpha = 1})(lt.arange(1.0, 5.0):reshape(1, 5, 1, 1))
      close({shape = {5}, data = expected}, y:reshape(5), 1e-6)
    end
  end)
end)

describe("messages of layers", function()
  it("name the layer and what is wrong", function()
    rejects({"Hardtanh", "max_val"}, nn.Hardtanh, 2, 1)
    rejects({"Dropout1d", "0 to 1"}, nn.Dropout1d, 1.5)
    rejects({"Softmax2d", "3 or 4"}, nn.Softmax2d(), lt.ones(2, 2))
    rejects({"InstanceNorm1d", "2 or 3"}, nn.InstanceNorm1d(2), lt.ones(2))
    rejects({"InstanceNorm1d", "3 channels"}, nn.InstanceNorm1d(3, {affine = true}),
      lt.ones(2, 2, 4))
    rejects({"GroupNorm", "multiple of num_groups"}, nn.GroupNorm, 3, 4)
    rejects({"GroupNorm", "4 channels"}, nn.GroupNorm(2, 4), lt.ones(2, 3))
    rejects({"RMSNorm", "at least one size"}, nn.RMSNorm, {})
    rejects({"rms_norm", "{4}"}, nn.RMSNorm(4), lt.ones(2, 3))
    rejects({"CrossMapLRN2d", "4 dimensions"}, nn.CrossMapLRN2d(2), lt.ones(2, 3))
    rejects({"bilinear", "input1"}, nn.Bilinear(3, 2, 1), lt.ones(4, 2), lt.ones(4, 2))
    rejects({"EmbeddingBag", "int64"}, nn.EmbeddingBag(3, 2), lt.ones(2, 2))
    rejects({"from_pretrained", "2 dimensions"}, nn.Embedding.from_pretrained, lt.ones(3))
    rejects({"MultiMarginLoss", "1 or 2"}, nn.MultiMarginLoss, 3)
    rejects({"CosineEmbeddingLoss", "a tensor"}, nn.CosineEmbeddingLoss(), lt.ones(2), lt.ones(2))
    rejects({"prelu", "weight"}, nn.PReLU(3), lt.ones(2, 4))
    rejects({"unflatten"}, nn.Unflatten(2, {2, 2}), lt.ones(2, 3))
  end)

  it("suggest a conversion of the input or of the module", function()
    local x = lt.ones({1, 2}, {dtype = "bfloat16"})
    rejects({"linear", "hint: input:float(), or net:bfloat16()"}, nn.Linear(2, 2), x)
    rejects("hint: input:float(), or net:half()", nn.Conv2d(1, 1, 1),
      lt.ones({1, 1, 2, 2}, {dtype = "float16"}))
  end)

  it("say that a layer is made before it is called", function()
    local x = lt.ones(2)
    for name, make in pairs {
      ReLU = function() nn.ReLU(x) end,
      Softmax = function() nn.Softmax(x) end,
      MSELoss = function() nn.MSELoss(x, x) end,
      CrossEntropyLoss = function() nn.CrossEntropyLoss(x, lt.tensor{1, 2}) end,
    } do
      fails({name .. ": expected options, got a tensor of shape {2}",
        ("hint: local layer = nn.%s(); layer(...)"):format(name)}, make)
    end
    assert.is_true(lt.is_tensor(nn.CrossEntropyLoss(x).weight))
  end)

  it("say what is given in place of a module, a method or parameters", function()
    local net = nn.Linear(2, 2)
    fails({"Sequential: expected a module for argument 2, got the class ReLU", "hint", "ReLU()"},
      function() nn.Sequential(net, nn.ReLU) end)
    fails({"ModuleList: cannot call the module", "nn.Sequential"},
      function() nn.ModuleList{net}(1) end)
    fails({"expected a module for argument 'self', got the class Other", "Parent.init(self, ...)"},
      function()
        local Other = nn.Linear:extend "Other"
        Other.init(Other, 2, 2)
      end)
    fails({"got the string \"a.pt\"", 'hint: m:load_state_dict(lt.load("a.pt"))'},
      function() net:load_state_dict "a.pt" end)
    fails({"clip_grad_norm_: expected tensors for argument 'parameters', got a Linear",
      "hint: net:parameters()"}, function() nn.utils.clip_grad_norm_(net, 1) end)
    fails({"SGD: expected tensors in argument 'params', got a Linear", "hint: net:parameters()"},
      function() lt.optim.SGD{net, lr = 1} end)
    fails({"SGD: expected tensors for argument 'params', got the method itself",
      "hint: net:parameters()"}, function() lt.optim.SGD(net.parameters, {lr = 1}) end)
    fails({"SGD: expected a group {params = ..., lr = ...}, got a table without params"},
      function() lt.optim.SGD({{params = net:parameters()}, {lr = 1}}) end)
    fails({'Parameter: expected a tensor of a float dtype for argument \'data\', got "int64"'},
      function() nn.Parameter(lt.tensor{1, 2}) end)
    assert.is_false(nn.Parameter(lt.tensor{1, 2}, false).requires_grad)
  end)

  it("show nil where a layer's init was not called", function()
    local Other = nn.Linear:extend "Other"
    function Other:init() self.name = "other" end
    rejects("Other: expected an input of shape {*, nil} (in_features = nil), got {1, 3}", Other(),
      lt.ones(1, 3))
  end)

  it("refuse strides with padding = \"same\"", function()
    fails({'Conv2d: expected stride 1 for padding = "same", got {1, 2}'},
      function() nn.Conv2d(1, 1, 3, {padding = "same", stride = {1, 2}}) end)
  end)

  it("name init where a class defines __init, and nn.ModuleList for layers in a table", function()
    local Net = nn.Module:extend "Net"
    function Net.__init() end
    rejects({"Net: expected a method init, got __init", "hint: function Net:init(...)"}, Net)
    local Python = nn.Module:extend "Python"
    function Python:__init__() self.layer = nn.ReLU() end
    rejects({"Python: expected a method init, got __init__", "hint: function Python:init(...)"},
      Python)
    local Other = nn.Module:extend "Other"
    function Other:init() self.layers = {nn.Linear(2, 2)} end
    fails({"at least one tensor", "nn.ModuleList"}, function()
      lt.optim.SGD(Other():parameters(), {lr = 0.1})
    end)
  end)
end)

describe("layers on meta", function()
  local image = lt.empty(2, 4, 6, 6, {device = "meta"})
  for _, layer in ipairs {"ReLU6", "SELU", "PReLU", "GLU", "Softmax2d", "Softplus", "Hardswish",
    "Mish", "LogSigmoid", "Dropout2d", "FeatureAlphaDropout"} do
    it(layer, function()
      local y = lt.with_device("meta", nn[layer])(image)
      assert.equal("meta", y.device)
      assert.equal(layer == "GLU" and "{2, 4, 6, 3}" or "{2, 4, 6, 6}", tostring(y.shape))
    end)
  end

  it("norms", function()
    lt.with_device("meta", function()
      for _, layer in ipairs {nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, {affine = true}),
        nn.BatchNorm2d(4), nn.RMSNorm(6), nn.LocalResponseNorm(2)} do
        assert.equal("{2, 4, 6, 6}", tostring(layer(image).shape), tostring(layer))
      end
    end)
  end)
end)
