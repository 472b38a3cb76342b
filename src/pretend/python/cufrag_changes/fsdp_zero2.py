# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: each rank keeps a part of gradients and states, and whole weights from the forward to the backward pass."""
from .help import ddp, partial, shard_instead

GROUP = "ranks"
applies = partial(ddp, sentence="fully_shard(…, reshard_after_forward=False) in place of DistributedDataParallel", parts="gradients and states")
install = partial(shard_instead, reshard=False)
