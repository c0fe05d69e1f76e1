--- nn.TransformerEncoder, nn.TransformerDecoder and nn.Transformer (Vaswani et al. 2017): stacks of
-- the layers of lutra.nn.transformer_layers.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local containers = require "lutra.nn.containers"
local LayerNorm = require "lutra.nn.layer_norm"
local Module = require "lutra.nn.module"
local layers = require "lutra.nn.transformer_layers"

local transformer = {}

-- Registers `count` copies of a layer, and the module `norm` or nil.
local function stack(self, name, layer, count, norm)
  local title = self:type_name()
  args.expect(Module.is_module(layer), title, "a module", name, layer)
  args.expect(norm == nil or Module.is_module(norm), title, "a module", "norm", norm)
  local list = {}
  for i = 1, count do list[i] = layer:clone() end
  self.layers = containers.ModuleList(list)
  self.num_layers = count
  self.norm = norm
end

-- Returns -inf above the diagonal and 0 elsewhere, {size, size}.
local function causal_mask(size, device, dtype)
  return lt.full({size, size}, -math.huge, {device = device, dtype = dtype}):triu(1)
end

-- Returns `is_causal`, or, when it is nil, whether `mask` is the causal mask of its size.
local function detect_causal(mask, is_causal)
  if is_causal ~= nil or mask == nil then return is_causal == true end
  if mask.ndim ~= 2 or mask:size(1) ~= mask:size(2) or mask.is_meta then return false end
  local causal = causal_mask(mask:size(1), mask.device,
    mask:is_floating_point() and mask.dtype or nil)
  return lt.equal(mask, mask.dtype == "bool" and causal:lt(0) or causal:to(mask.dtype))
end

--- nn.TransformerEncoder: encoder layers one after another.
local TransformerEncoder = Module:extend "TransformerEncoder"
transformer.TransformerEncoder = TransformerEncoder

local parse_encoder = args.signature("TransformerEncoder", "any encoder_layer, "
  .. "int(>=1) num_layers, any? norm = nil, bool enable_nested_tensor = true, "
  .. "bool mask_check = true")

--- nn.TransformerEncoder(encoder_layer, num_layers, {norm, enable_nested_tensor = true, mask_check
-- = true}): `num_layers` copies of encoder_layer, which start with the same parameters, and the
-- module `norm` for the last output. enable_nested_tensor and mask_check have no effect. Raises an
-- error for a layer or norm that is no module.
function TransformerEncoder:init(...)
  local layer, count, norm, nested, mask_check = parse_encoder(...)
  stack(self, "encoder_layer", layer, count, norm)
  self.enable_nested_tensor, self.mask_check = nested, mask_check
end

local parse_encode = args.signature("TransformerEncoder", "Tensor src, Tensor? mask = nil, "
  .. "Tensor? src_key_padding_mask = nil, bool? is_causal = nil")

--- encoder(src, {mask, src_key_padding_mask, is_causal}): passes {S, N, d_model}, or the layout of
-- its layers, through all layers. is_causal states whether `mask` is causal; nil compares it with
-- the causal mask, which synchronizes with the device.
function TransformerEncoder:forward(...)
  local x, mask, padding, is_causal = parse_encode(...)
  is_causal = detect_causal(mask, is_causal)
  for _, layer in ipairs(self.layers) do
    x = layer(x, {src_mask = mask, src_key_padding_mask = padding, is_causal = is_causal})
  end
  return self.norm and self.norm(x) or x
end

--- nn.TransformerDecoder: decoder layers one after another.
local TransformerDecoder = Module:extend "TransformerDecoder"
transformer.TransformerDecoder = TransformerDecoder

local parse_decoder = args.signature("TransformerDecoder",
  "any decoder_layer, int(>=1) num_layers, any? norm = nil")

--- nn.TransformerDecoder(decoder_layer, num_layers, {norm}): `num_layers` copies of decoder_layer,
-- which start with the same parameters, and the module `norm` for the last output. Raises an error
-- for a layer or norm that is no module.
function TransformerDecoder:init(...)
  local layer, count, norm = parse_decoder(...)
  stack(self, "decoder_layer", layer, count, norm)
end

local DECODE <const> = "Tensor tgt, Tensor memory, Tensor? tgt_mask = nil, "
  .. "Tensor? memory_mask = nil, Tensor? tgt_key_padding_mask = nil, "
  .. "Tensor? memory_key_padding_mask = nil, bool? tgt_is_causal = nil, "
  .. "bool memory_is_causal = false"
local parse_decode = args.signature("TransformerDecoder", DECODE)

--- decoder(tgt, memory, {tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
-- tgt_is_causal, memory_is_causal = false}): passes tgt {T, N, d_model} through all layers, which
-- attend to memory {S, N, d_model}. tgt_is_causal as is_causal of nn.TransformerEncoder.
function TransformerDecoder:forward(...)
  local x, memory, mask, memory_mask, padding, memory_padding, is_causal, memory_is_causal =
    parse_decode(...)
  is_causal = detect_causal(mask, is_causal)
  for _, layer in ipairs(self.layers) do
    x = layer(x, memory, {tgt_mask = mask, memory_mask = memory_mask,
      tgt_key_padding_mask = padding, memory_key_padding_mask = memory_padding,
      tgt_is_causal = is_causal, memory_is_causal = memory_is_causal})
  end
  return self.norm and self.norm(x) or x
