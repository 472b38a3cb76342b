#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dependencies point one way, and not in circles.  check_layers.py

Every #include is checked against the list under "Layers" in docs/architecture.md: a folder, and
the folders that it may include; and the picture under "The house" against that list.
    - a quoted include names a header beside the file, or one of a folder that is allowed
    - a command (src/cli/cmd_NAME.c, NAME_*.c, NAME/) includes no header of another command
    - outside of src/pretend, its one header pretend.h is included and no other
    - headers in src/include/frag include <frag/…> and the C library only (and metrics.def)
    - CUDA and NVML headers appear in src/device/cuda/ and kernels/ only

Then files, and folders, that need each other: by what they include, and by what they call, as a
header that several files share hides who calls whom. A file is a .c with its .h and its
_internal.h beside it; it calls the files that define the functions whose names it has. A folder
needs the folders of what its files need; the folder above is the home of what its subfolders
share, so a circle between a folder and its own subfolder counts only between files. A circle that
has its reason stands in the table under "Circles": one row of names, in any order. A row without
a circle is an error as well.
"""
import os
import re
import sys
from pathlib import Path

ENDS = {".c", ".h", ".cu", ".cuh", ".def", ".inc"}
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', re.S | re.M)
DEFINED = re.compile(r"^([A-Za-z_][^;{}()=#]*?)\b(\w+)\([^;{}]*\)\s*\{", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)', re.M)
DRIVER = re.compile(r"(cuda|nvml|cu[A-Z]|nvtx|driver_types|vector_types)")
LIBRARY = re.compile(r"archive|zstd|jansson|xxhash|yaml|nettle|glib")
ALONE = re.compile(r"inject|pretend|kernels$|main|.*/")  # not in the picture's order
DOCUMENT = "docs/architecture.md"


class Tree:
    """The sources, and who includes whom."""

    def __init__(self):
        tops = (top for top in ("src", "policies", "kernels") if os.path.isdir(top))
        self.texts = {str(p): p.read_text(encoding="utf-8")
                      for top in tops for p in sorted(Path(top).rglob("*"))
                      if p.suffix in ENDS and p.is_file()}
        self.named, self.commands = {}, set()
        for path in self.texts:
            name = path.rpartition("/")[2]
            self.named.setdefault(name, []).append(path)
            if re.match(r"src/cli/(.*/)?cmd_.*\.c$", path):
                self.commands.add(name[4:-2])

    def includes(self):
        """(path, line, quoted or not, name) of every #include."""
        for path, text in self.texts.items():
            for m in INCLUDE.finditer(text):
                yield path, text.count("\n", 0, m.start(2)) + 1, m[1] == '"', m[2]

    def target(self, name, path):
        """The file that a name reaches: beside the includer first, as for the compiler; or None."""
        name = re.sub(r"^(\.\./)+", "", name)
        found = self.named.get(name.rpartition("/")[2], ())
        beside = path.rpartition("/")[0] + "/" + name
        others = (p for p in found if p.endswith("/" + name))
        return beside if beside in found else next(others, None)

    def command_of(self, path):
        """The command whose file this is; "" where it is shared, or not of src/cli."""
        if not path.startswith("src/cli/"):
            return ""
        name, *inside = path[8:].split("/")
        name = name if inside else re.sub(r"^cmd_|\.[a-z]+$", "", name)
        while not inside and name not in self.commands and "_" in name:
            name = name.rpartition("_")[0]
        return name if name in self.commands else ""


def layer_of(path):
    part = path.split("/")
    if part[0] != "src":
        return part[0]
    if part[1] == "pretend" and "." in part[2]:
        return part[1]
    apart = part[1] in ("inject", "pretend") or path.startswith("src/trace/writers/")
    return "/".join(part[1:3]) if apart else part[1]


