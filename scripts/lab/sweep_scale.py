#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How `cufrag sweep` scales: efficiency of two workers, many traces in one go, many workers simulated.

    sweep_scale.py BUILD_FOLDER [COUNT]

Makes COUNT (default 10,000) traces of the bundled ones' size (those below 100,000 events, so that it takes
minutes): half are the bundled recordings as they are, evidence and all, packed so that each file has a content of its own; half are variants by
`cufrag gen repeat`, other steps of them as often as it takes. Then

  - a part of them with one worker, two workers, one rank and two ranks of mpirun, in turn
  - all of them with two workers: time, processor time, memory of all processes together
  - the measured costs of all of them, scheduled as sweep does (the largest file first, to whoever is
    free), on 64 and 1,024 workers. Rank 0 takes what it measurably takes for an answer, one
    after the other: the simulation stops where its single thread is full. The same for the recordings
    of SHARED_TRACES, where they are, each as often as it takes to make COUNT.

Writes results/performance/sweep.csv and sweep.md. Needs mpirun for the rows of ranks.
"""
import csv
import glob
import gzip
import heapq
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OUT = "results/performance"
EVENTS_MAX = 100000  # larger bundled traces are left out, so that the whole takes minutes


def run(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


# ---- traces

def count_of(cufrag, path, what):
    found = re.search(r"^  %s +([\d,]+)" % what, run([cufrag, "info", path]), re.M)
    return int(found.group(1).replace(",", "")) if found else 0


def make_traces(cufrag, folder, count):
    bundled = [p for p in sorted(glob.glob("traces/*.cft")) if count_of(cufrag, p, "events") < EVENTS_MAX]
    bytes_of = {p: open(p, "rb").read() for p in bundled}
    steps = {p: count_of(cufrag, p, "steps") for p in bundled}
    repeats = [p for p in bundled if steps[p] >= 8]
    os.makedirs(folder)
    for i in range(count):
        if i % 2 == 0:
            base = bundled[i // 2 % len(bundled)]
            with open("%s/%05d.cft.gz" % (folder, i), "wb") as f:
                with gzip.GzipFile("%d" % i, "wb", 1, f, mtime=0) as g:
                    g.write(bytes_of[base])
            continue
        base = repeats[i // 2 % len(repeats)]
        n = steps[base]
        turn = i // 2 // len(repeats)
        first = 2 + turn % (n - 4)
        last = min(n - 1, first + 2 + turn // (n - 4) % (n - 4))
        times = max(1, n // (last - first + 1)) + turn // 100
        run([cufrag, "gen", "repeat", base, "--steps", "%d..%d" % (first, last), "--times", str(times), "-q",
             "-o", "%s/%05d.cft" % (folder, i)])


# ---- measuring

def own_seconds(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid):
    """Of the process and its children; shared pages are counted once."""
    children = open("/proc/%d/task/%d/children" % (pid, pid)).read().split()
    kib = 0
    for p in [str(pid)] + children:
        text = open("/proc/%s/smaps_rollup" % p).read()
        kib += int(re.search(r"^Pss: +(\d+)", text, re.M).group(1))
    return kib / 1024


def watched(command):
    """Seconds, processor seconds of all, of the first process alone, MiB of all at most."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own = most = 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        try:
            own = own_seconds(child.pid)
            most = max(most, memory_mib(child.pid))
        except (OSError, AttributeError):
            pass
        time.sleep(0.02 if time.perf_counter() - begin < 20 else 0.2)
    if os.waitstatus_to_exitcode(status):
        sys.exit("failed: " + " ".join(command))
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, own, most


