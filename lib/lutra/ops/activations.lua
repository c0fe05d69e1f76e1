--- Activation functions that are combinations of other ops.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"

-- Runs fn on float32 copies of 16-bit floats, so that a result is rounded once.
local function widened(x, fn)
  if not tensors.is_half(x.dtype) then return fn(x) end
  return fn(x:float()):to{dtype = x.dtype}
end

lt._define{
  signature = "F.relu6(Tensor self, bool inplace = false)",
  doc = "x, limited to the range from 0 to 6.",
  example = "F.relu6(lt.tensor{-1, 3, 8})",
  fn = function(x, inplace) return lt.F.hardtanh(x, 0, 6, inplace) end,
}

lt._define{
  signature = "F.softsign(Tensor self)",
  doc = "x / (1 + |x|).",
  example = "F.softsign(lt.tensor{-1, 3})",
  fn = function(x) return x / (x:abs() + 1) end,
}

lt._define{
  signature = "F.tanhshrink(Tensor self)",
  doc = "x - tanh(x).",
  example = "F.tanhshrink(lt.tensor{-1, 3})",
  fn = function(x) return x - x:tanh() end,
}

lt._define{
  signature = "F.glu(Tensor self, dim dim = -1)",
  doc = "a * sigmoid(b) of the halves a and b of self along dim (Dauphin et al. 2016).",
  example = "F.glu(lt.tensor{{1, 2, 0, 1}})",
  fn = function(x, dim)
    args.check(x.ndim > 0,
      "glu: expected a tensor with dimensions for argument 'self', got shape {}")
    args.check(x:size(dim) % 2 == 0,
      "glu: expected an even size of dim %d for argument 'self', got %d", dim, x:size(dim))
    return widened(x, function(wide)
      local halves = wide:chunk(2, dim)
      return halves[1] * halves[2]:sigmoid()
    end)
  end,
}

lt._define{
  signature = "F.prelu(Tensor self, Tensor weight)",
  doc = "x, or weight * x where x is negative: one weight, or one for each index of dim 2 (He et "
    .. "al. 2015).",
  example = "F.prelu(lt.tensor{-2., 3}, lt.tensor{0.25})",
  fn = function(x, weight)
    if weight:numel() ~= 1 then
      args.check(x.ndim > 0,
        "prelu: expected one element for argument 'weight', as self has the shape {}, got %d",
        weight:numel())
      local channels = x.ndim > 1 and x:size(2) or 1
      args.check(weight:numel() == channels,
        "prelu: expected one weight or %d weights, one for each index of dim 2, for argument "
        .. "'weight', got shape %s", channels, weight.shape)
    end
    args.check(weight.ndim <= 1,
      "prelu: expected at most one dimension for argument 'weight', got shape %s",
      weight.shape)
    tensors.check_parameter_dtype("prelu", "weight", weight, x)
    if x.ndim ~= 1 or weight.ndim == 0 then
      local shape = {}
      for d = 1, x.ndim do shape[d] = d == 2 and weight:numel() or 1 end
      if x.ndim == 1 then shape[1] = 1 end
      weight = weight:reshape(shape)
    end
    return lt.where(x:gt(0), x, weight * x)
  end,
}

lt._define{
  signature = "F.rrelu(Tensor self, float lower = 0.125, float upper = 0.3333333333333333, "
    .. "bool training = false, bool inplace = false)",
  in_place = true,
  doc = "x, or a * x where x is negative: a is drawn for each element from lower to upper when "
    .. "training, else it is their mean (Xu et al. 2015).",
  example = "F.rrelu(lt.tensor{-2., 3})",
  fn = function(x, lower, upper, training, inplace)
    args.check(lower <= upper, "rrelu: expected a number up to %s for argument 'lower', got %s",
      tostring(upper), tostring(lower))
    if not training then
      return lt.F[inplace and "leaky_relu_" or "leaky_relu"](x, (lower + upper) / 2)
    end
    local slope = lt.rand_like(x) * (upper - lower) + lower
    local factor = lt.where(x:detach():gt(0), lt.ones_like(slope), slope)
    return inplace and x:mul_(factor) or x * factor
  end,
}

-- The functions in place that PyTorch has in F: {signature, example}.
local in_place = {
  {"F.relu_(Tensor self)", "F.relu_(lt.tensor{-2., 3})"},
  {"F.leaky_relu_(Tensor self, Scalar negative_slope = 0.01)", "F.leaky_relu_(lt.tensor{-2., 3})"},
  {"F.elu_(Tensor self, Scalar alpha = 1)", "F.elu_(lt.tensor{-2., 3})"},
  {"F.selu_(Tensor self)", "F.selu_(lt.tensor{-2., 3})"},
  {"F.celu_(Tensor self, Scalar alpha = 1)", "F.celu_(lt.tensor{-2., 3})"},
  {"F.hardtanh_(Tensor self, Scalar min_val = -1, Scalar max_val = 1)",
    "F.hardtanh_(lt.tensor{-2., 0.5})"},
  {"F.threshold_(Tensor self, Scalar threshold, Scalar value)",
    "F.threshold_(lt.tensor{-2., 3}, 0, 9)"},
  {"F.rrelu_(Tensor self, float lower = 0.125, float upper = 0.3333333333333333, "
    .. "bool training = false)", "F.rrelu_(lt.tensor{-2., 3})"},
}
for _, row in ipairs(in_place) do
  local signature, example = table.unpack(row)
  local name = signature:match "^F%.([%w_]+)"
  lt._define{
    signature = signature,
    doc = ("Replaces self by F.%s of it, in place; returns self."):format(name:sub(1, -2)),
    example = example,
    fn = function(x, ...) return x[name](x, ...) end,
  }
end
