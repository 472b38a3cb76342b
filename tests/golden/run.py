#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What policies reserve, against golden.csv and against what PyTorch itself reserved.

    run.py [--rewrite] PROGRAM [TRACE...]

Golden counts: what every policy reserves, refuses and asks of the driver on every bundled trace
is what golden.csv has. A new policy or trace gets its rows by `make baseline` (--rewrite); a
changed number needs its reason in the commit. Invariants of every policy, with FRAG_EVERY_EVENT
in the environment after every event; how low plans and offline placements are. Recordings of
PyTorch's own allocator (SHARED_TRACES; too big for the repository, skipped where absent): each is
followed event by event, with the counters that PyTorch printed, under the limit and release that
it shows; and a replay under the settings, or the release, of another recording of the same
requests reaches the peak that was recorded there."""
import csv
import glob
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, "tests/support")
from checks import check, done, skip  # noqa: E402

GOLDEN = "tests/golden/golden.csv"
PYTORCH = ["expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4",
           "garbage_collection_threshold:0.6"]
COLUMNS = ("policy trace device_ordinal completed peak_reserved_bytes ooms_count "
           "driver_calls_count").split()
SHARED = os.environ.get("SHARED_TRACES", "../shared/traces")
CARD = 150109880320
QUICK = bool(os.environ.get("FRAG_TEST_QUICK"))
NIGHTLY = bool(os.environ.get("FRAG_TEST_NIGHTLY"))
CHECKS = 10000 if NIGHTLY else 1000  # of invariants, in a long replay
STRIDE = 12 if QUICK else 1  # every n-th recording of the releases
PROGRAM = os.path.abspath([w for w in sys.argv[1:] if w != "--rewrite"][0])

# what was recorded under other settings than NAME.default; the peaks of a second device are not in
# the notes
WHAT_IF = {
    "gnn": "expandable split128 pow2 gc round bigseg default",
    "varlen": "expandable pow2 gc default",
    "vision": "expandable default", "serve": "expandable default", "gpt2": "expandable default",
    "fsdp2": "expandable default", "modelpar": "expandable default", "moe": "default"}
SECOND_DEVICE = {"modelpar.expandable": 4448 << 20, "modelpar.default": 5180 << 20}
NOT_COMPARABLE = {"varlen.split128": "other processes filled the card",
                  "moe.pow2list": "57,233 allocations against 57,187"}
# the least efficiency with a plan of half of the steps
PLANNED = {"traces/vision.default.cft": 0.999, "traces/varlen.default.cft": 0.9,
           "traces/gnn.default.cft": 0.75}
if NIGHTLY:  # they take a minute
    PLANNED |= {SHARED + "/torch/gpt2.default.pickle.xz": 0.999, SHARED + "/torch/gpt2ckpt.default.pickle.xz": 0.999,
                SHARED + "/torch/lora.default.pickle.xz": 0.95}
# the least peak that was recorded without a limit: tune finds one that is as low
BEST = {"traces/varlen.default.cft": 22900899840, "traces/vision.default.cft": 9244246016,
        "traces/serve.default.cft": 3147825152,
        SHARED + "/torch/moe.default.pickle.xz": 11418992640}


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def answer(*words):
    ran = run(*words, "--json", "-", "--quiet")
    if not ran.stdout:
        raise RuntimeError(f"{' '.join(map(str, words))}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def each(function, things):
    """(thing, what the function gives for it), some at a time."""
    with ThreadPoolExecutor(int(os.environ.get("CASE_JOBS", 0)) or os.cpu_count()) as pool:
        return list(zip(things, pool.map(function, things)))


# ---- golden counts -----------------------------------------------------------------------------


def counts(traces, rewrite):
    policies = ";".join(["all", *("pytorch:" + p for p in PYTORCH)])
    ran = run("compare", *traces, "--policies", policies, "--on-oom=skip", "--no-host", "--csv",
              "-")
    rows = list(csv.DictReader(io.StringIO(ran.stdout)))
    check("compare of all policies", ran.returncode in (0, 1) and rows, ran.stderr[-300:])
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    head, *lines = text.getvalue().splitlines()
    if rewrite:
        with open(GOLDEN, "w", encoding="utf-8") as file:
            file.write("\n".join([head, *sorted(lines)]) + "\n")
        print(f"golden: wrote {len(lines)} rows into {GOLDEN}")
        return
    asked = {os.path.basename(t).removesuffix(".cft") for t in traces}
    with open(GOLDEN, newline="", encoding="utf-8") as file:
        wanted = {tuple(r.values()) for r in csv.DictReader(file) if r["trace"] in asked}
    got = {tuple(r[c] for c in COLUMNS) for r in rows}
    for row in sorted(got | wanted):
        check(f"{row[0]} on {row[1]}, device {row[2]}", row in got and row in wanted,
              f"{'new or changed' if row in got else 'gone or changed'}: {','.join(row)}")
    # a metric that is 0 in every run is none, or its sum was forgotten (the host's are measured,
    # and not here)
    with open("src/metrics/metrics.def", encoding="utf-8") as file:
        metrics = re.findall(r"^FRAG_METRIC_[A-Z0-9]*\(([a-z0-9_]*),", file.read(), re.M)
    for name in metrics if len(traces) > 1 else ():
        if not name.startswith("host_") and name != "events_per_s":
            check(f"{name} is not 0 in every run", any(float(r[name] or 0) for r in rows))


# ---- invariants, placements, plans -------------------------------------------------------------


def invariants(trace):
    """Every policy with its invariants checked, and what overlaps found by the adaptor `check`:
    after every event of the short traces, of the others so often that all take some seconds."""
    counts_of = [d["events_count"] for d in answer("info", trace)["devices"]]
    every = max(counts_of) // CHECKS
    every = 1 if every < 3 or os.environ.get("FRAG_EVERY_EVENT") else every
    policies = [p["name"] for p in answer("list", "policies")["policies"]
                if not p["adaptor"] and p["name"] not in ("null", "ggml-vmm")]  # which is a stack
    policies = [f"check:every={every}/{p}" for p in [*policies, "pytorch:expandable_segments:True"]]
    said = answer("compare", trace, "--policies", ";".join(policies), "--on-oom=skip",
                  "--optimum=off", "--no-host")["results"]
    got, want = Counter(r["events_count"] for r in said), Counter(counts_of * len(policies))
    return "" if got == want else f"not to the end: {got}, not {want}"


def placements(path):
    """Offline placements, which an independent sweep checks: how near the lowest is to the load. Of
    those in PLANNED also the plan from the first half of the steps, run on all of them."""
    within = 1.01 if "varlen" in path else 1.05
    with tempfile.TemporaryDirectory() as scratch:
        plan = [os.path.join(scratch, "plan")] if path in PLANNED and not QUICK else []
        # a plan ends by itself, whatever else runs
        options = ["--time", 100, "-o", *plan] if plan else ["--time", 1]
        said = answer("plan", path, *options)["results"]
        fault = "".join(f"{r['over_bound_ratio']} of the load; " for r in said
                        if not r["checked"] or not 1 <= r["over_bound_ratio"] <= within)
        for file in plan:
            result, = answer("replay", path, "--policy", "planned:plan=" + file, "--no-host")["results"]
            if not result["completed"] or result["efficiency_ratio"] < PLANNED[path]:
                fault += f"planned: {result['efficiency_ratio']}"
    return fault


def promises(traces):
    few = [t for t in traces if not QUICK or os.path.getsize(t) < 100000]
    for trace in few:  # with threads of its own
        fault = invariants(trace)
        check(f"invariants: {trace}", not fault, fault)
    shared = [t for t in PLANNED if t not in traces]
    for path in shared if QUICK else [t for t in shared if not os.path.exists(t)]:
        skip(f"planned: {path}: absent, or not among the quick tests")
    # placements take half a minute of serve, seven seconds of varlen
    few = [t for t in few if NIGHTLY or not re.search("serve|varlen", t)]
    few += [t for t in shared if not QUICK and os.path.exists(t)]
    for trace, fault in each(placements, few):
        check(f"placements: {trace}", not fault, fault)


# ---- recordings --------------------------------------------------------------------------------


class Recording:
    """A recording of PyTorch with its notes."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path).split(".pickle")[0]
        notes = os.path.join(os.path.dirname(path), self.name + ".json")
        self.notes = {}
        if os.path.exists(notes):
            with open(notes, encoding="utf-8") as file:
                self.notes = json.load(file)
        self.conf = self.notes.get("conf") or ""
        self.peak = self.notes.get("stats", {}).get("reserved_bytes.all.peak", 0)
        fraction = float(self.notes.get("memfrac") or 1)
        if self.notes.get("workload") == "oomcap":
            fraction = 7.5 * (1 << 30) / CARD  # set in the program itself
        self.fraction = fraction
        self.limit = int(fraction * CARD) if fraction < 1 else "1.0"  # 1.0: there is none
        # VERSION.WORKLOAD.SETTING, and what a user has to give
        release = re.match(r"(\d+\.\d+)\.\d+\.(.*)", self.name)
        self.release, self.work = release.groups() if release else (None, self.name)
        self.given = (self.notes.get("verify_args") or "").replace("'", "").replace('"', "").split()

    def policy(self, release=""):
        settings = [f"version={release}"] * bool(release) + [self.conf] * bool(self.conf)
        return "pytorch:" + ",".join(settings) if settings else "pytorch"

    def follow(self, *how):
        """What verify says of each device; "": all of it was followed."""
        said = answer("verify", self.path, "--counters", *how)["devices"]
        differ = [d for d in said if not d["identical"] or any(
            d[f"{what}_count"] != d[f"{what}_identical_count"]
            for what in ("allocs", "segment_events", "ooms", "final_blocks"))]
        fault = differ[0]["first_difference"] or "counts differ" if differ else ""
        if not fault and not any(d["allocs_count"] for d in said):
            fault = "it has no allocs"
        return said, fault

    def whole(self):
        """(has the first device no history before the recording?, all that info says)"""
        said = answer("info", self.path)
        return not said["devices"][0]["began_late"], said


