--- optim.swa_utils: averages of the weights of a model during training (Izmailov et al. 2018,
-- "Averaging Weights Leads to Wider Optima and Better Generalization").
--
--     local averaged = optim.swa_utils.AveragedModel(net)
--     local schedule = optim.swa_utils.SWALR(optimizer, {swa_lr = 0.05})
--     ... -- late in training, after each epoch:
--     averaged:update_parameters(net)
--     schedule:step()
--     ... -- at the end:
--     optim.swa_utils.update_bn(loader, averaged)

local averages = require "lutra.optim.swa_utils.averages"

local swa_utils = {
  AveragedModel = require "lutra.optim.swa_utils.averaged_model",
  SWALR = require "lutra.optim.swa_utils.swalr",
  update_bn = require "lutra.optim.swa_utils.update_bn",
}
for name, fn in pairs(averages) do swa_utils[name] = fn end

return require("lutra.internal.strict_table").strict(swa_utils, "optim.swa_utils")
