-- nn.MultiheadAttention and Transformers: values and gradients of PyTorch, wrong input.

local lt = require "lutra"
local support = require "nn_support"
local recurrent = require "recurrent_support"
local wide = require "wide_support"

local nn = lt.nn
local fails, close, wave = support.fails, support.close, recurrent.wave
local golden = support.golden "transformers"

local function causal(n)
  return nn.Transformer.generate_square_subsequent_mask(n, {dtype = wide.dtype})
end

-- The options of a call: its masks and `more`. Integers stand for booleans.
local function call_options(case, more)
  local options = {}
  for name, mask in pairs(case.masks) do
    if mask == "causal" then
      options[name] = causal(3)
    else
      local t = support.tensor(mask)
      options[name] = t.dtype == "int64" and t:to "bool" or t
    end
  end
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

local function inputs_of(case)
  local list = {}
  for i, shape in ipairs(case.shapes) do list[i] = wave(shape, i - 1):requires_grad_() end
  return list
end

describe("MultiheadAttention against PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.attention) do
    it("case " .. number, function()
      local module = nn.MultiheadAttention(case.size, case.heads, case.options)
      recurrent.set_parameters(module)
      local inputs = inputs_of(case)
      local q, k, v = inputs[1], inputs[2] or inputs[1], inputs[3] or inputs[1]
      local out, weights = module(q, k, v, call_options(case, case.call))
      recurrent.check(case, module, inputs, {out, weights})
    end)
  end
end)