def as_printed(recording):
    """Followed, with the counters that PyTorch printed of the process's own first device; small as
    a .cft."""
    said, fault = recording.follow("--limit", recording.limit)
    with tempfile.NamedTemporaryFile(suffix=".cft") as file:
        os.remove(file.name)
        run("import", recording.path, "-o", file.name)
        entries = sum(d["recorded_count"] for d in answer("info", file.name)["devices"])
        if entries >= 6000 and os.path.getsize(file.name) > 4 * entries:
            return f"{os.path.getsize(file.name)} bytes as a .cft of {entries} entries"
    stats, own = recording.notes.get("stats"), [d for d in said if d["allocs_count"]]
    other = own and own[0] is not said[0] and own[0]["device"]
    if fault or other or not stats or not recording.whole()[0]:
        return fault
    # empty_cache() with nothing to give back leaves no entry, only one more synchronisation in the
    # counters
    both = {k: v for k, v in own[0]["counters"].items() if k in stats
            and k != "num_sync_all_streams"}
    wrong = [f"{k} is {v}, recorded {stats[k]}" for k, v in both.items() if v != stats[k]]
    return wrong[0] if wrong else "" if len(both) == 121 else f"{len(both)} counters"


def limits(recording, scratch):
    """The limit of a recording is found; taken where a file beside it says it; and found where
    that says twice as much."""
    copy = os.path.join(scratch, recording.name + ".pickle")
    if not os.path.exists(copy + ".xz"):
        os.symlink(os.path.abspath(recording.path), copy + ".xz")
    for times, source in ((0, "inferred"), (1, "recorded"), (2, "inferred")):
        fraction = recording.fraction * times
        card = {"ordinal": 0, "name": "NVIDIA H200", "total_bytes": CARD,
                "limit_fraction": fraction}
        if times:
            with open(copy + ".meta.json", "w", encoding="utf-8") as file:
                json.dump({"cufrag_meta": 1, "devices": [card]}, file)
        said = answer("compare", copy + ".xz", "--policies", "recorded", "--optimum", "off",
                      "--no-host")
        said = said["traces"][0]["recording"]
        refuted = int(fraction * CARD) if times == 2 else None
        right = (said["limit_bytes"] == recording.limit and not said["assumed_trims_count"]
                 if times == 1 else
                 said["limit_low_bytes"] <= recording.limit <= said["limit_high_bytes"])
        if not (right and said["identical"] and said["limit_source"] == source and
                said["limit_refuted_bytes"] == refuted):
            return f"{times} x the limit: {said}"
    return ""


