# SPDX-License-Identifier: Apache-2.0
"""Ragged sequences: jagged nested tensors trained with attention, FlexAttention with documents and sliding windows, padding and back."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


class Attention(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(n, 3 * n), nn.Linear(n, n), heads

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b = nn.LayerNorm(n), nn.LayerNorm(n)
        self.attention, self.mlp = Attention(n, 12), nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))

    def forward(self, x):
        x = x + self.attention(self.a(x))
        return x + self.mlp(self.b(x))


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*[Block(768) for _ in range(4)]).cuda().bfloat16()
    o = torch.optim.NAdam(net.parameters(), lr=1e-4)
    for step in range(3):
        lengths = [64 + (37 * k * (step + 3)) % 450 for k in range(48)]
        x = torch.nested.nested_tensor([torch.randn(n, 768, device="cuda", dtype=torch.bfloat16) for n in lengths], layout=torch.jagged)
        y = net(x)
        loss = y.values().float().square().mean()
        loss.backward()
        o.step()
        o.zero_grad()
    with torch.no_grad():
        padded = torch.nested.to_padded_tensor(net(x), 0.0)
        padded.mean((1, 2))
    del padded, y, loss, x
    flex = torch.compile(flex_attention)
    document = torch.arange(4096, device="cuda") // 700
    mask = create_block_mask(lambda b, h, q, k: (document[q] == document[k]) & (q >= k) & (q - k < 512), None, None, 4096, 4096, device="cuda")
    slopes = torch.exp2(-torch.arange(1, 13, device="cuda") * 8 / 12)
    for _ in range(2):
        q, k, v = (torch.randn(2, h, 4096, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for h in (12, 4, 4))
        out = flex(q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i), block_mask=mask, enable_gqa=True)
        out.float().square().mean().backward()
    packed = torch.randn(6000, 12, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    from torch.nn.attention.varlen import varlen_attn
    at = torch.tensor([0, 700, 1500, 4000, 6000], device="cuda", dtype=torch.int32)
    out = varlen_attn(packed, packed, packed, at, at, 2500, 2500)
    (out[0] if isinstance(out, tuple) else out).float().sum().backward()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