describe("Transformers against PyTorch " .. golden.version, function()
  local activations = {silu = lt.F.silu, module = nn.GELU()}

  local function build(case)
    local options = {dim_feedforward = 5, dropout = 0}
    for name, value in pairs(case.options) do options[name] = value end
    options.activation = activations[options.activation] or options.activation
    if case.name == "Transformer" then
      options.num_encoder_layers, options.num_decoder_layers = 2, 2
    end
    if case.name:find "Layer$" or case.name == "Transformer" then
      return nn[case.name](4, 2, options)
    end
    local norm = next(case.options) and nn.LayerNorm(4) or nil
    return nn[case.name](nn[case.name .. "Layer"](4, 2, options), 2, norm)
  end

  for number, case in ipairs(golden.transformers) do
    it(("%s, case %d"):format(case.name, number), function()
      local module = build(case)
      recurrent.set_parameters(module)
      local inputs = inputs_of(case)
      local arguments = table.move(inputs, 1, #inputs, 1, {})
      arguments[#arguments + 1] = call_options(case)
      recurrent.check(case, module, inputs, {module(table.unpack(arguments))})
    end)
  end
end)

describe("MultiheadAttention", function()
  it("has PyTorch's parameters", function()
    assert.same({"in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight",
      "out_proj.bias"},
      support.list(1, nn.MultiheadAttention(4, 2, {add_bias_kv = true}):named_parameters()))
    assert.same({"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"},
      support.list(1, nn.MultiheadAttention(4, 2, {kdim = 3, bias = false}):named_parameters()))
    local attention = nn.MultiheadAttention(4, 2)
    assert.equal("{12, 4}", tostring(attention.in_proj_weight.shape))
    assert.equal(0, attention.in_proj_bias:abs():sum():item())
    assert.is_true(attention.in_proj_weight:abs():max():item() <= math.sqrt(6 / 16))
  end)

  it("drops weights in training mode only", function()
    local attention = nn.MultiheadAttention(4, 2, {dropout = 1})
    local x = lt.randn(3, 2, 4)
    local _, weights = attention(x, x, x)
    assert.equal(0, weights:abs():sum():item())
    _, weights = attention:eval()(x, x, x)
    close(lt.ones(2, 3), weights:sum(3), 1e-6)
  end)

  it("runs on meta and in every float dtype", function()
    for _, dtype in ipairs{"float32", "float16", "bfloat16"} do
      local x = lt.ones(3, 2, 4, {dtype = dtype})
      local out, weights = nn.MultiheadAttention(4, 2, {dtype = dtype})(x, x, x)
      assert.equal(dtype, out.dtype)
      assert.equal(dtype, weights.dtype)
    end
    local x = lt.ones(3, 2, 4, {device = "meta"})
    assert.equal("{3, 2, 4}",
      tostring(nn.MultiheadAttention(4, 2, {device = "meta"})(x, x, x).shape))
  end)

  it("refuses wrong options and input", function()
    fails({"MultiheadAttention", "divisor of embed_dim, 4", "'num_heads'"},
      function() nn.MultiheadAttention(4, 3) end)
    fails({"MultiheadAttention", "'dropout'"}, function() nn.MultiheadAttention(4, 2, 2) end)
    local attention, x = nn.MultiheadAttention(4, 2), lt.ones(3, 2, 4)
    fails({"'query'", "2 or 3 dimensions"},
      function() attention(lt.ones(4), x, x) end)
    fails({"'key'", "batch size"}, function() attention(x, lt.ones(3, 5, 4), lt.ones(3, 5, 4)) end)
    fails({"'value'", "shape of key"}, function() attention(x, x, lt.ones(5, 2, 4)) end)
    fails({"'attn_mask'", "{3, 3}", "{3, 4}"},
      function() attention(x, x, x, {attn_mask = lt.ones(3, 4)}) end)
    fails({"'attn_mask'", '"int64"'},
      function() attention(x, x, x, {attn_mask = lt.ones(3, 3, {dtype = "int64"})}) end)
    fails({"'key_padding_mask'", "{2, 3}"},
      function() attention(x, x, x, {key_padding_mask = lt.ones(3)}) end)
    fails({"attn_mask with is_causal"}, function() attention(x, x, x, {is_causal = true}) end)
  end)
end)

describe("a Transformer", function()
  it("has causal masks", function()
    local mask = nn.Transformer.generate_square_subsequent_mask(2)
    assert.same({{0, -math.huge}, {0, 0}}, mask:totable())
    assert.equal("float16",
      nn.Transformer:generate_square_subsequent_mask(2, {dtype = "float16"}).dtype)
    fails("generate_square_subsequent_mask",
      function() nn.Transformer.generate_square_subsequent_mask(-1) end)
  end)

  it("has PyTorch's names of parameters", function()
    local model = nn.Transformer{d_model = 4, nhead = 2, dim_feedforward = 3,
      num_encoder_layers = 2, num_decoder_layers = 1}
    local state = model:state_dict{base = 0}
    for _, name in ipairs{"encoder.layers.1.self_attn.in_proj_weight", "encoder.norm.bias",
      "encoder.layers.0.linear2.weight", "decoder.layers.0.multihead_attn.out_proj.bias",
      "decoder.layers.0.norm3.weight", "decoder.norm.weight"} do
      assert.is_true(lt.is_tensor(state[name]), name)
    end
  end)

  it("copies its layer", function()
    local layer = nn.TransformerEncoderLayer(4, 2, 5)
    local encoder = nn.TransformerEncoder(layer, 2, {enable_nested_tensor = false})
    assert.equal(2, #encoder.layers)
    assert.not_equal(encoder.layers[1].linear1.weight, encoder.layers[2].linear1.weight)
    close(encoder.layers[1].linear1.weight, encoder.layers[2].linear1.weight:detach(), 0)
  end)

  it("recognizes causal masks", function()
    local encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5, 0), 1)
    local x = lt.randn(3, 2, 4)
    local mask = nn.Transformer.generate_square_subsequent_mask(3)
    local expected = encoder(x, {mask = mask, is_causal = false})
    close(expected, encoder(x, {mask = mask}), 1e-5)
    close(expected, encoder(x, {mask = mask:lt(0)}), 1e-5)
    close(expected, encoder(x, {mask = mask, is_causal = true}), 1e-5)
  end)

  it("accepts custom modules", function()
    local Twice = nn.Module:extend "Twice"
    function Twice.forward(_, x) return x * 2 end
    local model = nn.Transformer{d_model = 4, nhead = 2, custom_encoder = Twice(),
      custom_decoder = Twice()}
    assert.same({{2, 2, 2, 2}}, model(lt.ones(2, 4), lt.ones(1, 4)):totable())
  end)

  it("refuses wrong options and input", function()
    fails({"TransformerEncoderLayer", '"relu", "gelu" or a function', "'activation'"},
      function() nn.TransformerEncoderLayer(4, 2, {activation = "tanh"}) end)
    fails({"TransformerDecoderLayer", "'nhead'"}, function() nn.TransformerDecoderLayer(4, 0) end)
    fails({"TransformerEncoder", "a module", "'encoder_layer'"},
      function() nn.TransformerEncoder(3, 2) end)
    fails({"TransformerDecoder", "a module", "'norm'"}, function()
      nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 5), 1, 3)
    end)
    local model = nn.Transformer{d_model = 4, nhead = 2, num_encoder_layers = 1,
      num_decoder_layers = 1, dim_feedforward = 4}
    fails({"Transformer", "d_model", "'src'"},
      function() model(lt.ones(2, 1, 3), lt.ones(2, 1, 4)) end)
    fails({"Transformer", "batch size", "'tgt'"},
      function() model(lt.ones(2, 1, 4), lt.ones(2, 2, 4)) end)
  end)
end)
