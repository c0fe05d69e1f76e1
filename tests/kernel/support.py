"""What the tests of the kernel share: a kernel with a client, and counted checks.

A test file defines functions test_*; main() runs them, each with a kernel of its own or a shared one,
prints what failed, and ends with the line `N passed, N failed, N skipped`.
"""

import os
import queue
import signal
import sys
import tempfile
import time
import traceback

from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.kernelspec import KernelSpec

PROGRAM = os.path.abspath(os.environ.get("LUTRA_KERNEL_PROGRAM", "build/lutra"))
SECONDS = float(os.environ.get("LUTRA_KERNEL_SECONDS", "60"))  # of waiting for one message


class Kernel:
    """A running kernel and a client that is connected to it."""

    def __init__(self, interrupt_mode="message", arguments=(), environment=None, key=None):
        self.home = tempfile.mkdtemp(prefix="lutra-kernel-")
        environment = dict(environment or {}, XDG_STATE_HOME=self.home, XDG_CONFIG_HOME=self.home,
                           LC_ALL="C.UTF-8")
        self.manager = KernelManager(connection_file=os.path.join(self.home, "kernel.json"))
        if key is not None:
            self.manager.session.key = key
        self.manager._kernel_spec = KernelSpec(
            argv=[PROGRAM, *arguments, "--kernel", "{connection_file}"], display_name="Lutra",
            language="lua", interrupt_mode=interrupt_mode, env=environment)
        self.manager.start_kernel(env=dict(os.environ, **environment))
        self.client = self.connect()

    def connect(self):
        """Returns a further client."""
        client = BlockingKernelClient()
        client.load_connection_file(self.manager.connection_file)
        client.session.key = self.manager.session.key
        client.start_channels()
        self.wait_for_ready(client)
        return client

    def wait_for_ready(self, client=None):
        """Waits until the kernel answers and the client gets what it publishes: a subscription is made
        later than the connection for requests, also again after a restart."""
        client = client or self.client
        client.wait_for_ready(timeout=SECONDS)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            message_id = client.kernel_info()
            try:
                while True:
                    message = client.get_iopub_msg(timeout=1)
                    if message["parent_header"].get("msg_id") == message_id and message["content"].get(
                            "execution_state") == "idle":
                        self.reply(message_id, client)
                        return
            except queue.Empty:
                continue
        raise AssertionError("the client gets no messages on iopub")

    def alive(self):
        answer = self.manager.is_alive()
        return answer

    def wait_for_end(self, seconds=10):
        """Returns whether the process ends in time."""
        until = time.monotonic() + seconds
        while self.alive() and time.monotonic() < until:
            time.sleep(0.02)
        return not self.alive()

    def process(self):
        """Returns the number of the process."""
        provisioner = getattr(self.manager, "provisioner", None)
        return provisioner.process.pid if provisioner else self.manager.kernel.pid

    def outputs(self, message_id, client=None):
        """Returns the messages of a request on iopub up to its idle, without status."""
        client, got = client or self.client, []
        while True:
            message = client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if message["msg_type"] != "status":
                got.append(message)
            elif message["content"]["execution_state"] == "idle":
                return got

    def reply(self, message_id, client=None, channel="shell"):
        """Returns the content of the reply to a request."""
        client = client or self.client
        get = client.get_shell_msg if channel == "shell" else client.get_control_msg
        while True:
            message = get(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == message_id:
                return message["content"]

    def run(self, code, client=None, **options):
        """Runs a cell; returns an object with reply, messages, out, err, data, error."""
        client = client or self.client
        message_id = client.execute(code, **options)
        messages = self.outputs(message_id, client)
        return Result(self.reply(message_id, client), messages)

    def send(self, kind, content, channel="shell", client=None):
        """Sends any request; returns its identifier."""
        client = client or self.client
        message = client.session.msg(kind, content)
        (client.shell_channel if channel == "shell" else client.control_channel).send(message)
        return message["header"]["msg_id"]

    def ask(self, kind, content, channel="shell", client=None):
        """Sends any request; returns the content of its reply and the messages on iopub."""
        message_id = self.send(kind, content, channel, client)
        messages = self.outputs(message_id, client)
        return self.reply(message_id, client, channel), messages

    def close(self):
        self.client.stop_channels()
        if self.alive():
            self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


class Result:
    """What a cell did."""

    def __init__(self, reply, messages):
        self.reply, self.messages = reply, messages

    def of(self, kind):
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    def stream(self, name):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == name)

    @property
    def out(self):
        return self.stream("stdout")

    @property
    def err(self):
        return self.stream("stderr")

    @property
    def data(self):
        results = self.of("execute_result")
        return results[-1]["data"] if results else {}

    @property
    def text(self):
        return self.data.get("text/plain")


def same(got, expected):
    """Raises an error when two values differ."""
    if got != expected:
        raise AssertionError(f"expected {expected!r}, got {got!r}")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def nothing_more(get, seconds=0.2):
    """Checks that no message comes."""
    try:
        message = get(timeout=seconds)
    except queue.Empty:
        return
    raise AssertionError(f"expected no message, got {message['msg_type']} {message['content']}")


def main(tests, skipped=0):
    """Runs functions test_*(kernel) with one shared kernel, and test_*() without one. `skipped` is the
    number of tests that are left out."""
    names = sorted((n for n in tests if n.startswith("test_")),
                   key=lambda n: tests[n].__code__.co_firstlineno)
    if len(sys.argv) > 1:
        names = [n for n in names if any(word in n for word in sys.argv[1:])]
    passed, failed, kernel = 0, 0, None
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name in names:
        test = tests[name]
        try:
            if test.__code__.co_argcount:
                if kernel is None or not kernel.alive():
                    kernel = Kernel()
                test(kernel)
            else:
                test()
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            place = traceback.extract_tb(error.__traceback__)
            print("  " + " <- ".join(f"{os.path.basename(f.filename)}:{f.lineno}"
                                     for f in reversed(place)), flush=True)
            if kernel is not None:
                kernel.close()
                kernel = None
    if kernel is not None:
        kernel.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed else 0)
