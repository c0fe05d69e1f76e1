--- GeneralizedPareto: the generalized Pareto distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local constraints = require "lutra.distributions.constraints"

--- lt.distributions.GeneralizedPareto(loc, scale, concentration, {validate_args = nil}): numbers of
-- at least `loc`, with P(x > t) = (1 + concentration (t - loc) / scale)^(-1 / concentration), or
-- exp(-(t - loc) / scale) for a concentration of 0. They are at most loc - scale / concentration
-- for a concentration below 0.
local GeneralizedPareto = Distribution:extend("GeneralizedPareto", {
  params = {{"loc", "real"}, {"scale", "positive"}, {"concentration", "real"}},
  has_rsample = true})

-- Returns where the concentration is 0, and the concentration with 1 in these places.
local function split(self)
  local c = self.concentration
  local is_zero = lt.isclose(c, lt.zeros_like(c))
  return is_zero, lt.where(is_zero, lt.ones_like(c), c)
end

-- Returns the values of x where `valid` is true, and otherwise `other`.
local function where(valid, x, other) return lt.where(valid, x, lt.full_like(x:detach(), other)) end

local function standardized(self, value) return (value - self.loc) / self.scale end

function GeneralizedPareto.get:support()
  local c = self.concentration
  return constraints.interval(self.loc, where(c:lt(0), self.loc - self.scale / c, math.huge))
end
function GeneralizedPareto.get:mean()
  local valid = self.concentration:lt(1)
  return where(valid, self.loc + self.scale / (1 - where(valid, self.concentration, 0.5)), 0 / 0)
end
function GeneralizedPareto.get:mode() return self.loc end
function GeneralizedPareto.get:variance()
  local valid = self.concentration:lt(0.5)
  local c = where(valid, self.concentration, 0.25)
  return where(valid, self.scale ^ 2 / ((1 - c) ^ 2 * (1 - 2 * c)), 0 / 0)
end

function GeneralizedPareto:rsample(...)
  return self:icdf(lt.rand(self:sample_sizes(...), {dtype = self.loc.dtype,
    device = self.loc.device}))
end

function GeneralizedPareto:log_prob(value)
  local z = standardized(self, self:check_value("log_prob", value))
  local is_zero, c = split(self)
  local y = 1 / c + lt.ones_like(z)
  return -self.scale:log() - lt.where(is_zero, z, lt.where(y:eq(0), y, y * lt.log1p(c * z)))
end

--- Returns log P(x > value).
function GeneralizedPareto:log_survival_function(value)
  local z = standardized(self, self:check_value("log_survival_function", value))
  local is_zero, c = split(self)
  return lt.where(is_zero, -z, -lt.log1p(c * z) / c)
end

--- Returns log P(x <= value).
function GeneralizedPareto:log_cdf(value)
  return lt.log1p(-self:log_survival_function(value):exp())
end

function GeneralizedPareto:cdf(value) return self:log_cdf(value):exp() end
function GeneralizedPareto:icdf(value)
  local is_zero, c = split(self)
  local u = lt.log1p(-value)
  return lt.where(is_zero, self.loc - self.scale * u,
    self.loc + self.scale / c * lt.expm1(-c * u))
end
function GeneralizedPareto:entropy() return self.scale:log() + self.concentration + 1 end

return GeneralizedPareto
