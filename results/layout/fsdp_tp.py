# SPDX-License-Identifier: Apache-2.0
# A GPT in plain PyTorch: FSDP2 with bf16 for computing, tensor parallelism, checkpointing of each block
import argparse, os, torch, torch.nn as nn, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
from torch.distributed.tensor.parallel import parallelize_module, ColwiseParallel, RowwiseParallel
from torch.utils.checkpoint import checkpoint
p = argparse.ArgumentParser()
for n, d in [("layers", 8), ("width", 2048), ("heads", 16), ("vocab", 32000), ("seq", 2048), ("mb", 2), ("tp", 1), ("steps", 4), ("kv", 0), ("ffn", 0)]:
    p.add_argument("--" + n, type=int, default=d)
p.add_argument("--ac", default="none")
a = p.parse_args()  # kv: heads of keys and values, ffn: width of a gated network, as Llama has them
size = a.width // a.heads
world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
mesh = init_device_mesh("cuda", (world // a.tp, a.tp), mesh_dim_names=("dp", "tp"))
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1, s.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        kv, ffn = (a.kv or a.heads) * size, a.ffn or 4 * a.width
        s.q, s.k, s.v, s.out = (nn.Linear(a.width, n) for n in (a.width, kv, kv, a.width))
        s.up, s.down = nn.Linear(a.width, ffn), nn.Linear(ffn, a.width)
        if a.ffn: s.gate = nn.Linear(a.width, ffn)
    def forward(s, x):
        b, t, _ = x.shape
        y = s.n1(x)
        q, k, v = (f(y).view(b, t, -1, size).transpose(1, 2) for f in (s.q, s.k, s.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=bool(a.kv)).transpose(1, 2).reshape(b, t, -1)
        x = x + s.out(y)
        y = s.n2(x)
        return x + s.down(nn.functional.silu(s.gate(y)) * s.up(y) if a.ffn else nn.functional.gelu(s.up(y)))
class GPT(nn.Module):
    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(a.vocab, a.width); s.blocks = nn.ModuleList(Block() for _ in range(a.layers)); s.head = nn.Linear(a.width, a.vocab, bias=False)
    def forward(s, x):
        x = s.emb(x)
        for b in s.blocks: x = checkpoint(b, x, use_reentrant=False) if a.ac == "full" else b(x)
        return s.head(x)
with torch.device("meta"): m = GPT()
for b in m.blocks:
    if a.tp > 1:
        parallelize_module(b, mesh["tp"], {**{n: ColwiseParallel() for n in ("q", "k", "v", "up", "gate") if hasattr(b, n)}, "out": RowwiseParallel(), "down": RowwiseParallel()})
    fully_shard(b, mesh=mesh["dp"], mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
fully_shard(m, mesh=mesh["dp"], mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
m.to_empty(device="cuda")
for q in m.parameters(): nn.init.normal_(q, std=0.02)
o = torch.optim.AdamW(m.parameters())
for i in range(a.steps):
    x = torch.randint(a.vocab, (a.mb, a.seq), device="cuda")
    l = nn.functional.cross_entropy(m(x).float().view(-1, a.vocab), x.view(-1)); l.backward(); o.step(); o.zero_grad()
print("done", flush=True)
dist.destroy_process_group()
