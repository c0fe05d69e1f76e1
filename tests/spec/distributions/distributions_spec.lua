-- Distributions: values and gradients of PyTorch, samples by their moments, errors.

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local D = lt.distributions
local fails = support.fails
local golden = support.golden "distributions"
local ROUGH = 1e-4 -- on devices without float64

local function tensor(t) return type(t) == "table" and t.data and support.tensor(t) or t end

-- Fails unless two tensors have one shape and equal values, nan and infinities included.
local function same(expected, actual, tolerance, what)
  if type(expected) == "number" then expected = {shape = {}, data = {expected}} end
  tolerance = wide.tolerance(tolerance, ROUGH)
  assert.equal(tostring(support.tensor(expected, wide.dtype).shape), tostring(actual.shape), what)
  local list = actual:detach():to(wide.dtype):reshape(-1):totable()
  for i, a in ipairs(expected.data) do
    local b = list[i]
    local is_same = a == b or a ~= a and b ~= b
      or math.abs(a - b) <= tolerance * math.max(1, math.abs(a))
    if not is_same then
      error(("%s: element %d is %.17g, expected %.17g"):format(what, i, b, a), 2)
    end
  end
end

local function arguments(given, grads)
  local named = {}
  for name, value in pairs(given) do
    named[name] = tensor(value)
    if lt.is_tensor(named[name]) and named[name]:is_floating_point() and grads then
      named[name] = named[name]:requires_grad_()
    elseif type(value) == "number" and wide.dtype == "float64" and math.type(value) == "float" then
      named[name] = lt.tensor(value, {dtype = "float64"})
    end
  end
  return named
end

