# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: each rank keeps a part of gradients and states, and whole weights from the forward to the backward pass."""
from .help import ddp, shard_instead

NUMERICS = ""
GROUP = "ranks"


def applies(seen):
    return ddp(seen, "fully_shard(…, reshard_after_forward=False) in place of DistributedDataParallel", "gradients and states")


def install(torch, seen):
    shard_instead(torch, reshard=False)
