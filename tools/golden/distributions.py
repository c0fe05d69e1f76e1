"""Distributions: densities, moments, entropies, divergences and transforms."""

import math

import torch
from torch import distributions as D

import nn


def T(data):
  x = torch.tensor(data, dtype=torch.float64)
  flat = [data] if not isinstance(data, list) else data
  while isinstance(flat[0], list):
    flat = flat[0]
  return x if isinstance(flat[0], float) else x.long()


def probs(*shape):
  return torch.softmax(torch.randn(*shape), -1)


def square(*shape):
  x = torch.randn(*shape)
  return x @ x.mT + torch.eye(shape[-1])


def lower(*shape):
  return torch.linalg.cholesky(square(*shape))


LOC, SCALE = T([[-1.0, 0.5, 2.0], [0.0, 1.5, -0.3]]), T([0.5, 1.0, 2.5])
UNIT = T([0.1, 0.5, 0.9])
X = T([[-1.2, 0.3, 2.5], [0.7, 1.1, -2.0]])
POS = T([[0.2, 1.3, 2.5], [0.7, 4.1, 0.05]])
A, B, B1 = T([0.4, 1.5, 6.0]), T([[0.7], [2.5]]), T([0.7, 2.5, 1.2])


def table():
  """Yields the class, its arguments, a value, and options: base (1 for 1-based values), skip."""
  yield "Normal", dict(loc=LOC, scale=SCALE), X, {}
  yield "Normal", dict(loc=0.5, scale=2.0), X, {}
  yield "Uniform", dict(low=LOC, high=LOC + SCALE), LOC + SCALE * UNIT, {}
  yield "Exponential", dict(rate=SCALE), POS, {}
  yield "Laplace", dict(loc=LOC, scale=SCALE), X, {}
  yield "Gamma", dict(concentration=A, rate=B), POS, {}
  yield "Chi2", dict(df=A), POS, {}
  yield "Beta", dict(concentration1=A, concentration0=B), UNIT, {}
  yield "Dirichlet", dict(concentration=T([[0.5, 0.2, 0.9], [1.5, 2.0, 4.0]])), probs(2, 3), {}
  yield "Bernoulli", dict(probs=T([0.0, 0.2, 0.5, 1.0])), T([0.0, 1.0, 1.0, 1.0]), {"grads": False}
  yield "Bernoulli", dict(logits=LOC), T([0.0, 1.0, 1.0]), {}
  yield "Categorical", dict(probs=T([[1.0, 2.0, 3.0], [0.5, 0.0, 0.5]])), T([[2], [0]]), {"base": 1, "grads": False}
  yield "Categorical", dict(logits=LOC), T([0, 2]), {"base": 1}
  yield "OneHotCategorical", dict(logits=LOC), T([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), {}
  yield "Poisson", dict(rate=SCALE), T([[0.0, 2.0, 7.0]]), {}
  yield "Binomial", dict(total_count=5, probs=UNIT), T([[0.0, 2.0, 5.0]]), {}
  yield "Binomial", dict(total_count=T([3.0, 4.0, 9.0]), logits=LOC), T([[0.0, 2.0, 5.0]]), {"entropy": False}
  yield "Geometric", dict(probs=UNIT), T([[0.0, 2.0, 5.0]]), {}
  yield "Geometric", dict(logits=LOC), T([[0.0, 2.0, 5.0]]), {}
  yield "NegativeBinomial", dict(total_count=SCALE * 3, probs=UNIT), T([[0.0, 2.0, 5.0]]), {}
  yield "NegativeBinomial", dict(total_count=4, logits=LOC), T([[0.0, 2.0, 5.0]]), {}
  yield "Multinomial", dict(total_count=6, probs=probs(2, 3)), T([[1.0, 2.0, 3.0], [6.0, 0.0, 0.0]]), {}
  yield "Multinomial", dict(total_count=3, logits=T([0.1, -0.5])), T([1.0, 2.0]), {}
  yield "StudentT", dict(df=T([0.5, 1.5, 7.0]), loc=LOC, scale=SCALE), X, {}
  yield "StudentT", dict(df=3.0), X, {}
  yield "Cauchy", dict(loc=LOC, scale=SCALE), X, {}
  yield "Gumbel", dict(loc=LOC, scale=SCALE), X, {}
  yield "HalfNormal", dict(scale=SCALE), POS, {}
  yield "HalfCauchy", dict(scale=SCALE), POS, {}
  yield "LogNormal", dict(loc=LOC, scale=SCALE / 2), POS, {}
  yield "Pareto", dict(scale=SCALE, alpha=T([0.5, 1.5, 3.0])), SCALE + POS, {}
  yield "Weibull", dict(scale=SCALE, concentration=T([1.5, 2.0, 3.5])), POS, {}
  yield "InverseGamma", dict(concentration=A, rate=B), POS, {}
  yield "Kumaraswamy", dict(concentration1=A, concentration0=B), UNIT, {"mode": False}
  yield "FisherSnedecor", dict(df1=T([1.5, 3.0, 8.0]), df2=T([1.0, 3.0, 6.0])), POS, {}
  yield "ContinuousBernoulli", dict(probs=T([0.1, 0.4995, 0.8])), UNIT, {"grads": False}
  yield "ContinuousBernoulli", dict(logits=LOC), UNIT, {}
  yield "VonMises", dict(loc=LOC, concentration=SCALE), X, {"rough": 2e-6}
  yield "RelaxedBernoulli", dict(temperature=T(0.7), probs=UNIT), T([0.3, 0.6, 0.9]), {}
  yield "RelaxedBernoulli", dict(temperature=T(2.0), logits=LOC), T([0.3, 0.6, 0.9]), {}
  yield "RelaxedOneHotCategorical", dict(temperature=T(0.7), logits=LOC), probs(2, 3), {}
  yield "MultivariateNormal", dict(loc=T([0.5, -1.0]), covariance_matrix=square(2, 2)), torch.randn(3, 2), {}
  yield "MultivariateNormal", dict(loc=torch.randn(2, 3), precision_matrix=square(3, 3)), torch.randn(2, 3), {}
  yield "MultivariateNormal", dict(loc=torch.randn(3), scale_tril=lower(2, 3, 3)), torch.randn(4, 2, 3), {}
  yield "LowRankMultivariateNormal", dict(loc=torch.randn(3), cov_factor=torch.randn(2, 3, 2),
                                          cov_diag=torch.rand(3) + 0.5), torch.randn(4, 2, 3), {}
  yield "LogisticNormal", dict(loc=LOC, scale=SCALE), probs(2, 4), {}
  yield "GeneralizedPareto", dict(loc=LOC, scale=SCALE, concentration=T([-0.3, 0.0, 0.7])), LOC + T([0.3, 1.0, 2.0]), {}
  covariance, spread = T([[2.0, 0.5], [0.5, 1.0]]), T([[[3.0, 0.4], [0.4, 0.8]], [[1.5, -0.5], [-0.5, 4.0]]])
  yield "Wishart", dict(df=T([2.5, 5.5]), covariance_matrix=covariance), spread, {}
  yield "Wishart", dict(df=T(4.0), precision_matrix=spread), spread.flip(0), {}
  # Without gradients: those of PyTorch's cholesky_solve are not zero above the diagonal.
  yield "Wishart", dict(df=3.5, scale_tril=T([[1.0, 0.0], [-0.5, 2.0]])), spread, {"grads": False}
  yield "LKJCholesky", dict(dim=3, concentration=T([0.5, 1.0, 2.5])), T([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, -0.64, 0.6]]), {}
  yield "LogitRelaxedBernoulli", dict(temperature=T(0.7), probs=UNIT), X, {}
  yield "ExpRelaxedCategorical", dict(temperature=T(0.7), logits=LOC), T([[0.2, 0.3, 0.5], [0.1, 0.85, 0.05]]).log(), {}


