#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs with the real PyTorch on the pretended card: run.py [--fetch] PROGRAM [BEGINNING OF CASES...]

PyTorch lies in a folder of its own, $TORCH_ENV (build/torch-env), into which --fetch puts it (1 to
2 GB). Without that folder everything is skipped. The last line is "N passed, N failed, N skipped".

A case is a file in cases/: the program that is recorded, with comments that say what to do with it. It is
copied into an empty folder, beside support/, and there its comments are followed in their order:

    # needs: torch>=2.6        or it is skipped; also `package NAME`, `tool NAME`, or PYTHON on the card
    # run: record -- a b       cufrag, with this program and its arguments (Case.run); `log` is its output
    # fails 5: ...             the same; its status has to be 5 (without a number: not 0)
    # expect: TEXT             is a whole line of the output
    # match 2: REGEX           is found in so many lines (without a number: one or more)
    # never: REGEX             is found in no line
    # verify                   run.cft replays identically
    # check: PYTHON            is true: an expression of Case's methods and of support/checks.py
    # python:                  statements: the comment lines below, indented by three spaces
    # case: NAME...            from here on only for case FILE_NAME (before the first one: for each)

{case} stands for the name behind FILE_, and <1> for the number of the line that ends with "# <1>".
A line that ends with a backslash goes on in the next comment line.
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
from importlib.metadata import distributions

here = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(here))
ENV = os.environ.get("TORCH_ENV", os.path.join(ROOT, "build/torch-env"))
PYTHON = os.path.join(ENV, "bin/python")
KINDS = "case|needs|run|fails|expect|match|never|verify|check|python"
DIRECTIVE = re.compile(r"\s*# (%s)( \d+)?(?:$|:(?: |$)(.*))" % KINDS)


class Skip(Exception):
    pass


def directives(text):
    """(case, kind, number, text) in their order; the case is "" where it belongs to all."""
    names, found = [""], []
    for line in re.sub(r"(#.*)\\\n\s*#\s*", r"\1", text).splitlines():
        m = DIRECTIVE.match(line)
        if m and m[1] == "case":
            names = m[3].split()
        if m:
            found += [[name, m[1], m[2] and int(m[2]), m[3] or ""] for name in names]
        elif found and found[-1][1] == "python" and re.match(r"\s*#   ", line):
            for one in found[-len(names):]:
                one[3] += line.split("#   ", 1)[1] + "\n"
    return found


@functools.lru_cache(None)
def paths():
    command = [PYTHON, "-c", "import sys; print(*sys.path[1:])"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.split()


def release(package):
    """Of a package in the environment, as [2, 11, 0]; [] where it is not there."""
    version = next((d.version for d in distributions(name=package, path=paths())), "")
    return [int(n) for n in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])]


