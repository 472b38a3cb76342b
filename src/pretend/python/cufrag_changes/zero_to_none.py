# SPDX-License-Identifier: Apache-2.0
"""Gradients are released, not set to zero."""
from .help import wrap


def applies(seen):
    return seen.zeroed and ("zero_grad(set_to_none=True)", seen.zeroed)


def install(torch, seen):
    wrap(torch.optim.Optimizer, "zero_grad", lambda original, optimizer, set_to_none=True: original(optimizer, set_to_none=True))
