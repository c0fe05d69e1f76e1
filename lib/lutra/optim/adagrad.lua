--- Adagrad: adaptive subgradient methods (Duchi, Hazan and Singer 2011).

local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.Adagrad(params, {lr = 0.01, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0,
-- eps = 1e-10, maximize = false}): s = s + g^2, p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s)
-- + eps), where s starts as initial_accumulator_value. weight_decay * p is added to the gradient.
-- foreach and fused have no effect: a step is one call. differentiable must be false.
local Adagrad = Optimizer:extend("Adagrad",
  "float(>=0) lr = 0.01, float(>=0) lr_decay = 0, float(>=0) weight_decay = 0, "
  .. "float(>=0) initial_accumulator_value = 0, float(>=0) eps = 1e-10, bool? foreach = nil, "
  .. "bool maximize = false, bool differentiable = false, bool? fused = nil")

Adagrad.counts = true

--- Returns the number with which the sums of a group start.
function Adagrad.initial(_, _, group) return group.initial_accumulator_value end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Adagrad.buffers() return {"sum"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Adagrad.apply(_, params, grads, buffers, group, step)
  core._ops._adagrad_step(params, grads, buffers.sum, step, group.lr, group.lr_decay,
    group.weight_decay, group.eps, group.maximize)
end

return Adagrad
