--- Connectionist temporal classification (Graves et al. 2006): kernels on the CPU, a composite
-- elsewhere.
--
-- The path of a target of S labels has 2 S + 1 positions: its labels with blanks around them. The
-- forward variables alpha and the backward variables beta are logarithms, {N, 2 S + 1} at each
-- time, which include the log probability of their time.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"
local ops = core._ops
local REDUCTION = require("lutra.internal.reductions").REDUCTION

local TITLE <const> = "ctc_loss"
local infinity <const> = math.huge

-- log(e^a + e^b + e^c), where each may be -inf.
local function add_logs(a, b, c)
  local most = lt.maximum(a, b)
  if c then most = lt.maximum(most, c) end
  local pivot = most:masked_fill(most:eq(-infinity), 0)
  local total = (a - pivot):exp() + (b - pivot):exp()
  if c then total = total + (c - pivot):exp() end
  return total:log() + pivot
end

-- Moves the columns of {N, L} by `count` to the right (to the left if negative), filling with -inf.
local function shifted(x, count)
  local n, length = x:size(1), x:size(2)
  local fill = lt.full({n, math.min(math.abs(count), length)}, -infinity,
    {dtype = x.dtype, device = x.device})
  if math.abs(count) >= length then return fill end
  if count > 0 then return lt.cat({fill, x:narrow(2, 1, length - count)}, 2) end
  return lt.cat({x:narrow(2, 1 - count, length + count), fill}, 2)
end

-- What the recursions need: log probabilities of the positions {T, N, L}, which positions may be
-- reached from two positions before, and the lengths.
local function prepare(log_probs, labels, lengths, blank)
  local times, n = log_probs:size(1), log_probs:size(2)
  local s = labels:size(2)
  local path = lt.full({n, 2 * s + 1}, blank, {dtype = "int64", device = labels.device})
  if s > 0 then
    path:as_strided({n, s}, {2 * s + 1, 2}, 1):copy_(labels)
  end
  local skips = lt.zeros_like(path):to "bool"
  if s > 1 then
    local later, earlier = labels:narrow(2, 2, s - 1), labels:narrow(2, 1, s - 1)
    skips:as_strided({n, s - 1}, {2 * s + 1, 2}, 3)
      :copy_(later:ne(earlier):logical_and(later:ne(blank)))
  end
  local wide = path:unsqueeze(1):expand(times, n, 2 * s + 1)
  return {path = wide, values = log_probs:gather(3, wide), skips = skips, times = times,
    inputs = lt.tensor(lengths.inputs, {dtype = "int64", device = labels.device}):unsqueeze(2),
    targets = lt.tensor(lengths.targets, {dtype = "int64", device = labels.device}):unsqueeze(2)}
end

local function forward_variables(p)
  local at = p.values:select(1, 1)
  local positions = lt.arange(1, at:size(2), {device = at.device}):unsqueeze(1)
  local reachable = positions:le(1):logical_or(positions:eq(2):logical_and(p.targets:gt(0)))
  local alpha = at:masked_fill(reachable:logical_not(), -infinity)
  local list = {alpha}
  for t = 2, p.times do
    local two = shifted(alpha, 2):masked_fill(p.skips:logical_not(), -infinity)
    local next_ = add_logs(alpha, shifted(alpha, 1), two) + p.values:select(1, t)
    alpha = lt.where(p.inputs:ge(t), next_, alpha)
    list[t] = alpha
  end
  return lt.stack(list)
end

-- The negative log likelihood of each target: the paths that end in its last label or blank.
local function likelihood(p, alpha)
  local last = alpha:select(1, p.times)
  local blank = last:gather(2, p.targets * 2 + 1)
  local label = last:gather(2, (p.targets * 2):clamp(1)):masked_fill(p.targets:eq(0), -infinity)
  local loss = -add_logs(blank, label):squeeze(2)
  local none = p.inputs:squeeze(2):eq(0) -- only the empty target has a path of no steps
  return lt.where(none, lt.where(p.targets:squeeze(2):eq(0), lt.zeros_like(loss),
    lt.full_like(loss, infinity)), loss)
end

local function backward_variables(p)
  local positions = lt.arange(1, p.values:size(3), {device = p.values.device}):unsqueeze(1)
  local ends = positions:eq(p.targets * 2 + 1):logical_or(positions:eq(p.targets * 2))
  local beta = lt.full_like(p.values:select(1, 1), -infinity)
  local skips = shifted(p.skips:to(beta.dtype):masked_fill(p.skips:logical_not(), -infinity), -2)
  local list = {}
  for t = p.times, 1, -1 do
    local at = p.values:select(1, t)
    local two = shifted(beta, -2):masked_fill(skips:eq(-infinity), -infinity)
    local next_ = add_logs(beta, shifted(beta, -1), two) + at
    local first = at:masked_fill(ends:logical_not(), -infinity)
    beta = lt.where(p.inputs:eq(t), first,
      lt.where(p.inputs:gt(t), next_, lt.full_like(at, -infinity)))
    list[t] = beta
  end
  return lt.stack(list)
