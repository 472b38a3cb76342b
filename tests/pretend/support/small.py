# SPDX-License-Identifier: Apache-2.0
"""For all cases: modules that most of them need, and small trainings that several record."""
import functools
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["F", "cuda", "os", "nn", "step", "sys", "time", "torch"]

class cuda:
    """cuda.ones(8) is torch.ones(8, device="cuda")."""
for name in "arange empty full ones rand randint randn randperm tensor zeros".split():
    setattr(cuda, name, functools.partial(getattr(torch, name), device="cuda"))

def step(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

def train(model, *shape, steps=3, kind=torch.optim.AdamW, say=None, **options):
    """With inputs of that shape."""
    optimizer = kind(model.parameters(), **options)
    for _ in range(steps):
        loss = model(cuda.randn(*shape)).square().mean()
        step(optimizer, loss)
        if say:
            say("loss", loss.item())

def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 4).cuda()

def blocks(count, width=256, wide=1024):
    return [nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width)) for _ in range(count)]

def until(there):
    """At most for a minute or so."""
    for _ in range(600):
        if there():
            return
        time.sleep(0.1)

def clean():
    """The environment for a command that is not part of the recording."""
    return {k: v for k, v in os.environ.items() if not k.startswith("CUFRAG_") and k != "LD_PRELOAD"}

def most_reserved():
    """Prints device 0's peak under a policy: struct frag_live_stats, reserved_bytes[0].peak."""
    import ctypes

    import cufrag.torch
    stats = (ctypes.c_int64 * 512)(ctypes.sizeof(ctypes.c_int64) * 512)
    cufrag.torch.library().frag_live_stats(0, stats)
    print("reserved", stats[1 + 7 * 12 + 1])

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

def failed_capture():
    x = torch.ones(64, 256, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sum().item()
    except RuntimeError as error:
        print("refused", str(error).splitlines()[0])
    torch.cuda.synchronize()
