--- Pareto: the Pareto distribution.

local Distribution = require "lutra.distributions.distribution"
local constraints = require "lutra.distributions.constraints"

--- lt.distributions.Pareto(scale, alpha, {validate_args = nil}): numbers of at least `scale`, with
-- P(x > t) = (scale / t)^alpha.
local Pareto = Distribution:extend("Pareto", {
  params = {{"scale", "positive"}, {"alpha", "positive"}}, has_rsample = true})

function Pareto.get:support() return constraints.greater_than_eq(self.scale) end
function Pareto.get:mean()
  local a = self.alpha:clamp(1)
  return a * self.scale / (a - 1)
end
function Pareto.get:mode() return self.scale end
function Pareto.get:variance()
  local a = self.alpha:clamp(2)
  return self.scale ^ 2 * a / ((a - 1) ^ 2 * (a - 2))
end

function Pareto:rsample(...)
  local e = self.alpha:detach():new_empty(self:sample_sizes(...)):exponential_()
  return self.scale * (e / self.alpha):exp()
end

function Pareto:log_prob(value)
  value = self:check_value("log_prob", value)
  return self.alpha:log() + self.alpha * self.scale:log() - (self.alpha + 1) * value:log()
end

function Pareto:cdf(value) return 1 - (self.scale / self:check_value("cdf", value)) ^ self.alpha end
function Pareto:icdf(value) return self.scale * (1 - value) ^ (-1 / self.alpha) end
function Pareto:entropy() return (self.scale / self.alpha):log() + (1 + 1 / self.alpha) end

return Pareto
