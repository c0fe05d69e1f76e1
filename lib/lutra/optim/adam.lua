--- Adam: stochastic optimization with adaptive moment estimates (Kingma and Ba 2015, Algorithm 1).

local Optimizer = require "lutra.optim.optimizer"
local args = require "lutra.internal.args"
local core = require "lutra.core"

--- optim.Adam(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, amsgrad =
-- false, maximize = false, decoupled_weight_decay = false}): m = beta1 m + (1 - beta1) g, v = beta2
-- v + (1 - beta2) g^2, p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps). With
-- amsgrad, v is replaced by its maximum so far. weight_decay * p is added to the gradient (L2
-- penalty); with decoupled_weight_decay, as in optim.AdamW, it decays the weights themselves.
-- foreach, capturable and fused have no effect: a step is one call. differentiable must be false.
local Adam = Optimizer:extend("Adam",
  "float(>=0) lr = 0.001, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, bool amsgrad = false, bool maximize = false, "
  .. "bool? foreach = nil, bool capturable = false, bool differentiable = false, "
  .. "bool? fused = nil, bool decoupled_weight_decay = false")

--- True when weight decay always acts on the weights instead of the gradient, as in AdamW.
Adam.decoupled = false

--- Raises an error unless betas are two numbers from 0 to below 1.
function Adam.check_group(self, group)
  local betas = group.betas
  args.check(#betas == 2 and betas[1] < 1 and betas[2] < 1,
    "%s: expected two numbers from 0 to below 1 for argument 'betas', got %s",
    self.__name, args.show(betas))
end

Adam.counts = true

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Adam.buffers(_, group)
  return {"exp_avg", "exp_avg_sq", group.amsgrad and "max_exp_avg_sq" or nil}
end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Adam:apply(params, grads, buffers, group, step)
  local b1, b2 = group.betas[1], group.betas[2]
  local decoupled = self.decoupled or group.decoupled_weight_decay
  local m, v, top = buffers.exp_avg, buffers.exp_avg_sq, buffers.max_exp_avg_sq
  if group.amsgrad then
    core._ops._amsgrad_step(params, grads, m, v, top, step, group.lr, b1, b2, group.eps,
      group.weight_decay, decoupled, group.maximize)
  else
    core._ops._adam_step(params, grads, m, v, step, group.lr, b1, b2, group.eps,
      group.weight_decay, decoupled, group.maximize)
  end
end

return Adam
