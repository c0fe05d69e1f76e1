--- Adafactor: adaptive rates with sublinear memory (Shazeer and Stern 2018).

local lt = require "lutra"
local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"

--- optim.Adafactor(params, {lr = 0.01, beta2_decay = -0.8, eps = {false, 1e-3}, d = 1, weight_decay
-- = 0, maximize = false}): the second moment of a matrix is estimated from the means of its rows
-- and columns, so that its state has as many numbers as it has rows and columns (those of its last
-- two dims). In step t, beta2 = 1 - t^beta2_decay, the step size is max(eps[2], rms(p)) * min(lr, 1
-- / sqrt(t)), and the update is divided by max(1, rms(update) / d). eps[1], false for the epsilon
-- of the dtype, bounds the second moment below. weight_decay * lr * p is subtracted first. foreach
-- has no effect. Each parameter needs two norms on the host, so a step synchronizes with the
-- device.
local Adafactor = Optimizer:extend("Adafactor",
  "float(>=0) lr = 0.01, float beta2_decay = -0.8, any? eps = nil, float d = 1, "
  .. "float(>=0) weight_decay = 0, bool? foreach = nil, bool maximize = false")

--- Returns all settings of a group from a table of some of them.
function Adafactor:complete(given)
  local settings = Optimizer.complete(self, given)
  if settings.eps == nil then settings.eps = {false, 1e-3} end
  return settings
end

local function is_bound(x) return type(x) == "number" and x >= 0 end

--- Raises an error unless beta2_decay <= 0, d >= 1 and eps is {number or false, number}.
function Adafactor.check_group(_, group)
  local eps = group.eps
  args.check(type(eps) == "table" and (not eps[1] or is_bound(eps[1])) and is_bound(eps[2]),
    "Adafactor: expected {a number or false, a number} for argument 'eps', got %s", args.show(eps))
  args.check(group.beta2_decay <= 0,
    "Adafactor: expected a number of at most 0 for argument 'beta2_decay', got %g",
    group.beta2_decay)
  args.check(group.d >= 1, "Adafactor: expected a number of at least 1 for argument 'd', got %g",
    group.d)
end

-- Returns the shape of a parameter with a last dim (-1) or last but one (-2) of size 1.
local function reduced(p, dim)
  local shape = {}
  for i = 1, p.ndim do shape[i] = i == p.ndim + 1 + dim and 1 or p.shape[i] end
  return shape
end

--- Returns the shape of a state tensor; see lutra.optim.optimizer.
function Adafactor.state_shape(_, name, p)
  if name == "variance" then return p.shape end
  return lt.empty(reduced(p, name == "row_var" and -1 or -2), {device = "meta"}).shape
end

-- Returns the root of the mean square of a tensor's elements.
local function rms(x) return x:norm():item() / math.sqrt(x:numel()) end

-- Updates the averages and returns the estimate of the second moment.
local function estimate(state, grad, p, weight, eps)
  if grad.ndim <= 1 then
    state.variance = state.variance or lt.zeros_like(p)
    return state.variance:lerp_(grad * grad, weight):clone()
  end
  local function mean_square(dim)
    return lt.linalg.vector_norm(grad, {dim = dim, keepdim = true}):square():div(grad:size(dim))
  end
  state.row_var = state.row_var or grad:new_zeros(reduced(p, -1))
  state.col_var = state.col_var or grad:new_zeros(reduced(p, -2))
  state.row_var:lerp_(mean_square(-1), weight)
  state.col_var:lerp_(mean_square(-2), weight)
  local mean = state.row_var:mean{dim = -2, keepdim = true}:clamp{min = eps}
  return state.row_var:matmul(state.col_var):div_(mean)
end

--- Updates one parameter in place; see lutra.optim.optimizer.
function Adafactor.update(_, p, grad, state, group)
  if group.maximize then grad = -grad end
  local eps = group.eps[1] or lt.finfo(p.dtype).eps
  local step = (state.step or 0) + 1
  local rho = math.min(group.lr, 1 / math.sqrt(step))
  local alpha = math.max(group.eps[2], rms(p)) * rho
  if group.weight_decay ~= 0 then p:mul_(1 - group.lr * group.weight_decay) end
  local square = estimate(state, grad, p, step ^ group.beta2_decay, eps)
  local update = square:clamp_{min = eps * eps}:rsqrt_():mul_(grad)
  p:add_(update, {alpha = -alpha / math.max(1, rms(update) / group.d)})
  state.step = step
end

return Adafactor
