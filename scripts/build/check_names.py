#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does everything exist that documents and comments name?  check_names.py [PROGRAM]

Paths of the repository (in documents, and in comments of code), links and their anchors, sections
(`docs/x.md, "Section"`), and, with PROGRAM, commands and options of cufrag in documents. A word in
capitals in a path stands for anything: src/cli/cmd_NAME.c. And variables: every CUFRAG_* name has a
row in src/pretend/protocol.def, which names the folders of src, and scripts, in which code has it,
comments apart. Exit status 1 if one is missing."""
import fnmatch
import os
import re
import subprocess
import sys

from check_words import prose

PATH = re.compile(r"(?<![\w/.:$}-])((?:\.\./)*(?:src|docs|tests|scripts|policies|results|traces|kernels)/"
                  r"[\w./*{},+<>-]*[\w*}>])")
# other projects' sources; what a reader would call a file
OTHER = re.compile(r"^src/(umpire|tir|arena\.c|mr/|solver\.cc)|(?<![a-z])(mine|first_fit|x)(?![a-z])")
WILD = re.compile(r"<\w+>|(?<![A-Za-z])(?!README|CHANGELOG)[A-Z][A-Z0-9]+(?![a-z])")
SECTION = re.compile(r"((?:[\w-]+/)*[\w-]+\.md),? \"([^\"]+)\"")
COMMAND = re.compile(r"(`|^ {4,}|\$ )?(?:(?<=[`$(\s/])|^)cufrag ([a-z]+)(?![\w./])(\s[^`|#]*)?")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
VARIABLES = "src/pretend/protocol.def"
VARIABLE = re.compile(r"\bCUFRAG_[A-Z][A-Z_]*")
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"""[^"]*"""|#(?!define|include|!)[^\n]*', re.S)
CODE = re.compile(r"(src|scripts)/.*(\.c|\.h|\.cpp|\.py|\.sh|rules)$")


def output(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


class Tree:
    def __init__(self):
        names = output("git", "ls-files", "-co", "--exclude-standard").split("\n")
        self.files = [name for name in names if os.path.isfile(name)]
        self.known, self.titles = set(self.files), {}
        for name in self.files:
            while name := os.path.dirname(name):
                self.known.add(name)

    def has(self, path):
        """Is it there, braces and wildcards expanded, or ignored by git, so that something makes it?"""
        if brace := re.match(r"(.*)\{([^{}]*)\}(.*)", path):
            return all(self.has(brace[1] + part + brace[3]) for part in brace[2].split(","))
        path = WILD.sub("*", path)
        if "*" in path:
            return any(fnmatch.fnmatch(name, path) for name in self.known)
        return bool({path, path + ".c"} & self.known) or not subprocess.call(["git", "check-ignore", path, path + "/"], stdout=subprocess.DEVNULL)

    def sections(self, page):
        """Anchor -> title, as GitHub makes anchors."""
        if page not in self.titles:
            found = re.findall(r"^#+ (.*)", open(page, encoding="utf-8").read(), re.M)
            self.titles[page] = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-"): t for t in found}
        return self.titles[page]


def lines(name):
    """(number, line) of all of a document but its generated parts, and of the comments of code."""
    with open(name, encoding="utf-8", errors="replace") as file:
        text, generated = file.read(), False
    shell = name.endswith((".mk", ".cases", ".rules", ".yml", "Makefile"))  # its comments
    for offset, part in prose("a.sh" if shell else name, text):
        for number, line in enumerate(part.split("\n"), text.count("\n", 0, offset) + 1):
            generated = (generated or line.startswith("<!-- generated")) and line[:8] != "<!-- end"
            if not generated:
                yield number, line


def missing_files(tree, name, line):
    """Paths, links and sections in this line that the tree lacks."""
    folder = os.path.dirname(name)
    for target in re.findall(r"\]\(([^)\s]+)\)", line) if name.endswith(".md") else ():
        page, _, anchor = target.partition("#")
        page = os.path.normpath(os.path.join(folder, page or os.path.basename(name)))
        lost = anchor and page in tree.known and anchor not in tree.sections(page)
        if not target.startswith("http") and (page not in tree.known or lost):
            yield "link " + target
    for path in PATH.findall(re.sub(r"https?://\S+|\]\([^)]*\)", "", line)):
        path = path.replace("../", "")
        if not (OTHER.search(path) or tree.has(path) or tree.has(os.path.join(folder, path))):
            yield path
    for page, title in SECTION.findall(line):
        if page in tree.known and title not in tree.sections(page).values():
            yield f'{page}, "{title}"'


def missing_commands(options, line):
    """Commands and options of cufrag in this line that its help does not have."""
    for quoted, command, rest in COMMAND.findall(line):
        if command in options:
            used = set(OPTION.findall(re.split(r"\s--(?:\s|$)", rest)[0]))
            yield from (f"cufrag {command} {option}" for option in sorted(used - options[command]))
        elif quoted:
            yield "cufrag " + command
    yield from set(re.findall(r"`(--[a-z][a-z-]+)", line)).difference(*options.values())


def wrong_variables(tree):
    """Variables without a row, and rows that name other folders than code does."""
    with open(VARIABLES, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.startswith("CUFRAG_")]
    wanted = {row[0].rstrip("*"): set(",".join(row[3:5]).split(",")) - {"user"} for row in rows}
    found = {name: set() for name in wanted}
    for path in tree.files:
        if path.endswith((".csv", ".zst", "protocol.def")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        yield from (f"{path}: {name} has no row" for name in sorted(set(VARIABLE.findall(text)) - set(wanted)))
        if CODE.match(path):
            code = NO_CODE.sub("", text)
            part = path.split("/")
            folder = "python" if "python" in part else part[0] if part[0] == "scripts" else part[-2]
            for name in found.keys() & {*VARIABLE.findall(code), *("CUFRAG_" + n for n in re.findall(r"\bprotocol\.([A-Z_]+)", code))}:
                found[name].add(folder)
    for name, folders in wanted.items():
        if found[name] != folders:
            yield "%s is in %s, not in %s" % (name, ",".join(sorted(found[name])) or "no code", ",".join(sorted(folders)))


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    tree, options, bad = Tree(), {}, 0
    for command in output(*sys.argv[1:], "help", "--format", "names").split() if sys.argv[1:] else ():
        text = output(sys.argv[1], "help", command, "--all") + output(sys.argv[1], "help", "options")
        options[command] = set(OPTION.findall(text)) | {"--help"}
    for name in tree.files:
        for number, line in lines(name):
            found = list(missing_files(tree, name, line))
            if options and re.match(r"(?!results/).*\.md$", name):
                found += missing_commands(options, line)
            bad += len(found)
            sys.stderr.writelines(f"{name}:{number}: no {what}\n" for what in found)
    for wrong in wrong_variables(tree):
        bad += 1
        print(f"{VARIABLES}: {wrong}", file=sys.stderr)
    print("check_names: " + (f"{bad} names are missing" if bad else "every name exists"))
    return bad > 0


sys.exit(main())
