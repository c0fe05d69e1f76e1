"""Sends random keys, pastes, sizes and signals to the prompt on a pseudo-terminal.

usage: prompt.py PROGRAM [--seconds N] [--seed N] [--session N] [--steps N] [--verbose]

Sessions run one after the other until the time is over: with emacs and vi keys, with an empty history
and a full one. A session is random, but the same for the same seed and number (--session runs one
alone). After its keys the prompt must still evaluate an expression, or the program must have ended in
order because a key or a signal asked it to; either way the terminal must be as it was before. Exit
status: 0, or 1 with the keys of the session that failed.
"""
import argparse
import fcntl
import os
import pty
import random
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time

PATIENCE = 20.0  # seconds until a session counts as hanging

PIECES = (
    [bytes([c]) for c in range(32) if c not in (0x13, 0x1C)]  # Ctrl-S stops the output, Ctrl-\ kills
    + [b"\x7f", b"\x80", b"\x9b", b"\xc3", b"\xc3\xa9", b"\xe2\x82", b"\xe2\x82\xac", b"\xf0\x9f\x98",
       b"\xf0\x9f\x98\x80", b"e\xcc\x81", b"\xff\xfe", b"\xed\xa0\x80"]
    + [b"\x1b[" + s for s in (b"A", b"B", b"C", b"D", b"H", b"F", b"Z", b"1~", b"2~", b"3~", b"4~", b"5~",
                              b"6~", b"1;5C", b"1;5D", b"13;2u", b"200~", b"201~", b"99~", b"20", b"", b"?1;2c",
                              b"24;80R", b"I", b"O", b"M   ", b"38;5;196m")]
    + [b"\x1bO" + s for s in (b"A", b"B", b"P", b"H", b"F")]
    + [b"\x1b" + bytes([c]) for c in b"bfdtulc.<>?#*&\\-0123456789_ynp\r\n\x1b\x07\x08\x7f\x0f"]
    + [b"\x18" + bytes([c]) for c in b"()e*\x15\x18\x05\x07\x12\x16\x7f"]
    + [b"\x12", b"\x16", b"\x12\x1b[201~\t", b"\x12a\x1b[A", b"\x1b5\x0b", b"\x1b-\x1b3x", b"\x11\x1b"]
    + [b"local x = {1, 2", b"for i = 1, 2 do\r", b"end", b"function f(a)\r", b"if", b"then", b"return", b"\"", b"'",
       b"[[", b"]]", b"--[[", b"--", b"(", b")", b"{", b"}", b":", b":help", b":who", b"lt.", b"lt.ze", b"string.",
       b"?lt", b"x", b" ", b"  ", b"\t\t", b"1 + 1\r", b"lt.ones(2, 2)\r", b"error 'x'\r", b"x = 5\r", b"i", b"a",
       b"dd", b"cw", b"r", b"R", b"f", b";", b",", b"/", b"n", b"N", b"u", b".", b"~", b"%", b"0", b"$", b"G", b"v",
       b"y", b"p", b"P", b"k", b"j", b"\"a", b"@", b"=", b"*", b"_", b"|", b"\x1b"]
)

HISTORY = ["x = 1", "for i = 1, 3 do\n  print(i)\nend", "lt.ones(3)", "s = 'h\u00e9llo \u20ac \U0001f600'",
           "y = " + " + ".join(str(i) for i in range(400)), "print(x)", "-- " + "w" * 3000]
ALIVE = b"print(('al' .. 'ive'):rep(2))\r"


class Failure(Exception):
    pass


def burst(rng):
    """One write to the terminal."""
    kind = rng.random()
    if kind < 0.03:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))).translate(None, b"\x13\x1c")
    if kind < 0.05:
        piece = rng.choice((b"a", b"\xe2\x82\xac", b"( ", b"\t", b"x\r"))
        return piece * (rng.randrange(3, 3000) // len(piece))  # a terminal's queue holds 4095 bytes
    if kind < 0.10:
        inside = b"".join(rng.choice(PIECES) for _ in range(rng.randrange(30)))
        return b"\x1b[200~" + inside + rng.choice((b"\x1b[201~", b"", b"\x1b[201", b"\x03"))
    return b"".join(rng.choice(PIECES) for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20))))


