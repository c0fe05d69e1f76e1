--- Losses, as composites of other ops.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local reductions = require "lutra.internal.reductions"
local core = require "lutra.core"
local ops = core._ops
local F = require "lutra.nn.functional"

local REDUCTION, LEGACY = reductions.REDUCTION, reductions.LEGACY

-- Returns the loss reduced as the parameters of LEGACY state.
local function reduced(loss, size_average, reduce, reduction)
  reduction = reductions.resolve(size_average, reduce, reduction)
  if reduction == "none" then return loss end
  return reduction == "sum" and loss:sum() or loss:mean()
end

local function same_shape(title, x, y)
  local expected, got = x.shape, y.shape
  if expected ~= got then
    args.fail("%s: expected shape %s, input's, for argument 'target', got %s", title, expected, got)
  end
end

-- ---- distances

local warned = false

-- Checks that x and y can be broadcast together; warns when their shapes differ.
local function check_shapes(title, x, y)
  if x.shape == y.shape then return end
  tensors.check_broadcast(title, x, y)
  if warned then return end
  warned = true
  warn(("%s: the target's shape %s is not the input's shape %s: both are broadcast, which is "
    .. "likely to be a mistake"):format(title, tostring(y.shape), tostring(x.shape)))
end

-- Defines F.<name>, an op of the runtime with a warning.
local function define_difference(name, doc)
  lt._define{
    signature = "F.F_" .. name .. "(Tensor input, Tensor target, " .. LEGACY
      .. ", Tensor? weight = nil)",
    doc = doc .. " Different shapes are broadcast, with a warning.",
    example = ("F.%s(lt.tensor{1., 2.}, lt.tensor{1.5, 4.})"):format(name),
    fn = function(x, y, size_average, reduce, reduction, weight)
      check_shapes(name, x, y)
      return lt._ops[name](x, y, size_average, reduce, reduction, weight)
    end,
  }
end

define_difference("mse_loss",
  "Mean squared error: the mean of (input - target)^2, with weights of input's shape.")
define_difference("l1_loss",
  "Mean absolute error: the mean of |input - target|, with weights of input's shape.")

-- Huber's loss by element, divided by `divisor`, of the function `title`.
local function huber(title, x, y, delta, divisor)
  if x:is_complex() or not y:is_floating_point() then tensors.check_float(title, "input", x) end
  if y:is_complex() then tensors.check_float(title, "target", y) end
  return lt._ops._huber(x, y, delta, divisor)
end