def peaks(path, limit, policy, *conf):
    """Of each device, in a replay. conf: of a recording that does not hold it."""
    said = answer("replay", path, "--policy", policy, "--limit", limit, "--no-host", *conf)
    return [result["peak_reserved_bytes"] for result in said["results"]]


def what_if(pair):
    base, setting = pair
    like = Recording(f"{SHARED}/torch/{base}.{setting}.pickle.xz")
    got = peaks(f"{SHARED}/torch/{base}.default.pickle.xz", like.limit, like.policy())
    want = [like.peak] + ([SECOND_DEVICE[like.name]] if like.name in SECOND_DEVICE else [])
    return "" if got[:len(want)] == want else f"{got}, recorded {want}"


def known_requests():
    """Who served what is known from the program that was recorded, of a MemPool that was gone at
    the end, too; a profile's blocks were counted by another program."""
    rows = csv.DictReader(io.StringIO(run("export", SHARED + "/torch/mempool.default.pickle.xz", "--to",
                                          "csv", "--quiet").stdout))
    pools = Counter(row["pool"] for row in rows if row["action"] == "alloc")
    check("pools of a MemPool", pools == {"0": 99, "1": 46, "2": 55}, pools)
    device, = answer("info", SHARED + "/diagnose/kineto.json.xz")["devices"]
    seen = [device[k + "_count"] for k in ("events", "uncertain", "slots")]
    check("blocks of a profile", seen == [4238, 0, 196], seen)


