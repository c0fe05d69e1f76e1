--- lt.distributions: probability distributions, their samples, densities and divergences.
--
--     local d = lt.distributions.Normal(0, 1)
--     print(d:log_prob(d:sample{3}))
--
-- Fields and arguments have PyTorch's names. What PyTorch has as properties are fields: d.mean,
-- d.variance, d.stddev, d.mode, d.support, d.batch_shape, d.event_shape. Values of classes are
-- 1-based. A distribution is loaded when it is first used; its file has the name in lower case.

local modules = {}
for name in ([[Bernoulli Beta Binomial Categorical Cauchy Chi2 ContinuousBernoulli Dirichlet
    Distribution ExpRelaxedCategorical Exponential FisherSnedecor Gamma GeneralizedPareto
    Geometric Gumbel HalfCauchy HalfNormal Independent InverseGamma Kumaraswamy LKJCholesky
    Laplace LogNormal LogisticNormal LogitRelaxedBernoulli LowRankMultivariateNormal
    MixtureSameFamily Multinomial MultivariateNormal NegativeBinomial Normal OneHotCategorical
    OneHotCategoricalStraightThrough Pareto Poisson RelaxedBernoulli RelaxedOneHotCategorical
    StudentT TransformedDistribution Uniform VonMises Weibull Wishart constraints
    transforms]]):gmatch "%w+" do
  local file = name:gsub("(%l)(%u)", "%1_%2"):lower()
  modules[name] = "lutra.distributions." .. file
end

-- The transforms are fields of lt.distributions, too.
for name in ([[AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform
    CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform
    PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform
    SoftplusTransform StackTransform StickBreakingTransform TanhTransform Transform
    identity_transform]]):gmatch "[%w_]+" do
  modules[name] = "lutra.distributions.transforms#" .. name
end

-- The functions load their file when they are first called.
local functions = {}

--- Returns the Kullback-Leibler divergence KL(p || q) of two distributions, of the shape of their
-- batches. Raises an error for a pair of classes without a formula; see register_kl.
function functions.kl_divergence(p, q)
  return require("lutra.distributions.kl").kl_divergence(p, q)
end

--- Registers fn(p, q) as the formula of the divergence of distributions of the classes type_p and
-- type_q, or of classes extended from them. Raises an error unless both are classes.
function functions.register_kl(type_p, type_q, fn)
  return require("lutra.distributions.kl").register_kl(type_p, type_q, fn)
end

--- Returns a transform from unconstrained numbers to the values that meet a constraint, which is
-- bijective: for constraints.simplex a StickBreakingTransform. Raises an error for a constraint
-- without one.
function functions.biject_to(constraint)
  return require("lutra.distributions.constraint_registry").biject_to(constraint)
end

--- Returns a transform from unconstrained numbers to the values that meet a constraint, for
-- parameters that are trained: for constraints.simplex a SoftmaxTransform. It need not be
-- bijective. Raises an error for a constraint without one.
function functions.transform_to(constraint)
  return require("lutra.distributions.constraint_registry").transform_to(constraint)
end

return require("lutra.internal.strict_table").lazy(functions, "lt.distributions", modules)
