--- Laplace: the Laplace distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Laplace(loc, scale, {validate_args = nil}): mean `loc`, density proportional to
-- exp(-|x - loc| / scale).
local Laplace = Distribution:extend("Laplace", {
  params = {{"loc", "real"}, {"scale", "positive"}}, support = "real", has_rsample = true})

function Laplace.get:mean() return self.loc end
function Laplace.get:mode() return self.loc end
function Laplace.get:stddev() return self.scale * math.sqrt(2) end
function Laplace.get:variance() return 2 * self.scale ^ 2 end

function Laplace:rsample(...)
  local u = shapes.uniform(self:sample_sizes(...), self.loc) * 2 - 1
  u = u:clamp(lt.finfo(u.dtype).eps - 1)
  return self.loc - self.scale * u:sign() * lt.log1p(-u:abs())
end

function Laplace:log_prob(value)
  value = self:check_value("log_prob", value)
  return -(2 * self.scale):log() - (value - self.loc):abs() / self.scale
end

function Laplace:cdf(value)
  local x = self:check_value("cdf", value) - self.loc
  return 0.5 - 0.5 * x:sign() * lt.expm1(-x:abs() / self.scale)
end

function Laplace:icdf(value)
  local term = value - 0.5
  return self.loc - self.scale * term:sign() * lt.log1p(-2 * term:abs())
end

function Laplace:entropy() return 1 + (2 * self.scale):log() end

return Laplace
