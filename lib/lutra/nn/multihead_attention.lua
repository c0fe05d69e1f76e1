--- nn.MultiheadAttention: attention of several heads with projections (Vaswani et al. 2017).

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Linear = require "lutra.nn.linear"
local Module = require "lutra.nn.module"

local MultiheadAttention = Module:extend "MultiheadAttention"

local parse = args.signature("MultiheadAttention",
  "int(>=1) embed_dim, int(>=1) num_heads, float dropout = 0, bool bias = true, "
  .. "bool add_bias_kv = false, bool add_zero_attn = false, int(>=1)? kdim = nil, "
  .. "int(>=1)? vdim = nil, bool batch_first = false, device? device = nil, dtype? dtype = nil")

--- nn.MultiheadAttention(embed_dim, num_heads, {dropout = 0, bias = true, add_bias_kv = false,
-- add_zero_attn = false, kdim, vdim, batch_first = false, device, dtype}): softmax(Q K' / sqrt(d))
-- V for each of the heads, d = embed_dim / num_heads, between the projections in_proj_weight {3 *
-- embed_dim, embed_dim} and out_proj. With a kdim or vdim other than embed_dim, the input
-- projections are q_proj_weight, k_proj_weight {embed_dim, kdim} and v_proj_weight {embed_dim,
-- vdim}. `dropout` zeroes attention weights in training mode; add_bias_kv appends a learned key and
-- value, bias_k and bias_v, add_zero_attn one of zeros. Raises an error unless num_heads divides
-- embed_dim.
function MultiheadAttention:init(...)
  local size, heads, dropout, bias, add_bias, add_zero, kdim, vdim, batch_first, device, dtype =
    parse(...)
  args.check(size % heads == 0, "MultiheadAttention: expected a divisor of embed_dim, %d, for "
    .. "argument 'num_heads', got %d", size, heads)
  args.check(dropout >= 0 and dropout <= 1, "MultiheadAttention: expected a probability from 0 to "
    .. "1 for argument 'dropout', got %g", dropout)
  local options = {device = device, dtype = dtype}
  local function parameter(...) return lt.nn.Parameter(lt.empty({...}, options)) end
  self.embed_dim, self.num_heads, self.dropout = size, heads, dropout
  self.kdim, self.vdim, self.head_dim = kdim or size, vdim or size, size // heads
  self.batch_first, self.add_zero_attn = batch_first, add_zero
  local same = self.kdim == size and self.vdim == size
  self:register_parameter("q_proj_weight", not same and parameter(size, size) or nil)
  self:register_parameter("k_proj_weight", not same and parameter(size, self.kdim) or nil)
  self:register_parameter("v_proj_weight", not same and parameter(size, self.vdim) or nil)
  self:register_parameter("in_proj_weight", same and parameter(3 * size, size) or nil)
  self:register_parameter("in_proj_bias", bias and parameter(3 * size) or nil)
  self.out_proj = Linear(size, size, bias, options)
  self:register_parameter("bias_k", add_bias and parameter(1, 1, size) or nil)
  self:register_parameter("bias_v", add_bias and parameter(1, 1, size) or nil)
  self:reset_parameters()
end

--- Draws new values: the input projections from xavier_uniform_, bias_k and bias_v from
-- xavier_normal_, the output projection as nn.Linear; sets the other biases to zeros.
function MultiheadAttention:reset_parameters()
  for _, name in ipairs{"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"} do
    if self[name] then init.xavier_uniform_(self[name]) end
  end
  self.out_proj:reset_parameters()
  if self.in_proj_bias then
    init.zeros_(self.in_proj_bias)
    init.zeros_(self.out_proj.bias)
  end
  if self.bias_k then
    init.xavier_normal_(self.bias_k)
    init.xavier_normal_(self.bias_v)
  end
end

local parse_forward = args.signature("MultiheadAttention", "Tensor query, Tensor key, "
  .. "Tensor value, Tensor? key_padding_mask = nil, bool need_weights = true, "
  .. "Tensor? attn_mask = nil, bool average_attn_weights = true, bool is_causal = false")

-- Returns query, key and value with the first two dimensions swapped; one tensor stays one.
local function transposed(query, key, value)
  local q = query:transpose(1, 2)
  local k = key == query and q or key:transpose(1, 2)
  return q, k, value == query and q or value == key and k or value:transpose(1, 2)
end

--- local output, weights = attention(query, key, value, {key_padding_mask, need_weights = true,
-- attn_mask, average_attn_weights = true, is_causal = false}): attention of query {L, N, embed_dim}
-- to key {S, N, kdim} and value {S, N, vdim}, with N first with batch_first, or without N. Returns
-- the output in the query's shape, and the weights {N, L, S}, the mean over heads, or {N,
-- num_heads, L, S}; nil without need_weights, which is faster. Keys are hidden where
-- key_padding_mask {N, S} or attn_mask {L, S} or {N * num_heads, L, S} is true; float masks are
-- added to the scores. is_causal states that attn_mask, which is required, is causal. Raises an
-- error for other shapes.
function MultiheadAttention:forward(...)
  local query, key, value, padding, need_weights, mask, average, is_causal = parse_forward(...)
  local swap = self.batch_first and query.ndim == 3 and key.ndim == 3 and value.ndim == 3
  if swap then query, key, value = transposed(query, key, value) end
  local out, weights = lt.F.multi_head_attention_forward(query, key, value, self.embed_dim,
    self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
    self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, {
      training = self.training, key_padding_mask = padding, need_weights = need_weights,
      attn_mask = mask, use_separate_proj_weight = self.in_proj_weight == nil,
      q_proj_weight = self.q_proj_weight, k_proj_weight = self.k_proj_weight,
      v_proj_weight = self.v_proj_weight, average_attn_weights = average, is_causal = is_causal})
  return swap and out:transpose(1, 2) or out, weights
end

return MultiheadAttention
