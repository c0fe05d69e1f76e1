"""Times Fourier transforms by Lutra's own code, by FFTW in Lutra, and in PyTorch, in turns.

    python3 bench/fft.py [ROUNDS]

Prints, for each transform, the microseconds of the three (the minimum of ROUNDS, 3), and which of the first two is
faster. FFTW must be where the loader finds it. OMP_NUM_THREADS is 2 unless it is set."""

import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch  # noqa: E402

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
SIZES = [16, 64, 100, 256, 1000, 1009, 1024, 4096, 10007, 16384, 65536, 100000, 1 << 20]
KINDS = [("fft", "complex64"), ("fft", "complex128"), ("rfft", "float32"), ("rfft", "float64"), ("irfft", "complex64")]
LINES = [(1, 2), (64, 2), (64, 1)]  # number of lines, and their dim
LARGEST = 1 << 22  # numbers of all lines


class Lutra:
    """A process that times transforms on request."""

    def __init__(self, fftw):
        here = os.path.dirname(os.path.abspath(__file__))
        command = [os.environ.get("LUTRA", "build/lutra"), os.path.join(here, "fft.lua")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, LUTRA_FFTW=fftw))

    def measure(self, *case):
        self.process.stdin.write("%s %s %d %d %d\n" % case)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def measure_torch(name, dtype, lines, n, dim):
    given = n // 2 + 1 if name == "irfft" else n
    x = torch.randn((given, lines) if dim == 1 else (lines, given), dtype=getattr(torch, dtype))
    f = getattr(torch.fft, name)
    for _ in range(2):
        f(x, n, dim - 1)
    start = time.perf_counter()
    f(x, n, dim - 1)
    calls = max(1, min(5000, int(0.003 / (time.perf_counter() - start))))
    best = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            f(x, n, dim - 1)
        best.append((time.perf_counter() - start) / calls)
    return 1e6 * min(best)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ways = [Lutra("0").measure, Lutra("1").measure, measure_torch]
    print("%-6s %-10s %5s %3s %8s %11s %11s %11s  own/FFTW" % ("", "", "lines", "dim", "size", "own", "FFTW", "PyTorch"))
    for name, dtype in KINDS:
        for n in SIZES:
            for lines, dim in LINES:
                if n * lines > LARGEST:
                    continue
                best = [min(times) for times in zip(*([w(name, dtype, lines, n, dim) for w in ways] for _ in range(rounds)))]
                print("%-6s %-10s %5d %3d %8d %11.2f %11.2f %11.2f  %8.2f"
                      % (name, dtype, lines, dim, n, *best, best[0] / best[1]), flush=True)


if __name__ == "__main__":
    main()
