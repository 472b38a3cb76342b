# SPDX-License-Identifier: Apache-2.0
import argparse, torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
p = argparse.ArgumentParser()
for n, d in [("layers", 8), ("width", 1024), ("heads", 16), ("vocab", 32000), ("seq", 1024), ("mb", 2), ("steps", 5)]:
    p.add_argument("--" + n, type=int, default=d)
p.add_argument("--ac", default="none"); p.add_argument("--optim", default="adamw")
a = p.parse_args()
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1, s.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        s.qkv, s.out = nn.Linear(a.width, 3*a.width), nn.Linear(a.width, a.width)
        s.up, s.down = nn.Linear(a.width, 4*a.width), nn.Linear(4*a.width, a.width)
    def forward(s, x):
        b, t, c = x.shape
        q, k, v = s.qkv(s.n1(x)).view(b, t, 3, a.heads, c//a.heads).permute(2, 0, 3, 1, 4)
        x = x + s.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + s.down(nn.functional.gelu(s.up(s.n2(x))))
class GPT(nn.Module):
    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(a.vocab, a.width); s.blocks = nn.ModuleList(Block() for _ in range(a.layers)); s.head = nn.Linear(a.width, a.vocab, bias=False)
    def forward(s, x):
        x = s.emb(x)
        for b in s.blocks: x = checkpoint(b, x, use_reentrant=False) if a.ac == "full" else b(x)
        return s.head(x)
with torch.device("cuda"): m = GPT()
o = torch.optim.AdamW(m.parameters()) if a.optim == "adamw" else torch.optim.SGD(m.parameters(), momentum=0.9)
for i in range(a.steps):
    x = torch.randint(a.vocab, (a.mb, a.seq), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16): y = m(x); l = nn.functional.cross_entropy(y.view(-1, a.vocab), x.view(-1))
    l.backward(); o.step(); o.zero_grad()
print("done", flush=True)
