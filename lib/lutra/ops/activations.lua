--- Activation functions that are combinations of other ops.

local lt = require "lutra"
local args = require "lutra.internal.args"

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
