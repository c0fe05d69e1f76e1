--- Poisson: the Poisson distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

--- lt.distributions.Poisson(rate, {validate_args = nil}): counts with mean `rate` of at least 0.
local Poisson = Distribution:extend("Poisson", {
  params = {{"rate", "nonnegative"}}, support = "nonnegative_integer"})

function Poisson.get:mean() return self.rate end
function Poisson.get:mode() return self.rate:floor() end
function Poisson.get:variance() return self.rate end

function Poisson:sample(...)
  return lt.poisson(self.rate:detach():expand(self:sample_sizes(...)))
end

function Poisson:log_prob(value)
  value = self:check_value("log_prob", value)
  return lt.xlogy(value, self.rate) - self.rate - (value + 1):lgamma()
end

return Poisson
