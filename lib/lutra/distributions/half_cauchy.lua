--- HalfCauchy: absolute values of a Cauchy distribution around 0.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local Cauchy = require "lutra.distributions.cauchy"

--- lt.distributions.HalfCauchy(scale, {validate_args = nil}): |x| for x of Cauchy(0, scale).
local HalfCauchy = Distribution:extend("HalfCauchy", {
  params = {{"scale", "positive"}}, support = "nonnegative", has_rsample = true})

function HalfCauchy.get:base_dist()
  return Cauchy(lt.zeros_like(self.scale), self.scale, {validate_args = false})
end
function HalfCauchy.get:mean() return lt.full_like(self.scale:detach(), lt.inf) end
function HalfCauchy.get:variance() return self.mean end
function HalfCauchy.get:mode() return lt.zeros_like(self.scale) end

function HalfCauchy:rsample(...)
  return self.base_dist:rsample(shapes.read("sample", ...)):abs()
end

function HalfCauchy:log_prob(value)
  value = self:check_value("log_prob", value)
  local log_prob = self.base_dist:log_prob(value) + math.log(2)
  return log_prob:masked_fill(value:lt(0), -lt.inf)
end

function HalfCauchy:cdf(value) return 2 * self.base_dist:cdf(self:check_value("cdf", value)) - 1 end
function HalfCauchy:icdf(value) return self.base_dist:icdf((value + 1) / 2) end
function HalfCauchy:entropy() return self.base_dist:entropy() - math.log(2) end

return HalfCauchy
