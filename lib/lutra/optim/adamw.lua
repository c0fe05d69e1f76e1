--- AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019, Algorithm 2).
--
-- The decay p = p (1 - lr * weight_decay) acts on the weights, not on the gradient, so that it is
-- not divided by the second moment. The rest is the update of Adam.

local Adam = require "lutra.optim.adam"

--- optim.AdamW(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0.01, amsgrad =
-- false, maximize = false}): options as for optim.Adam.
local AdamW = Adam:extend("AdamW",
  "float(>=0) lr = 0.001, floats(>=0) betas = {0.9, 0.999}, float(>=0) eps = 1e-8, "
  .. "float(>=0) weight_decay = 0.01, bool amsgrad = false, "
  .. "bool maximize = false, bool? foreach = nil, bool capturable = false, "
  .. "bool differentiable = false, bool? fused = nil")

AdamW.decoupled = true

return AdamW