end

-- The gradient: e^x minus the probability of each label at each time, given the target.
local Gradient = lt.autograd.Function:extend "ctc_loss"

function Gradient.forward(_, log_probs, g, state, zero_infinity)
  local p, alpha, loss = state.prepared, state.alpha, state.loss
  local joint = alpha + backward_variables(p)
  local posterior = (joint - p.values + loss:unsqueeze(2)):exp()
    :masked_fill(joint:eq(-infinity), 0)
  local expected = lt.zeros_like(log_probs):scatter_add(3, p.path, posterior)
  local times = lt.arange(1, p.times, {device = log_probs.device}):reshape(p.times, 1, 1)
  local result = (log_probs:exp() - expected) * g:reshape(1, g:numel(), 1)
  result = result:masked_fill(times:gt(p.inputs:unsqueeze(1)), 0)
  if zero_infinity then
    result = result:masked_fill(loss:eq(infinity):reshape(1, loss:numel(), 1), 0)
  end
  return result
end

function Gradient.backward()
  args.fail "ctc_loss: cannot compute second derivatives: the gradient is not differentiable"
end

local Loss = lt.autograd.Function:extend "ctc_loss"

-- Returns lengths as a tensor: the one that the caller gave, unless it is saved for the gradient.
local function length_tensor(list, given, device, saved)
  if not saved and lt.is_tensor(given) and given.ndim == 1 and given.dtype == "int64"
    and given.device == device then
    return given
  end
  return lt.tensor(list, {dtype = "int64", device = device})
end

-- The gradient, computed by the kernel of the device.
local KernelGradient = lt.autograd.Function:extend "ctc_loss"

function KernelGradient.forward(_, log_probs, g, state)
  return ops._ctc_loss_backward(g, log_probs, state.labels, state.inputs, state.targets,
    state.blank, state.zero_infinity, state.alpha)
end
KernelGradient.backward = Gradient.backward

local function kernel_loss(ctx, log_probs, labels, lengths, blank, zero_infinity)
  local device, saved = log_probs.device, ctx ~= nil
  local inputs = length_tensor(lengths.inputs, lengths.given_inputs, device, saved)
  local targets = length_tensor(lengths.targets, lengths.given_targets, device, saved)
  local loss, alpha = ops._ctc_loss(log_probs, labels, inputs, targets, blank)
  if ctx then
    ctx:save_for_backward(log_probs)
    ctx.kernel_state = {labels = labels:clone(), inputs = inputs, targets = targets, blank = blank,
      zero_infinity = zero_infinity, alpha = alpha}
  end
  return zero_infinity and loss:masked_fill(loss:eq(infinity), 0) or loss
end

local supported = {} -- whether there is a kernel, by device and dtype

local function has_kernel(log_probs)
  local key = log_probs.device .. " " .. log_probs.dtype
  if supported[key] == nil then
    supported[key] = core._supported("_ctc_loss", key:match "^%a+", log_probs.dtype)
  end
  return supported[key]
end

function Loss.forward(ctx, log_probs, labels, lengths, blank, zero_infinity)
  if has_kernel(log_probs) then
    return kernel_loss(ctx, log_probs, labels, lengths, blank, zero_infinity)
  end
  local p = prepare(log_probs, labels, lengths, blank)
  local alpha = forward_variables(p)
  local loss = likelihood(p, alpha)
  ctx:save_for_backward(log_probs)
  ctx.state, ctx.zero_infinity = {prepared = p, alpha = alpha, loss = loss}, zero_infinity
  return zero_infinity and loss:masked_fill(loss:eq(infinity), 0) or loss
end

function Loss.backward(ctx, g)
  if ctx.kernel_state then return KernelGradient(ctx:saved(), g, ctx.kernel_state) end
  return Gradient(ctx:saved(), g, ctx.state, ctx.zero_infinity)
end

-- Returns the loss of each instance. A kernel's needs no Function where nothing is recorded.
local function loss_of(log_probs, ...)
  local recorded = log_probs.requires_grad and core.is_grad_enabled()
  if not recorded and has_kernel(log_probs) then return kernel_loss(nil, log_probs, ...) end
  return Loss(log_probs, ...)
