#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures speed and memory on this machine, against the targets where there are some:

    bench.py [--long] BUILD_FOLDER [RUNS]

Replays in memory; a PyTorch snapshot into memory, against Python's pickle.load of the same file in
the same run; .cft into memory, and bytes per event of the bundled traces; a generated trace of 20 M
events (--long: 100 M), replayed while it is read, against the same in memory, and the memory of a
fifth of the length; compare with 12 policies on one thread and on two; --help and list; every
policy on one trace; import.

The serve recording comes from SHARED_TRACES when it is there (70 MiB plain), else the rows on
pickles are left out. Medians of RUNS (7) after one warm-up. With valgrind the instructions per unit
of work are put beside. Writes targets.csv, bench.csv and README.md in results/performance
(BENCH_OUT).
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

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
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
PAGE = """# Performance

| | |
|---|---|
| command | `make bench` (scripts/bench.py), median of {runs} runs after one warm-up |
| machine | {machine} |
| system | {system} |
| date, version | {date}, {version} |

The spread is (largest - smallest) / median of the runs; figures of a shared machine vary,
instructions (callgrind, the whole process minus an empty one) do not. Replays in memory: host time
of the replay itself, of a trace without evidence. Reading: processor time inside of one process,
warm, Python's and ours alike. Streamed: the whole process, against the replay alone of the same
trace in memory. Peak memory is the largest resident set of the process.

{met} of {all} targets are met (targets.csv). bench.csv has everything that was measured.
"""


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short(number):
    return "%.4g" % number


def spread_text(spread):
    return spread if spread == "" else "%.3f" % spread


def look_up(document, key):
    for part in key.split("."):
        document = document[int(part) if isinstance(document, list) else part]
    return float(document)


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


def in_turn(runs, commands, *keys):
    """Of each: (median, spread) of seconds, MiB, then each key of the JSON that it prints.

    They run in turn, so that all of them see the same machine.
    """
    rows = [[] for _ in commands]
    for i in range(runs + 1):
        for command, of_command in zip(commands, rows):
            *figures, text = run(command)
            document = json.loads(text) if keys else None
            if i:
                of_command.append(figures + [look_up(document, key) for key in keys])
    return [[median(column) for column in zip(*of_command)] for of_command in rows]


