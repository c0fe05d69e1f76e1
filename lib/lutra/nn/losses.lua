--- Losses as modules: how far an output is from a target.
--
-- Idea: a loss is a function of lutra.nn.functional with its options kept.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Module = require "lutra.nn.module"

local losses = {}

local REDUCTION = "'mean'|'sum'|'none' reduction = 'mean'"

-- A loss of an output and a target of the same shape.
local function define_elementwise(name, op)
  local class = Module:extend(name)
  local parse = args.signature(name, REDUCTION)

  function class:init(...) self.reduction = parse(...) end

  function class:forward(input, target)
    self:check_tensor(input)
    self:check_tensor(target)
    if tostring(input.shape) ~= tostring(target.shape) then
      self:fail("the input is %s and the target %s, it wants the same shape",
        tostring(input.shape), tostring(target.shape))
    end
    return lt.F[op](input, target, {reduction = self.reduction})
  end

  losses[name] = class
end

--- nn.MSELoss{reduction = "mean"}: (input - target)^2, as a mean, a sum or one by one ("none").
define_elementwise("MSELoss", "mse_loss")
--- nn.L1Loss{reduction = "mean"}: |input - target|, as a mean, a sum or one by one ("none").
define_elementwise("L1Loss", "l1_loss")

-- A loss of class scores {N, C} and labels 1..C {N}.
local function define_classes(name, op, signature, options)
  local class = Module:extend(name)
  local parse = args.signature(name, signature)

  function class:init(...)
    local values = table.pack(parse(...))
    self.reduction = values[1]
    self:register_buffer("weight", values[2])
    for i, option in ipairs(options) do self[option] = values[i + 2] end
    local smoothing = self.label_smoothing or 0
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

--- nn.CrossEntropyLoss{reduction, weight, ignore_index, label_smoothing}: of scores
-- {N, C} (or {N, C, d...}, {C}) and labels 1..C, or of class probabilities.
define_classes("CrossEntropyLoss", "cross_entropy",
  REDUCTION .. ", Tensor? weight = nil, int ignore_index = -100, float label_smoothing = 0",
  {"ignore_index", "label_smoothing"})

--- nn.NLLLoss{reduction, weight, ignore_index}: the same of log-probabilities.
define_classes("NLLLoss", "nll_loss",
  REDUCTION .. ", Tensor? weight = nil, int ignore_index = -100", {"ignore_index"})

return losses
