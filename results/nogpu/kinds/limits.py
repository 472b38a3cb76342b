# SPDX-License-Identifier: Apache-2.0
"""At the limit: batches found by running out of memory, pools of one's own, a part of the card, blocks that do not fit between others, segments that grow."""
import gc

import torch
import torch.nn as nn


def step(net, n):
    x = torch.randn(n, 2048, device="cuda")
    net(x).square().mean().backward()
    for p in net.parameters():
        p.grad = None


def main():
    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(0.25)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048)) for _ in range(4)]).cuda()
    n, good = 1000, 0
    while True:
        try:
            step(net, n)
            good, n = n, n * 2
        except torch.OutOfMemoryError:
            gc.collect()
            torch.cuda.empty_cache()
            break
    low, high = good, n
    while high - low > 500:
        n = (low + high) // 2
        try:
            step(net, n)
            low = n
        except torch.OutOfMemoryError:
            high = n
            gc.collect()
    print("greatest", low)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty((1 + 7 * k % 31) << 20, device="cuda") for k in range(30)]
    kept = kept[::2]
    with torch.cuda.use_mem_pool(pool):
        kept += [torch.empty(20 << 20, device="cuda") for _ in range(5)]
    more = [torch.empty((3 + k % 11) << 19, device="cuda", dtype=torch.half) for k in range(200)]
    del more[::3]
    more += [torch.empty(k * 1000003 % (50 << 20), device="cuda", dtype=torch.uint8) for k in range(1, 100)]
    del kept, pool
    gc.collect()
    torch.cuda.empty_cache()
    torch.empty(6 << 30, device="cuda", dtype=torch.uint8)
    free, total = torch.cuda.mem_get_info()
    try:
        torch.empty(total, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError as error:
        print("refused", str(error)[:60])


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
