--- Gamma: the gamma distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local standard_gamma = require "lutra.distributions.standard_gamma"

--- lt.distributions.Gamma(concentration, rate, {validate_args = nil}): density proportional to
-- x^(concentration - 1) exp(-rate x).
local Gamma = Distribution:extend("Gamma", {
  params = {{"concentration", "positive"}, {"rate", "positive"}}, support = "nonnegative",
  has_rsample = true})

function Gamma.get:mean() return self.concentration / self.rate end
function Gamma.get:mode() return ((self.concentration - 1) / self.rate):clamp(0) end
function Gamma.get:variance() return self.concentration / self.rate ^ 2 end

function Gamma:rsample(...)
  return standard_gamma(self.concentration:expand(self:sample_sizes(...))) / self.rate
end

function Gamma:log_prob(value)
  value = self:check_value("log_prob", value)
  return lt.xlogy(self.concentration, self.rate) + lt.xlogy(self.concentration - 1, value)
    - self.rate * value - self.concentration:lgamma()
end

function Gamma:cdf(value)
  local a, x = table.unpack(lt.broadcast_tensors{self.concentration,
    self.rate * self:check_value("cdf", value)})
  return lt.igamma(a, x)
end

function Gamma:entropy()
  local a = self.concentration
  return a - self.rate:log() + a:lgamma() + (1 - a) * a:digamma()
end

return Gamma
