#!/usr/bin/env python3
"""Writes lib/lutra/internal/pytorch_names.lua: the public names of PyTorch by the namespaces of Lutra, for errors
about names that Lutra lacks.

    python3 tools/gen_pytorch_names.py      # needs the version of PyTorch in PYTORCH
"""
import importlib
import inspect
import os
import sys
import textwrap

import torch

PYTORCH = "2.15.0"
NAMESPACES = {
    "lt": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "nn.init": "torch.nn.init",
    "nn.utils": "torch.nn.utils", "nn.utils.rnn": "torch.nn.utils.rnn", "nn.utils.prune": "torch.nn.utils.prune",
    "nn.utils.parametrize": "torch.nn.utils.parametrize", "optim": "torch.optim",
    "optim.lr_scheduler": "torch.optim.lr_scheduler", "optim.swa_utils": "torch.optim.swa_utils",
    "data": "torch.utils.data", "lt.distributions": "torch.distributions", "lt.linalg": "torch.linalg",
    "lt.fft": "torch.fft", "lt.special": "torch.special", "lt.autograd": "torch.autograd", "lt.func": "torch.func",
    "lt.amp": "torch.amp", "lt.cuda": "torch.cuda", "lt.utils": "torch.utils", "lt.signal": "torch.signal",
}
# Names with advice of their own (lib/lutra/repl/other_languages.lua).
ADVISED = {"lt": {"from_numpy", "utils", "distributed"}, "x": {"numpy", "get_device"}, "lt.cuda": {"device", "stream"}}
SUBMODULES = {"lt": "nn optim linalg fft special autograd func amp utils distributions cuda mps random signal sparse jit "
                    "onnx export fx hub compiler quantization distributed masked nested futures package profiler".split()}


def is_public(name, value, space):
    if name.startswith("_"):
        return False
    if inspect.ismodule(value):
        return name in SUBMODULES.get(space, [])
    home = getattr(value, "__module__", None)
    return home is None or home.split(".")[0] in ("torch", "builtins")


def names_of(space, module):
    module = importlib.import_module(module)
    listed = set(getattr(module, "__all__", [])) | set(SUBMODULES.get(space, []))
    return [name for name in dir(module)
            if (name in listed or len(listed) < 5) and is_public(name, getattr(module, name), space)]


def main():
    if torch.__version__.split("+")[0] != PYTORCH:
        sys.exit("gen_pytorch_names: expected PyTorch %s, got %s" % (PYTORCH, torch.__version__))
    spaces = {space: names_of(space, module) for space, module in NAMESPACES.items()}
    spaces["x"] = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    spaces["m"] = [name for name in dir(torch.nn.Module) if not name.startswith("_")]
    lines = ["--- The public names of PyTorch by namespace, for lutra.internal.missing; x: methods of tensors,", "-- m: of modules.",
             "--", "-- Made by tools/gen_pytorch_names.py with PyTorch %s. Do not edit." % PYTORCH, "return {"]
    for space in sorted(spaces):
        names = sorted(set(spaces[space]) - ADVISED.get(space, set()))
        lines.append('["%s"] = [[' % space)
        lines += textwrap.wrap(" ".join(names), width=100, break_long_words=False, break_on_hyphens=False)
        lines.append("]],")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "lutra", "internal",
                        "pytorch_names.lua")
    with open(path, "w") as out:
        out.write("\n".join(lines + ["}", ""]))


if __name__ == "__main__":
    main()
