# SPDX-License-Identifier: Apache-2.0
"""TorchScript: a scripted LSTM-like cell with loops and branches, a traced and frozen convolutional network, optimize_for_inference."""
import torch
import torch.nn as nn
from typing import List, Tuple


class Cell(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.x, self.h = nn.Linear(n, 4 * n), nn.Linear(n, 4 * n, bias=False)
        self.norm = nn.LayerNorm(4 * n)

    def forward(self, x: torch.Tensor, state: Tuple[torch.Tensor, torch.Tensor]) -> Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
        h, c = state
        i, f, g, o = self.norm(self.x(x) + self.h(h)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, (h, c)


class Stack(nn.Module):
    def __init__(self, n: int, layers: int):
        super().__init__()
        self.cells = nn.ModuleList([Cell(n) for _ in range(layers)])
        self.n = n

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states: List[Tuple[torch.Tensor, torch.Tensor]] = []
        for _ in self.cells:
            states.append((torch.zeros(x.size(1), self.n, device=x.device), torch.zeros(x.size(1), self.n, device=x.device)))
        out: List[torch.Tensor] = []
        for t in range(x.size(0)):
            h = x[t]
            k = 0
            for cell in self.cells:
                h, states[k] = cell(h, states[k])
                k += 1
            if t % 16 == 15:
                h = h * (lengths > t).unsqueeze(1)
            out.append(h)
        return torch.stack(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        def block(a, b, s): return nn.Sequential(nn.Conv2d(a, b, 3, s, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU6())
        self.body = nn.Sequential(block(3, 32, 2), block(32, 64, 1), block(64, 128, 2), block(128, 256, 2), block(256, 512, 2))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def main():
    torch.manual_seed(0)
    m = torch.jit.script(Stack(768, 3).cuda())
    o = torch.optim.RMSprop(m.parameters(), lr=1e-4, momentum=0.9)
    for _ in range(4):
        x = torch.randn(96, 128, 768, device="cuda")
        lengths = torch.randint(40, 96, (128,), device="cuda")
        loss = m(x, lengths).square().mean()
        o.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(m.parameters(), 1.0)
        o.step()
    del loss, x
    net = Net().cuda().eval()
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(net, torch.randn(8, 3, 224, 224, device="cuda")))
        for n in (8, 64, 64, 200, 64):
            y = traced(torch.randn(n, 3, 224, 224, device="cuda"))
            y.softmax(1).topk(5)
    half = torch.jit.script(nn.Sequential(nn.Conv1d(64, 256, 9, padding=4), nn.GELU(), nn.ConvTranspose1d(256, 64, 4, 2, 1)).cuda().half())
    for n in (4, 32):
        z = torch.randn(n, 64, 16000, device="cuda", dtype=torch.half, requires_grad=True)
        half(z).float().abs().mean().backward()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
