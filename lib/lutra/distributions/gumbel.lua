--- Gumbel: the Gumbel distribution.

local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local EULER = 0.57721566490153286060

--- lt.distributions.Gumbel(loc, scale, {validate_args = nil}): the distribution of maxima, with
-- mode `loc`.
local Gumbel = Distribution:extend("Gumbel", {
  params = {{"loc", "real"}, {"scale", "positive"}}, support = "real", has_rsample = true})

function Gumbel.get:mean() return self.loc + self.scale * EULER end
function Gumbel.get:mode() return self.loc end
function Gumbel.get:stddev() return self.scale * (math.pi / math.sqrt(6)) end
function Gumbel.get:variance() return self.stddev ^ 2 end

function Gumbel:rsample(...)
  local u = shapes.uniform(self:sample_sizes(...), self.loc)
  return self.loc - self.scale * (-u:log()):log()
end

function Gumbel:log_prob(value)
  local y = (self.loc - self:check_value("log_prob", value)) / self.scale
  return y - y:exp() - self.scale:log()
end

function Gumbel:cdf(value)
  return (-((self.loc - self:check_value("cdf", value)) / self.scale):exp()):exp()
end

function Gumbel:icdf(value) return self.loc - self.scale * (-value:log()):log() end
function Gumbel:entropy() return self.scale:log() + (1 + EULER) end

return Gumbel
