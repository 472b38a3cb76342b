# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing of every second block."""
from .help import blocks_of, checkpoint_blocks, partial

GROUP = "blocks"
applies = partial(blocks_of, sentence="checkpoint every second of the %s")
install = partial(checkpoint_blocks, take=lambda blocks: blocks[::2])
