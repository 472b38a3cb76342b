#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures speed and memory on this machine, against targets:

    bench.py [--long] BUILD_FOLDER [RUNS]

Replays in memory; a PyTorch snapshot into memory, against Python's pickle.load of the same file in
the same run; .cft into memory, and bytes per event of the bundled traces; a generated trace of 20 M
events (--long: 100 M), replayed while it is read, against the same in memory, and the memory of a
fifth of the length; compare with 12 policies on one thread and on two; --help and list; every
policy on one trace.

The serve recording comes from SHARED_TRACES when it is there (70 MiB plain), else the rows on
pickles are left out. Medians of RUNS (7) after one warm-up. Writes targets.csv and the table in
README.md of results/performance (BENCH_OUT). Instructions of fixed runs: `make counts`.
"""
import csv
import datetime
import glob
import json
import lzma
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TWELVE = ("pytorch;pytorch:expandable_segments:True;pytorch:max_split_size_mb:128;native;async;"
          "vmm;bfc;buddy;tlsf;cupy;rmm-pool;ggml")
SERVE, VARLEN = "traces/serve.default.cft", "traces/varlen.default.cft"
PICKLE = """
import pickle, sys, time
for _ in range(int(sys.argv[2])):
    with open(sys.argv[1], "rb") as f:
        begin = time.process_time()
        kept = pickle.load(f)
        print(time.process_time() - begin)
    del kept
"""


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(command):
    """Wall seconds, MiB of the largest resident set (of this child only), standard output."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        pid = os.posix_spawnp(command[0], command, os.environ,
                              file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - begin
        if status:
            raise ChildProcessError("failed: " + " ".join(command))
        out.seek(0)
        return seconds, usage.ru_maxrss / 1024, out.read()


def median(values):
    """And (largest - smallest) / median."""
    m = statistics.median(values)
    return m, (max(values) - min(values)) / m if m else 0


def in_turn(runs, commands, key=None):
    """Of each: (median, spread) of seconds, MiB, and a figure of the host in the JSON it prints.

    They run in turn, so that all of them see the same machine.
    """
    rows = [[] for _ in commands]
    for i in range(runs + 1):
        for command, of_command in zip(commands, rows):
            *figures, text = run(command)
            if i:
                found = json.loads(text)["results"][0]["host"][key] if key else 0
                of_command.append([*figures, float(found)])
    return [[median(column) for column in zip(*of_command)] for of_command in rows]


