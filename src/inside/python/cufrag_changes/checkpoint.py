# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing: repeated blocks are computed again in the backward pass."""
from .help import blocks_of, checkpoint_blocks, norms, place_of, say_blocks

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    found = blocks_of(seen)
    if not found:
        return None
    call, lists = found
    return ("checkpoint each of the %s: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)" % say_blocks(lists),
            place_of(call, lists), norms(call))


def install(torch, seen):
    checkpoint_blocks(torch, seen, lambda blocks: blocks)
