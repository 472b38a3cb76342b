# SPDX-License-Identifier: Apache-2.0
"""SGD, which keeps no states."""
from .help import adam, states_as

NUMERICS = "another optimizer needs another learning rate and schedule"
GROUP = "optimizer"


def applies(seen):
    return adam(seen, "torch.optim.SGD without momentum in place of %s")


def install(torch, seen):
    states_as(torch, seen, "SGD")
