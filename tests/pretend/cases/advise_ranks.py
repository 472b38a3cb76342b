"""What is sharded over ranks."""
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from support.ranks import begin, dist, torch
from support.small import blocks, cuda, nn, step, sys

# needs: torch>=2.6
# python: by_hand("fsdp,fsdp_zero2,zero_states", options="--ranks 0,1")
# run: advise --changes reshard_after_forward --ranks 0,1 -- sharded
# match: tried without effect: reshard_after_forward
# run: advise --changes fsdp --ranks 0
# match: left out: fsdp: .*; give --ranks
by_hand = sys.argv[1:]
begin(takes_card=False)
m = nn.Sequential(*blocks(4, 512, 2048)).cuda()
if {"fsdp", "fsdp_zero2", "sharded"} & set(by_hand):
    for b in [*m, m]:
        fully_shard(b, reshard_after_forward="fsdp_zero2" not in by_hand)
else:
    m = nn.parallel.DistributedDataParallel(m)
if "zero_states" in by_hand:
    o = ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=0.1)
else:
    o = torch.optim.AdamW(m.parameters(), lr=0.1)
for i in range(3):
    step(o, m(cuda.randn(128, 512)).square().mean())
dist.destroy_process_group()
