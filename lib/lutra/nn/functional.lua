--- F: what layers and losses compute, as functions.
--
-- Idea: nearly all of these are ops of the runtime under PyTorch's names, so this file
-- is a list of names and the few functions that are written in other ops.

local lt = require "lutra"
local args = require "lutra.args"
local fields = require "lutra.fields"

local F = {}

-- Ops that F shows as they are: arguments, defaults and errors are the op's own.
local ops = {
  -- activations
  "relu", "tanh", "sigmoid", "gelu", "silu", "softplus", "leaky_relu", "elu", "logsigmoid",
  "softmax", "log_softmax",
  -- layers
  "linear", "layer_norm", "dropout", "one_hot", "scaled_dot_product_attention",
  -- losses
  "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits",
}
for _, name in ipairs(ops) do F[name] = lt[name] end

local parse_embedding = args.signature("embedding",
  "Tensor input, Tensor weight, int? padding_idx = nil")

--- F.embedding(input, weight, {padding_idx}): rows of weight {n, d} by ids {*} from 1
-- to n, giving {*, d}. Row padding_idx gets no gradient.
function F.embedding(...)
  local input, weight, padding = parse_embedding(...)
  if padding == nil then return lt.embedding(weight, input) end
  args.check(padding ~= 0, "embedding: padding_idx is 0, ids count from 1")
  return lt.embedding(weight, input, padding < 0 and weight:size(1) + 1 + padding or padding)
end

local parse_normalize = args.signature("normalize",
  "Tensor input, float p = 2, dim dim = 2, float eps = 1e-12")

--- F.normalize(x, {p = 2, dim = 2, eps = 1e-12}): x / max(norm of x along dim, eps).
function F.normalize(...)
  local x, p, dim, eps = parse_normalize(...)
  return x / x:norm{p = p, dim = dim, keepdim = true}:clamp{min = eps}
end

local parse_similarity = args.signature("cosine_similarity",
  "Tensor x1, Tensor x2, dim dim = 2, float eps = 1e-8")

--- F.cosine_similarity(a, b, {dim = 2, eps = 1e-8}): the cosine of the angle between
-- a and b along dim.
function F.cosine_similarity(...)
  local a, b, dim, eps = parse_similarity(...)
  local scale_a = a:norm{dim = dim, keepdim = true}:clamp{min = eps}
  local scale_b = b:norm{dim = dim, keepdim = true}:clamp{min = eps}
  return ((a / scale_a) * (b / scale_b)):sum(dim)
end

return fields.strict(F, "F")
