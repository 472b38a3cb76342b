#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What live.py measured beside what was predicted: report.py FOLDER writes runs.csv, fit.csv and table.md there."""
import csv
import json
import os
import statistics
import sys


def lines(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.startswith("{")]
    except OSError:
        return []


def policy_of(run):
    if run["policy"]:
        return run["policy"]
    return {"default": "pytorch", "expandable": "pytorch:expandable_segments:True", "async": "async"}[run["method"]]


def step_ms(run):
    """Median of the steps but the first two, which warm up."""
    steps = run["steps_s"][2:] or run["steps_s"]
    return 1000 * statistics.median(steps) if steps else None


def text(value, digits=0):
    return "-" if value is None else "%.*f" % (digits, value)


def mib(value):
    return None if value is None else value / 2**20


def timed_rows(runs, predicted):
    for program in dict.fromkeys(r["program"] for r in runs if r["part"] == "timed"):
        mine = [r for r in runs if r["part"] == "timed" and r["program"] == program]
        first = next((r for r in mine if r["method"] == "default" and not r.get("again")), None)
        for r in mine:
            p = predicted.get((program, policy_of(r), None), {})
            want, got = p.get("peak_reserved"), r.get("peak_reserved")
            yield {
                "program": program, "method": r["method"] + (" (again)" if r.get("again") else ""),
                "completed": r["completed"], "steps": len(r["losses"]), "error": r["error"] or r["oom"],
                "same_losses": None if not first or not r["losses"] else r["losses"] == first["losses"],
                "peak_reserved_bytes": got, "predicted_bytes": want,
                "difference_percent": 100 * (got - want) / want if got and want else None,
                "peak_nvml_bytes": r.get("peak_nvml"), "step_ms": step_ms(r),
                "step_over_default": step_ms(r) / step_ms(first) if first and step_ms(r) and step_ms(first) else None,
                "driver_calls": r.get("driver_calls"), "predicted_calls": p.get("driver_calls"),
                "driver_ms": r["driver_ns"] / 1e6 if r.get("driver_ns") else None,
                "predicted_driver_ms": p["driver_ns"] / 1e6 if p.get("driver_ns") else None,
                "allocations": r.get("allocations"), "predicted_allocations": p.get("allocations")}


def fit_rows(runs, predicted):
    timed = {(r["program"], r["method"]): r for r in runs if r["part"] == "timed" and not r.get("again")}
    for r in runs:
        if r["part"] != "fit":
            continue
        p = predicted.get((r["program"], policy_of(r), r["limit"]), {})
        free = timed.get((r["program"], r["method"]))
        yield {
            "program": r["program"], "method": r["method"], "limit_bytes": r["limit"],
            "predicted": "completes" if p.get("completed") else "runs out",
            "happened": r["error"] and "error" or ("completes" if r["completed"] else "runs out"),
            "allocations": r.get("allocations"), "predicted_allocations": p.get("allocations"),
            "peak_reserved_bytes": r.get("peak_reserved"), "predicted_bytes": p.get("peak_reserved"),
            "retries": r.get("retries"), "predicted_retries": p.get("retries"), "step_ms": step_ms(r),
            "step_ms_without_limit": step_ms(free) if free else None, "error": r["error"]}


def write(path, rows):
    if rows:
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            out.writeheader()
            out.writerows(rows)


def main():
    folder = sys.argv[1]
    runs = lines(folder, "runs.jsonl")
    predicted = {(p["program"], p["policy"], p["limit"]): p for p in lines(folder, "predicted.jsonl")}
    rows, fits = list(timed_rows(runs, predicted)), list(fit_rows(runs, predicted))
    write(os.path.join(folder, "runs.csv"), rows)
    write(os.path.join(folder, "fit.csv"), fits)
    with open(os.path.join(folder, "table.md"), "w", encoding="utf-8") as out:
        out.write("| program | allocator | losses | reserved, MiB | predicted | off, % | NVML, MiB | step, ms | of default "
                  "| calls | predicted |\n" + "|---" * 11 + "|\n")
        for r in rows:
            same = {True: "equal", False: "differ", None: "-"}[r["same_losses"]]
            out.write("| %s | %s | %s |" % (r["program"], r["method"], same if r["completed"] else "stopped")
                      + " %s | %s | %s | %s | %s | %s | %s | %s |\n" % (
                          text(mib(r["peak_reserved_bytes"])), text(mib(r["predicted_bytes"])),
                          text(r["difference_percent"], 3), text(mib(r["peak_nvml_bytes"])), text(r["step_ms"], 2),
                          text(r["step_over_default"], 3), text(r["driver_calls"]), text(r["predicted_calls"])))
        out.write("\n| program | allocator | limit, MiB | predicted | happened | allocations | predicted | retries "
                  "| predicted | step, ms | without limit |\n" + "|---" * 11 + "|\n")
        for r in fits:
            out.write("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n" % (
                r["program"], r["method"], text(mib(r["limit_bytes"])), r["predicted"], r["happened"],
                text(r["allocations"]), text(r["predicted_allocations"]), text(r["retries"]),
                text(r["predicted_retries"]), text(r["step_ms"], 2), text(r["step_ms_without_limit"], 2)))


if __name__ == "__main__":
    main()
