-- Examples of attention and Transformers.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)

-- Attention of 3 sequences of 5 elements to themselves, with 2 heads
local attention = nn.MultiheadAttention(8, 2, {batch_first = true})
local x = lt.randn(3, 5, 8)
local y, weights = attention(x, x, x)
print(y.shape, weights.shape)  --> {3, 5, 8}	{3, 5, 5}
print(weights:sum(-1):sub(1):abs():max():item() < 1e-5)  --> true
attention:reset_parameters() -- of nn.MultiheadAttention

-- Without the weights, which is faster, and with a causal mask
local mask = nn.Transformer.generate_square_subsequent_mask(3)
print(mask[2])  --> tensor{0., 0., -inf}
mask = nn.Transformer.generate_square_subsequent_mask(5)
y = attention(x, x, x, {need_weights = false, attn_mask = mask, is_causal = true})

-- Padding: true for the keys to hide
local padding = lt.zeros(3, 5, {dtype = "bool"})
padding["1, 4:5"] = true
y, weights = attention(x, x, x, {key_padding_mask = padding})
print(weights[{1, 1, 5}]:item())  --> 0.0

-- An encoder, for example for classification
local layer = nn.TransformerEncoderLayer(8, 2, {dim_feedforward = 32, batch_first = true,
  norm_first = true, activation = "gelu"})
local encoder = nn.TransformerEncoder(layer, 3, {norm = nn.LayerNorm(8)})
print(encoder(x, {src_key_padding_mask = padding}).shape)  --> {3, 5, 8}

-- A decoder, which attends to the encoder's output
local decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 32, {batch_first = true}), 2)
print(decoder(lt.randn(3, 4, 8), encoder(x)).shape)  --> {3, 4, 8}

-- Both
local model = nn.Transformer{d_model = 8, nhead = 2, num_encoder_layers = 1,
  num_decoder_layers = 1, dim_feedforward = 32}
local src, tgt = lt.randn(5, 3, 8), lt.randn(4, 3, 8)
print(model(src, tgt, {tgt_mask = model:generate_square_subsequent_mask(4)}).shape)  --> {4, 3, 8}
model:reset_parameters() -- of nn.Transformer
