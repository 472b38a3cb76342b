# SPDX-License-Identifier: Apache-2.0
"""FSDP2 in place of DDP: each rank keeps a part of weights, gradients and states."""
from .help import Left

NUMERICS = ""


def applies(seen):
    call = next((c for c in seen.calls if c.name == "DistributedDataParallel"), None)
    if not call:
        return None
    import torch.distributed as dist
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    raise Left("fully_shard in place of DistributedDataParallel keeps a part of weights, gradients and states on each rank: %s" % (
        "no part is smaller with one rank; give --ranks" if ranks < 2 else
        "it is not tried: blocks are wrapped where the model is made; compare with a copy of the program that does it (cufrag compare)"))


def install(torch, seen):
    raise Left("not tried")
