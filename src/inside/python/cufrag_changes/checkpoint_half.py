# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of every second block."""
from .help import blocks_of, checkpoint_blocks, norms, place_of, say_blocks

NUMERICS = ""
GROUP = "blocks"


def applies(seen):
    found = blocks_of(seen)
    if not found:
        return None
    call, lists = found
    return "checkpoint every second of the %s" % say_blocks(lists), place_of(call, lists), norms(call)


def install(torch, seen):
    checkpoint_blocks(torch, seen, lambda blocks: blocks[::2])
