-- Examples of lt.distributions.
local lt = require "lutra"
lt.manual_seed(1)

-- Samples, densities and moments
local d = lt.distributions.Normal(0, 2)
local x = d:sample{3, 2}
print(x.shape, d:log_prob(x).shape)  --> {3, 2}	{3, 2}
print(d.mean:item(), d.variance:item(), d.stddev:item(), d:entropy():item() > 2)  --> 0.0	4.0	2.0	true
print(d:cdf(0):item(), d:icdf(lt.tensor(0.5)):item())  --> 0.5	0.0

-- A batch of distributions, and its expansion
local batch = lt.distributions.Uniform(lt.zeros(3), lt.tensor{1., 2, 3})
print(batch.batch_shape, batch:expand(5, 3).batch_shape)  --> {3}	{5, 3}
print(#batch:sample_sizes(2), #batch:extended_shape{2, 4})  --> 2	3

-- Gradients of samples (the reparametrization trick)
local concentration = lt.tensor({2.}, {requires_grad = true})
lt.distributions.Gamma(concentration, 1.0):rsample(100):mean():backward()
print(concentration.grad.shape)  --> {1}

-- Classes, from 1 to n
local classes = lt.distributions.Categorical(lt.tensor{1., 2, 1})
print(classes.probs, classes.mode:item())  --> tensor{0.2500, 0.5000, 0.2500}	2
print(classes:enumerate_support(), classes:perplexity():item() < 3)  --> tensor{1, 2, 3}	true
local one_hot = lt.distributions.OneHotCategorical{logits = lt.zeros(3)}
local straight = lt.distributions.OneHotCategoricalStraightThrough{logits = lt.zeros(3)}
print(one_hot:sample().shape, straight:rsample():sum():item())  --> {3}	1.0
local counts = lt.distributions.Multinomial(5, lt.ones(3))
print(counts:sample():sum():item())  --> 5.0

-- Policy gradients: -log_prob(action) * reward
local policy = lt.distributions.Bernoulli{logits = lt.tensor({0.3}, {requires_grad = true})}
local action = policy:sample()
local loss = -policy:log_prob(action) * 2.5
loss:sum():backward()

-- Counts
print(lt.distributions.Poisson(3.0).mean:item())  --> 3.0
print(lt.distributions.Binomial(10, 0.25).mean:item())  --> 2.5
print(lt.distributions.Geometric(0.25).mean:item())  --> 3.0
print(lt.distributions.NegativeBinomial(3, 0.5).mean:item())  --> 3.0

-- Numbers
for _, each in ipairs{
  lt.distributions.Exponential(2.0), lt.distributions.Laplace(0, 1),
  lt.distributions.Chi2(3.0), lt.distributions.Beta(2.0, 3.0),
  lt.distributions.StudentT(5.0), lt.distributions.Cauchy(0, 1),
  lt.distributions.Gumbel(0, 1), lt.distributions.HalfNormal(1.0),
  lt.distributions.HalfCauchy(1.0), lt.distributions.LogNormal(0, 1),
  lt.distributions.Pareto(1.0, 2.0), lt.distributions.Weibull(1.0, 2.0),
  lt.distributions.InverseGamma(3.0, 1.0), lt.distributions.Kumaraswamy(2.0, 2.0),
  lt.distributions.FisherSnedecor(3.0, 5.0), lt.distributions.ContinuousBernoulli(0.3),
  lt.distributions.VonMises(0, 2.0), lt.distributions.RelaxedBernoulli(0.5, 0.3),
} do
  assert(each:log_prob(each:sample(4)):isfinite():all():item())
end

-- Vectors
local normal = lt.distributions.MultivariateNormal(lt.zeros(2),
  {covariance_matrix = lt.tensor{{2., 1}, {1, 2}}})
print(normal:sample(3).shape, normal:log_prob(lt.zeros(3, 2)).shape)  --> {3, 2}	{3}
local low_rank = lt.distributions.LowRankMultivariateNormal(lt.zeros(3), lt.ones(3, 1), lt.ones(3))
print(low_rank.variance)  --> tensor{2., 2., 2.}
local simplex = lt.distributions.Dirichlet(lt.tensor{1., 2, 5})
print(simplex.mean)  --> tensor{0.1250, 0.2500, 0.6250}
local relaxed = lt.distributions.RelaxedOneHotCategorical(0.5, {logits = lt.zeros(3)})
local logistic = lt.distributions.LogisticNormal(lt.zeros(2), lt.ones(2))
print(relaxed:rsample().shape, logistic:sample().shape)  --> {3}	{3}

local covariances = lt.distributions.Wishart(3, {covariance_matrix = lt.eye(2)})
print(covariances:rsample().shape, covariances.mean:diag())  --> {2, 2}	tensor{3., 3.}
local correlations = lt.distributions.LKJCholesky(3, {concentration = 2.0})
print(correlations:sample(4).shape, correlations:log_prob(lt.eye(3)):item() > 0)  --> {4, 3, 3}	false
local logs = lt.distributions.ExpRelaxedCategorical(0.5, {logits = lt.zeros(3)})
local logit = lt.distributions.LogitRelaxedBernoulli(0.5, {logits = lt.zeros(3)})
print(logs:rsample().shape, logit:rsample().shape)  --> {3}	{3}

-- Values above a threshold
local excess = lt.distributions.GeneralizedPareto(0, 1, 0)
print(excess:log_survival_function(2):item())  --> -2.0
print(lt.allclose(excess:log_cdf(2):exp(), excess:cdf(2)))  --> true

-- Dims of a batch as one event, and mixtures
local independent = lt.distributions.Independent(batch, 1)
print(independent.event_shape, independent:log_prob(lt.zeros(3)).shape)  --> {3}	{}
local mixture = lt.distributions.MixtureSameFamily(classes,
  lt.distributions.Normal(lt.tensor{-1., 0, 1}, 0.5))
print(mixture.mean:item())  --> 0.0

-- Functions of random values
local transforms = lt.distributions.transforms
local positive = lt.distributions.TransformedDistribution(d, {
  lt.distributions.AffineTransform(1, 2), lt.distributions.ExpTransform()})
print(positive:cdf(math.exp(1)):item())  --> 0.5

-- Divergences
local p, q = lt.distributions.Normal(0, 1), lt.distributions.Normal(1, 1)
print(lt.distributions.kl_divergence(p, q):item())  --> 0.5

-- A distribution and a divergence of your own
local Point = lt.distributions.Distribution:extend("Point", {params = {{"loc", "real"}}})
function Point:rsample(...) return self.loc:expand(self:sample_sizes(...)) end
lt.distributions.register_kl(Point, lt.distributions.Normal, function(a, b)
  return -b:log_prob(a.loc)
end)
print(lt.distributions.kl_divergence(Point(0), p):item() > 0.9)  --> true

-- Arguments and values are checked; for speed, they need not be
lt.distributions.Distribution.set_default_validate_args(false)
print(lt.distributions.Normal(0, -1))  --> Normal(loc: 0, scale: -1)
lt.distributions.Distribution.set_default_validate_args(true)

-- Constraints: sets of values
print(lt.distributions.constraints.interval(0, 1):check(lt.tensor{0.5, 2}))  --> tensor{ true, false}
print(d.support, lt.distributions.constraints.greater_than(3))  --> numbers other than nan	numbers above 3
local sets = {
  lt.distributions.constraints.greater_than_eq(0), lt.distributions.constraints.less_than(1),
  lt.distributions.constraints.half_open_interval(0, 1),
  lt.distributions.constraints.integer_interval(1, 6),
  lt.distributions.constraints.multinomial(3),
  lt.distributions.constraints.independent(d.support, 1),
}
local parts = lt.distributions.constraints.cat({d.support, lt.distributions.constraints.positive}, 1,
  {2, 1})
local slices = lt.distributions.constraints.stack{d.support, lt.distributions.constraints.positive}
print(parts:check(lt.tensor{-1., 2, 0}), slices:check(lt.tensor{-1., 2}))  --> tensor{ true,  true, false}	tensor{true, true}
print(#sets, tostring(sets[4]))  --> 6	integers from 1 to 6

-- Transforms: functions with inverses and Jacobians
local affine = lt.distributions.AffineTransform(1, 2)
local y = affine(lt.tensor{3.})
print(y, affine.inv(y), affine:log_abs_det_jacobian(lt.tensor{3.}, y))  --> tensor{7.}	tensor{3.}	tensor{0.6931}
print(affine:inverse(y), affine:forward(y), affine:equals(affine))  --> tensor{3.}	tensor{15.}	true

-- Each element
for _, each in ipairs{
  lt.distributions.SigmoidTransform(), lt.distributions.TanhTransform(),
  lt.distributions.SoftplusTransform(), lt.distributions.AbsTransform(),
  lt.distributions.PowerTransform(2.0),
  lt.distributions.CumulativeDistributionTransform(p),
} do
  assert(each(lt.tensor{0.5}):gt(0):item())
end

-- Vectors and matrices
local breaking = lt.distributions.StickBreakingTransform()
print(breaking(lt.zeros(2)), #breaking:forward_shape{2}, #breaking:inverse_shape{3})  --> tensor{0.3333, 0.3333, 0.3333}	1	1
print(lt.distributions.SoftmaxTransform()(lt.zeros(2)))  --> tensor{0.5000, 0.5000}
print(lt.distributions.ReshapeTransform({4}, {2, 2})(lt.ones(4)).shape)  --> {2, 2}
for _, each in ipairs{lt.distributions.LowerCholeskyTransform(),
  lt.distributions.PositiveDefiniteTransform()} do
  assert(each(lt.zeros(2, 2)):sum():item() == 2)
end

-- Several transforms
local composed = lt.distributions.ComposeTransform{affine, transforms.ExpTransform()}
local summed = lt.distributions.IndependentTransform(affine, 1)
local stacked = lt.distributions.StackTransform{affine, transforms.ExpTransform()}
print(composed(lt.tensor(-0.5)):item(), summed(lt.tensor{1.}), stacked(lt.zeros(2)))  --> 1.0	tensor{3.}	tensor{1., 1.}

local cat = lt.distributions.CatTransform({affine, transforms.ExpTransform()}, 1, {2, 1})
print(cat(lt.zeros(3)))  --> tensor{1., 1., 1.}
print(lt.distributions.CorrCholeskyTransform()(lt.zeros(1)):diag())  --> tensor{1., 1.}

-- The transforms are also fields of lt.distributions; identity_transform returns its argument
print(lt.distributions.ExpTransform()(lt.zeros(1)))  --> tensor{1.}
print(lt.distributions.identity_transform(lt.ones(1)))  --> tensor{1.}

-- Transforms to the values that meet a constraint, for parameters that are trained
local free = lt.zeros({3}, {requires_grad = true})
local positive = lt.distributions.transform_to(lt.distributions.constraints.positive)
print(positive(free):detach())  --> tensor{1., 1., 1.}
print(lt.distributions.biject_to(lt.distributions.constraints.simplex)(lt.zeros(2)))  --> tensor{0.3333, 0.3333, 0.3333}

-- A transform of your own
local Cube = lt.distributions.Transform:extend("Cube", {bijective = true, sign = 1})
function Cube.forward(_, v) return v ^ 3 end
print(Cube()(lt.tensor(2.)):item())  --> 8.0
