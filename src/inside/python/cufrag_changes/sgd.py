# SPDX-License-Identifier: Apache-2.0
"""SGD, which keeps no states."""
from .help import adam, states_as

NUMERICS = "another optimizer: learning rate and schedule have to be found again"
GROUP = "optimizer"


def applies(seen):
    found = adam(seen)
    return found and ("torch.optim.SGD without momentum in place of %s" % found[0], found[1])


def install(torch, seen):
    states_as(torch, seen, "SGD")
