# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of those blocks that pay: they save most for what is computed again."""
from .help import Left, blocks_of, checkpoint_blocks

GROUP = "blocks"


def applies(seen):
    found = blocks_of(seen, "checkpoint those of the %s that save most: few that have three quarters of the bytes")
    if found and seen.steps < 2:
        raise Left("which blocks pay is known after a first step, and there is one step only")
    return found


def install(torch, seen):
    saved, paying = {}, set()

    def choose():
        left = 0.75 * sum(saved.values())
        for block in sorted(saved, key=saved.get, reverse=True):
            if left <= 0:
                break
            left -= saved[block]
            paying.add(block)

    def pays(block):
        if not seen.steps:  # the first step has no states yet: all is computed again
            return True
        if not paying:
            choose()
        return id(block) in paying

    def measured(block, inner):
        def call(*args, **kwargs):
            before = torch.cuda.memory_allocated()
            try:
                return inner(*args, **kwargs)
            finally:  # the second time, in the backward pass, all that is saved stays
                saved[id(block)] = max(torch.cuda.memory_allocated() - before, 0)
        return call if not seen.steps else inner
    checkpoint_blocks(torch, seen, lambda blocks: blocks, pays, measured)
