--- Kumaraswamy: the Kumaraswamy distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local EULER = 0.57721566490153286060

--- lt.distributions.Kumaraswamy(concentration1, concentration0, {validate_args = nil}): numbers
-- from 0 to 1 with P(x <= t) = 1 - (1 - t^a)^b, where a = concentration1 and b = concentration0.
local Kumaraswamy = Distribution:extend("Kumaraswamy", {
  params = {{"concentration1", "positive"}, {"concentration0", "positive"}},
  support = "unit_interval", has_rsample = true})

-- Returns the n-th moment.
local function moment(self, n)
  local a, b = self.concentration1, self.concentration0
  local x = 1 + n / a
  return b * (x:lgamma() + b:lgamma() - (x + b):lgamma()):exp()
end

function Kumaraswamy.get:mean() return moment(self, 1) end
function Kumaraswamy.get:mode()
  local a, b = self.concentration1, self.concentration0
  local mode = ((a - 1) / (a * b - 1)) ^ (1 / a)
  return mode:masked_fill(a:lt(1) | b:lt(1), lt.nan)
end
function Kumaraswamy.get:variance() return moment(self, 2) - self.mean ^ 2 end

function Kumaraswamy:rsample(...)
  local u = shapes.uniform(self:sample_sizes(...), self.concentration1)
  return self:icdf(u)
end

function Kumaraswamy:log_prob(value)
  value = self:check_value("log_prob", value)
  local a, b = self.concentration1, self.concentration0
  return a:log() + b:log() + (a - 1) * value:log() + (b - 1) * lt.log1p(-(value ^ a))
end

function Kumaraswamy:cdf(value)
  value = self:check_value("cdf", value)
  return 1 - (1 - value ^ self.concentration1) ^ self.concentration0
end

function Kumaraswamy:icdf(value)
  return (1 - (1 - value) ^ (1 / self.concentration0)) ^ (1 / self.concentration1)
end

function Kumaraswamy:entropy()
  local a, b = self.concentration1, self.concentration0
  local harmonic = (b + 1):digamma() + EULER
  return 1 - 1 / b + (1 - 1 / a) * harmonic - a:log() - b:log()
end

return Kumaraswamy
