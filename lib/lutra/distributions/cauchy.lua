--- Cauchy: the Cauchy (Lorentz) distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local pi = math.pi

--- lt.distributions.Cauchy(loc, scale, {validate_args = nil}): median `loc`, half width `scale`. It
-- has no mean.
local Cauchy = Distribution:extend("Cauchy", {
  params = {{"loc", "real"}, {"scale", "positive"}}, support = "real", has_rsample = true})

function Cauchy.get:mean() return lt.full_like(self.loc:detach(), lt.nan) end
function Cauchy.get:mode() return self.loc end
function Cauchy.get:variance() return lt.full_like(self.loc:detach(), lt.inf) end

function Cauchy:rsample(...)
  local u = shapes.uniform(self:sample_sizes(...), self.loc)
  return self.loc + (pi * (u - 0.5)):tan() * self.scale
end

function Cauchy:log_prob(value)
  value = self:check_value("log_prob", value)
  return -math.log(pi) - self.scale:log() - lt.log1p(((value - self.loc) / self.scale) ^ 2)
end

function Cauchy:cdf(value)
  return ((self:check_value("cdf", value) - self.loc) / self.scale):atan() / pi + 0.5
end

function Cauchy:icdf(value) return (pi * (value - 0.5)):tan() * self.scale + self.loc end
function Cauchy:entropy() return math.log(4 * pi) + self.scale:log() end

return Cauchy
