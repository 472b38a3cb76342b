#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs with the real PyTorch on the pretended card: run.py [--fetch] PROGRAM [BEGINNING OF CASES...]

PyTorch lies in a folder of its own, $TORCH_ENV (build/torch-env), into which --fetch puts it (1 to 2 GB). Without that folder
everything is skipped. The last line is "N passed, N failed, N skipped".

A case is a file in cases/: the program that is recorded, and comments that say what to do with it. It is copied into an empty
folder, beside support/, and there its comments are followed in their order:

    # needs: torch>=2.6         otherwise the case is skipped; also `package NAME`, `tool NAME`, and PYTHON that a release may lack
    # run: record --gpu l4 -- a b    cufrag, with this program and its arguments (see Case.run); output is kept as `log`
    # fails 5: ...              the same; its status has to be 5 (without a number: anything but 0)
    # expect: TEXT              a whole line of that output
    # match 2: REGEX            so many lines of it have a match (without a number: one or more)
    # never: REGEX              no line has
    # verify                    run.cft replays identically
    # check: PYTHON             an expression that is true: of the methods of Case, and the functions in support/checks.py
    # python:                   statements, in the comment lines below that are indented by three spaces
    # case: NAME...             from here on for case FILE_NAME; what stands before the first such line is for all cases of the file

In them, {case} is the name behind FILE_, and <1> the number of the line that ends with "# <1>". A line that ends with a backslash
goes on in the next comment line.
"""
import functools
import glob
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback

here = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(here))
ENV = os.environ.get("TORCH_ENV", os.path.join(ROOT, "build/torch-env"))
PYTHON = os.path.join(ENV, "bin/python")
DIRECTIVE = re.compile(r"\s*# (case|needs|run|fails|expect|match|never|verify|check|python)( \d+)?(?:$|:(?: |$)(.*))")

class Skip(Exception):
    pass

def directives(text):
    """(case, directive, number, text) in their order; the case is "" where it belongs to all."""
    cases, found = [""], []
    for line in re.sub(r"(#.*)\\\n\s*#\s*", r"\1", text).splitlines():
        m = DIRECTIVE.match(line)
        if m and m[1] == "case":
            cases = m[3].split()
            found += [(case, "case", None, "") for case in cases]
        elif m:
            found += [(case, m[1], m[2] and int(m[2]), m[3] or "") for case in cases]
        elif found and found[-1][1] == "python" and re.match(r"\s*#   ", line):
            found[-len(cases):] = [(*rest, text + line.split("#   ", 1)[1] + "\n") for *rest, text in found[-len(cases):]]
    return found

@functools.lru_cache(None)
def paths():
    return subprocess.run([PYTHON, "-c", "import sys; print(*sys.path[1:], sep='\\n')"], capture_output=True, text=True).stdout.split()

def release(package):
    """Of a package in the environment, as [2, 11, 0]; [] where it is not there."""
    from importlib.metadata import distributions
    found = next(iter(distributions(name=package, path=paths())), None)
    return [int(n) for n in re.match(r"[\d.]+", found.version)[0].strip(".").split(".")] if found else []

class Case:
    def __init__(self, cufrag, file, case, found):
        self.cufrag, self.file, self.case, self.found, self.log = cufrag, file, case, found, ""
        self.root, self.environment, self.python, self.release = ROOT, ENV, PYTHON, release

    def follow(self):
        from support import checks
        names = {"os": os, "re": re, **{k: getattr(self, k) for k in dir(self) if k[0] != "_"}}
        names.update({k: functools.partial(f, self) for k, f in inspect.getmembers(checks, inspect.isfunction)})
        for case, what, number, text in self.found:
            if case in ("", self.case):
                try:
                    self.one(what, number, text, dict(names, log=self.log))
                except AssertionError as e:
                    raise AssertionError("# %s: %s: %s" % (what, text, e)) from e

    def one(self, what, number, text, names):
        if what == "python":
            exec(text, names)
        elif what == "check":
            assert eval(text, names), "it is not so"
        elif what in ("fails", "match"):
            getattr(self, what)(text, number)
        elif what != "case":
            getattr(self, what)(*[text] if text else [])

    def run(self, line, status=0, seconds=1500, **variables):
        """cufrag: record, run, layout, advise, and what has a `--`, get --no-gpu and this program, whose arguments stand behind
        `--`; behind `---` stands a whole command, in which CASE is this program. NAME=VALUE before all is for its environment.
        """
        words, env = shlex.split(self.filled(line)), dict(os.environ, **variables)
        while re.match(r"\w+=", words[0]):
            env.update([words.pop(0).split("=", 1)])
        command, more = words[0], words[1:]
        if {"--", "---"} & set(more) or command in ("record", "run", "layout", "advise"):
            at = next((i for i, word in enumerate(more) if word in ("--", "---")), len(more))
            more, behind = more[:at], (["python", "CASE"] if more[at:at + 1] != ["---"] else []) + more[at + 1:]
            behind = [{"python": PYTHON, "CASE": self.file, "cufrag": self.cufrag}.get(w, w) for w in behind]
            first = ["--no-gpu"] * (command != "advise") + ["-o", "run.cft"] * (command == "record" and "-o" not in more)
            more = first + more + ["--"] + behind
        return self.shell([self.cufrag, command, *more], status, seconds, env)

    def fails(self, line, status=None, **more):
        return self.run(line, status, **more)

    def shell(self, command, status=0, seconds=600, env=None):
        """Any command, or a line of bash; with status None, it may end with any but 0, with ... with any."""
        line = ["bash", "-c", command] if isinstance(command, str) else command
        with open("log", "w") as log:
            p = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
            try:
                got = p.wait(seconds)
            finally:
                p.kill()
        with open("log", errors="replace") as log:
            self.log = log.read()
        assert got == status or status is ... or status is None and got, "its status is %d" % got
        return self.log

    def filled(self, text):
        """{case} and <N> are filled in."""
        with open(self.file) as f:
            lines = {m[1]: str(i) for i, m in ((i, re.search(r"# (<\d>)$", line)) for i, line in enumerate(f, 1)) if m}
        return re.sub(r"<\d>", lambda m: lines.get(m[0], m[0]), text).replace("{case}", self.case)

    def expect(self, text):
        assert self.filled(text) in self.log.splitlines(), "there is no such line"

    def match(self, regex, count=None):
        n = sum(bool(re.search(self.filled(regex), line)) for line in self.log.splitlines())
        assert n == count or count is None and n, "in %d lines" % n

    def never(self, regex):
        self.match(regex, 0)

    def said(self, *command):
        """What another command of cufrag prints; `log` stays."""
        return subprocess.run([self.cufrag, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout

    def verify(self, name="run.cft"):
        said = self.said("verify", name)
        assert said.splitlines()[-1:] == ["verdict: identical"], said

    def info(self, name="run.cft"):
        self.said("info", name, "--json", "info.json")
        with open("info.json") as f:
            return json.load(f)

    def skip(self, why):
        raise Skip(why)

    def has(self, code):
        """On the pretended card, since PyTorch does not load without CUDA's libraries."""
        try:
            code = "import torch; torch.ones(1, device='cuda'); " + code
            return bool(self.run("record -o has.cft --- python -c " + shlex.quote(code)))
        except AssertionError:
            return False

    def needs(self, what):
        m, (kind, *names) = re.fullmatch(r"(\w+)(>=|<|==)([\d.]+)", what), what.split(" ")
        if m:
            have, want = release(m[1]), [int(n) for n in m[3].split(".")]
            there = have and {">=": have >= want, "<": have < want, "==": have == want}[m[2]]
        elif kind == "package":
            there = all(any(os.path.exists(os.path.join(p, n) + end) for p in paths() for end in ("", ".py")) for n in names)
        elif kind == "tool":
            there = all(shutil.which(n) for n in names)
        else:
            there = self.has(what)
        if not there:
            self.skip("needs " + what)