def class_of(name):
  inner = {"LogitRelaxedBernoulli": D.relaxed_bernoulli, "ExpRelaxedCategorical": D.relaxed_categorical}
  return getattr(inner.get(name, D), name)


def attempt(fn):
  try:
    return fn()
  except (NotImplementedError, AttributeError):
    return None


def distribution_cases():
  for name, given, value, options in table():
    leaves = {k: v.clone().requires_grad_() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
              for k, v in given.items()}
    d = class_of(name)(**leaves)
    base = options.get("base", 0)
    case = {"name": name, "args": given, "value": value + base, "rough": options.get("rough"),
            "batch_shape": list(d.batch_shape), "event_shape": list(d.event_shape)}
    case["log_prob"] = d.log_prob(value)
    if options.get("grads", True) and case["log_prob"].requires_grad:
      case["log_prob"].sum().backward()
      case["grads"] = {k: v.grad for k, v in leaves.items() if isinstance(v, torch.Tensor) and v.grad is not None}
    with torch.no_grad():
      case["cdf"] = attempt(lambda: d.cdf(value))
      case["icdf"] = attempt(lambda: d.icdf(UNIT)) if not d.event_shape else None
      if options.get("entropy", True):
        case["entropy"] = attempt(lambda: d.entropy())
      for key in ["mean", "variance", "stddev", "mode"]:
        if options.get(key, True):
          case[key] = attempt(lambda: getattr(d, key))
      if case.get("mode") is not None:
        case["mode"] = case["mode"] + base
      if d.has_enumerate_support and options.get("entropy", True):
        case["support"] = d.enumerate_support() + base
    yield case


