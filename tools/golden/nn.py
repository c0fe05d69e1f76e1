"""Layers, losses and optimizers.

All values are float64, so that the specs can compare closely. Indices (labels, ids, dims) are
1-based as in Lutra. All optimizers minimize the same function of two parameters, and the file
holds the parameters after every step.
"""

import torch
import torch.nn.functional as F


def lua(value):
  """Returns a Lua literal of a tensor ({shape, data}), number, string, list or dict."""
  if isinstance(value, torch.Tensor):
    shape = ", ".join(str(n) for n in value.shape)
    data = ", ".join(number(x) for x in value.detach().reshape(-1).tolist())
    return "{shape = {%s}, data = {%s}}" % (shape, data)
  if isinstance(value, bool):
    return "true" if value else "false"
  if isinstance(value, (int, float)):
    return number(value)
  if isinstance(value, str):
    return '"%s"' % value
  if isinstance(value, dict):
    return "{%s}" % ", ".join("%s = %s" % (k, lua(v)) for k, v in value.items() if v is not None)
  return "{%s}" % ", ".join(lua(v) for v in value)


def number(x):
  return repr(x)


def run(function, inputs):
  """Returns the output and the gradient of sum(output * probe) for each floating input."""
  inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
  out = function(*inputs)
  probe = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)
  (out * probe).sum().backward()
  return out, [x.grad for x in inputs if x.is_floating_point()]


def layer_cases():
  """Cases of layers and activations: inputs, options, output, gradients of the inputs."""
  def case(op, function, inputs, options=None):
    out, grads = run(function, inputs)
    shifted = [x if x.is_floating_point() else x + 1 for x in inputs]
    return {"op": op, "inputs": shifted, "options": options or {}, "out": out, "grads": grads}

  x, w, b = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5)
  yield case("linear", F.linear, [x, w, b])
  yield case("linear", F.linear, [torch.randn(2, 4, 3), w, b])
  yield case("linear", F.linear, [torch.randn(3), w])
  for shape, size in [((4,), (2, 3, 4)), ((3, 4), (2, 3, 4))]:
    yield case("layer_norm", lambda x, w, b, s=shape: F.layer_norm(x, s, w, b),
               [torch.randn(*size) * 2 + 1, torch.randn(*shape), torch.randn(*shape)],
               {"normalized_shape": list(shape)})
  yield case("layer_norm", lambda x: F.layer_norm(x, (4,), eps=0.1), [torch.randn(3, 4)],
             {"normalized_shape": [4], "eps": 0.1})
  ids = torch.tensor([[0, 3, 1], [3, 5, 2]])
  yield case("embedding", lambda i, w: F.embedding(i, w), [ids, torch.randn(6, 2)])
  yield case("embedding", lambda i, w: F.embedding(i, w, padding_idx=3), [ids, torch.randn(6, 2)],
             {"padding_idx": 4})
  x = torch.cat([torch.randn(6) * 3, torch.tensor([0.0, -0.0, 20.0, -20.0])])
  for op in ["relu", "tanh", "sigmoid", "gelu", "silu"]:
    yield case(op, getattr(F, op), [x])
  yield case("gelu", lambda x: F.gelu(x, approximate="tanh"), [x], {"approximate": "tanh"})
  x = torch.randn(2, 3, 4)
  for dim in [0, 1, 2, -1]:
    for op in ["softmax", "log_softmax"]:
      yield case(op, lambda x, d=dim, o=op: getattr(F, o)(x, dim=d), [x],
                 {"dim": dim + 1 if dim >= 0 else dim})


def loss_cases():
  """Cases of losses: input, target, options, the loss and the input's gradient."""
  def case(op, x, target, **options):
    out, grads = run(lambda x: getattr(F, op)(x, target, **options), [x])
    shown = dict(options)
    if "ignore_index" in shown:
      shown["ignore_index"] += 1
    return {"op": op, "input": x, "target": target if target.is_floating_point() else target + 1,
            "options": shown, "out": out, "grad": grads[0]}

  x, labels = torch.randn(5, 4), torch.tensor([1, 0, 3, 2, 3])
  weight = torch.tensor([0.5, 1.0, 2.0, 0.25])
  for reduction in ["mean", "sum", "none"]:
    yield case("cross_entropy", x, labels, reduction=reduction)
    yield case("cross_entropy", x, labels, reduction=reduction, weight=weight, ignore_index=3)
    yield case("cross_entropy", x, labels, reduction=reduction, label_smoothing=0.1)
    yield case("cross_entropy", x, labels, reduction=reduction, label_smoothing=0.3,
               weight=weight, ignore_index=0)
    yield case("cross_entropy", x, torch.softmax(torch.randn(5, 4), 1), reduction=reduction)
    yield case("nll_loss", torch.log_softmax(x, 1), labels, reduction=reduction)
    yield case("nll_loss", torch.log_softmax(x, 1), labels, reduction=reduction, weight=weight,
               ignore_index=1)
    yield case("mse_loss", x, torch.randn(5, 4), reduction=reduction)
    yield case("l1_loss", x, torch.randn(5, 4), reduction=reduction)
    yield case("huber_loss", x, torch.randn(5, 4), reduction=reduction, delta=0.7)
    yield case("cross_entropy", torch.randn(2, 4, 3), torch.tensor([[0, 1, 3], [2, 2, 0]]),
               reduction=reduction)
  yield case("cross_entropy", torch.randn(4), torch.tensor(2))
  yield case("cross_entropy", x * 1000, labels)


