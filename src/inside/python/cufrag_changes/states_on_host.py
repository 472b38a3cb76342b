# SPDX-License-Identifier: Apache-2.0
"""States of the optimizer in memory of the host, where its step is computed, too."""
from .help import adam, inner_optimizer, original, replace_step

NUMERICS = ""


def applies(seen):
    found = adam(seen)
    return found and ("keep %s on the host: gradients go there, its step runs there, weights come back (torchao's CPUOffloadOptimizer)" %
                      found[0], found[1])


def install(torch, seen):
    own = {name: original(torch, name) for name in ("Adam", "AdamW")}

    def step(optimizer):
        def make():
            groups = [dict(g, params=[torch.nn.Parameter(p.detach().cpu(), p.requires_grad) for p in g["params"]], fused=None)
                      for g in optimizer.param_groups]
            return own[type(optimizer).__name__](groups)
        inner = inner_optimizer(seen, optimizer, make)
        pairs = [(a, b) for g, h in zip(optimizer.param_groups, inner.param_groups) for a, b in zip(g["params"], h["params"])]
        for mine, host in pairs:
            host.grad = None if mine.grad is None else mine.grad.detach().cpu()
        inner.step()
        for mine, host in pairs:
            if mine.grad is not None:
                mine.copy_(host)
                seen.moved += 2 * mine.numel() * mine.element_size()
    replace_step(torch, step)
