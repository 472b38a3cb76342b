# SPDX-License-Identifier: Apache-2.0
"""States of Adam in 8 bits."""
from .help import ADAM, adam, needs, optimizers_of, partial, states_as

NUMERICS = "states of the optimizer are rounded to 8 bits"
GROUP = "optimizer"


def adam_of_bitsandbytes(seen, sentence):
    found = adam(seen, sentence.replace("*", (optimizers_of(seen, ADAM) or ("",))[0]))
    if found:
        needs("bitsandbytes")
    return found


applies = partial(adam_of_bitsandbytes, sentence="bitsandbytes.optim.*8bit in place of %s")
install = partial(states_as, home="bitsandbytes.optim", kind="%s8bit")
