"""Runs a program on a pseudo-terminal of 80 x 24 and talks to it.

usage: pty_session.py PROGRAM [ARGUMENT...] < STEPS

Each line of STEPS is `send TEXT`, `expect TEXT` or `pause SECONDS`; TEXT is a Python string's inside
(\\x03 is Ctrl-C). `expect` waits, 20 s at most, until TEXT comes after what was expected before.
Prints all that the program wrote. Exit status: the program's; 99 when an expectation was not met or
the program did not end.
"""
import ast
import os
import pty
import select
import struct
import sys
import termios
import time
import fcntl

LIMIT = 20.0


def steps():
    for line in sys.stdin.read().splitlines():
        verb, _, text = line.partition(" ")
        yield verb, ast.literal_eval('"' + text.replace('"', '\\"') + '"')


class Session:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = b""
        self.at = 0

    def read(self, seconds):
        """Takes in what comes; False when the program closed its side."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, text):
        expected = text.encode()
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            found = self.seen.find(expected, self.at)
            if found >= 0:
                self.at = found + len(expected)
                return True
            if not self.read(0.1):
                break
        return self.seen.find(expected, self.at) >= 0

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)

    def finish(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if not self.read(0.1):
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        return None


def main():
    session = Session(sys.argv[1:])
    problem = None
    for verb, text in steps():
        if verb == "send":
            if text[:1] in "\x03\x04":  # an editor writes its prompt before it sets the terminal up
                session.pause(0.15)
            os.write(session.fd, text.encode())
        elif verb == "pause":
            session.pause(float(text))
        elif not session.expect(text):
            problem = "did not come: %r" % text
            break
    if problem:
        os.kill(session.pid, 9)
    status = session.finish()
    sys.stdout.write(session.seen.decode(errors="replace"))
    if status is None and not problem:
        problem = "did not end"
    if problem:
        print("\n[pty_session: %s]" % problem)
        return 99
    return status if status >= 0 else 128 - status


sys.exit(main())
