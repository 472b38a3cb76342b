# SPDX-License-Identifier: Apache-2.0
"""States of Adam in 8 bits."""
from .help import adam, inner_optimizer, needs, replace_step

NUMERICS = "states of the optimizer are rounded to 8 bits"
GROUP = "optimizer"


def adam_of_bitsandbytes(seen, sentence):
    found = adam(seen)
    if not found:
        return None
    needs("bitsandbytes")
    return sentence % found[0], found[1]


def replace_adam(torch, seen, name):
    """Steps of Adam or AdamW become those of bitsandbytes' `name` % of it."""
    import bitsandbytes

    def step(optimizer):
        def make():
            cls = getattr(bitsandbytes.optim, name % type(optimizer).__name__)
            return cls([{"params": g["params"], "lr": g["lr"]} for g in optimizer.param_groups])
        inner_optimizer(seen, optimizer, make).step()
    replace_step(torch, step)


def applies(seen):
    return adam_of_bitsandbytes(seen, "bitsandbytes.optim.%s8bit in place of it")


def install(torch, seen):
    replace_adam(torch, seen, "%s8bit")
