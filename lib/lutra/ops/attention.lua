--- Attention with projections, and samples of softmax.

local lt = require "lutra"
local args = require "lutra.internal.args"
local F = require "lutra.nn.functional"

lt._define{
  signature = "F.gumbel_softmax(Tensor logits, float tau = 1, bool hard = false, "
    .. "float eps = 1e-10, dim dim = -1)",
  doc = "Samples of a relaxed one-hot distribution: softmax((x + g) / tau) with Gumbel noise g; "
    .. "hard samples are one-hot, with the gradient of the soft ones (Jang et al. 2017). `eps` has "
    .. "no effect.",
  example = "F.gumbel_softmax(lt.zeros(3), 1, true)",
  fn = function(x, tau, hard, _, dim)
    local noise = -lt.empty_like(x:detach()):exponential_():log()
    local soft = F.softmax((x + noise) / tau, dim)
    if not hard then return soft end
    local index = soft:detach():argmax(dim, true)
    local one_hot = lt.zeros_like(soft:detach()):scatter(dim, index, 1.0)
    return one_hot - soft:detach() + soft
  end,
}

-- ---- multi-head attention

local TITLE <const> = "multi_head_attention_forward"

local function check(condition, text, ...)
  return args.check(condition, TITLE .. ": " .. text, ...)
end

-- The additive form of a mask: -inf where a bool mask is true.
local function additive(name, mask, dtype)
  if mask == nil then return nil end
  check(mask.dtype == "bool" or mask:is_floating_point(),
    "expected dtype \"bool\" or a float dtype for argument '%s', got \"%s\"", name, mask.dtype)
  if mask.dtype ~= "bool" then return mask:to(dtype) end
  return lt.zeros(mask.shape, {dtype = dtype, device = mask.device}):masked_fill(mask, -math.huge)
end

-- Queries, keys and values {L, N, E}, projected by one weight {3 E, E} or three.
local function projected(query, key, value, o)
  local wq, wk, wv = o.q_proj_weight, o.k_proj_weight, o.v_proj_weight
  local bq, bk, bv
  if not o.use_separate_proj_weight then
    check(o.in_proj_weight, "expected a tensor for argument 'in_proj_weight', got nil")
    if o.query == o.key and o.key == o.value then
      return table.unpack(F.linear(query, o.in_proj_weight, o.in_proj_bias):chunk(3, -1))
    end
    wq, wk, wv = table.unpack(o.in_proj_weight:chunk(3))
  else
    check(wq and wk and wv, "expected q_proj_weight, k_proj_weight and v_proj_weight with "
      .. "use_separate_proj_weight, got nil")
  end
  if o.in_proj_bias then bq, bk, bv = table.unpack(o.in_proj_bias:chunk(3)) end
  return F.linear(query, wq, bq), F.linear(key, wk, bk), F.linear(value, wv, bv)
end

-- Raises an error unless key and value {S, N, *} fit together, and to the query.
local function check_sizes(query, key, value, separate)
  check(key:size(2) == query:size(2), "expected the batch size of query, %s, for argument 'key', "
    .. "got %s", tostring(query.shape), tostring(key.shape))
  check(key:size(1) == value:size(1) and key:size(2) == value:size(2)
    and (separate or key:size(3) == value:size(3)),
    "expected the shape of key, %s, for argument 'value', got %s", tostring(key.shape),
    tostring(value.shape))
end

-- {L, N, E} -> {N * heads, L, E / heads}
local function by_head(x, heads)
  local length, batch, size = table.unpack(x.shape)
  return x:reshape(length, batch * heads, size // heads):transpose(1, 2)
end

-- Appends a row of keys to each mask, which hides none.
local function widen(mask)
  if mask == nil then return nil end
  return lt.cat({mask, lt.zeros_like(mask:narrow(-1, 1, 1))}, -1)
end

-- Appends zeros as one more key or value.
local function with_zero(x)
  return lt.cat({x, x:new_zeros(x:size(1), 1, x:size(3))}, 2)
end

local function join_masks(mask, padding, batch, heads, keys)
  if padding == nil then return mask end
  check(padding.ndim == 2 and padding:size(1) == batch and padding:size(2) == keys,
    "expected shape {%d, %d} for argument 'key_padding_mask', got %s", batch, keys,
    tostring(padding.shape))
  padding = padding:reshape(batch, 1, 1, keys):expand(batch, heads, 1, keys)
    :reshape(batch * heads, 1, keys)
  return mask and mask + padding or padding
end

local function check_mask(mask, rows, length, keys)
  if mask == nil then return nil end
  local shape = tostring(mask.shape)
  if mask.ndim == 2 then mask = mask:unsqueeze(1) end
  check(mask.ndim == 3 and (mask:size(1) == 1 or mask:size(1) == rows) and mask:size(2) == length
    and mask:size(3) == keys, "expected shape {%d, %d} or {%d, %d, %d} for argument 'attn_mask', "
    .. "got %s", length, keys, rows, length, keys, shape)
  return mask
end

-- The results of the heads {N * heads, L, d} and, when needed, the weights. Without a mask and
-- weights, the attention may be causal.
local function attend(q, k, v, mask, dropout, need_weights, is_causal)
  if not need_weights then
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal)
  end
  local scores = (q * (1 / math.sqrt(q:size(3)))):bmm(k:transpose(2, 3))
  if mask then scores = scores + mask end
  local weights = F.softmax(scores, -1)
  if dropout > 0 then weights = F.dropout(weights, dropout) end
  return weights:bmm(v), weights
