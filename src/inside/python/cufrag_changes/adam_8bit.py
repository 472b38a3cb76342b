# SPDX-License-Identifier: Apache-2.0
"""States of Adam in 8 bits."""
from .help import ADAM, adam, inner_optimizer, needs, optimizers_of, replace_step

NUMERICS = "states of the optimizer are rounded to 8 bits"
GROUP = "optimizer"


def adam_of_bitsandbytes(seen, sentence):
    found = adam(seen, sentence.replace("*", (optimizers_of(seen, ADAM) or ("",))[0]))
    if found:
        needs("bitsandbytes")
    return found


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
    return adam_of_bitsandbytes(seen, "bitsandbytes.optim.*8bit in place of %s")


def install(torch, seen):
    replace_adam(torch, seen, "%s8bit")
