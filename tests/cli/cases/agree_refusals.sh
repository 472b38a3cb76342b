# replay, compare, explain and diagnose agree about what is refused, for every policy, limit and card; and about its figures
python3 - << 'END'
import json, os, subprocess
cufrag, traces = os.environ["CUFRAG"], os.environ["TRACES"]

def run(*args):
    ran = subprocess.run([cufrag, *args, "--quiet"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr

def answer(*args):
    return json.loads(run(*args, "--json", "-")[1])

cells = wrong = refused = 0
for name in ("streams.default", "mempool.default", "cudagraph.default", "gnn.default", "leak.frames"):
    trace = "%s/%s.cft" % (traces, name)
    for policy in ("recorded", "pytorch:expandable_segments:True", "vmm", "buddy"):
        peak = answer("replay", trace, "--policy", policy)["results"][0]["peak_reserved_bytes"]
        for option, part in [("--limit", p) for p in (0.4, 0.7, 0.9, 1)] + [("--capacity", 0.6)]:
            at = str((int(peak * part) >> 21) + (300 if option == "--capacity" else 0) << 21)
            asked = (trace, "--policy", policy, option, at)
            replay = answer("replay", *asked)["results"][0]
            compare = answer("compare", *asked, "--optimum", "off", "--threads", "1")["results"][0]
            status, text, _ = run("explain", *asked, "--at", "oom", "--json", "-")
            found = json.loads(text) if not status else None
            kinds = {f["verdict"]: f for f in answer("diagnose", *asked)["findings"]}
            ooms = [f for f in kinds.values() if f["verdict"].startswith("oom")]
            gate = run("diagnose", *asked, "--fail-on", "oom-needed,oom-fragmentation")[0]
            says = [bool(replay["completed"]), bool(compare["completed"]), found is None, not ooms, gate == 0]
            cells += len(says)
            same = len(set(says)) == 1
            if found and ooms:
                refused += 1
                oom, numbers = found["oom"], ooms[0]["numbers"]
                same &= found["event"] == numbers["event"] and oom["live_bytes"] == numbers["live_bytes"]
                same &= oom["verdict"] in kinds and (oom["verdict"] == "leak") == ("leak" in kinds)
                same &= found["peak_reserved_bytes"] >= found["reserved_bytes"]
                cells += 3
            if not same:
                wrong += 1
                print(asked, says, found and found["oom"]["verdict"], list(kinds))
print(cells >= 600, refused >= 40, wrong)
END
