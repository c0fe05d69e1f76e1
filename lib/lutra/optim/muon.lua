--- Muon: momentum that is orthogonalized by Newton-Schulz iterations (Jordan et al. 2024, "Muon: An
-- optimizer for hidden layers in neural networks"; adjust_lr_fn: Liu et al. 2025, "Muon is Scalable
-- for LLM Training").

local lt = require "lutra"
local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"

--- optim.Muon(params, {lr = 1e-3, weight_decay = 0.1, momentum = 0.95, nesterov = true,
-- ns_coefficients = {3.4445, -4.775, 2.0315}, eps = 1e-7, ns_steps = 5, adjust_lr_fn = nil}): for
-- matrices only; vectors, embeddings and the last layer belong to optim.AdamW. m = momentum m + (1
-- - momentum) g, p = p (1 - lr weight_decay) - ratio lr O, where O is m (with nesterov, g +
-- momentum (m - g)) with its singular values moved to about 1, in bfloat16. ratio is sqrt(max(1,
-- rows / columns)), 0.2 sqrt(max(rows, columns)) for adjust_lr_fn = "match_rms_adamw", and
-- sqrt(rows / columns) for "spectral_unclamped".
local Muon = Optimizer:extend("Muon",
  "float(>=0) lr = 0.001, float(>=0) weight_decay = 0.1, float(>=0) momentum = 0.95, "
  .. "bool nesterov = true, floats? ns_coefficients = nil, "
  .. "float(>=0) eps = 1e-7, int(>=0) ns_steps = 5, "
  .. "'original'|'match_rms_adamw'|'spectral_unclamped'? adjust_lr_fn = nil")

local ratios = {
  original = function(rows, columns) return math.sqrt(math.max(1, rows / columns)) end,
  match_rms_adamw = function(rows, columns) return 0.2 * math.sqrt(math.max(rows, columns)) end,
  spectral_unclamped = function(rows, columns) return math.sqrt(rows / columns) end,
}

--- Returns all settings of a group from a table of some of them.
function Muon:complete(given)
  local settings = Optimizer.complete(self, given)
  settings.ns_coefficients = settings.ns_coefficients or {3.4445, -4.775, 2.0315}
  return settings
end

--- Raises an error unless the parameters are matrices, there are three coefficients and less than
-- 100 iterations.
function Muon.check_group(_, group)
  args.check(#group.ns_coefficients == 3,
    "Muon: expected three numbers for argument 'ns_coefficients', got %d", #group.ns_coefficients)
  args.check(group.ns_steps < 100, "Muon: expected fewer than 100 for argument 'ns_steps', got %d",
    group.ns_steps)
  for _, p in ipairs(group.params or {}) do
    args.check(p.ndim == 2,
      "Muon: expected matrices in argument 'params', got a tensor of shape %s", p.shape)
  end
end

--- Returns the shape of a state tensor; see lutra.optim.optimizer.
function Muon.state_shape(_, _, p) return p.shape end

-- Returns the orthogonal matrix nearest to `x`, approximately and in bfloat16.
local function orthogonalized(x, group)
  local a, b, c = table.unpack(group.ns_coefficients)
  local tall = x:size(1) > x:size(2)
  local y = x:to "bfloat16"
  if tall then y = y:t() end
  y = y / y:norm():clamp{min = group.eps}
  for _ = 1, group.ns_steps do
    local gram = y:matmul(y:t())
    y = lt.addmm(y, lt.addmm(gram, gram, gram, {beta = b, alpha = c}), y, {beta = a})
  end
  return tall and y:t() or y
end

--- Updates one parameter in place; see lutra.optim.optimizer.
function Muon.update(_, p, grad, state, group)
  state.momentum_buffer = state.momentum_buffer or lt.zeros_like(grad)
  local average = state.momentum_buffer:lerp_(grad, 1 - group.momentum)
  local update = group.nesterov and grad:lerp(average, group.momentum) or average
  local ratio = ratios[group.adjust_lr_fn or "original"](p:size(1), p:size(2))
  p:mul_(1 - group.lr * group.weight_decay)
  p:add_(orthogonalized(update, group):to(p.dtype), {alpha = -group.lr * ratio})
end

return Muon
