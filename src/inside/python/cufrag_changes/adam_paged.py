# SPDX-License-Identifier: Apache-2.0
"""States of Adam in memory that the driver moves between host and card."""
from .adam_8bit import adam_of_bitsandbytes, replace_adam

NUMERICS = ""
GROUP = "optimizer"


def applies(seen):
    return adam_of_bitsandbytes(seen, "bitsandbytes.optim.Paged* in place of %s: states leave the card, outside of PyTorch's memory, where that is full")


def install(torch, seen):
    replace_adam(torch, seen, "Paged%s")
