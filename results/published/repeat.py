#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published memory figures once more, without a GPU: repeat.py CUFRAG [--write] [--missing] [WORD...]; repeat.py --plot

Repeats the rows of rows.csv whose source, description or command contain all WORDs. A row names PyTorch, Python, further packages and a public
repository at a commit; they are fetched once into $PUBLISHED_HOME (build/published). --write puts what came out into
rows.csv, --missing takes only rows without a figure. Of one command all rows are filled by one run. Last line: N within 1 %, N not, N without a figure.
--plot draws img/published.svg.
"""
import csv
import hashlib
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = "53bd34df:results/published/programs/"  # where git has the programs that are no longer here
ROWS = os.path.join(HERE, "rows.csv")
HOME = os.path.abspath(os.environ.get("PUBLISHED_HOME", os.path.join(HERE, "../../build/published")))
LIMIT_S = float(os.environ.get("PUBLISHED_LIMIT", "900"))


def environment(row):
    """A Python with the row's packages; torch comes without CUDA's libraries. What is compiled for it follows a semicolon."""
    folder = os.path.join(HOME, "torch-%s-%s" % (row["torch"], hashlib.sha256(row["needs"].encode()).hexdigest()[:8] if row["needs"] else "alone"))
    python = os.path.join(folder, "bin/python")
    if not os.path.exists(python):
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run(["python" + row["python"], "-m", "venv", folder], check=True)
        subprocess.run(pip + ["--no-deps", "torch==" + row["torch"]], check=True)
        triton = subprocess.run([python, "-c", "from importlib.metadata import requires\nprint(*[r.split(';')[0].strip() for r in "
                                 "requires('torch') if r.startswith('triton')], sep='\\n')"], check=True, capture_output=True, text=True).stdout.split("\n")
        numpy = "numpy<2" if row["torch"] < "2.3" else "numpy"
        needs, *compiled = row["needs"].split(";")
        subprocess.run(pip + ["--no-deps"] + [t for t in triton if t] + needs.split(), check=True)
        subprocess.run(pip + ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "packaging", "pyyaml", "tqdm", "requests",
                              "regex", "safetensors", "psutil", "setuptools<80", numpy], check=True)
        for packages in compiled:
            subprocess.run(pip + ["--no-deps", "--no-build-isolation"] + packages.split(), check=True)
    return python


def code(row):
    """The repository at a commit, in it the files of other commits that the row names (COMMIT:PATH)."""
    if not row["code"]:
        return ""
    first, *others = row["code"].split()
    name, commit = first.split("@")
    folder = os.path.join(HOME, name.replace("/", "+") + "@" + commit + "".join("+" + o.split(":")[0] for o in others))
    if not os.path.isdir(folder):
        git = ["git", "-C", folder + ".new"]
        subprocess.run(["git", "clone", "-q", "https://github.com/" + name, folder + ".new"], check=True)
        for c in {c for c in [commit] + [o.split(":")[0] for o in others] if len(c) == 40}:  # of a pull request: no branch leads to it
            subprocess.run(git + ["fetch", "-q", "origin", c], check=True)
        subprocess.run(git + ["checkout", "-q", commit], check=True)
        for other in others:
            subprocess.run(git + ["checkout", "-q"] + other.split(":"), check=True)
        os.rename(folder + ".new", folder)
    return folder


def program(name):
    """The path of a program: in the tree, or from git history."""
    here, kept = os.path.join(HERE, "programs", name), os.path.join(HOME, "programs", name)
    if os.path.exists(here):
        return here
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with open(kept, "wb") as f:
        subprocess.run(["git", "-C", HERE, "show", PROGRAMS + name], check=True, stdout=f)
    return kept


def run(cufrag, row):
    """{figure: value} of a command, and the end of what it said."""
    folder = code(row)
    name, *arguments = row["command"].split()
    words = [program(name)] + arguments
    env = dict(os.environ, CODE=folder, PYTHONPATH=folder, HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    work = os.path.join(HOME, "work", str(os.getpid()))
    os.makedirs(work, exist_ok=True)
    options = row["record"].split()
    child = subprocess.Popen([cufrag, "record", "--no-gpu", "--gpu", row["card"], "-o", "run.cft"] + options + ["--", environment(row)] + words,
                             cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
    try:
        text = child.communicate(timeout=LIMIT_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # with its workers
        return {}, "no end after %d s" % LIMIT_S
    lines = [line.split() for line in text.splitlines() if line.startswith("figure ")]
    return {" ".join(words[1:-1]): float(words[-1]) for words in lines}, "\n".join(text.splitlines()[-12:])


def judge(row):
    if not row["computed"]:
        return None
    off = float(row["computed"]) / float(row["published"]) - 1
    row["difference_percent"] = "%.2f" % (100 * off)
    return abs(off) <= 0.01


def plot():
    with open(ROWS, newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["computed"]]
    near = sum(judge(r) for r in rows)
    os.makedirs(os.path.join(HERE, "img"), exist_ok=True)
    subprocess.run(["gnuplot", "-c", os.path.join(HERE, "../../scripts/plot/published.gp"), ROWS, os.path.join(HERE, "img/published.svg"), "svg",
                    "Published memory figures, computed without a GPU",
                    "%d figures of %d pages; %d within 1 %%" % (len(rows), len({r["link"] for r in rows}), near), ""], check=True)


def main():
    if sys.argv[1:] == ["--plot"]:
        return plot()
    words = [w for w in sys.argv[2:] if not w.startswith("--")]
    with open(ROWS, newline="") as f:
        reader = csv.DictReader(f)
        rows, names = list(reader), reader.fieldnames
    chosen = [r for r in rows if all(w in " ".join((r["source"], r["what"], r["command"], r["torch"])) for w in words) and
              ("--missing" not in sys.argv or not r["computed"])]
    runs = {}
    for row in chosen:
        key = (row["command"], row["torch"], row["card"], row["needs"], row["code"], row["record"])
        if key not in runs:
            runs[key], said = run(os.path.abspath(sys.argv[1]), row)
            if not runs[key]:
                print("no figure: %s\n%s" % (row["command"], said), flush=True)
        value = runs[key].get(row["figure"])
        row["computed"] = "" if value is None else "%.10g" % value
        judge(row)
        print(row["source"], "|", row["what"], "|", row["published"], "->", row["computed"] or "none", row["unit"], row["difference_percent"], flush=True)
        if "--write" in sys.argv:
            write(names, row)
    verdicts = [judge(r) for r in chosen]
    print("%d within 1 %%, %d not, %d without a figure" % (verdicts.count(True), verdicts.count(False), verdicts.count(None)))


def write(names, row):
    """Only this row: other runs may write theirs."""
    import fcntl
    os.makedirs(HOME, exist_ok=True)
    with open(os.path.join(HOME, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(ROWS, newline="") as f:
            rows = list(csv.DictReader(f))
        for r in rows:
            if all(r[n] == row[n] for n in ("source", "what", "unit", "figure", "command", "card", "published")):
                r.update(computed=row["computed"], difference_percent=row["difference_percent"])
        with open(ROWS + ".new", "w", newline="") as f:
            out = csv.DictWriter(f, names, lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
        os.replace(ROWS + ".new", ROWS)


if __name__ == "__main__":
    main()