def torch_recordings():
    recordings = [Recording(p) for p in sorted(glob.glob(SHARED + "/torch/*.pickle.xz"))]
    if QUICK or not recordings:
        skip("recordings of PyTorch: " + ("not among the quick tests" if QUICK else "absent"))
        return
    known_requests()
    for recording, fault in each(as_printed, recordings):
        check(f"followed: {recording.name}", not fault, fault)
    with tempfile.TemporaryDirectory() as scratch:
        limited = [r for r in recordings if r.fraction < 1 and r.notes]
        for recording, fault in each(lambda r: limits(r, scratch), limited):
            check(f"limit of {recording.name}", not fault, fault)
    pairs = [(base, setting) for base, settings in WHAT_IF.items() for setting in settings.split()]
    for (base, setting), fault in each(what_if, pairs):
        check(f"{base} as {setting}", not fault, fault)
    for name, why in NOT_COMPARABLE.items():
        skip(f"{name.split('.', maxsplit=1)[0]} as {name}: {why}")
    for path, recorded in BEST.items():
        best = answer("tune", path, "--space", "pytorch", "--budget", 60)["best"]
        check(f"tune finds the best of {path}", best["completed"]
              and best["peak_reserved_bytes"] <= recorded,
              f"{best['policy']}: {best['peak_reserved_bytes']}, recorded {recorded}")


# ---- other releases ----------------------------------------------------------------------------


def as_recorded(recording):
    """Followed by the release that its file shows; also its requests, for comparable ones."""
    said, fault = recording.follow(*recording.given)
    whole, info = recording.whole()
    recording.late = any(d["began_late"] for d in info["devices"])
    exported = run("export", recording.path, "--to", "csv", "-o", "-", "--quiet").stdout
    asked = (line.split(",", 7)[5:7] for line in exported.splitlines() if ",alloc," in line
             or ",refused," in line)
    recording.requests = hashlib.sha256("\n".join(map(",".join, asked)).encode()).digest()
    if fault:
        return fault
    number = [tuple(map(int, r.split(".")))
              for r in (*info["torch"], recording.release or info["torch"][0])]
    if not number[0] <= number[2] <= number[1]:
        return f"read as release {info['torch']}"
    got = said[0]["peak_reserved_bytes"]
    right = not whole or recording.peak in (0, got)
    return "" if right else f"peak {got}, recorded {recording.peak}"


def as_others(recording, recordings):
    """Under the other releases: (peaks compared, what is wrong)"""
    found, count, conf = {}, 0, [word for word in recording.given if word.startswith("--conf=")]
    for like in recordings:
        # addresses that only the pretended card's placement gives cannot come from another one
        if (like.work != recording.work or not like.release or like.late
            or like.requests != recording.requests or
                "FAKECARD_PLACE" in (like.notes.get("fakecard") or {})):
            continue
        limit = like.given[like.given.index("--limit") + 1] if "--limit" in like.given else "1.0"
        key = (limit, like.policy(like.release))
        count += 1
        found[key] = found.get(key) or peaks(recording.path, *key, *conf)[0]
        if found[key] != like.peak:
            return 0, f"as {like.release} {like.conf}: {found[key]}, recorded {like.peak}"
    return count, ""


def unpacked(recording, scratch):
    """It is read as often as it has peers."""
    path = os.path.join(scratch, recording.name + ".pickle")
    with lzma.open(recording.path) as packed, open(path, "wb") as file:
        shutil.copyfileobj(packed, file)
    recording.path = path


def releases(scratch):
    recordings = [Recording(p) for folder in ("versions", "pools")
                  for p in sorted(glob.glob(f"{SHARED}/{folder}/*.pickle.xz"))]
    recordings = [r for r in recordings if r.notes]
    if not recordings:
        skip("recordings of other releases: absent")
    assert len({r.name for r in recordings}) == len(recordings)
    for recording in recordings:
        unpacked(recording, scratch)
    some = recordings[::STRIDE]
    works = {r.work for r in some}
    faults = dict(each(as_recorded, [r for r in recordings if r in some or r.work in works]))
    for recording in some:
        check(f"release: {recording.name}", not faults[recording], faults[recording])
    likes, compared = list(faults), 0
    for recording, (count, fault) in each(lambda r: as_others(r, likes),
                                          [r for r in some if r.release]):
        compared += count
        if count or fault:
            check(f"{recording.name} under the other releases", not fault, fault)
        else:
            skip(f"{recording.name}: no other release has its requests")
    print(f"{compared} peaks of other releases")


def main():
    words = [w for w in sys.argv[1:] if w != "--rewrite"]
    rewrite = "--rewrite" in sys.argv
    counts(words[1:] or sorted(glob.glob("traces/*.cft")), rewrite)
    if rewrite:
        return 0
    if len(words) == 1:
        promises(sorted(glob.glob("traces/*.cft")))
        torch_recordings()
        with tempfile.TemporaryDirectory() as scratch:
            releases(scratch)
    return done()


if __name__ == "__main__":
    sys.exit(main())