class Bench:
    def __init__(self, folder, runs):
        self.folder, self.runs, self.cufrag = folder, runs, os.path.join(folder, "cufrag")
        self.work, self.rows, self.targets, self.empty = os.path.join(folder, "bench"), [], [], None
        os.makedirs(self.work, exist_ok=True)

    def row(self, what, subject, value, unit, spread=""):
        self.rows.append((what, subject, value, unit, self.runs, spread_text(spread)))
        print("  %-28s %-34s %12s %s" % (what, subject, value, unit), flush=True)

    def target(self, work, subject, order, wanted, value, unit, spread="", instructions=""):
        met = "yes" if (value >= wanted if order == ">=" else value <= wanted) else "no"
        value = round(value) if unit in ("1/s", "MB/s") else short(value)
        self.targets.append((work, subject, "%s %s" % (order, wanted), value, unit,
                             spread_text(spread), instructions, met))
        print("  %-40s %-28s %s %-10s %12s %-10s %s"
              % (work, subject, order, wanted, value, unit, met), flush=True)

    def executed(self, *words):
        text = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                               self.cufrag, *words], capture_output=True, text=True).stderr
        return int(re.search(r"Collected : (\d+)", text)[1])

    def instructions(self, count, unit, *words):
        """Of a command less those of an empty one, for each unit; "" without valgrind."""
        if not shutil.which("valgrind"):
            return ""
        self.empty = self.empty or self.executed("--version")
        executed = self.executed(*words, "--json", "/dev/null") - self.empty
        return "%s per %s" % (short(executed / count), unit)

    def events(self, path):
        devices = json.loads(said(self.cufrag, "info", path, "--json", "-"))["devices"]
        return sum(d["events_count"] for d in devices)

    def into_memory(self, path):
        """Seconds, spread, events, plain bytes."""
        line = said(os.path.join(self.folder, "bench_read"), str(self.runs), path)
        return [float(word) for word in line.split()]

    def replays(self):
        """Evidence is left out: settling a recording is no part of a replay."""
        plain = os.path.join(self.work, "serve.plain.cft")
        said(self.cufrag, "import", SERVE, "--no-evidence", "-o", plain)
        count = self.events(plain)
        for policy, least in (("pytorch", 30000000), ("pytorch:expandable_segments:True", 20000000),
                              ("null", 100000000)):
            words = ["replay", plain, "--policy", policy, "--stream=never", "--threads", "1"]
            (seconds, mib, rate), = in_turn(self.runs, [[self.cufrag, *words, "--json", "-"]],
                                            "results.0.host.events_per_s")
            self.target("replay in memory, events/s", "serve.default " + policy, ">=", least,
                        rate[0], "1/s", rate[1], self.instructions(count, "event", *words))
            self.row("replay_process_s", "serve.default " + policy, short(seconds[0]), "s")
            self.row("replay_peak_mib", "serve.default " + policy, short(mib[0]), "MiB")

    def pickles(self, packed):
        plain = os.path.join(self.work, "serve.default.pickle")
        if not os.path.exists(plain):
            with lzma.open(packed) as source, open(plain, "wb") as out:
                shutil.copyfileobj(source, out)
        name = os.path.basename(plain)
        ours, spread, count, size = self.into_memory(plain)
        # apart: a process begins with the largest resident set of the one that starts it
        theirs = said(sys.executable, "-c", PICKLE, plain, str(self.runs + 1)).split()[1:]
        theirs, _ = median([float(word) for word in theirs])
        self.row("read_pickle_s", name, short(ours), "s", spread)
        self.row("python_pickle_load_s", name, short(theirs), "s")
        self.target("pickle to memory, part of pickle.load", name, "<=", 0.1, ours / theirs,
                    "ratio", spread)
        self.target("pickle to memory, MB/s", name, ">=", 700, size / ours / 1e6, "MB/s", spread,
                    self.instructions(count, "event", "info", plain))
        out = os.path.join(self.work, "imported.cft")
        (seconds, mib), = in_turn(self.runs, [[self.cufrag, "import", plain, "-o", out]])
        self.row("import_s", name, short(seconds[0]), "s", seconds[1])
        self.row("import_peak_mib", name, short(mib[0]), "MiB")
        self.row("import_output_mib", name, short(os.path.getsize(out) / 2**20), "MiB")

    def files(self):
        seconds, spread, count, _ = self.into_memory(SERVE)
        self.target(".cft to memory, events/s", "serve.default", ">=", 50000000, count / seconds,
                    "1/s", spread, self.instructions(count, "event", "info", SERVE))
        sizes = {path: (self.events(path), os.path.getsize(path))
                 for path in sorted(glob.glob("traces/*.cft"))}
        for path, (count, size) in sizes.items():
            name = "%s (%d events)" % (os.path.basename(path)[:-4], count)
            self.row("cft_bytes_per_event", name, short(size / count), "B")
        together = sum(s for _, s in sizes.values()) / sum(n for n, _ in sizes.values())
        # traces of a few events are all head and evidence
        worst = max(size / count for count, size in sizes.values() if count >= 1000)
        for what, size in (("all bundled traces together", together),
                           ("largest of those from 1000 events", worst)):
            self.target(".cft with evidence, bytes per event", what, "<=", 4, size, "B")

    def streamed(self, long, fifth):
        path, part = (os.path.join(self.work, name) for name in ("long.cft", "short.cft"))
        for name, events in ((path, long), (part, fifth)):
            said(self.cufrag, "gen", "repeat", SERVE, "--events", events, "-o", name)
        count = self.events(path)
        ways = (path, "--stream"), (path, "--stream=never"), (part, "--stream")
        (seconds, mib, _), (_, _, rate), (_, mib_of_part, _) = in_turn(
            min(3, self.runs), [[self.cufrag, "replay", *way, "--policy", "pytorch", "--json", "-"]
                                for way in ways], "results.0.host.events_per_s")
        memory, name = count / rate[0], "%d events" % count
        self.row("streamed_process_s", name, short(seconds[0]), "s", seconds[1])
        self.row("streamed_events_per_s", name, round(count / seconds[0]), "1/s", seconds[1])
        self.row("in_memory_replay_s", name + ", reading not counted", short(memory), "s")
        name += " pytorch"
        self.target("streamed, of the speed in memory", name, ">=", 0.8, memory / seconds[0],
                    "ratio", seconds[1], self.instructions(
                        self.events(part), "event", "replay", part, "--policy", "pytorch",
                        "--stream", "--threads", "1"))
        self.target("streamed, peak memory", name, "<=", 256, mib[0], "MiB")
        self.target("streamed, peak memory over a fifth of the length", name, "<=", 1.1,
                    mib[0] / mib_of_part[0], "ratio")
        os.remove(path), os.remove(part)

    def threads(self):
        outs = [os.path.join(self.work, name) for name in ("one.csv", "two.csv")]
        (one, _), (two, _) = in_turn(self.runs, [
            [self.cufrag, "compare", VARLEN, "--policies", TWELVE, "--optimum", "bound",
             "--no-host", "--threads", str(i + 1), "--csv", out] for i, out in enumerate(outs)])
        with open(outs[0]) as a, open(outs[1]) as b:
            if a.read() != b.read():
                sys.exit("bench: the output depends on the number of threads")
        self.row("compare_12_s", "varlen.default, 1 thread", short(one[0]), "s")
        self.row("compare_12_s", "varlen.default, 2 threads", short(two[0]), "s", two[1])
        self.target("compare, 2 threads over 1", "varlen.default, 12 policies", ">=", 1.8,
                    one[0] / two[0], "ratio", two[1])

    def small(self):
        for words in (["--help"], ["list", "policies"], ["list", "metrics"], ["list", "gpus"]):
            (seconds, _), = in_turn(self.runs, [[self.cufrag, *words]])
            executed = "%d in all" % self.executed(*words) if shutil.which("valgrind") else ""
            self.target("start to end, ms", " ".join(["cufrag", *words]), "<=", 10,
                        seconds[0] * 1000, "ms", seconds[1], executed)

    def policies(self):
        known = json.loads(said(self.cufrag, "list", "policies", "--json", "-"))["policies"]
        linear = {p["name"]: p["linear"] for p in known if not p["adaptor"]}
        for policy in [*linear, "pytorch:expandable_segments:True"]:
            command = [self.cufrag, "replay", VARLEN, "--policy", policy, "--on-oom=skip",
                       "--threads", "1", "--json", "-"]
            try:
                (_, _, host, refused), = in_turn(
                    self.runs, [command], "results.0.host.host_ns_per_op", "results.0.ooms_count")
            except ChildProcessError:  # it does not take this trace
                continue
            # what is refused costs little: say so
            name = "varlen.default " + policy
            name += " (%d refused)" % refused[0] if refused[0] else ""
            self.row("policy_ops_per_s", name, round(1e9 / host[0]), "1/s", host[1])
            if policy != "null" and not policy.startswith("pytorch"):
                rule = ", linear by its rule" if linear[policy] else ""
                self.target("replay, operations/s", name + rule, ">=",
                            3000000 if rule else 5000000, 1e9 / host[0], "1/s", host[1])

    def page(self):
        def first(path, pattern):
            with open(path) as f:
                return (re.search(pattern, f.read(), re.M) or ["", "unknown"])[1]
        u, memory = os.uname(), int(first("/proc/meminfo", r"^MemTotal: *(\d+)")) / 2**20
        return PAGE.format(
            runs=self.runs, machine="%s, %d processors, %.0f GiB" % (
                first("/proc/cpuinfo", r"^model name[^:]*: *(.*)"), os.cpu_count(), memory),
            system="%s, %s %s, %s, Python %s" % (
                first("/etc/os-release", '^PRETTY_NAME="(.*)"'), u.sysname, u.machine,
                said("gcc", "--version").splitlines()[0], platform.python_version()),
            date=datetime.datetime.now(datetime.timezone.utc).date(),
            version=said(self.cufrag, "--version").strip(),
            met=sum(row[-1] == "yes" for row in self.targets), all=len(self.targets))


