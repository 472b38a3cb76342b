"""Inductor's kernels are compiled but not run, "reduce-overhead" captures them: [MODE]."""
from support.small import cuda, nn, sys, torch, train

# case: plain
# needs: package triton
# run: record
# expect: made 0
# expect: resolved [0, 0, 0] 28
# verify

# case: graphs
# needs: package triton
# run: record -- reduce-overhead
# verify
# run: info run.cft
# match: private pools

# graphs of Inductor, with pools of the policy
# case: live
# needs: package triton
# python:
#   for policy in "pytorch", "vmm":
#       run("run --policy %s --record live.cft -- reduce-overhead" % policy)
#       run("info live.cft")
#       match("private pools")
#       run("replay live.cft --policy " + policy)
net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256)).cuda()
train(torch.compile(net, mode=sys.argv[1] if len(sys.argv) > 1 else None), 8, 128, 256)
before = cuda.arange(64) + 1000000  # not what compiled code gives afterwards, in the same memory
del before
most = torch.compile(lambda x: (x + 5).max())
print("made", most(cuda.arange(64)).item())

@torch.compile(dynamic=True)
def resolve(ids, table):
    """Changes integers in place: those of before may be places that are not there."""
    ids[:] = torch.where(ids < 0, table[torch.clamp(-ids, min=0)], ids)

if len(sys.argv) == 1:
    ids, table = cuda.tensor([4, -1, -2]), cuda.arange(8)
    resolve(ids, table)
    nn.functional.embedding(ids, cuda.ones(8, 2))
    print("resolved", ids.tolist(), table.sum().item())
