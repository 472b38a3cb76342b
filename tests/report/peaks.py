# SPDX-License-Identifier: Apache-2.0
"""Does reduction keep every peak? For every chart of every trace the largest value drawn must be that of results.json."""
import csv
import json
import os
import subprocess
import tempfile

from checks import check


CAUSES = ["requested_bytes", "rounding_bytes", "waiting_bytes", "non_releasable_bytes", "releasable_bytes", "other_bytes"]


def rows(folder, base):
    path = os.path.join(folder, base + ".csv")
    if not os.path.exists(path):
        return None
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def top(table, column, **where):
    values = [int(r[column]) for r in table if r[column] and all(r[k] == v for k, v in where.items())]
    return max(values, default=0)


def charts(folder, name, prefix, results):
    """results: of one device, as results.json has them."""
    memory, peak, loss = (rows(folder, prefix + n) for n in ("memory", "peak", "loss"))
    calls, pareto, gpus = (rows(folder, prefix + n) for n in ("calls", "pareto", "gpus"))
    latency, sizes, addresses, cdf = (rows(folder, prefix + n) for n in ("latency", "sizes", "addresses", "cdf"))
    for r in results:
        p, tag = r["policy"], f"{name} {prefix}{r['policy']}"
        want = r["peak_reserved_bytes"]
        for column, metric in (("reserved_max_bytes", "peak_reserved_bytes"), ("requested_max_bytes", "peak_requested_bytes"),
                               ("active_max_bytes", "peak_active_bytes")):
            got = top(memory, column, policy=p)
            check(f"memory {tag} {metric}", got == r[metric], f"{got} not {r[metric]}")
        check(f"peak {tag}", top(peak, "peak_reserved_bytes", policy=p) == want)
        check(f"peak {tag} adds up", all(sum(int(row[c]) for c in CAUSES) == want for row in peak if row["policy"] == p))
        ends = sum(row["state"] == "oom" for row in memory if row["policy"] == p)
        check(f"memory {tag} ends", ends == (not r["completed"]), f"{ends} ends")
        if loss and any(l["policy"] == p for l in loss):
            check(f"loss {tag}", top(loss, "reserved_bytes", policy=p) == want, f"{top(loss, 'reserved_bytes', policy=p)} not {want}")
        if pareto:
            check(f"pareto {tag}", top(pareto, "peak_reserved_bytes", policy=p) == want)
            check(f"pareto {tag} time", top(pareto, "driver_ns", policy=p) == r["modelled_ns"])
        check(f"calls {tag}", top(calls, "ns", policy=p, call="all") == r["modelled_ns"])
        if gpus and r["completed"]:
            check(f"gpus {tag}", top(gpus, "peak_reserved_bytes", policy=p) == want)
        # a chart of latencies has only what a logarithmic axis can show
        if latency and any(x["policy"] == p and x["clock"] == "driver" and x["class"] != "free" for x in latency):
            got = max(int(x["max_ns"]) for x in latency
                      if x["policy"] == p and x["clock"] == "driver" and x["class"] != "free")
            check(f"latency {tag}", got == r["alloc_ns"]["all"]["max"], f"{got} not {r['alloc_ns']['all']['max']}")
    if sizes:
        n = sum(int(s["count"]) for s in sizes if s["kind"] == "size_bytes")
        check(f"sizes {name} {prefix}", n >= max(r["allocs_count"] for r in results) > 0, f"{n}")
    for p in {a["policy"] for a in addresses or ()}:
        # boxes are whole lines of the map, each of its main use: a hundredth or so of the axis is rounded
        want = next(r["peak_reserved_bytes"] for r in results if r["policy"] == p)
        boxes = [[int(a[c]) for c in ("low_bytes", "high_bytes", "from_event", "to_event")] for a in addresses if a["policy"] == p]
        axis = max(high for _, high, _, _ in boxes)
        there = [sorted((low, high) for low, high, begin, end in boxes if begin == moment or begin < moment < end)
                 for moment in {begin for _, _, begin, _ in boxes}]
        got = max(sum(high - low for low, high in now) for now in there)
        check(f"addresses {name} {prefix}{p}: boxes", len(boxes) <= 5000 and all(
            low < high <= above for now in there for (low, high), (above, _) in zip(now, [*now[1:], (axis, 0)])))
        check(f"addresses {name} {prefix}{p}", abs(got - want) <= axis / 25, f"{got} of {want}")
    for r in results:
        drawn = [int(c["ns"]) for c in cdf or () if c["policy"] == r["policy"] and c["clock"] == "driver"]
        if drawn:
            want = r["alloc_ns"]["all"]["max"]
            check(f"cdf {name} {prefix}{r['policy']}", max(drawn) == want, f"{max(drawn)} not {want}")


def tables(out, root):
    """Every row of every table is as wide as its head, and its numbers can be parsed; results.csv is results.json."""
    for path in sorted(f for f in os.listdir(out) if f.endswith(".csv")):
        with open(os.path.join(out, path), newline="", encoding="utf-8") as f:
            head, *lines = csv.reader(f)
        check(f"rows of {path}", lines and all(len(line) == len(head) and "nan" not in line for line in lines))
    for row, r in zip(rows(out, "results"), root["results"]):
        wrong = [k for k, v in row.items() if k in r and not isinstance(r[k], (str, dict)) and
                 json.loads(v or "null") != r[k] and abs(float(v) - r[k]) > 1e-14 * abs(r[k])]
        check(f"results.csv of {row['trace']} {row['policy']}", row["policy"] == r["policy"] and not wrong and
              sum(k in r for k in row) > 30, f"{wrong}")