def prefer(nice):
    """Where other programs run and this may: before them for what is compared, behind for what is long."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        with open("/proc/self/autogroup", "w") as f:  # where sessions share the processors
            f.write(str(nice))
    except OSError:
        pass


def sweep(cufrag, work, traces, *options, front=()):
    target = "%s/out.sqlite" % work
    for path in glob.glob(target + "*"):
        os.unlink(path)
    return watched([*front, cufrag, "sweep", "--list", traces, "-o", target, *options])


# ---- simulating

def simulate(costs, workers, answer_s):
    """Seconds until the last answer is in. costs: in the order of handing out."""
    free_at = 0.0  # rank 0
    running = [(cost, w) for w, cost in enumerate(costs[:workers])]
    waiting = iter(costs[workers:])
    heapq.heapify(running)
    while running:
        done, w = heapq.heappop(running)
        begin = max(done, free_at)
        free_at = begin + answer_s
        cost = next(waiting, None)
        if cost is not None:
            heapq.heappush(running, (begin + cost, w))
    return free_at


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    os.chdir(TOP)
    try:
        os.setsid()  # a group of its own, for prefer()
    except OSError:
        pass
    build, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    cufrag, work = os.path.abspath(build + "/cufrag"), os.path.abspath(build + "/sweep_scale")
    if len(glob.glob(work + "/traces/*")) != count:
        shutil.rmtree(work, ignore_errors=True)
        make_traces(cufrag, work + "/traces", count)
    paths = sorted(glob.glob(work + "/traces/*"))
    whole, part, few = work + "/whole", work + "/part", work + "/few"
    for name, list_ in ((whole, paths), (part, random.Random(1).sample(paths, min(1000, len(paths))))):
        open(name, "w").write("\n".join(list_) + "\n")
    rows = []

    ways = {"1 worker": (("--threads", "1"), ()), "2 workers": (("--threads", "2"), ())}
    if shutil.which("mpirun"):
        mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")
        ways["mpirun, 2 ranks"] = ((), mpirun)
    taken = {w: [] for w in ways}
    prefer(-20)
    for _ in range(3):
        for way, (options, front) in ways.items():
            taken[way].append(sweep(cufrag, work, part, *options, front=front)[0])
    prefer(int(os.environ.get("SWEEP_NICE", "5")))
    one = min(taken["1 worker"])
    for way in ways:
        s = min(taken[way])
        rows.append(["%d traces, %s" % (len(open(part).read().split()), way), s, statistics.median(taken[way]),
                     "" if way == "1 worker" else one / s / 2])

    wall, cpu, own, mib = sweep(cufrag, work, whole, "--threads", "2", "--costs", work + "/costs.csv")
    answer = own / len(paths)
    file_mib = os.path.getsize(work + "/out.sqlite") / 2**20
    total = {"wall": wall, "cpu": cpu, "own": own, "mib": mib, "file": file_mib, "load": os.getloadavg()[0]}

    simulated = []
    sets = [("bundled-size", work + "/costs.csv", cpu - own, 1)]
    shared = [p for p in glob.glob(os.environ.get("SHARED_TRACES", "../shared/traces") + "/torch/*.pickle*")]
    if shared:
        open(few, "w").write("\n".join(shared) + "\n")
        _, few_cpu, few_own, _ = sweep(cufrag, work, few, "--threads", "1", "--costs", work + "/few.csv")
        sets.append(("of the shared recordings", work + "/few.csv", few_cpu - few_own, None))
    for name, path, seconds, times in sets:
        costs = [(os.path.getsize(r["path"]), int(r["ns"]) / 1e9) for r in csv.DictReader(open(path))]
        # others ran beside: as much as the workers' processor time, and each in its proportion
        slower = sum(c for _, c in costs) / seconds
        costs = [(b, c / slower) for b, c in costs]
        costs = (costs * (count // len(costs) + 1))[:count] if times is None else costs
        costs = [c for _, c in sorted(costs, reverse=True)]
        for workers in (2, 64, 1024):
            makespan = simulate(costs, workers, answer)
            simulated.append([name, len(costs), sum(costs), max(costs), workers, makespan,
                              sum(costs) / workers / makespan])
    write(rows, total, answer, simulated, paths, cufrag)


def write(rows, total, answer, simulated, paths, cufrag):
    size = sum(os.path.getsize(p) for p in paths) / 2**20
    machine = run(["scripts/build/machine.sh"]).strip() if os.path.exists("scripts/build/machine.sh") else ""
    with open(OUT + "/sweep.csv", "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["what", "seconds", "median_seconds", "efficiency_ratio"])
        for r in rows:
            w.writerow([r[0], "%.3f" % r[1], "%.3f" % r[2], r[3] and "%.3f" % r[3]])
        w.writerow(["%d traces, 2 workers" % len(paths), "%.1f" % total["wall"], "", ""])
        for s in simulated:
            w.writerow(["simulated: %d %s on %d workers" % (s[1], s[0], s[4]), "%.2f" % s[5], "", "%.3f" % s[6]])
    md = ["# sweep", "", "| | |", "|---|---|", "| command | `scripts/lab/sweep_scale.py build/release` |",
          "| machine | %s |" % machine, "| version | %s |" % run([cufrag, "--version"]).split()[1], "",
          "Each trace under its recorded settings, `caching`, `expandable` and `vmm`. Other programs ran on the machine",
          "(load %.1f at the end), so the table compares the smallest of three runs." % total["load"], "",
          "| what | seconds | median | efficiency |", "|---|---|---|---|"]
    for r in rows:
        md.append("| %s | %.2f | %.2f | %s |" % (r[0], r[1], r[2], r[3] and "%.0f %%" % (100 * r[3])))
    md += ["", "## %d traces in one go" % len(paths), "",
           "%d files, %.0f MiB, half of them the bundled recordings below 100,000 events with their evidence (larger ones would take" %
           (len(paths), size),
           "above a quarter of an hour here), half variants of these by `gen repeat`;",
           "two workers: **%.0f s**, %.0f s of processor time, of them %.1f s in the process that distributes traces and collects results" %
           (total["wall"], total["cpu"], total["own"]),
           "(%.2f ms per answer, which bounds how many workers one process can feed; shards have no such bound). All processes together held **%.0f MiB** at most. Results: %.0f MiB of SQLite." %
           (1000 * answer, total["mib"], total["file"]), "",
           "## Many workers", "",
           "Simulated from the measured costs (of processor time), the largest file first, to whoever is free; rank 0 takes %.2f ms for each answer,"
           % (1000 * answer), "one after the other.", "",
           "| recordings | costs | largest | workers | seconds | efficiency |", "|---|---|---|---|---|---|"]
    for s in simulated:
        md.append("| %d %s | %.0f s | %.2f s | %d | %.2f | %.0f %% |" % (s[1], s[0], s[2], s[3], s[4], s[5], 100 * s[6]))
    open(OUT + "/sweep.md", "w").write("\n".join(md) + "\n")


if __name__ == "__main__":
    main()
