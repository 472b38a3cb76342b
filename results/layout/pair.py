# SPDX-License-Identifier: Apache-2.0
"""A GPT on two ranks, which share a card if there is only one (each is a host to NCCL): --way ddp, zero1 or fsdp2."""
import argparse, json, os, sys
import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

p = argparse.ArgumentParser()
for n, d in [("layers", 8), ("width", 1536), ("heads", 16), ("vocab", 32000), ("seq", 1024), ("mb", 2), ("steps", 4), ("limit", 0)]:
    p.add_argument("--" + n, type=int, default=d)
p.add_argument("--ac", default="none")
p.add_argument("--way", default="ddp")
a = p.parse_args()
rank = int(os.environ["RANK"])
card = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.cuda.set_device(card)
if a.limit:
    torch.cuda.set_per_process_memory_fraction(a.limit / torch.cuda.get_device_properties(card).total_memory)
os.environ["NCCL_NVLS_ENABLE"] = "0"  # no multicast objects
if torch.cuda.device_count() < 2:
    os.environ.update(NCCL_HOSTID="rank%d" % rank, NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
dist.init_process_group("nccl")


class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1, s.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        s.qkv, s.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        s.up, s.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(s, x):
        q, k, v = s.qkv(s.n1(x)).unflatten(-1, (3, a.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + s.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + s.down(F.gelu(s.up(s.n2(x))))


class GPT(nn.Module):
    def __init__(s):
        super().__init__()
        s.emb, s.blocks = nn.Embedding(a.vocab, a.width), nn.ModuleList(Block() for _ in range(a.layers))
        s.head = nn.Linear(a.width, a.vocab, bias=False)

    def forward(s, x):
        x = s.emb(x)
        for b in s.blocks:
            x = checkpoint(b, x, use_reentrant=False) if a.ac == "full" else b(x)
        return s.head(x)


def main():
    torch.manual_seed(0)
    with card:
        m = GPT()
    if a.way == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for b in m.blocks:
            fully_shard(b)
        m = fully_shard(m)
    else:
        m = nn.parallel.DistributedDataParallel(m, device_ids=[card])
    if a.way == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        o = ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=1e-4)
    else:
        o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(a.steps):
        x = torch.randint(a.vocab, (a.mb, a.seq), device=card)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        l.backward()
        o.step()
        o.zero_grad()


status = "completes"
try:
    main()
except torch.cuda.OutOfMemoryError:
    status = "out of memory"
s = torch.cuda.memory_stats()
keys = ("reserved_bytes.all.peak", "requested_bytes.all.peak", "allocation.all.allocated", "requested_bytes.all.allocated", "num_alloc_retries", "num_ooms")
sys.stdout.write("RESULT " + json.dumps([rank, status] + [s[k] for k in keys]) + "END\n")
sys.stdout.flush()
os._exit(status != "completes")
