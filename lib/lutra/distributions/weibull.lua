--- Weibull: the Weibull distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

local EULER = 0.57721566490153286060

--- lt.distributions.Weibull(scale, concentration, {validate_args = nil}): numbers above 0 with P(x
-- > t) = exp(-(t / scale)^concentration).
local Weibull = Distribution:extend("Weibull", {
  params = {{"scale", "positive"}, {"concentration", "positive"}}, support = "positive",
  has_rsample = true})

local function gamma_of(x) return x:lgamma():exp() end

function Weibull.get:mean() return self.scale * gamma_of(1 + 1 / self.concentration) end
function Weibull.get:mode()
  local k = self.concentration
  return self.scale * ((k - 1) / k) ^ (1 / k)
end
function Weibull.get:variance()
  local inverse = 1 / self.concentration
  return self.scale ^ 2 * (gamma_of(1 + 2 * inverse) - gamma_of(1 + inverse) ^ 2)
end

function Weibull:rsample(...)
  local e = self.scale:detach():new_empty(self:sample_sizes(...)):exponential_()
  return self.scale * e ^ (1 / self.concentration)
end

function Weibull:log_prob(value)
  local k, x = self.concentration, self:check_value("log_prob", value) / self.scale
  return (k / self.scale):log() + (k - 1) * x:log() - x ^ k
end

function Weibull:cdf(value)
  return -lt.expm1(-((self:check_value("cdf", value) / self.scale) ^ self.concentration))
end

function Weibull:icdf(value)
  return self.scale * (-lt.log1p(-value)) ^ (1 / self.concentration)
end

function Weibull:entropy()
  local inverse = 1 / self.concentration
  return EULER * (1 - inverse) + (self.scale * inverse):log() + 1
end

return Weibull
