"""The recorder knows the limit, or that none was set: nothing is inferred. KIND."""
from support.small import cuda, sys, torch

# case: none
# run: record --gpu h100 -- 1
# verify
# check: info()["devices"][0]["recording"]["limit_source"] == "none"
# check: info()["devices"][0]["trims_count"] == 1 and not info()["devices"][0]["unsure_trims_count"]

# case: set
# run: record --gpu h100 -- 0.5
# verify
# check: 39e9 < info()["limit_bytes"] < 43e9

# case: changed
# run: record --capacity 4G -- changed
# verify
# match: refused at 2048
# match: refused at 1024
# check: "limit        changed while it ran" in said("info", "run.cft") and "verified identical" in said("info", "run.cft")
# check: " was reserved under a limit of 1 GiB" in said("explain", "run.cft")
# check: " was reserved under a limit of 2 GiB" in said("explain", "run.cft", "--at", "oom:1")
if sys.argv[1] == "changed":
    kept = [cuda.empty(256 << 20, dtype=torch.uint8)]
    for part in (0.5, 0.25):
        torch.cuda.set_per_process_memory_fraction(part)
        try:
            kept = [cuda.empty(256 << 20, dtype=torch.uint8) for _ in range(9)]
        except torch.OutOfMemoryError:
            print("refused at", int(part * 4096))
            kept = []
    sys.exit()
if float(sys.argv[1]) < 1:
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[1]))
kept = []
for i in range(10):
    part = cuda.empty(900 << 20, dtype=torch.uint8)
    kept.append(cuda.empty(600 << 20, dtype=torch.uint8))
    del part
torch.cuda.empty_cache()
kept.append(cuda.empty(16 << 30, dtype=torch.uint8))
