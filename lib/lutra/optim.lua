--- optim: optimizers, which update parameters by their gradients.
--
-- Each file of the folder lutra/optim returns a class, which becomes a field here by its name.

local optim = {}

for _, module in ipairs(require("lutra.internal.folder").modules(...)) do
  local class = require(module)
  optim[class.__name] = class
end

return require("lutra.internal.strict_table").lazy(optim, "optim", {
  lr_scheduler = "lutra.optim.lr_scheduler",
  swa_utils = "lutra.optim.swa_utils",
})
