# SPDX-License-Identifier: Apache-2.0
"""The optimizer's step in one kernel, without temporary tensors."""
from .help import made_with, optimizers_of, partial

GROUP = "optimizer"
KINDS = ("Adam", "AdamW", "SGD", "Adagrad")


def applies(seen):
    found = optimizers_of(seen, KINDS, lambda groups: not any(g["fused"] or g["differentiable"] for g in groups))
    return found and ("%s(…, fused=True)%s" % (found[0], found[2]), found[1])


install = partial(made_with, kinds=KINDS, fused=True, foreach=False)
