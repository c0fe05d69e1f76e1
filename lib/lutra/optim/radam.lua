--- RAdam: Adam with a rectified variance of the adaptive rate (Liu et al. 2020, Algorithm 2).

local Adam = require "lutra.optim.adam"
local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.RAdam(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0,
-- decoupled_weight_decay = false, maximize = false}): as long as the length of the averages, rho_t
-- = rho - 2 t beta2^t / (1 - beta2^t) with rho = 2 / (1 - beta2) - 1, is at most 5, p = p - lr m /
-- (1 - beta1^t). Then this step is multiplied by r sqrt(1 - beta2^t) / (sqrt(v) + eps), where r^2 =
-- (rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t). foreach and capturable have no effect:
-- a step is one call. differentiable must be false.
local RAdam = Optimizer:extend("RAdam",
  "float(>=0) lr = 0.001, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, bool decoupled_weight_decay = false, bool? foreach = nil, "
  .. "bool maximize = false, bool capturable = false, bool differentiable = false")

--- Raises an error unless betas are two numbers from 0 to below 1.
function RAdam:check_group(group) Adam.check_group(self, group) end

RAdam.counts = true

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function RAdam.buffers() return {"exp_avg", "exp_avg_sq"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function RAdam.apply(_, params, grads, buffers, group, step)
  core._ops._radam_step(params, grads, buffers.exp_avg, buffers.exp_avg_sq, step, group.lr,
    group.betas[1], group.betas[2], group.eps, group.weight_decay, group.decoupled_weight_decay,
    group.maximize)
end

return RAdam
