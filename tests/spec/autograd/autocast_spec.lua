-- Mixed precision: the dtypes of results under autocast are PyTorch's; casts, the cache, scopes.
local lt = require "lutra"
local golden = require "golden_support"
local nn, F = lt.nn, lt.F

local on = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local kind = on:match "^%a+"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

-- The inputs of tools/golden/autocast.py.
local function inputs(dtype, device)
  local function wave(...)
    local n = 1
    for _, size in ipairs{...} do n = n * size end
    return (lt.sin(lt.arange(1, n):to(dtype)) * 0.4 + 0.5):reshape(...):to{device, dtype = dtype}
  end
  local a = wave(4, 4):to(lt.float32)
  return {v = wave(4), w = wave(4), b = wave(4, 4), m = wave(2, 3),
    a = (a:mm(a:t()) + lt.eye(4, {device = device})):to(dtype), i1 = wave(1, 2, 6),
    i2 = wave(1, 2, 6, 6), i3 = wave(1, 2, 6, 6, 6), k1 = wave(2, 2, 3), k2 = wave(2, 2, 3, 3),
    k3 = wave(2, 2, 3, 3, 3), p = wave(2, 4, 4), q = wave(2, 4, 4), t = wave(2, 4),
    y = lt.tensor({2, 3}, {device = device}), s = lt.ones{2, 4, dtype = dtype, device = device},
    T = lt, F = F}
end

local function outcome(code, low, dtype, device)
  local f = assert(load("return " .. code, "=" .. code, "t", inputs(dtype, device)))
  local ok, result = pcall(lt.autocast, device:match "^%a+", {dtype = low}, f)
  return ok and result.dtype or "error: " .. tostring(result)
end

describe("autocast on the CPU", function()
  for _, case in ipairs(golden.cases "autocast") do
    it("gives PyTorch's dtypes for " .. case[1], function()
      local given = {{"bfloat16", "float32"}, {"bfloat16", "bfloat16"}, {"float16", "float32"},
        {"float16", "float16"}}
      for i, pair in ipairs(given) do
        if case[i + 1] ~= "error" then
          assert.equal(case[i + 1], outcome(case[1], pair[1], pair[2], "cpu"), pair[2])
        end
      end
    end)
  end
end)

-- PyTorch's lists for GPUs, ATen/autocast_mode.h of 2.15: the result's dtype for float32 inputs
-- and for float16 inputs.
describe("autocast on a GPU", function()
  local LOW, HIGH = {"float16", "float16"}, {"float32", "float32"}
  local AS_IS = {"float32", "float16"}
  local cases = {
    [LOW] = {"F.linear(t, a)", "T.matmul(a, b)", "T.mm(a, b)", "T.mv(a, v)", "T.bmm(p, q)",
      "T.addmm(a, a, b)", "T.addmv(v, a, w)", "T.addr(a, v, w)", "F.conv2d(i2, k2)",
      "F.conv_transpose2d(i2, k2)", "F.prelu(m, v[{{1, 1}}])",
      "F.scaled_dot_product_attention(p, q, q)", "T.einsum('ij,jk->ik', a, b)"},
    [HIGH] = {"T.exp(a)", "T.log(a)", "T.pow(a, 2)", "T.rsqrt(a)", "T.tan(a)", "T.acos(v)",
      "T.reciprocal(a)", "T.sum(a)", "T.prod(v)", "T.cumsum(v, 1)", "T.softmax(v, 1)",
      "F.log_softmax(v, 1)", "F.softplus(v)", "F.layer_norm(a, {4})", "F.group_norm(i2, 2)",
      "F.cosine_similarity(a, b)", "F.mse_loss(t, t)", "F.cross_entropy(t, y)", "F.nll_loss(t, y)",
      "F.smooth_l1_loss(t, t)", "T.norm(a)", "T.dist(a, b)", "T.logsumexp(v, 1)",
      "F.interpolate{i2, scale_factor = 2}"},
    [AS_IS] = {"T.add(a, b)", "T.mul(a, b)", "T.sqrt(a)", "F.relu(v)", "F.gelu(v)", "T.mean(a)",
      "F.max_pool2d(i2, 2)", "T.cat{a, b}", "F.dropout(a, 0.5, false)", "F.pad(i2, {1, 1})",
      "T.addcmul(a, a, b)", "T.atan2(a, b)"},
  }
  for dtypes, list in pairs(cases) do
    for _, code in ipairs(list) do
      it("gives PyTorch's dtypes for " .. code, function()
        if kind == "cpu" then pending "needs a GPU" end
        for i, dtype in ipairs{"float32", "float16"} do
          assert.equal(dtypes[i], outcome(code, "float16", dtype, on))
        end
      end)
    end
  end

  it("refuses binary_cross_entropy", function()
    if kind == "cpu" then pending "needs a GPU" end
    local p = lt.full({2}, 0.5, {device = on})
    assert.matches("binary_cross_entropy: cannot run under autocast",
      fails(lt.autocast, kind, {}, F.binary_cross_entropy, p, p), 1, true)
  end)
end)

