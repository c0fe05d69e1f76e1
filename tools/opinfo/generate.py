"""Writes test cases from PyTorch's operator database (OpInfo) for tools/opinfo/run.lua.

    python3 tools/opinfo/generate.py [--out DIR] [--jobs N] [ROW...]
    build/lutra tools/opinfo/run.lua [--from DIR] [-v] [--isolate] [--passing FILE] [ROW...]
    python3 tools/opinfo/generate.py --sample FILE [--device-passing NAME FILE]...

ROW is an op's name in the database, with its variant (`div.floor_rounding`); without ROW, all rows
that a user can call (see `is_internal`). DIR is build/opinfo by default. For each row there is
DIR/ROW.safetensors, with the storages of all tensors, and DIR/ROW.lua, which returns a table:

    {row=, space="F" or "linalg"... or "", name=, cases}

With --sample it writes tests/golden/opinfo: lists of such tables by family, with few small cases of
each row, and cases.safetensors, which holds the storages of all of them. It takes cases that
FILE lists, as run.lua --passing writes it. A case that the list of a device (--device-passing)
lacks has skip={NAME=true}: tests/spec/core/opinfo_spec.lua leaves it out there.

A case has PyTorch's arguments and results; run.lua translates indices and ranges:

    id      number of the sample and kind, for messages: "float32 3 method"
    d       dtype of the sample
    k       kind of call: function, method, in_place, alias, out
    f       the name that is called where it differs from the row's: the alias
    n, a    number of positional arguments and the arguments
    kw      named arguments
    r       results, flat
    random  true: only shapes and dtypes are compared
    g       gradients of sum(real(result * w)) for the tensors with g=i, see `weights`
    gg      gradients of the sum of |g|^2
    p       name of the function (run.lua) that computes, from the results, those to compare

A value is a number, a string, a boolean, or a table: {t=i} tensor i of the file, with {size=,
stride=, offset=} when it is a view of the storage; g=i: the i-th tensor that requires grad; c=true:
complex, stored as pairs; {none=true}; {l={...}, n=} a list, with tuple=true a tuple; {dtype=};
{device=}; {slice={a, b, c}}; {ellipsis=true}; {complex={re, im}}; {options={name=value}};
{["function"]=name}.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import re
import signal
import struct
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

DTYPES = {
    torch.float32: "float32", torch.float64: "float64", torch.float16: "float16",
    torch.bfloat16: "bfloat16", torch.int64: "int64", torch.int32: "int32", torch.int16: "int16",
    torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool", torch.complex64: "complex64",
    torch.complex128: "complex128",
}
CODES = {
    "float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}
# dtype -> most samples of a row
LIMITS = {
    torch.float32: 60, torch.float64: 8, torch.int64: 8, torch.bool: 8, torch.bfloat16: 8,
    torch.float16: 8, torch.complex64: 8, torch.complex128: 8, torch.uint8: 3, torch.int32: 3,
}
WITH_GRADIENT = (torch.float32, torch.float64, torch.complex64, torch.complex128)
MAX_ELEMENTS = 60000  # of the tensors of a case
SECONDS = 90          # for a row


SEED = torch.manual_seed
seed_offset = 0


def seed(n):
    """Replaces torch.manual_seed: some rows set the same seed in each call."""
    return SEED(n + seed_offset)


torch.manual_seed = seed


# Rows whose function takes its first two arguments in another order than PyTorch's.
SWAPPED = ("einsum", "polygamma", "special.polygamma", "where", "nn.functional.embedding",
           "nn.functional.embedding_bag", "normal.number_mean")


# Functions whose values are never compared: of few elements, two draws may be equal.
RANDOM = "empty|resize_|rand|bernoulli|multinomial|normal$|exponential$|geometric|cauchy|uniform|" \
         "fractional"


class Skip(Exception):
    """A value that Lutra has no form of."""


def is_internal(op):
    """Returns whether a row is PyTorch's own business, or of a feature that Lutra lacks."""
    name = op.name
    if name.startswith("__") and name.endswith("__"):
        return False
    last = name.split(".")[-1]
    return bool(
        last.startswith("_") or name.startswith("_") or name.startswith("torch.")
        or last.startswith(("native_", "unsafe_", "jiterator", "to_sparse"))
        or (last.endswith("_copy") and last not in ("index_copy",))
        or last.endswith("_backward") or name.startswith("sparse.")
        or op.variant_test_name in ("triton_optimized", "decomposed"))


