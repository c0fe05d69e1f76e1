--- F (nn.functional): the computations of layers and losses, as functions.
--
-- Nearly all of these are ops of the runtime under PyTorch's names: those that src/tensor/ops.def
-- marks with NN. This file defines only the composites that are written in Lua.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"
local namespaces = require "lutra.internal.namespaces"

local F = namespaces.ops "F"

-- ---- composites written in Lua

lt._define{
  signature = "F.embedding(Tensor input, Tensor weight, int? padding_idx = nil)",
  doc = "Rows of weight {n, d} by ids {*} from 1 to n, giving {*, d}. Row padding_idx gets no "
    .. "gradient.",
  fn = function(input, weight, padding)
    if padding == nil then return lt.embedding(weight, input) end
    args.check(padding ~= 0,
      "embedding: expected an index from 1 (or -1 for the last) for argument 'padding_idx', got 0")
    return lt.embedding(weight, input, padding < 0 and weight:size(1) + 1 + padding or padding)
  end,
}

lt._define{
  signature = "F.normalize(Tensor input, float p = 2, dim dim = 2, float eps = 1e-12)",
  doc = "x / max(norm of x along dim, eps).",
  fn = function(x, p, dim, eps)
    return x / x:norm{p = p, dim = dim, keepdim = true}:clamp{min = eps}
  end,
}

lt._define{
  signature = "F.cosine_similarity(Tensor x1, Tensor x2, dim dim = 2, float eps = 1e-8)",
  doc = "The cosine of the angle between x1 and x2 along dim.",
  fn = function(a, b, dim, eps)
    local scale_a = a:norm{dim = dim, keepdim = true}:clamp{min = eps}
    local scale_b = b:norm{dim = dim, keepdim = true}:clamp{min = eps}
    return ((a / scale_a) * (b / scale_b)):sum(dim)
  end,
}

lt._define{
  signature = "F.huber_loss(Tensor input, Tensor target, 'mean'|'sum'|'none' reduction = 'mean', "
    .. "float delta = 1)",
  doc = "Mean of d^2 / 2 for differences |d| up to delta, of delta (|d| - delta / 2) beyond.",
  fn = function(x, y, reduction, delta)
    args.expect(delta > 0, "huber_loss", "a number above 0", "delta", delta)
    local distance = (x - y):abs()
    local near = distance:clamp{max = delta}
    local loss = near * (distance - near * 0.5)
    return reduction == "none" and loss or loss[reduction](loss)
  end,
}

return strict_table.strict(F, "F")
