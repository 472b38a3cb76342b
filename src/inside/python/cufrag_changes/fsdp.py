# SPDX-License-Identifier: Apache-2.0
"""FSDP2 in place of DDP (ZeRO stage 3): each rank keeps a part of weights, gradients and states."""
from .help import ddp, shard_instead

NUMERICS = ""
GROUP = "ranks"


def applies(seen):
    return ddp(seen, "fully_shard of each repeated block and of the model, in place of DistributedDataParallel", "weights, gradients and states")


def install(torch, seen):
    shard_instead(torch, reshard=True)
