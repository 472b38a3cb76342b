# SPDX-License-Identifier: Apache-2.0
"""Is what a page holds what the replay did?

The data of a page are read by page.py and compared, event by event, with `export --to csv`: address
and the four series; each bucket with the extremes of its events; the peak with `replay --json`.
Under two policies, so that shared requests are read, too. And what was requested is added up again
from the rows alone, without the engine.
"""
import collections
import csv
import json
import os
import subprocess
import tempfile

from checks import check
from page import SERIES, Page

POLICIES = ("recorded", "vmm")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def wrong_events(page, lane, rows):
    """The first difference; bucket by bucket, too."""
    count, buckets, low, high = 0, page.buckets(lane), None, None
    for event, row in zip(page.events(lane), rows):
        series = [int(row[s + "_bytes"]) for s in SERIES]
        if event["series"] != series:
            return f"event {row['event']}: {event['series']} is not {series}"
        if event["kind"] < 4 and row["address"] and event["address"] != int(row["address"], 16):
            return f"event {row['event']}: address {event['address']} is not {row['address']}"
        low = [min(a, b) for a, b in zip(low or series, series)]
        high = [max(a, b) for a, b in zip(high or series, series)]
        count += 1
        if count % lane["bucket_events"] == 0 or count == lane["events_count"]:
            pairs = buckets[(count - 1) // lane["bucket_events"]][1]
            if pairs != list(zip(low, high)):
                return f"bucket up to event {row['event']}: {pairs}"
            low = high = None
    return None if count == lane["events_count"] == len(rows) else f"{count} events of {len(rows)}"


def wrong_sums(rows, result, initial):
    """The first difference of what requests and frees make of it; peaks and counts, too."""
    live = rounded = peak = bound = 0
    counts = collections.Counter(row["action"] for row in rows if row["address"])
    for number, row in enumerate(rows):
        sign = {"alloc": bool(row["address"]), "free": -1, "free_requested": -1}.get(row["action"], 0)
        live, rounded = live + sign * int(row["bytes"]), rounded + sign * -(-int(row["bytes"]) // 512) * 512
        peak, bound = max(peak, live), max(bound, rounded)
        if live != int(row["requested_bytes"]) and number >= initial:
            return f"event {row['event']}: {live} requested, not {row['requested_bytes']}"
    want = (peak, bound, counts["alloc"] - initial, counts["free"] + counts["free_completed"])
    got = tuple(result[k] for k in ("peak_requested_bytes", "lower_bound_bytes", "allocs_count", "frees_count"))
    return "" if got == want else f"{got}, not {want}"


def check_trace(program, trace, scratch):
    name, html = os.path.basename(trace), os.path.join(scratch, "page.html")
    run(program, "view", trace, "--policies", ";".join(POLICIES), "--no-notes", "--out", html, "-q")
    page = Page(html)
    for i, policy in enumerate(POLICIES):
        rows = list(csv.DictReader(run(program, "export", trace, "--to", "csv", "--policy", policy).splitlines()))
        lanes = page.head["lanes"][i::len(POLICIES)]
        for lane in lanes:
            own = [r for r in rows if int(r["device"]) == lane["device"]]
            wrong = wrong_events(page, lane, own)
            check(f"{name}, {policy}, device {lane['device']}", not wrong, wrong)
        document = json.loads(run(program, "replay", trace, "--policy", policy, "--on-oom", "skip", "--json", "-", "-q"))
        for result, device in zip(document["results"], document["traces"]):
            initial = device["initial_blocks_count"] if policy == "recorded" else 0  # which that restores at once
            own = [r for r in rows if int(r["device"]) == device["device_ordinal"]]
            wrong = wrong_sums(own, result, initial)
            check(f"{name}, {policy}, device {device['device_ordinal']}: sums", not wrong, wrong)
        peaks = [r["peak_reserved_bytes"] for r in document["results"]]
        check(f"{name}, {policy}: peaks", peaks == [lane["peak_reserved_bytes"] for lane in lanes], peaks)


def check_planned(program, trace):
    """`planned` is replayed with the plan that compare makes."""
    name = os.path.basename(trace)
    lanes = json.loads(run(program, "view", trace, "--policies", "planned", "--json", "-", "-q"))["lanes"]
    results = json.loads(run(program, "compare", trace, "--policies", "recorded;planned", "--json", "-", "-q"))["results"]
    check(f"{name}: planned", lanes[0]["peak_reserved_bytes"] == results[1]["peak_reserved_bytes"] and "plan of the first" in lanes[0]["policy"], lanes[0])


def check_all(program, traces):
    with tempfile.TemporaryDirectory() as scratch:
        for trace in traces:
            check_trace(program, trace, scratch)
        check_planned(program, traces[1])
