--- Losses: modules that measure the difference between an output and a target.
--
-- A loss is a function of nn.functional with its options stored. `reduction` is "mean", "sum" or
-- "none" (one value per element or sample). The older options `size_average` and `reduce` of
-- PyTorch are accepted and take precedence.

local lt = require "lutra"
local args = require "lutra.internal.args"
local reductions = require "lutra.internal.reductions"
local Module = require "lutra.nn.module"

local losses = {}

local REDUCTION, LEGACY = reductions.REDUCTION, reductions.LEGACY

-- Defines a loss of an input and a target of the same shape. `option` is the name of one more
-- option, `declared` its declaration; such a loss has none of the older options.
local function define_elementwise(name, op, option, declared)
  local class = Module:extend(name)
  local parse = args.signature(name, declared and REDUCTION .. ", " .. declared or LEGACY)

  function class:init(...)
    if not option then
      self.reduction = reductions.resolve(parse(...))
      return
    end
    self.reduction, self[option] = parse(...)
  end

  function class:forward(input, target)
    self:check_tensor(input)
    self:check_tensor(target)
    if tostring(input.shape) ~= tostring(target.shape) then
      self:fail("expected input and target of the same shape, got %s and %s",
        tostring(input.shape), tostring(target.shape))
    end
    local named = {reduction = self.reduction}
    if option then named[option] = self[option] end
    return lt.F[op](input, target, named)
  end

  losses[name] = class
end

--- nn.MSELoss{reduction = "mean"}: the squared error (input - target)^2. input and target have the
-- same shape; the result is a scalar, or has this shape with "none".
define_elementwise("MSELoss", "mse_loss")
--- nn.L1Loss{reduction = "mean"}: the absolute error |input - target|. Shapes as for nn.MSELoss.
define_elementwise("L1Loss", "l1_loss")
--- nn.HuberLoss{reduction = "mean", delta = 1}: d^2 / 2 for an absolute error d up to delta, delta
-- * (d - delta / 2) beyond (Huber 1964). Shapes as for nn.MSELoss.
define_elementwise("HuberLoss", "huber_loss", "delta", "float delta = 1")

-- Defines a loss of class scores {N, C} and labels {N} from 1 to C.
local function define_classes(name, op, signature, options)
  local class = Module:extend(name)
  local parse = args.signature(name, signature)

  function class:init(...)
    local weight, size_average, ignore_index, reduce, reduction, smoothing = parse(...)
    self.reduction = reductions.resolve(size_average, reduce, reduction)
    self:register_buffer("weight", weight)
    self.ignore_index, self.label_smoothing = ignore_index, smoothing
    smoothing = smoothing or 0
    args.check(smoothing >= 0 and smoothing <= 1,
      "%s: expected a number from 0 to 1 for argument 'label_smoothing', got %g", name, smoothing)
  end

  function class:forward(input, target)
    self:check_tensor(input)
    self:check_tensor(target)
    local named = {weight = self.weight, reduction = self.reduction}
    for _, option in ipairs(options) do named[option] = self[option] end
    return lt.F[op](input, target, named)
  end

  losses[name] = class
end

local CLASSES = "Tensor? weight = nil, " .. reductions.SIZE_AVERAGE
  .. ", int ignore_index = -100, " .. reductions.REDUCE

--- nn.CrossEntropyLoss{weight, ignore_index = -100, reduction = "mean", label_smoothing = 0}: the
-- cross entropy of unnormalized scores {N, C} (or {C}, {N, C, d...}) and a target: integer labels
-- {N} (or {}, {N, d...}) from 1 to C, or class probabilities of the scores' shape. `weight` {C}
-- scales each class; the label ignore_index contributes nothing. Raises an error unless 0 <=
-- label_smoothing <= 1.
define_classes("CrossEntropyLoss", "cross_entropy", CLASSES .. ", float label_smoothing = 0",
  {"ignore_index", "label_smoothing"})

--- nn.NLLLoss{weight, ignore_index = -100, reduction = "mean"}: the negative log-likelihood of
-- log-probabilities {N, C} (or {C}, {N, C, d...}) and integer labels from 1 to C. Options as for
-- nn.CrossEntropyLoss.
define_classes("NLLLoss", "nll_loss", CLASSES, {"ignore_index"})

return losses
