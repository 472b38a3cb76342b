# SPDX-License-Identifier: Apache-2.0
"""States of Adam in 8 bits."""
from .help import adam, inner_optimizer, needs, replace_step

NUMERICS = "states of the optimizer are rounded to 8 bits"
GROUP = "optimizer"


def applies(seen):
    found = adam(seen)
    if not found:
        return None
    needs("bitsandbytes")
    return "bitsandbytes.optim.%s8bit in place of %s" % (found[0], found[0]), found[1]


def install(torch, seen):
    import bitsandbytes

    def step(optimizer):
        def make():
            cls = getattr(bitsandbytes.optim, type(optimizer).__name__ + "8bit")
            return cls([{"params": g["params"], "lr": g["lr"]} for g in optimizer.param_groups])
        inner_optimizer(seen, optimizer, make).step()
    replace_step(torch, step)