end

-- ---- arguments

local function numbers_of(name, v, n)
  local list = type(v) == "number" and {v} or v
  if lt.is_tensor(v) then
    if v.ndim ~= 1 then v = v:reshape(-1) end
    list = (v.is_cpu and v or v:to "cpu"):totable()
  end
  for i, length in ipairs(list) do
    if math.type(length) ~= "integer" then
      args.expect(false, TITLE, "an integer", ("%s[%d]"):format(name, i), length)
    end
  end
  args.check(#list == n, "%s: expected %d numbers for argument '%s', one for each instance, got %d",
    TITLE, n, name, #list)
  return list
end

-- Targets that follow each other in a vector, as the rows of a matrix.
local function padded(targets, lengths)
  local longest, total = 0, 0
  for _, length in ipairs(lengths) do
    longest, total = math.max(longest, length), total + length
  end
  args.check(targets:numel() == total, "%s: expected the sum of target_lengths, %d, labels for "
    .. "argument 'targets', got %d", TITLE, total, targets:numel())
  local rows, at = {}, 0
  for i, length in ipairs(lengths) do
    local row = {}
    for j = 1, longest do row[j] = j <= length and at + j or 1 end
    rows[i], at = row, at + length
  end
  if longest == 0 then return targets:new_zeros(#lengths, 0) end
  local index = lt.tensor(rows, {dtype = "int64", device = targets.device})
  return targets:index_select(1, index:reshape(-1)):reshape(#lengths, longest)
end

local function check_lengths(lengths, times, longest)
  local function check(name, list, most)
    for _, length in ipairs(list) do
      if length < 0 or length > most then
        args.fail("%s: expected numbers from 0 to %d for argument '%s', got %d", TITLE, most, name,
          length)
      end
    end
  end
  check("input_lengths", lengths.inputs, times)
  check("target_lengths", lengths.targets, longest)
end

lt._define{
  signature = "lt.ctc_loss(Tensor log_probs, Tensor targets, Tensor|ints input_lengths, "
    .. "Tensor|ints target_lengths, int blank = 1, " .. REDUCTION
    .. ", bool zero_infinity = false)",
  doc = "Connectionist temporal classification: the negative log likelihood of targets {N, S}, or "
    .. "{S1 + S2 + ...}, under log_probs {T, N, C}; for one instance {T, C} and {S}. Labels and "
    .. "blank are from 1 to C. The gradient is that of the scores before log_softmax (Graves et "
    .. "al. 2006).",
  also = {"F"},
  example = "F.ctc_loss(lt.zeros(4, 1, 3), lt.tensor{{2, 3}}, {4}, {2})",
  fn = function(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    local single = log_probs.ndim == 2
    if not single and log_probs.ndim ~= 3 then
      args.fail("%s: expected shape {T, N, C} or {T, C} for argument 'log_probs', got %s", TITLE,
        log_probs.shape)
    end
    if single then log_probs = log_probs:unsqueeze(2) end
    local times, n, classes = table.unpack(log_probs.shape)
    args.check(times > 0, "%s: expected at least one time for argument 'log_probs', got shape %s",
      TITLE, log_probs.shape)
    args.check(blank >= 1 and blank <= classes,
      "%s: expected a label from 1 to %d for argument 'blank', got %d", TITLE, classes, blank)
    if log_probs.is_meta then
      return reduction == "none" and not single and log_probs:new_empty(n) or log_probs:new_empty{}
    end
    local lengths = {inputs = numbers_of("input_lengths", input_lengths, n),
      targets = numbers_of("target_lengths", target_lengths, n),
      given_inputs = input_lengths, given_targets = target_lengths}
    if targets.dtype ~= "int64" or targets.device ~= log_probs.device then
      targets = targets:to{log_probs.device, dtype = "int64"}
    end
    if targets.ndim == 1 then targets = padded(targets, lengths.targets) end
    args.check(targets.ndim == 2 and targets:size(1) == n, "%s: expected shape {%d, S} or {S} for "
      .. "argument 'targets', got %s", TITLE, n, targets.shape)
    check_lengths(lengths, times, targets:size(2))
    local loss = loss_of(log_probs, targets, lengths, blank, zero_infinity)
    if reduction == "mean" then
      local sizes = {}
      for i, length in ipairs(lengths.targets) do sizes[i] = math.max(length, 1) end
      return (loss / lt.tensor(sizes, {dtype = loss.dtype, device = loss.device})):mean()
    elseif reduction == "sum" then
      return loss:sum()
    end
    return single and loss:squeeze(1) or loss
  end,
}
