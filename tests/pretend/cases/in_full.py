# SPDX-License-Identifier: Apache-2.0
"""A net with experts that the CPU computes in full: in_full.py cpu|cuda. Prints losses, how many tokens each expert gets, what dropout
keeps. All that is random is drawn on the host, but for dropout."""
# needs: torch.nn.RMSNorm
# python:
#   def losses_are_alike(card, cpu):
#       pairs = list(zip(card, cpu))
#       assert len(card) == len(cpu) and sum(a[0] == "loss" for a in card) == 3, (card, cpu)
#       for a, b in pairs:
#           x, y = [float(n) for n in a[1:]], [float(n) for n in b[1:]]
#           if a[0] == "loss":
#               assert abs(x[0] - y[0]) <= 0.001 and abs(x[1] - y[1]) <= 0.01 * x[1], (a, b)
#           else:
#               assert all(abs(m - n) <= 0.03 * m for m, n in zip(x, y)), (a, b)
#       assert sum(n == "256" for a in card if a[0] == "tokens" for n in a[1:]) < 8, card
#   def numbers():
#       return [line.split() for line in log.splitlines() if line.startswith(("loss", "tokens"))]
# case: plain
# run: record --values computed -- cuda
# never: not computed
# expect: kept 0.9 0.9 1.109375 False
# expect: host [1.0, 9.0, 17.0, 25.0] [[10.0, 11.0], [18.0, 19.0]] True
# python:
#   card = numbers()
#   run("record -- cpu", ...)
#   losses_are_alike(card, numbers())
# case: bounded
# run: record --values computed --memory 8M -- cuda
# match: unused for longest are forgotten
# verify
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS, EXPERTS, CHOSEN, WORDS = 256, 4, 8, 2, 1000
device = sys.argv[1]
torch.manual_seed(0)


def gated(x):
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * WIDTH) * 0.03)
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) * 0.03)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        y = self.second(x).view(-1, WIDTH)
        weights, choices = F.softmax(self.router(y).float(), -1).topk(CHOSEN, -1)
        made, counts = torch.zeros_like(y), []
        for e in range(EXPERTS):
            token, slot = torch.where(choices == e)
            counts.append(len(token))
            made.index_add_(0, token, gated(y[token] @ self.up[e]) @ self.down[e] * weights[token, slot, None].to(y.dtype))
        print("tokens", *counts)
        return x + made.view(x.shape)


net = nn.Sequential(nn.Embedding(WORDS, WIDTH), Block(), Block(), nn.Linear(WIDTH, WORDS)).to(torch.bfloat16).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
words = torch.randint(0, WORDS, (4, 257)).to(device)
for _ in range(3):
    loss = F.cross_entropy(net(words[:, :-1]).flatten(0, 1).float(), words[:, 1:].flatten())
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss %.5f %.5f" % (loss.item(), norm.item()))
x = torch.ones(1 << 20, dtype=torch.bfloat16, device=device)
kept = [F.dropout(x, 0.1) for _ in range(2)]
print("kept", *(round(k.gt(0).float().mean().item(), 2) for k in kept), kept[0].max().item(), torch.equal(*kept))
columns = torch.arange(32.0, device=device).view(4, 8)
print("host", columns[:, 1].tolist(), columns[1:3, 2:4].cpu().tolist(), torch.allclose(columns[2:] * 2, columns[2:] + columns[2:]))
