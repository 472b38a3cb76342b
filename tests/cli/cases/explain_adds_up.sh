# Explanations add up for every policy, at the peak and at parts of the events: call sites to the
# live and non-releasable bytes, kinds to the live bytes.
python3 - <<'END'
import json, os, subprocess
def ask(*words):
    run = subprocess.run([os.environ["CUFRAG"], *words, "-q", "--json", "-"], capture_output=True, text=True)
    return json.loads(run.stdout) if run.stdout else run.stderr
names = [p["name"] for p in ask("list", "policies")["policies"] if not p["adaptor"]] + [
    "pytorch:" + s for s in ("expandable_segments:True", "max_split_size_mb:20", "garbage_collection_threshold:0.6")]
checked = 0
for i, trace in enumerate(("leak.frames", "streams.default", "gnn.default", "mempool.default", "cudagraph.default")):
    path = f"{os.environ['TRACES']}/{trace}.cft"
    events = ask("info", path)["devices"][0]["events_count"]
    for k, name in enumerate(names):
        at = ("peak", f"event:{events // 3}", f"event:{events * 2 // 3}")[(i + k) % 3]
        x = ask("explain", path, "--policy", name, "--at", at, "--by", ("line", "function", "file", "module", "stack")[k % 5])
        if isinstance(x, str):
            if "needs" not in x: print(trace, name, x)
            continue
        total = {n: sum(s[n] for s in x["sites"]) for n in ("allocated_bytes", "requested_bytes", "waiting_bytes", "non_releasable_bytes")}
        total["non_releasable_bytes"] += x["unheld_bytes"]
        if any(total[n] != x[n] for n in total) or sum(x["kinds"].values()) != x["allocated_bytes"]:
            print(trace, name, at, "does not add up", total)
        checked += 1
print("checked" if checked > 125 else f"only {checked} were checked")
END
