"""Measurements of given times: their statistics and their text, and tables of them."""

import random

from torch.utils.benchmark import Compare, Measurement
from torch.utils.benchmark.utils.common import TaskSpec

import nn


def escaped(text):
  """Returns a string as it is written between quotes in Lua."""
  return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\033", "\\27")


def literal(value):
  """Returns a Lua literal of a value whose strings may have several lines."""
  if isinstance(value, str):
    return nn.lua(escaped(value))
  if isinstance(value, dict):
    return "{%s}" % ", ".join("%s = %s" % (k, literal(v)) for k, v in value.items() if v is not None)
  if isinstance(value, (list, tuple)):
    return "{%s}" % ", ".join(literal(v) for v in value)
  return nn.lua(value)


def times(count, center, spread):
  """Returns random times with this median and relative spread."""
  return [float("%.6g" % (center * (1 + spread * random.gauss(0, 1)) if spread < 0.2 else
                          center * random.lognormvariate(0, spread))) for _ in range(count)]


def made(raw_times, number=1, **task):
  """Returns a Measurement."""
  return Measurement(number, raw_times, TaskSpec(**dict({"stmt": "x + y", "setup": "pass"}, **task)))


def given(m):
  """Returns the arguments of a Measurement."""
  task = {k: v for k, v in vars(m.task_spec).items() if v not in (None, "", "pass")}
  return {"number_per_run": m.number_per_run, "raw_times": m.raw_times, "task_spec": task}


def measurement_cases():
  """Yields measurements with their statistics and the lines of their text after the first."""
  for m in [made([3e-6], 1000), made([0.25, 0.5], 10, label="add"), made([1e-3, 2e-3, 4e-3], sub_label="4x8"),
            made([1e-5, 2e-5, 3e-5, 4.5e-5, 8e-5], 2, label="add", sub_label="4x8", description="float32"),
            made(times(20, 0.2, 0.001), 100000, num_threads=4), made(times(101, 1e-3, 0.07), 10, setup="x = 1"),
            made(times(50, 0.01, 0.13), 7, label="l", env="a", setup="x = 1\ny = 2"),
            made(times(33, 5.0, 0.5), stmt="a\n\nb = 2", sub_label="s"), made(times(4, 3e-7, 0.01), stmt="a\n  b"),
            made(times(1000, 1.5, 1e-5), 3)]:
    yield {"given": given(m), "times": m.times, "mean": m.mean, "median": m.median, "iqr": m.iqr,
           "significant_figures": m.significant_figures, "has_warnings": m.has_warnings,
           "meets": [m.meets_confidence(t) for t in (0.01, 0.1, 0.3)], "title": m.title, "row": m.as_row_name,
           "text": repr(m).split("\n", 1)[1].replace("runs ,", "runs,")}


def table_cases():
  """Yields lists of measurements and the text of their tables for each combination of options."""
  plain = [made([1e-3], description="a"), made([2.5e-2], description="b"), made([4e-3], stmt="z", description="b")]
  full = [made(times(9, 10.0 ** -(2 + i), 0.05 + 0.1 * (j % 3)), 10, label="matmul", sub_label="size %d" % i,
               description=name, num_threads=threads)
          for threads in (4, 1) for i in range(3) for j, name in enumerate(["float32", "float64", "bfloat16"])
          if (i, j) != (1, 2)]
  groups = [made([x * 1e-6], label=label, sub_label=sub, description=name)
            for label, sub, name, x in [("one", "p", "first", 1.0), ("two", "q", "x", 995.0), ("one", "p", "second", 1.05),
                                        ("two", "r", "x", 1.5), ("one", "q", "first", 1.9), ("one", "q", "second", 8.0)]]
  repeated = [made(times(5, 3e-4, 0.02), n, label="merge", description="d", env=env)
              for env in ("old", "new build") for n in (1, 2, 4)]
  for results in (plain, full, groups, repeated):
    for trim, color, highlight in [(False, None, False), (True, None, False), (False, "columns", True),
                                   (True, "rows", True)]:
      compare = Compare(results)
      if trim:
        compare.trim_significant_figures()
      if color:
        compare.colorize(rowwise=color == "rows")
      if highlight:
        compare.highlight_warnings()
      yield {"results": [given(m) for m in results], "trim": trim, "color": color, "highlight": highlight,
             "text": str(compare)}


SECTIONS = {"measurements": measurement_cases, "tables": table_cases}


def cases_of(family):
  random.seed(5)
  rows = []
  for name, cases in SECTIONS.items():
    rows.append("  %s = {" % name)
    rows += ["    %s," % literal(case) for case in cases()]
    rows.append("  },")
  return "\n".join(rows)
