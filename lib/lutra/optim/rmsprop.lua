--- RMSprop: gradients divided by a running root mean square (Tieleman and Hinton 2012, lecture 6.5;
-- centered: Graves 2013).

local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.RMSprop(params, {lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0,
-- centered = false, maximize = false}): v = alpha v + (1 - alpha) g^2, p = p - lr * g / (sqrt(v) +
-- eps). With `centered`, the squared running mean of g is subtracted from v; with `momentum`, a
-- velocity accumulates the quotients. weight_decay * p is added to the gradient. capturable and
-- foreach have no effect: a step is one call. differentiable must be false.
local RMSprop = Optimizer:extend("RMSprop",
  "float(>=0) lr = 0.01, float(>=0) alpha = 0.99, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, float(>=0) momentum = 0, bool centered = false, "
  .. "bool capturable = false, bool? foreach = nil, bool maximize = false, "
  .. "bool differentiable = false")

RMSprop.counts = true
RMSprop.steps_alike = true -- no number depends on the count

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function RMSprop.buffers(_, group)
  local names = {"square_avg"}
  if group.centered then names[#names + 1] = "grad_avg" end
  if group.momentum > 0 then names[#names + 1] = "momentum_buffer" end
  return names
end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function RMSprop.apply(_, params, grads, buffers, group)
  core._ops._rmsprop_step(params, grads, buffers.square_avg, buffers.grad_avg,
    buffers.momentum_buffer, group.lr, group.alpha, group.eps, group.weight_decay, group.momentum,
    group.centered, group.maximize)
end

return RMSprop