def attempt(cufrag, file, case, found):
    """"passed", "failed" or "skipped"."""
    name = os.path.basename(file)[:-3] + ("_" + case if case else "")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(file, folder)
        shutil.copytree(os.path.join(here, "support"), os.path.join(folder, "support"))
        os.chdir(folder)
        a = Case(cufrag, os.path.basename(file), case, found)
        try:
            a.follow()
            return "passed"
        except Skip as why:
            print("skipped %s: %s" % (name, why))
            return "skipped"
        except Exception:
            print("failed", name, traceback.format_exc(), *a.log.splitlines()[-100:], sep="\n")
            return "failed"
        finally:
            os.chdir(ROOT)

def cases(beginnings):
    """(file, case, directives) of those that begin so."""
    for file in sorted(glob.glob(os.path.join(here, "cases", "*.py"))):
        with open(file) as f:
            found = directives(f.read())
        for case in list(dict.fromkeys(case for case, *_ in found if case)) or [""]:
            name = os.path.basename(file)[:-3] + ("_" + case if case else "")
            if not beginnings or name.startswith(tuple(beginnings)):
                yield file, case, found

def main(arguments):
    if arguments[:1] == ["--fetch"]:
        arguments.pop(0)
        subprocess.run([os.path.join(here, "fetch.sh"), ENV], check=True)
    cufrag, *beginnings = arguments
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    if os.access(PYTHON, os.X_OK):
        os.environ.update(CUFRAG=os.path.realpath(cufrag), PATH=os.path.join(ENV, "bin") + ":" + os.environ["PATH"])
        os.makedirs(os.environ.setdefault("XDG_CACHE_HOME", os.path.join(ROOT, "build/torch-cache")), exist_ok=True)
        for case in cases(beginnings):
            counts[attempt(os.environ["CUFRAG"], *case)] += 1
    else:
        print("skipped torch: no PyTorch in %s (make test-torch fetches it)" % ENV)
        counts["skipped"] = 1
    print(", ".join("%d %s" % (n, what) for what, n in counts.items()))
    return counts["failed"] > 0 or sum(counts.values()) == 0

if __name__ == "__main__":
    sys.path.insert(0, here)
    sys.dont_write_bytecode = True
    sys.exit(main(sys.argv[1:]))
