#!/usr/bin/env python3
"""Writes tests/golden/parameter_orders.lua: the order of the parameters of PyTorch's functions, modules
and optimizers that Lutra has too. tests/spec/core/parameter_orders_spec.lua compares Lutra's signatures with
it and lists the differences.

    python3 tools/gen_parameter_orders.py      # needs a current PyTorch, and build/lutra
"""
import inspect
import re
import subprocess

import torch

NAMES = r"""
local lt = require "lutra"
for _, op in ipairs(lt.ops()) do
  if op.name:sub(1, 1) ~= "_" then print("op", op.name) end
end
for _, kind in ipairs {"F", "nn", "nn.init", "nn.utils", "optim"} do
  local t = lt
  for part in kind:gmatch "%w+" do t = t[part] end
  for name, value in next, t do
    if type(value) == "function" or type(value) == "table" and rawget(value, "__name") then
      print(kind, name)
    end
  end
end
"""

MODULES = {"F": torch.nn.functional, "nn": torch.nn, "nn.init": torch.nn.init,
           "nn.utils": torch.nn.utils, "optim": torch.optim}


def names():
    text = subprocess.run(["build/lutra", "-e", NAMES], capture_output=True, text=True, check=True)
    return sorted({tuple(line.split("\t")) for line in text.stdout.splitlines()})


def of_schemas(name):
    """Yields the parameters of an op's overloads, except those with `out`."""
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
        arguments = schema.arguments
        if any(a.name == "out" or a.is_out for a in arguments):
            continue
        if not any("Tensor" in str(a.type) for a in list(arguments) + list(schema.returns)):
            continue
        if any(str(a.type) == "str" and a.name == "dim" for a in arguments) or "Dimname" in str(schema):
            continue
        yield [a.name for a in arguments if not a.kwarg_only]


def of_python(f):
    """Yields the parameters of Python's signature; for a class that of its __init__."""
    parameters = list(inspect.signature(f.__init__ if inspect.isclass(f) else f).parameters.values())
    if inspect.isclass(f):
        parameters = parameters[1:]
    taken = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    yield [p.name for p in taken]


def of_doc(f):
    """Yields the parameters in the first line of a built-in function's docstring: gelu(input, approximate='none') -> Tensor."""
    found = re.match(r"\s*\w+\((.*?)\)\s*->", f.__doc__ or "", re.S)
    if found:
        text = re.sub(r"\([^()]*\)", "", found.group(1)).split("*")[0]
        yield [p.split("=")[0].strip() for p in text.split(",") if p.strip()]


def orders(kind, name):
    found = []
    try:
        if kind == "op":
            found = list(of_schemas(name))
            f = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
            if inspect.isfunction(f):
                found += list(of_python(f))
        else:
            f = getattr(MODULES[kind], name, None)
            if f is not None and f.__module__ != "typing":
                try:
                    found = list(of_python(f))
                except ValueError:
                    found = list(of_doc(f))
    except (AttributeError, TypeError):
        pass
    seen = []
    for order in found:
        text = " ".join(order)
        if text and text not in seen:
            seen.append(text)
    return sorted(seen)


def main():
    rows = [(kind, name, orders(kind, name)) for kind, name in names()]
    with open("tests/golden/parameter_orders.lua", "w") as out:
        out.write("-- The parameters that PyTorch %s takes by position, in its order; each text is an "
                  "overload.\n-- Made by tools/gen_parameter_orders.py.\nreturn {\n"
                  % torch.__version__.split("+")[0])
        for kind, name, found in rows:
            if found:
                texts = ["    %s,\n" % ('"%s"' % text) for text in found]
                out.write('  ["%s.%s"] = {\n%s  },\n' % (kind, name, "".join(texts)))
        out.write("}\n")


main()
