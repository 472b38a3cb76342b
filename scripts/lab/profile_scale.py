#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings a cost profile to what replays took on a real card:

    profile_scale.py PROFILE.csv HOST/CALLS.csv... > NEW.csv

CALLS.csv is what `cufrag compare --device cuda --against-sim F --against-calls CALLS.csv` wrote with
PROFILE.csv in use; several files may hold other traces, or the same ones at another time. Of all runs
of a replay the fastest counts: what disturbs one only ever adds. Each curve of the profile is multiplied
by one factor, those of cudaMalloc and cudaFree by a second one from 512 MiB: the ratio of measured to
modelled time in a replay, of this the median over all replays with three calls or more. Files of one
folder are of one host; of several hosts it is the geometric mean, because hosts differ by a tenth and
more. Left out are the first call of a replay, which finds the driver as the one before left it, and
calls after a pause of 0.2 ms. What a curve does between its points stays as it is.

The factors go to standard error. Exit status 1: a file is not what it should be.
"""
import argparse
import array
import csv
import os
import statistics
import sys

BIG = 512 << 20
CALLS_MIN = 3
REPLAYS_MIN = 3
PAUSE_NS = 200000
# parts that are told apart by what the simulated card asked for them: call -> cheaper part, dearer part
CHEAPER = {
    "cudaMalloc": "cudaMalloc.hit",
    "cudaFree": "cudaFree.hit",
    "cudaMallocAsync": "cudaMallocAsync",
    "cuMemRelease": "cuMemRelease.mapped",
}
DEARER = {"cudaMallocAsync": "cudaMallocAsync.new"}
PAGE = 2 << 20
# replays touch managed memory by faults, whose price is in other parts
NOT_HERE = {"cudaMemPrefetchAsync"}


def read_profile(path):
    """Lines of comment, and rows [call, bytes, ns]."""
    with open(path, newline="") as f:
        lines = f.read().splitlines()
    notes = [line for line in lines if line.startswith("#")]
    rows = [r for r in csv.reader(line for line in lines if line and not line.startswith("#"))]
    if rows[:1] != [["call", "bytes", "ns"]]:
        sys.exit(f"{path}: no cost profile")
    return notes, [[c, int(b), int(ns)] for c, b, ns in rows[1:]]


def read_calls(paths):
    """{replay: {"what": [(call, bytes, modelled)], "ns": array}}"""
    replays = {}
    for path in paths:
        runs = {}
        with open(path, newline="") as f:
            table = csv.DictReader(f)
            if not {"modelled_ns", "pause_ns", "result", "run"} <= set(table.fieldnames or []):
                sys.exit(f"{path}: no list of calls")
            for r in table:
                if r["result"] != "0" or not r["modelled_ns"] or int(r["pause_ns"]) >= PAUSE_NS:
                    continue
                key = (r["trace"], r["trace_device"], r["policy"])
                what, ns = runs.setdefault((key, r["run"]), ([], array.array("Q")))
                what.append((r["call"], int(r["bytes"]), int(r["modelled_ns"])))
                ns.append(int(r["ns"]))
        for (key, _), (what, ns) in runs.items():
            replay = replays.setdefault(key, {"what": what, "ns": ns})
            if replay["what"] == what and sum(ns) < sum(replay["ns"]):
                replay["ns"] = ns
    return replays


def part_of(call, size, modelled, dearest):
    """The curve that sets the price of a call, and whether it is of the big ones."""
    cheap = CHEAPER.get(call)
    if cheap and modelled <= 1.5 * dearest.get(cheap, 0):
        return cheap, False
    if call in ("cudaMalloc", "cudaFree") and size < PAGE:
        return call + ".page", False
    return DEARER.get(call, call), call in ("cudaMalloc", "cudaFree") and size >= BIG


def ratios(replays, dearest):
    found = {}
    for replay in replays.values():
        sums = {}
        for i, (call, size, modelled) in enumerate(replay["what"]):
            if not i or call in NOT_HERE:  # a first call is not like the others
                continue
            s = sums.setdefault(part_of(call, size, modelled, dearest), [0, 0, 0])
            s[0] += replay["ns"][i]
            s[1] += modelled
            s[2] += 1
        for part, (measured, modelled, count) in sums.items():
            if count >= CALLS_MIN and modelled:
                found.setdefault(part, []).append(measured / modelled)
    return found


def rounded(ns):
    """Three digits: what was measured is not known better."""
    return int(float(f"{ns:.3g}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("profile")
    parser.add_argument("calls", nargs="+")
    args = parser.parse_args()
    notes, rows = read_profile(args.profile)
    dearest = {}
    for call, _, ns in rows:
        dearest[call] = max(dearest.get(call, 0), ns)
    hosts = {}
    for path in args.calls:
        hosts.setdefault(os.path.dirname(path), []).append(path)
    found = {}
    for paths in hosts.values():
        for part, values in ratios(read_calls(paths), dearest).items():
            if len(values) >= REPLAYS_MIN:
                found.setdefault(part, []).append(statistics.median(values))
    factor = {part: statistics.geometric_mean(values) for part, values in found.items()}
    for part, values in sorted(found.items()):
        print(f"{part[0]}{' from 512 MiB' if part[1] else ''}: {factor[part]:.3f} (hosts:",
              *(f"{v:.3f}" for v in values), ")", file=sys.stderr)
    print(*notes, "call,bytes,ns", sep="\n")
    for call, size, ns in rows:
        big = call in ("cudaMalloc", "cudaFree") and size >= BIG
        print(f"{call},{size},{rounded(ns * factor.get((call, big), 1.0))}")


if __name__ == "__main__":
    main()
