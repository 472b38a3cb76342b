"""Symmetric memory: written by all ranks, summed, gathered and scattered."""
import torch.distributed._symmetric_memory as memory
from support.ranks import begin, card, dist, end, expect, rank, torch, world

# case: own
# needs: torch>=2.5
# run: record --ranks 0-3
# check: agree(4) is None

# case: torchrun
# needs: torch>=2.5
# run: record --gpus 2 --- torchrun --nproc-per-node 2 CASE
# check: agree(2) is None

# before, ranks meet in a file for symmetric memory
# case: one
# needs: torch>=2.6
# run: record --ranks 1 --world 4
# match: rank 1 done

def symmetric_buffer(group, shape, kind):
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
    """Each writes into the memory of all, and then in a ring, by signals."""
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

def sums(group, ops, kind):
    buffer, handle = symmetric_buffer(group, (4096,), kind)
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
    group, ops = dist.group.WORLD.group_name, torch.ops.symm_mem
    shape = (world, 64)
    exchange(*symmetric_buffer(group, shape, torch.int64), shape)
    for kind in (torch.float32, torch.bfloat16):
        sums(group, ops, kind)
    own = torch.arange(32.0, device=card).view(4, 8) + 100 * rank
    whole = torch.cat([own - 100 * rank + 100 * k for k in range(world)])
    if hasattr(memory, "enable_symm_mem_for_group"):
        memory.enable_symm_mem_for_group(group)
    gathered, (product,) = ops.fused_all_gather_matmul(own, [2 * torch.eye(8, device=card)], 0, group)
    expect("gathered", (gathered.tolist(), product.tolist()), (whole.tolist(), (2 * whole).tolist()))
    part = ops.fused_matmul_reduce_scatter(whole + rank, torch.eye(8, device=card), "sum", 0, group)
    expect("scattered", part.tolist(), (whole * world + sum(range(world)))[4 * rank:4 * rank + 4].tolist())
    large, _ = symmetric_buffer(group, (8 << 20,), torch.bfloat16)
    expect("nobody's", large.shape, (8 << 20,))

begin()
symmetric()
end()
