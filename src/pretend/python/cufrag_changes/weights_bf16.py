# SPDX-License-Identifier: Apache-2.0
"""Weights, gradients and states in bfloat16."""
import gc

from .help import names, wrap, wrap_forward

NUMERICS = "weights and states of the optimizer are rounded to bfloat16"
GROUP = "precision"


def applies(seen):
    calls = [c for c in seen.calls if c.dtype == seen.torch.float32]
    return calls and ("%s in bfloat16: model.to(torch.bfloat16) before it goes to the card" % names(calls), calls[0].place,
                      NUMERICS if seen.optimizers else "weights are rounded to bfloat16")


def install(torch, seen):
    def narrow(module):
        for p in (*module.parameters(), *module.buffers()):
            if p.dtype == torch.float32:
                p.data = p.data.to(torch.bfloat16)

    def before(original, module, *args, **kwargs):
        narrow(module)
        return original(module, *args, **kwargs)
    for module in [m for m in gc.get_objects() if isinstance(m, torch.nn.Module)]:
        narrow(module)
    wrap(torch.nn.Module, "cuda", before)
    wrap(torch.nn.Module, "to", before)

    def around(inner, args, kwargs):
        def cast(t):
            return t.to(torch.bfloat16) if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t
        return inner(*[cast(a) for a in args], **{k: cast(v) for k, v in kwargs.items()})

    def root(module):
        narrow(module)
        wrap_forward(module, around)
    seen.when_root(root)
