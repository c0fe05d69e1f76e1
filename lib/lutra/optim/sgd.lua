--- SGD: stochastic gradient descent with momentum (Sutskever, Martens, Dahl, Hinton 2013, in
-- PyTorch's form, in which the learning rate is outside the velocity).

local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local core = require "lutra.core"

--- optim.SGD(params, {lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false,
-- maximize = false}): v = momentum v + (1 - dampening) g, where the first v is g, and p = p - lr *
-- v; with `nesterov`, p = p - lr * (g + momentum v). weight_decay * p is added to the gradient.
-- nesterov requires momentum > 0 and dampening = 0. foreach and fused have no effect: a step is
-- one call. differentiable must be false.
local SGD = Optimizer:extend("SGD",
  "float(>=0) lr = 0.001, float(>=0) momentum = 0, float dampening = 0, "
  .. "float(>=0) weight_decay = 0, bool nesterov = false, bool maximize = false, "
  .. "bool? foreach = nil, bool differentiable = false, bool? fused = nil")

--- Raises an error when nesterov is set without momentum, or with dampening.
function SGD.check_group(_, group)
  args.check(not group.nesterov or (group.momentum > 0 and group.dampening == 0),
    "SGD: expected momentum > 0 and dampening = 0 for nesterov, got momentum = %g, dampening = %g",
    group.momentum, group.dampening)
end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function SGD.buffers(_, group)
  return {group.momentum ~= 0 and "momentum_buffer" or nil}
end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function SGD.apply(_, params, grads, buffers, group, _, fresh)
  core._ops._sgd_step(params, grads, buffers.momentum_buffer, group.lr, group.momentum,
    group.dampening, group.weight_decay, group.nesterov, group.maximize, fresh)
end

return SGD
