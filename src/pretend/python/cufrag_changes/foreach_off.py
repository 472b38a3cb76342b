# SPDX-License-Identifier: Apache-2.0
"""The optimizer takes one weight after the other, without lists of temporary tensors."""
from .help import made_with, optimizers_of, partial

GROUP = "optimizer"
KINDS = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "SGD")


def applies(seen):
    found = optimizers_of(seen, KINDS, lambda groups: not any(g["fused"] or g["foreach"] is False for g in groups))
    return found and ("%s(…, foreach=False)%s" % (found[0], found[2]), found[1])


install = partial(made_with, kinds=KINDS, foreach=False)
