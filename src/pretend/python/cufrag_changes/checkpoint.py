# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing: repeated blocks are computed again in the backward pass."""
from .help import blocks_of, checkpoint_blocks, partial

GROUP = "blocks"
applies = partial(blocks_of, sentence="checkpoint each of the %s: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")
install = partial(checkpoint_blocks, take=lambda blocks: blocks)
