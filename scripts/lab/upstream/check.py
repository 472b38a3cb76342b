#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a policy against the allocator it follows, compiled from its own sources:

    check.py POLICY TRACE DRIVER [ARGUMENT...]

Replays TRACE under POLICY with cufrag (CUFRAG names the program), gives the same requests to DRIVER
(see drive.h), whose device hands out the segments that cufrag's did, and compares the address of
every request and the bytes taken from the device after every event.
The files of both go before the arguments.
One line: policy,trace,requests,same addresses,cufrag's peak,the driver's peak,first difference.
Exit status 1: something differs.
"""
import csv
import os
import subprocess
import sys
import tempfile

CUFRAG = os.environ.get("CUFRAG", "build/release/cufrag")


def told(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout.decode().splitlines()


def replay(policy, trace, work):
    """Rows of the first device's events, the addresses of its requests (None: refused), and what
    was taken from the device: (event, bytes, address), bytes < 0 when given back."""
    rows = csv.DictReader(told(CUFRAG, "export", "--to", "csv", "--policy", policy, trace))
    rows = [r for r in rows if r["device"] == "0"]
    lab = os.path.join(os.path.dirname(CUFRAG), "lab")
    calls = told(lab, "calls", "--policies", f"log:file={work}/log.csv/{policy}", trace)
    addresses = []
    for r in csv.DictReader(open(work + "/log.csv")):
        if r["Action"] == "allocate":
            addresses.append(int(r["Pointer"], 16))
        elif r["Action"] == "allocate failure":
            addresses.append(None)
    taken = []
    for r in csv.DictReader(calls):
        sign = {"cudaMalloc": r["result"] == "done", "cudaFree": -1}.get(r["call"])
        if r["device"] == "0" and sign:
            taken.append((int(r["event"]), sign * int(r["bytes"]), int(r["address"], 16)))
    return rows, addresses, taken


def operations(rows, addresses):
    """Lines for the driver; for each the number of the event and cufrag's address."""
    ids, lines, events, at = {}, [], [], 0
    for r in rows:
        action = r["action"]
        if action in ("alloc", "refused"):
            if at == len(addresses):
                break
            key = len(lines)
            if action == "alloc":
                ids[r["address"]] = key
            lines.append(f"a {key} {r['bytes']} {r['stream']}")
            events.append((int(r["event"]), addresses[at]))
            at += 1
            if addresses[at - 1] is None and at == len(addresses):  # cufrag stopped there
                break
        elif action in ("free", "free_completed"):
            if r["address"] in ids:
                lines.append(f"f {ids.pop(r['address'])}")
                events.append((int(r["event"]), 0))
        elif action == "trim":
            lines.append("t")
            events.append((int(r["event"]), 0))
    return lines, events


def reserved_after(taken, events):
    """What cufrag holds after each event."""
    held, at, out, peak = 0, 0, [], 0
    for event, _ in events:
        while at < len(taken) and taken[at][0] <= event:
            held += taken[at][1]
            at += 1
        out.append(held)
        peak = max(peak, held)
    return out, peak


def main():
    args = sys.argv[1:]
    if len(args) < 3:
        sys.exit(__doc__)
    policy, trace, driver = args[0], args[1], args[2:]
    with tempfile.TemporaryDirectory() as work:
        rows, addresses, taken = replay(policy, trace, work)
        lines, events = operations(rows, addresses)
        with open(work + "/ops", "w") as f:
            f.write("".join(line + "\n" for line in lines))
        with open(work + "/segments", "w") as f:
            f.write("".join(f"{b} {a:x}\n" for _, b, a in taken if b > 0))
        command = [driver[0], work + "/ops", work + "/segments", *driver[1:]]
        done = subprocess.run(command, capture_output=True)
    result = [line.split() for line in done.stdout.decode().splitlines()]
    reserved, peak = reserved_after(taken, events)
    first, same, requests, theirs = "", 0, 0, 0
    for i, (want, got) in enumerate(zip(events, result)):
        theirs = max(theirs, int(got[1]))
        if lines[i][0] == "a":
            requests += 1
            address = None if got[0] == "oom" else int(got[0], 16)
            same += address == want[1]
            if address != want[1] and not first:
                here = "refused" if want[1] is None else hex(want[1])
                first = f"event {want[0]}: {got[0]} there, {here} in cufrag"
        if int(got[1]) != reserved[i] and not first:
            first = f"event {want[0]}: {got[1]} bytes held there, {reserved[i]} in cufrag"
    if len(result) != len(lines) and not first:
        said = done.stderr.decode().strip()[-200:]
        first = f"the driver stopped after {len(result)} of {len(lines)}: {said}"
    name = os.path.basename(trace).removesuffix(".cft")
    print(f"{policy},{name},{requests},{same},{peak},{theirs},{first or 'none'}")
    if os.environ.get("VERBOSE"):
        sys.stderr.write(done.stderr.decode())
    sys.exit(bool(first))


if __name__ == "__main__":
    main()
