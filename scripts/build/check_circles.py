#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No circles: files, and folders, that need each other in both directions.

A file is a .c with its .h and its _internal.h beside it; it needs what it includes. A
folder needs the folders of what its files include; the folder above is the home of what
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


def main():
    files, folders, why = {}, {}, {}
    for top in ("src", "policies", "kernels"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in ENDS or not path.is_file():
                continue
            me = unit(path)
            files.setdefault(me, set())
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                to = found(name, path)
                if not to or unit(to) == me:
                    continue
                files[me].add(unit(to))
                a, b = me.rpartition("/")[0], unit(to).rpartition("/")[0]
                inside = (a + "/").startswith(b + "/") or (b + "/").startswith(a + "/")
                if a != b and not inside:
                    folders.setdefault(a, set()).add(b)
                    folders.setdefault(b, set())
                why.setdefault((me, unit(to)), path.name)
    doc = ROOT / "docs/architecture.md"
    page = doc.read_text(encoding="utf-8") if doc.is_file() else ""
    section = page.partition("\n## Circles\n")[2].partition("\n## ")[0]
    allowed = {tuple(sorted(re.findall(r"`([^`]+)`", row.split("|")[1])))
               for row in section.splitlines() if row.startswith("| `")}
    seen = circles(files) + circles(folders)
    bad = 0
    for ring in seen:
        if ring in allowed:
            continue
        bad += 1
        print("check_circles: need each other: " + ", ".join(ring), file=sys.stderr)
        for a in ring:
            for b in sorted(files.get(a, set()) & set(ring)):
                print(f"\t{a} includes {b} ({why[a, b]})", file=sys.stderr)
    for row in sorted(allowed - set(seen)):
        bad += 1
        print("check_circles: docs/architecture.md excuses a circle that is not there: " +
              ", ".join(row), file=sys.stderr)
    if not files:
        bad = print("check_circles: found no sources", file=sys.stderr) or 1
    if bad:
        return 1
    print(f"circles: {len(files)} files and {len(folders)} folders, {len(seen)} circles, "
          "each with its reason")
    return 0


if __name__ == "__main__":
    sys.exit(main())
