# SPDX-License-Identifier: Apache-2.0
"""Ranks that are alike, or stages of two, of which the second needs most: layout_groups.py alikeN|stagesN"""
import inspect
import os
import sys

import torch
import torch.distributed as dist

kind, rank, world = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
with open("starts", "a") as starts:
    starts.write("%d %s\n" % (world, kind))
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
named = {"group_desc": "stages"} if "group_desc" in inspect.signature(dist.new_group).parameters else {}  # since PyTorch 2.4
stages = [dist.new_group([n, n + 1], **named) for n in range(0, world, 2)] if kind.startswith("stages") else []
last = bool(stages) and rank % 2 == 1
layer = torch.nn.Linear(2048, 2048 * (4 if last else 1), device="cuda")
optimizer = torch.optim.AdamW(layer.parameters())
for _ in range(5):
    x = torch.randn(64 * int(kind[-1]), 2048, device="cuda")
    if stages and not last:
        dist.send(x, rank + 1, group=stages[rank // 2])
    elif stages:
        dist.recv(x, rank - 1, group=stages[rank // 2])
    layer(x).square().mean().backward()
    dist.all_reduce(x)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