end

--- nn.Transformer: an encoder and a decoder.
local Transformer = Module:extend "Transformer"
transformer.Transformer = Transformer

local parse = args.signature("Transformer", "int(>=1) d_model = 512, int(>=1) nhead = 8, "
  .. "int(>=1) num_encoder_layers = 6, int(>=1) num_decoder_layers = 6, "
  .. "int(>=1) dim_feedforward = 2048, float dropout = 0.1, any? activation = nil, "
  .. "any? custom_encoder = nil, any? custom_decoder = nil, float layer_norm_eps = 1e-5, "
  .. "bool batch_first = false, bool norm_first = false, bool bias = true, device? device = nil, "
  .. "dtype? dtype = nil")

--- nn.Transformer{d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6,
-- dim_feedforward = 2048, dropout = 0.1, activation = "relu", custom_encoder, custom_decoder,
-- layer_norm_eps = 1e-5, batch_first = false, norm_first = false, bias = true, device, dtype}: an
-- encoder and a decoder of layers with these options (nn.TransformerEncoderLayer), each with a
-- final normalization, or the given modules. Weights start from xavier_uniform_.
function Transformer:init(...)
  local size, heads, encoders, decoders, inner, dropout, activation, encoder, decoder, eps,
    batch_first, norm_first, bias, device, dtype = parse(...)
  local options = {dim_feedforward = inner, dropout = dropout, activation = activation,
    layer_norm_eps = eps, batch_first = batch_first, norm_first = norm_first, bias = bias,
    device = device, dtype = dtype}
  local function norm()
    return LayerNorm(size, {eps = eps, bias = bias, device = device, dtype = dtype})
  end
  self.encoder = encoder or TransformerEncoder(
    layers.TransformerEncoderLayer(size, heads, options), encoders, norm())
  self.decoder = decoder or TransformerDecoder(
    layers.TransformerDecoderLayer(size, heads, options), decoders, norm())
  self.d_model, self.nhead, self.batch_first = size, heads, batch_first
  self:reset_parameters()
end

--- Draws new values for all parameters of two or more dimensions from xavier_uniform_.
function Transformer:reset_parameters()
  for p in self:parameters() do
    if p.ndim > 1 then init.xavier_uniform_(p) end
  end
end

local parse_forward = args.signature("Transformer", "Tensor src, Tensor tgt, "
  .. "Tensor? src_mask = nil, Tensor? tgt_mask = nil, Tensor? memory_mask = nil, "
  .. "Tensor? src_key_padding_mask = nil, Tensor? tgt_key_padding_mask = nil, "
  .. "Tensor? memory_key_padding_mask = nil, bool? src_is_causal = nil, "
  .. "bool? tgt_is_causal = nil, bool memory_is_causal = false")

--- model(src, tgt, {src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
-- memory_key_padding_mask, src_is_causal, tgt_is_causal, memory_is_causal = false}): maps src {S,
-- N, d_model} and tgt {T, N, d_model} to {T, N, d_model}; N is the first dimension with
-- batch_first, or is absent. Masks as for nn.MultiheadAttention. Raises an error for other shapes.
function Transformer:forward(...)
  local src, tgt, src_mask, tgt_mask, memory_mask, src_padding, tgt_padding, memory_padding,
    src_is_causal, tgt_is_causal, memory_is_causal = parse_forward(...)
  local batch = self.batch_first and 1 or 2
  for name, x in pairs{src = src, tgt = tgt} do
    if x.ndim ~= 2 and x.ndim ~= 3 or x:size(-1) ~= self.d_model then
      self:fail("expected 2 or 3 dimensions, the last of size %d (d_model), for argument '%s', got "
        .. "%s", self.d_model, name, tostring(x.shape))
    end
  end
  if src.ndim ~= tgt.ndim or src.ndim == 3 and src:size(batch) ~= tgt:size(batch) then
    self:fail("expected the batch size of src, %s, for argument 'tgt', got %s",
      tostring(src.shape), tostring(tgt.shape))
  end
  local memory = self.encoder(src,
    {mask = src_mask, src_key_padding_mask = src_padding, is_causal = src_is_causal})
  return self.decoder(tgt, memory, {tgt_mask = tgt_mask, memory_mask = memory_mask,
    tgt_key_padding_mask = tgt_padding, memory_key_padding_mask = memory_padding,
    tgt_is_causal = tgt_is_causal, memory_is_causal = memory_is_causal})
end

local parse_mask = args.signature("generate_square_subsequent_mask",
  "int(>=0) sz, device? device = nil, dtype? dtype = nil")

--- nn.Transformer.generate_square_subsequent_mask(sz, {device, dtype}): the causal mask {sz, sz}:
-- -inf above the diagonal, 0 elsewhere. It can also be called as a method.
function Transformer.generate_square_subsequent_mask(...)
  local first = ...
  local is_method = Module.is_module(first) or first == Transformer
  return causal_mask(parse_mask(select(is_method and 2 or 1, ...)))
end

return transformer