class Lion(torch.optim.Optimizer):
  """Algorithm 2 of Chen et al. 2023, which PyTorch does not have."""

  def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

  @torch.no_grad()
  def step(self):
    for group in self.param_groups:
      (beta1, beta2), lr = group["betas"], group["lr"]
      for p in group["params"]:
        g = -p.grad if group["maximize"] else p.grad
        m = self.state[p].get("m", torch.zeros_like(p))
        update = torch.sign(beta1 * m + (1 - beta1) * g)
        p.sub_(lr * (update + group["weight_decay"] * p))
        self.state[p]["m"] = beta2 * m + (1 - beta2) * g


def optimizer_cases():
  """Yields trajectories: the two parameters after each of 8 steps, the second one in a second group."""
  start, goal = torch.randn(3), torch.randn(3)
  start2, goal2 = torch.randn(2, 2), torch.randn(2, 2)

  def case(name, group=None, **options):
    p, q = start.clone().requires_grad_(), start2.clone().requires_grad_()
    groups = [{"params": [p]}, dict({"params": [q]}, **(group or {}))]
    optimizer = (Lion if name == "Lion" else getattr(torch.optim, name))(groups, **options)
    steps = []
    for _ in range(8):
      optimizer.zero_grad()
      loss = ((p - goal) ** 4).sum() + (torch.sin(q) * goal2).sum()
      loss.backward()
      optimizer.step()
      steps.append([p.detach().clone(), q.detach().clone()])
    return {"name": name, "options": options, "group": group or {}, "steps": steps}

  yield {"start": [start, start2], "goal": [goal, goal2]}
  yield case("SGD", lr=0.05)
  yield case("SGD", lr=0.05, momentum=0.9)
  yield case("SGD", lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.1)
  yield case("SGD", lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01)
  yield case("SGD", lr=0.001, momentum=0.5, maximize=True, weight_decay=0.3)
  yield case("SGD", {"lr": 0.2, "momentum": 0.3}, lr=0.05)
  for name in ["Adam", "AdamW"]:
    yield case(name)
    yield case(name, lr=0.1, betas=[0.8, 0.99], eps=1e-3)
    yield case(name, lr=0.1, weight_decay=0.3)
    yield case(name, lr=0.1, amsgrad=True, weight_decay=0.1, betas=[0.5, 0.6])
    yield case(name, lr=0.01, maximize=True, weight_decay=0.1)
    yield case(name, {"lr": 0.01, "weight_decay": 0.5}, lr=0.1, weight_decay=0.0)
  yield case("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}, lr=0.02, alpha=0.9)
  yield case("RMSprop", {"momentum": 0.9, "maximize": True}, lr=0.02, centered=True, eps=1e-3)
  yield case("Adam", lr=0.1, weight_decay=0.3, decoupled_weight_decay=True)
  for name in ["NAdam", "RAdam"]:
    yield case(name, {"weight_decay": 0.5}, lr=0.1, betas=[0.8, 0.99], eps=1e-3)
    yield case(name, {"maximize": True}, lr=0.05, weight_decay=0.3, decoupled_weight_decay=True)
  yield case("NAdam", {"lr": 0.01}, momentum_decay=0.1)
  yield case("RAdam", {"lr": 0.01}, betas=[0.5, 0.9])
  yield case("Adamax", {"lr": 0.1, "weight_decay": 0.5})
  yield case("Adamax", {"maximize": True}, lr=0.05, betas=[0.8, 0.9], eps=1e-3)
  yield case("Adagrad", {"weight_decay": 0.5}, lr=0.2, lr_decay=0.1)
  yield case("Adagrad", {"maximize": True}, initial_accumulator_value=0.5, eps=1e-3)
  yield case("Adadelta", {"weight_decay": 0.5})
  yield case("Adadelta", {"maximize": True}, lr=0.5, rho=0.8, eps=1e-3)
  yield case("Rprop", {"lr": 0.1})
  yield case("Rprop", {"maximize": True}, lr=0.3, etas=[0.4, 1.5], step_sizes=[0.01, 0.4])
  yield case("ASGD", {"weight_decay": 0.5}, lr=0.05)
  yield case("ASGD", {"maximize": True}, lr=0.05, lambd=0.1, alpha=0.6, t0=3.0)
  yield case("Lion", {"weight_decay": 0.5}, lr=0.05)
  yield case("Lion", {"maximize": True}, lr=0.05, betas=[0.5, 0.7])


def matrix_cases():
  """Yields trajectories of optimizers that treat matrices as such: the parameters after each of 6 steps with given gradients."""
  shapes = {"Adafactor": [(3,), (4, 3), (2, 3, 2)], "Muon": [(4, 3), (3, 5)]}

  def case(name, **options):
    start = [torch.randn(*shape) for shape in shapes[name]]
    params = [x.clone().requires_grad_() for x in start]
    optimizer = getattr(torch.optim, name)(params, **options)
    grads, steps = [], []
    for _ in range(6):
      grads.append([torch.randn(*shape) for shape in shapes[name]])
      for p, g in zip(params, grads[-1]):
        p.grad = g.clone()
      optimizer.step()
      steps.append([p.detach().clone() for p in params])
    if "eps" in options and isinstance(options["eps"], tuple):
      options["eps"] = [x if x is not None else False for x in options["eps"]]
    return {"name": name, "options": options, "start": start, "grads": grads, "steps": steps}

  yield case("Adafactor")
  yield case("Adafactor", lr=0.3, beta2_decay=-0.5, eps=(None, 0.1), weight_decay=0.1)
  yield case("Adafactor", lr=0.5, eps=(0.1, 0.01), d=2.0, maximize=True)
  yield case("Muon", lr=0.1)
  yield case("Muon", lr=0.1, nesterov=False, momentum=0.8, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
  yield case("Muon", lr=0.1, ns_steps=3, ns_coefficients=[2.0, -1.5, 0.5], adjust_lr_fn="spectral_unclamped")


def closure_cases():
  """Yields trajectories of LBFGS on Rosenbrock's function of two parameters, and its evaluations."""
  def case(**options):
    p, q = torch.tensor([-1.5]).requires_grad_(), torch.tensor([[2.0]]).requires_grad_()
    optimizer = torch.optim.LBFGS([p, q], **options)
    sign = -1 if options.get("maximize") else 1

    def closure():
      optimizer.zero_grad()
      loss = sign * ((1 - p) ** 2 + 100 * (q - p ** 2) ** 2).sum()
      loss.backward()
      return loss

    steps = []
    for _ in range(4):
      loss = optimizer.step(closure)
      state = optimizer.state[p]
      steps.append({"p": p.detach().clone(), "q": q.detach().clone(), "loss": loss.item(),
                    "func_evals": state["func_evals"], "n_iter": state["n_iter"]})
    return {"name": "LBFGS", "options": options, "steps": steps}

  yield case(lr=0.1, max_iter=4)
  yield case(line_search_fn="strong_wolfe")
  yield case(line_search_fn="strong_wolfe", max_iter=5, history_size=2, lr=0.5)
  yield case(line_search_fn="strong_wolfe", max_iter=7, max_eval=6, tolerance_grad=1e-3, maximize=True)
  yield case(lr=0.05, max_iter=10, max_eval=5, tolerance_change=1e-3)


def clip_cases():
  """Yields gradients, a bound and a norm type; the total norm and the gradients after clipping."""
  for max_norm, kind in [(1.0, 2.0), (100.0, 2.0), (0.5, 1.0)]:
    ps = [torch.zeros(3, requires_grad=True), torch.zeros(2, 2, requires_grad=True)]
    before = [torch.randn(3), torch.randn(2, 2)]
    for p, g in zip(ps, before):
      p.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(ps, max_norm, kind)
    yield {"max_norm": max_norm, "norm_type": kind, "before": before, "norm": norm,
           "after": [p.grad for p in ps]}


FAMILIES = {"layers": {"layers": layer_cases, "losses": loss_cases},
            "optimizers": {"optimizers": optimizer_cases, "clipping": clip_cases, "matrices": matrix_cases,
                           "closures": closure_cases}}


def cases_of(family):
  torch.set_default_dtype(torch.float64)
  torch.manual_seed(20)
  rows = []
  for name, cases in FAMILIES[family].items():
    rows.append("  %s = {" % name)
    rows += ["    %s," % lua(case) for case in cases()]
    rows.append("  },")
  torch.set_default_dtype(torch.float32)
  return "\n".join(rows)
