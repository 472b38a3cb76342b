# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks over NCCL."""
import functools
import os
import tempfile

import torch.distributed as dist
from common import *

# no multicast objects
os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
card = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))


def begin(name):
    torch.cuda.set_device(card)
    if not name.startswith("accelerate"):  # Accelerate makes the group itself
        dist.init_process_group("nccl")


def end(answer):
    if dist.is_initialized() and answer == "ok":
        dist.barrier()
    os._exit(0)


class Attention(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = d // h
        s.q, s.k, s.v, s.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(s, x):
        q, k, v = (f(x).unflatten(-1, (-1, s.h)).transpose(1, 2) for f in (s.q, s.k, s.v))
        return s.o(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Mlp(Parts):
    def __init__(s, d):
        part = lambda i, o: nn.Linear(i, o, bias=False)
        super().__init__(up=part(d, 3 * d), gate=part(d, 3 * d), down=part(3 * d, d))

    def forward(s, x):
        return s.down(F.silu(s.gate(x)) * s.up(x))


def block(d):
    return Layer(d, mix=Attention(d, 16), mlp=Mlp(d))


def made(d=1024, n=8, dt=None, **k):
    torch.manual_seed(0)
    with card:
        m = Lm(d, n, layer=block, **k)
    return m.to(dt) if dt else m


def tokens(n=4, length=1024):
    return torch.randint(0, 32000, (n, length), device=card)


def steps(m, count=4, amp=None, opt=None, clip=True):
    o = opt or torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(count * TIMES):
        with torch.autocast("cuda", dtype=amp or BF, enabled=amp is not None):
            x = tokens()
            y = m(x)
            l = F.cross_entropy(y.flatten(0, 1), x.flatten())
            l.backward()
        if clip:
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()


def sharded(m, mesh=None, **k):
    from torch.distributed.fsdp import fully_shard

    for b in m.layers:
        fully_shard(b, mesh=mesh, **k)
    return fully_shard(m, mesh=mesh, **k)


def parallel(m, tp):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput,
                                                   RowwiseParallel, SequenceParallel,
                                                   parallelize_module)

    head = ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)
    parallelize_module(
        m, tp, {
            "emb": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(), "head": head
        })
    for b in m.layers:
        c, r = ColwiseParallel, functools.partial(RowwiseParallel, output_layouts=Shard(1))
        into = lambda: PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(
            Replicate(),))
        parallelize_module(
            b, tp, {
                "n1": SequenceParallel(), "n2": SequenceParallel(), "mix": into(), "mix.q": c(),
                "mix.k": c(), "mix.v": c(), "mix.o": r(), "mlp": into(), "mlp.up": c(),
                "mlp.gate": c(), "mlp.down": r()
            })
    return m


def ddp(m, **k):
    return nn.parallel.DistributedDataParallel(m, device_ids=[card], **k)