describe("autocast", function()
  local low = kind == "cpu" and "bfloat16" or "float16"
  local x, w

  before_each(function()
    x, w = lt.randn(2, 3, {device = on}), lt.randn(3, 3, {device = on}):requires_grad_()
  end)

  it("is a scope, which nests and ends on errors", function()
    assert.is_false(lt.is_autocast_enabled(kind))
    local inner, outer = lt.autocast(kind, {}, function()
      local inside = lt.autocast(kind, {enabled = false}, function()
        return lt.mm(x, w).dtype
      end)
      return inside, lt.mm(x, w).dtype
    end)
    assert.equal("float32", inner)
    assert.equal(low, outer)
    pcall(lt.autocast, kind, {}, error, "inside")
    assert.is_false(lt.is_autocast_enabled(kind))
    assert.equal("float32", lt.mm(x, w).dtype)
  end)

  it("takes a dtype, which nested scopes inherit", function()
    local dtype = lt.autocast(kind, {dtype = "bfloat16"}, function()
      return lt.autocast(kind, {enabled = true}, lt.get_autocast_dtype, kind)
    end)
    assert.equal("bfloat16", dtype)
    assert.equal(low, lt.get_autocast_dtype(kind))
    assert.equal("bfloat16", lt.get_autocast_dtype "cpu")
    assert.equal("float16", lt.get_autocast_dtype "cuda")
  end)

  it("takes the dtype as its second argument too", function()
    local dtype = lt.autocast(kind, lt.bfloat16, function() return lt.mm(x, w).dtype end)
    assert.equal("bfloat16", dtype)
    assert.matches("autocast: expected a table of options, a dtype or a function",
      fails(lt.autocast, kind, 3, function() end), 1, true)
    assert.matches("autocast", fails(lt.autocast, kind, "int64", function() end), 1, true)
  end)

  it("can be called without options, and under lt.amp", function()
    assert.equal(lt.autocast, lt.amp.autocast)
    assert.equal(low, lt.autocast(kind, function() return lt.mm(x, w).dtype end))
    assert.is_true(lt.amp.is_autocast_available "cpu")
    assert.is_false(lt.amp.is_autocast_available "tpu")
  end)

  it("is differentiable: gradients have the dtype of the weights", function()
    local y = lt.autocast(kind, {}, lt.mm, x, w)
    y:float():sum():backward()
    assert.equal("float32", w.grad.dtype)
    local expected = x:to(low):float():sum(1)
    assert.is_true(lt.allclose(w.grad[{{}, 1}], expected, 1e-2, 1e-2))
  end)

  it("casts a weight once, and again after it has changed", function()
    lt.autocast(kind, {}, function()
      local a, b = lt.mm(x, w), lt.mm(x, w)
      assert.is_true(lt.equal(a, b))
      lt.no_grad(function() w:zero_() end)
      assert.equal(0, lt.mm(x, w):abs():sum():item())
      assert.is_true(lt.mm(x, w).requires_grad)
      lt.no_grad(function() assert.is_false(lt.mm(x, w).requires_grad) end)
      assert.is_true(lt.mm(x, w).requires_grad)
      lt.clear_autocast_cache()
    end)
    local y = lt.autocast(kind, {cache_enabled = false}, lt.mm, x, w)
    assert.equal(low, y.dtype)
  end)

  it("does not change float64, integers, in-place ops and out", function()
    lt.autocast("cpu", {}, function()
      local d = lt.ones(2, 2, {dtype = "float64", device = "cpu"})
      assert.equal("float64", lt.mm(d, d).dtype)
      local a = lt.ones(2, 2, 2, {device = "cpu"})
      assert.equal("bfloat16", a:baddbmm(a, a).dtype)
      assert.equal("float32", a:clone():baddbmm_(a, a).dtype)
      local out = lt.zeros(2, 2, 2, {device = "cpu"})
      assert.equal("float32", lt.bmm(a, a, {out = out}).dtype)
      local ints = lt.ones(2, 2, {dtype = "int64", device = "cpu"})
      assert.equal("int64", (ints * ints).dtype)
    end)
  end)

  it("has settings without a scope", function()
    lt.set_autocast_enabled("cpu", true)
    lt.set_autocast_dtype("cpu", "float16")
    local ones = lt.ones(2, 2, {device = "cpu"})
    local dtype = lt.mm(ones, ones).dtype
    lt.set_autocast_enabled("cpu", false)
    lt.set_autocast_dtype("cpu", "bfloat16")
    assert.equal("float16", dtype)
    assert.is_true(lt.is_autocast_cache_enabled())
    lt.set_autocast_cache_enabled(false)
    assert.is_false(lt.is_autocast_cache_enabled())
    lt.set_autocast_cache_enabled(true)
    assert.is_false(lt.is_autocast_enabled "cpu")
  end)

  it("belongs to the coroutine that opens the scope", function()
    local inside = coroutine.wrap(function()
      lt.autocast("cpu", {}, function() coroutine.yield() end)
    end)
    inside()
    assert.is_false(lt.is_autocast_enabled "cpu")
    inside()
  end)

  it("states what it expects", function()
    assert.matches("'device_type'", fails(lt.autocast, "tpu", {}, print), 1, true)
    assert.matches("'device_type'", fails(lt.autocast, {dtype = "bfloat16"}, print), 1, true)
    assert.matches('"bfloat16" or "float16"', fails(lt.autocast, "cpu", {dtype = "float64"}, print),
      1, true)
    assert.matches("expected a function for argument 'f'", fails(lt.autocast, "cpu", {}), 1, true)
  end)
end)

