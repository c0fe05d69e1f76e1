--- Losses as modules: how far an output is from a target.
--
-- Idea: a loss is a function of lutra.nn.functional with its options kept.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

local losses = {}

local REDUCTION = "'mean'|'sum'|'none' reduction = 'mean'"

local LEGACY = "bool? size_average = nil, "
local REDUCE = "bool? reduce = nil, " .. REDUCTION

-- What PyTorch's older options say where one of them is given, else `reduction`.
local function settled(size_average, reduce, reduction)
  if size_average == nil and reduce == nil then return reduction end
  if reduce == false then return "none" end
  return size_average == false and "sum" or "mean"
end

-- A loss of an output and a target of the same shape. A loss with one more parameter, `option`,
-- declared by `declared`, has none of the older options.
local function define_elementwise(name, op, option, declared)
  local class = Module:extend(name)
  local parse = args.signature(name, declared and REDUCTION .. ", " .. declared or LEGACY .. REDUCE)

  function class:init(...)
    if not option then
      self.reduction = settled(parse(...))
      return
    end
    self.reduction, self[option] = parse(...)
  end

  function class:forward(input, target)
    self:check_tensor(input)
    self:check_tensor(target)
    if tostring(input.shape) ~= tostring(target.shape) then
      self:fail("the input is %s and the target %s, it wants the same shape",
        tostring(input.shape), tostring(target.shape))
    end
    local named = {reduction = self.reduction}
    if option then named[option] = self[option] end
    return lt.F[op](input, target, named)
  end

  losses[name] = class
end

--- nn.MSELoss{reduction = "mean"}: (input - target)^2, as a mean, a sum or one by one ("none").
define_elementwise("MSELoss", "mse_loss")
--- nn.L1Loss{reduction = "mean"}: |input - target|, as a mean, a sum or one by one ("none").
define_elementwise("L1Loss", "l1_loss")
--- nn.HuberLoss{reduction = "mean", delta = 1}: squares of differences up to delta, lines beyond.
define_elementwise("HuberLoss", "huber_loss", "delta", "float delta = 1")

-- A loss of class scores {N, C} and labels 1..C {N}.
local function define_classes(name, op, signature, options)
  local class = Module:extend(name)
  local parse = args.signature(name, signature)

  function class:init(...)
    local weight, size_average, ignore_index, reduce, reduction, smoothing = parse(...)
    self.reduction = settled(size_average, reduce, reduction)
    self:register_buffer("weight", weight)
    self.ignore_index, self.label_smoothing = ignore_index, smoothing
    smoothing = smoothing or 0
    args.check(smoothing >= 0 and smoothing <= 1,
      "%s: label_smoothing is %g, it wants a number from 0 to 1", name, smoothing)
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

local CLASSES = "Tensor? weight = nil, " .. LEGACY .. "int ignore_index = -100, " .. REDUCE

--- nn.CrossEntropyLoss{weight, ignore_index, reduction, label_smoothing}: of scores
-- {N, C} (or {N, C, d...}, {C}) and labels 1..C, or of class probabilities.
define_classes("CrossEntropyLoss", "cross_entropy", CLASSES .. ", float label_smoothing = 0",
  {"ignore_index", "label_smoothing"})

--- nn.NLLLoss{weight, ignore_index, reduction}: the same of log-probabilities.
define_classes("NLLLoss", "nll_loss", CLASSES, {"ignore_index"})

return losses