class Layers:
    def __init__(self, page):
        self.bad, self.allowed = 0, {}
        for line in re.findall(r"^    ([a-z].*)", section(page, "Layers"), re.M):
            layer, *others = line.split()
            self.allowed[layer] = {layer, *others}
            for other in others:
                if other.startswith("pretend/") and not layer.startswith("pretend"):
                    self.complain(f"{layer} may include pretend.h only, not {other}")
        self.check_picture(re.findall(r"^    .*", section(page, "The house"), re.M))

    def complain(self, text, where=DOCUMENT + ", The house"):
        print(f"{where}: {text}", file=sys.stderr)
        self.bad += 1

    def check_picture(self, picture):
        """It names every folder of the list, each above those that it may include."""
        row = {}
        for i, line in enumerate(picture):
            for word in re.split(r"   *|: |\. ", line):
                row.setdefault(word.rstrip("/"), i)
        for layer, others in self.allowed.items() if picture else ():
            if layer not in row and not ALONE.match(layer):
                self.complain(f"{layer} is missing")
            for other in others - {layer} if layer in row and layer != "pretend" else ():
                if other in row and row[layer] >= row[other]:
                    self.complain(f"{layer} is not above {other}, which it may include")

    def wrong(self, tree, path, quoted, name):
        """What is wrong with an include."""
        layer = layer_of(path)
        if not quoted:
            allowed = path.startswith("src/device/cuda/") or layer == "kernels"
            if DRIVER.match(name) and not allowed:
                yield f"<{name}> belongs into src/device/cuda/ and kernels/ only"
            if layer == "include" and LIBRARY.search(name):
                yield f"public headers do not include <{name}>"
        elif layer == "include":
            if not name.endswith("metrics.def"):
                yield f'public headers include each other as <frag/…>, not "{name}"'
        elif not re.search(r"_(list|page)\.inc$", name):  # those are generated
            to = tree.target(name, path) or "unknown"
            mine, theirs = tree.command_of(path), tree.command_of(to)
            if layer not in self.allowed:
                yield f"{layer} has no line under Layers in {DOCUMENT}"
            elif layer_of(to) not in self.allowed[layer]:
                yield f'{layer} must not depend on {layer_of(to)} ("{name}")'
            if mine and theirs and mine != theirs:
                yield f'command {mine} must not include a header of command {theirs} ("{name}")'


def section(page, title):
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def calls(texts):
    """(file, file that defines a function that it names, its name), where a header declares it."""
    words, own, homes, declared = {}, {}, {}, set()
    for path, text in texts.items():
        code = NO_CODE.sub(" ", text)
        words[path], own[path] = set(re.findall(r"\w+", code)), set()
        if path.endswith((".h", ".def")):
            declared |= words[path]
        for kind, name in DEFINED.findall(code) if path.endswith(".c") else ():
            if kind.startswith("static"):
                own[path].add(name)
            else:
                homes.setdefault(name, []).append(path)
    # without "_": in place of the C library's, as dlsym
    homes = {name: at[0] for name, at in homes.items()
             if len(at) == 1 and name in declared and "_" in name}
    for path in texts:
        if path.endswith(".c"):
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

    def __init__(self, needs):
        self.files, self.folders, self.why = {}, {}, {}
        for path, to, why in needs:
            me, other = (p if p.endswith(".def") else p.rpartition(".")[0].removesuffix("_internal")
                         for p in (path, to))
            if me == other:
                continue
            self.files.setdefault(me, set()).add(other)
            self.why.setdefault((me, other), why)
            a, b = me.rpartition("/")[0], other.rpartition("/")[0]
            if a != b and not (a + "/").startswith(b + "/") and not (b + "/").startswith(a + "/"):
                self.folders.setdefault(a, set()).add(b)
                self.why.setdefault((a, b), f"{me} {why} of {other}")


def check_circles(tree, page):
    """How many are wrong, and how many there are."""
    allowed = {tuple(sorted(re.findall(r"`([^`]+)`", row.split("|")[1])))
               for row in section(page, "Circles").splitlines() if row.startswith("| `")}
    included = ((path, tree.target(name, path), f"includes {name}")
                for path, _, quoted, name in tree.includes() if quoted or name.startswith("frag/"))
    both = (Needs(need for need in included if need[1]),
            Needs((path, to, f"calls {name}") for path, to, name in calls(tree.texts)))
    seen, bad = set(), 0
    for needs, graph in [(n, g) for n in both for g in (n.files, n.folders)]:
        for ring in circles(graph):
            seen.add(ring)
            if ring in allowed:
                continue
            bad += 1
            print("check_layers: need each other: " + ", ".join(ring), file=sys.stderr)
            for a in ring:
                for b in sorted(graph[a] & set(ring)):
                    print(f"\t{a} {needs.why[a, b]} in {b}", file=sys.stderr)
    for row in sorted(allowed - seen):
        bad += 1
        print(f"check_layers: {DOCUMENT} excuses a circle that is not there: {', '.join(row)}",
              file=sys.stderr)
    return bad, len(seen)


def main():
    os.chdir(Path(__file__).parents[2])
    tree, page = Tree(), "\n" + Path(DOCUMENT).read_text(encoding="utf-8")
    layers, checked = Layers(page), 0
    for path, line, quoted, name in tree.includes():
        checked += 1
        for text in layers.wrong(tree, path, quoted, name):
            layers.complain(text, f"{path}:{line}")
    if layers.bad or not checked:
        wrong = f"{layers.bad} wrong dependencies"
        sys.exit("check_layers: " + (wrong if checked else "found no includes"))
    bad, seen = check_circles(tree, page)
    if not bad:
        print(f"layers: {checked} includes, all in the right direction; "
              f"{seen} circles, each with its reason")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
