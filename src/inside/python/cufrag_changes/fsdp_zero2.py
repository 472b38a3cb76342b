# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: each rank keeps a part of gradients and states, and whole weights from the forward to the backward pass."""
from .help import Left, ddp, shard_instead

NUMERICS = ""
GROUP = "ranks"


def applies(seen):
    call = ddp(seen)
    if call and call.ranks < 2:
        raise Left("each rank would keep a part of gradients and states: no part is smaller with one rank; give --ranks")
    return call and ("fully_shard(…, reshard_after_forward=False) in place of DistributedDataParallel", call.place)


def install(torch, seen):
    shard_instead(torch, reshard=False)
