--- Divergences of two distributions of one class, by the names of the classes. The formulas are
-- PyTorch's; those of Laplace and Pareto are from Gil, Alajaji and Linder (2013), that of Cauchy
-- from Chyzak and Nielsen (2019).

local lt = require "lutra"
local matrices = require "lutra.distributions.matrices"
local shapes = require "lutra.distributions.shapes"

local EULER = 0.57721566490153286060
local inf = math.huge

local same = {}

local function softplus(x) return lt.F.softplus(x) end

same["Bernoulli Bernoulli"] = function(p, q)
  local t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
  t1 = t1:masked_fill(q.probs:eq(0), inf):masked_fill(p.probs:eq(0), 0)
  local t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
  return t1 + t2:masked_fill(q.probs:eq(1), inf):masked_fill(p.probs:eq(1), 0)
end

same["Beta Beta"] = function(p, q)
  local sum_p = p.concentration1 + p.concentration0
  local sum_q = q.concentration1 + q.concentration0
  local t1 = q.concentration1:lgamma() + q.concentration0:lgamma() + sum_p:lgamma()
  local t2 = p.concentration1:lgamma() + p.concentration0:lgamma() + sum_q:lgamma()
  return t1 - t2 + (p.concentration1 - q.concentration1) * p.concentration1:digamma()
    + (p.concentration0 - q.concentration0) * p.concentration0:digamma()
    + (sum_q - sum_p) * sum_p:digamma()
end

same["Binomial Binomial"] = function(p, q)
  local kl = p.total_count * (p.probs * (p.logits - q.logits) + lt.log1p(-p.probs)
    - lt.log1p(-q.probs))
  return kl:masked_fill(p.total_count:gt(q.total_count), inf)
end

same["Categorical Categorical"] = function(p, q)
  local t = p.probs * (p.logits - q.logits)
  return t:masked_fill(q.probs:eq(0), inf):masked_fill(p.probs:eq(0), 0):sum(-1)
end

same["OneHotCategorical OneHotCategorical"] = same["Categorical Categorical"]

same["Cauchy Cauchy"] = function(p, q)
  return ((p.scale + q.scale) ^ 2 + (p.loc - q.loc) ^ 2):log() - (4 * p.scale * q.scale):log()
end

same["ContinuousBernoulli ContinuousBernoulli"] = function(p, q)
  return p.mean * (p.logits - q.logits) + p:log_norm() + lt.log1p(-p.probs) - q:log_norm()
    - lt.log1p(-q.probs)
end

same["Dirichlet Dirichlet"] = function(p, q)
  local a, b = p.concentration, q.concentration
  local sum = a:sum(-1)
  return sum:lgamma() - b:sum(-1):lgamma() - (a:lgamma() - b:lgamma()):sum(-1)
    + ((a - b) * (a:digamma() - sum:digamma():unsqueeze(-1))):sum(-1)
end

same["Exponential Exponential"] = function(p, q)
  local ratio = q.rate / p.rate
  return ratio - ratio:log() - 1
end

same["Gamma Gamma"] = function(p, q)
  return q.concentration * (p.rate / q.rate):log() + q.concentration:lgamma()
    - p.concentration:lgamma() + (p.concentration - q.concentration) * p.concentration:digamma()
    + (q.rate - p.rate) * (p.concentration / p.rate)
end

same["Geometric Geometric"] = function(p, q)
  return -p:entropy() - lt.log1p(-q.probs) / p.probs - q.logits
end

same["Gumbel Gumbel"] = function(p, q)
  local ratio, a, b = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
  return -ratio:log() - a + b + ratio * EULER + (a + (1 + ratio):lgamma() - b):exp() - (1 + EULER)
end

same["Normal Normal"] = function(p, q)
  local ratio = (p.scale / q.scale) ^ 2
  return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ^ 2 - 1 - ratio:log())
end

same["HalfNormal HalfNormal"] = function(p, q)
  return same["Normal Normal"](p.base_dist, q.base_dist)
end

same["HalfCauchy HalfCauchy"] = function(p, q)
  return same["Cauchy Cauchy"](p.base_dist, q.base_dist)
end

same["InverseGamma InverseGamma"] = same["Gamma Gamma"]
same["LogNormal LogNormal"] = same["Normal Normal"]

same["Independent Independent"] = function(p, q)
  local n = p.reinterpreted_batch_ndims
  require("lutra.internal.args").check(n == q.reinterpreted_batch_ndims,
    "kl_divergence: expected the same reinterpreted_batch_ndims, got %d and %d", n,
    q.reinterpreted_batch_ndims)
  local kl = require("lutra.distributions.kl").kl_divergence(p.base_dist, q.base_dist)
  return shapes.sum_last(kl, n)
end

same["Laplace Laplace"] = function(p, q)
  local ratio, distance = p.scale / q.scale, (p.loc - q.loc):abs()
  return -ratio:log() + distance / q.scale + ratio * (-distance / p.scale):exp() - 1
end

-- The divergence of normal distributions of vectors, from their lower triangular factors.
local function of_vectors(p, q)
  local L, M = p.scale_tril, q.scale_tril
  local square = matrices.sum_of_squares(matrices.solve_lower(M, L))
  local n = p.event_shape[1]
  return matrices.half_log_det(M) - matrices.half_log_det(L)
    + 0.5 * (square + matrices.mahalanobis(M, q.loc - p.loc) - n)
end

for _, p in ipairs{"MultivariateNormal", "LowRankMultivariateNormal"} do
  for _, q in ipairs{"MultivariateNormal", "LowRankMultivariateNormal"} do
    same[p .. " " .. q] = of_vectors
  end
end

same["Pareto Pareto"] = function(p, q)
  local ratio = q.alpha / p.alpha
  local kl = q.alpha * (p.scale / q.scale):log() - ratio:log() + ratio - 1
  return kl:masked_fill(p.scale:lt(q.scale), inf)
end

same["Poisson Poisson"] = function(p, q)
  return p.rate * (p.rate:log() - q.rate:log()) - (p.rate - q.rate)
end

same["TransformedDistribution TransformedDistribution"] = function(p, q)
  local is_same = #p.transforms == #q.transforms
  for i, transform in ipairs(p.transforms) do
    is_same = is_same and transform:equals(q.transforms[i])
  end
  require("lutra.internal.args").check(is_same,
    "kl_divergence: expected distributions with the same transforms")
  return require("lutra.distributions.kl").kl_divergence(p.base_dist, q.base_dist)
end

same["Uniform Uniform"] = function(p, q)
  local kl = ((q.high - q.low) / (p.high - p.low)):log()
  return kl:masked_fill(q.low:gt(p.low) | q.high:lt(p.high), inf)
end

same["Wishart Wishart"] = function(p, q)
  local L, M, n = p.scale_tril, q.scale_tril, p.event_shape[1]
  local trace = matrices.sum_of_squares(matrices.solve_lower(M, L))
  return (p.df - q.df) / 2 * p:_digamma() + p.df / 2 * (trace - n)
    + q.df * (matrices.half_log_det(M) - matrices.half_log_det(L))
    + lt.mvlgamma(q.df / 2, n) - lt.mvlgamma(p.df / 2, n)
end

return same
