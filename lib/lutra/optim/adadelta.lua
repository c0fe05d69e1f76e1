--- Adadelta: an adaptive learning rate method (Zeiler 2012, Algorithm 1).

local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local core = require "lutra.core"

--- optim.Adadelta(params, {lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0, maximize = false}): v =
-- rho v + (1 - rho) g^2, delta = sqrt(u + eps) / sqrt(v + eps) * g, u = rho u + (1 - rho) delta^2,
-- p = p - lr * delta. weight_decay * p is added to the gradient. foreach and capturable have no
-- effect: a step is one call. differentiable must be false.
local Adadelta = Optimizer:extend("Adadelta",
  "float(>=0) lr = 1, float(>=0) rho = 0.9, float(>=0) eps = 1e-6, "
  .. "float(>=0) weight_decay = 0, bool? foreach = nil, bool capturable = false, "
  .. "bool maximize = false, bool differentiable = false")

--- Raises an error when rho is more than 1.
function Adadelta.check_group(_, group)
  args.check(group.rho <= 1, "Adadelta: expected a number from 0 to 1 for argument 'rho', got %g",
    group.rho)
end

Adadelta.counts = true
Adadelta.steps_alike = true -- no number depends on the count

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Adadelta.buffers() return {"square_avg", "acc_delta"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Adadelta.apply(_, params, grads, buffers, group)
  core._ops._adadelta_step(params, grads, buffers.square_avg, buffers.acc_delta, group.lr,
    group.rho, group.eps, group.weight_decay, group.maximize)
end

return Adadelta
