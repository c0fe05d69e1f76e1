--- Normal: the normal distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

local pi = math.pi

--- lt.distributions.Normal(loc, scale, {validate_args = nil}): mean `loc` and standard deviation
-- `scale` above 0, numbers or tensors.
local Normal = Distribution:extend("Normal", {
  params = {{"loc", "real"}, {"scale", "positive"}}, support = "real", has_rsample = true})

function Normal.get:mean() return self.loc end
function Normal.get:mode() return self.loc end
function Normal.get:stddev() return self.scale end
function Normal.get:variance() return self.scale ^ 2 end

function Normal:rsample(...)
  local options = {dtype = self.loc.dtype, device = self.loc.device}
  return self.loc + lt.randn(self:sample_sizes(...), options) * self.scale
end

function Normal:log_prob(value)
  value = self:check_value("log_prob", value)
  return -((value - self.loc) ^ 2) / (2 * self.scale ^ 2) - self.scale:log() - math.log(2 * pi) / 2
end

function Normal:cdf(value)
  value = self:check_value("cdf", value)
  return 0.5 * (1 + ((value - self.loc) / self.scale / math.sqrt(2)):erf())
end

function Normal:icdf(value)
  return self.loc + self.scale * (2 * value - 1):erfinv() * math.sqrt(2)
end

function Normal:entropy() return self.scale:log() + (0.5 + 0.5 * math.log(2 * pi)) end

return Normal
