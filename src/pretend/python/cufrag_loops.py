# SPDX-License-Identifier: Apache-2.0
"""Loops that end when a value of the card falls below a bound: `while error > 1e-4:`. An invented
value never does. A loop without another exit ends after a few rounds, like those that balance
routers on a card.

A loop with a second condition, a break, a return or an exception runs to its own limit.
"""
import ast
import linecache

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
