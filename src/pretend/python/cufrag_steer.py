# SPDX-License-Identifier: Apache-2.0
"""What a program reads from the card where the value is invented, and at which line.

Loops that end when such a value falls below a bound, `while error > 1e-4:`, would never end. A loop
without another exit ends after a few rounds, like those that balance routers on a card. A loop with
a second condition, a break, a return or an exception runs to its own limit.
"""
import ast
import linecache
import os
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))
STARTED = os.path.join(os.getcwd(), "")
STANDARD = sysconfig.get_paths()["stdlib"]
SCRIPTS = os.path.join(sysconfig.get_paths()["scripts"], "")  # entry points of packages
MODES = ("rules", "computed", "zeros", "random", "worst")
ROUNDS = 16
ENDS = (ast.Break, ast.Return, ast.Raise)


def lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def own(body):
    """Statements and expressions of a loop, without nested functions."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own(ast.iter_child_nodes(node))


def asked_by(test, body):
    """Lines that read the values of a loop's test: the test's own, and assignments to its names in
    the body."""
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    found = list(lines_of(test))
    for node in own(body):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            found += lines_of(node)
    return found


def waiting_lines(source):
    """Lines of a file that read the only exit condition of a loop."""
    found = set()
    for loop in ast.walk(ast.parse(source)):
        if not isinstance(loop, ast.While) or any(isinstance(n, ast.BoolOp) for n in ast.walk(loop.test)):
            continue
        ends = [n for n in own(loop.body) if isinstance(n, ENDS)]
        if isinstance(loop.test, ast.Constant):
            tests = [n for n in loop.body if isinstance(n, ast.If) and ends == n.body[-1:] and not isinstance(n.test, ast.BoolOp)]
            for node in tests:
                found.update(asked_by(node.test, loop.body))
        elif not ends:
            found.update(asked_by(loop.test, loop.body))
    return found


class Loops:
    def __init__(self):
        self.files, self.rounds = {}, {}

    def end(self, frame, value):
        """The value that ends the loop in which the frame reads `value`; None: no such loop, or it
        may go on."""
        if frame is None:
            return None
        name, line = frame.f_code.co_filename, frame.f_lineno
        if name not in self.files:
            try:
                self.files[name] = waiting_lines("".join(linecache.getlines(name)))
            except (SyntaxError, ValueError, RecursionError):
                self.files[name] = set()
        if line not in self.files[name]:
            return None
        before, count = self.rounds.get((name, line), (None, 0))
        count = count + 1 if before == id(frame) else 1
        self.rounds[name, line] = id(frame), count
        if count <= ROUNDS:
            return None
        # if the first value does not end it, the bound is on the other side
        return (0 if value else 1, 0, 1e9, -1e9)[(count - ROUNDS - 1) % 4]


class Steer:
    """mode: of --values. package: torch's folder."""

    def __init__(self, mode, package):
        self.package, self.rules = package, mode not in ("zeros", "random")
        self.overrides, self.counts = {}, {}
        self.losses = 0  # number of unknown losses that LBFGS has read
        self.loops = Loops()
        if mode not in MODES and not mode.startswith("skewed="):
            self.read_overrides(mode)

    def read_overrides(self, path):
        """A file of lines "PLACE VALUE...": successive results of .item() at PLACE, such as
        train.py:42; the last one repeats."""
        with open(path, errors="surrogateescape") as f:
            for line in f:
                words = line.split("#")[0].split()
                if len(words) > 1:
                    self.overrides[words[0]] = [float(word) for word in words[1:]]

    def __call__(self, what, invented, value):
        """A value of the card reached the program: counts by place, and whether it was computed."""
        try:
            frame = sys._getframe(1)
        except ValueError:  # in autograd's own thread
            frame = None
        at = place(frame, self.package)
        told = self.overrides.get(at, self.overrides.get(os.path.basename(at)))
        given = told and (told.pop(0) if len(told) > 1 else told[0])
        key = (at, "found_inf" if of_the_scaler(frame) else what.decode(),
               "given" if told else "invented" if invented else "computed")
        self.counts[key] = self.counts.get(key, 0) + 1
        if given is None and invented and self.rules:
            given = self.searched(frame)
            if given is None:
                given = self.loops.end(frame, value[0])
        if given is None:
            return 0
        value[0] = given
        return 1

    def searched(self, frame):
        """What torch.optim.LBFGS reads in a successful line search, else None. With invented values
        it would stop at once: losses are equal, and slopes may be uphill. Here the loss falls,
        slope and curvature have the right sign, Wolfe's condition holds, and no tolerance is
        reached."""
        if not frame or frame.f_code.co_filename != os.path.join(self.package, "optim", "lbfgs.py"):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if "float(" in line:
            self.losses += 1
            return 1 - 1e-3 * self.losses
        return float("1e-10" in line or "-c2" in line) if line.startswith(("if ", "elif ")) else None


def is_steering(frame):
    """True below a steer, which C calls and where exceptions are lost, so a process cannot be
    ended there."""
    while frame and frame.f_code is not Steer.__call__.__code__:
        frame = frame.f_back
    return frame is not None


def of_the_scaler(frame):
    """Is torch.amp.GradScaler checking for overflow, to skip the step?"""
    code = frame and frame.f_code
    return bool(code) and code.co_filename.endswith("grad_scaler.py") and code.co_name in ("<genexpr>", "_maybe_opt_step")


def place(frame, package):
    """The innermost line of the user's code, else of a package other than torch, else the
    innermost line."""
    if not frame:
        return "backward pass"
    inner, installed_one = frame, None
    while frame:
        name = frame.f_code.co_filename
        installed = "site-packages" in name or name.startswith(SCRIPTS)
        generated = name.startswith("<") and frame.f_globals.get("__name__") != "__main__"
        if not generated and not name.startswith((package, HERE)) and (installed or not name.startswith(STANDARD)):
            if not installed:
                return "%s:%d" % (name[len(STARTED):] if name.startswith(STARTED) else name, frame.f_lineno)
            installed_one = installed_one or frame
        frame = frame.f_back
    inner = installed_one or inner
    return "%s:%d" % (inner.f_code.co_filename, inner.f_lineno)