class Writer:
    """Collects the storages of a row; equal ones are stored once."""

    def __init__(self):
        self.tensors, self.known, self.bytes = [], {}, 0

    def add(self, t):
        t = t.detach()
        if t._is_zerotensor():
            t = t.clone()
        if t.is_conj():
            t = t.resolve_conj()
        if t.is_neg():
            t = t.resolve_neg()
        name = DTYPES.get(t.dtype)
        if name is None or t.layout != torch.strided or t.device.type != "cpu":
            raise Skip(f"{t.dtype} {t.layout}")
        value = {}
        if t.is_complex():
            value["c"] = True
        whole = t.numel() == t.untyped_storage().nbytes() // t.element_size()
        if not (t.is_contiguous() and whole) and t.numel() > 0:
            size = t.untyped_storage().nbytes() // t.element_size()
            base = torch.as_strided(t, (size,), (1,), 0)
            if size <= 4 * MAX_ELEMENTS:
                value["size"], value["stride"] = list(t.shape), list(t.stride())
                if t.storage_offset():
                    value["offset"] = t.storage_offset()
                t = base
        t = t.contiguous()
        if t.is_complex():
            t = torch.view_as_real(t).contiguous()
        flat = torch.empty(t.numel(), dtype=t.dtype)
        flat.copy_(t.reshape(-1))
        data = flat.view(torch.uint8).numpy().tobytes() if t.numel() else b""
        value["t"] = self.take((CODES[DTYPES[t.dtype]], list(t.shape), data))
        return value

    def take(self, tensor):
        """Returns the number of a tensor (code, shape, bytes), which is stored once."""
        key = (tensor[0], tuple(tensor[1]), tensor[2])
        if key not in self.known:
            self.known[key] = len(self.tensors)
            self.tensors.append(tensor)
            self.bytes += len(tensor[2])
        return self.known[key]

    def write(self, path):
        header, at = {}, 0
        for i, (code, shape, data) in enumerate(self.tensors):
            header[str(i)] = {"dtype": code, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for _, _, data in self.tensors:
                f.write(data)


def number(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, int):
        if x == -2**63:
            return "math.mininteger"
        return str(x) if -2**63 < x < 2**63 else repr(float(x))
    if math.isnan(x):
        return "0/0"
    if math.isinf(x):
        return "1/0" if x > 0 else "-1/0"
    return repr(x)


def lua(v):
    """Returns a value of Python's basic types in Lua's syntax."""
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, (bool, int, float)):
        return number(v)
    if isinstance(v, (list, tuple)):
        return "{" + ", ".join(lua(x) for x in v) + "}"
    if isinstance(v, dict):
        return "{" + ", ".join(
            (k if re.fullmatch(r"[a-z_A-Z]\w*", k) and k not in ("end", "repeat", "in", "function")
             else f"[{json.dumps(k)}]") + "=" + lua(x) for k, x in v.items()) + "}"
    raise TypeError(type(v))


class Encoder:
    def __init__(self, writer):
        self.writer, self.leaves = writer, []

    def value(self, v):
        if v is None:
            return {"none": True}
        if isinstance(v, torch.Tensor):
            out = self.writer.add(v)
            if v.requires_grad:
                self.leaves.append(v)
                out["g"] = len(self.leaves)
            return out
        if isinstance(v, (bool, int, float, str)):
            return v
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if isinstance(v, (torch.Size, list, tuple)):
            out = {"l": [self.value(x) for x in v], "n": len(v)}
            if isinstance(v, tuple):
                out["tuple"] = True
            return out
        if isinstance(v, torch.dtype):
            if v not in DTYPES:
                raise Skip(str(v))
            return {"dtype": DTYPES[v]}
        if isinstance(v, (torch.layout, torch.memory_format)):
            return {"option": str(v).split(".")[-1]}
        if isinstance(v, torch.device):
            return {"device": str(v)}
        if isinstance(v, slice):
            return {"slice": [self.value(x) for x in (v.start, v.stop, v.step)]}
        if v is Ellipsis:
            return {"ellipsis": True}
        if v in (bool, int, float, complex):
            return {"dtype": DTYPES[{bool: torch.bool, int: torch.int64, float: torch.float32,
                                     complex: torch.complex64}[v]]}
        if hasattr(v, "item") and hasattr(v, "dtype"):  # a NumPy scalar
            return self.value(v.item())
        if dataclasses.is_dataclass(v):
            return {"options": {f.name: self.value(getattr(v, f.name))
                                for f in dataclasses.fields(v)}}
        if callable(v):
            return {"function": getattr(v, "__name__", type(v).__name__)}
        raise Skip(str(type(v)))


