# SPDX-License-Identifier: Apache-2.0
"""The program of batch*.cft: small.py BATCH [LENGTH]"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, length = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 16


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.a(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = (q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.b(x))


words, width = 1000, 64
model = nn.Sequential(nn.Embedding(words, width), Block(width, 4), Block(width, 4), nn.Linear(width, words)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x = torch.randint(0, words, (batch, length + 1)).cuda()
    F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
