#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of cases (cases.h) that a C test answers, in TAP: cases.py lines|parts FILE PROGRAM..."""
import sys

from driven import Driver, cases, in_lines, in_parts, run_tests


def answer(driver, text, *_):
    said = driver.ask(text.replace("\\", "\\\\").replace("\n", "\\n"))[2]
    return "\n".join(map("\t".join, said))


def main(how, path, *program):
    run = {"lines": in_lines, "parts": in_parts}[how](answer)
    return run_tests(cases(path, run), Driver([*program, path]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
