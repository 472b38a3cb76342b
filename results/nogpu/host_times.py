# SPDX-License-Identifier: Apache-2.0
"""How long the host takes for each kernel, forward and backward, in small models, where the card is never behind.

    host_times.py
"""
import os, sys, time, json
os.environ.setdefault("LOCAL_RANK", "0")
import torch, torch.nn as nn, torch.nn.functional as F
sys.argv = sys.argv[:1]
import jobs
from torch.profiler import profile, ProfilerActivity
torch.cuda.set_device(0)
jobs.card = torch.device("cuda", 0)

def kernels(f):
    f(); torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        f(); torch.cuda.synchronize()
    ev = p.events()
    return sum(len(e.kernels) for e in ev)

def timed(name, fwd, ps, opt):
    o = opt(ps)
    def f(): global L; L = fwd()
    def b(): L.backward()
    def fb(): f(); b()
    def s(): o.step(); o.zero_grad(set_to_none=True)
    fb(); s(); fb(); s()
    n = {}
    n["f"] = kernels(f)
    n["fb"] = kernels(fb)
    fb(); n["s"] = kernels(lambda: (fb(), o.step(), o.zero_grad())) - n["fb"]
    t = dict(f=[], b=[], s=[])
    for _ in range(30):
        for k, x in (("f", f), ("b", b), ("s", s)):
            torch.cuda.synchronize(); a = time.perf_counter(); x(); t[k].append(time.perf_counter() - a)
    med = {k: sorted(v)[len(v) // 2] * 1e6 for k, v in t.items()}
    nb = n["fb"] - n["f"]
    print("%-28s forward %5d kernels %6.1f us each   backward %5d %6.1f us   optimizer %4d %6.1f us" % (name, n["f"], med["f"] / n["f"], nb, med["b"] / max(nb, 1), n["s"], med["s"] / max(n["s"], 1)), flush=True)

A = lambda ps: torch.optim.AdamW(ps, 1e-4)
for name, kw, amp in (("gpt fp32", {}, None), ("gpt amp", {}, torch.bfloat16), ("gpt checkpointed", dict(save=True), torch.bfloat16)):
    m = jobs.made(d=64, n=8, vocab=128, **kw)
    x = torch.randint(0, 128, (2, 16), device="cuda")
    def fwd():
        with torch.autocast("cuda", dtype=amp or torch.bfloat16, enabled=amp is not None):
            return F.cross_entropy(m(x).flatten(0, 1), x.flatten())
    timed(name, fwd, list(m.parameters()), A)
    timed(name + " foreach=False", fwd, list(m.parameters()), lambda ps: torch.optim.AdamW(ps, 1e-4, foreach=False))
enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 8).cuda()
y = torch.randn(2, 16, 64, device="cuda")
timed("TransformerEncoder", lambda: enc(y).square().mean(), list(enc.parameters()), A)
conv = nn.Sequential(*[nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(16)]).cuda()
z = torch.randn(2, 16, 8, 8, device="cuda")
timed("conv bn relu", lambda: conv(z).square().mean(), list(conv.parameters()), lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9))
import transformers as t
for n, c, k in (("Llama", "LlamaForCausalLM", dict(num_key_value_heads=4)), ("GPT2", "GPT2LMHeadModel", {}), ("Bert", "BertForMaskedLM", {})):
    cfg = getattr(t, n + "Config")(**(dict(n_embd=64, n_layer=8, n_head=4, vocab_size=128, n_positions=64) if n == "GPT2" else dict(hidden_size=64, num_hidden_layers=8, num_attention_heads=4, intermediate_size=128, vocab_size=128, max_position_embeddings=64)), **k)
    m = getattr(t, c)(cfg).cuda()
    timed(n, lambda: m(input_ids=x, labels=x).loss, list(m.parameters()), A)