def stages(per, schedule, **k):
    from torch.distributed.pipelining import PipelineStage

    count, d = world * per, 1024
    parts, own = [], [rank + i * world for i in range(per)]
    if k.pop("folded", False):
        own = [rank, 2 * world - 1 - rank]
    torch.manual_seed(0)
    for i in own:
        with card:
            blocks = [block(d) for _ in range(8 // count or 1)]
            if i == 0:
                blocks = [nn.Embedding(32000, d)] + blocks
            if i == count - 1:
                blocks = blocks + [nn.RMSNorm(d), nn.Linear(d, 32000, bias=False)]
            parts.append(nn.Sequential(*blocks))
    made = [PipelineStage(p, i, count, card) for p, i in zip(parts, own)]
    s = schedule(made if per > 1 else made[0], 8,
                 loss_fn=lambda y, x: F.cross_entropy(y.flatten(0, 1), x.flatten()), **k)
    o = torch.optim.AdamW([p for m in parts for p in m.parameters()], 1e-4)
    for _ in range(3):
        x = tokens(8, 512)
        first, last = 0 in own, count - 1 in own
        s.step(*([x] if first else []), **({"target": x} if last else {}))
        o.step()
        o.zero_grad()


class Bottleneck(nn.Module):
    def __init__(s, i, d, step):
        super().__init__()
        c = lambda a, b, k, t=1: nn.Sequential(nn.Conv2d(a, b, k, t, k // 2, bias=False),
                                               nn.BatchNorm2d(b))
        s.a = c(i, d, 1)
        s.b = c(d, d, 3, step)
        s.c = c(d, 4 * d, 1)
        s.skip = c(i, 4 * d, 1, step) if i != 4 * d or step > 1 else nn.Identity()

    def forward(s, x):
        return F.relu(s.c(F.relu(s.b(F.relu(s.a(x))))) + s.skip(x))


def resnet50():
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
             nn.MaxPool2d(3, 2, 1)]
    i = 64
    for at, n in enumerate((3, 4, 6, 3)):
        for b in range(n):
            parts.append(Bottleneck(i, 64 << at, 2 if at and not b else 1))
            i = 256 << at
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


@program("FSDP2, mixed precision, checkpointing", ranks=4)
def fsdp2_mixed_checkpointed():
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=BF, reduce_dtype=torch.float32)
    steps(sharded(made(1536, save=True), mp_policy=policy))


@program("hybrid sharding", ranks=4)
def hsdp():
    mesh = dist.init_device_mesh("cuda", (2, 2), mesh_dim_names=("copy", "shard"))
    steps(sharded(made(dt=BF), mesh), clip=False)


@program("FSDP2 with offload", ranks=2)
def fsdp2_offload():
    from torch.distributed.fsdp import CPUOffloadPolicy

    steps(sharded(made(768, 4, dt=BF), offload_policy=CPUOffloadPolicy()), 3, clip=False)


@program("FSDP2 with tensor and sequence parallelism", ranks=4)
def fsdp2_with_tensor_and_sequence():
    from torch.distributed.tensor.parallel import loss_parallel

    mesh = dist.init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
    m = sharded(parallel(made(1024, 6), mesh["tp"]), mesh["dp"])
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens()
        with loss_parallel():
            F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        o.step()
        o.zero_grad()


@program("tensor parallelism", ranks=2)
def tensor_parallel_generates():
    m = made(1024, 6, dt=BF)
    mesh = dist.init_device_mesh("cuda", (2,))
    m = parallel(m, mesh).eval()
    with torch.no_grad():
        x = tokens(2, 100)
        for _ in range(12):
            y = m(x[:, -100:])
            x = torch.cat([x, y.full_tensor()[:, -1:].argmax(-1)], 1)


@program("DDP with a static graph and gradients as views", ranks=2)
def ddp_static_views():
    steps(ddp(made(save=True), static_graph=True, gradient_as_bucket_view=True), amp=BF)


@program("DDP with a bf16 hook and averaged weights", ranks=2)
def ddp_bf16_hook_ema():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as h

    m = ddp(made())
    m.register_comm_hook(None, h.bf16_compress_hook)
    e = torch.optim.swa_utils.AveragedModel(m.module)
    for _ in range(2):
        steps(m, 2, amp=BF)
        e.update_parameters(m.module)


@program("ZeRO 1", ranks=4)
def zero1_overlapping_none():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    m = ddp(made())
    steps(
        m, opt=ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=1e-4,
                                       parameters_as_bucket_view=True), amp=BF)


