# SPDX-License-Identifier: Apache-2.0
"""Random numbers with --values computed: dropout of odd sizes, and what compiled code draws. Prints hashes that an H200 printed, too."""
import hashlib
import torch
import torch.nn.functional as F


def said(t):
    return hashlib.md5(t.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:10]


@torch.compile(dynamic=False)
def drop(x, bias, rest):
    return rest + F.dropout(x + bias, 0.1)  # the numbers are rounded to half precision, but not within a kernel


@torch.compile(dynamic=False)
def draw(n):
    return torch.rand(n, device="cuda") + 0, torch.randn(n, device="cuda") * 1, torch.randint(3, 1000, (n,), device="cuda")


torch.manual_seed(5)
for n in (77, 6, 1001, 2050):
    y = F.dropout(torch.ones(n, device="cuda"), 0.3)
    print("odd", n, int((y == 0).sum()), said(y == 0))
for shape in ((64, 1024), (1000, 77), (8192, 1024)):
    x, bias, rest = (torch.full(s, float(n), device="cuda", dtype=torch.bfloat16) for s, n in ((shape, 1), (shape[-1:], 1), (shape, 0)))
    y = drop(x.requires_grad_(), bias.requires_grad_(), rest)
    y.sum().backward()
    print("compiled", int((y == 0).sum()), said(y == 0), bool(((y == 0) == (x.grad == 0)).all()))
a, b, c = draw(1000)
print("drawn", said(a), ["%.4f" % v for v in b[:3].tolist()], said(c))
print("after", torch.cuda.default_generators[0].get_offset(), ["%.4f" % v for v in torch.rand(2).tolist()])