def main(arguments):
    long = "--long" in arguments
    folder, runs = ([a for a in arguments if a != "--long"] + ["7"])[:2]
    bench, out = Bench(os.path.abspath(folder), int(runs)), "results/performance"
    shared, out = os.environ.get("SHARED_TRACES", ""), os.environ.get("BENCH_OUT", out)
    shared = os.path.abspath(shared or os.path.join(ROOT, "../shared/traces"))
    os.chdir(ROOT)
    packed, notes = os.path.join(shared, "torch/serve.default.pickle.xz"), []
    if not shutil.which("valgrind"):
        notes.append("There was no valgrind: instructions are left out.")
    bench.replays()
    if os.path.exists(packed):
        bench.pickles(packed)
    else:
        notes.append("The big recordings were not at hand: the rows on pickles are left out.")
    bench.files()
    bench.streamed(*("100M", "20M") if long else ("20M", "4M"))
    bench.threads()
    bench.small()
    bench.policies()
    os.makedirs(out, exist_ok=True)
    for name, head, rows in (
            ("bench", "what,subject,value,unit,runs,spread_ratio", bench.rows),
            ("targets", "work,subject,target,measured,unit,spread_ratio,instructions,met",
             bench.targets)):
        with open(os.path.join(out, name + ".csv"), "w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([head.split(","), *rows])
    with open(os.path.join(out, "README.md"), "w") as f:
        f.write(bench.page() + "".join("\n%s\n" % note for note in notes))
    print(*notes, "bench: wrote targets.csv, bench.csv and README.md in " + out, sep="\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
