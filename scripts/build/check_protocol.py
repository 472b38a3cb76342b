#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares src/pretend/protocol.def with the code: every CUFRAG_* name has a row, and every row
names the folders of src, and scripts, in which code has it. Comments do not count for a row."""
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"""[^"]*"""|#(?!define|include|!)[^\n]*', re.S)
CODE = (".c", ".h", ".cpp", ".py", ".sh", "rules")
NAME = r"\bCUFRAG_[A-Z][A-Z_]*"


def folder(path):
    part = path.split("/")
    return "python" if "python" in part else part[0] if part[0] == "scripts" else part[-2]


def main():
    os.chdir(ROOT)
    with open("src/pretend/protocol.def", encoding="utf-8") as f:
        rows = [line.split() for line in f if line.startswith("CUFRAG_")]
    wanted = {row[0].rstrip("*"): {f for part in row[3:5] for f in part.split(",")} for row in rows}
    found, bad = {name: set() for name in wanted}, []
    command = ["git", "grep", "-lE", "CUFRAG_|protocol[.]"]
    for path in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.split():
        if path.endswith((".csv", ".zst", "protocol.def")):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        unknown = set(re.findall(NAME, text)) - set(wanted)
        bad += ["%s: %s has no row" % (path, name) for name in sorted(unknown)]
        if path.startswith(("src/", "scripts/")) and path.endswith(CODE):
            code = COMMENT.sub("", text)
            names = re.findall(NAME, code)
            names += ["CUFRAG_" + n for n in re.findall(r"\bprotocol\.([A-Z_]+)", code)]
            for name in found.keys() & set(names):
                found[name].add(folder(path))
    for name, folders in wanted.items():
        if found[name] != folders - {"user"}:
            bad.append("%s is in %s, not in %s" % (name, ",".join(sorted(found[name])) or "no code",
                                                   ",".join(sorted(folders))))
    for line in bad:
        print("src/pretend/protocol.def:", line, file=sys.stderr)
    if not bad:
        print("protocol: %d variables, each where its row says" % len(wanted))
    return 1 if bad or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
