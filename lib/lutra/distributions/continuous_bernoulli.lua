--- ContinuousBernoulli: the continuous Bernoulli distribution (Loaiza-Ganem and Cunningham 2019).

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.ContinuousBernoulli(probs, logits, {validate_args = nil}): numbers from 0 to 1
-- with density proportional to p^x (1 - p)^(1 - x). Raises an error unless probs or logits is
-- given.
local ContinuousBernoulli = Distribution:extend("ContinuousBernoulli", {
  params = {{"probs", "unit_interval"}, {"logits", "real"}}, support = "unit_interval",
  has_rsample = true})
probabilities.define(ContinuousBernoulli, true)

-- Near p = 1 / 2 the formulas are 0 / 0: a Taylor series replaces them.
local LOW, HIGH = 0.499, 0.501

function ContinuousBernoulli:init(...)
  local param, given = self:read_probs(0, ...)
  self:set_shapes(param.shape, {}, given[3])
  if rawget(self, "probs") then self.probs = shapes.clamp_probs(self.probs) end
end

-- Returns where p is far from 1 / 2, and p with 0.499 elsewhere.
local function cut(self)
  local is_far = self.probs:le(LOW) | self.probs:gt(HIGH)
  return is_far, lt.where(is_far, self.probs, lt.full_like(self.probs, LOW))
end

--- Returns the logarithm of the constant by which densities are multiplied.
function ContinuousBernoulli:log_norm()
  local is_far, p = cut(self)
  local below = p:clamp(nil, 0.5)
  local above = p:clamp(0.5)
  local size = lt.where(p:le(0.5), lt.log1p(-2 * below), (2 * above - 1):log())
  local far = (lt.log1p(-p) - p:log()):abs():log() - size
  local x = (self.probs - 0.5) ^ 2
  return lt.where(is_far, far, math.log(2) + (4 / 3 + 104 / 45 * x) * x)
end

function ContinuousBernoulli.get:mean()
  local is_far, p = cut(self)
  local x = self.probs - 0.5
  return lt.where(is_far, p / (2 * p - 1) + 1 / (lt.log1p(-p) - p:log()),
    0.5 + (1 / 3 + 16 / 45 * x ^ 2) * x)
end

function ContinuousBernoulli.get:variance()
  local is_far, p = cut(self)
  local x = (self.probs - 0.5) ^ 2
  return lt.where(is_far, p * (p - 1) / (1 - 2 * p) ^ 2 + 1 / (lt.log1p(-p) - p:log()) ^ 2,
    1 / 12 - (1 / 15 - 128 / 945 * x) * x)
end

function ContinuousBernoulli:rsample(...)
  return self:icdf(shapes.uniform(self:sample_sizes(...), self.probs))
end

function ContinuousBernoulli:log_prob(value)
  local logits, x = table.unpack(lt.broadcast_tensors{self.logits,
    self:check_value("log_prob", value)})
  return -lt.F.binary_cross_entropy_with_logits(logits, x, {reduction = "none"})
    + self:log_norm()
end

function ContinuousBernoulli:cdf(value)
  value = self:check_value("cdf", value)
  local is_far, p = cut(self)
  local cdf = (p ^ value * (1 - p) ^ (1 - value) + p - 1) / (2 * p - 1)
  return lt.where(is_far, cdf, value):clamp(0, 1)
end

function ContinuousBernoulli:icdf(value)
  local is_far, p = cut(self)
  local x = (lt.log1p(-p + value * (2 * p - 1)) - lt.log1p(-p)) / (p:log() - lt.log1p(-p))
  return lt.where(is_far, x, value)
end

function ContinuousBernoulli:entropy()
  local log0, log1 = lt.log1p(-self.probs), self.probs:log()
  return self.mean * (log0 - log1) - self:log_norm() - log0
end

return ContinuousBernoulli
