#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that somebody has to read, counted, and compared with budget.txt.

    budget.py [--count] [--program FILE] [--wheel FILE] [TREE-ISH]

code    lines of sources in all folders that git knows; a line over 100 columns counts once for each begun 100
words   of Markdown
tables  bytes of data files in src, policies, scripts and tests
longest function in lines, by language (universal-ctags for C and C++); twins: source files with a name that another has
options rows in the manual pages of all commands; program, wheel: bytes of the files that were given

--count prints the table (`make lines`). Otherwise each row of budget.txt is checked: NAME LIMIT;
the exit status is 1 if one is exceeded. A budget rises only in a commit of its own that names the
user who gets something for it."""
import argparse
import ast
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
CODE = {".c", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".js", ".css", ".html", ".gp", ".gpi", ".def", ".rules", ".cases",
        ".in", ".toml", ".yaml", ".yml", ".mk"}
TABLES = {".csv", ".inc", ".tsv", ".json", ".zst", ".xz", ".gz"}
SPLIT = ("src", "tests", "scripts")  # folders whose own folders have budgets, too
DEEP = ("src/pretend", "src/inject")
TWINS_ALLOWED = {"run.sh", "README.md", "__init__.py"}


def git(*words, **more):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=True, **more).stdout


def files(tree):
    """(name, bytes) of the working tree, or of a commit."""
    if not tree:
        for name in git("ls-files", "-z").decode().split("\0"):
            path = os.path.join(ROOT, name)
            if name and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    yield name, f.read()
        return
    rows = [row.split("\t", 1) for row in git("ls-tree", "-r", "-z", tree).decode().split("\0") if row]
    rows = [(head.split()[2], name) for head, name in rows if head.startswith("100")]
    data, at = git("cat-file", "--batch", input="".join(i + "\n" for i, _ in rows).encode()), 0
    for _, name in rows:
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[2])
        yield name, data[end + 1:end + 1 + size]
        at = end + 1 + size + 1


def folders(name):
    """The folders whose budgets a file counts against."""
    part = name.split("/")
    yield "."
    yield part[0] if len(part) > 1 else "top"
    if part[0] in SPLIT and len(part) > 2:
        yield "/".join(part[:2])
        if "/".join(part[:2]) in DEEP and len(part) > 3:
            yield "/".join(part[:3])


def lines_of(data):
    return sum(max(1, -(-len(line.expandtabs(8)) // 100)) for line in data.decode("utf-8", "replace").split("\n")[:-1])


def is_code(name, data):
    suffix = os.path.splitext(name)[1]
    return suffix in CODE or os.path.basename(name) == "Makefile" or (not suffix and data[:2] == b"#!")


def sizes(tree):
    """Counts by kind and folder, and the sources by name."""
    count, sources = collections.Counter(), {}
    for name, data in files(tree):
        suffix = os.path.splitext(name)[1]
        if suffix == ".md":
            kind, n = "words", len(data.split())
        elif suffix in TABLES:
            kind, n = "tables", len(data) if name.split("/")[0] in ("src", "policies", "scripts", "tests") else 0
        elif is_code(name, data):
            kind, n = "code", lines_of(data)
            sources[name] = data
        else:
            continue
        for folder in folders(name):
            count[kind, folder] += n
    return count, sources


def python_functions(name, data):
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.end_lineno - node.lineno + 1, f"{name}: {node.name}"


def shell_functions(name, data):
    begin = None
    for i, line in enumerate(data.decode("utf-8", "replace").split("\n")):
        if re.match(r"[\w-]+ *\(\) *[{(]$", line):
            begin, called = i, line.split("(")[0]
        elif line in ("}", ")") and begin is not None:
            yield i - begin + 1, f"{name}: {called}"
            begin = None


def compiled_functions(names):
    out = subprocess.run(["ctags", "-L", "-", "-f", "-", "--fields=+ne", "--kinds-C=f", "--kinds-C++=f", "--langmap=C++:.cpp.cu"],
                         input="\n".join(names), cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for row in out.splitlines():
        at = {k: int(v) for k, v in re.findall(r"\t(line|end):(\d+)", row)}
        if "end" in at:
            yield at["end"] - at["line"] + 1, "{1}: {0}".format(*row.split("\t")[:2])


def longest(sources):
    """The longest function of each language, with its place. Only of the working tree: ctags reads files."""
    found = {"python": [], "shell": [], "c": [], "c++": []}
    for name, data in sources.items():
        if name.endswith(".py"):
            found["python"] += python_functions(name, data)
        elif name.endswith(".sh") or data[:2] == b"#!":
            found["shell"] += shell_functions(name, data)
    for language, ends in (("c", (".c", ".h")), ("c++", (".cpp", ".cu", ".cuh"))):
        found[language] += compiled_functions([n for n in sources if n.endswith(ends)])
    return {language: max(list_, default=(0, "")) for language, list_ in found.items()}


def twins(sources):
    seen = collections.Counter(os.path.basename(n) for n in sources if n.split("/")[0] in ("src", "policies", "kernels"))
    return sorted(n for n, times in seen.items() if times > 1 and n not in TWINS_ALLOWED)


def options(program):
    """Rows of options in the manual pages of all commands, each page counted for itself."""
    run = lambda *words: subprocess.run([program, "help", *words], capture_output=True, check=True, text=True).stdout
    return sum(len(re.findall(r"^\\fB(?:\\-\w\\fR, \\fB)?\\-\\-", run(c, "--format", "man"), re.M)) for c in run("--format", "names").split())


def measured(args):
    """{name of a budget: (figure, remark)}"""
    count, sources = sizes(args.tree)
    out = {f"{kind} {folder}": (n, "") for (kind, folder), n in count.items()}
    if not args.tree:
        out.update({f"longest {language}": found for language, found in longest(sources).items()})
    out["twins"] = len(twins(sources)), " ".join(twins(sources))
    if args.program:
        out["options"] = options(args.program), ""
        out["program"] = os.path.getsize(args.program), ""
    if args.wheel:
        out["wheel"] = os.path.getsize(args.wheel), ""
    return out


def check(out):
    bad = rows = 0
    with open(os.path.join(ROOT, "budget.txt"), encoding="utf-8") as f:
        limits = [line.rsplit(None, 1) for line in f if line.strip() and not line.startswith("#")]
    for name, limit in limits:
        if name not in out and name in ("options", "program", "wheel"):
            continue
        figure, remark = out.get(name, (0, ""))
        rows += 1
        if figure > int(limit):
            bad += 1
            print(f"budget: {name} is {figure:,}, its budget {int(limit):,} {remark}".rstrip(), file=sys.stderr)
    if not bad:
        print(f"budget: {rows} figures within budget.txt; code {out['code .'][0]:,}, words {out['words .'][0]:,}")
    return 1 if bad or not rows else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("--wheel")
    parser.add_argument("tree", nargs="?")
    args = parser.parse_args()
    out = measured(args)
    if not args.count:
        return check(out)
    for name, (figure, remark) in sorted(out.items()):
        print(f"{name:32s} {figure:11,} {remark}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
