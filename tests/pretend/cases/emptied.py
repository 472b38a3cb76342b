"""Each empty_cache is written down, whatever stands beside it; settings that cost memory are named: KIND."""
from support.small import cuda, sys, torch

# case: calls
# run: record --capacity 2G -- 1
# verify
# python:
#   text = said("info", "run.cft")
#   assert "limit        none was set" in text and re.search(r"empty_cache +4 calls", text), text

# case: fence
# run: PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:20,expandable_segments:True record --capacity 16G --
# check: "without your max_split_size_mb:20,expandable_segments:True the same program needs" in said("summary", "run.cft")

# case: unused
# run: record -- unused
# check: re.search(r"steady: 2.25 GiB of the 2.54 GiB reserved stay unused", said("summary", "run.cft"))


def block(mib):
    return cuda.empty(mib << 20, dtype=torch.uint8)


if "unused" in sys.argv:  # states that pass through the card while they are loaded
    kept = [block(100) for _ in range(24)]
    kept = None
    for _ in range(300):
        block(100), block(200)
elif sys.argv[1:]:
    kept = [block(100) for _ in range(5)]
    del kept
    torch.cuda.empty_cache()
    kept = block(900)  # a large request beside it
    torch.cuda.empty_cache()  # returns nothing
    del kept
    torch.cuda.empty_cache()
    torch.cuda.empty_cache()
    kept = block(30)
else:
    kept = []
    for _ in range(60):
        a, b = block(91), block(46)
        kept.append(block(2))
        del a, b
