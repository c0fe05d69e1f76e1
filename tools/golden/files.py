#!/usr/bin/env python3
"""Writes tests/golden/files: small files written by PyTorch and NumPy, which tests/spec/core/torch_files_spec.lua reads.

    python3 tools/golden/files.py

Every value in them follows from this script. The files are made with the version of PyTorch in PYTORCH."""

import collections
import os

import numpy as np
import torch

PYTORCH = "2.15.0"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "files")


def module():
    m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    with torch.no_grad():
        for i, p in enumerate(m.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.25 + i)
    return m


def values():
    m = module()
    optimizer = torch.optim.Adam(m.parameters(), lr=0.5)
    m(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    x = torch.arange(12.0).reshape(3, 4)
    dtypes = {str(d).split(".")[1]: x.to(d) for d in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
        torch.uint8, torch.bool, torch.complex64, torch.complex128)}
    return {
        "model": module().state_dict(), "optimizer": optimizer.state_dict(), "dtypes": dtypes,
        "x": x, "row": x[1], "transposed": x.t(), "expanded": torch.ones(1).expand(3),
        "scalar": torch.tensor(5), "empty": torch.empty(0, 3), "grad": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2)), "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "none": None, "list": [1, 2.5, "a", None, True, (1, 2, (3, None))], "set": {1, "two"}, "big": 2 ** 40,
        "least": -2 ** 63, "huge": 2 ** 70, "negative": -5, "bytes": b"\x00\xff", "shape": x.shape,
        "device": torch.device("cuda:1"), "dtype": torch.float16, "complex": 1 + 2j, "text": "\u00e9",
        "ordered": collections.OrderedDict([("z", 1), ("a", 2)]), 7: "seven",
        "number": np.float64(1.5), "integer": np.int32(7), "array": np.arange(6, dtype=">i4").reshape(2, 3),
    }


def path(name):
    return os.path.join(FOLDER, name)


def main():
    if torch.__version__.split("+")[0] != PYTORCH:
        raise SystemExit("expected PyTorch %s, this is %s" % (PYTORCH, torch.__version__))
    os.makedirs(FOLDER, exist_ok=True)
    v = values()
    torch.save(v, path("values.pt"))
    torch.save(v, path("values_old.pt"), _use_new_zipfile_serialization=False)
    for protocol in (3, 5):
        torch.save(v, path("values_protocol%d.pt" % protocol), pickle_protocol=protocol)
    torch.save(torch.arange(3), path("tensor.pt"))
    torch.save(None, path("none.pt"))
    z = torch.tensor([1 + 2j, 3 - 4j])
    neg = z.clone().conj().imag
    for name, zipped in (("lazy.pt", True), ("lazy_old.pt", False)):
        torch.save({"z": z, "conj": z.conj(), "neg": neg, "part": neg[1:]}, path(name),
                   _use_new_zipfile_serialization=zipped)
    torch.save(module(), path("module.pt"))
    torch.jit.save(torch.jit.script(module()), path("script.pt"))
    np.savez(path("arrays.npz"), a=np.asfortranarray(np.arange(6.0).reshape(2, 3)), b=np.arange(3, dtype=">i2"))
    np.savez_compressed(path("compressed.npz"), zeros=np.zeros((30, 30)), one=np.float32(1))
    np.savez(path("objects.npz"), o=np.array([{}, 1], dtype=object))


if __name__ == "__main__":
    main()
