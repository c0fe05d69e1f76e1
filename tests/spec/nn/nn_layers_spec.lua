-- Layers and losses: values of PyTorch, gradients, starting values, wrong input.

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local nn, F = lt.nn, lt.F
local fails, close = support.fails, support.close
local golden = support.golden "layers"

-- The probe by which tools/golden/nn.py weighs the output before backward: cos(0), cos(1)...
local function probe(out)
  local n = math.max(out:numel(), 1)
  return lt.arange(0, n - 1, {dtype = wide.dtype}):cos():reshape(out.shape)
end

-- F's function `op` called with golden inputs and options, as PyTorch calls it.
local function call_function(op, inputs, options)
  if op == "layer_norm" then
    return F.layer_norm(inputs[1], options.normalized_shape, inputs[2], inputs[3], options.eps)
  elseif op == "softmax" or op == "log_softmax" then
    return F[op](inputs[1], options.dim)
  elseif next(options) then
    local list = table.move(inputs, 1, #inputs, 1, {})
    list[#list + 1] = options
    return F[op](table.unpack(list))
  end
  return F[op](table.unpack(inputs))
end

-- A module that computes `op`, with the golden parameters in it, and its inputs.
local makers = {
  linear = function(inputs)
    local out, n = inputs[2]:size(1), inputs[2]:size(2)
    return nn.Linear(n, out, {bias = inputs[3] ~= nil}), {"weight", "bias"}
  end,
  layer_norm = function(inputs, options)
    return nn.LayerNorm(options.normalized_shape,
      {eps = options.eps, elementwise_affine = inputs[2] ~= nil}), {"weight", "bias"}
  end,
  embedding = function(inputs, options)
    return nn.Embedding(inputs[2]:size(1), inputs[2]:size(2), options), {"weight"}
  end,
  relu = function() return nn.ReLU(), {} end,
  tanh = function() return nn.Tanh(), {} end,
  sigmoid = function() return nn.Sigmoid(), {} end,
  silu = function() return nn.SiLU(), {} end,
  gelu = function(_, options) return nn.GELU(options), {} end,
  softmax = function(_, options) return nn.Softmax(options), {} end,
  log_softmax = function(_, options) return nn.LogSoftmax(options), {} end,
}

local function call_module(op, inputs, options)
  local layer, parameters = makers[op](inputs, options)
  layer:to(wide.dtype)
  for i, name in ipairs(parameters) do
    if inputs[i + 1] then layer[name]:set_data(inputs[i + 1]) end
  end
  local out = layer(inputs[1])
  return out, function(i) return i > 1 and layer[parameters[i - 1]].grad or inputs[i].grad end
end

local function is_float(x) return x.dtype == wide.dtype end

describe("layers against PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.layers) do
    local title = ("%s, case %d"):format(case.op, number)

    it("as a function: " .. title, function()
      local inputs = {}
      for i, x in ipairs(case.inputs) do
        inputs[i] = support.tensor(x)
        if is_float(inputs[i]) then inputs[i]:requires_grad_() end
      end
      local out = call_function(case.op, inputs, case.options)
      close(case.out, out, 1e-12, "output")
      out:backward(probe(out))
      local g = 0
      for _, x in ipairs(inputs) do
        if is_float(x) then
          g = g + 1
          close(case.grads[g], x.grad, 1e-11, "gradient " .. g)
        end
      end
      assert.equal(#case.grads, g)
    end)

    it("as a module: " .. title, function()
      local inputs = {}
      for i, x in ipairs(case.inputs) do inputs[i] = support.tensor(x) end
      if is_float(inputs[1]) then inputs[1]:requires_grad_() end
      local out, grad_of = call_module(case.op, inputs, case.options)
      close(case.out, out, 1e-12, "output")
      out:backward(probe(out))
      local g = 0
      for i, x in ipairs(inputs) do
        if is_float(x) then
          g = g + 1
          close(case.grads[g], grad_of(i), 1e-11, "gradient " .. g)
        end
      end
    end)
  end
end)

describe("losses against PyTorch " .. golden.version, function()
  local classes = {cross_entropy = nn.CrossEntropyLoss, nll_loss = nn.NLLLoss,
    mse_loss = nn.MSELoss, l1_loss = nn.L1Loss, huber_loss = nn.HuberLoss}

  for number, case in ipairs(golden.losses) do
    it(("%s, case %d"):format(case.op, number), function()
      local options = {}
      for key, value in pairs(case.options) do options[key] = value end
      if options.weight then options.weight = support.tensor(options.weight) end
      for _, compute in ipairs {
        function(x, y) return F[case.op](x, y, options) end,
        function(x, y) return classes[case.op](options)(x, y) end,
      } do
        local x = support.tensor(case.input, wide.dtype):requires_grad_()
        local out = compute(x, support.tensor(case.target))
        close(case.out, out, 1e-12, "loss")
        out:backward(probe(out))
        close(case.grad, x.grad, 1e-11, "gradient")
      end
    end)
  end

  it("refuse wrong options and input", function()
    fails({"CrossEntropyLoss", "reduction", "average"},
      function() local _ = nn.CrossEntropyLoss {reduction = "average"} end)
    fails("label_smoothing", function() local _ = nn.CrossEntropyLoss {label_smoothing = 2} end)
    fails({"mse_loss", "{2}", "{3}"}, function() local _ = nn.MSELoss()(lt.ones(2), lt.ones(3)) end)
    fails("MSELoss", function() local _ = nn.MSELoss()(lt.ones(2), 3) end)
    fails({"huber_loss", "above 0"},
      function() local _ = nn.HuberLoss{delta = 0}(lt.ones(2), lt.ones(2)) end)
  end)

  it("count labels from 1 and say so", function()
    local x = lt.zeros(2, 3)
    assert.is_false(pcall(F.cross_entropy, x, lt.tensor {0, 1}))
    assert.is_false(pcall(F.cross_entropy, x, lt.tensor {4, 1}))
    assert.is_true(math.abs(F.cross_entropy(x, lt.tensor {3, 1}):item() - math.log(3)) < 1e-6)
  end)
end)

describe("starting values", function()
  -- Mean and deviation of a tensor of many elements.
  local function moments(t) return t:mean():item(), t:std():item() end
  local function near(expected, value, tolerance)
    assert.is_true(math.abs(expected - value) <= tolerance,
      ("%g is not %g"):format(value, expected))
  end

  before_each(function() lt.manual_seed(3) end)

  it("of Linear are uniform within 1 / sqrt(in)", function()
    local layer = nn.Linear(400, 300)
    local bound = 1 / 20
    assert.is_true(layer.weight:abs():max():item() <= bound)
    assert.is_true(layer.weight:abs():max():item() > 0.99 * bound)
    assert.is_true(layer.bias:abs():max():item() <= bound)
    local mean, std = moments(layer.weight)
    near(0, mean, 1e-3)
    near(bound / math.sqrt(3), std, 3e-4)
    near(bound / math.sqrt(3), select(2, moments(layer.bias)), 3e-3)
    assert.is_true(layer.weight.requires_grad and layer.weight.is_leaf)
  end)

  it("of LayerNorm are one and zero, of Embedding normal with a row of zeros", function()
    local norm = nn.LayerNorm(5)
    assert.is_true(lt.equal(lt.ones(5), norm.weight:detach()))
    assert.is_true(lt.equal(lt.zeros(5), norm.bias:detach()))
    local table_ = nn.Embedding(1000, 50, {padding_idx = 7})
    local mean, std = moments(table_.weight)
    near(0, mean, 0.02)
    near(1, std, 0.02)
    assert.equal(0, table_.weight[7]:abs():sum():item())
    assert.is_true(table_.weight[8]:abs():sum():item() > 0)
  end)

  it("follow nn.init's formulas", function()
    local t = lt.empty(300, 200)
    near(math.sqrt(2 / 500), select(2, moments(nn.init.xavier_normal_(t))), 1e-3)
    near(2 * math.sqrt(2 / 500), select(2, moments(nn.init.xavier_uniform_(t, 2))), 2e-3)
    near(math.sqrt(2 / 200), select(2, moments(nn.init.kaiming_normal_(t))), 1e-3)
    near(math.sqrt(2 / 300), select(2, moments(nn.init.kaiming_uniform_(t, {mode = "fan_out"}))),
      1e-3)
    local conv = lt.empty(40, 30, 5, 5)
    near(math.sqrt(1 / 750),
      select(2, moments(nn.init.kaiming_normal_(conv, {nonlinearity = "linear"}))), 1e-3)
    assert.is_true(lt.equal(lt.eye(3, 4), nn.init.eye_(lt.empty(3, 4))))
    assert.equal(6, nn.init.constant_(lt.empty(3), 2):sum():item())
    local mean, std = moments(nn.init.normal_(t, 3, 0.5))
    near(3, mean, 0.02)
    near(0.5, std, 0.02)
    nn.init.trunc_normal_(t, {mean = 1, std = 2, a = 0, b = 3})
    assert.is_true(t:min():item() >= 0 and t:max():item() <= 3)
    near(1.5 - 0.4, t:mean():item(), 0.4)
    near(5 / 3, nn.init.calculate_gain "tanh", 1e-12)
    near(math.sqrt(2 / 1.04), nn.init.calculate_gain("leaky_relu", 0.2), 1e-12)
  end)

  it("draw from a part of a normal distribution that is narrow", function()
    local x = nn.init.trunc_normal_(lt.empty(20000), {mean = 0, std = 1, a = 0, b = 0.5})
    assert.is_true(x:min():item() >= 0 and x:max():item() <= 0.5)
    near(0.24484, x:mean():item(), 0.005) -- (phi(0) - phi(0.5)) / (Phi(0.5) - Phi(0))
    nn.init.trunc_normal_(x, {mean = 0.1, std = 2 ^ 31, a = 0.1, b = 0.5})
    assert.is_true(x:min():item() >= lt.tensor(0.1):item() and x:max():item() <= 0.5)
    near(0.3, x:mean():item(), 0.005)
    -- no number of the dtype lies between 2049 and 2049.5
    x = nn.init.trunc_normal_(lt.empty{3, dtype = "float16"}, {mean = 2049, a = 2049, b = 2049.5})
    assert.is_true(x:ge(2048):logical_and(x:le(2050)):all():item())
  end)

  it("leave a tensor as it was when drawing fails on the way", function()
    local t, where = lt.ones(1000), lt.where
    lt.where = function() error "no memory" end
    local ok = pcall(nn.init.trunc_normal_, t, {a = 2, b = 3.5})
    lt.where = where
    assert.is_false(ok)
    assert.equal(1000, t:sum():item())
  end)

  it("refuse invalid settings", function()
    local t = lt.empty(3, 4)
    fails("2 dimensions", function() nn.init.xavier_uniform_(lt.empty(3)) end)
    fails("calculate_gain", function() nn.init.calculate_gain "softplus" end)
    fails("fan_in", function() nn.init.kaiming_normal_(t, {mode = "fan"}) end)
  end)

  it("repeat with the seed and with a generator", function()
    local function draw(generator)
      return nn.init.kaiming_uniform_(lt.empty(4, 4), {generator = generator})
    end
    lt.manual_seed(5)
    local a = draw()
    lt.manual_seed(5)
    assert.is_true(lt.equal(a, draw()))
    local g = lt.Generator()
    g:manual_seed(9)
    local b = draw(g)
    g:manual_seed(9)
    assert.is_true(lt.equal(b, draw(g)))
    assert.is_false(lt.equal(a, b))
  end)

  it("work on parameters without touching autograd", function()
    local p = nn.Parameter(lt.empty(2, 2))
    assert.equal(p, nn.init.ones_(p))
    assert.is_true(p.is_leaf and p.requires_grad)
  end)
end)

describe("Dropout", function()
  it("overwrite their input where inplace asks for it", function()
    for _, layer in ipairs {nn.ReLU(true), nn.SiLU{inplace = true}, nn.LeakyReLU(0.5, true),
      nn.Dropout(0.5, {inplace = true})} do
      local outer = lt.tensor({-1, 2, 3, 0.5}, {requires_grad = true})
      local x = outer * 1
      local y = layer(x)
      assert.equal(x:data_ptr(), y:data_ptr(), tostring(layer))
      assert.is_false(lt.equal(lt.tensor{-1, 2, 3, 0.5}, x), tostring(layer))
      assert.truthy(tostring(layer):find("inplace=true", 1, true))
      y:sum():backward()
      assert.is_not_nil(outer.grad)
      fails("in place", function() layer(outer) end)
    end
    local outer = lt.tensor({-1.0, 2, 3}, {requires_grad = true})
    nn.SiLU(true)(outer * 1):sum():backward()
    local grad = lt.autograd.grad(lt.silu(outer):sum(), outer)
    assert.is_true(lt.equal(grad, outer.grad))
    assert.equal("SiLU()", tostring(nn.SiLU()))
    fails("inplace", function() nn.ReLU "yes" end)
  end)

  it("zeroes with probability p and keeps the mean", function()
    lt.manual_seed(1)
    local layer, x = nn.Dropout(0.25), lt.ones(100, 100)
    local y = layer(x)
    local zeros = y:eq(0):sum():item()
    assert.is_true(zeros > 2300 and zeros < 2700)
    assert.is_true(lt.equal(y:ne(0):to "float32" * (1 / 0.75), y))
    layer:eval()
    assert.equal(x, layer(x))
    assert.equal(x, nn.Dropout(0)(x))
    assert.equal(0, nn.Dropout(1)(x):sum():item())
  end)

  it("drops in backward what it dropped in forward", function()
    local x = lt.ones(50, {requires_grad = true})
    local y = nn.Dropout(0.5)(x)
    y:sum():backward()
    assert.is_true(lt.equal(y:detach(), x.grad))
  end)
end)

describe("shapes and wrong input", function()
  it("Flatten joins all but the batch", function()
    assert.equal("{2, 12}", tostring(nn.Flatten()(lt.ones(2, 3, 4)).shape))
    assert.equal("{2, 3, 4}", tostring(nn.Flatten(3)(lt.ones(2, 3, 4)).shape))
    assert.equal("{24}", tostring(nn.Flatten {start_dim = 1}(lt.ones(2, 3, 4)).shape))
    assert.equal("{6, 4}", tostring(nn.Flatten(1, 2)(lt.ones(2, 3, 4)).shape))
    fails("from 1", function() local _ = nn.Flatten(0) end)
    fails({"Flatten", "{5}"}, function() local _ = nn.Flatten()(lt.ones(5)) end)
  end)

  it("is an error with the layer's name and shapes", function()
    fails({"LayerNorm", "{2, 3}", "{*, 4}"},
      function() local _ = nn.LayerNorm(4)(lt.ones(2, 3)) end)
    fails({"LayerNorm", "{4}", "{*, 3, 4}"},
      function() local _ = nn.LayerNorm {3, 4}(lt.ones(4)) end)
    fails({"Embedding", "float32", "int64"},
      function() local _ = nn.Embedding(3, 2)(lt.ones(4)) end)
    fails({"ReLU", "a tensor"}, function() local _ = nn.ReLU()({1, 2}) end)
    fails("LayerNorm", function() local _ = nn.LayerNorm({}) end)
  end)

  it("ids outside the table are an error that counts from 1", function()
    local layer = nn.Embedding(3, 2)
    fails("0", function() local _ = layer(lt.tensor {1, 0}) end)
    fails("4", function() local _ = layer(lt.tensor {1, 4}) end)
    assert.equal("{2, 2, 2}", tostring(layer(lt.tensor {{1, 3}, {2, 2}}).shape))
  end)

  it("infers shapes on meta", function()
    local net = lt.with_device("meta", function()
      return nn.Sequential(nn.Embedding(10, 6), nn.LayerNorm(6), nn.Linear(6, 4), nn.GELU(),
        nn.Dropout(0.1), nn.Flatten(), nn.Linear(12, 5))
    end)
    local out = net(lt.empty(7, 3, {dtype = "int64", device = "meta"}))
    assert.equal("{7, 5}", tostring(out.shape))
    assert.equal("meta", out.device)
    local loss = F.cross_entropy(out, lt.empty(7, {dtype = "int64", device = "meta"}))
    assert.equal("{}", tostring(loss.shape))
  end)
end)

describe("F", function()
  it("normalizes a batch of any number of elements per channel like the written-out formula",
    function()
      for _, size in ipairs{{5, 90, 3}, {7, 3, 31}, {4, 6, 32}, {200, 130}, {3, 2, 2, 5}} do
        local x = (lt.randn(size) * 3 + 1):to(wide.dtype):requires_grad_()
        local g, w, b = lt.randn(size):to(wide.dtype), lt.rand(size[2]), lt.randn(size[2])
        w, b = w:to(wide.dtype):requires_grad_(), b:to(wide.dtype):requires_grad_()
        local dims, each = {1, 3, 4}, {1, size[2], 1, 1}
        local full = x:reshape(size[1], size[2], size[3] or 1, size[4] or 1)
        local centered = full - full:mean(dims, true)
        local expected = (centered / (centered:square():mean(dims, true) + 1e-5):sqrt()
          * w:reshape(each) + b:reshape(each)):reshape(size)
        local actual = F.batch_norm(x, nil, nil, w, b, true)
        assert.is_true(lt.allclose(actual, expected, 1e-4, 1e-5))
        local by_formula = lt.autograd.grad(expected, {x, w, b}, {g})
        for i, gradient in ipairs(lt.autograd.grad(actual, {x, w, b}, {g})) do
          assert.is_true(lt.allclose(gradient, by_formula[i], 1e-3, 1e-4))
        end
      end
    end)

  it("normalizes float16 and bfloat16 by given statistics as float32, rounded", function()
    for _, size in ipairs{{3, 2, 1, 1}, {2, 3, 5, 6}, {2, 3, 4, 8}, {3, 2, 90, 70}} do
      for _, dtype in ipairs{"float16", "bfloat16"} do
        local x = (lt.randn(size) * 3 + 1):to(dtype)
        x[{1, 1, 1, 1}] = 0 / 0
        local mean, var = lt.randn(size[2]):to(dtype), lt.rand(size[2]):to(dtype)
        local w, b = lt.rand(size[2]):to(dtype), lt.randn(size[2]):to(dtype)
        local function norm(input, t)
          return F.batch_norm(input, mean:to(t), var:to(t), w:to(t), b:to(t))
        end
        local expected = norm(x:float(), "float32"):to(dtype)
        assert.is_true(lt.allclose(norm(x, dtype), expected, 0, 0, true))
        local steps = x:transpose(3, 4)
        assert.is_true(lt.allclose(norm(steps, dtype), expected:transpose(3, 4), 0, 0, true))
      end
    end
  end)

  it("normalizes and compares directions", function()
    local x = lt.tensor {{3.0, 4.0}, {0.0, 0.0}}
    close(lt.tensor({{0.6, 0.8}, {0.0, 0.0}}, {dtype = wide.dtype}), F.normalize(x), 1e-6)
    local c = F.cosine_similarity(lt.tensor {{1.0, 0.0}, {2.0, 2.0}},
      lt.tensor {{0.0, 5.0}, {1.0, 1.0}})
    close(lt.tensor({0, 1}, {dtype = wide.dtype}), c, 1e-6)
  end)

  it("attends causally like the written-out formula", function()
    lt.manual_seed(4)
    local q, k, v = lt.randn(2, 3, 5, 4), lt.randn(2, 3, 5, 4), lt.randn(2, 3, 5, 4)
    local scores = q:matmul(k:transpose(3, 4)) / 2
    local hidden = lt.ones(5, 5):triu(1):to "bool"
    local y = F.softmax(scores:masked_fill(hidden, -math.huge), -1):matmul(v)
    close(y:to(wide.dtype), F.scaled_dot_product_attention(q, k, v, {is_causal = true}), 1e-5)
  end)

  it("gives zeros to a query that may look at no key, and its gradients are zeros", function()
    local inf, nan = math.huge, 0 / 0
    local visible = lt.tensor{{true, false, true}, {false, false, false}}
    local added = lt.zeros(2, 3):masked_fill(visible:logical_not(), -inf)
    local alone = {lt.tensor{{1.0, 2.0}}, lt.tensor{{1.0, 0.0}, {1.0, 1.0}},
      lt.tensor{{1.0, 2.0}, {5.0, 6.0}}}
    for _, t in ipairs(alone) do t:requires_grad_() end
    local expected = F.scaled_dot_product_attention(table.unpack(alone))
    expected:pow(2):sum():backward()
    for i, mask in ipairs{visible, added, visible:unsqueeze(1):expand(2, 2, 3)} do
      -- The second query is NaN where the mask is of booleans, which replace its scores.
      local q = lt.tensor{{1.0, 2.0}, {i == 2 and 3 or nan, 4.0}}:requires_grad_()
      local k = lt.tensor{{1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}}
      local v = lt.tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}:requires_grad_()
      local y = F.scaled_dot_product_attention(q, k, v, mask)
      if y.ndim == 3 then y = y[1] end
      close(lt.cat{expected, lt.zeros(1, 2)}:detach():to(wide.dtype), y:detach(), 1e-6)
      y:pow(2):sum():backward()
      close(lt.cat{alone[1].grad, lt.zeros(1, 2)}:to(wide.dtype), q.grad, 1e-5)
      local gv = alone[3].grad
      close(lt.stack{gv[1], lt.zeros(2), gv[2]}:to(wide.dtype), v.grad, 1e-5)
    end
  end)
end)

describe("clip_grad_norm_ against PyTorch " .. golden.version, function()
  for number, case in ipairs(support.golden "optimizers".clipping) do
    it("case " .. number, function()
      local ps = {}
      for i, g in ipairs(case.before) do
        local grad = support.tensor(g, wide.dtype)
        ps[i] = nn.Parameter(lt.zeros_like(grad))
        ps[i].grad = grad
      end
      local norm = nn.utils.clip_grad_norm_(ps, case.max_norm, case.norm_type)
      close(case.norm, norm, 1e-12)
      for i, g in ipairs(case.after) do close(g, ps[i].grad, 1e-12) end
    end)
  end

  it("refuses what is not a tensor", function()
    fails("expected a tensor for argument 'parameters[2]', got 5", function()
      nn.utils.clip_grad_norm_({lt.ones(2), 5}, 1)
    end)
    fails("expected a tensor for argument 'parameters[1]'",
      function() nn.utils.clip_grad_value_({{}}, 1) end)
    local endless, read = setmetatable({}, {}), 0
    getmetatable(endless).__index = function()
      read = read + 1
      return read < 100 and read or nil
    end
    fails("expected a tensor for argument 'parameters[1]'",
      function() nn.utils.clip_grad_norm_(endless, 1) end)
    assert.equal(1, read)
  end)

  it("cuts values", function()
    local p = nn.Parameter(lt.zeros(3))
    p.grad = lt.tensor {-5.0, 0.5, 5.0}
    nn.utils.clip_grad_value_({p}, 1)
    close(lt.tensor({-1, 0.5, 1}, {dtype = wide.dtype}), p.grad, 0)
  end)
end)
