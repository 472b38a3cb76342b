# SPDX-License-Identifier: Apache-2.0
"""Checks of several cases; their first argument is the case, which comments leave out."""
import csv
import json
import os
import re
import time

def load(case, name):
    with open(name) as f:
        return json.load(f)

def lines(case, name):
    with open(name) as f:
        return f.read().splitlines()

def rows(case, name):
    with open(name) as f:
        return list(csv.DictReader(f))

def write(case, name, text):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as f:
        f.write(text)

def peak(case, name="run.cft"):
    """The most that PyTorch's own policy is asked for at once, by any card."""
    said = case.said("replay", name, "--policy", "pytorch")
    return max(int(n) for n in re.findall(r"^peak_requested_bytes +(\d+)", said, re.M))

def tried(case, change, name="a.json"):
    """What the change asks for at its peak, as advise says."""
    return next(c["requested_bytes"] for c in load(case, name)["changes"] if c["change"] == change)

def by_hand(case, changes, only="", options="", more="", bytes_off=64):
    """What advise says of each (or `only` these) is what the program with that argument asks for."""
    advice = case.run("advise --changes %s --json a.json %s -- %s" % (changes, options, more))
    for name in (only or changes).split(","):
        case.run("record %s -- %s %s" % (options, more, name))
        hand, said = peak(case), tried(case, name)
        assert hand > 0 and abs(said - hand) <= bytes_off, (name, said, hand)
    case.log = advice

def asked(case, name):
    """[time, what, address, size] of all requests."""
    found = [line.split(",") for line in case.said("export", name, "--to", "csv").splitlines()[1:]]
    return [[row[0], *row[4:7]] for row in found if row[4] in ("alloc", "free")]

def agree(case, count):
    """So many ranks ended, and none saw another value than it should."""
    assert len(re.findall(r"rank \d done", case.log)) == count, "not all ended"
    case.never(" is .*, not ")

def peaks(case, name="run.cft"):
    return [(d["peak"]["live_bytes"], d["allocs_count"], d["frees_count"]) for d in case.info(name)["devices"]]

def reserved(case, said, policy, share=0):
    """The program said what was reserved at most; a replay of live.cft reserves as much."""
    live = int(re.search(r"^reserved (\d+)", said, re.M)[1])
    replayed = int(re.search(r"^peak_reserved_bytes +(\d+)", case.said("replay", "live.cft", "--policy", policy), re.M)[1])
    assert live > 0 and abs(live - replayed) <= share * replayed, (policy, live, replayed)

def left(case):
    """Processes that are still there in this case's folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if pid != str(os.getpid()) and os.readlink("/proc/%s/cwd" % pid).startswith(os.getcwd()):
                found.append(pid)
        except OSError:
            pass
    return found

def layout(case, line, status=0, **variables):
    """Of the program's layouts on an H100 (or another --gpu), rows.csv."""
    card = "" if "--gpu" in line else "--gpu h100"
    line = "layout --policies pytorch --check 0 --csv rows.csv %s %s" % (card, line)
    unlike = {"STARTED": str(time.time_ns())}  # nothing that is kept was recorded so
    case.run(line, status, **{"PYTHONPATH": os.path.abspath("site-packages"), **unlike, **variables})

def launched(case, said, options, command, itself=True):
    """The ranks of a layout say what they say under the launcher itself, too."""
    runs = ["layout --gpu h100 --world 2 --policies pytorch --fresh --check 0 %s --- " % options + command]
    for line in runs + ["record --gpu h100 --- " + command] * itself:
        case.run(line, HF_HUB_OFFLINE="1")
        assert said in lines(case, "seen"), lines(case, "seen")
        os.remove("seen")

def ended(case, kind, group, said):
    """A signal to cufrag ("-": its group) once its ranks wait; they are gone at most 25 s later."""
    case.shell("""set -m; : > ranks.log
        $CUFRAG record --no-gpu --ranks 0,1 -o run.cft -- %s ranks_end.py deaf > ranks.log 2>&1 &
        for _ in {600..1}; do grep -qx deaf ranks.log && break || sleep 0.1; done
        kill -%s -- %s$!
        wait $!
        pids=$(sed -n 's/^rank [01] is //p' ranks.log)
        for _ in {250..1}; do kill -0 $pids || break; sleep 0.1; done
        for pid in $pids; do kill -0 $pid && echo "a rank is left"; done
        cat ranks.log""" % (case.python, kind, group))
    case.never("^a rank is left")
    case.match("^rank 0 is ")
    case.match("^rank 1 is ")
    case.match(said)

def framework(case, *packages):
    """Two ranks, with the figures of a card where these releases have them (empty: they vary)."""
    case.needs(" ".join(("package", *packages)))
    case.run("record --gpu h200 --ranks 0,1 -- " + case.case)
    case.verify()
    got = sorted(re.findall(r"%s ([\d.]*\d) done (\d+) (\d+) (\d+)" % case.case, case.log))
    assert len(got) == 2, got
    torch = ".".join(map(str, case.release("torch")))
    known = [row for row in rows(case, case.root + "/tests/pretend/support/frameworks.csv") if row["job"] == case.case and row["torch"] == torch]
    for (version, *figures), row in zip(got, known):
        for name, figure in zip(("requests", "requested_bytes", "peak_requested"), figures):
            assert row["version"] != version or row[name] in ("", figure), (name, row, got)

def job(case, name, count, *packages):
    """The first `count` figures of each rank are what an H200 measured, to the byte."""
    case.needs("torch==2.11.0")
    case.needs(" ".join(("package", *packages)) if packages else "torch==2.11.0")
    case.run("record --gpu h200 --ranks 0,1 --- python %s/results/programs/harness.py %s" % (case.root, name))
    kinds = "requests", "requested_bytes", "peak_requested", "peak_allocated", "peak_reserved"
    known = [[row["rank"], *(row[kind + "_card"] for kind in kinds)][:count + 1] for row in rows(case, case.root + "/results/pretend/jobs.csv") if row["job"] == name]
    got = sorted(text.split(", ")[:count + 1] for text in re.findall(r'RESULT \[(.*), "ok"\]END', case.log))
    assert len(known) == 2 and got == known, (known, got)

def hide(case, kind, names, options=""):
    """The program of this kind with each of the names that cufrag asks for hidden from it."""
    def gone(name, **variables):
        if os.path.exists(name + ".cft"):
            os.remove(name + ".cft")
        log = case.run("record %s -o %s.cft -- %s" % (options, name, kind), status=..., PYTHONPATH="support/hidden", **variables)
        # the numbers of streams are not the same twice
        return [row[:3] for row in asked(case, name + ".cft")], [line for line in log.splitlines() if line.startswith("said")]
    gone("base", HIDDEN_SEEN=os.path.abspath("seen"))  # compiles, which takes memory of its own
    base = gone("base")
    assert base[0] and "said done" in base[1]
    seen = sorted({line for line in lines(case, "seen") if "._" in line or line.startswith("triton")})
    seen = [a for a, b in zip(seen, seen[1:] + [""]) if not b.startswith(a + ".")]  # not the modules of other names
    seen = [name for name in seen if re.match(names, name)]
    assert seen, lines(case, "seen")
    for name in seen:
        found = gone("run", HIDDEN=name)
        case.expect("said done")
        said = re.search("went on without|not recorded|is lost", case.log)
        assert said or found == base, "something else without " + name
