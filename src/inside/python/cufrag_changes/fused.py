# SPDX-License-Identifier: Apache-2.0
"""The optimizer's step in one kernel, without temporary tensors."""
from .help import optimizers_of, wrap

NUMERICS = ""
GROUP = "optimizer"
KINDS = ("Adam", "AdamW", "SGD", "Adagrad")


def applies(seen):
    found = optimizers_of(seen, KINDS, lambda groups: not any(g["fused"] or g["differentiable"] for g in groups))
    return found and ("%s(…, fused=True)%s" % (found[0], found[2]), found[1])


def install(torch, seen):
    def made(original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if type(optimizer).__name__ in KINDS:
            optimizer._step_supports_amp_scaling = True
            for group in optimizer.param_groups:
                group["fused"], group["foreach"] = True, False
    wrap(torch.optim.Optimizer, "__init__", made)
