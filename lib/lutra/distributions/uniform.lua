--- Uniform: the uniform distribution on an interval.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local constraints = require "lutra.distributions.constraints"

--- lt.distributions.Uniform(low, high, {validate_args = nil}): numbers from `low` to below `high`,
-- which are numbers or tensors.
local Uniform = Distribution:extend("Uniform", {
  params = {{"low"}, {"high"}}, has_rsample = true})

function Uniform:constraint_of(param)
  if param[1] == "low" then return constraints.less_than(self.high) end
  return constraints.greater_than(self.low)
end

function Uniform.get:support() return constraints.interval(self.low, self.high) end
function Uniform.get:mean() return (self.low + self.high) / 2 end
function Uniform.get:mode() return self.high * lt.nan end
function Uniform.get:stddev() return (self.high - self.low) / math.sqrt(12) end
function Uniform.get:variance() return (self.high - self.low) ^ 2 / 12 end

function Uniform:rsample(...)
  local options = {dtype = self.low.dtype, device = self.low.device}
  return self.low + lt.rand(self:sample_sizes(...), options) * (self.high - self.low)
end

function Uniform:log_prob(value)
  value = self:check_value("log_prob", value)
  local inside = self.low:le(value):to(self.low.dtype) * self.high:gt(value):to(self.low.dtype)
  return inside:log() - (self.high - self.low):log()
end

function Uniform:cdf(value)
  value = self:check_value("cdf", value)
  return ((value - self.low) / (self.high - self.low)):clamp(0, 1)
end

function Uniform:icdf(value) return value * (self.high - self.low) + self.low end
function Uniform:entropy() return (self.high - self.low):log() end

return Uniform
