"""How the programs of bench/ that compare ops with PyTorch measure time."""

import time


def seconds_of_call(f, seconds=0.02):
    """Returns the seconds of one call of f, from as many calls as take about so many seconds, after
    shorter series that show how many those are."""
    f()
    calls, elapsed = 1, 0
    while elapsed < seconds / 2:
        if elapsed:
            calls = max(calls + 1, int(calls * min(seconds / elapsed, 100)))
        start = time.perf_counter()
        for _ in range(calls):
            f()
        elapsed = time.perf_counter() - start
    return elapsed / calls
