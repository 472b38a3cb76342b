"""Roles are taken from a layout with the same groups: KIND."""
import inspect
from support.ranks import begin, dist, rank, torch, world
from support.small import cuda, sys

# python:
#   of = {}
#   for way in "--fresh", "":
#       layout(way + " --world 4,8 --jobs 1 --vary {ac}=alike1,alike2,stages1,stages2,alike3,stages3 -- {ac}")
#       of[way] = [line.replace(",card,", ",recorded,") for line in lines("rows.csv")], lines("starts").count("4 alike2")
#       os.remove("starts")
#   never("started anew")
#   assert of[""][0] == of["--fresh"][0] and of[""][1] == 1 and of["--fresh"][1] == 3, of  # scouts and checks
#   found = {tuple(r["layout"].split()): r["rank"] for r in rows("rows.csv")}
#   assert found == {("world=" + w, "ac=" + kind + n): str(int(kind == "stages"))
#                    for w in "48" for kind in ("alike", "stages") for n in "123"}, found
kind = sys.argv[1]
with open("starts", "a") as starts:
    starts.write("%d %s\n" % (world, kind))
begin(takes_card=False)
has_name = "group_desc" in inspect.signature(dist.new_group).parameters  # since PyTorch 2.4
named, pairs = {"group_desc": "stages"} if has_name else {}, range(0, world, 2)
stages = [dist.new_group([n, n + 1], **named) for n in pairs] if kind.startswith("stages") else []
last = bool(stages) and rank % 2 == 1
layer = torch.nn.Linear(2048, 2048 * (4 if last else 1), device="cuda")
optimizer = torch.optim.AdamW(layer.parameters())
for _ in range(5):
    x = cuda.randn(64 * int(kind[-1]), 2048)
    if stages and not last:
        dist.send(x, rank + 1, group=stages[rank // 2])
    elif stages:
        dist.recv(x, rank - 1, group=stages[rank // 2])
    layer(x).square().mean().backward()
    dist.all_reduce(x)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
