--- HalfNormal: absolute values of a Normal distribution around 0.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local Normal = require "lutra.distributions.normal"

--- lt.distributions.HalfNormal(scale, {validate_args = nil}): |x| for x of Normal(0, scale).
local HalfNormal = Distribution:extend("HalfNormal", {
  params = {{"scale", "positive"}}, support = "nonnegative", has_rsample = true})

function HalfNormal.get:base_dist()
  return Normal(lt.zeros_like(self.scale), self.scale, {validate_args = false})
end
function HalfNormal.get:mean() return self.scale * math.sqrt(2 / math.pi) end
function HalfNormal.get:variance() return self.scale ^ 2 * (1 - 2 / math.pi) end
function HalfNormal.get:mode() return lt.zeros_like(self.scale) end

function HalfNormal:rsample(...)
  return self.base_dist:rsample(shapes.read("sample", ...)):abs()
end

function HalfNormal:log_prob(value)
  value = self:check_value("log_prob", value)
  local log_prob = self.base_dist:log_prob(value) + math.log(2)
  return log_prob:masked_fill(value:lt(0), -lt.inf)
end

function HalfNormal:cdf(value) return 2 * self.base_dist:cdf(self:check_value("cdf", value)) - 1 end
function HalfNormal:icdf(value) return self.base_dist:icdf((value + 1) / 2) end
function HalfNormal:entropy() return self.base_dist:entropy() - math.log(2) end

return HalfNormal
