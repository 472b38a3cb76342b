# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 1: each rank keeps a part of the optimizer's states, and updates a part of the weights."""
from .help import adam, ddp, inner_optimizer, original, replace_step

GROUP = "optimizer"


def applies(seen):
    return ddp(seen, "", "the states") and adam(seen, "torch.distributed.optim.ZeroRedundancyOptimizer(…, optimizer_class=%s)")


def install(torch, seen):
    own = {name: original(torch, name) for name in ("Adam", "AdamW")}

    def step(optimizer):
        def make():
            from torch.distributed.optim import ZeroRedundancyOptimizer
            plain = {k: v for k, v in optimizer.defaults.items() if k != "decoupled_weight_decay"}
            return ZeroRedundancyOptimizer([p for g in optimizer.param_groups for p in g["params"]],
                                           optimizer_class=own[type(optimizer).__name__], **plain)
        inner_optimizer(seen, optimizer, make).step()
    replace_step(torch, step)