describe("distributions of PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.distributions) do
    it(("%s, case %d"):format(case.name, number), function()
      local named = arguments(case.args, case.grads)
      local d, tolerance = D[case.name](named), case.rough or 1e-9
      local value = tensor(case.value)
      assert.same(case.batch_shape, {table.unpack(d.batch_shape)})
      assert.same(case.event_shape, {table.unpack(d.event_shape)})
      local log_prob = d:log_prob(value)
      same(case.log_prob, log_prob, tolerance, "log_prob")
      if case.grads then
        log_prob:sum():backward()
        for name, grad in pairs(case.grads) do
          same(grad, named[name].grad, math.max(tolerance, 1e-7), "gradient of " .. name)
        end
      end
      if case.cdf then same(case.cdf, d:cdf(value), tolerance, "cdf") end
      if case.icdf then
        same(case.icdf, d:icdf(support.tensor {shape = {3}, data = {0.1, 0.5, 0.9}}), tolerance,
          "icdf")
      end
      if case.entropy then same(case.entropy, d:entropy(), tolerance, "entropy") end
      for _, key in ipairs {"mean", "variance", "stddev", "mode"} do
        if case[key] then same(case[key], d[key], case.rough or 1e-8, key) end
      end
      if case.support then same(case.support, d:enumerate_support(), 0, "support") end
    end)

    it(("%s, case %d, expands, samples and prints"):format(case.name, number), function()
      local d = D[case.name](arguments(case.args))
      local sizes = {3, table.unpack(case.batch_shape)}
      local wider = d:expand(sizes)
      assert.same(sizes, {table.unpack(wider.batch_shape)})
      assert.same(case.event_shape, {table.unpack(wider.event_shape)})
      local shape = {2, table.unpack(sizes)}
      table.move(case.event_shape, 1, #case.event_shape, #shape + 1, shape)
      lt.manual_seed(number)
      local x = wider:sample {2}
      assert.same(shape, {table.unpack(x.shape)})
      assert.is_false(x.requires_grad)
      assert.equal(tostring(wider:log_prob(x).shape), tostring(d:log_prob(x).shape))
      assert.is_true(lt.allclose(wider:log_prob(x), d:log_prob(x), {equal_nan = true}))
      assert.truthy(tostring(d):find(case.name .. "(", 1, true))
      assert.equal(#sizes - 1 + #case.event_shape, d:sample().ndim)
    end)
  end

  for _, case in ipairs(golden.divergences) do
    it(("kl_divergence(%s, %s)"):format(case.p, case.q), function()
      local p, q = D[case.p](arguments(case.first)), D[case.q](arguments(case.second))
      same(case.kl, D.kl_divergence(p, q), 1e-8, "kl")
    end)
  end

  local function given(name)
    local case
    for _, each in ipairs(golden.distributions) do
      if each.name == name then
        case = each
        break
      end
    end
    return case.args
  end
  local normal = given "Normal"
  local loc, scale = tensor(normal.loc), tensor(normal.scale)
  local function wide_tensor(data) return lt.tensor(data, {dtype = wide.dtype}) end
  local mix = D.Categorical(wide_tensor {1.0, 2, 3})
  local t = D.transforms
  local gamma = arguments(given "Gamma")
  local composed = {
    independent = function() return D.Independent(D.Normal(loc, scale), 1) end,
    mixture = function()
      return D.MixtureSameFamily(mix, D.Normal(wide_tensor {-1.0, 0.5, 2.0}, scale))
    end,
    ["mixture of vectors"] = function()
      return D.MixtureSameFamily(mix,
        D.Independent(D.Normal(loc:t(), wide_tensor {0.5, 1.0}), 1))
    end,
    exp = function()
      return D.TransformedDistribution(D.Normal(loc, scale), {t.ExpTransform()})
    end,
    ["affine and sigmoid"] = function()
      return D.TransformedDistribution(D.Normal(loc, scale),
        {t.AffineTransform(0.5, -2.0), t.SigmoidTransform()})
    end,
    tanh = function()
      return D.TransformedDistribution(D.Normal(loc, scale), t.TanhTransform())
    end,
    power = function()
      return D.TransformedDistribution(D.Gamma(gamma), t.PowerTransform(0.5))
    end,
    ["stick breaking"] = function()
      return D.TransformedDistribution(D.Normal(loc, scale), t.StickBreakingTransform())
    end,
    ["affine of vectors"] = function()
      return D.TransformedDistribution(D.Independent(D.Normal(loc, scale), 1),
        t.AffineTransform(loc, scale, 1))
    end,
  }
  for _, case in ipairs(golden.composed) do
    it(case.name, function()
      local d, value = composed[case.name](), tensor(case.value)
      assert.same(case.batch_shape, {table.unpack(d.batch_shape)})
      assert.same(case.event_shape, {table.unpack(d.event_shape)})
      same(case.log_prob, d:log_prob(value), 1e-8, "log_prob")
      if case.cdf then same(case.cdf, d:cdf(value), 1e-8, "cdf") end
      if case.mean then same(case.mean, d.mean, 1e-8, "mean") end
      if case.variance then same(case.variance, d.variance, 1e-8, "variance") end
      if case.entropy then same(case.entropy, d:entropy(), 1e-8, "entropy") end
      local wider = d:expand {4, table.unpack(case.batch_shape)}
      local shape = {5, 4, table.unpack(case.batch_shape)}
      table.move(case.event_shape, 1, #case.event_shape, #shape + 1, shape)
      local x = wider:sample(5)
      assert.same(shape, {table.unpack(x.shape)})
      assert.is_true(wider:log_prob(x):isfinite():all():item())
    end)
  end
end)

describe("transforms of PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.transforms) do
    local class = D.transforms[case.name]
    if class then
      it(("%s, case %d"):format(case.name, number), function()
        local given = {}
        for i, value in ipairs(case.given) do given[i] = tensor(value) end
        local transform, x = class(table.unpack(given)), tensor(case.x)
        local y = transform(x)
        same(case.y, y, 1e-9, "y")
        same(case.inverse, transform.inv(y), 1e-7, "inverse")
        if case.log_det then
          same(case.log_det, transform:log_abs_det_jacobian(x, y), 1e-9, "log_det")
          local back = transform.inv:log_abs_det_jacobian(y, x)
          assert.is_true(lt.allclose(-transform:log_abs_det_jacobian(x, y), back))
        end
        assert.same(case.forward_shape, {table.unpack(transform:forward_shape(x.shape))})
        assert.same({table.unpack(x.shape)}, {table.unpack(transform:inverse_shape(y.shape))})
        assert.equal(transform, transform.inv.inv)
        assert.truthy(tostring(transform):find(case.name, 1, true))
      end)
    end
  end

  for number, case in ipairs(golden.registries) do
    it(("%s(constraints.%s), case %d"):format(case.title, case.constraint, number), function()
      local constraint = D.constraints[case.constraint]
      if case.given then
        local given = {}
        for i, value in ipairs(case.given) do given[i] = tensor(value) end
        constraint = constraint(table.unpack(given))
      end
      if not case.y then
        fails(case.title .. ": cannot transform numbers to " .. tostring(constraint),
          function() D[case.title](constraint) end)
        return
      end
      local transform, x = D[case.title](constraint), tensor(case.x)
      local y = transform(x)
      same(case.y, y, 1e-9, "y")
      same(case.inverse, transform.inv(y), 1e-7, "inverse")
      assert.is_true(constraint:check(y):all():item())
      if case.log_det then
        same(case.log_det, transform:log_abs_det_jacobian(x, y), 1e-9, "log_det")
      end
    end)
  end

  it("are fields of lt.distributions, too", function()
    for name, class in pairs(D.transforms) do assert.equal(class, D[name]) end
    assert.equal(D.identity_transform, D.identity_transform.inv)
    assert.is_true(D.identity_transform:equals(D.ComposeTransform {}))
    assert.is_true(D.ComposeTransform({}):equals(D.identity_transform))
    assert.is_false(D.identity_transform:equals(D.ExpTransform()))
    assert.is_false(D.identity_transform:equals(3))
    local x = lt.tensor {1.0, 2.0}
    assert.is_true(lt.equal(x, D.identity_transform(x)))
    assert.is_true(lt.equal(lt.zeros(2), D.identity_transform:log_abs_det_jacobian(x, x)))
  end)

  it("of parts and slices", function()
    local c = D.constraints
    local x = lt.tensor({{0.5, -1.0, 2.0}, {0.1, 0.3, -0.7}}, {dtype = wide.dtype})
    local cat = D.CatTransform({D.ExpTransform(), D.AffineTransform(1, 2)}, {dim = -1,
      lengths = {2, 1}})
    local y = cat(x)
    assert.is_true(lt.allclose(y:narrow(2, 1, 2), x:narrow(2, 1, 2):exp()))
    assert.is_true(lt.allclose(y:narrow(2, 3, 1), 1 + 2 * x:narrow(2, 3, 1)))
    assert.is_true(lt.allclose(cat.inv(y), x, {atol = 1e-5}))
    local det = cat:log_abs_det_jacobian(x, y)
    assert.is_true(lt.allclose(det:narrow(2, 1, 2), x:narrow(2, 1, 2)))
    assert.is_true(lt.allclose(det:narrow(2, 3, 1), lt.full_like(x:narrow(2, 3, 1), math.log(2))))
    local vectors = D.CatTransform({D.IndependentTransform(D.ExpTransform(), 1),
      D.identity_transform}, -1, {2, 1}):log_abs_det_jacobian(x, y)
    assert.is_true(lt.allclose(vectors, x:narrow(2, 1, 2):sum(-1)))

    local mixed = c.cat({c.positive, c.unit_interval}, -1, {2, 1})
    assert.same({{true, false, false}, {true, true, false}}, mixed:check(x):totable())
    assert.is_true(mixed:check(D.biject_to(mixed)(x)):all():item())
    local sliced = c.stack({c.positive, c.real, c.less_than(0)}, 2)
    assert.same({{true, true, false}, {true, true, true}}, sliced:check(x):totable())
    assert.is_true(sliced:check(D.transform_to(sliced)(x)):all():item())
    assert.is_true(c.cat{c.boolean, c.real}.is_discrete)

    fails("CatTransform: expected 2 sizes for argument 'lengths', got 1", function()
      local _ = D.CatTransform({D.ExpTransform(), D.ExpTransform()}, 1, {3})
    end)
    fails("CatTransform: expected size 1 in dimension 1, got {2}",
      function() local _ = D.CatTransform({D.ExpTransform()})(lt.ones(2)) end)
    fails("CatTransform: expected a transform for argument 'tseq[1]', got 3",
      function() local _ = D.CatTransform {3} end)
    fails("CorrCholeskyTransform: expected a last size of n * (n - 1) / 2 for an integer n, got 2",
      function() local _ = D.CorrCholeskyTransform()(lt.ones(2)) end)
    fails("stack: expected a constraint for argument 'cseq[1]', got 3",
      function() local _ = c.stack {3} end)
    fails("dependent: cannot check values", function() local _ = c.dependent:check(x) end)
    fails("biject_to: expected a constraint for argument 'constraint', got 3",
      function() local _ = D.biject_to(3) end)
  end)

  it("of positive definite matrices, distribution functions, stacks and lists", function()
    local T = D.transforms
    local x = lt.tensor({{0.3, 5.0}, {-1.0, 0.2}}, {dtype = wide.dtype})
    local y = T.PositiveDefiniteTransform()(x)
    assert.is_true(D.constraints.positive_definite:check(y):item())
    assert.is_true(lt.allclose(T.PositiveDefiniteTransform().inv(y), x:tril(), {atol = 1e-5}))
    local cumulative = T.CumulativeDistributionTransform(D.Normal(0, 1))
    assert.is_true(lt.allclose(cumulative.inv(cumulative(x:clamp{max = 2})), x:clamp{max = 2},
      {atol = 1e-4}))
    local stack = T.StackTransform({T.ExpTransform(), T.AffineTransform(1, 2)}, 2)
    local z = stack(x)
    assert.is_true(lt.allclose(z:select(2, 1), x:select(2, 1):exp()))
    assert.is_true(lt.allclose(stack.inv(z), x))
    local det = stack:log_abs_det_jacobian(x, z)
    assert.is_true(lt.allclose(det:select(2, 2), lt.full_like(x:select(2, 1), math.log(2))))
    local both = T.ComposeTransform{T.ExpTransform(), T.AffineTransform(1, 2)}
    assert.is_true(lt.allclose(both(x), 1 + 2 * x:exp()))
    assert.is_true(lt.allclose(both.inv(both(x)), x, {atol = 1e-5}))
    assert.is_true(lt.allclose(both:log_abs_det_jacobian(x, both(x)), x + math.log(2)))
    assert.is_true(both:equals(T.ComposeTransform{T.ExpTransform(), T.AffineTransform(1, 2)}))
    local summed = T.IndependentTransform(T.ExpTransform(), 1)
    assert.is_true(lt.allclose(summed:log_abs_det_jacobian(x, x:exp()), x:sum(-1)))
  end)

  it("refuse wrong arguments", function()
    local T = D.transforms
    fails("ExpTransform: expected a tensor for argument 'x', got 3",
      function() local _ = T.ExpTransform()(3) end)
    fails("SoftmaxTransform: log_abs_det_jacobian is not available", function()
      local _ = T.SoftmaxTransform():log_abs_det_jacobian(lt.ones(2), lt.ones(2))
    end)
    fails("ReshapeTransform: expected as many elements in 'in_shape' as in 'out_shape', got 3 "
      .. "and 4", function() local _ = T.ReshapeTransform({3}, {4}) end)
    fails("ComposeTransform: expected a transform for argument 'parts[2]', got 3",
      function() local _ = T.ComposeTransform {T.ExpTransform(), 3} end)
    fails("CumulativeDistributionTransform: expected a distribution",
      function() local _ = T.CumulativeDistributionTransform(3) end)
    fails("StackTransform: expected size 1 in dimension 1, got {2}",
      function() local _ = T.StackTransform({T.ExpTransform()})(lt.ones(2)) end)
    fails({"TransformedDistribution: cannot compute the distribution function", "AbsTransform"},
      function() D.TransformedDistribution(D.Normal(0, 1), T.AbsTransform()):cdf(1.0) end)
    fails({"kl_divergence: expected distributions with the same transforms"}, function()
      D.kl_divergence(D.TransformedDistribution(D.Normal(0, 1), T.ExpTransform()),
        D.TransformedDistribution(D.Normal(0, 1), T.TanhTransform()))
    end)
    local one = D.TransformedDistribution(D.Normal(0, 1), T.ExpTransform())
    assert.equal(0, D.kl_divergence(one, one):item())
    local Cube = T.Transform:extend("Cube", {bijective = true, sign = 1})
    function Cube.forward(_, x) return x ^ 3 end
    assert.equal(8, Cube()(lt.tensor(2.0)):item())
    fails("Cube: cannot compute the inverse", function() local _ = Cube().inv(lt.tensor(2.0)) end)
    local Twice = T.Transform:extend "Twice" -- by PyTorch's names of the methods
    function Twice._call(_, x) return x * 2 end
    function Twice._inverse(_, y) return y / 2 end
    assert.equal(6, Twice()(lt.tensor(3.0)):item())
    assert.equal(3, Twice().inv(lt.tensor(6.0)):item())
  end)
end)

describe("constraints", function()
  it("check values and events", function()
    local c = D.constraints
    local x = lt.tensor {-1.0, 0, 0.5, 2}
    local rows = {
      {c.real, {true, true, true, true}}, {c.positive, {false, false, true, true}},
      {c.nonnegative, {false, true, true, true}}, {c.unit_interval, {false, true, true, false}},
      {c.boolean, {false, true, false, false}}, {c.greater_than(0.5), {false, false, false, true}},
      {c.greater_than_eq(0.5), {false, false, true, true}},
      {c.less_than(0), {true, false, false, false}}, {c.interval(0, 2), {false, true, true, true}},
      {c.half_open_interval(0, 2), {false, true, true, false}},
      {c.nonnegative_integer, {false, true, false, true}},
      {c.positive_integer, {false, false, false, true}},
      {c.integer_interval(-1, 1), {true, true, false, false}},
    }
    for _, row in ipairs(rows) do
      assert.same(row[2], row[1]:check(x):totable(), tostring(row[1]))
    end
    local m = lt.tensor {{{1.0, 0}, {2, 1}}, {{1, 2}, {2, 5}}, {{1, 2}, {2, 1}}, {{1, 1}, {0, 1}}}
    assert.same({true, false, false, false}, c.lower_triangular:check(m):totable())
    assert.same({true, false, false, false}, c.lower_cholesky:check(m):totable())
    assert.same({false, true, true, false}, c.symmetric:check(m):totable())
    assert.same({false, true, false, false}, c.positive_definite:check(m):totable())
    assert.same({false, true, false, false}, c.positive_semidefinite:check(m):totable())
    assert.is_true(c.square:check(m):item())
    assert.same({false, false, false, false}, c.corr_cholesky:check(m):totable())
    assert.is_true(c.corr_cholesky:check(lt.tensor {{1.0, 0}, {-0.6, 0.8}}):item())
    assert.same({true, false}, c.simplex:check(lt.tensor {{0.5, 0.5}, {0.5, 0.6}}):totable())
    assert.same({true, false}, c.one_hot:check(lt.tensor {{0.0, 1}, {1, 1}}):totable())
    assert.same({true, false}, c.multinomial(3):check(lt.tensor {{1, 2}, {3, 2}}):totable())
    assert.same({true, false}, c.independent(c.positive, 1):check(lt.tensor {{1, 2}, {3, 0}})
      :totable())
    assert.equal(1, c.real_vector.event_dim)
    assert.is_true(c.boolean.is_discrete)
    assert.equal("numbers from 0 to 1", tostring(c.unit_interval))
  end)
end)

-- Distributions with means and variances, whose samples are compared with them: the class, its
-- arguments, the number of samples.
local sampled = {
  {"Normal", {loc = {-1.0, 2}, scale = {0.5, 3}}}, {"Uniform", {low = {-1.0, 2}, high = {0.5, 3}}},
  {"Exponential", {rate = {0.5, 3}}}, {"Laplace", {loc = {-1.0, 2}, scale = {0.5, 3}}},
  {"Gamma", {concentration = {0.3, 1, 7.5}, rate = {2.0, 1, 0.5}}}, {"Chi2", {df = {1.0, 5}}},
  {"Beta", {concentration1 = {0.5, 2}, concentration0 = {1.5, 3}}},
  {"Dirichlet", {concentration = {0.5, 2, 4}}}, {"Bernoulli", {probs = {0.1, 0.7}}},
  {"OneHotCategorical", {probs = {0.1, 0.7, 0.2}}}, {"Poisson", {rate = {0.4, 12.5}}},
  {"Binomial", {total_count = 12, probs = {0.1, 0.6}}}, {"Geometric", {probs = {0.2, 0.8}}},
  {"NegativeBinomial", {total_count = 3, probs = {0.2, 0.6}}},
  {"Multinomial", {total_count = 7, probs = {0.2, 0.5, 0.3}}},
  {"StudentT", {df = {9.0, 20}, loc = 1, scale = 2}},
  {"Gumbel", {loc = {0.5, 2}, scale = {1.0, 2}}},
  {"HalfNormal", {scale = {0.5, 2}}}, {"LogNormal", {loc = {0.1, 0.5}, scale = {0.2, 0.5}}},
  {"Pareto", {scale = {0.5, 2}, alpha = {9.0, 12}}},
  {"Weibull", {scale = {0.5, 2}, concentration = {1.2, 3}}},
  {"InverseGamma", {concentration = {9.0, 12}, rate = {1.0, 2}}},
  {"Kumaraswamy", {concentration1 = {0.6, 2}, concentration0 = {1.5, 3}}},
  {"FisherSnedecor", {df1 = {4.0, 9}, df2 = {20.0, 30}}},
  {"ContinuousBernoulli", {probs = {0.1, 0.5, 0.8}}},
  {"MultivariateNormal", {loc = {1.0, -1}, scale_tril = {{2.0, 0}, {1, 0.5}}}},
  {"LowRankMultivariateNormal", {loc = {1.0, -1}, cov_factor = {{2.0}, {1}}, cov_diag = {1.0, 2}}},
  {"Wishart", {df = {3.0, 7.5}, covariance_matrix = {{2.0, 0.5}, {0.5, 1}}}},
  {"GeneralizedPareto", {loc = {-1.0, 2, 0}, scale = {0.5, 3, 1}, concentration = {-0.4, 0, 0.1}}},
}

describe("samples", function()
  local N = 40000
  for _, row in ipairs(sampled) do
    local class, given = row[1], row[2]
    it("of " .. class .. " have its mean and variance", function()
      lt.manual_seed(7)
      local named = {}
      for name, value in pairs(given) do
        named[name] = type(value) == "table" and lt.tensor(value) or value
      end
      local d = D[class](named)
      local x = d:sample(N)
      -- The bounds are six standard errors; that of the variance is from the samples' own.
      local spread = d.variance:sqrt() / math.sqrt(N)
      assert.is_true((x:mean(1) - d.mean):abs():le(6 * spread + 1e-6):all():item(), "mean")
      local squares = (x - d.mean) ^ 2
      local error = squares:std(1) / math.sqrt(N)
      assert.is_true((squares:mean(1) - d.variance):abs():le(6 * error + 1e-6):all():item(),
        "variance")
    end)
  end

  it("of distributions without a mean have their quantiles", function()
    lt.manual_seed(8)
    for _, d in ipairs {D.Cauchy(1.0, 2.0), D.HalfCauchy(2.0), D.Normal(0, 1), D.Laplace(0, 1),
      D.Gumbel(0, 1), D.Kumaraswamy(2.0, 3.0), D.Weibull(1.0, 2.0), D.Gamma(0.4, 1.0)} do
      local x = d:sample(N):sort()
      -- Kolmogorov and Smirnov: P(D > 2 / sqrt(N)) is 0.07 %
      local rank = (lt.arange(N):to(x.dtype) - 0.5) / N
      assert.is_true((d:cdf(x) - rank):abs():max():item() < 2 / math.sqrt(N), tostring(d))
    end
  end)

  it("of classes are 1-based, with their frequencies", function()
    lt.manual_seed(9)
    local d = D.Categorical(lt.tensor {{0.2, 0.3, 0.5}, {0.6, 0, 0.4}})
    local x = d:sample {N}
    assert.equal("int64", x.dtype)
    for k = 1, 3 do
      local share = x:eq(k):to "float32":mean(1)
      assert.is_true((share - d.probs:select(-1, k)):abs():max():item() < 0.015)
    end
    assert.same({3, 1}, d.mode:totable())
  end)

  it("of von Mises have its mean direction", function()
    lt.manual_seed(10)
    local d = D.VonMises(lt.tensor {0.5, 3.0}, lt.tensor {1.0, 4.0})
    local x = d:sample(N)
    assert.is_true(x:abs():max():item() <= math.pi + 1e-5)
    local ratio = lt.special.i1e(d.concentration) / lt.special.i0e(d.concentration)
    assert.is_true(((x - d.loc):cos():mean(1) - ratio):abs():max():item() < 0.015)
    assert.is_true((x - d.loc):sin():mean(1):abs():max():item() < 0.015)
  end)

  it("carry gradients of the mean to the parameters", function()
    lt.manual_seed(11)
    local function gradient(make, value)
      local p = lt.tensor(value, {requires_grad = true})
      make(p):rsample(N):mean(1):sum():backward()
      return p.grad
    end
    local function near(expected, actual, bound)
      assert.is_true((lt.tensor(expected) - actual):abs():max():item() < bound, tostring(actual))
    end
    near({1.0, 1.0, 1.0}, gradient(function(a) return D.Gamma(a, 1.0) end, {0.4, 2.0, 30.0}), 0.03)
    near({1.0}, gradient(function(m) return D.Normal(m, 1.0) end, {0.4}), 1e-4)
    near({-1 / 4}, gradient(function(r) return D.Exponential(r) end, {2.0}), 0.01)
    near({2 / 9}, gradient(function(a) return D.Beta(a, 2.0) end, {1.0}), 0.01)
    near({1.0}, gradient(function(df) return D.Chi2(df) end, {3.0}), 0.03)
    near({0.0, 0.0}, gradient(function(a)
      return D.Dirichlet(a)
    end, {1.0, 2.0}), 0.01)
    local p = lt.tensor({0.2, 0.8}, {requires_grad = true})
    local one_hot = D.OneHotCategoricalStraightThrough(p):rsample()
    assert.is_true(one_hot:sum():item() == 1)
    local weighted = one_hot * lt.tensor {1.0, 3.0}
    weighted:sum():backward()
    near({1 - (0.2 + 2.4), 3 - (0.2 + 2.4)}, p.grad, 1e-5)
  end)

  it("of relaxed classes are close to one-hot at low temperatures", function()
    lt.manual_seed(12)
    local x = D.RelaxedOneHotCategorical(0.01, lt.tensor {0.2, 0.8}):sample(2000)
    assert.is_true(x:max(-1):mean():item() > 0.98)
    assert.is_true(math.abs(x:mean(1)[2]:item() - 0.8) < 0.05)
    local y = D.RelaxedBernoulli(0.01, lt.tensor {0.2}):sample(2000)
    assert.is_true(math.abs(y:mean():item() - 0.2) < 0.05)
  end)
end)

describe("the divergence of Wishart distributions", function()
  local options = {dtype = wide.dtype}
  local function wishart(df, covariance)
    return D.Wishart(lt.tensor(df, options), lt.tensor(covariance, options))
  end

  it("is that of Gamma distributions for matrices of one number", function()
    local p, q = wishart(3.0, {{0.5}}), wishart(4.5, {{2.0}})
    local function gamma(df, v) return D.Gamma(lt.tensor(df / 2, options), 1 / (2 * v)) end
    assert.is_true(lt.allclose(D.kl_divergence(p, q),
      D.kl_divergence(gamma(3.0, 0.5), gamma(4.5, 2.0)), {rtol = ROUGH}))
  end)

  it("is the mean of the difference of the densities' logarithms", function()
    lt.manual_seed(3)
    local p = wishart({6.0, 9.0}, {{2.0, 0.5}, {0.5, 1.0}})
    local q = wishart({8.0, 7.0}, {{1.0, -0.2}, {-0.2, 1.0}})
    local x = p:sample(20000)
    local mean = (p:log_prob(x) - q:log_prob(x)):mean(1)
    assert.is_true(lt.allclose(mean, D.kl_divergence(p, q), {rtol = 0.03}))
    assert.is_true(lt.allclose(D.kl_divergence(p, p), lt.zeros(2, options), {atol = ROUGH}))
  end)
end)

describe("a distribution", function()
  it("refuses wrong arguments", function()
    fails("Normal: expected numbers above 0 for argument 'scale', got -1",
      function() D.Normal(0, lt.tensor {1.0, -1.0}) end)
    fails("Normal: expected a number or a tensor for argument 'scale', got nil",
      function() D.Normal(0) end)
    fails("Uniform: expected numbers below 1 for argument 'low', got 2",
      function() D.Uniform(2.0, 1.0) end)
    for _, name in ipairs {"Bernoulli", "Categorical", "Geometric"} do
      fails(name .. ": expected one of the arguments 'probs' and 'logits', got none",
        function() D[name]() end)
    end
    fails("Geometric: expected numbers above 0 for argument 'probs', got 0",
      function() D.Geometric(lt.tensor{0.5, 0}) end)
    assert.equal(0, D.Geometric(0.0, {validate_args = false}).probs:item())
    fails("Bernoulli: expected one of the arguments 'probs' and 'logits', got both",
      function() D.Bernoulli(0.5, 0.5) end)
    fails("Categorical: expected numbers of at least 0 with sum 1",
      function() D.Categorical(lt.tensor {-1.0, 2.0}) end)
    fails("MultivariateNormal: expected positive definite matrices for argument "
      .. "'covariance_matrix'",
      function() D.MultivariateNormal(lt.zeros(2), lt.tensor {{1.0, 2}, {2, 1}}) end)
    fails({"MultivariateNormal: expected one of the arguments", "got none"},
      function() D.MultivariateNormal(lt.zeros(2)) end)
    fails("Independent: expected at most 0 for argument 'reinterpreted_batch_ndims', got 1",
      function() D.Independent(D.Normal(0, 1), 1) end)
    fails("MixtureSameFamily: expected a batch of 2 components",
      function() D.MixtureSameFamily(D.Categorical(lt.ones(2)), D.Normal(lt.zeros(3), 1)) end)
    fails({"Wishart: expected one of the arguments", "got none"}, function() D.Wishart(3.0) end)
    fails("Wishart: expected numbers above 1 for argument 'df', got 1",
      function() D.Wishart(1.0, lt.eye(2)) end)
    fails("GeneralizedPareto: expected numbers above 0 for argument 'scale', got -1",
      function() D.GeneralizedPareto(0, -1, 0) end)
    fails({"LKJCholesky", "'dim'", "got 1"}, function() D.LKJCholesky(1) end)
    fails("LKJCholesky: log_prob: expected lower triangular matrices",
      function() D.LKJCholesky(2):log_prob(lt.ones(2, 2)) end)
    for _, name in ipairs {"ExpRelaxedCategorical", "LogitRelaxedBernoulli"} do
      fails({"expected one of the arguments 'probs' and 'logits', got none"},
        function() D[name](0.5) end)
    end
    fails("Multinomial", function() D.Multinomial(-1, lt.ones(2)) end)
    assert.is_true(D.Normal(0, -1, {validate_args = false}).scale:item() == -1)
  end)

  it("refuses values outside its support, or of another shape", function()
    fails("Exponential: log_prob: expected numbers of at least 0 for argument 'value', got -1",
      function() D.Exponential(1.0):log_prob(-1) end)
    fails("Categorical: log_prob: expected integers from 1 to 3 for argument 'value', got 0",
      function() D.Categorical(lt.ones(3)):log_prob(lt.tensor(0)) end)
    fails({"Normal: cdf: expected a tensor that can be broadcast with {2}", "got shape {3}"},
      function() D.Normal(lt.zeros(2), 1):cdf(lt.ones(3)) end)
    fails("Normal: log_prob: expected a tensor or a number for argument 'value', got the string",
      function() D.Normal(0, 1):log_prob "x" end)
    fails("Poisson: cannot compute gradients of samples", function() D.Poisson(1.0):rsample() end)
    fails("Poisson: entropy is not available for this distribution",
      function() D.Poisson(1.0):entropy() end)
    fails({"Normal: sample", "expected sizes"}, function() D.Normal(0, 1):sample(-1) end)
    fails("Binomial: entropy: expected one number of trials in total_count, got several",
      function() D.Binomial(lt.tensor {1.0, 2}, lt.tensor {0.5, 0.5}):entropy() end)
  end)

  it("checks its arguments and values by default, unless validate_args is false", function()
    D.Distribution.set_default_validate_args(false)
    assert.is_true(D.Normal(0, -1).scale:item() == -1)
    D.Distribution.set_default_validate_args(true)
    fails("Normal", function() D.Normal(0, -1) end)
    fails({"set_default_validate_args", "got 3"},
      function() D.Distribution.set_default_validate_args(3) end)
  end)

  it("states whether gradients flow through samples and whether values can be listed", function()
    local normal, coin = D.Normal(lt.zeros(2), lt.ones(2)), D.Bernoulli(lt.tensor {0.5, 0.5})
    for _, d in ipairs {normal, D.Independent(normal, 1), D.LogisticNormal(lt.zeros(2), lt.ones(2)),
      D.TransformedDistribution(normal, {D.ExpTransform()})} do
      assert.is_true(d.has_rsample)
      assert.is_false(d.has_enumerate_support)
    end
    for _, d in ipairs {coin, D.Independent(coin, 0)} do
      assert.is_false(d.has_rsample)
      assert.is_true(d.has_enumerate_support)
    end
    assert.is_false(D.Independent(coin, 1).has_enumerate_support)
  end)

  it("has the perplexity of its entropy", function()
    assert.is_true(math.abs(D.Categorical(lt.ones(4)):perplexity():item() - 4) < 1e-4)
  end)

  it("of your own is a subclass with a divergence of its own", function()
    local Point = D.Distribution:extend("Point", {params = {{"loc", "real", 3}}})
    function Point.get:mean() return self.loc end
    function Point:rsample(...) return self.loc:expand(self:sample_sizes(...)) end
    local point = Point()
    assert.equal(3, point.mean:item())
    assert.equal("{2}", tostring(point:sample(2).shape))
    assert.equal("Point(loc: 3)", tostring(point))
    fails({"kl_divergence: cannot compute the divergence of Point from Normal", "register_kl"},
      function() D.kl_divergence(point, D.Normal(0, 1)) end)
    D.register_kl(Point, D.Normal, function(p, q) return -q:log_prob(p.loc) end)
    local Heavy = Point:extend "Heavy"
    local kl = D.kl_divergence(Heavy(1.0), D.Normal(0, 1)):item()
    assert.is_true(math.abs(kl - 1.4189385) < 1e-5)
    fails({"register_kl", "a class of distributions", "got 3"},
      function() D.register_kl(3, Point, print) end)
    fails({"kl_divergence", "a distribution", "got 3"},
      function() D.kl_divergence(3, point) end)
  end)
end)
