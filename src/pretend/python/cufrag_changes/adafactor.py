# SPDX-License-Identifier: Apache-2.0
"""Adafactor: one number for each row and column in place of two for each weight."""
from .help import Left, adam, partial, states_as

NUMERICS = "another optimizer needs another learning rate and schedule"
GROUP = "optimizer"


def applies(seen):
    found = adam(seen, "torch.optim.Adafactor in place of %s")
    if found and not hasattr(seen.torch.optim, "Adafactor"):
        raise Left("this release of PyTorch has no torch.optim.Adafactor (2.5)")
    return found


install = partial(states_as, home="torch.optim", kind="Adafactor")
