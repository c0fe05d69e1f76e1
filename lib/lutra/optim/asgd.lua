--- ASGD: averaged stochastic gradient descent (Polyak and Juditsky 1992; the decay of the learning
-- rate is that of Bottou's sgd).

local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.ASGD(params, {lr = 0.01, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0, maximize
-- = false}): p = p (1 - lambd eta) - eta g with eta = lr / (1 + lambd lr t)^alpha. The state `ax`
-- of a parameter is the average of its values: ax = ax + mu (p - ax) with mu = 1 / max(1, t - t0),
-- so that it begins at step t0. weight_decay * p is added to the gradient. foreach and capturable
-- have no effect: a step is one call. differentiable must be false.
local ASGD = Optimizer:extend("ASGD",
  "float(>=0) lr = 0.01, float(>=0) lambd = 0.0001, float(>=0) alpha = 0.75, float t0 = 1000000, "
  .. "float(>=0) weight_decay = 0, bool? foreach = nil, bool maximize = false, "
  .. "bool differentiable = false, bool capturable = false")

ASGD.counts = true
ASGD.values = {"eta", "mu"}

local first = {eta = function(group) return group.lr end, mu = function() return 1 end,
  ax = function() return 0 end}

--- Returns the number with which a field of the state starts: eta is lr, mu is 1.
function ASGD.initial(_, name, group) return first[name](group) end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function ASGD.buffers() return {"ax"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function ASGD.apply(_, params, grads, buffers, group, step, _, values)
  core._ops._asgd_step(params, grads, buffers.ax, values.eta, values.mu, group.lambd,
    group.weight_decay, group.maximize)
  values.eta = group.lr / (1 + group.lambd * group.lr * step) ^ group.alpha
  values.mu = 1 / math.max(1, step - group.t0)
end

return ASGD
