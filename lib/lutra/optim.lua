--- optim: algorithms that change parameters by their gradients; one a file.
--
-- Each file in the folder lutra/optim returns a class, which is a field here by its name.

local optim = {}

for _, module in ipairs(require("lutra.internal.folder").modules(...)) do
  local class = require(module)
  optim[class.__name] = class
end

return require("lutra.internal.strict_table").strict(optim, "optim")
