# SPDX-License-Identifier: Apache-2.0
"""The optimizer's step in one kernel, without temporary tensors."""
from .help import wrap

NUMERICS = "sums of the step are rounded in another order"
KINDS = ("Adam", "AdamW", "SGD", "Adagrad")


def applies(seen):
    for ref, name, place in seen.optimizers:
        if name in KINDS and ref() is not None and not any(g.get("fused") or g.get("differentiable") for g in ref().param_groups):
            return "%s(…, fused=True)" % name, place
    return None


def install(torch, seen):
    def made(original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if type(optimizer).__name__ in KINDS:
            optimizer._step_supports_amp_scaling = True
            for group in optimizer.param_groups:
                group["fused"], group["foreach"] = True, False
    wrap(torch.optim.Optimizer, "__init__", made)
