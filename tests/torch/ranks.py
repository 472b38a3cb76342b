# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks: ranks.py talk|symmetric|clocks|pipeline|roles|buckets|gloo|checkpoints|stuck|differ|end_waiting|restart. Each rank prints "rank N done", and what
is not as it should be."""
import inspect
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def expect(what, got, wanted):
    if got != wanted:
        print("rank %d: %s is %s, not %s" % (rank, what, got, wanted), flush=True)


def full(value, count=2, kind=torch.int64):
    return torch.full((count,), value, dtype=kind, device=card)


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


def talk():
    collectives()
    objects()
    pairs()
    dist.barrier()


def symmetric_buffer(memory, group, shape, kind):
    """One in symmetric memory, and the handle by which it is shared."""
    shape = tuple(shape)
    if hasattr(memory, "empty"):
        buffer = memory.empty(*shape, dtype=kind, device=card)
        return buffer, memory.rendezvous(buffer, group)
    memory.enable_symm_mem_for_group(group)  # PyTorch 2.5
    steps = torch.empty(shape, device="meta").stride()
    buffer = memory._SymmetricMemory.empty_strided_p2p(shape, steps, kind, card, group)
    return buffer, memory._SymmetricMemory.rendezvous(buffer)


def exchange(buffer, handle, shape):
    """Each writes into the memory of all, and then in a ring, by signals; the same memory is used again and again."""
    for turn in range(3):
        buffer.zero_()
        handle.barrier()
        for peer in range(world):
            handle.get_buffer(peer, shape, torch.int64)[rank].fill_(10 * peer + rank + turn)
        handle.barrier()
        expect("pushed", buffer[:, 0].tolist(), [10 * rank + k + turn for k in range(world)])
        handle.barrier()
    onward, back = (rank + 1) % world, (rank - 1) % world
    for turn in range(4):
        handle.get_buffer(onward, shape, torch.int64)[0].fill_(100 * turn + rank)
        handle.put_signal(onward)
        handle.wait_signal(back)
        expect("ring", buffer[0, 0].item(), 100 * turn + back)
        handle.barrier()


def sums(memory, group, ops, kind):
    buffer, handle = symmetric_buffer(memory, group, (4096,), kind)
    if not hasattr(ops, "one_shot_all_reduce"):
        return
    wanted = sum(range(world))
    for turn in range(3):
        buffer.fill_(turn + rank)
        expect("one shot", ops.one_shot_all_reduce(buffer, "sum", group).unique().tolist(), [world * turn + wanted])
        ops.two_shot_all_reduce_(buffer, "sum", group)
        expect("two shots", buffer.unique().tolist(), [world * turn + wanted])
    if hasattr(ops, "one_shot_all_reduce_copy"):
        own = torch.full_like(buffer, rank)
        expect("copied first", ops.one_shot_all_reduce_copy(buffer, own, "sum", group)[0].item(), wanted)
        expect("two shots elsewhere", ops.two_shot_all_reduce_out(buffer.copy_(own), "sum", group, torch.empty_like(own))[0].item(), wanted)


def symmetric():
    import torch.distributed._symmetric_memory as memory
    group, ops = dist.group.WORLD.group_name, torch.ops.symm_mem
    shape = (world, 64)
    exchange(*symmetric_buffer(memory, group, shape, torch.int64), shape)
    for kind in (torch.float32, torch.bfloat16):
        sums(memory, group, ops, kind)
    own = torch.arange(32.0, device=card).view(4, 8) + 100 * rank
    whole = torch.cat([own - 100 * rank + 100 * k for k in range(world)])
    if hasattr(memory, "enable_symm_mem_for_group"):
        memory.enable_symm_mem_for_group(group)
    gathered, (product,) = ops.fused_all_gather_matmul(own, [2 * torch.eye(8, device=card)], 0, group)
    expect("gathered", (gathered.tolist(), product.tolist()), (whole.tolist(), (2 * whole).tolist()))
    part = ops.fused_matmul_reduce_scatter(whole + rank, torch.eye(8, device=card), "sum", 0, group)
    expect("scattered", part.tolist(), (whole * world + sum(range(world)))[4 * rank:4 * rank + 4].tolist())
    large, _ = symmetric_buffer(memory, group, (8 << 20,), torch.bfloat16)
    expect("nobody's", large.shape, (8 << 20,))


def clocks():
    """What is received is over when the sender has begun, which has 200 kernels before; on the clock that all ranks share, however fast each of them is."""
    y = torch.empty(1 << 20, device=card)

    def work(count):
        for _ in range(count):
            y.add_(1)
    for ahead in range(2):
        x = full(rank)
        work(1)
        dist.all_reduce(x)
        torch.cuda.synchronize()
        if rank == ahead:
            time.sleep(1)
        if rank:
            work(200)
            dist.send(x, 0)
            continue
        dist.recv(x, 1)
        event = torch.cuda.Event()
        event.record()
        is_over = [event.query()]
        for count in (150, 100):
            work(count)
            is_over.append(event.query())
        expect("over", is_over, [False, False, True])


def pipeline():
    """Stages tell each other their shapes before they begin."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).to(card)
    required = inspect.signature(PipelineStage).parameters["input_args"].default is inspect.Parameter.empty  # PyTorch 2.5
    stage = PipelineStage(model, rank, world, card, **({"input_args": (torch.zeros(16, 256, device=card),)} if required else {}))
    schedule = Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        x = torch.randn(64, 256, device=card)
        schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == world - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def roles():
    """Two stages, each of world / 2 ranks that do the same, but for what they are told."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
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
    x = [full(-1, 1 + s) for s in stages]  # of unequal parts, or with PyTorch 2.15: a group of broadcasts
    dist.all_gather(x, full(stage, 1 + stage))
    expect("parts", [t.tolist() for t in x], [[s] * (1 + s) for s in stages])
    for _ in range(3):
        x = torch.randn(64, 512, device=card)
        schedule.step(*([x] if stage == 0 else []), **({"target": x} if stage == 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def buckets():
    """The first buckets of DistributedDataParallel are gone when the new ones are made, however long a step takes."""
    kept = []
    for n in range(6):
        before = torch.cuda.memory_allocated()
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2048, 2048, bias=False, device=card))
        kept.append(model)
        x = torch.zeros(1, 2048, device=card)
        model(x).sum().backward()
        loss = model(x).sum()
        if n:  # with the first come the workspaces of libraries
            expect("weight, gradient and bucket %d" % n, (torch.cuda.memory_allocated() - before) >> 24, 3)
        loss.backward()


def gloo():
    """DistributedDataParallel over gloo's sockets, whose parameters and gradients are on the card."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024, device=card), device_ids=[card])
    made = torch.cuda.memory_stats()["allocation.all.allocated"]
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model(torch.ones(8, 1024, device=card)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("steps of rank %d: %d requests" % (rank, torch.cuda.memory_stats()["allocation.all.allocated"] - made), flush=True)


def checkpoints():
    """Trains, saves, loads and trains again: FSDP2 in shards, and FSDP, whose ranks have parts of parameters, whole and in shards."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    folder = sys.argv[2]
    for whole in (False, True):
        net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).to(card)
        net = FullyShardedDataParallel(net, use_orig_params=True) if whole else fully_shard(net)
        optimizer = torch.optim.AdamW(net.parameters())

        def step():
            net(torch.randn(64, 256, device=card)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        step()
        for full in (False, True)[:1 + whole]:
            options = StateDictOptions(full_state_dict=full, cpu_offload=full)
            names = ("model", "states")
            state = dict(zip(names, get_state_dict(net, optimizer, options=options)))
            if full:
                expect("states of", len(state["states"].get("state", ())), 6 if rank == 0 else 0)
                continue
            path = os.path.join(folder, "whole" if whole else "shards")
            dcp.save(state, checkpoint_id=path)
            dcp.load(state, checkpoint_id=path)
            set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["states"])
        step()
    x = [None] * world if rank == 0 else None
    dist.gather_object({"rank": rank}, x, 0)
    if rank == 0:
        expect("kinds gathered", {type(o) for o in x}, {dict})


def stuck():
    """On cards, too: each waits for what the other sends afterwards."""
    x = full(0)
    dist.recv(x, rank ^ 1)
    x.tolist()
    dist.send(x, rank ^ 1)


def end_waiting():
    """Rank 0 is to end while it waits for a value of rank 1."""
    pids = [None] * world
    dist.all_gather_object(pids, os.getpid())
    if rank:
        time.sleep(2)
        os.kill(pids[0], signal.SIGTERM)
        time.sleep(2)
        return
    x = full(rank)
    dist.all_reduce(x)
    x.tolist()
    time.sleep(2)


def leave_early():
    """Rank 1 ends before it was a member of any group of NCCL's."""
    if rank:
        os._exit(0)
    x = full(5)
    dist.all_reduce(x)
    print("left alone", x.tolist(), flush=True)
    os._exit(0)


def deaf():
    """Rank 0 waits inside of the library, rank 1 does not end when it is asked to."""
    print("rank %d is %d" % (rank, os.getpid()), flush=True)
    if rank:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        time.sleep(100)
    x = full(5)
    dist.all_reduce(x)
    x.tolist()


def no_step():
    """As what generates does: it takes no step, and ends without exit handlers."""
    x = full(rank)
    dist.all_reduce(x)
    print("rank %d done" % rank, flush=True)
    os._exit(0)


def restart():
    """The first attempt fails; in the second, rank 0 comes last to its first collective."""
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if not first and rank == 0:
        time.sleep(3)
    x = full(rank, 1 << 18)  # so much that what was read is given back
    dist.all_reduce(x)
    expect("sum", x[0].item(), world * (world - 1) // 2)
    if first:
        sys.exit(rank)


def differ():
    """On cards, too, an error: the last rank gathers where the others add up."""
    x = full(rank)
    if rank == world - 1:
        x = full(0, 2 * world)
        dist.all_gather_into_tensor(x, full(rank))
    else:
        dist.all_reduce(x)
    x.tolist()


torch.cuda.set_device(card)
if sys.argv[1] != "roles":  # there the mesh does
    kind = "gloo" if sys.argv[1] == "gloo" else "nccl"
    takes_card = "device_id" in inspect.signature(dist.init_process_group).parameters  # since PyTorch 2.3
    dist.init_process_group(kind, **({"device_id": card} if takes_card and sys.argv[1] not in ("gloo", "restart", "leave_early") else {}))
globals()[sys.argv[1]]()
print("rank %d done" % rank, flush=True)
dist.destroy_process_group()