def ranks(program, traces, out):
    """Several traces as the ranks of a job: each mark of the chart is the peak of its result."""
    ran = subprocess.run([program, "compare", *traces, "--out", out, "--formats", "svg", "--no-host"],
                         capture_output=True, text=True, check=False)
    check("compare ranks", ran.returncode == 0, ran.stderr[-300:])
    with open(os.path.join(out, "results.json"), encoding="utf-8") as f:
        results = {(r["policy"], r["trace"]): r["peak_reserved_bytes"] for r in json.load(f)["results"]}
    marks = rows(out, "ranks")
    check("ranks", len(marks) == len(results) and all(int(m["peak_reserved_bytes"]) == results[m["policy"], m["unit"]]
                                                      for m in marks), f"{len(marks)} of {len(results)}")


def explained(program, trace, other, out):
    """explain, diagnose and diff: what they draw over time is as high as what replay says, and explain names who is highest."""
    name = os.path.basename(trace)

    def answer(command, *args):
        folder = os.path.join(out, name + command)
        ran = subprocess.run([program, command, *args, "--out", folder], capture_output=True, text=True, check=False)
        check(f"{command} {name}", ran.returncode == 0, ran.stderr[-300:])
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as f:
            return folder, json.load(f)

    def peaks(path, *policy):
        ran = subprocess.run([program, "replay", path, *policy, "--json", "-", "--quiet"], capture_output=True, text=True, check=False)
        return json.loads(ran.stdout)["results"]

    for policy in ((), ("--policy", "buddy")):
        of = peaks(trace, *policy)
        # as rows of a chart: the lines of a moment lie on each other
        folder, found = answer("explain", trace, "--at", "peak", *policy)
        live, held = rows(folder, "explain-live"), rows(folder, "explain-held")
        reserved, live = ([r for r in live if (r["name"] == "reserved") == line] for line in (True, False))
        check(f"explain {name} {policy} reserved", top(reserved, "bytes") in [r["peak_reserved_bytes"] for r in of])
        got = top(live, "upto_bytes")
        check(f"explain {name} {policy} live", got == found["live_highest"]["all_bytes"] and
              got in [r["peak_active_bytes"] for r in of], f"{got} of {[r['peak_active_bytes'] for r in of]}")
        check(f"explain {name} {policy} held", top(held, "upto_bytes") == found["non_releasable_highest"]["all_bytes"] >= found["non_releasable_bytes"])
        for table, highest in ((live, found["live_highest"]), (held, found["non_releasable_highest"])):
            moment = max(table, key=lambda r: int(r["upto_bytes"]))["event"]
            there = [r for r in table if r["event"] == moment and r["name"] != "all others"]
            most = max(there, key=lambda r: int(r["bytes"]), default=None)
            check(f"explain {name} {policy} holder", (highest["site"] or None) == (most["name"] if most and int(most["bytes"]) else None))
        folder, found = answer("diagnose", trace, *policy)
        for i, r in enumerate(of):
            drawn = rows(folder, f"diagnose-{i + 1}")
            check(f"diagnose {name} {policy} {i}", top(drawn, "bytes", name="reserved") == r["peak_reserved_bytes"])
    folder, found = answer("diff", trace, other)
    drawn = rows(folder, "diff-memory")
    for side, path in (("before", trace), ("after", other)):
        of = max(peaks(path), key=lambda r: r["peak_reserved_bytes"])
        check(f"diff {name} {side}", top(drawn, "bytes", name=side + ": reserved") == found[side]["peak_reserved_bytes"] == of["peak_reserved_bytes"])
        check(f"diff {name} {side} live", top(drawn, "bytes", name=side + ": live") == of["peak_active_bytes"])


def stand_in(scratch):
    """A path whose gnuplot writes an empty picture: the tables are looked at, and pages have gnuplot itself (run.py)."""
    path = os.path.join(scratch, "bin")
    os.mkdir(path)
    os.symlink(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli/data/empty_gnuplot.sh"), os.path.join(path, "gnuplot"))
    return path + os.pathsep


def check_all(program, traces):
    real = os.environ["PATH"]
    with tempfile.TemporaryDirectory() as scratch:
        others = "" if os.environ.get("FRAG_TEST_NIGHTLY") else stand_in(scratch)
        for trace, *how in [[t] for t in traces] + [[t, "--capacity", "3G"] for t in traces if "leak.frames" in t]:
            name = os.path.basename(trace) + " ".join(how)
            out = os.path.join(scratch, name)
            os.environ["PATH"] = others * ("serve" not in name) + real
            ran = subprocess.run([program, "compare", trace, *how, "--out", out, "--formats", "svg", "--no-host"],
                                 capture_output=True, text=True, check=False)
            check(f"compare {name}", ran.returncode == 0, ran.stderr[-300:])
            if ran.returncode:
                continue
            with open(os.path.join(out, "results.json"), encoding="utf-8") as f:
                root = json.load(f)
            tables(out, root)
            for t in root["traces"]:
                d = t["device_ordinal"]
                results = [r for r in root["results"] if r.get("device_ordinal", d) == d]
                charts(out, name, f"dev{d}-" if len(root["traces"]) > 1 else "", results)
        drawn = [t for t in traces if any(n in t for n in ("gnn.default", "leak.frames", "mempool", "streams", "modelpar"))]
        for trace in drawn:
            explained(program, trace, drawn[0], scratch)
        ranks(program, [t for t in traces if "leak.frames" in t or "seeddemo" in t], os.path.join(scratch, "ranks"))
    os.environ["PATH"] = real
