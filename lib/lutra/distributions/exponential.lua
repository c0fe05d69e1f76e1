--- Exponential: the exponential distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

--- lt.distributions.Exponential(rate, {validate_args = nil}): waiting times with mean 1 / rate.
local Exponential = Distribution:extend("Exponential", {
  params = {{"rate", "positive"}}, support = "nonnegative", has_rsample = true})

function Exponential.get:mean() return 1 / self.rate end
function Exponential.get:mode() return lt.zeros_like(self.rate) end
function Exponential.get:stddev() return 1 / self.rate end
function Exponential.get:variance() return self.rate ^ -2 end

function Exponential:rsample(...)
  return self.rate:detach():new_empty(self:sample_sizes(...)):exponential_() / self.rate
end

function Exponential:log_prob(value)
  return self.rate:log() - self.rate * self:check_value("log_prob", value)
end

function Exponential:cdf(value) return 1 - (-self.rate * self:check_value("cdf", value)):exp() end
function Exponential:icdf(value)
  return -lt.log1p(-value) / self.rate
end
function Exponential:entropy() return 1 - self.rate:log() end

return Exponential
