--- AdamW: Adam with decoupled weight decay. Loshchilov and Hutter 2019, Algorithm 2.
--
-- The decay p <- p (1 - lr weight_decay) acts on the weights, not on the gradient, so
-- it is not divided by the second moment; the rest is Adam's update.

local Adam = require "lutra.optim.adam"
local Optimizer = require "lutra.optim.optimizer"

local row = Optimizer.row

--- optim.AdamW(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8,
-- weight_decay = 0.01, amsgrad = false, maximize = false}).
local AdamW = Adam:extend("AdamW", {
  row.positive("lr", 1e-3), row.betas {0.9, 0.999}, row.positive("eps", 1e-8),
  row.positive("weight_decay", 1e-2), row.flag("amsgrad", false), row.flag("maximize", false),
})

AdamW.decoupled = true

return AdamW
