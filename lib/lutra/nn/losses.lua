--- Losses: modules that measure the difference between an output and a target.
--
-- A loss is a function of nn.functional with its options stored. `reduction` is "mean", "sum" or
-- "none" (one value per element or sample). The older options `size_average` and `reduce` of
-- PyTorch are accepted and take precedence. Invariant: an option that is a tensor is a buffer; any
-- other is the field of its name.

local args = require "lutra.internal.args"
local layers = require "lutra.nn.layers"
local reductions = require "lutra.internal.reductions"
local Module = require "lutra.nn.module"
local F = require "lutra.nn.functional"

local losses = {}

local REDUCTION, LEGACY = reductions.REDUCTION, reductions.LEGACY
local SIZE_AVERAGE, REDUCE = reductions.SIZE_AVERAGE, reductions.REDUCE
local OLD = {size_average = true, reduce = true}

-- Defines the class `name`, which calls the function `op` of F with its inputs and options. `row`
-- may contain prepare(self), which checks the options, and `tensors`, the number of inputs that
-- must be tensors, 2 by default.
local function define(name, op, signature, row)
  row = row or {}
  local class = Module:extend(name)
  local parse = args.signature(name, signature)
  local prepare, tensors, options = row.prepare, row.tensors or 2, {}
  local parameters = args.describe(parse)
  for i, parameter in ipairs(parameters) do
    options[i] = {name = parameter.name, is_tensor = parameter.type:find "Tensor" ~= nil}
  end

  function class:init(...)
    layers.check_options(name, parameters, ...)
    local values, named = table.pack(parse(...)), {}
    for i, option in ipairs(options) do
      named[option.name] = values[i]
      if option.is_tensor then
        self:register_buffer(option.name, values[i])
      elseif not OLD[option.name] then
        self[option.name] = values[i]
      end
    end
    self.reduction = reductions.resolve(named.size_average, named.reduce, named.reduction)
    if prepare then prepare(self) end
  end

  function class:forward(...)
    local named = {...}
    for i = 1, tensors do self:check_tensor(named[i]) end
    for _, option in ipairs(options) do
      if not OLD[option.name] then named[option.name] = self[option.name] end
    end
    return F[op](named)
  end

  losses[name] = class
end

-- ---- differences

--- nn.MSELoss{reduction = "mean"}: the squared error (input - target)^2. The result is a scalar, or
-- has the inputs' shape with "none". Different shapes are broadcast, with a warning (lua -W).
define("MSELoss", "mse_loss", LEGACY)
--- nn.L1Loss{reduction = "mean"}: the absolute error |input - target|. Shapes as for nn.MSELoss.
define("L1Loss", "l1_loss", LEGACY)
--- nn.SmoothL1Loss{reduction = "mean", beta = 1}: d^2 / (2 beta) for an absolute error d below
-- beta, d - beta / 2 beyond. Shapes as for nn.MSELoss.
define("SmoothL1Loss", "smooth_l1_loss", LEGACY .. ", float(>=0) beta = 1")
--- nn.HuberLoss{reduction = "mean", delta = 1}: d^2 / 2 for an absolute error d up to delta, delta
-- * (d - delta / 2) beyond (Huber 1964). Shapes as for nn.MSELoss.
define("HuberLoss", "huber_loss", REDUCTION .. ", float delta = 1")

-- ---- classes

local CLASSES = "Tensor? weight = nil, " .. SIZE_AVERAGE
  .. ", int ignore_index = -100, " .. REDUCE

--- nn.CrossEntropyLoss{weight, ignore_index = -100, reduction = "mean", label_smoothing = 0}: the
-- cross entropy of unnormalized scores {N, C} (or {C}, {N, C, d...}) and a target: integer labels
-- {N} (or {}, {N, d...}) from 1 to C, or class probabilities of the scores' shape. `weight` {C}
-- scales each class; the label ignore_index contributes nothing. Raises an error unless 0 <=
-- label_smoothing <= 1.
define("CrossEntropyLoss", "cross_entropy", CLASSES .. ", float label_smoothing = 0", {
  prepare = function(self)
    local smoothing = self.label_smoothing
    args.check(smoothing >= 0 and smoothing <= 1,
      "CrossEntropyLoss: expected a number from 0 to 1 for argument 'label_smoothing', got %g",
      smoothing)
  end,
})

--- nn.NLLLoss{weight, ignore_index = -100, reduction = "mean"}: the negative log-likelihood of
-- log-probabilities {N, C} (or {C}, {N, C, d...}) and integer labels from 1 to C. Options as for
-- nn.CrossEntropyLoss.
define("NLLLoss", "nll_loss", CLASSES)
--- nn.MultiMarginLoss{p = 1, margin = 1, weight, reduction = "mean"}: the mean over the classes j
-- other than the label y of max(margin - x[y] + x[j], 0)^p, for scores {N, C} or {C} and labels {N}
-- or {} from 1 to C. Raises an error unless p is 1 or 2.
define("MultiMarginLoss", "multi_margin_loss",
  "int p = 1, float margin = 1, Tensor? weight = nil, " .. LEGACY, {
    prepare = function(self)
      args.check(self.p == 1 or self.p == 2,
        "MultiMarginLoss: expected 1 or 2 for argument 'p', got %d", self.p)
    end,
  })
