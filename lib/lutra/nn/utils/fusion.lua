--- nn.utils.fusion: batch normalization in evaluation mode as part of the layer before it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"

local fusion = {}

-- Returns a column vector of one value per output for a weight whose outputs are dim `dim`.
local function along(x, weight, dim)
  local shape = {}
  for i = 1, weight.ndim do shape[i] = i == dim and -1 or 1 end
  return x:reshape(shape)
end

-- Returns the fused weight and bias; nil stands for zeros and ones.
local function fused(weight, bias, mean, variance, eps, scale, shift, dim)
  bias = bias or lt.zeros_like(mean)
  scale, shift = scale or lt.ones_like(mean), shift or lt.zeros_like(mean)
  local factor = scale * (variance + eps):rsqrt()
  return lt.nn.Parameter((weight * along(factor, weight, dim)):to(weight.dtype):detach()),
    lt.nn.Parameter(((bias - mean) * factor + shift):to(bias.dtype):detach())
end

local parse_conv = args.signature("fuse_conv_bn_weights", "Tensor conv_w, Tensor? conv_b, "
  .. "Tensor bn_rm, Tensor bn_rv, float bn_eps, Tensor? bn_w, Tensor? bn_b, bool transpose = false")
local parse_linear = args.signature("fuse_linear_bn_weights", "Tensor linear_w, Tensor? linear_b, "
  .. "Tensor bn_rm, Tensor bn_rv, float bn_eps, Tensor? bn_w, Tensor? bn_b")

--- fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, {transpose = false}):
-- returns weight and bias, parameters, of the convolution that computes what a convolution and the
-- batch normalization after it compute with their running statistics; nil for a bias, weight or
-- shift that does not exist. `transpose` is for transposed convolutions.
function fusion.fuse_conv_bn_weights(...)
  local w, b, mean, variance, eps, scale, shift, transpose = parse_conv(...)
  return fused(w, b, mean, variance, eps, scale, shift, transpose and 2 or 1)
end

--- fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b): returns weight and
-- bias, parameters, of the linear layer that computes what a linear layer and the batch
-- normalization after it compute with their running statistics.
function fusion.fuse_linear_bn_weights(...)
  local w, b, mean, variance, eps, scale, shift = parse_linear(...)
  return fused(w, b, mean, variance, eps, scale, shift, 1)
end

-- Returns a copy of `layer` with the batch normalization `norm` in its weights.
local function fuse(title, layer, norm, dim)
  local given = {layer, norm}
  for name = 1, 2 do
    local module = given[name]
    args.check(lt.nn.is_module(module), "%s: expected a module for argument %d, got %s", title,
      name, args.show(module))
    args.check(not module.training, "%s: expected modules in evaluation mode\nhint: m:eval()",
      title)
  end
  args.check(norm.running_mean and norm.running_var,
    "%s: expected a batch normalization with running statistics", title)
  local copy = layer:clone()
  local weight, bias = fused(layer.weight:detach(), layer.bias and layer.bias:detach(),
    norm.running_mean, norm.running_var, norm.eps, norm.weight and norm.weight:detach(),
    norm.bias and norm.bias:detach(), dim)
  copy.weight, copy.bias = weight, nil
  copy:register_parameter("bias", bias)
  return copy
end

local parse_fuse_conv = args.signature("fuse_conv_bn_eval",
  "any conv, any bn, bool transpose = false")

--- Returns a copy of the convolution `conv` that also computes the batch normalization `bn` after
-- it. Both must be in evaluation mode. `transpose` is for transposed convolutions, whose groups
-- must be 1. Raises an error in training mode and without running statistics.
function fusion.fuse_conv_bn_eval(...)
  local conv, bn, transpose = parse_fuse_conv(...)
  return fuse("fuse_conv_bn_eval", conv, bn, transpose and 2 or 1)
end

--- fuse_linear_bn_eval(linear, bn): returns a copy of a linear layer that also computes the batch
-- normalization after it. Both must be in evaluation mode. Raises an error in training mode,
-- without running statistics, and when the numbers of features differ.
function fusion.fuse_linear_bn_eval(linear, bn)
  local both = lt.nn.is_module(linear) and lt.nn.is_module(bn) and linear.out_features
    and bn.num_features
  args.check(not both or bn.num_features == 1 or linear.out_features == bn.num_features,
    "fuse_linear_bn_eval: expected %s features of the normalization, got %s",
    both and linear.out_features, both and bn.num_features)
  return fuse("fuse_linear_bn_eval", linear, bn, 1)
end

return strict_table.strict(fusion, "nn.utils.fusion")
