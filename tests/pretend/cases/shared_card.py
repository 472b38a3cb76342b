"""Processes on one card share its memory while they live, and on others they do not: KIND."""
import torch.multiprocessing as mp
from support.small import cuda, os, sys, torch

# case: full
# run: record --gpu rtx3090 --capacity 10G -- 0
# match: refused
# check: re.search(r"256 MiB was refused.* device 0, another process on the card, held 6 GiB and its context", \
#        said("explain", "run.cft"))

# case: together
# run: record --gpu rtx3090 --capacity 16G -- 0 0
# match 2: 20 parts
# check: 4000 < int(re.search(r"parts, (\d+) MiB", log)[1]) < 16384 - 11264 - 2 * 250
# python:
#   fit = said("fit", "run.cft", "--policy", "pytorch")
#   assert "processes shared a card" in fit and re.search(r"^pytorch +1[12][.\d]* GiB", fit, re.M), fit
#   assert re.search(r"^2 processes held 1[12]\S* GiB of one card together", said("summary", "run.cft"), re.M)

# case: apart
# run: record --gpu rtx3090 --capacity 10G --gpus 2 -- 1
# match: 20 parts
# check: "shared" not in said("fit", "run.cft", "--policy", "pytorch")


def take(parts):
    return [cuda.empty(1 << 28, dtype=torch.uint8) for _ in range(parts)]


def work(card):
    os.environ["CUDA_VISIBLE_DEVICES"] = card
    try:
        kept = take(20)
        print(len(kept), "parts,", torch.cuda.mem_get_info()[0] >> 20, "MiB are free")
    except torch.OutOfMemoryError:
        print("refused")


if __name__ == "__main__":
    kept = take(24)
    for card in sys.argv[1:]:
        child = mp.get_context("spawn").Process(target=work, args=(card,))
        child.start()
        child.join()
