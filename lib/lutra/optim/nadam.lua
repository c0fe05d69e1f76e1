--- NAdam: Adam with Nesterov momentum (Dozat 2016, "Incorporating Nesterov Momentum into Adam").

local Adam = require "lutra.optim.adam"
local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.NAdam(params, {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0,
-- momentum_decay = 4e-3, decoupled_weight_decay = false, maximize = false}): Adam in which the step
-- uses mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2) in place of beta1: p = p - lr (mu_{t+1} m /
-- (1 - mu_1 ... mu_{t+1}) + (1 - mu_t) g / (1 - mu_1 ... mu_t)) / (sqrt(v / (1 - beta2^t)) + eps).
-- foreach and capturable have no effect: a step is one call. differentiable must be false.
local NAdam = Optimizer:extend("NAdam",
  "float(>=0) lr = 0.002, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0, float(>=0) momentum_decay = 0.004, "
  .. "bool decoupled_weight_decay = false, bool? foreach = nil, bool maximize = false, "
  .. "bool capturable = false, bool differentiable = false")

--- Raises an error unless betas are two numbers from 0 to below 1.
function NAdam:check_group(group) Adam.check_group(self, group) end

NAdam.counts = true
NAdam.values = {"mu_product"}

--- Returns the number with which the product of all mu starts.
function NAdam.initial(_, name) return name == "mu_product" and 1 or 0 end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function NAdam.buffers() return {"exp_avg", "exp_avg_sq"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function NAdam.apply(_, params, grads, buffers, group, step, _, values)
  local b1, b2 = group.betas[1], group.betas[2]
  local function mu(t) return b1 * (1 - 0.5 * 0.96 ^ (t * group.momentum_decay)) end
  values.mu_product = values.mu_product * mu(step)
  core._ops._nadam_step(params, grads, buffers.exp_avg, buffers.exp_avg_sq, step, group.lr, b1, b2,
    group.eps, group.weight_decay, group.decoupled_weight_decay, group.maximize, mu(step),
    mu(step + 1), values.mu_product)
end

return NAdam
