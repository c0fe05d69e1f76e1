#!/usr/bin/env python3
"""Writes tests/golden: values computed by PyTorch, one file per family.

    python3 tools/golden/generate.py               all families
    python3 tools/golden/generate.py reductions    one of them

The cases are in the modules beside this one: ops.py is the table of cases for each op, kinks.py has gradients where a
function has no derivative, autograd_programs.py random programs of views and in-place writes, nn.py layers, losses and
optimizers, layer_classes.py all classes of layers and losses, complex_values.py elementwise ops of complex numbers,
special.py special functions and further elementwise ops, recurrent.py recurrent layers, attention and Transformers,
autocast.py dtypes under autocast, function_transforms.py derivatives of functions.
All files are made with the version of PyTorch in PYTORCH and in their first lines; any other version is an error. To
use a newer PyTorch, change PYTORCH and write all families. The same version gives the same files."""

import os
import re
import sys
import warnings

import torch

import autocast
import autograd_programs
import benchmark
import complex_values
import convolution  # noqa: F401: its families join those of ops
import distributions
import function_transforms
import functional  # noqa: F401: its families join those of ops
import image_files
import kinks
import layer_classes
import linalg  # noqa: F401, adds families to ops
import nn
import ops
import products  # noqa: F401 (adds families)
import recurrent
import reparametrizations
import schedulers
import shapes  # noqa: F401 (adds families)
import special  # noqa: F401: adds families to ops
import statistic_ops  # noqa: F401 (adds families)
import transforms  # noqa: F401 (adds families)
import vision
import vision_models
import windows  # noqa: F401: adds its family to ops

PYTORCH = "2.15.0"

# Family -> kind of its cases (which spec reads it), function that gives the table's fields as Lua.
FAMILIES = {name: ("ops", ops.cases_of) for name in ops.FAMILIES}
FAMILIES.update(kinks=("kinks", kinks.cases_of), autograd_programs=("programs", autograd_programs.cases_of),
                layers=("layers", nn.cases_of), optimizers=("optimizers", nn.cases_of),
                layer_classes=("layer_classes", layer_classes.cases_of),
                reparametrizations=("reparametrizations", reparametrizations.cases_of),
                complex_values=("complex", complex_values.cases_of),
                autocast=("autocast", autocast.cases_of),
                function_transforms=("transforms", function_transforms.cases_of))
FAMILIES.update({name: ("recurrent", recurrent.cases_of) for name in recurrent.FAMILIES})
FAMILIES["distributions"] = ("distributions", distributions.cases_of)
FAMILIES["benchmark"] = ("benchmark", benchmark.cases_of)
FAMILIES["schedulers"] = ("schedulers", schedulers.cases_of)
FAMILIES.update(vision=("vision", vision.cases_of), image_files=("image_files", image_files.cases_of),
                vision_models=("vision_models", vision_models.cases_of))
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden")


def file_of(family):
    kind, cases_of = FAMILIES[family]
    body = cases_of(family)
    lines = ["-- Made by tools/golden/generate.py with PyTorch %s. Do not edit." % PYTORCH]
    if re.search(r"\bnan\b", body):
        lines.append("local nan = math.abs(0 / 0) -- the sign of 0 / 0 depends on the CPU")
    if re.search(r"\binf\b", body):
        lines.append("local inf = math.huge")
    return "\n".join(lines + ['return {\nkind = "%s", version = "%s",' % (kind, PYTORCH), body.rstrip("\n"), "}\n"])


def main():
    names = sys.argv[1:] or list(FAMILIES)
    for name in names:
        if name not in FAMILIES:
            sys.exit("generate: expected a family (%s), got '%s'" % (", ".join(FAMILIES), name))
    if torch.__version__.split("+")[0] != PYTORCH:
        sys.exit("generate: expected PyTorch %s, got %s\nhint: change PYTORCH in tools/golden/generate.py and write all "
                 "families" % (PYTORCH, torch.__version__))
    warnings.simplefilter("ignore")
    for name in names:
        text = file_of(name)
        with open(os.path.join(FOLDER, name + ".lua"), "w") as out:
            out.write(text)
        print("tests/golden/%s.lua: %d bytes" % (name, len(text)))


if __name__ == "__main__":
    main()
