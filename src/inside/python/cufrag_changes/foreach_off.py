# SPDX-License-Identifier: Apache-2.0
"""The optimizer takes one weight after the other, without lists of temporary tensors."""
from .help import optimizers_of, wrap

NUMERICS = ""
GROUP = "optimizer"
KINDS = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "SGD")


def applies(seen):
    found = optimizers_of(seen, KINDS, lambda groups: not any(g["fused"] or g["foreach"] is False for g in groups))
    return found and ("%s(…, foreach=False)%s" % (found[0], found[2]), found[1])


def install(torch, seen):
    def made(original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if type(optimizer).__name__ in KINDS:
            for group in optimizer.param_groups:
                group["foreach"] = False
    wrap(torch.optim.Optimizer, "__init__", made)
