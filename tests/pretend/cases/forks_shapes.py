"""Forked layouts take DTensor's answers about the optimizer from the first layout: BATCH."""
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.fsdp import fully_shard
from support.ranks import begin, dist, torch
from support.small import sys, train

# needs: torch>=2.6
# python:
#   of = {}
#   for way, batches in ("--exact", "6"), ("", "1,2,3,4,5,6"):
#       layout("%s --world 4 --jobs 1 --vary {n}=%s -- {n}" % (way, batches))
#       six = [line for line in lines("rows.csv") if "n=6" in line]
#       six = [line.replace(",card,", ",recorded,") for line in six]
#       of[way] = six, [line == "0" for line in lines("counts")]
#       os.remove("counts")
#   (anew, anew_none), (forked, forked_none) = of["--exact"], of[""]
#   assert anew == forked, of
#   never("started anew")
#   assert not any(anew_none) and forked_none.count(False) <= 2 and forked_none.count(True) >= 5, of
count, dispatch = [0], FakeTensorMode.dispatch

def counted(self, func, *args, **kwargs):
    count[0] += "_foreach_" in str(func)
    return dispatch(self, func, *args, **kwargs)

FakeTensorMode.dispatch = counted
begin(takes_card=False)
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
train(model, int(sys.argv[1]) * 256, 1024, steps=4, foreach=True)
with open("counts", "a") as f:
    f.write("%d\n" % count[0])
dist.destroy_process_group()
