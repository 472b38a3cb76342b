# fit and tune on made traces: what they answer is what a replay says, gaps included
cat > check.py <<'END'
import json
import os
import subprocess

PAGE = 2 << 20

def cufrag(*words):
    words = map(str, (os.environ["CUFRAG"], *words, "--context", "100M", "--json", "-"))
    return json.loads(subprocess.run([*words], stdout=subprocess.PIPE).stdout)

def make(seed, count, most):
    """Random blocks of 1 to 40 MiB, at most that many at a time."""
    live, path = {}, f"made{seed}.csv"
    with open(path, "w") as f:
        print("action,id,size", file=f)
        for i in range(count):
            seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            slot = (seed >> 40) % most
            if slot in live:
                print(f"free,{live.pop(slot)},", file=f)
            else:
                live[slot] = i
                print(f"alloc,{i},{(1 << 20) + (seed >> 20) % (39 << 20)}", file=f)
    return path

def completes(path, policy, capacity):
    said = cufrag("replay", path, "--policy", policy, "--capacity", capacity)
    return said["results"][0]["completed"]

def least(path, policy, capacity):
    assert completes(path, policy, capacity) and not completes(path, policy, capacity - PAGE)

# a larger card fails where a smaller one does: found, bracketed, and said
for seed, policy in (5, "pytorch"), (8, "pytorch:max_split_size_mb:21"), (2, "bfc"):
    path = make(seed, 3000, 30)
    found = cufrag("fit", path, "--policy", policy)["results"][0]["traces"][0]
    least(path, policy, found["min_capacity_bytes"])
    least(path, policy, found["safe_capacity_bytes"])
    assert found["gaps"] and found["min_capacity_bytes"] < found["gaps"][0]["first_bytes"]
    for gap in found["gaps"]:
        assert not completes(path, policy, gap["first_bytes"])
        assert not completes(path, policy, gap["last_bytes"])

def tune(paths, *words):
    return cufrag("tune", *paths, "--space", "pytorch", "--baseline", "pytorch", *words)

def cost(t):
    return t["peak_reserved_bytes"], t["modelled_ns"]

# no two of the front, and nothing outside of it, contradict its definition
path = make(8, 800, 25)
found = tune([path], "--budget", 120, "--objective", "time")
tried = [cost(t) for t in found["tried"] if t["completed"]]
for size, ns in map(cost, found["front"]):
    assert not any(s < size and n < ns for s, n in tried)
assert found["front"] and cost(found["best"])[1] == min(ns for _, ns in tried)
best = tune([path], "--budget", 20, "--objective", "card")["best"]
least(path, best["policy"], best["min_capacity_bytes"])

# several traces: the worst peak and the sum of times; a cap holds beside a limit of a fraction
paths = make(3, 300, 10), make(4, 900, 30)
both = tune(paths, "--budget", 20)
policy = both["best"]["policy"]
alone = [tune([path], "--baseline", policy, "--budget", 1)["baseline"] for path in paths]
sizes, ns = zip(*map(cost, alone))
assert cost(both["best"]) == (max(sizes), sum(ns))
cap = both["baseline"]["peak_reserved_bytes"] - PAGE
tried = tune(paths, "--budget", 20, "--limit", 0.9, "--cap", cap)["tried"]
assert all(t["peak_reserved_bytes"] <= cap for t in tried if t["completed"])
END
python3 check.py
