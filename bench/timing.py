"""How the programs of bench/ that compare ops with PyTorch measure time."""

import time


def seconds_of_call(f, seconds=0.02):
    """Returns the seconds of one call of f, from as many calls as take about so many seconds."""
    f()
    start = time.perf_counter()
    f()
    calls = max(1, int(seconds / (time.perf_counter() - start)))
    start = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - start) / calls
