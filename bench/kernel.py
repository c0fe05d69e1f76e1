"""Measures the Jupyter kernel: from its start to the first reply, and 1,000 cells one by one. A client
connects when the kernel listens: one that tries before waits for 0.1 s or more until it tries again.

    python bench/kernel.py [PROGRAM] [--peer]    --peer: ipykernel as well, if it is installed

It needs jupyter_client. Times are of the fastest and the median of several starts.
"""

import os
import socket
import statistics
import sys
import tempfile
import time

from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.kernelspec import KernelSpec

STARTS, CELLS = 9, 1000


def wait_for_port(port):
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.001)


def start(argv):
    """Returns a manager and a client, and the seconds from the start to the first reply."""
    home = tempfile.mkdtemp()
    manager = KernelManager(connection_file=os.path.join(home, "kernel.json"))
    manager._kernel_spec = KernelSpec(argv=argv, display_name="", language="")
    begin = time.perf_counter()
    manager.start_kernel(env=dict(os.environ, XDG_STATE_HOME=home))
    wait_for_port(manager.hb_port)
    client = BlockingKernelClient()
    client.load_connection_file(manager.connection_file)
    client.session.key = manager.session.key
    client.start_channels()
    client.kernel_info()
    client.get_shell_msg(timeout=60)
    return manager, client, time.perf_counter() - begin


def cells(client, code):
    """Returns the seconds of CELLS cells, each of which waits for the one before."""
    begin = time.perf_counter()
    for _ in range(CELLS):
        client.execute(code)
        client.get_shell_msg(timeout=60)
    return time.perf_counter() - begin


def measure(name, argv):
    starts = []
    for i in range(STARTS):
        manager, client, seconds = start(argv)
        starts.append(seconds)
        if i + 1 < STARTS:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    time.sleep(0.5)
    while True:
        try:
            client.get_shell_msg(timeout=0.2)
        except Exception:
            break
    total = cells(client, "x = 1")
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    print(f"{name:10} start to first reply: {min(starts) * 1e3:.0f} ms, median "
          f"{statistics.median(starts) * 1e3:.0f} ms; {CELLS} cells: {total:.2f} s")


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "--peer"]
    measure("lutra", [os.path.abspath(words[0] if words else "build/lutra"), "--kernel",
                      "{connection_file}"])
    if "--peer" in sys.argv:
        measure("ipykernel", [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
