"""DistributedDataParallel over gloo needs the same alone as with the other rank."""
from support.ranks import begin, card, end, rank, torch
from support.small import step

# needs: from torch._C._distributed_c10d import FakeProcessGroup
# python:
#   alone, every = (re.search("steps of rank 0: .*", run("record --world 2 --ranks " + ranks))[0] for ranks in ("0", "0,1"))
#   assert alone == every, (alone, every)
begin("gloo", takes_card=False)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024, device=card), device_ids=[card])
made = torch.cuda.memory_stats()["allocation.all.allocated"]
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    step(optimizer, model(torch.ones(8, 1024, device=card)).sum())
print("steps of rank %d: %d requests" % (rank, torch.cuda.memory_stats()["allocation.all.allocated"] - made), flush=True)
end()
