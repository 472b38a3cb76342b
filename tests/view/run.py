#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cufrag view` writes: run.py PROGRAM

data.py reads pages without a browser and compares every event; moves.py uses them in headless
Chromium (skipped without it, and in the quick tests). Last line: "N passed, N failed, N skipped".
"""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.realpath(os.path.join(HERE, "../../traces"))
sys.path.insert(0, os.path.join(HERE, "../support"))
import browser  # noqa: E402
import data  # noqa: E402
import moves  # noqa: E402
from checks import done, skip  # noqa: E402


def main():
    program, quick = os.path.realpath(sys.argv[1]), os.environ.get("FRAG_TEST_QUICK")
    program = os.path.join(program, "cufrag") if os.path.isdir(program) else program
    small = "seeddemo leak streams cudagraph gnn.late" if quick else "seeddemo leak gnn streams cudagraph mempool oomcap"
    data.check_all(program, [t for n in small.split() for t in sorted(glob.glob(f"{TRACES}/{n}*.cft"))])
    if quick or not browser.find():
        skip("the quick tests, or no chromium (Debian package chromium)")
    else:
        moves.check_all(program, [f"{TRACES}/{n}.cft" for n in ("leak.frames", "gnn.late")])
    return done()


sys.exit(main())
