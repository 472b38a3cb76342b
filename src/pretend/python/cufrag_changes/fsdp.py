# SPDX-License-Identifier: Apache-2.0
"""FSDP2 in place of DDP (ZeRO stage 3): each rank keeps a part of weights, gradients and states."""
from .help import ddp, partial, shard_instead

GROUP = "ranks"
applies = partial(ddp, parts="weights, gradients and states",
                  sentence="fully_shard of each repeated block and of the model, in place of DistributedDataParallel")
install = partial(shard_instead, reshard=True)
