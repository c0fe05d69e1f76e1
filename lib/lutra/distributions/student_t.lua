--- StudentT: Student's t-distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local standard_gamma = require "lutra.distributions.standard_gamma"

local PI = math.pi

--- lt.distributions.StudentT(df, loc, scale, {validate_args = nil}): `df` degrees of freedom,
-- around `loc` (0 by default), times `scale` (1 by default).
local StudentT = Distribution:extend("StudentT", {
  params = {{"df", "positive"}, {"loc", "real", 0}, {"scale", "positive", 1}}, support = "real",
  has_rsample = true})

function StudentT.get:mean() return self.loc:masked_fill(self.df:le(1), lt.nan) end
function StudentT.get:mode() return self.loc end
function StudentT.get:variance()
  local variance = self.scale ^ 2 * self.df / (self.df - 2)
  return variance:masked_fill(self.df:le(2), lt.inf):masked_fill(self.df:le(1), lt.nan)
end

function StudentT:rsample(...)
  local sizes = self:sample_sizes(...)
  local x = lt.randn(sizes, {dtype = self.df.dtype, device = self.df.device})
  local z = 2 * standard_gamma((self.df / 2):expand(sizes))
  return self.loc + self.scale * x * (z / self.df):rsqrt()
end

function StudentT:log_prob(value)
  local y = (self:check_value("log_prob", value) - self.loc) / self.scale
  local norm = self.scale:log() + 0.5 * self.df:log() + 0.5 * math.log(PI)
    + (self.df / 2):lgamma() - ((self.df + 1) / 2):lgamma()
  return -0.5 * (self.df + 1) * lt.log1p(y ^ 2 / self.df) - norm
end

function StudentT:entropy()
  local half, next_half = self.df / 2, (self.df + 1) / 2
  local log_beta = half:lgamma() + 0.5 * math.log(PI) - next_half:lgamma()
  return self.scale:log() + next_half * (next_half:digamma() - half:digamma())
    + 0.5 * self.df:log() + log_beta
end

return StudentT
