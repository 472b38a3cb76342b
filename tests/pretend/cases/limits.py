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
if float(sys.argv[1]) < 1:
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[1]))
kept = []
for i in range(10):
    part = cuda.empty(900 << 20, dtype=torch.uint8)
    kept.append(cuda.empty(600 << 20, dtype=torch.uint8))
    del part
torch.cuda.empty_cache()
kept.append(cuda.empty(16 << 30, dtype=torch.uint8))
