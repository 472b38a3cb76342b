# SPDX-License-Identifier: Apache-2.0
"""torch_matrix.py WORKLOAD: what torch_matrix.sh records.

Requests are pseudo-random and the same in every release."""
import gc
import random
import sys

import torch

OOM = torch.cuda.OutOfMemoryError


def empty(n, device="cuda"):
    return torch.empty(n, dtype=torch.uint8, device=device)


def size(rng, mean, spread, most):
    return int(min(most, rng.lognormvariate(mean, spread))) + 1


def drop(rng, keep, most, share):
    while len(keep) > most or (keep and rng.random() < share):
        keep.pop(rng.randrange(len(keep)))


def mix(steps=3000):
    """sizes and lifetimes at random on one stream, the cache emptied now and then"""
    rng, keep = random.Random(1), []
    for i in range(steps):
        keep.append(empty(size(rng, 14.5, 2.6, 1 << 30)))
        drop(rng, keep, 150, 0.45)
        if i % 1000 == 700:
            torch.cuda.empty_cache()
    return keep


def streams(steps=2000):
    """four streams, blocks used on others than their own"""
    rng, keep = random.Random(2), []
    lanes = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(3)]
    for _ in range(steps):
        with torch.cuda.stream(rng.choice(lanes)):
            block = empty(size(rng, 14, 2.2, 1 << 28))
        if rng.random() < 0.3:
            block.record_stream(rng.choice(lanes))
        keep.append(block)
        del block
        drop(rng, keep, 100, 0.42)
    return keep


def oom(steps=2000):
    """under a limit: retries, refusals that are caught"""
    rng, keep, other = random.Random(3), [], torch.cuda.Stream()
    for _ in range(steps):
        n = size(rng, 16.5, 2.2, 6 << 30)
        try:
            if rng.random() < 0.15:
                with torch.cuda.stream(other):
                    keep.append(empty(n))
            else:
                keep.append(empty(n))
        except OOM:
            del keep[: len(keep) // 3]
        drop(rng, keep, 90, 0.42)
    return keep


def mempool(seed=4, steps=1000, most=1 << 29, share=0.3, count=2, **how):
    """private pools of one's own beside the default one"""
    rng, keep = random.Random(seed), []
    pools = [torch.cuda.MemPool(**how) for _ in range(count)]
    for i in range(steps):
        n = size(rng, 15, 2, most)
        if rng.random() < 0.5:
            with torch.cuda.use_mem_pool(rng.choice(pools)):
                keep.append(empty(n))
        else:
            keep.append(empty(n))
        drop(rng, keep, 40, share)
        if i == 700:
            torch.cuda.empty_cache()
    return keep, pools


def nosplit():
    """a pool that never splits"""
    return mempool(5, 800, 64 << 20, 0.35, 1, no_split=True)


def graphs():
    """captures into private pools, one graph given up"""
    rng, keep, made = random.Random(6), [], {}

    def eager(steps):
        for _ in range(steps):
            keep.append(empty(size(rng, 14, 2, 1 << 27)))
            drop(rng, keep, 30, 0.4)

    eager(200)
    for k in range(3):
        graph, inner, held = torch.cuda.CUDAGraph(), random.Random(k), []
        pool = made[0][0].pool() if k == 2 else None
        with torch.cuda.graph(graph, pool=pool):
            for _ in range(60):
                held.append(empty(size(inner, 14, 2, 1 << 27)))
                drop(inner, held, 12, 0.45)
        made[k] = (graph, held[:3])
        del held
        eager(150)
    del graph, made[1]
    gc.collect()
    torch.cuda.empty_cache()
    eager(300)
    return keep, made


WORK = {f.__name__: f for f in (mix, streams, oom, mempool, nosplit, graphs)}

if __name__ == "__main__":
    held = WORK[sys.argv[1]]()
    torch.cuda.synchronize()
