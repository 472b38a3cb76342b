# SPDX-License-Identifier: Apache-2.0
"""Small programs for tests/torch/run.sh: train.py WHAT [BATCH]"""
import os
import sys

import torch
import torch.nn as nn


def train(model, batch, steps=3, width=512):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(batch, 128, width, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 4).cuda()


def most_reserved():
    """The peak of device 0 as the library counts it: struct frag_live_stats, reserved_bytes[0].peak."""
    import ctypes

    import cufrag.torch
    stats = (ctypes.c_int64 * 512)(ctypes.sizeof(ctypes.c_int64) * 512)
    cufrag.torch.library().frag_live_stats(0, stats)
    return stats[1 + 7 * 12 + 1]


def plain():
    p = torch.cuda.get_device_properties(0)
    print(p.name, "%d.%d" % (p.major, p.minor), p.multi_processor_count)
    train(encoder(), 8)


def oom():
    kept = []
    try:
        while True:
            kept.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as error:
        print("caught", type(error).__name__, len(kept))
    kept.clear()
    torch.cuda.empty_cache()
    torch.ones(10, device="cuda").sum().item()


def values():
    x = torch.tensor([1, 2, 3], device="cuda")
    mask = torch.tensor([0, 1, 0, 0, 1], device="cuda") > 0
    print("values", x.sum().item(), x.max().item(), mask.nonzero().flatten().tolist(),
          torch.unique(torch.tensor([5, 1, 2, 1], device="cuda")).tolist(), torch.equal(x, x.clone()))


def graph():
    model, x = nn.Linear(256, 256).cuda(), torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(x)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = model(x)
    captured.replay()
    print(y.shape)


def live():
    """Whatever a policy may meet: an out of memory, threads with streams, two devices, a child, a graph."""
    import gc
    import threading

    import cufrag.torch
    print("policy", cufrag.torch.policy())
    try:
        torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        print("refused:", error)

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(200):
                x = torch.empty(1000 * (i % 37 + 1), device="cuda")
                x.record_stream(torch.cuda.default_stream())
                del x
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    moved = torch.ones(1000, device="cuda:1").to("cuda:0")
    torch.cuda.set_device(1)
    del moved
    torch.cuda.set_device(0)
    kept = torch.ones(1 << 20, device="cuda")
    child = os.fork()
    if not child:
        del kept
        gc.collect()
        os._exit(0)
    print("child", os.waitpid(child, 0)[1])
    for _ in range(2):
        graph()
        gc.collect()
        torch.cuda.empty_cache()


def ddp():
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    train(nn.parallel.DistributedDataParallel(encoder()), 4)
    print("rank %d of %d done" % (dist.get_rank(), dist.get_world_size()))
    dist.destroy_process_group()


def batch():
    train(encoder(), int(sys.argv[2]))


globals()[sys.argv[1]]()
if os.environ.get("CUFRAG_RUN"):
    print("reserved", most_reserved())
