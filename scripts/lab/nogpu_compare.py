#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a card beside those made without one: nogpu_compare.py CUFRAG CARD_FOLDER OWN_FOLDER > programs.csv

Both folders hold NAME.pickle or NAME.pickle.xz (torch.cuda.memory._dump_snapshot). One line per name that is in both:
requests of each, whether all of them and their frees came in the same order ("frees": but for frees with no
request between them, whose order changes from run to run on a card, too), peak of what was requested, peak reserved
when replayed under PyTorch's default and with expandable segments, and the smallest card that each would fit.
"""
import json
import lzma
import os
import pickle
import subprocess
import sys


def load(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
        return pickle.load(f)


def requests(entries):
    """Sizes in order, and which request each free ends."""
    live, out, count, held, peak = {}, [], 0, 0, 0
    for e in entries:
        if e["action"] == "alloc":
            live[e["addr"]] = (count, e["size"])
            out.append(("a", e["size"]))
            count += 1
            held += e["size"]
            peak = max(peak, held)
        elif e["action"] == "free_requested" and e["addr"] in live:
            number, size = live.pop(e["addr"])
            out.append(("f", number))
            held -= size
    return count, out, peak


def settled(events):
    """Frees between two requests in order of their requests."""
    out, frees = [], []
    for e in events:
        if e[0] == "f":
            frees.append(e)
        else:
            out += sorted(frees) + [e]
            frees = []
    return out + sorted(frees)


def order(card, own):
    if card == own:
        return "yes"
    return "frees" if [settled(e) for e in card] == [settled(e) for e in own] else "no"


def fit(cufrag, path):
    """Peak reserved by policy, and the cards with room for it."""
    out = subprocess.run([cufrag, "fit", path, "--policies", "pytorch; pytorch:expandable_segments:True", "--json", "-"],
                         capture_output=True, text=True)
    return [(max(t["peak_reserved_bytes"] for t in r["traces"]), (r["fits"] or ["-"])[0]) for r in json.loads(out.stdout)["results"]]


def find(folder, name):
    for ending in (".pickle", ".pickle.xz"):
        if os.path.exists(os.path.join(folder, name + ending)):
            return os.path.join(folder, name + ending)
    return None


def main():
    cufrag, card, own = sys.argv[1:4]
    print("program,card_requests,own_requests,same_order,card_peak_requested_bytes,own_peak_requested_bytes,"
          "card_default_bytes,own_default_bytes,card_expandable_bytes,own_expandable_bytes,card_fits,own_fits", flush=True)
    for name in sorted({f.split(".pickle")[0] for f in os.listdir(own) if ".pickle" in f}):
        paths = find(card, name), find(own, name)
        if not all(paths):
            continue
        sides = [[requests(t) for t in load(p)["device_traces"] if t] for p in paths]
        fits = [fit(cufrag, p) for p in paths]
        same = order(*([d[1] for d in s] for s in sides))
        print(name, *(sum(d[0] for d in s) for s in sides), same, *(max(d[2] for d in s) for s in sides),
              *(f[i][0] for i in (0, 1) for f in fits), *(f[0][1] for f in fits), sep=",", flush=True)


main()
