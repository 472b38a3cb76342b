# SPDX-License-Identifier: Apache-2.0
"""FSDP2 in place of DDP (ZeRO stage 3): each rank keeps a part of weights, gradients and states."""
from .help import Left, ddp, shard_instead

NUMERICS = ""
GROUP = "ranks"


def applies(seen):
    call = ddp(seen)
    if call and call.ranks < 2:
        raise Left("fully_shard keeps a part of weights, gradients and states on each rank: no part is smaller with one rank; give --ranks")
    return call and ("fully_shard of each repeated block and of the model, in place of DistributedDataParallel", call.place)


def install(torch, seen):
    shard_instead(torch, reshard=True)
