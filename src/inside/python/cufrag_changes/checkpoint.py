# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing: repeated blocks are computed again in the backward pass."""
from .help import blocks_of, checkpoint_blocks

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    return blocks_of(seen, "checkpoint each of the %s: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")


def install(torch, seen):
    checkpoint_blocks(torch, seen, lambda blocks: blocks)
