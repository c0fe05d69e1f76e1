--- LBFGS: the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (Nocedal and Wright
-- 2006, Algorithms 7.4 and 7.5), with fixed steps or a line search.
--
-- The parameters are one vector here. The state belongs to the first parameter, as in PyTorch.

local lt = require "lutra"
local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local batches = require "lutra.optim.base.batches"
local strong_wolfe = require "lutra.optim.base.strong_wolfe"

--- optim.LBFGS(params, {lr = 1, max_iter = 20, max_eval = nil, tolerance_grad = 1e-7,
-- tolerance_change = 1e-9, history_size = 100, line_search_fn = nil, maximize = false}): a step
-- calls its closure, which is required and clears the gradients, up to max_eval times (by default
-- max_iter * 5 // 4) and makes up to max_iter iterations; it ends when no gradient exceeds
-- tolerance_grad, or neither loss nor parameters change by more than tolerance_change.
-- line_search_fn = "strong_wolfe" searches for a step size, lr at first. It keeps history_size
-- pairs of vectors. One group only. Each iteration synchronizes with the device.
local LBFGS = Optimizer:extend("LBFGS",
  "float(>=0) lr = 1, int(>=0) max_iter = 20, int? max_eval = nil, "
  .. "float(>=0) tolerance_grad = 1e-7, float(>=0) tolerance_change = 1e-9, "
  .. "int(>=1) history_size = 100, 'strong_wolfe'? line_search_fn = nil, bool maximize = false")

--- Returns all settings of a group from a table of some of them.
function LBFGS:complete(given)
  local settings = Optimizer.complete(self, given)
  settings.max_eval = settings.max_eval or settings.max_iter * 5 // 4
  return settings
end

--- Adds the only group. Raises an error for a second one.
function LBFGS:add_param_group(group)
  args.check(#self.param_groups == 0, "LBFGS: expected one group of parameters, got a second one")
  Optimizer.add_param_group(self, group)
end

-- Returns the gradients of all parameters as one vector.
local function flat_gradient(group)
  local list = {}
  for i, p in ipairs(group.params) do
    list[i] = p.grad and p.grad:reshape(-1) or lt.zeros_like(p):reshape(-1)
  end
  local flat = lt.cat(list)
  return group.maximize and -flat or flat
end

-- Adds a multiple of a vector to the parameters.
local function move(group, size, direction)
  local offset = 1
  for _, p in ipairs(group.params) do
    local n = p:numel()
    p:add_(direction:narrow(1, offset, n):reshape(p.shape), {alpha = size})
    offset = offset + n
  end
end

local function largest(x) return x:abs():max():item() end

-- Adds the last step to the memory, unless its curvature is too small.
local function remember(state, group, gradient)
  local y, s = gradient - state.prev_flat_grad, state.d * state.t
  local ys = y:dot(s):item()
  if ys <= 1e-10 then return end
  if #state.old_dirs == group.history_size then
    for _, list in ipairs{state.old_dirs, state.old_stps, state.ro} do table.remove(list, 1) end
  end
  table.insert(state.old_dirs, y)
  table.insert(state.old_stps, s)
  table.insert(state.ro, 1 / ys)
  state.H_diag = ys / y:dot(y):item()
end

-- Returns the product of the inverse Hessian in the memory and the negative gradient.
local function direction_of(state, gradient)
  local q, al = -gradient, {}
  for i = #state.old_dirs, 1, -1 do
    al[i] = state.old_stps[i]:dot(q):item() * state.ro[i]
    q:add_(state.old_dirs[i], {alpha = -al[i]})
  end
  local r = q * state.H_diag
  for i = 1, #state.old_dirs do
    local be = state.old_dirs[i]:dot(r):item() * state.ro[i]
    r:add_(state.old_stps[i], {alpha = al[i] - be})
  end
  return r
end

-- Sets the direction of the next iteration.
local function choose_direction(state, group, gradient)
  if state.n_iter == 1 then
    state.d, state.old_dirs, state.old_stps, state.ro, state.H_diag = -gradient, {}, {}, {}, 1
  else
    remember(state, group, gradient)
    state.d = direction_of(state, gradient)
  end
  state.prev_flat_grad = gradient:clone()
end

-- Returns a function that evaluates loss and gradient at the parameters, and one that does so at
-- `size` steps along `direction` from them, without moving them.
local function evaluators(group, closure)
  local function here()
    local loss = lt.enable_grad(closure)
    local value = lt.is_tensor(loss) and loss:item() or loss
    args.expect(type(value) == "number", "LBFGS", "a loss from the function", "closure", value)
    return group.maximize and -value or value, flat_gradient(group), loss
  end
  local function along(direction, size)
    local before = {}
    for i, p in ipairs(group.params) do before[i] = p:clone() end
    move(group, size, direction)
    local loss, gradient = here()
    for i, p in ipairs(group.params) do p:copy_(before[i]) end
    return loss, gradient
  end
  return here, along
end

-- Moves the parameters along the state's direction. Returns loss and gradient there and the number
-- of evaluations; `loss` and `gradient` are those before, `slope` the derivative.
local function advance(state, group, at, loss, gradient, slope)
  local evaluations = 0
  if group.line_search_fn then
    loss, gradient, state.t, evaluations = strong_wolfe(function(size)
      return at.along(state.d, size)
    end, state.t, state.d, loss, gradient, slope, at.left)
    move(group, state.t, state.d)
  else
    move(group, state.t, state.d)
    if not at.is_last then
      loss, gradient = at.here()
      evaluations = 1
    end
  end
  return loss, gradient, evaluations
end

local function iterate(self, closure)
  local group = self.param_groups[1]
  local state = batches.state_of(self, group.params[1])
  state.func_evals, state.n_iter = state.func_evals or 0, state.n_iter or 0
  local here, along = evaluators(group, closure)
  local loss, gradient, first_loss = here()
  local evaluations, count = 1, 0
  state.func_evals = state.func_evals + 1
  if largest(gradient) <= group.tolerance_grad then return first_loss end
  while count < group.max_iter do
    count, state.n_iter = count + 1, state.n_iter + 1
    choose_direction(state, group, gradient)
    state.prev_loss = loss
    state.t = group.lr
    if state.n_iter == 1 then
      state.t = math.min(1, 1 / gradient:abs():sum():item()) * group.lr
    end
    local slope, before = gradient:dot(state.d):item(), loss
    if slope > -group.tolerance_change then break end
    local used
    loss, gradient, used = advance(state, group, {here = here, along = along,
      left = group.max_eval - evaluations, is_last = count == group.max_iter}, loss, gradient,
      slope)
    evaluations, state.func_evals = evaluations + used, state.func_evals + used
    if count == group.max_iter or evaluations >= group.max_eval
      or largest(gradient) <= group.tolerance_grad
      or largest(state.d * state.t) <= group.tolerance_change
      or math.abs(loss - before) < group.tolerance_change then
      break
    end
  end
  return first_loss
end

--- Performs a step without its callbacks. Raises an error without a closure.
function LBFGS:advance(closure)
  args.expect(args.is_callable(closure), "LBFGS", "a function that returns the loss", "closure",
    closure)
  return lt.no_grad(iterate, self, closure)
end

return LBFGS
