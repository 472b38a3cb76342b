# SPDX-License-Identifier: Apache-2.0
"""States of the optimizer in memory of the host, where its step is computed, too."""
from .help import adam, replace_step

GROUP = "optimizer"


def applies(seen):
    return adam(seen, "keep %s on the host: gradients go there, its step runs there, weights come back (torchao's CPUOffloadOptimizer)")


def install(torch, seen):
    def step(optimizer):
        """Gradients leave, weights come. The host's part is not computed."""
        for p in (p for g in optimizer.param_groups for p in g["params"] if p.grad is not None):
            p.grad.contiguous()
            seen.moved += 2 * p.numel() * p.element_size()
    replace_step(torch, step)