--- nn.MultiLabelMarginLoss{reduction = "mean"}: the hinge loss of several labels for each row of
-- {N, C} or {C}: see F.multilabel_margin_loss.
define("MultiLabelMarginLoss", "multilabel_margin_loss", LEGACY)
--- nn.MultiLabelSoftMarginLoss{weight, reduction = "mean"}: the binary cross entropy of logits {N,
-- C} and targets of 0 and 1 of this shape, averaged over the classes.
define("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss",
  "Tensor? weight = nil, " .. LEGACY)

-- ---- probabilities

--- nn.BCELoss{weight, reduction = "mean"}: the binary cross entropy -(t log x + (1 - t) log(1 - x))
-- of probabilities x and targets t of the same shape.
define("BCELoss", "binary_cross_entropy", "Tensor? weight = nil, " .. LEGACY)
--- nn.BCEWithLogitsLoss{weight, reduction = "mean", pos_weight}: the binary cross entropy of
-- sigmoid(x), computed without overflow; pos_weight scales the terms of positive targets.
define("BCEWithLogitsLoss", "binary_cross_entropy_with_logits",
  "Tensor? weight = nil, " .. LEGACY .. ", Tensor? pos_weight = nil")
--- nn.KLDivLoss{reduction = "mean", log_target = false}: the Kullback-Leibler divergence t (log t -
-- x) of log-probabilities x from targets t; "batchmean" divides the sum by the batch size. With
-- log_target, the target holds logarithms, too.
define("KLDivLoss", "kl_div", SIZE_AVERAGE .. ", bool? reduce = nil, "
  .. "'mean'|'sum'|'none'|'batchmean' reduction = 'mean', bool log_target = false")
--- nn.PoissonNLLLoss{log_input = true, full = false, eps = 1e-8, reduction = "mean"}: the negative
-- log-likelihood of counts under Poisson distributions, given the logarithms of their rates, or
-- the rates with log_input = false; `full` adds Stirling's approximation.
define("PoissonNLLLoss", "poisson_nll_loss", "bool log_input = true, bool full = false, "
  .. SIZE_AVERAGE .. ", float eps = 1e-8, " .. REDUCE)
--- nn.GaussianNLLLoss{full = false, eps = 1e-6, reduction = "mean"}: loss(input, target, var), the
-- negative log-likelihood of targets under normal distributions of mean `input` and variance `var`
-- (a tensor or a number), at least eps; `full` adds the constant term.
define("GaussianNLLLoss", "gaussian_nll_loss",
  "bool full = false, float eps = 1e-6, " .. REDUCTION)
--- nn.CTCLoss{blank = 1, reduction = "mean", zero_infinity = false}: loss(log_probs, targets,
-- input_lengths, target_lengths), connectionist temporal classification (Graves et al. 2006) of
-- log_probs {T, N, C} and labels {N, S}; the blank and the labels are from 1 to C. See F.ctc_loss.
define("CTCLoss", "ctc_loss", "int blank = 1, " .. REDUCTION .. ", bool zero_infinity = false")

-- ---- margins and distances

--- nn.HingeEmbeddingLoss{margin = 1, reduction = "mean"}: x where the target is 1, max(margin - x,
-- 0) where it is -1.
define("HingeEmbeddingLoss", "hinge_embedding_loss", "float margin = 1, " .. LEGACY)
--- nn.SoftMarginLoss{reduction = "mean"}: log(1 + exp(-t x)) for targets t of 1 and -1.
define("SoftMarginLoss", "soft_margin_loss", LEGACY)
--- nn.CosineEmbeddingLoss{margin = 0, reduction = "mean"}: loss(x1, x2, target), 1 - cos(x1, x2)
-- where the target is 1, max(cos(x1, x2) - margin, 0) where it is -1, of rows {N, D} or {D}.
define("CosineEmbeddingLoss", "cosine_embedding_loss", "float margin = 0, " .. LEGACY,
  {tensors = 3})
--- nn.MarginRankingLoss{margin = 0, reduction = "mean"}: loss(x1, x2, target), max(-t (x1 - x2) +
-- margin, 0): x1 should rank higher where the target t is 1, lower where it is -1.
define("MarginRankingLoss", "margin_ranking_loss", "float margin = 0, " .. LEGACY, {tensors = 3})
--- nn.TripletMarginLoss{margin = 1, p = 2, eps = 1e-6, swap = false, reduction = "mean"}:
-- loss(anchor, positive, negative), max(d(anchor, positive) - d(anchor, negative) + margin, 0) for
-- the p-norm d of rows {N, D}; `swap` takes the smaller distance of the negative from anchor and
-- positive.
define("TripletMarginLoss", "triplet_margin_loss", "float margin = 1, float p = 2, "
  .. "float eps = 1e-6, bool swap = false, " .. LEGACY, {tensors = 3})
--- nn.TripletMarginWithDistanceLoss{distance_function, margin = 1, swap = false, reduction =
-- "mean"}: nn.TripletMarginLoss with a function of two tensors as the distance, by default
-- F.pairwise_distance.
define("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss",
  "function? distance_function = nil, float margin = 1, bool swap = false, " .. REDUCTION,
  {tensors = 3})

return losses
