# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks over NCCL, which may share one card: what PyTorch's allocator says on every rank.

    jobs.py all OUT.csv [AT_A_TIME [NAME...]]              each job under torchrun with as many ranks as it wants
    torchrun --nproc-per-node N jobs.py NAME               one of them: a line of each rank

Each rank has a card of its own, and as many jobs run at a time as there are cards for. If there are too few, ranks share them: NCCL refuses two ranks on
one card of a host, so each says that it is a host of its own (NCCL_HOSTID), they meet over sockets, and AT_A_TIME jobs run. NCCL_NVLS_ENABLE=0: no
multicast objects.
"""
import contextlib, csv, functools, gzip, json, os, queue, subprocess, sys, tempfile, traceback, warnings

warnings.filterwarnings("ignore")
os.environ.update(NCCL_NVLS_ENABLE="0", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
J = {}


def job(n, backend="nccl"):
    def put(f):
        J[f.__name__] = (n, f, backend)
        return f
    return put


def every(out, at_a_time=2, *names):
    import concurrent.futures

    cards = subprocess.run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.split()

    def one(name):
        own = sets.get()
        try:
            p = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(J[name][0]), __file__, name],
                               capture_output=True, text=True, timeout=int(os.environ.get("LIMIT", "150")), env=dict(os.environ, CUDA_VISIBLE_DEVICES=own))
            text = p.stdout + p.stderr
        except subprocess.TimeoutExpired as e:
            text = str((e.stdout or b"") + (e.stderr or b"")) + "\nTIMEOUT"
        sets.put(own)
        open(out + "." + name + ".log", "w").write(text)
        return name, [json.loads(t.split("END")[0]) for t in text.split("RESULT ")[1:] if "END" in t]

    with open(out, "w") as f:
        w = csv.writer(f)
        w.writerow("job rank requests requested_bytes peak_requested peak_allocated peak_reserved retries answer".split())
        for n in sorted({J[x][0] for x in names or J}):
            sets = queue.Queue()
            for own in [",".join(cards[i:i + n]) for i in range(0, len(cards) - n + 1, n)] or [",".join(cards)] * int(at_a_time):
                sets.put(own)
            with concurrent.futures.ThreadPoolExecutor(sets.qsize()) as pool:
                for name, rows in pool.map(one, [x for x in names or J if J[x][0] == n]):
                    for r in sorted(rows) or [[-1]]:
                        w.writerow([name] + r)
                    f.flush()


import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
card = torch.device("cuda", 0)
BF = torch.bfloat16


class Attention(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = d // h
        s.q, s.k, s.v, s.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(s, x):
        q, k, v = (f(x).unflatten(-1, (-1, s.h)).transpose(1, 2) for f in (s.q, s.k, s.v))
        return s.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.up, s.gate, s.down = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, 3 * d, bias=False), nn.Linear(3 * d, d, bias=False)

    def forward(s, x):
        return s.down(F.silu(s.gate(x)) * s.up(x))


class Block(nn.Module):
    def __init__(s, d, h=16):
        super().__init__()
        s.n1, s.n2, s.attention, s.mlp = nn.RMSNorm(d), nn.RMSNorm(d), Attention(d, h), Mlp(d)

    def forward(s, x):
        x = x + s.attention(s.n1(x))
        return x + s.mlp(s.n2(x))


class Gpt(nn.Module):
    def __init__(s, d=1024, n=8, vocab=32000, save=False):
        super().__init__()
        s.emb, s.blocks, s.norm, s.head, s.save = nn.Embedding(vocab, d), nn.ModuleList(Block(d) for _ in range(n)), nn.RMSNorm(d), nn.Linear(d, vocab, bias=False), save

    def forward(s, x):
        x = s.emb(x)
        for b in s.blocks:
            x = checkpoint(b, x, use_reentrant=False) if s.save else b(x)
        return s.head(s.norm(x))


def made(*a, dt=None, **k):
    torch.manual_seed(0)
    with card:
        m = Gpt(*a, **k)
    return m.to(dt) if dt else m


def tokens(n=4, length=1024):
    return torch.randint(0, 32000, (n, length), device=card)


def steps(m, count=4, amp=None, opt=None, accum=1, sync=None, clip=True, n=4):
    o = opt or torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(count):
        for i in range(accum):
            with sync(m, i) if sync else contextlib.nullcontext(), torch.autocast("cuda", dtype=amp or BF, enabled=amp is not None):
                x = tokens(n)
                y = m(x)
                l = F.cross_entropy(y.flatten(0, 1), x.flatten())
                l.backward()
        if clip:
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()


def sharded(m, mesh=None, **k):
    from torch.distributed.fsdp import fully_shard

    for b in m.blocks:
        fully_shard(b, mesh=mesh, **k)
    return fully_shard(m, mesh=mesh, **k)


@job(4)
def fsdp2_mixed_checkpointed():
    from torch.distributed.fsdp import MixedPrecisionPolicy

    steps(sharded(made(1536, save=True), mp_policy=MixedPrecisionPolicy(param_dtype=BF, reduce_dtype=torch.float32)))


@job(8)
def fsdp2_of_eight_kept_between():
    steps(sharded(made(1024, 6), reshard_after_forward=2), amp=BF)


@job(4)
def hsdp():
    mesh = dist.init_device_mesh("cuda", (2, 2), mesh_dim_names=("copy", "shard"))
    steps(sharded(made(dt=BF), mesh), clip=False)


@job(2)
def fsdp2_offload():
    from torch.distributed.fsdp import CPUOffloadPolicy

    steps(sharded(made(768, 4, dt=BF), offload_policy=CPUOffloadPolicy()), 3, clip=False)


def parallel(m, tp):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module

    parallelize_module(m, tp, {"emb": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
                               "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    for b in m.blocks:
        c, r = ColwiseParallel, functools.partial(RowwiseParallel, output_layouts=Shard(1))
        into = lambda: PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        parallelize_module(b, tp, {"n1": SequenceParallel(), "n2": SequenceParallel(), "attention": into(), "attention.q": c(), "attention.k": c(), "attention.v": c(), "attention.o": r(),
                                   "mlp": into(), "mlp.up": c(), "mlp.gate": c(), "mlp.down": r()})
    return m


@job(4)
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


@job(2)
def tensor_parallel_generates():
    m = made(1024, 6, dt=BF)
    mesh = dist.init_device_mesh("cuda", (2,))
    m = parallel(m, mesh).eval()
    with torch.no_grad():
        x = tokens(2, 100)
        for _ in range(12):
            y = m(x[:, -100:])
            x = torch.cat([x, y.full_tensor()[:, -1:].argmax(-1)], 1)


def ddp(m, **k):
    return nn.parallel.DistributedDataParallel(m, device_ids=[card], **k)


@job(2)
def ddp_static_views():
    steps(ddp(made(save=True), static_graph=True, gradient_as_bucket_view=True), amp=BF)


@job(2)
def ddp_powersgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as h

    m = ddp(made(768, 6))
    m.register_comm_hook(h.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2), h.powerSGD_hook)
    steps(m, 5, amp=BF)


@job(2)
def ddp_bf16_hook_ema():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as h

    m = ddp(made())
    m.register_comm_hook(None, h.bf16_compress_hook)
    e = torch.optim.swa_utils.AveragedModel(m.module)
    for _ in range(2):
        steps(m, 2, amp=BF)
        e.update_parameters(m.module)


@job(4)
def ddp_unused_accumulates():
    m = made(768, 6)
    m.extra = nn.Linear(4096, 1024, device=card)
    steps(ddp(m, find_unused_parameters=True, bucket_cap_mb=10), 3, amp=BF, accum=3, sync=lambda m, i: m.no_sync() if i < 2 else contextlib.nullcontext())


@job(4)
def zero1_overlapping_none():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    m = ddp(made())
    steps(m, opt=ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=1e-4, parameters_as_bucket_view=True), amp=BF)


@job(2)
def fsdp1_gathers_states():
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, FullStateDictConfig, StateDictType
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    m = FSDP(made(1024, 6), auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=MixedPrecision(param_dtype=BF, reduce_dtype=BF), device_id=card, use_orig_params=True)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens()
        F.cross_entropy(m(x).flatten(0, 1).float(), x.flatten()).backward()
        m.clip_grad_norm_(1.0)
        o.step()
        o.zero_grad()
    with FSDP.state_dict_type(m, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
        m.state_dict()


@job(2)
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


def stages(per, schedule, n=8, **k):
    from torch.distributed.pipelining import PipelineStage

    count, d = world * per, 1024
    parts, own = [], [rank + i * world for i in range(per)]
    wrap = k.pop("wrap", lambda m: m)
    if k.pop("folded", False):
        own = [rank, 2 * world - 1 - rank]
    torch.manual_seed(0)
    for i in own:
        with card:
            blocks = [Block(d) for _ in range(8 // count or 1)]
            if i == 0:
                blocks = [nn.Embedding(32000, d)] + blocks
            if i == count - 1:
                blocks = blocks + [nn.RMSNorm(d), nn.Linear(d, 32000, bias=False)]
            parts.append(wrap(nn.Sequential(*blocks)))
    made = [PipelineStage(p, i, count, card) for p, i in zip(parts, own)]
    s = schedule(made if per > 1 else made[0], n, loss_fn=lambda y, x: F.cross_entropy(y.flatten(0, 1), x.flatten()), **k)
    o = torch.optim.AdamW([p for m in parts for p in m.parameters()], 1e-4)
    for _ in range(3):
        x = tokens(8, 512)
        first, last = 0 in own, count - 1 in own
        s.step(*([x] if first else []), **({"target": x} if last else {}))
        o.step()
        o.zero_grad()


@job(4)
def pipeline_1f1b():
    from torch.distributed.pipelining import Schedule1F1B

    stages(1, Schedule1F1B)


@job(2)
def pipeline_interleaved():
    from torch.distributed.pipelining import ScheduleInterleaved1F1B

    stages(2, ScheduleInterleaved1F1B)


@job(2)
def pipeline_zero_bubble():
    from torch.distributed.pipelining import ScheduleInterleavedZeroBubble

    stages(2, ScheduleInterleavedZeroBubble)


@job(2)
def pipeline_v():
    from torch.distributed.pipelining import ScheduleZBVZeroBubble

    stages(2, ScheduleZBVZeroBubble, folded=True)


@job(4)
def experts_all_to_all():
    from torch.distributed.nn.functional import all_to_all_single

    torch.manual_seed(rank)
    d, experts = 1024, 4
    with card:
        m = nn.ModuleDict({"e": nn.Embedding(32000, d), "w": nn.ModuleList(Mlp(d) for _ in range(experts)), "h": nn.Linear(d, 32000, bias=False)})
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens(4, 512)
        h = m["e"](x).flatten(0, 1)
        to = (x.flatten() * 7919 % 1009) % (experts * world)  # each its expert, unevenly
        order = to.argsort(stable=True)
        counts = torch.bincount(to, minlength=experts * world)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        send, got = counts.view(world, -1).sum(1).tolist(), theirs.view(world, -1).sum(1).tolist()
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


@job(2)
def context_parallel_ring():
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mesh, m = dist.init_device_mesh("cuda", (2,)), made(1024, 4, dt=BF)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x, y = tokens(1, 4096), tokens(1, 4096)
        with context_parallel(mesh, buffers=[x, y], buffer_seq_dims=[1, 1]), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            F.cross_entropy(m(x).flatten(0, 1), y.flatten()).backward()
        o.step()
        o.zero_grad()


@job(4)
def tensors_change_their_places():
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = dist.init_device_mesh("cuda", (2, 2))
    a = distribute_tensor(torch.randn(4096, 3001, device=card), mesh, [Shard(0), Shard(1)])
    b = distribute_tensor(torch.randn(3001, 2048, device=card), mesh, [Replicate(), Shard(0)])
    c = a @ b
    for p in ([Replicate(), Replicate()], [Shard(1), Shard(0)], [Shard(0), Shard(0)], [Shard(1), Replicate()]):
        c = c.redistribute(mesh, p)
        c = (c * 2 + 1).softmax(-1)
    c.sum().full_tensor()
    torch.distributed.tensor.randn(1001, 777, device_mesh=mesh, placements=[Shard(0), Shard(1)]).norm().full_tensor()


@job(2)
def trainer_of_transformers():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    m = LlamaForCausalLM(LlamaConfig(hidden_size=768, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048))
    data = [{"input_ids": x, "labels": x} for x in torch.randint(0, 32000, (96, 512))]
    with tempfile.TemporaryDirectory() as d:
        a = TrainingArguments(d, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=3, bf16=True, eval_strategy="steps", eval_steps=2, save_strategy="no", report_to=[],
                              ddp_find_unused_parameters=False, gradient_checkpointing=True)
        Trainer(m, a, train_dataset=data, eval_dataset=data[:16]).train()


@job(2)
def accelerate_fsdp2():
    from accelerate import Accelerator, FullyShardedDataParallelPlugin

    p = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"])
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


@job(2)
def compiled_ddp():
    steps(ddp(torch.compile(made(768, 4))), 4, amp=BF)


@job(2)
def compiled_fsdp2():
    m = made(768, 4)
    for b in m.blocks:
        b.compile()
    steps(sharded(m), 4, amp=BF, clip=False)


@job(2)
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


def keep_history(path):
    """What the allocator was asked for and did: a line each."""
    with gzip.open(path, "wt") as f:
        for e in torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]:
            f.write("%s %x %d %x %d\n" % (e["action"], e.get("addr", 0), e["size"], e["stream"], e["time_us"]))


def main(name):
    shared = torch.cuda.device_count() < world
    if shared:
        os.environ.update(NCCL_HOSTID="rank%d" % rank, NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    torch.cuda.set_device(0 if shared else int(os.environ["LOCAL_RANK"]))
    global card
    card = torch.device("cuda", torch.cuda.current_device())
    if "HISTORY" in os.environ:
        torch.cuda.memory._record_memory_history(context=None, max_entries=1000000)
    answer = "ok"
    try:
        if not name.startswith(("trainer", "accelerate")):
            dist.init_process_group(J[name][2])
        J[name][1]()
        torch.cuda.synchronize()
    except BaseException as e:
        traceback.print_exc()
        answer = repr(e)[:150]
    s = torch.cuda.memory_stats()
    keys = ("allocation.all.allocated", "requested_bytes.all.allocated", "requested_bytes.all.peak", "allocated_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries")
    sys.stdout.write("RESULT " + json.dumps([rank] + [s.get(k, 0) for k in keys] + [answer]) + "END\n")
    sys.stdout.flush()
    sys.stderr.flush()
    if "HISTORY" in os.environ:
        keep_history("%s.%d.gz" % (os.environ["HISTORY"], rank))
    if dist.is_initialized() and answer == "ok":
        dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    every(*sys.argv[2:]) if sys.argv[1] == "all" else main(sys.argv[1])
