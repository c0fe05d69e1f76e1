--- Divergences of distributions of two classes, by the names of the classes. The formulas are
-- PyTorch's.

local lt = require "lutra"

local EULER = 0.57721566490153286060
local pi, inf = math.pi, math.huge

local mixed = {}

local function xlogx(x) return lt.xlogy(x, x) end

-- The divergence is infinite where p has values outside the support of q.
local outside = {
  Beta = "Pareto", ContinuousBernoulli = "Pareto", Exponential = "Beta ContinuousBernoulli Pareto "
    .. "Uniform", Gamma = "Beta ContinuousBernoulli Pareto Uniform",
  Gumbel = "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
  Laplace = "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
  Normal = "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform",
  Pareto = "Beta ContinuousBernoulli Uniform", Poisson = "Bernoulli Binomial",
}
for p, others in pairs(outside) do
  for q in others:gmatch "%w+" do
    mixed[p .. " " .. q] = function(d) return lt.full_like(d:a_tensor():detach(), inf) end
  end
end

mixed["Bernoulli Poisson"] = function(p, q)
  return -p:entropy() - (p.probs * q.rate:log() - q.rate)
end

mixed["Beta Exponential"] = function(p, q) return -p:entropy() - q.rate:log() + q.rate * p.mean end

mixed["Beta Gamma"] = function(p, q)
  local log_mean = p.concentration1:digamma() - (p.concentration1 + p.concentration0):digamma()
  return -p:entropy() + q.concentration:lgamma() - q.concentration * q.rate:log()
    - (q.concentration - 1) * log_mean + q.rate * p.mean
end

-- -entropy(p) minus the mean of the log density of a normal distribution q.
local function from_normal(p, q)
  return -p:entropy() + 0.5 * math.log(2 * pi) + q.scale:log()
    + (p.variance + (p.mean - q.loc) ^ 2) / (2 * q.scale ^ 2)
end
for _, p in ipairs{"Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Laplace",
  "Uniform"} do
  mixed[p .. " Normal"] = from_normal
end
mixed["Pareto Normal"] = function(p, q) return from_normal(p, q):masked_fill(p.alpha:le(2), inf) end

mixed["Beta Uniform"] = function(p, q)
  return ((q.high - q.low):log() - p:entropy()):masked_fill(q.low:gt(0) | q.high:lt(1), inf)
end

mixed["Beta ContinuousBernoulli"] = function(p, q)
  return -p:entropy() - p.mean * q.logits - lt.log1p(-q.probs) - q:log_norm()
end

mixed["ContinuousBernoulli Exponential"] = mixed["Beta Exponential"]

mixed["ContinuousBernoulli Uniform"] = function(p, q)
  local kl = (q.high - q.low):log() - p:entropy()
  return kl:masked_fill(q.low:ge(0) | q.high:le(1), inf)
end

mixed["Exponential Gamma"] = function(p, q)
  local ratio = q.rate / p.rate
  return -q.concentration * ratio:log() + ratio + q.concentration:lgamma()
    + q.concentration * EULER - (1 + EULER)
end

mixed["Exponential Gumbel"] = function(p, q)
  local product, a = p.rate * q.scale, q.loc / q.scale
  return product:log() - 1 - a + a:exp() * product / (product + 1) + 1 / product
end

mixed["Gamma Exponential"] = function(p, q) return -p:entropy() - q.rate:log() + q.rate * p.mean end

mixed["Gamma Gumbel"] = function(p, q)
  local product, a, c = p.rate * q.scale, q.loc / q.scale, p.concentration
  return (c - 1) * c:digamma() - c:lgamma() - c + product:log() + c / product
    + a:exp() * (1 + 1 / product) ^ (-c) - a
end

mixed["Normal Gumbel"] = function(p, q)
  local mean, ratio, a = p.loc / q.scale, (p.scale / q.scale) ^ 2, q.loc / q.scale
  return -0.5 * ratio:log() + mean - a + (-mean + 0.5 * ratio + a):exp()
    - 0.5 * (1 + math.log(2 * pi))
end

mixed["Normal Laplace"] = function(p, q)
  local difference = p.loc - q.loc
  local scaled = difference / p.scale
  local t2 = math.sqrt(2 / pi) * p.scale * (-0.5 * scaled ^ 2):exp()
  local t3 = difference * (math.sqrt(0.5) * scaled):erf()
  return -(p.scale / q.scale):log() + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * pi))
end

mixed["Pareto Exponential"] = function(p, q)
  local product = p.scale * q.rate
  local kl = (p.alpha / product):log() - 1 / p.alpha + p.alpha * product / (p.alpha - 1) - 1
  return kl:masked_fill(p.alpha:le(1), inf)
end

mixed["Pareto Gamma"] = function(p, q)
  local log_mean = p.scale:log() + 1 / p.alpha
  local kl = p.alpha:log() - log_mean + q.concentration:lgamma()
    - q.concentration * q.rate:log() + (1 - q.concentration) * log_mean
    + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
  return kl:masked_fill(p.alpha:le(1), inf)
end

-- The mean of log(x) under a uniform distribution.
local function mean_log(p)
  local width = p.high - p.low
  return (xlogx(p.high) - xlogx(p.low) - width) / width
end

mixed["Uniform Beta"] = function(p, q)
  local width = p.high - p.low
  local log_rest = (xlogx(1 - p.high) - xlogx(1 - p.low) + width) / width
  local kl = (q.concentration0 - 1) * log_rest + q.concentration1:lgamma()
    + q.concentration0:lgamma() - (q.concentration1 + q.concentration0):lgamma() - width:log()
    - (q.concentration1 - 1) * mean_log(p)
  return kl:masked_fill(p.high:gt(1) | p.low:lt(0), inf)
end

mixed["Uniform ContinuousBernoulli"] = function(p, q)
  local kl = -p:entropy() - p.mean * q.logits - lt.log1p(-q.probs) - q:log_norm()
  return kl:masked_fill(p.high:ge(1) | p.low:le(0), inf)
end

mixed["Uniform Exponential"] = function(p, q)
  local kl = q.rate * p.mean - ((p.high - p.low) * q.rate):log()
  return kl:masked_fill(p.low:lt(0), inf)
end

mixed["Uniform Gamma"] = function(p, q)
  local kl = -(p.high - p.low):log() + q.concentration:lgamma() - q.concentration * q.rate:log()
    + (1 - q.concentration) * mean_log(p) + q.rate * p.mean
  return kl:masked_fill(p.low:lt(0), inf)
end

mixed["Uniform Gumbel"] = function(p, q)
  local ratio = q.scale / (p.high - p.low)
  local high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
  return ratio:log() + 0.5 * (high + low) - ratio * ((-high):exp() - (-low):exp())
end

mixed["Uniform Pareto"] = function(p, q)
  local kl = mean_log(p) * (q.alpha + 1)
    - (q.alpha * q.scale ^ q.alpha * (p.high - p.low)):log()
  return kl:masked_fill(p.low:lt(q.scale), inf)
end

return mixed
