# SPDX-License-Identifier: Apache-2.0
"""FSDP2 with AdamW: layout_shapes.py BATCH LOG. Writes how many operators on lists ran on fake tensors, which DTensor makes for the shapes of their results."""
import os
import sys

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.fsdp import fully_shard

count, dispatch = [0], FakeTensorMode.dispatch


def counted(self, func, *args, **kwargs):
    count[0] += "_foreach_" in str(func)
    return dispatch(self, func, *args, **kwargs)


FakeTensorMode.dispatch = counted
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
for _ in range(4):
    model(torch.randn(int(sys.argv[1]) * 256, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
with open(sys.argv[2], "a") as f:
    f.write("%d\n" % count[0])
dist.destroy_process_group()