@program("FSDP1 and full states", ranks=2)
def fsdp1_gathers_states():
    from torch.distributed.fsdp import FullStateDictConfig, MixedPrecision, StateDictType
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    m = FSDP(made(1024, 6), auto_wrap_policy=ModuleWrapPolicy({Layer}),
             mixed_precision=MixedPrecision(param_dtype=BF, reduce_dtype=BF), device_id=card,
             use_orig_params=True)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens()
        F.cross_entropy(m(x).flatten(0, 1).float(), x.flatten()).backward()
        m.clip_grad_norm_(1.0)
        o.step()
        o.zero_grad()
    with FSDP.state_dict_type(m, StateDictType.FULL_STATE_DICT,
                              FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
        m.state_dict()


@program("distributed checkpoints", ranks=2)
def checkpoints_and_resumes():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    m = sharded(made(768, 6))
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    steps(m, 2, amp=BF, opt=o)
    where = os.path.join(tempfile.gettempdir(), "cufrag-jobs-%s" % os.environ["MASTER_PORT"])
    a, b = get_state_dict(m, o)
    dcp.save({"m": a, "o": b}, checkpoint_id=where)
    a, b = get_state_dict(m, o)
    dcp.load({"m": a, "o": b}, checkpoint_id=where)
    set_state_dict(m, o, model_state_dict=a, optim_state_dict=b)
    steps(m, 2, amp=BF, opt=o)


@program("pipeline, 1F1B", ranks=4)
def pipeline_1f1b():
    from torch.distributed.pipelining import Schedule1F1B

    stages(1, Schedule1F1B)


@program("pipeline, interleaved", ranks=2)
def pipeline_interleaved():
    from torch.distributed.pipelining import ScheduleInterleaved1F1B

    stages(2, ScheduleInterleaved1F1B)


@program("pipeline, V schedule without bubbles", ranks=2)
def pipeline_v():
    from torch.distributed.pipelining import ScheduleZBVZeroBubble

    stages(2, ScheduleZBVZeroBubble, folded=True)


@program("expert parallelism", ranks=4)
def experts_all_to_all():
    from torch.distributed.nn.functional import all_to_all_single

    torch.manual_seed(rank)
    d, experts = 1024, 4
    with card:
        m = nn.ModuleDict({
            "e": nn.Embedding(32000, d), "w": nn.ModuleList(Mlp(d) for _ in range(experts)),
            "h": nn.Linear(d, 32000, bias=False)
        })
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens(4, 512)
        h = m["e"](x).flatten(0, 1)
        to = (x.flatten() * 7919 % 1009) % (experts * world)  # each its expert, unevenly
        order = to.argsort(stable=True)
        counts = torch.bincount(to, minlength=experts * world)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        send = counts.view(world, -1).sum(1).tolist()
        got = theirs.view(world, -1).sum(1).tolist()
        y = h[order]
        z = all_to_all_single(y.new_empty(sum(got), d), y, got, send)
        kind = torch.repeat_interleave(torch.arange(experts, device=card).repeat(world), theirs)
        z = torch.cat([m["w"][e](z[kind == e]) for e in range(experts)])
        z = z[torch.argsort(torch.argsort(kind, stable=True))]
        y = all_to_all_single(torch.empty_like(y), z, send, got)
        h = h + torch.zeros_like(h).index_copy(0, order, y)
        F.cross_entropy(m["h"](h), x.flatten()).backward()
        o.step()
        o.zero_grad()


@program("context parallelism in a ring", ranks=2)
def context_parallel_ring():
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mesh, m = dist.init_device_mesh("cuda", (2,)), made(1024, 4, dt=BF)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x, y = tokens(1, 4096), tokens(1, 4096)
        with context_parallel(mesh, buffers=[x, y],
                              buffer_seq_dims=[1, 1]), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            F.cross_entropy(m(x).flatten(0, 1), y.flatten()).backward()
        o.step()
        o.zero_grad()


@program("redistributed tensors", ranks=4)
def tensors_change_their_places():
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = dist.init_device_mesh("cuda", (2, 2))
    a = distribute_tensor(torch.randn(4096, 3001, device=card), mesh, [Shard(0), Shard(1)])
    b = distribute_tensor(torch.randn(3001, 2048, device=card), mesh, [Replicate(), Shard(0)])
    c = a @ b
    for p in ([Replicate(), Replicate()], [Shard(1), Shard(0)], [Shard(0), Shard(0)],
              [Shard(1), Replicate()]):
        c = c.redistribute(mesh, p)
        c = (c * 2 + 1).softmax(-1)
    c.sum().full_tensor()
    torch.distributed.tensor.randn(1001, 777, device_mesh=mesh,
                                   placements=[Shard(0), Shard(1)]).norm().full_tensor()


@program("Accelerate with FSDP2", ranks=2)
def accelerate_fsdp2():
    from accelerate import Accelerator, FullyShardedDataParallelPlugin

    p = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                       transformer_cls_names_to_wrap=["Layer"])
    a = Accelerator(mixed_precision="bf16", fsdp_plugin=p, gradient_accumulation_steps=2)
    m = made(1024, 6)
    m, o = a.prepare(m, torch.optim.AdamW(m.parameters(), 1e-4))
    for _ in range(6):
        with a.accumulate(m):
            x = tokens()
            a.backward(F.cross_entropy(m(x).flatten(0, 1).float(), x.flatten()))
            a.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            o.zero_grad()


@program("compiled FSDP2", ranks=2)
def compiled_fsdp2():
    m = made(768, 4)
    for b in m.layers:
        b.compile()
    steps(sharded(m), 4, amp=BF, clip=False)


@program("uneven inputs with Join", ranks=2)
def averages_now_and_then():
    from torch.distributed.algorithms.join import Join

    m = ddp(made(768, 4))
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    with Join([m]):
        for _ in range(3 + rank):
            x = tokens()
            F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
            o.step()
            o.zero_grad()


@program("symmetric memory", ranks=2)
def memory_that_ranks_share():
    import torch.distributed._symmetric_memory as sm

    group = dist.group.WORLD.group_name
    torch.manual_seed(0)
    t = sm.empty(4 << 20, dtype=BF, device=card)
    sm.rendezvous(t, group)
    t.normal_()
    for _ in range(3):
        a = torch.ops.symm_mem.one_shot_all_reduce(t, "sum", group)
        torch.ops.symm_mem.two_shot_all_reduce_(t, "sum", group)
        t.div_(a.abs().amax() + 1)
    x = torch.randn(4096, 4096, dtype=BF, device=card)
    w = torch.randn(4096, 7168, dtype=BF, device=card)
    v = torch.randn(7168, 4096, dtype=BF, device=card)
    for _ in range(3):
        whole, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [w], 0, group)
        x = torch.ops.symm_mem.fused_matmul_reduce_scatter(y.relu(), v, "avg", 0, group)
        x = F.rms_norm(x, (4096,))


@program("synchronized batch normalization", ranks=2)
def ddp_resnet_with_shared_norms():
    torch.manual_seed(0)
    with card:
        m = resnet50()
    m = ddp(nn.SyncBatchNorm.convert_sync_batchnorm(m).to(memory_format=torch.channels_last))
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cuda", 1024.0)
    for _ in range(5):
        x = torch.randn(48, 3, 224, 224, device=card).to(memory_format=torch.channels_last)
        y = torch.randint(0, 1000, (48,), device=card)
        with torch.autocast("cuda", dtype=torch.float16):
            l = F.cross_entropy(m(x), y, label_smoothing=0.1)
        scaler.scale(l).backward()
        scaler.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 5.0)
        scaler.step(o)
        scaler.update()
        o.zero_grad()