class Case:
    def __init__(self, cufrag, file, case, found):
        self.cufrag, self.file, self.case, self.found, self.log = cufrag, file, case, found, None
        self.root, self.environment, self.python, self.release, self.names = ROOT, ENV, PYTHON, release, {}

    def follow(self):
        from support import checks
        self.names.update({k: getattr(self, k) for k in dir(self) if k[0] != "_"}, os=os, re=re)
        for name, function in inspect.getmembers(checks, inspect.isfunction):
            self.names[name] = functools.partial(function, self)
        for case, kind, number, text in self.found:
            if case in ("", self.case) and kind != "case":
                try:
                    self.one(kind, number, text)
                except AssertionError as e:
                    raise AssertionError("# %s: %s: %s" % (kind, text, e)) from e
        assert self.log is not None, "nothing ran"

    def one(self, kind, number, text):
        if kind == "python":
            exec(text, self.names)
        elif kind == "check":
            assert eval(text, self.names), "it is not so"
        else:
            numbered = [number] if kind in ("fails", "match") else []
            getattr(self, kind)(*[text] if text else [], *numbered)

    def run(self, line, status=0, seconds=1500, **variables):
        """Words of a command of cufrag, behind NAME=VALUE for its environment. record, run, layout,
        advise, and what has a `--`, get --no-gpu, --keep-writes (unless --writes-max is there: a
        case reads what it wrote) and this program, whose arguments stand behind `--`. Behind `---`
        stands a whole command, in which CASE is this program.
        """
        words, env = shlex.split(self.filled(line)), dict(os.environ, **variables)
        while re.match(r"\w+=", words[0]):
            env.update([words.pop(0).split("=", 1)])
        command, more = words[0], words[1:]
        if {"--", "---"} & set(more) or command in ("record", "run", "layout", "advise"):
            at = next((i for i, word in enumerate(more) if word in ("--", "---")), len(more))
            behind = more[at + 1:] if more[at:at + 1] == ["---"] else ["python", "CASE"] + more[at + 1:]
            named = {"python": PYTHON, "CASE": self.file, "cufrag": self.cufrag}
            output = ["-o", "run.cft"] if command == "record" and "-o" not in more[:at] else []
            holds = command == "run" or any(word.startswith(("--writes-max", "--keep-writes")) for word in more[:at])
            more = ["--no-gpu"] * (command != "advise") + ["--keep-writes"] * (not holds) + output + more[:at] + ["--"]
            more += [named.get(word, word) for word in behind]
        return self.shell([self.cufrag, command, *more], status, seconds, env)

    def fails(self, line, status=None, **more):
        return self.run(line, status, **more)

    def shell(self, command, status=0, seconds=600, env=None):
        """A command, or a line of bash; status None: not 0, status ...: any."""
        line = ["bash", "-c", command] if isinstance(command, str) else command
        with open("log", "w") as log:
            p = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
            try:
                got = p.wait(seconds)
            finally:
                p.kill()
        with open("log", errors="replace") as log:
            self.log = self.names["log"] = log.read()
        assert got == status or status is ... or status is None and got, "its status is %d" % got
        return self.log

    def filled(self, text):
        """{case} and <N> are filled in."""
        with open(self.file) as f:
            marks = ((re.search(r"# (<\d>)$", line), i) for i, line in enumerate(f, 1))
            lines = {m[1]: str(i) for m, i in marks if m}
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
        with open("err", "w") as err:
            return subprocess.run([self.cufrag, *command], stdout=subprocess.PIPE, stderr=err, text=True).stdout

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
        code = "import torch; torch.ones(1, device='cuda'); " + code
        self.run("record -o has.cft --- python -c " + shlex.quote(code), status=...)
        return not re.search(r"^\w*(Import|NotFound|Attribute|Key)Error", self.log, re.M)

    def needs(self, what):
        m, (kind, *names) = re.fullmatch(r"(\w+)(>=|==)([\d.]+)", what), what.split(" ")
        if m:
            have, want = release(m[1]), [int(n) for n in m[3].split(".")]
            there = have and (have >= want if m[2] == ">=" else have == want)
        elif kind == "package":
            places = [[os.path.join(p, name) for p in paths()] for name in names]
            there = all(any(os.path.exists(p + end) for p in ps for end in ("", ".py")) for ps in places)
        elif kind == "tool":
            there = all(shutil.which(name) for name in names)
        else:
            there = self.has(what)
        if not there:
            self.skip("needs " + what)


def attempt(cufrag, name, file, case, found):
    """"passed", "failed" or "skipped"."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(file, folder)
        shutil.copytree(os.path.join(here, "support"), os.path.join(folder, "support"))
        os.chdir(folder)
        one = Case(cufrag, os.path.basename(file), case, found)
        try:
            one.follow()
            return "passed"
        except Skip as why:
            print("skipped %s: %s" % (name, why))
            return "skipped"
        except Exception:
            print("failed", name, traceback.format_exc(), *(one.log or "").splitlines()[-100:], sep="\n")
            return "failed"
        finally:
            os.chdir(ROOT)


def cases(beginnings):
    """(name, file, case, directives) of those whose names begin so."""
    for file in sorted(glob.glob(os.path.join(here, "cases", "*.py"))):
        with open(file) as f:
            found = directives(f.read())
        for case in list(dict.fromkeys(case for case, *_ in found if case)) or [""]:
            name = os.path.basename(file)[:-3] + ("_" + case if case else "")
            if not beginnings or name.startswith(tuple(beginnings)):
                yield name, file, case, found


def main(arguments):
    if arguments[:1] == ["--fetch"]:
        arguments.pop(0)
        subprocess.run([os.path.join(here, "fetch.sh"), ENV], check=True)
    cufrag, *beginnings = arguments
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    if os.access(PYTHON, os.X_OK):
        os.environ["CUFRAG"] = os.path.realpath(cufrag)
        os.environ.pop("PYTHONUNBUFFERED", None)  # with it, lines of two ranks mix within a line
        os.environ["PATH"] = os.path.join(ENV, "bin") + ":" + os.environ["PATH"]
        os.makedirs(os.environ.setdefault("XDG_CACHE_HOME", ROOT + "/build/torch-cache"), exist_ok=True)
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
