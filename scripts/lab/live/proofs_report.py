#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of what proofs.py did: proofs_report.py FOLDER writes proofs.md, steps.csv and pairs.csv there."""
import collections
import csv
import json
import math
import os
import random
import statistics
import sys


def rows(folder):
    try:
        with open(os.path.join(folder, "proofs.jsonl"), encoding="utf-8") as file:
            for line in file:
                try:
                    yield json.loads(line)
                except ValueError:
                    pass  # cut off where it was stopped
    except OSError:
        return


def table(out, head, lines):
    out.write("\n| %s |\n%s|\n" % (" | ".join(head), "|---" * len(head)))
    for line in lines:
        out.write("| %s |\n" % " | ".join(str(x) for x in line))


def quartiles(values):
    """median and quartiles, three decimals"""
    q = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return "%.3f (%.3f to %.3f)" % (q[1], q[0], q[2])


def write(folder, name, found):
    if found:
        with open(os.path.join(folder, name), "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(found)


def pairs(folder, found, out):
    rounds = collections.defaultdict(dict)
    for r in found["pair"]:
        if not r.get("error"):
            rounds[r["round"]][r["method"]] = r
    full = [r for r in rounds.values() if "default" in r]
    kinds = [k for k in (full[0]["default"] if full else {}) if k not in ("what", "round", "method")]
    methods = [m for m in ("default", "expandable", "cufrag pytorch", "cufrag vmm") if all(m in r for r in full)]
    write(folder, "pairs.csv", [["round", "method"] + kinds] + [[i, m] + ["%.1f" % rounds[i][m][k] for k in kinds]
                                                                for i in rounds for m in rounds[i]])
    out.write("\n## A request and its free, ns (torch.empty and del), and the share of PyTorch's own in the same round\n")
    table(out, ["", *kinds], [[m] + ["%.0f, %s" % (statistics.median(r[m][k] for r in full),
                                                   quartiles([r[m][k] / r["default"][k] for r in full])) for k in kinds]
                              for m in methods if full])


def interval(logs, draws=4000):
    """median of ratios, and between what it lies in 95 of 100 draws of as many turns out of these"""
    if len(logs) < 5:
        return "%.3f" % math.exp(statistics.median(logs)) if logs else "-"
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(logs, k=len(logs))) for _ in range(draws))
    return "%.3f (%.3f to %.3f)" % tuple(math.exp(x) for x in (statistics.median(logs), medians[draws // 40], medians[-draws // 40]))


def shares(turns, mine, own, key):
    """log of the time under the methods `mine` as a share of that under `own`, per turn"""
    def mean(t, methods):
        return statistics.fmean(math.log(sum(s[key] for s in t[m]["steps"])) for m in methods)
    return [mean(t, mine) - mean(t, own) for t in turns if all(m in t for m in (*mine, *own))]


def driver(turns, method):
    """percent of the steps' time that was spent in the driver"""
    ns = [t[method]["turn_ns"] for t in turns]
    return "-" if None in ns else "%.2f" % (sum(ns) / 1e7 / sum(s["s"] for t in turns for s in t[method]["steps"]))


def alone(found, out):
    out.write("\n## `vmm` alone on card and host: driver time, % of all the time that passed (with drawing data) and of the steps\n")
    lines, parts = [], collections.defaultdict(list)
    for r in found["alone"]:
        if not r.get("error"):
            parts[r["program"]].append(r)
    for program, rows in parts.items():
        for what, some in (("first", rows[:1]), ("to the middle", rows[1:len(rows) // 2]), ("from there on", rows[max(1, len(rows) // 2):])):
            if some:
                ns, count = sum(r["turn_ns"] for r in some), sum(len(r["steps"]) for r in some)
                spent = sum(s["s"] for r in some for s in r["steps"])
                lines.append([program, "%s %d" % (what, count), "%.1f" % sum(r["wall"] for r in some), "%.2f" % (ns / 1e7 / sum(r["wall"] for r in some)),
                              "%.2f" % (ns / 1e7 / spent), "%.2f" % (1000 * spent / count), "%.0f" % (some[-1]["peak_reserved"] / 2**20)])
    table(out, ["program", "steps", "s", "of all", "of the steps", "ms a step", "peak reserved, MiB"], lines)
    for r in found["alone end"]:
        out.write("\n%s, us a call: %s\n" % (r["program"], ", ".join("%s %.1f (%d)" % (k, v["ns"] / 1e3 / v["count"], v["count"])
                                                                    for k, v in r.get("calls", {}).items())))


def steps(folder, found, out):
    turns, losses = collections.defaultdict(dict), collections.defaultdict(dict)
    for r in found["turn"] + found["loss"]:
        if r.get("error"):
            continue
        if r["what"] == "loss":
            losses[r["program"], r["method"]][r["step"]] = r["loss"]
            continue
        turns[r["program"], r["turn"]][r["method"]] = r
        for i, s in enumerate(r["steps"]):
            losses[r["program"], r["method"]][r["turn"] * len(r["steps"]) + i] = s["loss"]
    ends = {(r["program"], r["method"]): r for r in found["end"]}
    write(folder, "steps.csv", [["program", "turn", "method", "steps", "seconds", "cpu_seconds", "driver_ns", "loss"]]
          + [[p, i, m, len(r["steps"]), "%.6f" % sum(s["s"] for s in r["steps"]), "%.6f" % sum(s["cpu"] for s in r["steps"]), r["turn_ns"], r["loss"]]
             for (p, i), some in [*turns.items(), *(((r["program"], r["part"]), {"cufrag vmm alone": r}) for r in found["alone"] if not r.get("error"))]
             for m, r in some.items()])
    out.write("\n## Steps in turns: time as a share of PyTorch's default in the same turns, without the first two steps; median, and where it lies by chance\n")
    lines = []
    for program, method in ends:
        some = [t for (p, i), t in sorted(turns.items())
                if p == program and "default" in t and method in t and i * len(t[method]["steps"]) >= 2]
        if not some or method == "default":
            continue
        twice = [m for m in (method, method + " again") if (program, m) in ends]
        own = [m for m in ("default", "default again") if (program, m) in ends and not method.startswith("default")] or ["default"]
        late = some[len(some) // 2:]
        both = sorted(set(losses[program, method]) & set(losses[program, "default"]))
        size = len(some[0][method]["steps"])
        lines.append([program, method, "%d x %d" % (len(some), size),
                      "%.2f" % (1000 * statistics.median(sum(s["s"] for s in t[method]["steps"]) for t in some) / size),
                      interval(shares(some, twice, own, "s")), interval(shares(late, twice, own, "s")),
                      interval(shares(some, twice, own, "cpu")), driver(some, method), driver(late, method),
                      "%d of %d" % (sum(losses[program, method][i] == losses[program, "default"][i] for i in both), len(both)),
                      "%.0f" % (ends[program, method].get("peak_reserved", 0) / 2**20)])
    table(out, ["program", "allocator", "turns x steps", "ms", "of default", "later half", "CPU time of default's", "driver, %", "later half",
                "equal losses", "peak reserved, MiB"], lines)
    out.write("\nLosses of the other allocators, beside PyTorch's own in turns: ")
    for r in found["loss"]:
        r.setdefault("loss", None)
    turned = {(r["program"], r["method"]) for r in found["turn"]}
    out.write("; ".join("%s, %s: %d of %d" % (p, m, sum(v == losses[p, "default"].get(i) for i, v in mine.items()), len(mine))
                        for (p, m), mine in losses.items() if (p, m) not in turned) or "none")
    out.write("\n")


def storms(found, out):
    out.write("\n## Filled blocks\n")
    names = ("blocks", "bytes", "handed", "graphs", "replays", "trainings", "ooms", "errors", "trims")
    table(out, ["policy", "planted seen", "minutes", *names, "wrong", "retries", "unfinished", "note"],
          [[r["policy"], r.get("planted"), "%.1f" % (r["seconds"] / 60), *(r.get(n) for n in names), r.get("wrong"), r.get("retries"),
            r.get("unfinished"), (r.get("error") or "")[:80]] for r in found["storm"]])
    ended = [r for r in found["storm"] if isinstance(r.get("wrong"), dict)]
    out.write("\n%.1f process-minutes, %d blocks, %.2f TB, wrong: %d\n" % (
        sum(r["seconds"] for r in ended) / 60, sum(r["blocks"] for r in ended), sum(r["bytes"] for r in ended) / 1e12,
        sum(sum(r["wrong"].values()) for r in ended)))


def faults(found, out):
    out.write("\n## Every n-th driver call fails\n")
    lines = []
    for r in found["fault"]:
        run, again, calls = r["run"], r["again"], r["book"].get("calls", {})
        lines.append([r["policy"], r["every"], run.get("blocks"), run.get("errors"), run.get("ooms"), run.get("wrong", run.get("error")),
                      r["book"].get("driver_calls"), sum(v["failed"] for v in calls.values()), r["release"].get("live"), r["release"].get("reserved"),
                      again.get("wrong", again.get("error")), (run.get("last") or "")[:90]])
    table(out, ["policy", "n", "blocks", "exceptions", "out of memory", "wrong", "driver calls", "failed", "live", "reserved at the end", "wrong again",
                "last exception"], lines)
    for r in found["fault leak"]:
        out.write("\nIn use on the card: %s before, %s after the first round, %s after the second.\n" % (r["before"], r["first"], r["second"]))


def asynchronous(found, out):
    out.write("\n## cudaMallocAsync on gnn: MiB live and reserved after each step\n")
    ways = list(dict.fromkeys(r["way"] for r in found["async"]))
    by = collections.defaultdict(dict)
    for r in found["async"]:
        if not r.get("error"):
            by[r["step"]][r["way"]] = r
    table(out, ["step", *ways], [[i] + ["%.0f / %.0f" % (by[i][w]["live"] / 2**20, by[i][w]["reserved"] / 2**20) if w in by[i] else "-" for w in ways]
                                 for i in sorted(by)])
    table(out, ["way", "peak reserved, MiB"], [[r["way"], "%.0f" % (r.get("peak_reserved", 0) / 2**20)] for r in found["async end"]])


def main():
    folder, found = sys.argv[1], collections.defaultdict(list)
    for r in rows(folder):
        found[r["what"]].append(r)
    with open(os.path.join(folder, "proofs.md"), "w", encoding="utf-8") as out:
        for part in (faults, lambda f, o: pairs(folder, f, o), alone, lambda f, o: steps(folder, f, o), asynchronous, storms):
            try:
                part(found, out)
            except (KeyError, IndexError, TypeError, ZeroDivisionError) as error:
                out.write("\nnot told: %s: %s\n" % (type(error).__name__, error))
        for r in found["sanitizer"]:
            out.write("\ncompute-sanitizer, %s: code %s, %.0f s, %s: %s\n" % (r["policy"], r.get("code"), r.get("seconds", 0), r.get("run", r.get("error")),
                                                                       (r.get("tail") or "").strip().splitlines()[-1:]))
        for r in found["error"] + found["async begin"]:
            if r.get("error"):
                out.write("\nerror: %s\n" % json.dumps(r)[:600])


if __name__ == "__main__":
    main()
