# SPDX-License-Identifier: Apache-2.0
"""The optimizer takes one weight after the other, without lists of temporary tensors."""
from .help import wrap

NUMERICS = ""
GROUP = "optimizer"
KINDS = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "SGD")


def applies(seen):
    for _, name, place, groups in seen.optimizers:
        if name in KINDS and not any(g["fused"] or g["foreach"] is False for g in groups):
            return "%s(…, foreach=False)" % name, place
    return None


def install(torch, seen):
    def made(original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if type(optimizer).__name__ in KINDS:
            for group in optimizer.param_groups:
                group["foreach"] = False
    wrap(torch.optim.Optimizer, "__init__", made)
