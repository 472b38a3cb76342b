"""One rank of each role, or ranks in turns where memory is short, record what all ranks do."""
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from support.ranks import card, dist, end, expect, full, rank, torch, world

# needs: torch>=2.6
# run: record --ranks roles --world 8 -o roles.cft
# python: agree(4)
# match: rank 0 stands for ranks 0-3; the same ran: 3$
# match: rank 4 stands for ranks 4-7; the same ran: 7$
# run: record --ranks 0-7 -o all.cft
# python: agree(8)
# fails: record --ranks 0-7 --memory 64M -o no.cft
# match: ranks have to run at a time.*raise --memory
# python:
#   assert not os.path.exists("no.cft")
#   each = int(re.search(r" rank 0 alone took (\d+).* MiB of the host", log)[1])
#   run("record --ranks 0-7 --memory %dM -o turns.cft" % (5 * each + 5))
# check: len(re.findall("rank [04] done", log)) == 6
# python:
#   roles, every, turns = peaks("roles.cft"), peaks("all.cft"), peaks("turns.cft")
#   assert len(roles) == 2 and roles == [every[0], every[4]] and turns == every, (roles, every)
#   said = [(r["rank"], r["stands_for"], r["alike"]) for r in info("roles.cft")["estimate"]["roles"]]
#   assert said == [(0, "0-3", "3"), (4, "4-7", "7")], said
torch.cuda.set_device(card)
mesh = dist.init_device_mesh("cuda", (2, world // 2), mesh_dim_names=("stage", "copy"))
stage = rank * 2 // world
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(3 + stage)]).to(card)
fully_shard(model, mesh=mesh["copy"])
schedule = Schedule1F1B(PipelineStage(model, stage, 2, card, group=mesh["stage"].get_group()), 4, loss_fn=torch.nn.functional.mse_loss)
optimizer = torch.optim.AdamW(model.parameters())
told = full(rank if rank == 0 else -1)
if stage == 0:  # by the group of all, which has no stages
    dist.send(told, rank + world // 2)
else:
    dist.recv(told, rank - world // 2)
dist.broadcast(told, 0)
expect("told", told.tolist(), [0, 0])
x = [None] * world
dist.all_gather_object(x, stage)
expect("stages", x, [r * 2 // world for r in range(world)])
stages = [r * 2 // world for r in range(world)]
x = [full(-1, 1 + s) for s in stages]  # with PyTorch 2.15, a group of broadcasts
dist.all_gather(x, full(stage, 1 + stage))
expect("parts", [t.tolist() for t in x], [[s] * (1 + s) for s in stages])
for _ in range(3):
    x = torch.randn(64, 512, device=card)
    schedule.step(*([x] if stage == 0 else []), **({"target": x} if stage == 1 else {}))
    optimizer.step()
    optimizer.zero_grad()
end()
