#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts riddles: patterns of English that need a second reading, in comments and documents.

    check_words.py [--list]

Fails if there are more than the row `riddles` of budget.txt allows; --list prints each place."""
import io
import os
import re
import subprocess
import sys
import tokenize

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PLACES = ["src", "policies", "scripts", "tests", "docs/*.md", "README.md", "CHANGELOG.md"]
HERE = "scripts/build/check_words.py"
RIDDLES = (
    "hang(?:s|ing)? on", "nobody", "(?:that|it) is none", "none of (?:it|them|these|those)",
    "(?:is|are) (?:said|told) (?:by|of|to)", "as (?:such|these|those) (?:do|have)",
    "taken is", "are taken to be", r"whose \w+ which", "for whom", "(?:of )?which nobody",
    "who (?:waits|asks|has|have|gives|goes|knows|makes|needs|reads|takes|wants)", "that which",
    "what (?:lay|lies|comes|it gives|there is|is there|(?:it is|they are) given|was there)",
    "has come to be", "and so (?:are|do|does|is) (?:that|those)", "says nothing of")
PATTERN = re.compile(r"\b(?:%s)\b" % "|".join(r.replace(" ", r"[\s*#/]+") for r in RIDDLES), re.I)
C_TOKEN = re.compile(
    r"""R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|//.*|/\*(?:.|\n)*?\*/""")
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#.*(?:\n\s*#.*)*", re.M)


def python_prose(text):
    """(offset, text) of comments and docstrings: strings that are a statement."""
    starts = [0]
    for line in text.splitlines(True):
        starts.append(starts[-1] + len(line))
    before = tokenize.NEWLINE
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        statement = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if t.type == tokenize.COMMENT or (t.type == tokenize.STRING and statement):
            yield starts[t.start[0] - 1] + t.start[1], t.string
        before = before if t.type in (tokenize.COMMENT, tokenize.NL) else t.type


def prose(name, text):
    """(offset, text) of what people read in a file, without code and messages."""
    if name.endswith((".c", ".h", ".cpp", ".cu", ".cuh", ".def", ".js")):
        return [(m.start(), m[0]) for m in C_TOKEN.finditer(text) if m[0][0] == "/"]
    if name.endswith((".py", ".md")):
        return python_prose(text) if name.endswith(".py") else [(0, text)]
    if name.endswith((".sh", ".gp", ".gpi")) or text.startswith("#!"):
        return [(m.start(), m[0]) for m in SHELL_COMMENT.finditer(text)]
    return []


def riddles():
    listed = ["git", "-C", ROOT, "ls-files", "--", *PLACES]
    for name in subprocess.check_output(listed, text=True).split("\n"):
        path = os.path.join(ROOT, name)
        if name == HERE or not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for offset, part in prose(name, text):
            for m in PATTERN.finditer(part):
                line = text.count("\n", 0, offset + m.start()) + 1
                yield f"{name}:{line}: {' '.join(m[0].split())}"


def main():
    found = list(riddles())
    if "--list" in sys.argv:
        print("\n".join(found))
    with open(os.path.join(ROOT, "budget.txt"), encoding="utf-8") as f:
        limit = int(re.search(r"^riddles (\d+)$", f.read(), re.M)[1])
    print(f"check-words: {len(found)} riddles, {limit} allowed", file=sys.stderr)
    return len(found) > limit


if __name__ == "__main__":
    sys.exit(main())
