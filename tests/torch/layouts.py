# SPDX-License-Identifier: Apache-2.0
"""A small model, sharded over a mesh that begins the process group itself: layouts.py --batch N."""
import os
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

batch, world = int(sys.argv[sys.argv.index("--batch") + 1]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (world,))
net = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True, device="cuda") for _ in range(3)])
for layer in net:
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(5):
    net(torch.randn(batch, 128, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
