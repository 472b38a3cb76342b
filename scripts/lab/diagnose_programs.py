#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with a planted memory defect, or none, as people write them; does `cufrag diagnose` find it?

    diagnose_programs.py CUFRAG [CASE...]

Records each on a pretended card (PyTorch is needed, a GPU is not) and prints a row of Markdown: what was
planted, the verdict, the line to blame. The line that matters carries the word PLANTED, with the verdict; "in NAME":
any line of that function. A function without one is steady. Exit status 1 if one is wrong. (With CASE in the
environment it is the program.)
"""
import os
import random
import re
import subprocess
import sys
import tempfile


def truth_of(name, lines):
    """The verdict, and the numbers of the lines that may be blamed."""
    at = lines.index("def %s():" % name)
    for i in range(at + 1, len(lines)):
        found = re.search(r"# PLANTED (\w+)(?: in (\w+))?", lines[i])
        if lines[i].startswith(("def ", "class ")):
            break
        if found and found.group(2):
            begin = next(k for k, l in enumerate(lines) if "def %s(" % found.group(2) in l)
            return found.group(1), range(begin + 1, begin + 12)
        if found:
            return found.group(1), [i + 1]
    return "steady", []


def judge(cufrag, name, lines):
    verdict, allowed = truth_of(name, lines)
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/" + name + ".cft"
        subprocess.run([cufrag, "record", "--no-gpu", "--gpus", "2", "--frames", "-q", "-o", path, "--",
                        sys.executable, __file__], env=dict(os.environ, CASE=name), check=True,
                       stdout=subprocess.DEVNULL)
        text = subprocess.run([cufrag, "diagnose", "-q", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    got = re.match(r"verdict: (.*)", text).group(1)
    blamed = [int(n) for n in re.findall(r"^  at .*?:(\d+) ", text, re.M)]
    right = got == verdict and (verdict in ("steady", "imbalance") or any(n in allowed for n in blamed))
    print("| %s | %s | %s | %s | %s |" % (name, verdict, got, ", ".join(lines[n - 1].split("#")[0].strip()[:60] for n in blamed[:1]),
                                         "true" if right else "WRONG"), flush=True)
    return right


def drive():
    lines = open(__file__).read().split("\n")
    names = sys.argv[2:] or [n for n in re.findall(r"^def (\w+)\(\):", "\n".join(lines), re.M) if n != "drive"]
    print("| program | planted | verdict | line to blame | true |\n|---|---|---|---|---|")
    results = [judge(sys.argv[1], n, lines) for n in names]
    sys.exit(0 if all(results) else 1)


if "CASE" not in os.environ:
    drive()

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.manual_seed(1)
rng = random.Random(1)
dev = "cuda"


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.o, self.n = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)
        self.up, self.down, self.n2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.LayerNorm(d)

    def forward(self, x):
        q, k, v = self.qkv(self.n(x)).chunk(3, -1)
        x = x + self.o(torch.softmax(q @ k.transpose(1, 2) / x.shape[-1] ** .5, -1) @ v)
        return x + self.down(F.gelu(self.up(self.n2(x))))


def build(d=512, layers=4, device=dev):
    return nn.Sequential(*[Attention(d) for _ in range(layers)]).to(device)


def train(n, m, batch=lambda i: (8, 256), after=lambda i, loss, y: None, d=512):
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    for i in range(n):
        y = m(torch.randn(*batch(i), d, device=dev))
        loss = y.pow(2).mean()
        loss.backward()
        o.step()
        o.zero_grad(set_to_none=True)
        after(i, loss, y)


def hook():
    store, m = [], build()
    m[1].register_forward_hook(lambda mod, i, o: store.append(o.detach()[:, :64].clone()))  # PLANTED leak
    train(36, m)


def kv_cache():
    m, k, v = build(), [], []
    with torch.no_grad():
        for i in range(160):
            y = m(torch.randn(4, 32, 512, device=dev))
            k.append(y.clone())  # PLANTED leak
            v.append(y.clone())


def retain_graph():
    m, total = build(256, 3), torch.zeros((), device=dev)
    o = torch.optim.SGD(m.parameters(), lr=1e-3)
    for i in range(36):
        loss = m(torch.randn(4, 128, 256, device=dev)).pow(2).mean()  # PLANTED leak
        total = total + loss
        loss.backward(retain_graph=True)
        o.step()
        o.zero_grad()


def kept_losses():
    m, seen = build(256, 2), []

    def after(i, loss, y):
        if i % 2 == 0:
            x = torch.randn(4, 128, 256, device=dev)
            seen.append(F.mse_loss(m(x), x))  # PLANTED leak
    train(40, m, lambda i: (4, 128), after, 256)


def trainer():
    class Trainer:
        def __init__(self):
            self.m, self.logs = build(256, 3), {}
            self.opt = torch.optim.AdamW(self.m.parameters())

        def run(self):
            for i in range(48):
                self.step(i)

        def step(self, i):
            out = self.m(torch.randn(4, 128, 256, device=dev))
            out.pow(2).mean().backward()
            self.opt.step()
            self.opt.zero_grad()
            self.keep(i, out)

        def keep(self, i, out):
            self.logs[i] = out.detach().float().clone()  # PLANTED leak
    Trainer().run()


def every_tenth():
    kept = []

    def after(i, loss, y):
        if i % 10 == 9:
            kept.append(torch.cat([y.detach() for _ in range(4)]))  # PLANTED leak
    train(80, build(), after=after)


def long_batch():
    train(40, build(), lambda i: (8, 1024) if i == 23 else (8, 256))  # PLANTED spike in train


def validation_with_grad():
    m = build()

    def after(i, loss, y):
        if i == 20:
            [m(torch.randn(16, 256, 512, device=dev)) for _ in range(4)]  # PLANTED spike
    train(40, m, after=after)


def two_cards():
    train(30, build(512, 6))
    small = build(128, 2, "cuda:1")  # PLANTED imbalance
    for i in range(10):
        small(torch.randn(2, 32, 128, device="cuda:1")).mean().backward()


def cache_by_shape():
    cache = {}

    def after(i, loss, y):
        t = 64 * (1 + rng.randrange(12))
        if t not in cache:
            cache[t] = torch.ones(t, 4096, device=dev)
    train(80, build(), after=after)


def accumulation():
    m = build()
    o = torch.optim.Adam(m.parameters())
    for i in range(20):
        for k in range(4):
            m(torch.randn(4, 256, 512, device=dev)).mean().backward()
        o.step()
        o.zero_grad()


def curriculum():
    train(60, build(), lambda i: (4, 128 + 16 * (i // 4)))


def average_of_weights():
    m, keep = build(), {}

    def after(i, loss, y):
        for n, p in m.named_parameters() if i >= 5 else ():
            keep[n] = p.detach().clone() if n not in keep else keep[n].mul_(.9).add_(p.detach(), alpha=.1)
    train(40, m, after=after)


def replay_buffer():
    from collections import deque
    ring = deque(maxlen=16)
    train(60, build(), after=lambda i, loss, y: ring.append(y.detach().clone()))


def kept_scalars():
    kept = []
    train(60, build(), after=lambda i, loss, y: kept.append(loss.detach()))


def prefetch():
    from collections import deque
    q, m = deque(), build()
    o = torch.optim.AdamW(m.parameters())
    for i in range(50):
        while len(q) < 3:
            q.append(torch.randn(8, 256, 512, device=dev))
        m(q.popleft()).mean().backward()
        o.step()
        o.zero_grad(set_to_none=True)


def thawed_later():
    m = build()
    some = list(m.parameters())[: len(list(m.parameters())) // 2]
    o = torch.optim.AdamW(m.parameters())
    for p in some:
        p.requires_grad_(False)
    for i in range(40):
        for p in some if i == 10 else ():
            p.requires_grad_(True)
        m(torch.randn(8, 256, 512, device=dev)).mean().backward()
        o.step()
        o.zero_grad(set_to_none=True)


def vocabulary():
    cache = {}

    def after(i, loss, y):
        k = int(rng.paretovariate(1.0)) % 40
        if k not in cache:
            cache[k] = torch.ones(300_000, device=dev)
    train(150, build(256, 2), lambda i: (4, 128), after, 256)


def inference():
    m = build()
    with torch.no_grad():
        for i in range(100):
            m(torch.randn(rng.randint(1, 8), 256, 512, device=dev))


globals()[os.environ["CASE"]]()