describe("training in mixed precision", function()
  local function train(dtype, scaler)
    lt.manual_seed(0)
    local net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)):to(on)
    local opt = lt.optim.Adam(net:parameters(), {lr = 0.05})
    local X = lt.tensor({{0., 0.}, {0., 1.}, {1., 0.}, {1., 1.}}, {device = on})
    local Y = lt.tensor({{0.}, {1.}, {1.}, {0.}}, {device = on})
    local loss
    for _ = 1, 150 do
      opt:zero_grad()
      loss = lt.autocast(kind, {dtype = dtype}, function()
        local out = net(X)
        assert.equal(dtype, out.dtype)
        return F.mse_loss(out, Y)
      end)
      if scaler then
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
      else
        loss:backward()
        opt:step()
      end
    end
    assert.equal("float32", net[1].weight.dtype)
    return loss:item()
  end

  it("learns in bfloat16", function() assert.is_true(train("bfloat16") < 0.02) end)
  it("learns in float16 with a GradScaler", function()
    assert.is_true(train("float16", lt.amp.GradScaler(kind)) < 0.02)
  end)
end)

-- PyTorch 2.15's dtypes of layers, float32 outside of autocast.
describe("layers under autocast", function()
  local function run(layer, x)
    local result = lt.autocast(kind, {dtype = "bfloat16"}, function() return (layer(x)) end)
    result:float():sum():backward()
    for p in layer:parameters() do assert.equal("float32", p.grad and p.grad.dtype or "float32") end
    return result.dtype
  end

  it("normalize in the dtype of their input", function()
    local net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)):to(on)
    assert.equal(kind == "cpu" and "bfloat16" or "float32", run(net, lt.randn(2, 4, {device = on})))
    local layer = nn.LayerNorm(4):to(on)
    lt.no_grad(function() layer.weight:mul_(1.25) end)
    local x = lt.randn(3, 4, {device = on}):to(lt.bfloat16)
    local expected = layer(x:float()):to(lt.bfloat16)
    assert.is_true(lt.equal(expected, layer(x)))
    local images = lt.randn(2, 3, 5, 5, {device = on})
    local cnn = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()):to(on)
    assert.equal("bfloat16", run(cnn, images))
  end)

  it("recur", function()
    local x = lt.randn(5, 2, 4, {device = on})
    assert.equal("bfloat16", run(nn.RNN(4, 3):to(on), x))
    assert.equal("bfloat16", run(nn.LSTM(4, 3, {num_layers = 2}):to(on), x))
    assert.equal(kind == "cpu" and "float32" or "bfloat16", run(nn.GRU(4, 3):to(on), x))
    assert.equal("bfloat16", run(nn.RNNCell(4, 3):to(on), x[1]))
  end)

  it("attend", function()
    local x = lt.randn(5, 2, 4, {device = on})
    local SelfAttention = nn.Module:extend "SelfAttention"
    function SelfAttention:init() self.inner = nn.MultiheadAttention(4, 2) end
    function SelfAttention:forward(t) return (self.inner(t, t, t)) end
    assert.equal("bfloat16", run(SelfAttention():to(on), x))
    assert.equal("float32", run(nn.TransformerEncoderLayer(4, 2, 8):to(on), x))
  end)
end)

describe("lt.autocast with its device type in the table", function()
  it("calls the function with its arguments", function()
    local net, x = nn.Linear(2, 2):to(on), lt.ones{1, 2, device = on}
    local options = {device_type = kind, dtype = "bfloat16"}
    assert.equal("bfloat16", lt.autocast(options, net, x).dtype)
    assert.same({device_type = kind, dtype = "bfloat16"}, options)
    assert.equal("bfloat16", lt.autocast({kind, dtype = "bfloat16"}, net, x).dtype)
    assert.equal("float32", lt.autocast({device_type = kind, enabled = false}, net, x).dtype)
  end)
end)