def two(name):
  """Returns two lists of arguments of a class."""
  return {
    "Bernoulli": [dict(probs=T([0.0, 0.3, 1.0])), dict(probs=T([0.5, 0.9, 0.2]))],
    "Beta": [dict(concentration1=A, concentration0=B1), dict(concentration1=B1, concentration0=A)],
    "Binomial": [dict(total_count=5, probs=UNIT), dict(total_count=5, logits=LOC[0])],
    "Categorical": [dict(probs=T([[1.0, 2.0, 0.0], [1.0, 1.0, 2.0]])), dict(probs=T([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))],
    "OneHotCategorical": [dict(logits=LOC[0]), dict(logits=X[0])],
    "Cauchy": [dict(loc=LOC[0], scale=SCALE), dict(loc=X[0], scale=SCALE * 2)],
    "ContinuousBernoulli": [dict(probs=UNIT), dict(logits=LOC[0])],
    "Dirichlet": [dict(concentration=POS), dict(concentration=A)],
    "Exponential": [dict(rate=SCALE), dict(rate=A)],
    "Gamma": [dict(concentration=A, rate=B1), dict(concentration=SCALE, rate=A)],
    "Geometric": [dict(probs=UNIT), dict(logits=LOC[0])],
    "Gumbel": [dict(loc=LOC[0], scale=SCALE), dict(loc=X[0], scale=SCALE * 2)],
    "HalfCauchy": [dict(scale=SCALE), dict(scale=A)],
    "InverseGamma": [dict(concentration=A, rate=B1), dict(concentration=SCALE, rate=A)],
    "HalfNormal": [dict(scale=SCALE), dict(scale=A)],
    "Laplace": [dict(loc=LOC[0], scale=SCALE), dict(loc=X[0], scale=SCALE * 2)],
    "LogNormal": [dict(loc=LOC[0], scale=SCALE), dict(loc=X[0], scale=SCALE * 2)],
    "MultivariateNormal": [dict(loc=T([0.5, -1.0]), covariance_matrix=square(2, 2)),
                           dict(loc=torch.randn(3, 2), scale_tril=lower(3, 2, 2))],
    "LowRankMultivariateNormal": [dict(loc=torch.randn(2), cov_factor=torch.randn(2, 1), cov_diag=torch.rand(2) + 0.5),
                                  dict(loc=torch.randn(2), cov_factor=torch.randn(2, 2), cov_diag=torch.rand(2) + 0.5)],
    "Normal": [dict(loc=LOC[0], scale=SCALE), dict(loc=X[0], scale=SCALE * 2)],
    "Pareto": [dict(scale=SCALE, alpha=T([0.5, 1.5, 3.0])), dict(scale=T([0.3, 2.0, 1.0]), alpha=A)],
    "Poisson": [dict(rate=SCALE), dict(rate=A)],
    "Uniform": [dict(low=T([0.1, 0.2, -1.0]), high=T([0.5, 0.9, 2.0])), dict(low=T([0.0, 0.5, -2.0]), high=T([2.0, 1.0, 3.0]))],
  }[name]


def divergence_cases():
  same = ("Bernoulli Beta Binomial Categorical OneHotCategorical Cauchy ContinuousBernoulli Dirichlet Exponential Gamma "
          "Geometric Gumbel HalfNormal Laplace LogNormal MultivariateNormal LowRankMultivariateNormal Normal Pareto Poisson "
          "Uniform HalfCauchy InverseGamma").split()
  pairs = [(n, n) for n in same] + [("MultivariateNormal", "LowRankMultivariateNormal"),
                                    ("LowRankMultivariateNormal", "MultivariateNormal")]
  mixed = {"Bernoulli": "Poisson", "Beta": "Pareto Exponential Gamma Normal Uniform ContinuousBernoulli",
           "ContinuousBernoulli": "Pareto Exponential Normal Uniform",
           "Exponential": "Beta Pareto Uniform Gamma Gumbel Normal", "Gamma": "Beta Exponential Gumbel Normal Uniform",
           "Gumbel": "Beta Exponential Gamma Normal", "Laplace": "Beta Gamma Normal Uniform",
           "Normal": "Beta Exponential Gamma Gumbel Laplace Uniform", "Pareto": "Beta Exponential Gamma Normal",
           "Poisson": "Bernoulli Binomial",
           "Uniform": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto"}
  pairs += [(p, q) for p, names in mixed.items() for q in names.split()]
  for p, q in pairs:
    first, second = two(p)[0], two(q)[1]
    value = D.kl_divergence(getattr(D, p)(**first), getattr(D, q)(**second))
    yield {"p": p, "q": q, "first": first, "second": second, "kl": value}


def composed_cases():
  """Yields values of distributions that the spec composes under the same name."""
  def case(name, d, value):
    return {"name": name, "value": value, "log_prob": d.log_prob(value), "mean": attempt(lambda: d.mean),
            "variance": attempt(lambda: d.variance), "cdf": attempt(lambda: d.cdf(value)),
            "entropy": attempt(lambda: d.entropy()), "batch_shape": list(d.batch_shape),
            "event_shape": list(d.event_shape)}

  yield case("independent", D.Independent(D.Normal(LOC, SCALE), 1), X)
  mix = D.Categorical(T([1.0, 2.0, 3.0]))
  yield case("mixture", D.MixtureSameFamily(mix, D.Normal(T([-1.0, 0.5, 2.0]), SCALE)), T([0.3, -2.0]))
  yield case("mixture of vectors", D.MixtureSameFamily(mix, D.Independent(D.Normal(LOC.t(), T([0.5, 1.0])), 1)),
             torch.randn(4, 2))
  normal = D.Normal(LOC, SCALE)
  t = D.transforms
  yield case("exp", D.TransformedDistribution(normal, [t.ExpTransform()]), POS)
  yield case("affine and sigmoid", D.TransformedDistribution(normal, [t.AffineTransform(0.5, -2.0), t.SigmoidTransform()]),
             T([0.2, 0.6, 0.9]))
  yield case("tanh", D.TransformedDistribution(normal, t.TanhTransform()), T([-0.2, 0.6, 0.9]))
  yield case("power", D.TransformedDistribution(D.Gamma(A, B), t.PowerTransform(T(0.5))), POS)
  yield case("stick breaking", D.TransformedDistribution(normal, t.StickBreakingTransform()), probs(2, 4))
  yield case("affine of vectors", D.TransformedDistribution(D.Independent(normal, 1), t.AffineTransform(LOC, SCALE, 1)), X)


def transform_cases():
  t = D.transforms
  rows = [
    ("ExpTransform", [], X), ("PowerTransform", [T(1.5)], POS), ("SigmoidTransform", [], X), ("TanhTransform", [], X),
    ("SoftplusTransform", [], X), ("AffineTransform", [LOC, SCALE], X), ("AffineTransform", [1.0, -2.0, 1], X),
    ("StickBreakingTransform", [], X), ("LowerCholeskyTransform", [], torch.randn(2, 3, 3)), ("AbsTransform", [], X),
    ("SoftmaxTransform", [], X),
    ("ReshapeTransform", [[3], [1, 3]], X), ("CorrCholeskyTransform", [], X),
    ("CorrCholeskyTransform", [], T([[0.3, -1.2, 0.5, 0.1, -0.4, 0.9]])),
  ]
  for name, given, x in rows:
    transform = getattr(t, name)(*[tuple(g) if isinstance(g, list) else g for g in given])
    y = transform(x)
    yield {"name": name, "given": given, "x": x, "y": y, "inverse": transform.inv(y),
           "log_det": attempt(lambda: transform.log_abs_det_jacobian(x, y)),
           "forward_shape": list(transform.forward_shape(x.shape))}


def registry_cases():
  """Yields transforms that biject_to and transform_to find for a constraint, made by its name and arguments."""
  c = D.constraints
  rows = [("real", None), ("positive", None), ("nonnegative", None), ("unit_interval", None), ("real_vector", None),
          ("greater_than", [0.5]), ("greater_than_eq", [LOC]), ("less_than", [-1.0]), ("interval", [-1.0, 3.0]),
          ("interval", [LOC, LOC + SCALE]), ("half_open_interval", [0.0, 1.0]), ("simplex", None), ("corr_cholesky", None),
          ("lower_cholesky", None), ("positive_definite", None), ("positive_semidefinite", None)]
  for name, given in rows:
    constraint = getattr(c, name) if given is None else getattr(c, name)(*given)
    x = torch.stack([X, POS, X * 0.5 + 0.1])[:2, :, :2] if name in ("lower_cholesky", "positive_definite",
                                                                   "positive_semidefinite") else X
    for title in ["biject_to", "transform_to"]:
      transform = attempt(lambda: getattr(D, title)(constraint))
      case = {"title": title, "constraint": name, "given": given, "x": x}
      if transform is not None:
        y = transform(x)
        case.update(y=y, inverse=transform.inv(y), log_det=attempt(lambda: transform.log_abs_det_jacobian(x, y)))
      yield case


SECTIONS = {"distributions": distribution_cases, "divergences": divergence_cases, "composed": composed_cases,
            "transforms": transform_cases, "registries": registry_cases}


def cases_of(family):
  torch.set_default_dtype(torch.float64)
  torch.manual_seed(22)
  rows = []
  for name, cases in SECTIONS.items():
    rows.append("  %s = {" % name)
    rows += ["    %s," % nn.lua(case) for case in cases()]
    rows.append("  },")
  torch.set_default_dtype(torch.float32)
  return "\n".join(rows)
