# SPDX-License-Identifier: Apache-2.0
"""SGD, which keeps no states."""
from .help import adam, partial, states_as

NUMERICS = "another optimizer needs another learning rate and schedule"
GROUP = "optimizer"
applies = partial(adam, sentence="torch.optim.SGD without momentum in place of %s")
install = partial(states_as, home="torch.optim", kind="SGD")
