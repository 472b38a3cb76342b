# SPDX-License-Identifier: Apache-2.0
"""A terminal for tests: a program runs on it, keys are typed, and what stands on its screen is read.

Understands what a VT100 does (TERM=vt100), so the tests need no emulator. The program runs as a job
of a shell would: in a process group of its own, in the foreground, so that Ctrl-Z stops it.
"""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

CSI = re.compile(r"\x1b\[([?0-9;]*)([@-~])")


class Screen:
    """Rows of characters, and where the cursor is."""

    def __init__(self, rows, columns):
        self.size(rows, columns)

    def size(self, rows, columns):
        self.rows, self.columns, self.y, self.x = rows, columns, 0, 0
        self.cells = [[" "] * columns for _ in range(rows)]

    def control(self, numbers, final):
        n = [int(v) if v.isdigit() else 0 for v in numbers.strip("?").split(";")] + [0, 0]
        if final == "H":
            self.y, self.x = max(n[0], 1) - 1, max(n[1], 1) - 1
        elif final in "ABCD":
            step = max(n[0], 1)
            self.y += {"A": -step, "B": step}.get(final, 0)
            self.x += {"C": step, "D": -step}.get(final, 0)
        elif final == "J":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
            self.cells[self.y + 1:] = [[" "] * self.columns for _ in range(self.rows - self.y - 1)]
        elif final == "K":
            if n[0] == 1:
                self.cells[self.y][:self.x + 1] = [" "] * (self.x + 1)
            else:
                self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)

    def put(self, text):
        """Returns what may be the beginning of a sequence."""
        at = 0
        while at < len(text):
            c = text[at]
            found = CSI.match(text, at)
            if found:
                self.control(*found.groups())
                at = found.end()
                continue
            if c == "\x1b":
                if len(text) - at < 3 or (text[at + 1] == "[" and len(text) - at < 16):
                    return text[at:]
                at += 3 if text[at + 1] in "()" else 2
                continue
            if c == "\n":
                self.y += 1
            elif c == "\r":
                self.x = 0
            elif c == "\b":
                self.x -= 1
            elif c >= " ":
                if 0 <= self.y < self.rows and 0 <= self.x < self.columns:
                    self.cells[self.y][self.x] = c
                self.x += 1
            self.y, self.x = min(max(self.y, 0), self.rows - 1), min(max(self.x, 0), self.columns)
            at += 1
        return ""

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, rows=24, columns=100, **environment):
        self.screen, self.raw, self.left = Screen(rows, columns), b"", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.said, write = os.pipe()
        self.go, self.go_write = os.pipe()
        self.leader, self.fd = pty.fork()
        if not self.leader:
            os.read(self.go, 1)
            os.environ.update(environment)
            self.lead(command, write)
        self.resize(rows, columns)
        self.resume()
        os.close(write)
        self.pid = int(self.told())

    def lead(self, command, write):
        """In the session's leader, a shell of few words: tells of stops and of the end."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(command[0], command)
        os.write(write, b"%d\n" % pid)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True:
            status = os.waitpid(pid, os.WUNTRACED)[1]
            try:
                os.tcsetpgrp(0, os.getpgrp())
            except OSError:  # it went away
                pass
            os.write(write, b"%s %s\n" % (self.describe(status), self.modes(0)))
            if not os.WIFSTOPPED(status):
                time.sleep(60)
                os._exit(0)
            os.read(self.go, 1)
            os.tcsetpgrp(0, pid)
            os.kill(pid, signal.SIGCONT)

    @staticmethod
    def describe(status):
        return (b"stopped" if os.WIFSTOPPED(status) else b"signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status)
                else b"exit %d" % os.WEXITSTATUS(status))

    @staticmethod
    def modes(fd):
        try:
            flags = termios.tcgetattr(fd)[3]
        except (OSError, termios.error):
            return b"gone"
        return b"cooked" if flags & termios.ICANON and flags & termios.ECHO else b"raw"

    def told(self, seconds=60):
        """A line of the leader; what the program writes meanwhile is taken."""
        line, end = b"", time.time() + seconds
        while not line.endswith(b"\n") and time.time() < end:
            if select.select([self.said], [], [], 0.02)[0]:
                part = os.read(self.said, 1)
                if not part:
                    break
                line += part
            else:
                self.take()
        return line.decode().strip()

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.size(rows, columns)

    def take(self):
        try:
            while select.select([self.fd], [], [], 0.02)[0]:
                data = os.read(self.fd, 65536)
                if not data:
                    return
                self.raw += data
                self.left = self.screen.put(self.left + self.decoder.decode(data))
        except OSError:
            pass

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def wait_for(self, pattern, seconds=60):
        """Whether it comes to stand on the screen."""
        end = time.time() + seconds
        while time.time() < end:
            self.take()
            if re.search(pattern, self.screen.text(), re.M):
                return True
        print("not on the screen: %s\n%s" % (pattern, self.screen.text()), file=sys.stderr)
        return False

    def resume(self):
        os.write(self.go_write, b"g")

    def close(self):
        os.kill(self.leader, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        try:
            os.close(self.fd)
        except OSError:
            pass
