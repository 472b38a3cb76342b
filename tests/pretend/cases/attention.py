"""Attention: flex_attention, and splits of the keys over multiprocessors."""
from support.small import cuda, sys, torch

# case: flex
# needs: torch>=2.5
# needs: package triton
# run: record -- flex
# match 2: ^flex
# verify

# PyTorch's num_splits_heuristic: 8 blocks of work, 16 of keys, two waves on 58 or 72 processors
# case: splits
# needs: import torch.nn.attention
# run: record --gpu l4 -- splits
# expect: splits 8.0
# run: record --gpu a10 -- splits
# expect: splits 16.0

def flex():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    for f in (flex_attention, torch.compile(flex_attention)):
        q, k, v = (cuda.randn(2, 4, 256, 64, dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")
        f(q, k, v, block_mask=mask).sum().backward()
        print("flex", q.grad.shape)

def splits():
    """One query token: partial results of all splits are kept in 32 bits."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    heads, width = 8, 64
    q, k = (cuda.randn(1, heads, n, width, dtype=torch.half) for n in (1, 4096))
    before = torch.cuda.memory_allocated()
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(q, k, k)
    others = 1024 + 2 * 512 + 1024  # output, logarithms of it and of splits, two of dropout
    print("splits", (torch.cuda.max_memory_allocated() - before - others) / (4 * heads * width))

globals()[sys.argv[1]]()
