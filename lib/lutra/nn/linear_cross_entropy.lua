--- nn.LinearCrossEntropyLoss: a linear layer and the cross entropy of its output.

local args = require "lutra.internal.args"
local Linear = require "lutra.nn.linear"
local Module = require "lutra.nn.module"
local F = require "lutra.nn.functional"
local reductions = require "lutra.internal.reductions"

local LinearCrossEntropyLoss = Module:extend "LinearCrossEntropyLoss"

local parse = args.signature("LinearCrossEntropyLoss",
  "int(>=0) in_features, int(>=1) num_classes, sizes? out_features = nil, bool bias = false, "
  .. "device? device = nil, dtype? dtype = nil, " .. reductions.REDUCTION
  .. ", Tensor? weight = nil, int? ignore_index = nil, float label_smoothing = 0, "
  .. "table? options = nil")

--- nn.LinearCrossEntropyLoss(in_features, num_classes, {out_features, bias = false, device, dtype,
-- reduction = "mean", weight, ignore_index, label_smoothing = 0}): loss(input, target), the cross
-- entropy of the child `linear` of the input {N, in_features} and labels {N} from 1 to
-- num_classes. With out_features, sizes d..., the target is {N, d...}. `options` has no effect.
-- Raises an error for a weight of another shape than {num_classes}.
function LinearCrossEntropyLoss:init(...)
  local features, classes, sizes, bias, device, dtype, reduction, weight, ignored, smoothing =
    parse(...)
  args.check(weight == nil or weight.ndim == 1 and weight:numel() == classes,
    "LinearCrossEntropyLoss: expected shape {%d} for argument 'weight', got %s", classes,
    weight and tostring(weight.shape))
  args.check(smoothing >= 0 and smoothing <= 1, "LinearCrossEntropyLoss: expected a number from 0 "
    .. "to 1 for argument 'label_smoothing', got %g", smoothing)
  self.num_classes, self.out_features, self.reduction = classes, sizes or {}, reduction
  self.ignore_index, self.label_smoothing = ignored, smoothing
  self:register_buffer("weight", weight)
  local count = classes
  for _, size in ipairs(self.out_features) do count = count * size end
  self.linear = Linear(features, count, bias, {device = device, dtype = dtype})
end

--- Maps an input and a target to the loss.
function LinearCrossEntropyLoss:forward(input, target)
  local linear, sizes = self.linear, {self.num_classes, table.unpack(self.out_features)}
  local bias = linear.bias and linear.bias:reshape(sizes)
  sizes[#sizes + 1] = linear.in_features
  return F.linear_cross_entropy{self:check_tensor(input), linear.weight:reshape(sizes),
    self:check_tensor(target), linear_bias = bias, weight = self.weight, reduction = self.reduction,
    ignore_index = self.ignore_index, label_smoothing = self.label_smoothing}
end

return LinearCrossEntropyLoss
