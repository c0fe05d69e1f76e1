--- lt.distributions.transforms: functions with inverses and Jacobians, for TransformedDistribution.
--
-- A transform is called with a tensor, t(x); t.inv is its inverse, and t:log_abs_det_jacobian(x, y)
-- the logarithm of |dy / dx|, summed over the dims of an event. `domain` and `codomain` are
-- constraints.

local elementwise = require "lutra.distributions.elementwise_transforms"
local vectors = require "lutra.distributions.vector_transforms"
local structure = require "lutra.distributions.transform_structure"

local transforms = {Transform = require "lutra.distributions.transform"}
for _, list in ipairs{elementwise, vectors, structure} do
  for name, value in pairs(list) do transforms[name] = value end
end

return require("lutra.internal.strict_table").strict(transforms, "lt.distributions.transforms")
