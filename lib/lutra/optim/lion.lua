--- Lion: evolved sign momentum (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
-- Algorithm 2). PyTorch does not have it.

local Adam = require "lutra.optim.adam"
local Optimizer = require "lutra.optim.optimizer"
local core = require "lutra.core"

--- optim.Lion(params, {lr = 1e-4, betas = {0.9, 0.99}, weight_decay = 0, maximize = false}): p = p
-- (1 - lr weight_decay) - lr sign(beta1 m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g. Every
-- element moves by lr, so lr is smaller than for optim.AdamW, and weight_decay larger, by a factor
-- of 3 to 10.
local Lion = Optimizer:extend("Lion",
  "float(>=0) lr = 0.0001, floats(>=0) betas = {0.9, 0.99}, float(>=0) weight_decay = 0, "
  .. "bool maximize = false")

--- Raises an error unless betas are two numbers from 0 to below 1.
function Lion:check_group(group) Adam.check_group(self, group) end

--- Returns the names of the state tensors; see lutra.optim.optimizer.
function Lion.buffers() return {"exp_avg"} end

--- Updates lists of parameters in place; see lutra.optim.optimizer.
function Lion.apply(_, params, grads, buffers, group)
  core._ops._lion_step(params, grads, buffers.exp_avg, group.lr, group.betas[1], group.betas[2],
    group.weight_decay, group.maximize)
end

return Lion
