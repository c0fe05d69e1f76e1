--- Adamax: Adam with the infinity norm (Kingma and Ba 2015, Algorithm 2).

local Adam = require "lutra.optim.adam"
local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.Adamax(params, {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, maximize =
-- false}): m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps), p = p - lr / (1 - beta1^t) * m
-- / u. weight_decay * p is added to the gradient. foreach and capturable have no effect: a step is
-- one call. differentiable must be false.
local Adamax = Optimizer:extend("Adamax",
  "float(>=0) lr = 0.002, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, bool? foreach = nil, bool maximize = false, "
  .. "bool differentiable = false, bool capturable = false")

--- Raises an error unless betas are two numbers from 0 to below 1.
function Adamax:check_group(group) Adam.check_group(self, group) end

Adamax.counts = true

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Adamax.buffers() return {"exp_avg", "exp_inf"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Adamax.apply(_, params, grads, buffers, group, step)
  core._ops._adamax_step(params, grads, buffers.exp_avg, buffers.exp_inf, step, group.lr,
    group.betas[1], group.betas[2], group.eps, group.weight_decay, group.maximize)
end

return Adamax
