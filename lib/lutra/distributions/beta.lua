--- Beta: the beta distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

local Dirichlet = require "lutra.distributions.dirichlet"

--- lt.distributions.Beta(concentration1, concentration0, {validate_args = nil}): density
-- proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1) for x from 0 to 1.
local Beta = Distribution:extend("Beta", {
  params = {{"concentration1", "positive"}, {"concentration0", "positive"}},
  support = "unit_interval", has_rsample = true})

-- Returns the distribution of {x, 1 - x}.
local function dirichlet(self)
  return Dirichlet(lt.stack({self.concentration1, self.concentration0}, -1),
    {validate_args = false})
end

function Beta.get:mean()
  return self.concentration1 / (self.concentration1 + self.concentration0)
end
function Beta.get:mode() return dirichlet(self).mode:select(-1, 1) end
function Beta.get:variance()
  local sum = self.concentration1 + self.concentration0
  return self.concentration1 * self.concentration0 / (sum ^ 2 * (sum + 1))
end

function Beta:rsample(...) return dirichlet(self):rsample(...):select(-1, 1) end

function Beta:log_prob(value)
  value = self:check_value("log_prob", value)
  return dirichlet(self):log_prob(lt.stack({value, 1 - value}, -1))
end

function Beta:entropy() return dirichlet(self):entropy() end

return Beta