def flatten(out):
    """Returns the tensors and numbers in a result, in order."""
    if isinstance(out, torch.Size):
        return [list(out)]
    if isinstance(out, (list, tuple)):
        return [x for o in out for x in flatten(o)]
    return [out]


def weights(out):
    """Returns fixed weights of an output's shape, exact in every float dtype."""
    w = (torch.arange(out.numel()) * 7 % 11 + 3).reshape(out.shape).to(torch.float64) / 8
    real = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(out.dtype)
    return w.to(real or out.dtype)


def loss_of(outputs):
    """Returns the sum over all outputs of real(out * w), w = weights * (1 + 0.5i) if complex."""
    total = None
    for out in outputs:
        if not isinstance(out, torch.Tensor) or not out.requires_grad:
            continue
        w = weights(out)
        part = ((out.real * w - out.imag * w * 0.5) if out.is_complex() else out * w).sum()
        part = part.to(torch.float64)
        total = part if total is None else total + part
    return total


def equal(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = a.detach(), b.detach()
        if a.is_complex():
            a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
        return torch.equal(torch.nan_to_num(a.double()), torch.nan_to_num(b.double()))
    if isinstance(a, float) and math.isnan(a):
        return True
    return a == b


def map_tensors(v, f):
    if isinstance(v, torch.Tensor):
        return f(v)
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return type(v)(*[map_tensors(x, f) for x in v]) if hasattr(v, "_fields") \
            else type(v)(map_tensors(x, f) for x in v)
    return v


def copy(t):
    """Returns a leaf with the same values, strides and offset."""
    if t.numel() == 0:
        return t.detach().clone().requires_grad_(t.requires_grad)
    size = t.untyped_storage().nbytes() // t.element_size()
    base = torch.as_strided(t.detach(), (size,), (1,), 0).clone()
    out = base.as_strided(t.shape, t.stride(), t.storage_offset())
    if t.is_conj():
        out = out.conj()
    return out.requires_grad_(t.requires_grad)


def elements(v):
    if isinstance(v, torch.Tensor):
        return v.numel()
    if isinstance(v, (list, tuple)):
        return sum(elements(x) for x in v)
    return 0


def process_of(sample):
    """Returns the name of the function that makes the results of a sample unique, or None."""
    f = sample.output_process_fn_grad
    name = getattr(f, "__name__", "<lambda>")
    return None if name == "<lambda>" else name


class Row:
    def __init__(self, op):
        self.op, self.writer, self.cases, self.skipped = op, Writer(), [], 0
        self.first = math.inf  # of the samples of a dtype, this many are used
        self.name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        parts = op.name.split(".")
        self.space = {"nn.functional": "F"}.get(".".join(parts[:-1]), ".".join(parts[:-1]))
        self.fn = parts[-1]

    def call(self, f, sample, process=True):
        out = f(sample.input, *sample.args, **sample.kwargs)
        if process and process_of(sample):
            out = sample.output_process_fn_grad(out)
        return out

    def case(self, kind, f, sample, ident, dtype, gradient, second, name=None, in_place=False):
        """Adds the case of one call, or nothing where PyTorch refuses it."""
        if elements([sample.input, list(sample.args), list(sample.kwargs.values())]) > MAX_ELEMENTS:
            raise Skip("large")
        sample = sample.transform(lambda t: copy(t) if isinstance(t, torch.Tensor) else t)
        enc = Encoder(self.writer)
        args = [sample.input, *sample.args]
        if kind in ("function", "out", "alias") and \
                (self.op.name in SWAPPED or self.name in SWAPPED):
            args[:2] = args[1::-1]
        kw = {k: v for k, v in sorted(sample.kwargs.items())}
        case = {"id": ident + ("" if kind == "function" else " " + kind), "d": DTYPES[dtype],
                "k": kind, "n": len(args), "a": [enc.value(v) for v in args],
                "kw": {k: enc.value(v) for k, v in kw.items()}}
        if name:
            case["f"] = name
        if not gradient or in_place:
            sample = sample.transform(
                lambda t: t.detach() if isinstance(t, torch.Tensor) else t)
        again = sample.transform(lambda t: copy(t) if isinstance(t, torch.Tensor) else t)
        global seed_offset
        torch.manual_seed(1)
        out = flatten(self.call(f, sample))
        seed_offset = 1
        try:
            torch.manual_seed(1)
            other = flatten(self.call(f, again))
        finally:
            seed_offset = 0
        if len(out) != len(other) or not all(equal(a, b) for a, b in zip(out, other)):
            case["random"] = True
        given = case["kw"].get("_random_samples", {"none": True}) != {"none": True}
        if re.search(RANDOM, self.fn) and self.space in ("", "F") and not given:
            case["random"] = True
        plain = Encoder(self.writer)
        if elements(out) > 2 * MAX_ELEMENTS:
            raise Skip("large")
        case["r"] = [plain.value(o.detach() if isinstance(o, torch.Tensor) else o) for o in out]
        if process_of(sample):
            case["p"] = process_of(sample)
        if gradient and not in_place and enc.leaves and not case.get("random"):
            leaves = enc.leaves
            loss = loss_of(out)
            if loss is not None:
                grads = torch.autograd.grad(loss, leaves, create_graph=second, allow_unused=True)
                case["g"] = [plain.value(g.detach() if g is not None else None) for g in grads]
                self.second(case, plain, grads, leaves, second)
        self.cases.append(case)

    def second(self, case, plain, grads, leaves, second):
        used = [g for g in grads if g is not None and g.requires_grad]
        if not second or not used:
            return
        try:
            loss = sum((g * g).sum() if not g.is_complex() else (g * g.conj()).real.sum()
                       for g in used)
            twice = torch.autograd.grad(loss, leaves, allow_unused=True)
        except RuntimeError:
            return
        case["gg"] = [plain.value(g.detach() if g is not None else None) for g in twice]

    def add(self, *args, **kw):
        try:
            self.case(*args, **kw)
            return True
        except (Skip, RuntimeError, NotImplementedError, TypeError, ValueError, IndexError,
                AttributeError, AssertionError) as e:
            self.skipped += 1
            self.last = f"{type(e).__name__}: {e}"
            return False

    def dtype(self, dtype, limit, deadline):
        op, name = self.op, DTYPES[dtype]
        gradient = op.supports_autograd and dtype in WITH_GRADIENT and dtype in op.backward_dtypes
        torch.manual_seed(7)
        every = list(op.sample_inputs("cpu", dtype, requires_grad=gradient))
        chosen = every
        if len(every) > limit:  # spread over the list
            chosen = [every[i * len(every) // limit] for i in range(limit)]
        n_in_place = n_method = n_out = 0
        for i, sample in enumerate(chosen):
            if time.time() > deadline or i >= self.first:
                return
            ident = f"{name} {i}"
            second = gradient and op.supports_gradgrad and dtype == torch.float64 and i < 2
            if not self.add("function", op.op, sample, ident, dtype, gradient, second):
                continue
            more = 6 if dtype == torch.float32 else 1
            if callable(op.method_variant) and n_method < min(more, 3):
                n_method += self.add(
                    "method", op.method_variant, sample, ident, dtype, False, False,
                    name=getattr(op.method_variant, "__name__", "").replace("<lambda>", self.fn))
            f = op.inplace_variant
            if callable(f) and n_in_place < more and not sample.broadcasts_input:
                n_in_place += self.add(
                    "in_place", f, sample, ident, dtype, False, False, in_place=True,
                    name=(getattr(f, "__name__", None) or self.fn + "_").replace("<lambda>",
                                                                                self.fn + "_"))
            if op.supports_out and n_out < 1 and dtype == torch.float32:
                n_out += self.add("out", op.op, sample, ident, dtype, False, False)
            if i == 0 and dtype in (torch.float32, torch.int64):
                for alias in op.aliases:
                    self.add("alias", alias.op, sample, ident, dtype, False, False, name=alias.name)

    def compute(self):
        """Makes all cases."""
        deadline = time.time() + SECONDS
        for dtype, limit in LIMITS.items():
            if dtype in self.op.dtypes:
                try:
                    self.dtype(dtype, limit, deadline)
                except Exception as e:  # noqa: BLE001: a sample generator may raise anything
                    self.last = f"{DTYPES[dtype]}: {e}"

    def generate(self, out):
        """Writes the files of the row."""
        self.compute()
        self.writer.write(os.path.join(out, self.name + ".safetensors"))
        with open(os.path.join(out, self.name + ".lua"), "w") as f:
            f.write("return " + self.text(self.cases) + "\n")

    def text(self, cases):
        """Returns the table of the row in Lua's syntax."""
        head = f"{{row={lua(self.name)}, space={lua(self.space)}, name={lua(self.fn)},\n"
        return head + "".join(lua(case) + ",\n" for case in cases) + "}"


def late(*_):
    raise TimeoutError("too slow")


def generate(task):
    index, out = task
    torch.set_num_threads(1)
    row = Row(op_db[index])
    signal.signal(signal.SIGALRM, late)
    signal.alarm(2 * SECONDS)
    row.generate(out)
    signal.alarm(0)
    return row.name, len(row.cases), row.skipped, row.writer.bytes, getattr(row, "last", "")


def references(v):
    """Yields the references to tensors in a value."""
    if isinstance(v, dict):
        if "t" in v:
            yield v
        for x in v.values():
            yield from references(x)
    elif isinstance(v, list):
        for x in v:
            yield from references(x)


SAMPLE_BYTES = 700  # of the tensors of a case


def choose(row, passing):
    """Returns small cases of a row that pass: one with gradients, two of other kinds."""
    small = []
    for case in row.cases:
        used = {v["t"] for v in references(case)}
        size = sum(len(row.writer.tensors[t][2]) for t in used)
        if f"{row.name}\t{case['id']}" in passing and size <= SAMPLE_BYTES and \
                len(lua(case)) < 900:
            small.append(case)
    chosen, seen = [], set()
    for want in (lambda c: "gg" in c or c["d"] == "float32" and "g" in c,
                 lambda c: c["d"] in ("complex64", "int64", "bool"),
                 lambda c: c["d"] in ("bfloat16", "float16") or c["k"] == "in_place",
                 lambda c: True):
        for case in small:
            if want(case) and case["id"] not in seen and len(chosen) < 2:
                chosen.append(case)
                seen.add(case["id"])
                break
    return chosen


def sample(task):
    index, passing = task
    torch.set_num_threads(1)
    row = Row(op_db[index])
    row.first = 5
    signal.signal(signal.SIGALRM, late)
    signal.alarm(2 * SECONDS)
    row.compute()
    signal.alarm(0)
    chosen = choose(row, passing)
    row.op = None
    return row, chosen


def family(name):
    """Returns the file of the sample that a row is in: its namespace, or its first letter."""
    space = name.split(".")[0]
    if space in ("fft", "linalg", "masked", "nn", "signal", "special"):
        return space
    return "tensor_a_to_h" if name[0].lower() <= "h" else "tensor_i_to_z"


def write_sample(passing, others, pool):
    """Writes tests/golden/opinfo. passing, others[device]: sets of "row<tab>id"."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden/opinfo")
    os.makedirs(folder, exist_ok=True)
    writer, texts = Writer(), {}
    tasks = [(i, {line for line in passing if line.startswith(op.name)})
             for i, op in enumerate(op_db) if not is_internal(op)]
    for done in [pool.submit(sample, task) for task in tasks]:
        try:
            row, chosen = done.result()
        except Exception as e:  # noqa: BLE001
            print("failed:", e, flush=True)
            continue
        for case in chosen:
            line = f"{row.name}\t{case['id']}"
            skip = {device: True for device, lines in others.items() if line not in lines}
            for v in references(case):
                v["t"] = writer.take(row.writer.tensors[v["t"]])
            if skip:
                case["skip"] = skip
        if chosen:
            texts.setdefault(family(row.name), []).append(row.text(chosen))
    writer.write(os.path.join(folder, "cases.safetensors"))
    texts["families"] = [f'"{name}"' for name in sorted(texts)]
    for name, entries in texts.items():
        with open(os.path.join(folder, name + ".lua"), "w") as f:
            f.write("-- Made by tools/opinfo/generate.py with PyTorch "
                    f"{torch.__version__.split('+')[0]}. Do not edit.\nreturn {{\n"
                    + ",\n".join(entries) + "}\n")


def read_lines(path):
    with open(path) as f:
        return set(f.read().splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="build/opinfo")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample")
    parser.add_argument("--device-passing", nargs=2, action="append", default=[])
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    if options.sample:
        others = {device: read_lines(path) for device, path in options.device_passing}
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            write_sample(read_lines(options.sample), others, pool)
        return 0
    os.makedirs(options.out, exist_ok=True)
    tasks = []
    for i, op in enumerate(op_db):
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if name in options.rows or op.name in options.rows or \
                not options.rows and not is_internal(op):
            tasks.append((i, options.out))
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(generate, task) for task in tasks]:
            try:
                name, cases, skipped, size, last = done.result()
            except Exception as e:  # noqa: BLE001
                print("failed:", e, flush=True)
                continue
            print(f"{name}: {cases} cases, {size // 1024} KiB"
                  + (f", {skipped} skipped ({last[:150]})" if skipped or last else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
