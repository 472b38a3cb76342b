# SPDX-License-Identifier: Apache-2.0
"""Evaluation under no_grad, which saves nothing for a backward pass."""
from .help import wrap_forward

NUMERICS = ""


def applies(seen):
    call = next((c for c in seen.calls if c.grad and c.trains and (not c.training or not seen.backwards)), None)
    return call and ("call %s under torch.no_grad() where nothing is trained" % call.name, call.place)


def install(torch, seen):
    trains = []

    def root(module):
        def around(inner, args, kwargs):
            if module.training and trains:
                return inner(*args, **kwargs)
            with torch.no_grad():
                return inner(*args, **kwargs)
        wrap_forward(module, around)
    if seen.optimizers:
        trains.append(True)
    original = torch.optim.Optimizer.__init__

    def made(optimizer, *args, **kwargs):
        trains.append(True)
        original(optimizer, *args, **kwargs)
    torch.optim.Optimizer.__init__ = made
    seen.when_root(root)
