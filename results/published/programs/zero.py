# SPDX-License-Identifier: Apache-2.0
"""zero.py yes|no: PyTorch's recipe of ZeroRedundancyOptimizer: 20 layers of 2,000 x 2,000, two ranks, one step; this is one of them."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer


def peak(when):
    if rank == 0:
        print("figure %s %.0f" % (when, torch.cuda.max_memory_allocated(0) // 1e6), flush=True)


rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("gloo" if len(sys.argv) > 2 else "nccl")
net = nn.Sequential(*(nn.Linear(2000, 2000).to(rank) for _ in range(20)))
peak("model")
ddp = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
peak("ddp")
if sys.argv[1] == "yes":
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.Adam, lr=0.01, foreach=False)
else:
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01, foreach=False)  # as in 2021, when the page was written
nn.functional.mse_loss(ddp(torch.randn(20, 2000).to(rank)), torch.randn(20, 2000).to(rank)).backward()
peak("before")
optimizer.step()
peak("after")
