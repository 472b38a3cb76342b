# SPDX-License-Identifier: Apache-2.0
"""Evaluation under no_grad, which saves nothing for a backward pass."""
from .help import names, wrap_forward


def applies(seen):
    calls = [c for c in seen.calls if c.grad and c.trains and (not c.training or not seen.backwards)]
    return calls and ("call %s under torch.no_grad() where nothing is trained" % names(calls), calls[0].place)


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
