"""Ranks talk: collectives of seven types, objects, pairs and groups."""
from support.ranks import begin, card, dist, end, expect, full, rank, torch, world

# case: own
# needs: torch>=2.3
# run: record --ranks 0-3
# check: agree(4) is None
# run: record --ranks 0,1

# case: torchrun
# needs: torch>=2.3
# run: record --gpus 2 --- torchrun --nproc-per-node 2 CASE
# check: agree(2) is None

def collectives():
    for kind in (torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for name, wanted in (("SUM", world * (world + 1) / 2), ("MAX", world), ("MIN", 1)):
            x = full(rank + 1, kind=kind)
            dist.all_reduce(x, op=getattr(dist.ReduceOp, name))
            expect("%s of %s" % (name, kind), x.tolist(), [wanted] * 2)
    x = full(rank)
    dist.broadcast(x, world - 1)
    expect("broadcast", x.tolist(), [world - 1] * 2)
    x = torch.empty(2 * world, dtype=torch.int64, device=card)
    dist.all_gather_into_tensor(x, full(rank))
    expect("gather", x.tolist(), [i for i in range(world) for _ in range(2)])
    x = torch.empty(2, dtype=torch.int64, device=card)
    dist.reduce_scatter_tensor(x, torch.arange(2 * world, device=card) + rank)
    expect("reduce_scatter", x.tolist(), [world * (2 * rank + k) + world * (world - 1) // 2 for k in range(2)])
    given = [i + 1 + rank for i in range(world)]
    x = torch.empty(sum(rank + 1 + i for i in range(world)), dtype=torch.int64, device=card)
    dist.all_to_all_single(x, torch.cat([full(100 * rank + i, n) for i, n in enumerate(given)]), [rank + 1 + i for i in range(world)], given)
    expect("all_to_all", x.tolist(), [100 * i + rank for i in range(world) for _ in range(rank + 1 + i)])
    x, onward = torch.empty(2, dtype=torch.int64, device=card), [[2 * (i == (rank + d) % world) for i in range(world)] for d in (-1, 1)]
    dist.all_to_all_single(x, full(rank), *onward)
    expect("all_to_all of one part", x.tolist(), [(rank - 1) % world] * 2)
    x = torch.ones(1, device=card)
    dist.all_reduce(x, group=[dist.new_group([i for i in range(world) if i % 2 == k]) for k in range(2)][rank % 2])
    expect("group", x.item(), len(range(rank % 2, world, 2)))

def objects():
    x = [None] * world
    dist.all_gather_object(x, {"rank": rank, "text": "x" * 1000 * rank})
    expect("objects", [o["rank"] for o in x], list(range(world)))
    x = [bytes(5 << 20) if rank == 0 else None]
    dist.broadcast_object_list(x, 0)
    expect("large object", len(x[0]), 5 << 20)

def pairs():
    """Either order of sends and receives."""
    peer, x = rank ^ 1, torch.empty(2, dtype=torch.int64, device=card)
    operations = [dist.P2POp(dist.irecv, x, peer), dist.P2POp(dist.isend, full(rank), peer)]
    for work in dist.batch_isend_irecv(operations if rank % 2 else operations[::-1]):
        work.wait()
    expect("received", x.tolist(), [peer] * 2)

begin()
collectives()
objects()
pairs()
dist.barrier()
end()
