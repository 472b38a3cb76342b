# SPDX-License-Identifier: Apache-2.0
"""States of Adam in memory that the driver moves between host and card."""
from .adam_8bit import adam_of_bitsandbytes
from .help import partial, states_as

GROUP = "optimizer"
applies = partial(adam_of_bitsandbytes,
                  sentence="bitsandbytes.optim.Paged* in place of %s: states leave the card, outside of PyTorch's memory, where that is full")
install = partial(states_as, home="bitsandbytes.optim", kind="Paged%s")
