"""The recorder knows the limit, or that none was set: nothing is inferred. KIND."""
import contextlib
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
# check: re.search(r"limit +changed while it ran[^#]*verified identical", said("info", "run.cft"))
# check: ["under a limit of %d GiB" % n in said("explain", "run.cft", "--at", "oom:%d" % (3 - n)) for n in (2, 1)] == [True] * 2
if sys.argv[1] == "changed":
    kept = [cuda.empty(256 << 20, dtype=torch.uint8)]
    for part in (0.5, 0.25):
        torch.cuda.set_per_process_memory_fraction(part)
        with contextlib.suppress(torch.OutOfMemoryError):
            kept = [cuda.empty(256 << 20, dtype=torch.uint8) for _ in range(9)]
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
