#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command several times and prints one line of medians, tab separated, for scripts/bench.sh:

    measure.py [-n RUNS] [-f KEY[,KEY...]] COMMAND [ARGUMENT...] [+++ COMMAND [ARGUMENT...]]...

Several commands are run in turn, so that all of them see the same machine; each has its line.

    wall seconds, largest resident set in KiB, then each KEY of the JSON on standard output
    ("results.0.host.host_ns"); after each median a column with (largest - smallest) / median.
The first run warms the caches and is not counted.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time


def run(command):
    """Wall seconds, KiB, standard output. The resident set comes from wait4: of this child only."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - begin
        if os.waitstatus_to_exitcode(status) != 0:
            sys.exit("measure: exit status %d of: %s" %
                     (os.waitstatus_to_exitcode(status), " ".join(command)))
        out.seek(0)
        return seconds, usage.ru_maxrss, out.read()


def look_up(document, key):
    for part in key.split("."):
        document = document[int(part) if isinstance(document, list) else part]
    return float(document)


def main():
    p = argparse.ArgumentParser(usage="measure.py [-n RUNS] [-f KEYS] COMMAND [ARGUMENT...]")
    p.add_argument("-n", type=int, default=5)
    p.add_argument("-f", default="")
    p.add_argument("command", nargs=argparse.REMAINDER)
    options = p.parse_args()
    keys = [k for k in options.f.split(",") if k]
    commands = [[]]
    for word in options.command:
        if word == "+++":
            commands.append([])
        else:
            commands[-1].append(word)
    rows = [[] for _ in commands]
    for i in range(options.n + 1):
        for command, of_command in zip(commands, rows):
            seconds, kib, text = run(command)
            if i > 0:
                document = json.loads(text) if keys else None
                of_command.append([seconds, float(kib)] + [look_up(document, k) for k in keys])
    for of_command in rows:
        cells = []
        for column in zip(*of_command):
            median = statistics.median(column)
            spread = (max(column) - min(column)) / median if median else 0
            cells += ["%.9g" % median, "%.3f" % spread]
        print("\t".join(cells))


if __name__ == "__main__":
    main()
