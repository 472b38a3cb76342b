# SPDX-License-Identifier: Apache-2.0
"""Small programs that meet cufrag's hooks: programs.py KIND."""
import sys

import torch
from torch import nn


def train(model, steps=3):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def net():
    return nn.Sequential(*[nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)) for _ in range(3)]).cuda()


def plain():
    train(net())
    scaler = torch.cuda.amp.GradScaler()
    x = torch.randn(10, device="cuda", requires_grad=True)
    scaler.scale(x.sum()).backward()
    print("said", (torch.arange(1000, device="cuda") % 3 == 0).sum().item(), scaler.get_scale())


def compiled():
    train(torch.compile(net()))
    counts = torch.zeros(1000, device="cuda")
    double[(1,)](counts, 1000, BLOCK=1024)
    print("said", counts.sum().item())


def ranks():
    import torch.distributed as dist
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    told = [{"rank": dist.get_rank()}]
    dist.broadcast_object_list(told, src=1)
    print("said", told)
    group, cpu = dist.new_group(list(range(dist.get_world_size()))), dist.new_group(backend="gloo")
    dist.all_reduce(torch.ones(4, device="cuda"), group=group)
    dist.all_reduce(torch.ones(4), group=cpu)
    train(nn.parallel.DistributedDataParallel(net()))
    dist.destroy_process_group()


def sharded():
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group("nccl")
    model = net()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    train(model)
    dist.destroy_process_group()


if sys.argv[1] == "compiled":
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

globals()[sys.argv[1]]()
print("said done", flush=True)
