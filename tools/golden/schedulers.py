"""Schedulers of learning rates, and averages of weights: values in the course of training."""

import torch
from torch.optim import lr_scheduler as schedulers
from torch.optim import swa_utils

import nn


def optimizer_of(kind, groups):
  """Returns an optimizer with a parameter in each of its groups."""
  params = [torch.zeros(1, requires_grad=True) for _ in groups]
  settings = [dict({"params": [p]}, **g) for p, g in zip(params, groups)]
  if kind == "SGD":
    return torch.optim.SGD(settings, momentum=0.5)
  return torch.optim.Adam(settings)


def schedule_cases():
  """Yields the learning rates (and momentums) of the groups after the constructor and after each of 14 steps."""
  groups = [{"lr": 0.1}, {"lr": 0.02}]

  def case(name, *given, kind="SGD", metrics=None, at=None, **options):
    optimizer = optimizer_of(kind, groups)
    module = swa_utils if name == "SWALR" else schedulers
    scheduler = getattr(module, name)(optimizer, *given, **options)
    rows = [row(optimizer)]
    for i in range(14):
      optimizer.step()
      if metrics:
        scheduler.step(metrics[i])
      elif at:
        scheduler.step(at[i])
      else:
        scheduler.step()
      rows.append(row(optimizer))
    return {"name": name, "given": list(given), "options": options, "kind": kind, "metrics": metrics or [],
            "at": at or [], "rows": rows}

  def row(optimizer):
    values = [g["lr"] for g in optimizer.param_groups]
    values += [g["momentum"] if "momentum" in g else g["betas"][0] for g in optimizer.param_groups]
    return [float(x) for x in values]

  yield case("StepLR", 3)
  yield case("StepLR", 4, gamma=0.5)
  yield case("StepLR", 4, gamma=0.5, at=[7, 2, 11, 12, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  yield case("MultiStepLR", [2, 5, 5, 9])
  yield case("MultiStepLR", [4, 7], gamma=0.3, at=[7, 2, 11, 12, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  yield case("ConstantLR")
  yield case("ConstantLR", factor=0.5, total_iters=3)
  yield case("LinearLR")
  yield case("LinearLR", start_factor=0.1, end_factor=0.6, total_iters=8)
  yield case("ExponentialLR", 0.8)
  yield case("ExponentialLR", 0.8, at=[7, 2, 11, 12, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  yield case("PolynomialLR")
  yield case("PolynomialLR", total_iters=9, power=2.5)
  yield case("CosineAnnealingLR", 5)
  yield case("CosineAnnealingLR", 6, eta_min=0.01)
  yield case("CosineAnnealingLR", 6, eta_min=0.01, at=[7, 2, 11, 12, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  yield case("CosineAnnealingWarmRestarts", 4)
  yield case("CosineAnnealingWarmRestarts", 3, T_mult=2, eta_min=0.005)
  yield case("CosineAnnealingWarmRestarts", 3, T_mult=2, eta_min=0.005,
             at=[0.5, 1.25, 2.75, 3, 4.5, 8.5, 9, 11, 14.5, 20.5, 2, 1, 0, 7.125])
  metrics = [5.0, 4.0, 4.1, 4.05, 3.9999, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.1, 2.2]
  yield case("ReduceLROnPlateau", metrics=metrics, patience=1)
  yield case("ReduceLROnPlateau", metrics=metrics, patience=0, factor=0.5, cooldown=2, min_lr=[0.03, 0.001])
  yield case("ReduceLROnPlateau", metrics=metrics, mode="max", patience=2, threshold=0.5, threshold_mode="abs")
  yield case("ReduceLROnPlateau", metrics=metrics, mode="max", patience=1, threshold=0.1, eps=0.005)
  yield case("ReduceLROnPlateau", metrics=metrics, mode="min", patience=1, threshold=0.7, threshold_mode="abs")
  yield case("CyclicLR", 0.01, 0.1, step_size_up=3)
  yield case("CyclicLR", [0.01, 0.02], [0.1, 0.3], step_size_up=2, step_size_down=4, mode="triangular2")
  yield case("CyclicLR", 0.01, 0.1, step_size_up=3, mode="exp_range", gamma=0.9, kind="Adam", base_momentum=0.6,
             max_momentum=0.95)
  yield case("CyclicLR", 0.01, 0.1, step_size_up=3, cycle_momentum=False)
  yield case("OneCycleLR", 0.5, total_steps=14)
  yield case("OneCycleLR", [0.5, 0.1], epochs=4, steps_per_epoch=5, pct_start=0.4, anneal_strategy="linear", kind="Adam")
  yield case("OneCycleLR", 0.5, total_steps=20, three_phase=True, div_factor=10.0, final_div_factor=100.0,
             base_momentum=[0.5, 0.6], max_momentum=[0.9, 0.8])
  yield case("OneCycleLR", 0.5, total_steps=15, cycle_momentum=False, pct_start=0.25)
  yield case("SWALR", 0.05)
  yield case("SWALR", [0.5, 0.001], anneal_epochs=5, anneal_strategy="linear")
  yield case("SWALR", 0.05, anneal_epochs=0)


COMPOSED = {
  "lambda": lambda o: schedulers.LambdaLR(o, [lambda t: 0.9 ** t, lambda t: 1 / (1 + t)]),
  "multiplicative": lambda o: schedulers.MultiplicativeLR(o, lambda t: 0.9 if t % 2 else 0.5),
  "scale_fn": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, step_size_up=2, scale_fn=lambda x: 1 / x),
  "scale_fn of steps": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, step_size_up=2, scale_fn=lambda x: 0.9 ** x,
                                                     scale_mode="iterations"),
  "sequential": lambda o: schedulers.SequentialLR(
    o, [schedulers.ConstantLR(o, factor=0.1, total_iters=2), schedulers.ExponentialLR(o, gamma=0.9),
        schedulers.StepLR(o, 2, 0.5)], milestones=[3, 7]),
  "warmup and cosine": lambda o: schedulers.SequentialLR(
    o, [schedulers.LinearLR(o, start_factor=0.01, total_iters=4), schedulers.CosineAnnealingLR(o, T_max=8)], [4]),
  "warmup and restarts": lambda o: schedulers.SequentialLR(
    o, [schedulers.LinearLR(o), schedulers.CosineAnnealingWarmRestarts(o, T_0=3)], [5]),
  "chained": lambda o: schedulers.ChainedScheduler(
    [schedulers.ConstantLR(o, factor=0.1, total_iters=5), schedulers.ExponentialLR(o, gamma=0.9)]),
  "chained cosine": lambda o: schedulers.ChainedScheduler(
    [schedulers.LinearLR(o, total_iters=3), schedulers.CosineAnnealingLR(o, T_max=5, eta_min=0.001)], optimizer=o),
}


def composed_cases():
  """Yields the learning rates of schedules that the spec composes under the same name."""
  for name, make in COMPOSED.items():
    optimizer = optimizer_of("SGD", [{"lr": 0.1}, {"lr": 0.02}])
    scheduler = make(optimizer)
    rows = [[g["lr"] for g in optimizer.param_groups]]
    for _ in range(14):
      optimizer.step()
      scheduler.step()
      rows.append([g["lr"] for g in optimizer.param_groups])
    yield {"name": name, "rows": rows, "last": scheduler.get_last_lr()}


def resumed_cases():
  """Yields the learning rates of schedules that start after epoch 4."""
  for name, given in [("StepLR", [3]), ("CosineAnnealingLR", [6]), ("ExponentialLR", [0.9]), ("LinearLR", []),
                      ("PolynomialLR", [9]), ("MultiStepLR", [[2, 5, 6]]), ("ConstantLR", [])]:
    optimizer = optimizer_of("SGD", [{"lr": 0.03, "initial_lr": 0.1}])
    scheduler = getattr(schedulers, name)(optimizer, *given, last_epoch=4)
    rows = [optimizer.param_groups[0]["lr"]]
    for _ in range(4):
      optimizer.step()
      scheduler.step()
      rows.append(optimizer.param_groups[0]["lr"])
    yield {"name": name, "given": given, "rows": rows}


AVERAGES = {
  "mean": {}, "swa_avg_fn": {"avg_fn": swa_utils.get_swa_avg_fn()},
  "swa_multi_avg_fn": {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
  "ema_avg_fn": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
  "ema_multi_avg_fn": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
  "buffers": {"use_buffers": True},
  "ema of buffers": {"use_buffers": True, "multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)},
}


def average_cases():
  """Yields the averages of a layer's parameters and buffers, whose values are given for each update."""
  for name, options in AVERAGES.items():
    model = torch.nn.BatchNorm1d(2)
    averaged = swa_utils.AveragedModel(model, **options)
    given, rows = [], []
    for i in range(4):
      values = [torch.randn(2) for _ in range(4)]
      with torch.no_grad():
        for tensor, value in zip(list(model.parameters()) + list(model.buffers())[:2], values):
          tensor.copy_(value)
        model.num_batches_tracked.fill_(10 * i * i)
      averaged.update_parameters(model)
      m = averaged.module
      given.append(values)
      rows.append([t.detach().clone() for t in (m.weight, m.bias, m.running_mean, m.running_var,
                                                m.num_batches_tracked.to(torch.float64).reshape(1))])
    yield {"name": name, "given": given, "rows": rows, "n": averaged.n_averaged.item()}


def batch_norm_cases():
  """Yields the running statistics after update_bn over three batches."""
  model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3, momentum=0.5))
  batches = [torch.randn(n, 3) * 2 + 1 for n in (4, 2, 5)]
  swa_utils.update_bn(batches, model)
  yield {"batches": batches, "mean": [m.running_mean for m in model], "var": [m.running_var for m in model]}


SECTIONS = {"schedules": schedule_cases, "composed": composed_cases, "resumed": resumed_cases,
            "averages": average_cases, "batch_norm": batch_norm_cases}


def cases_of(family):
  torch.set_default_dtype(torch.float64)
  torch.manual_seed(21)
  rows = []
  for name, cases in SECTIONS.items():
    rows.append("  %s = {" % name)
    rows += ["    %s," % nn.lua(case) for case in cases()]
    rows.append("  },")
  torch.set_default_dtype(torch.float32)
  return "\n".join(rows)
