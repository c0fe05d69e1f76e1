--- nn.TransformerEncoderLayer and nn.TransformerDecoderLayer (Vaswani et al. 2017).

local lt = require "lutra"
local args = require "lutra.internal.args"
local Dropout = require("lutra.nn.dropout").Dropout
local LayerNorm = require "lutra.nn.layer_norm"
local Linear = require "lutra.nn.linear"
local Module = require "lutra.nn.module"
local MultiheadAttention = require "lutra.nn.multihead_attention"

local layers = {}

-- Returns the function of an activation: "relu", "gelu", or any function or module.
local function activation_of(title, activation)
  if activation == nil then return lt.F.relu end
  if activation == "relu" or activation == "gelu" then return lt.F[activation] end
  args.expect(type(activation) ~= "string" and args.is_callable(activation), title,
    '"relu", "gelu" or a function', "activation", activation)
  return activation
end

local SIGNATURE <const> = "int(>=1) d_model, int(>=1) nhead, int(>=1) dim_feedforward = 2048, "
  .. "float dropout = 0.1, any? activation = nil, float layer_norm_eps = 1e-5, "
  .. "bool batch_first = false, bool norm_first = false, bool bias = true, device? device = nil, "
  .. "dtype? dtype = nil"

-- Initializes a layer with the given names of attentions and number of norms and dropouts.
local function build(self, attentions, count, parse, ...)
  local size, heads, inner, dropout, activation, eps, batch_first, norm_first, bias, device, dtype =
    parse(...)
  local options = {device = device, dtype = dtype, bias = bias}
  for _, name in ipairs(attentions) do
    self[name] = MultiheadAttention(size, heads, {dropout = dropout, bias = bias,
      batch_first = batch_first, device = device, dtype = dtype})
  end
  self.linear1 = Linear(size, inner, options)
  self.dropout = Dropout(dropout)
  self.linear2 = Linear(inner, size, options)
  self.norm_first = norm_first
  for i = 1, count do
    self["norm" .. i] = LayerNorm(size, {eps = eps, bias = bias, device = device, dtype = dtype})
  end
  for i = 1, count do self["dropout" .. i] = Dropout(dropout) end
  self.activation = activation_of(self:type_name(), activation)
end

-- Returns x + block(norm(x)) with norm_first, otherwise norm(x + block(x)).
local function residual(self, norm, x, block)
  if self.norm_first then return x + block(norm(x)) end
  return norm(x + block(x))
end

-- The blocks of a layer: attention of x to `memory`, or to x itself, and the feedforward network.
local function attend(attention, dropout, x, memory, options)
  local out = attention(x, memory or x, memory or x, options)
  return dropout(out)
end

local function feedforward(self, dropout, x)
  return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))
end

--- nn.TransformerEncoderLayer: self-attention and a feedforward network.
local TransformerEncoderLayer = Module:extend "TransformerEncoderLayer"
layers.TransformerEncoderLayer = TransformerEncoderLayer

local parse_encoder = args.signature("TransformerEncoderLayer", SIGNATURE)

--- nn.TransformerEncoderLayer(d_model, nhead, {dim_feedforward = 2048, dropout = 0.1, activation =
-- "relu", layer_norm_eps = 1e-5, batch_first = false, norm_first = false, bias = true, device,
-- dtype}): self-attention of nhead heads, then a network d_model - dim_feedforward - d_model, each
-- with dropout, added to its input and normalized; with norm_first, its input is normalized
-- instead. `activation` is "relu", "gelu" or a function of a tensor. Raises an error unless nhead
-- divides d_model.
function TransformerEncoderLayer:init(...) build(self, {"self_attn"}, 2, parse_encoder, ...) end

local parse_encode = args.signature("TransformerEncoderLayer", "Tensor src, "
  .. "Tensor? src_mask = nil, Tensor? src_key_padding_mask = nil, bool is_causal = false")

--- layer(src, {src_mask, src_key_padding_mask, is_causal = false}): maps {S, N, d_model}, or {N, S,
-- d_model} with batch_first, or {S, d_model}, to the same shape. Masks as for
-- nn.MultiheadAttention. Raises an error for other shapes.
function TransformerEncoderLayer:forward(...)
  local src, mask, padding, is_causal = parse_encode(...)
  local options = {attn_mask = mask, key_padding_mask = padding, is_causal = is_causal,
    need_weights = false}
  local x = residual(self, self.norm1, src, function(input)
    return attend(self.self_attn, self.dropout1, input, nil, options)
  end)
  return residual(self, self.norm2, x, function(input)
    return feedforward(self, self.dropout2, input)
  end)
end

--- nn.TransformerDecoderLayer: self-attention, attention to the encoder's output, and a feedforward
-- network.
local TransformerDecoderLayer = Module:extend "TransformerDecoderLayer"
layers.TransformerDecoderLayer = TransformerDecoderLayer

local parse_decoder = args.signature("TransformerDecoderLayer", SIGNATURE)

--- nn.TransformerDecoderLayer(d_model, nhead, {...}): as nn.TransformerEncoderLayer, with attention
-- to the encoder's output between self-attention and network.
function TransformerDecoderLayer:init(...)
  build(self, {"self_attn", "multihead_attn"}, 3, parse_decoder, ...)
end

local parse_decode = args.signature("TransformerDecoderLayer", "Tensor tgt, Tensor memory, "
  .. "Tensor? tgt_mask = nil, Tensor? memory_mask = nil, Tensor? tgt_key_padding_mask = nil, "
  .. "Tensor? memory_key_padding_mask = nil, bool tgt_is_causal = false, "
  .. "bool memory_is_causal = false")

--- layer(tgt, memory, {tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
-- tgt_is_causal = false, memory_is_causal = false}): maps tgt {T, N, d_model} to the same shape;
-- memory is {S, N, d_model}, the output of an encoder. batch_first and masks as for
-- nn.TransformerEncoderLayer. Raises an error for other shapes.
function TransformerDecoderLayer:forward(...)
  local tgt, memory, mask, memory_mask, padding, memory_padding, is_causal, memory_is_causal =
    parse_decode(...)
  local own = {attn_mask = mask, key_padding_mask = padding, is_causal = is_causal,
    need_weights = false}
  local other = {attn_mask = memory_mask, key_padding_mask = memory_padding,
    is_causal = memory_is_causal, need_weights = false}
  local x = residual(self, self.norm1, tgt, function(input)
    return attend(self.self_attn, self.dropout1, input, nil, own)
  end)
  x = residual(self, self.norm2, x, function(input)
    return attend(self.multihead_attn, self.dropout2, input, memory, other)
  end)
  return residual(self, self.norm3, x, function(input)
    return feedforward(self, self.dropout3, input)
  end)
end

return layers
