# SPDX-License-Identifier: Apache-2.0
"""What the programs share: their registry, tensors on the card, training, and models of libraries.

Models have the published widths, heads and vocabularies; the largest have fewer layers. Weights and
inputs are random, nothing is downloaded. Each program runs in a process of its own.
"""
import os
import random
import warnings
from copy import deepcopy

warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error",
                  TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

dev = "cuda"
TIMES = int(os.environ.get("TIMES", 1))
rng = random.Random(5)
BF, HF16, FP = torch.bfloat16, torch.float16, torch.float32


def program(mechanism, *packages, torch="2.6", conf=None, ranks=0):
    """Marks a program with its mechanism and needs, which harness.py reads from the source text.

    conf: settings of the allocator; ranks: processes of a job; torch: the oldest release.
    """
    return lambda f: f


def T(*s, v=32000):
    return torch.randint(0, v, s, device=dev)


def N(*s, dt=torch.float32):
    return torch.randn(*s, device=dev, dtype=dt)


def on(f, *a, dt=None, **k):
    old = torch.get_default_dtype()
    if dt:
        torch.set_default_dtype(dt)
    try:
        with torch.device(dev):
            return f(*a, **k).to(dev)
    finally:
        torch.set_default_dtype(old)


def fit(m, loss_of, steps=4, opt=None, amp=None, scaler=False, clip=True, accum=1):
    m.train()
    ps = [p for p in m.parameters() if p.requires_grad]
    o = opt(ps) if opt else torch.optim.AdamW(ps, lr=1e-4)
    s = torch.amp.GradScaler("cuda", enabled=scaler)
    for i in range(steps * TIMES):
        for j in range(accum):
            with torch.autocast("cuda", dtype=amp or torch.bfloat16, enabled=amp is not None):
                l = loss_of(m)
            s.scale(l / accum).backward()
        if clip:
            s.unscale_(o)
            nn.utils.clip_grad_norm_(ps, 1.0)
        s.step(o)
        s.update()
        o.zero_grad(set_to_none=True)
    return l


def hf(name, dt=BF, cls=None, **k):
    """A model of transformers on the card: name is the stem of its classes."""
    import transformers as t

    c = getattr(t, name + "Config")(**k)
    return on(getattr(t, cls or name + "ForCausalLM"), c, dt=dt)


def net(name, nhwc=False, **k):
    import timm

    m = on(timm.create_model, name, **k)
    return m.to(memory_format=torch.channels_last) if nhwc else m


def images(n, side, nhwc=False, dt=torch.float32):
    x = N(n, 3, side, side, dt=dt)
    return x.to(memory_format=torch.channels_last) if nhwc else x


SGD = lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)


def stack(*parts):
    return nn.Sequential(*parts)


class Parts(nn.Module):
    """A module of the parts that it is made with."""
    def __init__(s, /, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(s, name, part)


class Attn(nn.Module):
    def __init__(s, d, heads, causal=True, cross=False):
        super().__init__()
        s.h, s.causal = heads, causal
        s.q = nn.Linear(d, d, bias=False)
        s.kv = nn.Linear(d, 2 * d, bias=False)
        s.o = nn.Linear(d, d, bias=False)

    def forward(s, x, y=None):
        q, (k, v) = s.q(x), s.kv(x if y is None else y).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (s.h, -1)).transpose(-3, -2) for t in (q, k, v))
        return s.o(F.scaled_dot_product_attention(
            q, k, v, is_causal=s.causal).transpose(-3, -2).flatten(-2))


class Layer(nn.Module):
    """A layer of a transformer; mix replaces its attention, mlp its feed-forward part."""
    def __init__(s, d, heads=8, causal=True, mix=None, mlp=None):
        super().__init__()
        s.n1, s.n2, s.mix = nn.RMSNorm(d), nn.RMSNorm(d), mix or Attn(d, heads, causal)
        s.mlp = mlp or stack(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(s, x):
        x = x + s.mix(s.n1(x))
        return x + s.mlp(s.n2(x))


class Qkv(Parts):
    """The projections of an attention of h heads."""
    def __init__(s, d, h):
        super().__init__(h=h, qkv=nn.Linear(d, 3 * d, bias=False), o=nn.Linear(d, d, bias=False))


class Lm(Parts):
    """A language model of such layers; save: with checkpoints."""
    def __init__(s, d, n, vocab=32000, layer=Layer, save=False):
        super().__init__(emb=nn.Embedding(vocab, d), save=save,
                         layers=nn.ModuleList(layer(d) for _ in range(n)), norm=nn.RMSNorm(d),
                         head=nn.Linear(d, vocab, bias=False))

    def inner(s, x):
        """What the last layer makes of tokens x."""
        x = s.emb(x)
        for f in s.layers:
            x = checkpoint(f, x, use_reentrant=False) if s.save else f(x)
        return x

    def forward(s, x):
        return s.head(s.norm(s.inner(x)))


def next_token(batch, length, vocab=32000):
    def loss(m):
        x = T(batch, length + 1, v=vocab)
        return F.cross_entropy(m(x[:, :-1]).flatten(0, 1).float(), x[:, 1:].flatten())

    return loss


def hf2(name, cls, dt=FP, **k):
    return hf(name, dt, cls, **k)


def adamw(lr=1e-5, **k):
    return lambda p: torch.optim.AdamW(p, lr, **k)