lt._define{
  signature = "F.smooth_l1_loss(Tensor input, Tensor target, " .. LEGACY
    .. ", float(>=0) beta = 1)",
  doc = "Mean of d^2 / (2 beta) for differences |d| below beta, of |d| - beta / 2 beyond.",
  example = "F.smooth_l1_loss(lt.tensor{1., 2.}, lt.tensor{1.5, 4.})",
  fn = function(x, y, size_average, reduce, reduction, beta)
    check_shapes("smooth_l1_loss", x, y)
    local loss = beta > 0 and huber("smooth_l1_loss", x, y, beta, beta) or (x - y):abs()
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.huber_loss(Tensor input, Tensor target, " .. REDUCTION
    .. ", float delta = 1, Tensor? weight = nil)",
  doc = "Mean of d^2 / 2 for differences |d| up to delta, of delta (|d| - delta / 2) beyond.",
  example = "F.huber_loss(lt.tensor{1., 2.}, lt.tensor{1.5, 4.})",
  fn = function(x, y, reduction, delta, weight)
    check_shapes("huber_loss", x, y)
    args.expect(delta > 0, "huber_loss", "a number above 0", "delta", delta)
    local loss = huber("huber_loss", x, y, delta, 1)
    if weight then
      args.check(weight.shape == x.shape, "huber_loss: expected shape %s, input's, for argument "
        .. "'weight', got %s", x.shape, weight.shape)
      loss = loss * weight
    end
    return reduced(loss, nil, nil, reduction)
  end,
}

lt._define{
  signature = "lt.pairwise_distance(Tensor x1, Tensor x2, float p = 2, float eps = 1e-6, "
    .. "bool keepdim = false)",
  doc = "The p-norm of x1 - x2 + eps over the last dimension.",
  also = {"F"},
  example = "F.pairwise_distance(lt.ones(2, 3), lt.zeros(2, 3))",
  fn = function(a, b, p, eps, keepdim)
    local recorded = lt.is_grad_enabled() and (a.requires_grad or b.requires_grad)
      or tensors.are_batched()
    local d = a - b
    d = (recorded or not d.dtype:find "^float") and d + eps or d:add_(eps)
    if p == 2 and d:is_floating_point() and d.ndim > 0 then return ops._norm(d, -1, keepdim) end
    return d:norm{p = p, dim = -1, keepdim = keepdim}
  end,
}

-- ---- probabilities

lt._define{
  signature = "F.binary_cross_entropy(Tensor input, Tensor target, Tensor? weight = nil, "
    .. LEGACY .. ")",
  doc = "Mean of -(t log x + (1 - t) log(1 - x)) for probabilities x and targets t of one shape.",
  example = "F.binary_cross_entropy(lt.tensor{0.9, 0.2}, lt.tensor{1., 0.})",
  fn = function(x, t, weight, size_average, reduce, reduction)
    tensors.check_float("binary_cross_entropy", "input", x)
    same_shape("binary_cross_entropy", x, t)
    if not x.is_meta and x:numel() > 0 then
      local least, largest = ops._aminmax(x:detach())
      if not (least:item() >= 0 and largest:item() <= 1) then
        args.fail("binary_cross_entropy: expected numbers from 0 to 1 for argument 'input'"
          .. "\nhint: F.binary_cross_entropy_with_logits takes the values before a sigmoid")
      end
    end
    local loss = ops._binary_cross_entropy(x, t)
    if weight then loss = loss * weight end
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.poisson_nll_loss(Tensor input, Tensor target, bool log_input = true, "
    .. "bool full = false, " .. reductions.SIZE_AVERAGE .. ", float eps = 1e-8, "
    .. reductions.REDUCE .. ")",
  doc = "Negative log likelihood of counts under a Poisson distribution: e^x - t x for logarithms "
    .. "x of the rate, x - t log(x + eps) for rates; full adds Stirling's approximation of log t!.",
  example = "F.poisson_nll_loss(lt.tensor{0., 1.}, lt.tensor{1., 3.})",
  fn = function(x, t, log_input, full, size_average, eps, reduce, reduction)
    tensors.check_broadcast("poisson_nll_loss", x, t)
    local loss
    if log_input then
      loss = x:exp() - t * x
    else
      loss = x - t * (x + eps):log()
    end
    if full then
      local stirling = t * t:log() - t + (t * (2 * math.pi)):log() * 0.5
      loss = loss + stirling:masked_fill(t:le(1), 0)
    end
    return reduced(loss, size_average, reduce, reduction)
  end,
}

-- The variance of gaussian_nll_loss in a shape that is broadcast with the input.
local function variance_of(x, var)
  if not lt.is_tensor(var) then
    args.expect(type(var) == "number" and var >= 0, "gaussian_nll_loss", "a number from 0", "var",
      var)
    return lt.full_like(x, var)
  end
  if var.shape == x.shape then return var end
  local lead = {}
  for d = 1, x.ndim - 1 do lead[d] = x:size(d) end
  local same = var.ndim >= x.ndim - 1
  for d = 1, x.ndim - 1 do same = same and var:size(d) == lead[d] end
  if same and var.ndim == x.ndim - 1 then return var:unsqueeze(-1) end
  args.check(same and var.ndim == x.ndim and var:size(-1) == 1,
    "gaussian_nll_loss: expected shape %s, or the same with a last size of 1 or without it, for "
    .. "argument 'var', got %s", x.shape, var.shape)
  return var
end

lt._define{
  signature = "F.gaussian_nll_loss(Tensor input, Tensor target, Operand var, bool full = false, "
    .. "float eps = 1e-6, " .. REDUCTION .. ")",
  doc = "Negative log likelihood of the target under normal distributions with mean input and "
    .. "variance var, at least eps: (log var + (x - t)^2 / var) / 2; full adds log(2 pi) / 2.",
  example = "F.gaussian_nll_loss(lt.tensor{1., 2.}, lt.tensor{1.5, 2.}, lt.ones(2))",
  fn = function(x, t, var, full, eps, reduction)
    tensors.check_broadcast("gaussian_nll_loss", x, t)
    var = variance_of(x, var)
    local value = var:detach()
    args.check(var.is_meta or var:numel() == 0 or not value:lt(0):any():item(),
      "gaussian_nll_loss: expected no negative numbers for argument 'var'")
    var = var + (value:clamp{min = eps} - value) -- the minimum does not change the gradient
    local loss = (var:log() + (x - t):square() / var) * 0.5
    if full then loss = loss + 0.5 * math.log(2 * math.pi) end
    return reduced(loss, nil, nil, reduction)
  end,
}

-- ---- margins

lt._define{
  signature = "F.hinge_embedding_loss(Tensor input, Tensor target, float margin = 1, " .. LEGACY
    .. ")",
  doc = "Mean of x where the target is 1, of max(margin - x, 0) where it is -1.",
  example = "F.hinge_embedding_loss(lt.tensor{0.5, 2.}, lt.tensor{1., -1.})",
  fn = function(x, t, margin, size_average, reduce, reduction)
    tensors.check_broadcast("hinge_embedding_loss", x, t)
    -- the margin in x's dtype, as in PyTorch
    local apart = (lt.tensor(margin, {dtype = x.dtype, device = x.device}) - x):clamp{min = 0}
    local loss = lt.where(t:ne(1), apart, lt.zeros_like(apart))
      + lt.where(t:ne(-1), x, lt.zeros_like(x))
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, "
    .. "float margin = 0, " .. LEGACY .. ")",
  doc = "Mean of 1 - cos where the target is 1, of max(cos - margin, 0) where it is -1; cos is the "
    .. "cosine of the rows of input1 and input2, {N, D} or {D}.",
  example = "F.cosine_embedding_loss(lt.ones(2, 3), lt.ones(2, 3), lt.tensor{1, -1})",
  fn = function(a, b, t, margin, size_average, reduce, reduction)
    args.check(t.ndim <= 1, "cosine_embedding_loss: expected shape {} or {N} for argument "
      .. "'target', got %s", t.shape)
    args.check(a.ndim == t.ndim + 1 and b.ndim == t.ndim + 1,
      "cosine_embedding_loss: expected %d dimensions for arguments 'input1' and 'input2' with a "
      .. "target of shape %s, got %s and %s", t.ndim + 1, t.shape, a.shape,
      b.shape)
    local norms = ((a * a):sum(-1) + 1e-12) * ((b * b):sum(-1) + 1e-12)
    local cos = (a * b):sum(-1) / norms:sqrt()
    local zero = lt.zeros_like(cos)
    local loss = lt.where(t:eq(1), 1 - cos, zero)
      + lt.where(t:eq(-1), (cos - margin):clamp{min = 0}, zero)
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, "
    .. "float margin = 0, " .. LEGACY .. ")",
  doc = "Mean of max(-t (x1 - x2) + margin, 0): input1 should rank higher where the target is 1, "
    .. "lower where it is -1.",
  example = "F.margin_ranking_loss(lt.tensor{1., 2.}, lt.tensor{2., 1.}, lt.tensor{1., 1.})",
  fn = function(a, b, t, margin, size_average, reduce, reduction)
    local loss = ((b - a) * t + margin):clamp{min = 0}
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.soft_margin_loss(Tensor input, Tensor target, " .. LEGACY .. ")",
  doc = "Mean of log(1 + e^(-t x)) for targets t of 1 and -1.",
  example = "F.soft_margin_loss(lt.tensor{1., -2.}, lt.tensor{1., 1.})",
  fn = function(x, t, size_average, reduce, reduction)
    tensors.check_broadcast("soft_margin_loss", x, t)
    tensors.check_float("soft_margin_loss", "input", x)
    return reduced((-t * x):exp():log1p(), size_average, reduce, reduction)
  end,
}

-- Checks that x is {C} or {N, C}; returns it as {N, C}.
local function rows_of(title, x)
  local n = x.ndim
  if n > 2 then
    args.fail("%s: expected shape {C} or {N, C} for argument 'input', got %s", title, x.shape)
  end
  return n == 2 and x or x:reshape(1, -1)
end

-- Checks that a target has an integer dtype.
local function check_classes(title, target)
  if target.dtype:find "^u?int" then return end
  args.fail("%s: expected an integer dtype for argument 'target', an index tensor, got %q\n"
    .. 'hint: target:to("int64")', title, target.dtype)
end

-- Returns whether the CPU's kernels, which have no gradients, compute a loss of x for targets y.
local function has_kernel(x, y)
  return x.is_cpu and y.is_cpu and not (x.requires_grad and lt.is_grad_enabled())
    and x:is_floating_point() and not tensors.are_batched()
end

-- The terms of multi_margin_loss, summed over the classes, by ops that have gradients.
local function multi_margin(rows, labels, p, margin, weight)
  local at = labels:unsqueeze(2)
  local own_scores = core._in_name_of("_multi_margin_loss", 2, 1, rows.gather, rows, 2, at)
  local terms = (margin - own_scores + rows):clamp{min = 0}
  if p == 2 then terms = terms:square() end
  if weight then terms = terms * weight:index_select(1, labels):unsqueeze(2) end
  local own = lt.arange(1, rows:size(2), {device = rows.device}):eq(at)
  return terms:masked_fill(own, 0):sum(2) / rows:size(2)
end

lt._define{
  signature = "F.multi_margin_loss(Tensor input, Index target, int p = 1, float margin = 1, "
    .. "Tensor? weight = nil, " .. LEGACY .. ")",
  doc = "Hinge loss over classes: the mean over the classes j other than the target y of "
    .. "max(margin - x[y] + x[j], 0)^p, times weight[y], for scores {N, C} or {C}.",
  example = "F.multi_margin_loss(lt.tensor{{0.1, 0.2, 0.7}}, lt.tensor{3})",
  fn = function(x, y, p, margin, weight, size_average, reduce, reduction)
    args.check(p == 1 or p == 2, "multi_margin_loss: expected 1 or 2 for argument 'p', got %d", p)
    local rows = rows_of("multi_margin_loss", x)
    if y:numel() ~= rows:size(1) or y.ndim > 1 then
      args.fail("multi_margin_loss: expected shape {%d}, a class for each row, for argument "
        .. "'target', got %s", rows:size(1), y.shape)
    end
    check_classes("multi_margin_loss", y)
    if weight and (weight.ndim ~= 1 or weight:size(1) ~= rows:size(2)) then
      args.fail("multi_margin_loss: expected shape {%d} for argument 'weight', got %s",
        rows:size(2), weight.shape)
    end
    local fast = has_kernel(x, y)
      and (not weight or has_kernel(weight, y) and weight.dtype == x.dtype)
    local labels = y.ndim == 1 and y or y:reshape(-1)
    local loss = fast and ops._multi_margin_loss(rows, labels, weight, p, margin)
      or multi_margin(rows, labels, p, margin, weight)
    if x.ndim <= 1 and y.ndim == 0 then loss = loss:squeeze(1) end
    return reduced(loss, size_average, reduce, reduction)
  end,
}

-- The terms of multilabel_margin_loss, summed over the classes, by ops that have gradients.
local function multilabel_margin(rows, labels)
  labels = labels:to "int64"
  local listed = labels:ge(1):to("int64"):cumprod(2)
  local at = (labels * listed):clamp{min = 1}
  local counts = core._in_name_of("_multilabel_margin_loss", 2, 2, rows.scatter_add,
    lt.zeros_like(labels), 2, at, listed)
  local inside = counts:gt(0)
  if tensors.has_values(labels) and rows:numel() > 0 then
    local most = math.max(listed:sum(2):max():item(), 1) -- the longest list
    at, listed = at:narrow(2, 1, most), listed:narrow(2, 1, most)
  end
  local terms = (1 - rows:gather(2, at):unsqueeze(3) + rows:unsqueeze(2)):clamp{min = 0}
  local left_out = listed:eq(0):unsqueeze(3):logical_or(inside:unsqueeze(2))
  return terms:masked_fill(left_out, 0):sum{2, 3} / rows:size(2)
end

lt._define{
  signature = "F.multilabel_margin_loss(Tensor input, Tensor target, " .. LEGACY .. ")",
  doc = "Hinge loss of several classes for each row: the sum over the classes y in the target and "
    .. "the classes j outside of it of max(1 - (x[y] - x[j]), 0), divided by the number of "
    .. "classes. The target has input's shape; a number below 1 ends the list of classes.",
  example = "F.multilabel_margin_loss(lt.tensor{0.1, 0.2, 0.4, 0.8}, lt.tensor{4, 1, 0, 0})",
  fn = function(x, y, size_average, reduce, reduction)
    local title = "multilabel_margin_loss"
    same_shape(title, x, y)
    check_classes(title, y)
    if x.ndim == 0 then x, y = x:unsqueeze(1), y:unsqueeze(1) end
    local single = x.ndim == 1
    local rows, labels = rows_of(title, x), rows_of(title, y)
    local loss = has_kernel(x, y) and ops._multilabel_margin_loss(rows, labels)
      or multilabel_margin(rows, labels)
    if single then loss = loss:squeeze(1) end
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight = nil, "
    .. LEGACY .. ")",
  doc = "Binary cross entropy of logits {..., C}, averaged over the classes, then reduced.",
  example = "F.multilabel_soft_margin_loss(lt.tensor{{1., -2.}}, lt.tensor{{1., 0.}})",
  fn = function(x, t, weight, size_average, reduce, reduction)
    tensors.check_broadcast("multilabel_soft_margin_loss", x, t)
    local loss = -(t * F.logsigmoid(x) + (1 - t) * F.logsigmoid(-x))
    if weight then loss = loss * weight end
    return reduced(loss:mean(-1), size_average, reduce, reduction)
  end,
}

-- max(margin + d(a, p) - d(a, n), 0); with swap, d(p, n) where that is smaller.
local function triplet(anchor, positive, negative, distance, margin, swap)
  local near, far = distance(anchor, positive), distance(anchor, negative)
  if swap then far = lt.minimum(far, distance(positive, negative)) end
  return (near - far + margin):clamp{min = 0}
end

lt._define{
  signature = "F.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, "
    .. "float margin = 1, float p = 2, float eps = 1e-6, bool swap = false, " .. LEGACY .. ")",
  doc = "Mean of max(d(anchor, positive) - d(anchor, negative) + margin, 0) for distances of "
    .. "p-norm; swap takes the smaller distance of the negative from anchor and positive.",
  example = "F.triplet_margin_loss(lt.zeros(2, 3), lt.ones(2, 3), lt.ones(2, 3) * 2)",
  fn = function(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction)
    local function distance(a, b) return F.pairwise_distance(a, b, p, eps) end
    local loss = triplet(anchor, positive, negative, distance, margin, swap)
    return reduced(loss, size_average, reduce, reduction)
  end,
}

lt._define{
  signature = "F.triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, "
    .. "Tensor negative, function? distance_function = nil, float margin = 1, bool swap = false, "
    .. REDUCTION .. ")",
  doc = "triplet_margin_loss with a function of two tensors for the distance, "
    .. "F.pairwise_distance by default.",
  example = "F.triplet_margin_with_distance_loss(lt.zeros(2, 3), lt.ones(2, 3), lt.ones(2, 3) * 2)",
  fn = function(anchor, positive, negative, distance, margin, swap, reduction)
    local function checked(a, b)
      local d = distance(a, b)
      args.check(lt.is_tensor(d), "triplet_margin_with_distance_loss: expected distance_function "
        .. "to return a tensor, got %s", args.show(d))
      return d
    end
    local loss = triplet(anchor, positive, negative, distance and checked or F.pairwise_distance,
      margin, swap)
    return reduced(loss, nil, nil, reduction)
  end,
}

-- ---- classes

lt._define{
  signature = "F.linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, "
    .. "Tensor? linear_bias = nil, Tensor? weight = nil, " .. REDUCTION
    .. ", int? ignore_index = nil, float label_smoothing = 0, table? options = nil)",
  doc = "cross_entropy of the linear layer of input {N, d} or {d} with linear_weight {C, d} or "
    .. "{C, ..., d}. `options`, PyTorch's for computing it in pieces, is accepted and unused.",
  example = "F.linear_cross_entropy(lt.ones(2, 3), lt.ones(4, 3), lt.tensor{1, 4})",
  fn = function(x, weights, target, bias, weight, reduction, ignore_index, label_smoothing)
    local sizes = {}
    for d = 1, x.ndim - 1 do sizes[d] = x:size(d) end
    for d = 1, weights.ndim - 1 do sizes[#sizes + 1] = weights:size(d) end
    local logits = F.linear(x, weights:reshape(-1, weights:size(-1)), bias and bias:reshape(-1))
    return F.cross_entropy{logits:reshape(sizes), target, weight = weight, reduction = reduction,
      ignore_index = ignore_index or -100, label_smoothing = label_smoothing}
  end,
}