class Session:
    def __init__(self, program, number, seed):
        self.rng = random.Random("%d/%d" % (seed, number))
        self.vi, self.full = bool(number & 1), bool(number & 2)
        self.log, self.seen, self.status = [], b"", None
        self.home = tempfile.mkdtemp(prefix="lutra-fuzz-")
        os.makedirs(self.home + "/state/lutra")
        with open(self.home + "/inputrc", "w") as f:
            f.write("set editing-mode %s\n" % ("vi" if self.vi else "emacs"))
        if self.full:
            self.write_history()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        environment.update(TERM="xterm", HOME=self.home, INPUTRC=self.home + "/inputrc", EDITOR="true", VISUAL="true",
                           PAGER="cat", XDG_STATE_HOME=self.home + "/state", XDG_CONFIG_HOME=self.home,
                           XDG_CACHE_HOME=self.home, OMP_NUM_THREADS="1", LC_ALL=self.rng.choice(("C.UTF-8", "C")))
        ready, go = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)
            os.chdir(self.home)
            os.execve(program, [program, "--no-init"], environment)
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.fd)
        os.close(go)
        os.close(ready)

    def write_history(self):
        """Entries as the prompt writes them: by the prompt itself."""
        lines = "".join(entry.replace("\\", "\\\\").replace("\n", "\\n") + "\n" for entry in HISTORY)
        with open(self.home + "/state/lutra/history", "w") as f:
            f.write(lines)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take_in(self, seconds):
        """Reads what comes; False when the program is gone."""
        if self.status is not None:
            return False
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen = (self.seen + os.read(self.fd, 65536))[-100000:]
            except OSError:
                pass
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return True
        if os.WIFSTOPPED(status):
            os.kill(self.pid, signal.SIGCONT)
            return True
        self.status = os.waitstatus_to_exitcode(status)
        return False

    def send(self, data):
        self.log.append(data)
        end = time.monotonic() + PATIENCE
        while data and self.take_in(0):
            if select.select([], [self.fd], [], 0.01)[1]:
                try:
                    data = data[os.write(self.fd, data[:256]):]
                except OSError:
                    return
            if time.monotonic() > end:
                raise Failure("it does not read its input")

    def kill(self, number):
        self.log.append(signal.Signals(number).name)
        if self.take_in(0):
            os.kill(self.pid, number)

    def run(self, steps):
        end = time.monotonic() + PATIENCE
        while b"> " not in self.seen and self.take_in(0.05) and time.monotonic() < end:
            pass
        for _ in range(steps):
            if not self.take_in(self.rng.choice((0, 0, 0.001, 0.02))):
                break
            what = self.rng.random()
            if what < 0.04:
                self.resize(self.rng.randrange(1, 60), self.rng.randrange(1, 200))
                self.log.append("SIZE")
            elif what < 0.08:
                self.kill(self.rng.choice((signal.SIGINT, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)))
            else:
                self.send(burst(self.rng))
        self.end()

    def end(self):
        """The prompt answers, or ends when it is asked to."""
        if self.rng.random() < 0.25:
            number = self.rng.choice((signal.SIGTERM, signal.SIGHUP))
            self.kill(number)
            self.wait_for(None)
            if self.status not in (0, 1, 128 + number, -number):
                raise Failure("%s ended it with status %d" % (signal.Signals(number).name, self.status))
        else:
            self.answer()
        self.check_end()

    def answer(self):
        self.resize(24, 80)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.send(b"\x11\x03")
            pause = time.monotonic() + 0.1
            while time.monotonic() < pause and self.take_in(0.02):
                pass
            self.seen = b""
            self.send(ALIVE)
            if self.wait_for(b"alivealive", 1.0):
                return
            if self.status is not None:
                return
        raise Failure("it does not answer")

    def wait_for(self, text, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            more = self.take_in(0.05)
            if text and text in self.seen:
                return True
            if not more:
                return False
        if text is None:
            raise Failure("it does not end")
        return False

    def check_end(self):
        if self.status is None:
            self.send(b"\x03\x04")
            end = time.monotonic() + PATIENCE
            while self.take_in(0.05):
                if time.monotonic() > end:
                    raise Failure("Ctrl-D does not end it")
                self.send(b"\x03\x04")
        if self.status < 0 and self.status not in (-signal.SIGTERM, -signal.SIGHUP):
            raise Failure("signal %s ended it" % signal.Signals(-self.status).name)
        after = termios.tcgetattr(self.fd)
        for i in (0, 1, 3):
            if after[i] != self.before[i]:
                raise Failure("the terminal is not as it was (status %d): %r" % (self.status, after[:4]))

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        shutil.rmtree(self.home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session", type=int)
    parser.add_argument("--sessions", type=int, default=1 << 30)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    end = time.monotonic() + options.seconds
    number, failed = options.session or 0, 0
    while time.monotonic() < end and number < options.sessions:
        session = Session(program, number, options.seed)
        try:
            session.run(options.steps)
        except Failure as failure:
            failed += 1
            print("session %d of seed %d (%s, history %s): %s" % (
                number, options.seed, "vi" if session.vi else "emacs", "full" if session.full else "empty", failure))
            if options.verbose:
                print("\n".join(repr(step) for step in session.log))
                print(repr(session.seen[-2000:]))
        finally:
            session.close()
        if options.session is not None:
            break
        number += 1
    print("%d sessions, %d failed" % (number, failed))
    return 1 if failed else 0


sys.exit(main())
