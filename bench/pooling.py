"""Times pools in PyTorch and in Lutra, in turns; see bench/pooling.lua.

    python3 bench/pooling.py [ROUNDS]

Prints, for each pool, the milliseconds of forward and of forward and backward in both, and their quotients: the
medians of ROUNDS (5) runs of each program, which alternate. OMP_NUM_THREADS is 2 unless it is set."""

import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

CASES = [  # name, shape, function, arguments
    ("max 2x2 mnist", (64, 32, 26, 26), "max_pool2d", [2]),
    ("max 3x3/2 resnet", (8, 64, 112, 112), "max_pool2d", [3, 2, 1]),
    ("avg 2x2 mnist", (64, 32, 24, 24), "avg_pool2d", [2]),
    ("avg 2x2 resnet", (8, 256, 56, 56), "avg_pool2d", [2]),
    ("avg 3x3/2", (8, 64, 112, 112), "avg_pool2d", [3, 2, 1]),
    ("global avg resnet", (8, 2048, 7, 7), "adaptive_avg_pool2d", [1]),
    ("adaptive avg 7", (8, 256, 14, 14), "adaptive_avg_pool2d", [7]),
    ("adaptive max 7", (8, 256, 14, 14), "adaptive_max_pool2d", [7]),
    ("max 2 signal", (64, 64, 1000), "max_pool1d", [2]),
    ("avg 2x2x2", (2, 32, 16, 56, 56), "avg_pool3d", [2]),
]


def run_torch():
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    out = {}
    for name, shape, function, args in CASES:
        f = getattr(F, function)
        x = torch.randn(shape)
        y = x.clone().requires_grad_()
        g = torch.ones_like(f(x, *args))

        def forward():
            with torch.no_grad():
                f(x, *args)

        def both():
            y.grad = None
            f(y, *args).backward(g)

        out[name] = [measure(forward), measure(both)]
    print(json.dumps(out))


def measure(f):
    for _ in range(3):
        f()
    best = []
    for _ in range(15):
        start = time.perf_counter()
        f()
        best.append(time.perf_counter() - start)
    return 1000 * statistics.median(best)


def main():
    if "--torch" in sys.argv:
        return run_torch()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    lua = "".join("{%s, {%s}, %s, {%s}}," % (json.dumps(n), ", ".join(map(str, s)), json.dumps(f), ", ".join(map(str, a)))
                  for n, s, f, a in CASES)
    here = os.path.dirname(os.path.abspath(__file__))
    programs = {"torch": [sys.executable, __file__, "--torch"],
                "lutra": [os.environ.get("LUTRA", "build/lutra"), os.path.join(here, "pooling.lua"), "return {" + lua + "}"]}
    times = {k: [] for k in programs}
    for _ in range(rounds):
        for k, command in programs.items():
            times[k].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print("%-20s %26s   %26s" % ("milliseconds", "forward", "forward and backward"))
    for name, *_ in CASES:
        cells = []
        for i in (0, 1):
            t, own = (statistics.median(run[name][i] for run in times[k]) for k in ("torch", "lutra"))
            cells.append("%7.3f %7.3f  x%5.2f" % (t, own, own / t))
        print("%-20s %26s   %26s" % (name, *cells))


if __name__ == "__main__":
    main()
