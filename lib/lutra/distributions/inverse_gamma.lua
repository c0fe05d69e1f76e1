--- InverseGamma: reciprocals of a gamma distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local Gamma = require "lutra.distributions.gamma"

--- lt.distributions.InverseGamma(concentration, rate, {validate_args = nil}): 1 / x for x of
-- Gamma(concentration, rate).
local InverseGamma = Distribution:extend("InverseGamma", {
  params = {{"concentration", "positive"}, {"rate", "positive"}}, support = "positive",
  has_rsample = true})

function InverseGamma.get:base_dist()
  return Gamma(self.concentration, self.rate, {validate_args = false})
end
function InverseGamma.get:mean()
  return (self.rate / (self.concentration - 1)):masked_fill(self.concentration:le(1), lt.inf)
end
function InverseGamma.get:mode() return self.rate / (self.concentration + 1) end
function InverseGamma.get:variance()
  local a = self.concentration
  return (self.rate ^ 2 / ((a - 1) ^ 2 * (a - 2))):masked_fill(a:le(2), lt.inf)
end

function InverseGamma:rsample(...)
  return 1 / self.base_dist:rsample(shapes.read("sample", ...))
end

function InverseGamma:log_prob(value)
  value = self:check_value("log_prob", value)
  return self.base_dist:log_prob(1 / value) - 2 * value:log()
end

function InverseGamma:cdf(value)
  return 1 - self.base_dist:cdf(1 / self:check_value("cdf", value))
end

function InverseGamma:entropy()
  local a = self.concentration
  return a + self.rate:log() + a:lgamma() - (1 + a) * a:digamma()
end

return InverseGamma
