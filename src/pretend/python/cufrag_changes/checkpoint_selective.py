# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing that keeps products of matrices, convolutions and attention."""
from .help import Left, blocks_of, checkpoint_blocks

GROUP = "blocks"
KEPT = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention")


def applies(seen):
    found = blocks_of(seen, "checkpoint each of the %s, but keep products of matrices, convolutions and attention: create_selective_checkpoint_contexts")
    import torch.utils.checkpoint
    if found and not hasattr(torch.utils.checkpoint, "create_selective_checkpoint_contexts"):
        raise Left("this release of PyTorch has no create_selective_checkpoint_contexts (2.4)")
    return found


def install(torch, seen):
    from torch.utils.checkpoint import create_selective_checkpoint_contexts
    kept = [getattr(torch.ops.aten, name).default for name in KEPT if hasattr(torch.ops.aten, name)]
    checkpoint_blocks(torch, seen, lambda blocks: blocks,
                      context_fn=lambda: lambda: create_selective_checkpoint_contexts(kept))