end

local PARAMETERS <const> = "Tensor query, Tensor key, Tensor value, int embed_dim_to_check, "
  .. "int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, "
  .. "Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, "
  .. "Tensor? out_proj_bias, bool training = true, Tensor? key_padding_mask = nil, "
  .. "bool need_weights = true, Tensor? attn_mask = nil, bool use_separate_proj_weight = false, "
  .. "Tensor? q_proj_weight = nil, Tensor? k_proj_weight = nil, Tensor? v_proj_weight = nil, "
  .. "Tensor? static_k = nil, Tensor? static_v = nil, bool average_attn_weights = true, "
  .. "bool is_causal = false"

-- The names of the parameters, in order.
local NAMES <const> = {}
for name in (", " .. PARAMETERS):gmatch ", [%w?]+ ([%w_]+)" do NAMES[#NAMES + 1] = name end

local function forward(o)
  local query, key, value, heads = o.query, o.key, o.value, o.num_heads
  local batched = query.ndim == 3
  check(batched or query.ndim == 2, "expected 2 or 3 dimensions for argument 'query', got %d",
    query.ndim)
  check(key.ndim == query.ndim and value.ndim == query.ndim, "expected %d dimensions, query's, for "
    .. "arguments 'key' and 'value', got %d and %d", query.ndim, key.ndim, value.ndim)
  check(not o.is_causal or o.attn_mask, "expected attn_mask with is_causal, got nil")
  local padding = additive("key_padding_mask", o.key_padding_mask, query.dtype)
  local mask = additive("attn_mask", o.attn_mask, query.dtype)
  if not batched then
    query, key, value = query:unsqueeze(2), key:unsqueeze(2), value:unsqueeze(2)
    padding = padding and padding:unsqueeze(1)
  end
  local length, batch, size = table.unpack(query.shape)
  check(size == o.embed_dim_to_check, "expected %d (embed_dim_to_check) for the last size of "
    .. "query, got %d", o.embed_dim_to_check, size)
  check(heads > 0 and size % heads == 0, "expected a divisor of %d for argument 'num_heads', "
    .. "got %d", size, heads)
  check_sizes(query, key, value, o.use_separate_proj_weight)
  local rows = batch * heads
  local q, k, v = projected(query, key, value, o)
  mask = check_mask(mask, rows, length, o.static_k and o.static_k:size(2) or key:size(1))
  local is_causal = o.is_causal and not padding and not o.need_weights and not o.bias_k
    and not o.add_zero_attn
  if is_causal then mask = nil end
  check((o.bias_k == nil) == (o.bias_v == nil), "expected both of bias_k and bias_v, got one")
  if o.bias_k then
    check(not o.static_k and not o.static_v, "expected no static_k and static_v with bias_k")
    k = lt.cat({k, o.bias_k:expand(1, batch, size)}, 1)
    v = lt.cat({v, o.bias_v:expand(1, batch, size)}, 1)
    mask, padding = widen(mask), widen(padding)
  end
  q = by_head(q, heads)
  k, v = o.static_k or by_head(k, heads), o.static_v or by_head(v, heads)
  if o.add_zero_attn then
    k, v, mask, padding = with_zero(k), with_zero(v), widen(mask), widen(padding)
  end
  local keys = k:size(2)
  mask = join_masks(mask, padding, batch, heads, keys)
  local out, weights = attend(q, k, v, mask, o.training and o.dropout_p or 0, o.need_weights,
    is_causal)
  out = out:transpose(1, 2):reshape(length, batch, size)
  out = F.linear(out, o.out_proj_weight, o.out_proj_bias)
  if not batched then out = out:squeeze(2) end
  if not o.need_weights then return out, nil end
  weights = weights:reshape(batch, heads, length, keys)
  if o.average_attn_weights then weights = weights:mean(2) end
  return out, batched and weights or weights:squeeze(1)
end

lt._define{
  signature = "F." .. TITLE .. "(" .. PARAMETERS .. ") -> Tensor output, Tensor weights",
  doc = "Multi-head attention of query {L, N, E}, key and value {S, N, E} with input and output "
    .. "projections (Vaswani et al. 2017): the result {L, N, E} and the weights {N, L, S}, "
    .. "averaged over heads; nil without need_weights. Masks are true, or -inf, for hidden keys.",
  example = "F.multi_head_attention_forward(lt.ones(1, 1, 2), lt.ones(1, 1, 2), lt.ones(1, 1, 2), "
    .. "2, 1, lt.ones(6, 2), nil, nil, nil, false, 0, lt.ones(2, 2), nil)",
  fn = function(...)
    local o, given = {}, {...}
    for i, name in ipairs(NAMES) do o[name] = given[i] end
    return forward(o)
  end,
}
