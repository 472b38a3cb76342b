# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of every second block."""
from .help import blocks_of, checkpoint_blocks

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    return blocks_of(seen, "checkpoint every second of the %s")


def install(torch, seen):
    checkpoint_blocks(torch, seen, lambda blocks: blocks[::2])