class Bench:
    def __init__(self, folder, runs):
        self.folder, self.runs, self.cufrag = folder, runs, os.path.join(folder, "cufrag")
        self.work, self.rows = os.path.join(folder, "bench"), []
        os.makedirs(self.work, exist_ok=True)

    def target(self, work, subject, order, wanted, value, unit, spread=""):
        met = "yes" if (value >= wanted if order == ">=" else value <= wanted) else "no"
        value = round(value) if unit in ("1/s", "MB/s") else "%.4g" % value
        self.rows.append((work, subject, "%s %s" % (order, wanted), value, unit,
                          spread if spread == "" else "%.3f" % spread, met))
        print("  %-40s %-28s %s %-10s %12s %-10s %s"
              % (work, subject, order, wanted, value, unit, met), flush=True)

    def events(self, path):
        devices = json.loads(said(self.cufrag, "info", path, "--json", "-"))["devices"]
        return sum(d["events_count"] for d in devices)

    def into_memory(self, path):
        """Seconds, spread, events, plain bytes."""
        text = said(os.path.join(self.folder, "bench_read"), str(self.runs + 1), path)
        seconds, (count, *_), (size, *_) = zip(*(map(float, line.split())
                                                 for line in text.splitlines()[1:]))
        return *median(seconds), count, size

    def replays(self):
        """Evidence is left out: settling a recording is no part of a replay."""
        plain = os.path.join(self.work, "serve.plain.cft")
        said(self.cufrag, "import", SERVE, "--no-evidence", "-o", plain)
        for policy, least in (("pytorch", 30000000), ("pytorch:expandable_segments:True", 20000000),
                              ("null", 100000000)):
            (_, _, rate), = in_turn(self.runs, [
                [self.cufrag, "replay", plain, "--policy", policy, "--stream=never", "--threads",
                 "1", "--json", "-"]], "events_per_s")
            self.target("replay in memory, events/s", "serve.default " + policy, ">=", least,
                        rate[0], "1/s", rate[1])

    def pickles(self, packed):
        plain = os.path.join(self.work, "serve.default.pickle")
        with lzma.open(packed) as source, open(plain, "wb") as out:
            shutil.copyfileobj(source, out)
        name = os.path.basename(plain)
        ours, spread, _, size = self.into_memory(plain)
        # apart: a process begins with the largest resident set of the one that starts it
        theirs = said(sys.executable, "-c", PICKLE, plain, str(self.runs + 1)).split()[1:]
        theirs, _ = median([float(word) for word in theirs])
        self.target("pickle to memory, part of pickle.load", name, "<=", 0.1, ours / theirs,
                    "ratio", spread)
        self.target("pickle to memory, MB/s", name, ">=", 700, size / ours / 1e6, "MB/s", spread)

    def files(self):
        seconds, spread, count, _ = self.into_memory(SERVE)
        self.target(".cft to memory, events/s", "serve.default", ">=", 50000000, count / seconds,
                    "1/s", spread)
        sizes = [(self.events(path), os.path.getsize(path)) for path in glob.glob("traces/*.cft")]
        together = sum(s for _, s in sizes) / sum(n for n, _ in sizes)
        # traces of a few events are all head and evidence
        worst = max(size / count for count, size in sizes if count >= 1000)
        for what, size in (("all bundled traces together", together),
                           ("largest of those from 1000 events", worst)):
            self.target(".cft with evidence, bytes per event", what, "<=", 4, size, "B")

    def streamed(self, long, fifth):
        path, part = (os.path.join(self.work, name) for name in ("long.cft", "short.cft"))
        for name, events in ((path, long), (part, fifth)):
            said(self.cufrag, "gen", "repeat", SERVE, "--events", events, "-o", name)
        ways = (path, "--stream"), (path, "--stream=never"), (part, "--stream")
        (seconds, mib, _), (_, _, rate), (_, mib_of_part, _) = in_turn(
            min(3, self.runs), [[self.cufrag, "replay", *way, "--policy", "pytorch", "--json", "-"]
                                for way in ways], "events_per_s")
        count = self.events(path)
        memory, name = count / rate[0], "%d events pytorch" % count
        self.target("streamed, of the speed in memory", name, ">=", 0.8, memory / seconds[0],
                    "ratio", seconds[1])
        self.target("streamed, peak memory", name, "<=", 256, mib[0], "MiB")
        self.target("streamed, peak memory over a fifth of the length", name, "<=", 1.1,
                    mib[0] / mib_of_part[0], "ratio")
        os.remove(path), os.remove(part)

    def threads(self):
        outs = [os.path.join(self.work, name) for name in ("one.csv", "two.csv")]
        (one, *_), (two, *_) = in_turn(self.runs, [
            [self.cufrag, "compare", VARLEN, "--policies", TWELVE, "--optimum", "bound",
             "--no-host", "--threads", str(i + 1), "--csv", out] for i, out in enumerate(outs)])
        with open(outs[0]) as a, open(outs[1]) as b:
            if a.read() != b.read():
                sys.exit("bench: the output depends on the number of threads")
        self.target("compare, 2 threads over 1", "varlen.default, 12 policies", ">=", 1.8,
                    one[0] / two[0], "ratio", two[1])

    def small(self):
        for words in (["--help"], ["list", "policies"], ["list", "metrics"], ["list", "gpus"]):
            (seconds, *_), = in_turn(self.runs, [[self.cufrag, *words]])
            self.target("start to end, ms", " ".join(["cufrag", *words]), "<=", 10,
                        seconds[0] * 1000, "ms", seconds[1])

    def policies(self):
        known = json.loads(said(self.cufrag, "list", "policies", "--json", "-"))["policies"]
        for p in known:
            if p["adaptor"] or p["name"] in ("null", "pytorch"):
                continue
            command = [self.cufrag, "replay", VARLEN, "--policy", p["name"], "--on-oom=skip",
                       "--threads", "1", "--json", "-"]
            try:
                (_, _, host), = in_turn(self.runs, [command], "host_ns_per_op")
            except ChildProcessError:  # it does not take this trace
                continue
            rule = ", linear by its rule" if p["linear"] else ""
            self.target("replay, operations/s", "varlen.default " + p["name"] + rule, ">=",
                        3000000 if rule else 5000000, 1e9 / host[0], "1/s", host[1])

    def table(self):
        def first(path, pattern):
            with open(path) as f:
                return (re.search(pattern, f.read(), re.M) or ["", "unknown"])[1]
        yield "command", "`make bench` (scripts/bench.py), median of %d runs" % self.runs
        yield "machine", "%s, %d processors" % (
            first("/proc/cpuinfo", r"^model name[^:]*: *(.*)"), os.cpu_count())
        yield "system", ", ".join((first("/etc/os-release", '^PRETTY_NAME="(.*)"'),
                                   platform.platform(), said("gcc", "--version").splitlines()[0]))
        yield "date, version", "%s, %s" % (datetime.date.today(), said(self.cufrag, "-V").strip())
        yield "targets met", "%d of %d" % (sum(row[-1] == "yes" for row in self.rows),
                                           len(self.rows))


def main(arguments):
    long = "--long" in arguments
    folder, runs = ([a for a in arguments if a != "--long"] + ["7"])[:2]
    bench = Bench(os.path.abspath(folder), int(runs))
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    shared = os.environ.get("SHARED_TRACES") or "../shared/traces"
    packed = os.path.join(shared, "torch/serve.default.pickle.xz")
    bench.replays()
    if os.path.exists(packed):
        bench.pickles(packed)
    bench.files()
    bench.streamed(*("100M", "20M") if long else ("20M", "4M"))
    bench.threads()
    bench.small()
    bench.policies()
    out = os.environ.get("BENCH_OUT", "results/performance")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "targets.csv"), "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([
            ["work", "subject", "target", "measured", "unit", "spread_ratio", "met"], *bench.rows])
    page = os.path.join(out, "README.md")
    text = open(page).read() if os.path.exists(page) else "# Performance\n\n| | |\n"
    rows = "".join("| %s | %s |\n" % row for row in bench.table())
    with open(page, "w") as f:
        f.write(re.sub(r"\| \| \|\n(\|.*\n)*", lambda _: "| | |\n|---|---|\n" + rows, text, count=1))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
