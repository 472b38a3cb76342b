"""A request that the card refuses, which the program catches."""
from support.small import cuda, torch

# case: recorded
# run: record --capacity 1G --context 512M
# match: caught OutOfMemoryError
# verify
# check: not re.search("limit of|fraction", said("explain", "run.cft") + said("diagnose", "run.cft"))
# run: fit run.cft --policy pytorch

# case: live
# run: run --capacity 1G --context 512M --policy vmm
# match: caught OutOfMemoryError 5
kept = []
try:
    while True:
        kept.append(cuda.empty(100 << 20, dtype=torch.uint8))
except torch.cuda.OutOfMemoryError as error:
    print("caught", type(error).__name__, len(kept))
kept.clear()
torch.cuda.empty_cache()
cuda.ones(10).sum().item()
