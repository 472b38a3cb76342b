#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No circles: files, and folders, that need each other in both directions.

Twice: by what they include, and by what they call, as a header that several files share
hides who calls whom. A file is a .c with its .h and its _internal.h beside it; it calls the
files that define the functions whose names it has. A folder needs the folders of what its
files need; the folder above is the home of what
its subfolders share, so a circle between a folder and its own subfolder counts only
between files. A circle that has its reason stands in docs/architecture.md, in the table
below the heading "Circles": one row of names, in any order. A row without a circle is an
error as well.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parents[2]
ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE).resolve()
ENDS = {".c", ".h", ".cu", ".cuh", ".def", ".inc"}
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', re.S | re.M)
DEFINED = re.compile(r"^([A-Za-z_][^;{}()=#]*?)\b(\w+)\([^;{}]*\)\s*\{", re.M)
WORD = re.compile(r"\w+")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


def unit(path):
    if path.suffix == ".def":  # data: a list that others include
        return str(path.relative_to(ROOT))
    return str(path.relative_to(ROOT).with_suffix("")).removesuffix("_internal")


def found(name, path):
    bases = ("src", "src/include", "policies", "policies/common")
    for base in (path.parent, *(ROOT / b for b in bases)):
        if (base / name).is_file():
            return (base / name).resolve()
    return None


def calls(texts):
    """(file, file that defines a function that it names, its name), where a header declares it."""
    words, own, homes, declared = {}, {}, {}, set()
    for path, text in texts.items():
        code = NO_CODE.sub(" ", text)
        words[path] = set(WORD.findall(code))
        if path.suffix in (".h", ".def"):
            declared |= words[path]
        own[path] = set()
        for kind, name in DEFINED.findall(code) if path.suffix == ".c" else ():
            if kind.startswith("static"):
                own[path].add(name)
            else:
                homes.setdefault(name, []).append(path)
    # without "_": in place of the C library's, as dlsym
    homes = {name: at[0] for name, at in homes.items()
             if len(at) == 1 and name in declared and "_" in name}
    for path in texts:
        if path.suffix == ".c":
            for name in sorted((words[path] & homes.keys()) - own[path]):
                yield path, homes[name], name


def circles(graph):
    """Sets of more than one node that reach each other (Tarjan), each sorted."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(graph.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while not part or part[-1] != v:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                out.append(tuple(sorted(part)))

    sys.setrecursionlimit(10000)
    for v in sorted(graph):
        if v not in index:
            visit(v)
    return out


class Needs:
    """What needs what, by file and by folder, and why."""

    def __init__(self, paths):
        self.files, self.folders, self.why = {unit(path): set() for path in paths}, {}, {}

    def add(self, path, to, why):
        me, other = unit(path), unit(to)
        if me == other:
            return
        self.files[me].add(other)
        self.why.setdefault((me, other), why)
        a, b = me.rpartition("/")[0], other.rpartition("/")[0]
        if a != b and not (a + "/").startswith(b + "/") and not (b + "/").startswith(a + "/"):
            self.folders.setdefault(a, set()).add(b)
            self.folders.setdefault(b, set())
            self.why.setdefault((a, b), f"{me} {why} of {other}")


def main():
    texts = {path.resolve(): path.read_text(encoding="utf-8")
             for top in ("src", "policies", "kernels") for path in sorted((ROOT / top).rglob("*"))
             if path.suffix in ENDS and path.is_file()}
    included, called = Needs(texts), Needs(texts)
    for path, text in texts.items():
        for name in INCLUDE.findall(text):
            to = found(name, path)
            if to:
                included.add(path, to, f"includes {name}")
    for path, to, name in calls(texts):
        called.add(path, to, f"calls {name}")
    doc = ROOT / "docs/architecture.md"
    page = doc.read_text(encoding="utf-8") if doc.is_file() else ""
    section = page.partition("\n## Circles\n")[2].partition("\n## ")[0]
    allowed = {tuple(sorted(re.findall(r"`([^`]+)`", row.split("|")[1])))
               for row in section.splitlines() if row.startswith("| `")}
    seen, bad = set(), 0
    for needs, graph in [(n, g) for n in (included, called) for g in (n.files, n.folders)]:
        for ring in circles(graph):
            seen.add(ring)
            if ring in allowed:
                continue
            bad += 1
            print("check_circles: need each other: " + ", ".join(ring), file=sys.stderr)
            for a in ring:
                for b in sorted(graph[a] & set(ring)):
                    print(f"\t{a} {needs.why[a, b]} in {b}", file=sys.stderr)
    for row in sorted(allowed - seen):
        bad += 1
        print("check_circles: docs/architecture.md excuses a circle that is not there: "
              + ", ".join(row), file=sys.stderr)
    if not texts:
        bad = print("check_circles: found no sources", file=sys.stderr) or 1
    if bad:
        return 1
    print(f"circles: {len(included.files)} files and {len(included.folders)} folders, "
          f"{len(seen)} circles, each with its reason")
    return 0


if __name__ == "__main__":
    sys.exit(main())
