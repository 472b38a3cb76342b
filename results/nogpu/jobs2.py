# SPDX-License-Identifier: Apache-2.0
"""46 more jobs of two ranks over NCCL in plain PyTorch, of kinds that jobs.py has not, on two cards.

    jobs2.py all OUT.csv [NAME...]                         one after another on this host's cards: a row of each rank, a log of each
                                                           job, and what the allocator did on each rank
    torchrun --nproc-per-node 2 jobs2.py NAME              one of them: a line of each rank

No multicast objects (NCCL_NVLS_ENABLE=0, TORCH_SYMM_MEM_DISABLE_MULTICAST=1). Nothing is fetched. LIMIT and TOTAL are seconds for a job and for all.
"""
import contextlib, csv, functools, json, math, os, shutil, signal, socket, subprocess, sys, tempfile, time

os.environ.update(TORCH_SYMM_MEM_DISABLE_MULTICAST="1", GLOO_SOCKET_IFNAME="lo")
from jobs import *
from jobs import J, BF, F, dist, nn, rank, torch, world

J.clear()
card = torch.device("cuda")
here = os.path.join(tempfile.gettempdir(), "cufrag-jobs-%s" % os.environ.get("MASTER_PORT"))


def backward_only(m, count):
    """Training steps of a model whose optimizer steps in the backward pass."""
    for _ in range(count):
        x = tokens()
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        l.backward()


def start(out, name):
    """The ranks of a job, which wait for a line when they have imported PyTorch: so the next job does that while this one runs."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, HISTORY="%s.%s" % (out, name), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", WAITS="1")
    return [subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                             env=dict(env, RANK=str(r), LOCAL_RANK=str(r))) for r in range(2)]


def finish(name, ranks, limit):
    """What the ranks print until all have ended, or the limit."""
    import threading

    text = [""] * len(ranks)

    def talk(r, p):
        text[r] = p.communicate("go\n")[0]

    threads = [threading.Thread(target=talk, args=x) for x in enumerate(ranks)]
    end = time.time() + limit
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(end - time.time(), 0.1))
    late = any(t.is_alive() for t in threads)
    for p in ranks:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)
    for t in threads:
        t.join()
    return "\n".join(text) + ("\nTIMEOUT" if late else "")


def every(out, *names):
    names = list(names or J)
    begin, ahead = time.time(), start(out, names[0])
    limit, total = int(os.environ.get("LIMIT", "60")), int(os.environ.get("TOTAL", "100000"))
    with open(out, "w") as f:
        w = csv.writer(f)
        w.writerow("job rank requests requested_bytes peak_requested peak_allocated peak_reserved retries answer".split())
        for name, then in zip(names, names[1:] + [None]):
            ranks, ahead, t = ahead, then and start(out, then), time.time()
            text = finish(name, ranks, min(limit, max(total - (t - begin), 1)))
            open("%s.%s.log" % (out, name), "w").write(text)
            rows = sorted(json.loads(x.split("END")[0]) for x in text.split("RESULT ")[1:] if "END" in x)
            for r in rows or [[-1]]:
                w.writerow([name] + r)
            f.flush()
            good = [r[-1] for r in rows] == ["ok"] * 2
            print("%-32s %5.1f s %s" % (name, time.time() - t, "ok" if good else "FAILED " + (" | ".join(str(r[-1]) for r in rows) or text[-300:])), flush=True)
    print("%.1f s" % (time.time() - begin))


# Pipelines


@job(2)
def pipeline_looped_breadth_first():
    from torch.distributed.pipelining import ScheduleLoopedBFS

    stages(2, ScheduleLoopedBFS)


@job(2)
def pipeline_dual_v():
    from torch.distributed.pipelining import ScheduleDualPipeV

    stages(2, ScheduleDualPipeV, folded=True)


@job(2)
def pipeline_from_table():
    """A schedule of our own: the last stage alternates, the one before it has its gradients of inputs first."""
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    each = lambda *what: [w % i for i in range(8) for w in what]
    path = here + ".csv.%d" % rank
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([each("0F%d") + each("2F%d") + each("2I%d") + each("2W%d") + each("0B%d"), each("1F%d") + each("3F%d", "3B%d") + each("1B%d")])

    def schedule(*a, **k):
        s = _PipelineScheduleRuntime(*a, **k)
        s._load_csv(path)
        os.remove(path)
        return s

    stages(2, schedule)


@job(2)
def pipeline_of_sharded_stages():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.pipelining import Schedule1F1B

    dp = dist.init_device_mesh("cuda", (2, 1), mesh_dim_names=("pp", "dp"))["dp"]

    def wrap(m):
        for b in m:
            fully_shard(b, mesh=dp, mp_policy=MixedPrecisionPolicy(param_dtype=BF, reduce_dtype=torch.float32), reshard_after_forward=False)
        return fully_shard(m, mesh=dp, reshard_after_forward=False)

    stages(1, Schedule1F1B, wrap=wrap)


# States


@job(2, "cpu:gloo,cuda:nccl")
def saves_while_it_trains():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
    from torch.distributed.checkpoint.state_dict import get_state_dict

    m = sharded(made(768, 6))
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    steps(m, 2, amp=BF, opt=o)
    for i in range(2):
        a, b = get_state_dict(m, o)
        stager = DefaultStager(StagingOptions(use_pinned_memory=True, use_shared_memory=False, use_async_staging=True, use_non_blocking_copy=True))
        r = dcp.async_save({"m": a, "o": b}, checkpoint_id="%s-%d" % (here, i), async_stager=stager)
        x = tokens()
        F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        r.staging_completion.result()
        o.step()
        o.zero_grad()
        r.upload_completion.result()
        stager.close()
    dist.barrier()
    if rank == 0:
        for i in range(2):
            shutil.rmtree("%s-%d" % (here, i))


@job(2)
def full_states_from_one_rank():
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_model_state_dict, set_state_dict

    torch.manual_seed(0)
    with torch.device("meta"):
        m = sharded(Gpt(768, 4))
    m.to_empty(device=card)
    o = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(m, Gpt(768, 4).state_dict() if rank == 0 else {}, options=o)
    opt = torch.optim.AdamW(m.parameters(), 1e-4)
    steps(m, 2, amp=BF, opt=opt)
    a, b = get_state_dict(m, opt, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    set_state_dict(m, opt, model_state_dict=a, optim_state_dict=b, options=o)
    steps(m, 2, amp=BF, opt=opt)


# Sequences


def in_parts(backend, n=2):
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import sdpa_kernel

    mesh, m = dist.init_device_mesh("cuda", (2,)), made(1024, 4, dt=BF)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x, y = tokens(n, 4096), tokens(n, 4096)
        with context_parallel(mesh, buffers=[x, y], buffer_seq_dims=[1, 1]), sdpa_kernel(backend):
            F.cross_entropy(m(x).flatten(0, 1), y.flatten()).backward()
        o.step()
        o.zero_grad()


@job(2)
def context_parallel_gathers():
    from torch.distributed.tensor.experimental import _attention as a
    from torch.nn.attention import SDPBackend

    a.set_rotate_method("allgather")
    a._cp_options.enable_load_balance = False
    in_parts(SDPBackend.EFFICIENT_ATTENTION)


@job(2)
def context_parallel_cudnn():
    from torch.nn.attention import SDPBackend

    in_parts(SDPBackend.CUDNN_ATTENTION)


class Swap(torch.autograd.Function):
    """All of the sequence for a part of the heads, or back: DeepSpeed-Ulysses by all_to_all_single."""

    @staticmethod
    def forward(ctx, x, apart, together):
        ctx.dims = apart, together
        into = torch.stack(x.chunk(world, apart))
        out = torch.empty_like(into)
        dist.all_to_all_single(out, into)
        return torch.cat(out.unbind(0), together)

    @staticmethod
    def backward(ctx, g):
        apart, together = ctx.dims
        return Swap.apply(g, together, apart), None, None


@job(2)
def ulysses_attention():
    m = made(1536, 4, dt=BF)
    for b in m.blocks:
        def forward(x, s=b.attention):
            q, k, v = (Swap.apply(f(x).unflatten(-1, (-1, s.h)), 2, 1).transpose(1, 2) for f in (s.q, s.k, s.v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            return s.o(Swap.apply(y, 1, 2).flatten(2))
        b.attention.forward = forward
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens(2, 4096).chunk(world, 1)[rank]
        F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        for p in m.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        o.step()
        o.zero_grad()


# Tensors in parts


@job(2)
def vocabulary_and_loss_parallel():
    from torch.distributed.tensor.parallel import loss_parallel

    m = parallel(made(2048, 6, dt=BF), dist.init_device_mesh("cuda", (2,)))
    o = torch.optim.AdamW(m.parameters(), 1e-4, foreach=False)
    for _ in range(4):
        x = tokens(4, 2048)
        with loss_parallel():
            F.cross_entropy(m(x).flatten(0, 1), x.flatten(), ignore_index=7, label_smoothing=0.0).backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()


@job(2)
def generates_with_a_cache():
    """Heads and widths by hand, a cache of keys, sampled tokens that rank 0 sends to all."""
    torch.manual_seed(0)
    d, heads, deep, top = 2048, 16 // world, 8, 512
    with card:
        emb, head = nn.Embedding(32000, d, dtype=BF), nn.Linear(d, 32000, bias=False, dtype=BF)
        layers = [[nn.Linear(d, 3 * heads * 128, bias=False, dtype=BF), nn.Linear(heads * 128, d, bias=False, dtype=BF), nn.Linear(d, 4 * d // world, dtype=BF), nn.Linear(4 * d // world, d, bias=False, dtype=BF)]
                  for _ in range(deep)]
        cache = torch.zeros(deep, 2, 8, heads, top, 128, dtype=BF)
    with torch.no_grad():
        x, at = tokens(8, 200), 0
        for _ in range(24):
            h, n = emb(x), x.shape[1]
            for (qkv, o, up, down), c in zip(layers, cache):
                q, k, v = qkv(F.rms_norm(h, (d,))).unflatten(-1, (3, heads, 128)).permute(2, 0, 3, 1, 4)
                c[0, :, :, at:at + n], c[1, :, :, at:at + n] = k, v
                y = o(F.scaled_dot_product_attention(q, c[0, :, :, :at + n], c[1, :, :, :at + n], is_causal=n > 1).transpose(1, 2).flatten(2))
                dist.all_reduce(y)
                y = down(F.gelu(up(F.rms_norm(h := h + y, (d,)))))
                dist.all_reduce(y)
                h = h + y
            at += n
            x = torch.multinomial(head(h[:, -1]).float().topk(50).values.softmax(-1), 1)
            dist.broadcast(x, 0)


@job(2)
def products_in_fp8():
    """Rows in FP8 with their scales, gathered before the product; the gradient is in bf16."""

    def rows(x):
        s = x.abs().amax(-1, keepdim=True).float().clamp(min=1e-6) / 448
        return (x / s).to(torch.float8_e4m3fn), s

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            (a, sa), (b, sb) = rows(x), rows(w)
            whole, scales = a.new_empty(world * len(a), a.shape[1]), sa.new_empty(world * len(a), 1)
            dist.all_gather_into_tensor(whole.view(torch.uint8), a.view(torch.uint8))
            dist.all_gather_into_tensor(scales, sa)
            return torch._scaled_mm(whole, b.t(), scale_a=scales, scale_b=sb.t(), out_dtype=BF, use_fast_accum=True)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            whole, part = x.new_empty(world * len(x), x.shape[1]), torch.empty_like(x)
            dist.all_gather_into_tensor(whole, x)
            dist.reduce_scatter_tensor(part, g @ w)
            return part, g.t() @ whole

    torch.manual_seed(0)
    with card:
        w = [nn.Parameter(torch.randn(4096 // world, 4096, dtype=BF) * 0.02) for _ in range(8)]
    o = torch.optim.SGD(w, 1e-3, momentum=0.9)
    for _ in range(4):
        x = torch.randn(2048, 4096, dtype=BF, device=card)
        for p in w:
            y = Product.apply(x, p)
            x = x + y.view(world, -1, y.shape[1])[rank].repeat(1, world).relu()
        x.float().pow(2).mean().backward()
        o.step()
        o.zero_grad()


@job(2)
def memory_that_ranks_share():
    """Symmetric memory without multicast: sums in one and two shots, products beside their collectives."""
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
    x, w, v = torch.randn(4096, 4096, dtype=BF, device=card), torch.randn(4096, 7168, dtype=BF, device=card), torch.randn(7168, 4096, dtype=BF, device=card)
    for _ in range(3):
        whole, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [w], 0, group)
        x = torch.ops.symm_mem.fused_matmul_reduce_scatter(y.relu(), v, "avg", 0, group)
        x = F.rms_norm(x, (4096,))


# FSDP2


@job(2)
def fsdp2_accumulates_unsharded():
    m = sharded(made(1024, 8))
    m.set_gradient_divide_factor(6.0)

    def sync(m, i):
        m.set_requires_gradient_sync(i == 2)
        m.set_reshard_after_backward(i == 2)
        m.set_is_last_backward(i == 2)
        return contextlib.nullcontext()

    steps(m, 3, amp=BF, accum=3, sync=sync)


@job(2)
def fsdp2_prefetches_by_hand():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    m = made(1536, 8)
    for part in [m.emb, *m.blocks, m.head]:
        fully_shard(part, mp_policy=MixedPrecisionPolicy(param_dtype=BF, output_dtype=torch.float32))
    fully_shard(m, reshard_after_forward=False)
    b = list(m.blocks)
    for i in range(len(b)):
        b[i].set_modules_to_forward_prefetch(b[i + 1:i + 3] or [m.head])
        b[i].set_modules_to_backward_prefetch(b[max(i - 2, 0):i][::-1] or [m.emb])
    m.head.set_reshard_after_forward(False)
    o = torch.optim.AdamW(m.parameters(), 1e-4, fused=True)
    for _ in range(4):
        m.unshard(async_op=True)
        x = tokens()
        F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        o.step()
        o.zero_grad()


class Adapted(nn.Module):
    def __init__(s, base, r=16):
        super().__init__()
        s.base, s.a, s.b = base.requires_grad_(False), nn.Linear(base.in_features, r, bias=False, dtype=BF), nn.Linear(r, base.out_features, bias=False, dtype=BF)
        nn.init.zeros_(s.b.weight)

    def forward(s, x):
        return s.base(x) + s.b(s.a(F.dropout(x, 0.05, s.training))) * 2


@job(2)
def fsdp2_adapters():
    m = made(2048, 8, dt=BF, save=True).requires_grad_(False)
    with card:
        for b in m.blocks:
            for at, names in ((b.attention, "qkvo"), (b.mlp, ("up", "gate", "down"))):
                for n in names:
                    setattr(at, n, Adapted(getattr(at, n)))
    m = sharded(m)
    steps(m, 4, opt=torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-3))


@job(2)
def fsdp2_steps_in_backward():
    """The optimizer of each parameter runs when its gradient is there, which then goes."""
    m = sharded(made(1024, 8))
    each = {p: torch.optim.AdamW([p], 1e-4, foreach=False) for p in m.parameters()}

    def hook(p):
        each[p].step()
        each[p].zero_grad()

    for p in each:
        p.register_post_accumulate_grad_hook(hook)
    backward_only(m, 4)


@job(2)
def fsdp2_saves_selectively():
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    keep = {torch.ops.aten._scaled_dot_product_flash_attention.default, torch.ops.aten._scaled_dot_product_cudnn_attention.default, torch.ops._c10d_functional.reduce_scatter_tensor.default}

    def contexts():
        seen = {False: 0, True: 0}

        def policy(ctx, op, *a, **k):
            product = op is torch.ops.aten.mm.default
            seen[ctx.is_recompute] += product
            return CheckpointPolicy.MUST_SAVE if op in keep or product and seen[ctx.is_recompute] % 2 else CheckpointPolicy.PREFER_RECOMPUTE
        return create_selective_checkpoint_contexts(policy)

    m = made(1536, 8)
    m.blocks = nn.ModuleList(checkpoint_wrapper(b, context_fn=contexts, preserve_rng_state=False) for b in m.blocks)
    steps(sharded(m), 4, amp=BF)


@job(2)
def fsdp2_policy_generates():
    """As in reinforcement learning: all weights together to generate, then in parts to train beside a frozen reference."""
    m, ref = sharded(made(1024, 8, dt=BF)), sharded(made(1024, 8, dt=BF).requires_grad_(False))
    o = torch.optim.AdamW(m.parameters(), 1e-5)
    for _ in range(3):
        for part in m.modules():
            if hasattr(part, "unshard"):
                part.unshard()
                part.set_reshard_after_forward(False, recurse=False)
        x = tokens(8, 64)
        with torch.no_grad():
            for _ in range(16):
                x = torch.cat([x, m(x)[:, -1:].argmax(-1)], 1)
        for part in m.modules():
            if hasattr(part, "reshard"):
                part.reshard()
                part.set_reshard_after_forward(part is not m, recurse=False)
        said = lambda y: y.log_softmax(-1).gather(2, x[..., None])[..., 0]
        with torch.no_grad():
            old = said(ref(x))
        new = said(m(x))
        r = torch.randn(8, 1, device=card)
        all_r = [torch.empty_like(r) for _ in range(world)]
        dist.all_gather(all_r, r)
        good = (r - torch.cat(all_r).mean()) / torch.cat(all_r).std()
        ((new - old).exp() * -good + 0.1 * (old - new).exp()).mean().backward()
        o.step()
        o.zero_grad()


@job(2)
def fsdp2_muon():
    m = sharded(made(1024, 6))
    wide = [p for b in m.blocks for p in b.parameters() if p.ndim == 2]
    a, b = torch.optim.Muon(wide, 1e-3), torch.optim.AdamW([p for p in m.parameters() if all(p is not w for w in wide)], 1e-4)
    for _ in range(3):
        x = tokens()
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        l.backward()
        for o in (a, b):
            o.step()
            o.zero_grad()


@job(2)
def fsdp2_segments_that_grow():
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    m = sharded(made(1024, 8, save=True))
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for n in (1, 3, 2, 4):
        steps(m, 1, amp=BF, opt=o, n=n)


# FSDP1


def fsdp1(m, **k):
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    return FSDP(m, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.cuda.current_device(), **k)


@job(2)
def fsdp1_shards_gradients():
    from torch.distributed.fsdp import BackwardPrefetch, ShardingStrategy

    steps(fsdp1(made(1024, 6), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, limit_all_gathers=False, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_POST), amp=BF, clip=False)


@job(2)
def fsdp1_hybrid():
    from torch.distributed.fsdp import MixedPrecision, ShardingStrategy

    mesh = dist.init_device_mesh("cuda", (2, 1), mesh_dim_names=("copy", "shard"))
    steps(fsdp1(made(1024, 6), sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh, use_orig_params=True, mixed_precision=MixedPrecision(param_dtype=BF, reduce_dtype=BF)),
          accum=2, sync=lambda m, i: m.no_sync() if i == 0 else contextlib.nullcontext())


@job(2)
def fsdp1_on_the_host():
    from torch.distributed.fsdp import CPUOffload, MixedPrecision

    steps(fsdp1(made(768, 4), cpu_offload=CPUOffload(offload_params=True), mixed_precision=MixedPrecision(param_dtype=torch.float16, keep_low_precision_grads=False)), 3, clip=False)


# DDP


@job(2)
def ddp_joins_with_zero():
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer

    m = ddp(made(768, 6))
    o = ZeroRedundancyOptimizer(m.parameters(), torch.optim.AdamW, lr=1e-4)
    with Join([m, o]):
        for i in range(2 + 2 * rank):
            x = tokens(2 + i)
            F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
            o.step()
            o.zero_grad()


@job(2)
def ddp_zero_overlaps():
    from torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    from torch.distributed.optim import ZeroRedundancyOptimizer

    m = ddp(made(768, 6), static_graph=True)
    o = ZeroRedundancyOptimizer(m.parameters(), torch.optim.Adam, overlap_with_ddp=True, lr=1e-4)
    m.register_comm_hook(None, hook_with_zero_step(allreduce_hook, m, o, shard_buckets=True))
    for _ in range(5):
        x = tokens()
        F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        m.zero_grad()


@job(2)
def ddp_averages_later():
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    m = ddp(made(1024, 6))
    own, _ = dist.new_subgroups(1)
    m.register_comm_hook(PostLocalSGDState(None, own, start_localSGD_iter=3), post_localSGD_hook)
    steps(m, 6, amp=BF, opt=PostLocalSGDOptimizer(torch.optim.SGD(m.parameters(), 1e-3, momentum=0.9), PeriodicModelAverager(period=2, warmup_steps=2)))


@job(2)
def replicates_composed():
    from torch.distributed._composable.replicate import replicate

    steps(replicate(made(1024, 6), bucket_cap_mb=40, gradient_as_bucket_view=True), amp=BF)


@job(2)
def replicates_by_fsdp():
    from torch.distributed._composable.replicate_with_fsdp import replicate
    from torch.distributed.fsdp import MixedPrecisionPolicy

    m = made(1024, 6)
    for b in [*m.blocks, m]:
        replicate(b, mp_policy=MixedPrecisionPolicy(param_dtype=BF, reduce_dtype=torch.float32))
    steps(m)


@job(2)
def ddp_steps_in_backward():
    from torch.distributed.optim import _apply_optimizer_in_backward

    m = made(1024, 6)
    _apply_optimizer_in_backward(torch.optim.SGD, m.parameters(), {"lr": 1e-3, "momentum": 0.9})
    m = ddp(m, gradient_as_bucket_view=True)
    backward_only(m, 5)


@job(2)
def ddp_activations_on_the_host():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper

    m = made(1024, 8)
    m.blocks = nn.ModuleList(offload_wrapper(b) if i % 2 else b for i, b in enumerate(m.blocks))
    m = ddp(m)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x = tokens(2)
        with torch.autograd.graph.save_on_cpu(pin_memory=True), torch.autocast("cuda", dtype=BF):
            h = m.module.emb(x)
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten()) + h.float().pow(2).mean()
        l.backward()
        o.step()
        o.zero_grad()


class Bottleneck(nn.Module):
    def __init__(s, i, d, step):
        super().__init__()
        c = lambda a, b, k, t=1: nn.Sequential(nn.Conv2d(a, b, k, t, k // 2, bias=False), nn.BatchNorm2d(b))
        s.a, s.b, s.c, s.skip = c(i, d, 1), c(d, d, 3, step), c(d, 4 * d, 1), c(i, 4 * d, 1, step) if i != 4 * d or step > 1 else nn.Identity()

    def forward(s, x):
        return F.relu(s.c(F.relu(s.b(F.relu(s.a(x))))) + s.skip(x))


def resnet(deep=(3, 4, 6, 3), width=64, out=1000):
    parts, i = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], width
    for at, n in enumerate(deep):
        for b in range(n):
            parts.append(Bottleneck(i, width << at, 2 if at and not b else 1))
            i = 4 * width << at
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, out))


@job(2)
def ddp_resnet_with_shared_norms():
    torch.manual_seed(0)
    with card:
        m = resnet()
    m = ddp(nn.SyncBatchNorm.convert_sync_batchnorm(m).to(memory_format=torch.channels_last))
    o, scaler = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True), torch.amp.GradScaler("cuda", 1024.0)
    for _ in range(5):
        x, y = torch.randn(48, 3, 224, 224, device=card).to(memory_format=torch.channels_last), torch.randint(0, 1000, (48,), device=card)
        with torch.autocast("cuda", dtype=torch.float16):
            l = F.cross_entropy(m(x), y, label_smoothing=0.1)
        scaler.scale(l).backward()
        scaler.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 5.0)
        scaler.step(o)
        scaler.update()
        o.zero_grad()


class Patches(nn.Module):
    def __init__(s, d, n, size=16, out=512):
        super().__init__()
        s.cut, s.blocks, s.norm, s.head = nn.Conv2d(3, d, size, size), nn.ModuleList(Block(d, d // 64) for _ in range(n)), nn.LayerNorm(d), nn.Linear(d, out, bias=False)

    def forward(s, x):
        x = s.cut(x).flatten(2).transpose(1, 2)
        for b in s.blocks:
            x = b(x)
        return s.head(s.norm(x).mean(1))


@job(2)
def ddp_contrasts_all_pairs():
    """CLIP's loss: each rank has all features of both towers, with gradients to the other's."""
    import torch.distributed.nn.functional as DF

    class Both(nn.Module):
        def __init__(s):
            super().__init__()
            s.image, s.text, s.scale = Patches(768, 8), Gpt(512, 6, 32000), nn.Parameter(torch.tensor(2.66))
            s.text.head = nn.Linear(512, 512, bias=False)

        def forward(s, x, y):
            return F.normalize(s.image(x), dim=-1), F.normalize(s.text(y)[:, -1], dim=-1), s.scale.exp()

    torch.manual_seed(0)
    with card:
        m = ddp(Both())
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(4):
        with torch.autocast("cuda", dtype=BF):
            a, b, scale = m(torch.randn(64, 3, 224, 224, device=card), tokens(64, 77))
            a, b = torch.cat(DF.all_gather(a)), torch.cat(DF.all_gather(b))
            y = scale * a @ b.t()
            at = torch.arange(len(y), device=card)
            l = (F.cross_entropy(y, at) + F.cross_entropy(y.t(), at)) / 2
        l.backward()
        o.step()
        o.zero_grad()
        with torch.no_grad():
            m.module.scale.clamp_(0, math.log(100))


@job(2)
def ddp_teaches_itself():
    """DINO: crops of two sizes, a teacher that follows, a centre of all ranks."""
    torch.manual_seed(0)
    with card:
        student, teacher, centre = ddp(Patches(576, 8, out=16384)), Patches(576, 8, out=16384).requires_grad_(False), torch.zeros(1, 16384)
    teacher.load_state_dict(student.module.state_dict())
    o = torch.optim.AdamW(student.parameters(), 1e-4)
    for _ in range(4):
        big, small = torch.randn(2, 24, 3, 224, 224, device=card), torch.randn(6, 24, 3, 96, 96, device=card)
        with torch.autocast("cuda", dtype=BF):
            s = [student(big.flatten(0, 1)), student(small.flatten(0, 1))]
            with torch.no_grad():
                t = teacher(big.flatten(0, 1))
            p = ((t - centre) / 0.04).softmax(-1).chunk(2)
            q = [x.log_softmax(-1) for x in torch.cat(s).div(0.1).chunk(8)]
            l = sum(-(a * b).sum(-1).mean() for i, a in enumerate(p) for j, b in enumerate(q) if i != j) / 14
        l.backward()
        o.step()
        o.zero_grad()
        c = t.float().sum(0, keepdim=True)
        dist.all_reduce(c)
        centre.mul_(0.9).add_(c / len(t) / world, alpha=0.1)
        torch._foreach_lerp_(list(teacher.parameters()), [p.detach() for p in student.module.parameters()], 0.004)


@job(2)
def ddp_states_of_a_byte():
    class Byte(torch.optim.Optimizer):
        def __init__(s, params):
            super().__init__(params, {})

        @torch.no_grad()
        def step(s):
            for p in s.param_groups[0]["params"]:
                n = -(-p.numel() // 256) * 256
                st = s.state[p]
                if not st:
                    st.update({k: (torch.zeros(n // 256, 256, dtype=torch.uint8, device=card), torch.zeros(n // 256, 1, device=card)) for k in "mv"})
                g = F.pad(p.grad.flatten(), (0, n - p.numel())).view(-1, 256)
                new = []
                for k, x, beta in (("m", g, 0.9), ("v", g * g, 0.99)):
                    q, scale = st[k]
                    x = ((q.float() - 128) / 127 * scale).lerp_(x, 1 - beta)
                    scale.copy_(x.abs().amax(1, keepdim=True).clamp_(min=1e-12))
                    q.copy_((x / scale * 127 + 128).round_().clamp_(1, 255))
                    new.append(x)
                p.add_((new[0] / (new[1].clamp_(min=0).sqrt_() + 1e-8)).flatten()[:p.numel()].view_as(p), alpha=-1e-4)

    m = ddp(made(1024, 8))
    steps(m, 3, amp=BF, opt=Byte(m.parameters()))


@job(2)
def ddp_sparse_embeddings():
    """Tables whose gradients are sparse are outside of DDP: each rank gathers the rows of all by hand."""

    class Net(nn.Module):
        def __init__(s):
            super().__init__()
            s.tables = nn.ModuleList(nn.EmbeddingBag(200000, 128, sparse=True, mode="sum") for _ in range(8))
            s.top = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 1))

        def forward(s, ids, at):
            return s.top(torch.cat([t(i, a) for t, i, a in zip(s.tables, ids, at)], 1))[:, 0]

    torch.manual_seed(rank)
    with card:
        m = Net()
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(m, ["tables.%d.weight" % i for i in range(8)])
    d = ddp(m)
    a, b = torch.optim.SparseAdam(list(m.tables.parameters()), 1e-3), torch.optim.Adagrad(m.top.parameters(), 1e-2)
    for _ in range(4):
        long = torch.randint(1, 20, (8, 4096), device=card)
        ids = [torch.randint(0, 200000, (int(n),), device=card) for n in long.sum(1)]
        F.binary_cross_entropy_with_logits(d(ids, long.cumsum(1) - long), torch.rand(4096, device=card)).backward()
        for t in m.tables:
            g = t.weight.grad.coalesce()
            n = torch.tensor([g._nnz()], device=card)
            counts = [torch.empty_like(n) for _ in range(world)]
            dist.all_gather(counts, n)
            counts = [int(c) for c in counts]
            i, v = [g.indices().new_empty(1, c) for c in counts], [g.values().new_empty(c, 128) for c in counts]
            dist.all_gather(i, g.indices())
            dist.all_gather(v, g.values())
            t.weight.grad = torch.sparse_coo_tensor(torch.cat(i, 1), torch.cat(v) / world, t.weight.shape).coalesce()
        for o in (a, b):
            o.step()
            o.zero_grad()


# Calls of the group itself


@job(2)
def experts_in_groups():
    """Uneven all-to-alls with gradients by functional collectives, products of all experts at once."""
    from torch.distributed._functional_collectives import all_to_all_single, all_to_all_single_autograd

    torch.manual_seed(rank)
    d, experts, top = 1024, 8, 2
    with card:
        emb, head = nn.Embedding(32000, d, dtype=BF), nn.Linear(d, 32000, bias=False, dtype=BF)
        w = [nn.Parameter(torch.randn(experts, *s, dtype=BF) * 0.02) for s in ((d, 4 * d), (2 * d, d))]
    o = torch.optim.AdamW([*emb.parameters(), *head.parameters(), *w], 1e-4)
    group = dist.group.WORLD
    for _ in range(4):
        x = tokens(8, 512)
        h = emb(x).flatten(0, 1)
        to = (x.flatten()[:, None] * torch.tensor([7919, 104729], device=card) % 1009 % (experts * world)).flatten()
        order = to.argsort(stable=True)
        counts = torch.bincount(to, minlength=experts * world)
        theirs = all_to_all_single(counts, None, None, group)
        send, got = counts.view(world, -1).sum(1).tolist(), theirs.view(world, -1).sum(1).tolist()
        z = all_to_all_single_autograd(h[order // top], got, send, group)
        kind = torch.repeat_interleave(torch.arange(experts, device=card).repeat(world), theirs, output_size=sum(got))
        by = kind.argsort(stable=True)
        ends = torch.bincount(kind, minlength=experts).cumsum(0).int()
        a, b = torch._grouped_mm(z[by], w[0], offs=ends).chunk(2, -1)
        y = torch.empty_like(z).index_copy(0, by, torch._grouped_mm(F.silu(a) * b, w[1], offs=ends))
        y = all_to_all_single_autograd(y, send, got, group)
        h = h.index_add(0, order // top, y)
        F.cross_entropy(head(h), x.flatten()).backward()
        for p in (*emb.parameters(), *head.parameters()):
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        o.step()
        o.zero_grad()


@job(2)
def coalesced_by_hand():
    """A ZeRO of its own: gradients scattered and weights gathered, several in one call."""
    m = made(1024, 8)
    own = [p.detach().flatten().chunk(world)[rank].clone().float() for p in m.parameters()]
    o = torch.optim.AdamW(own, 1e-4)
    for _ in range(4):
        x = tokens()
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        l.backward()
        with dist._coalescing_manager(device=torch.device("cuda", torch.cuda.current_device()), async_ops=True) as wait:
            for p, q in zip(m.parameters(), own):
                q.grad = torch.empty_like(q)
                dist.reduce_scatter_tensor(q.grad, p.grad.flatten(), op=dist.ReduceOp.AVG)
        wait.wait()
        m.zero_grad()
        n = nn.utils.clip_grad_norm_(own, 1e9) ** 2
        dist.all_reduce(n)
        torch._foreach_mul_([q.grad for q in own], (1 / n.sqrt()).clamp(max=1))
        o.step()
        o.zero_grad()
        with dist._coalescing_manager(device=torch.device("cuda", torch.cuda.current_device())):
            for p, q in zip(m.parameters(), own):
                dist.all_gather_into_tensor(p.data.flatten(), q)


class Halo(torch.autograd.Function):
    """A row of the neighbour above and below."""

    @staticmethod
    def exchange(up, down):
        got, calls = [torch.zeros_like(up), torch.zeros_like(down)], []
        for i, (to, x) in enumerate(((rank - 1, up), (rank + 1, down))):
            if 0 <= to < world:
                calls += [dist.P2POp(dist.isend, x.contiguous(), to), dist.P2POp(dist.irecv, got[i], to)]
        for w in dist.batch_isend_irecv(calls):
            w.wait()
        return got

    @staticmethod
    def forward(ctx, x):
        above, below = Halo.exchange(x[:, :, :1], x[:, :, -1:])
        return torch.cat([above, x, below], 2)

    @staticmethod
    def backward(ctx, g):
        above, below = Halo.exchange(g[:, :, :1], g[:, :, -1:])
        own = g[:, :, 1:-1].clone()
        own[:, :, :1] += above
        own[:, :, -1:] += below
        return own


@job(2)
def halos_of_images():
    class Conv(nn.Module):
        def __init__(s, i, o):
            super().__init__()
            s.c, s.n = nn.Conv2d(i, o, 3, padding=(0, 1)), nn.GroupNorm(8, o)

        def forward(s, x):
            return F.silu(s.n(s.c(Halo.apply(x))))

    torch.manual_seed(0)
    with card:
        down, up = nn.ModuleList([Conv(3, 64), Conv(64, 128), Conv(128, 256), Conv(256, 512)]), nn.ModuleList([Conv(512 + 256, 256), Conv(256 + 128, 128), Conv(128 + 64, 64)])
        last = nn.Conv2d(64, 2, 1)
    all_of = [*down.parameters(), *up.parameters(), *last.parameters()]
    o = torch.optim.Adam(all_of, 1e-3)
    for _ in range(4):
        x, skips = torch.randn(4, 3, 512 // world, 512, device=card), []
        with torch.autocast("cuda", dtype=BF):
            for i, c in enumerate(down):
                x = c(F.max_pool2d(x, 2) if i else x)
                skips.append(x)
            for c, s in zip(up, skips[-2::-1]):
                x = c(torch.cat([F.interpolate(x, scale_factor=2.0), s], 1))
            l = last(x).float().pow(2).mean()
        l.backward()
        flat = torch.cat([p.grad.flatten() for p in all_of])
        dist.all_reduce(flat)
        for p, g in zip(all_of, flat.split([p.numel() for p in all_of])):
            p.grad.copy_(g.view_as(p))
        o.step()
        o.zero_grad()


@job(2)
def server_of_parameters():
    """Rank 0 holds weights and states, and takes the gradients that rank 1 sends."""
    m = made(1024, 8, dt=BF)
    p = list(m.parameters())
    if rank == 0:
        whole = [x.detach().float() for x in p]
        o = torch.optim.AdamW(whole, 1e-4)
    for i in range(4):
        if rank:
            x = tokens()
            F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
            for x in p:
                dist.send(x.grad, 0)
                x.grad = None
            for w in [dist.irecv(x.data, 0) for x in p]:
                w.wait()
        else:
            for x, y in zip(whole, p):
                y.grad = torch.empty_like(y)
                dist.recv(y.grad, 1)
                x.grad = y.grad.float()
                y.grad = None
            o.step()
            o.zero_grad()
            for x, y in zip(whole, p):
                y.data.copy_(x)
                dist.send(y.data, 1)


@job(2)
def gathers_and_scatters():
    """An evaluation: uneven batches, results of all kinds on rank 0, work given to the ranks."""
    m = made(1024, 6, dt=BF).eval()
    plan = [None]
    dist.scatter_object_list(plan, [{"from": r, "batches": [3 + r, 2, 4 - r]} for r in range(world)] if rank == 0 else None, src=0)
    said = []
    with torch.no_grad():
        for n in plan[0]["batches"]:
            y = m(tokens(n, 512))
            said.append({"mean": y.float().mean().item(), "best": y.argmax(-1).cpu()})
            counts = [torch.zeros(1, dtype=torch.long, device=card) for _ in range(world)]
            dist.all_gather(counts, torch.tensor([n], device=card))
            most = max(int(c) for c in counts)
            padded = F.pad(y, (0, 0, 0, 0, 0, most - n))
            got = [torch.empty_like(padded) for _ in range(world)] if rank == 0 else None
            dist.gather(padded, got, 0)
            if rank == 0:
                torch.cat([g[:int(c)] for g, c in zip(got, counts)]).float().softmax(-1).sum()
            del got, padded, y
    lists = [None] * world
    dist.gather_object(said, lists if rank == 0 else None, 0)
    word = [len(lists[1]) if rank == 0 else None]
    dist.broadcast_object_list(word, 0)
    part = torch.empty(1024, 32000 // word[0] * 3, device=card)
    dist.scatter(part, list(torch.randn(world, *part.shape, device=card).unbind(0)) if rank == 0 else None, 0)
    dist.reduce(part, 1, op=dist.ReduceOp.MAX)
    dist.monitored_barrier() if dist.get_backend() == "gloo" else dist.barrier()


@job(2)
def captured_with_collectives():
    """Forward, backward, collectives and the optimizer in one graph."""
    torch.manual_seed(0)
    with card:
        up, down = (nn.ModuleList(nn.Linear(*s, bias=False, dtype=BF) for _ in range(12)) for s in ((2048, 8192 // world), (8192 // world, 2048)))
    p = [*up.parameters(), *down.parameters()]
    o = torch.optim.AdamW(p, 1e-4, capturable=True)

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            dist.all_reduce(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.randn(4096, 2048, dtype=BF, device=card)

    def step():
        h = x
        for a, b in zip(up, down):
            h = h + Sum.apply(b(F.gelu(a(F.rms_norm(h, (2048,))))))
        h.float().pow(2).mean().backward()
        o.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
            o.zero_grad()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        step()
    for _ in range(4):
        x.normal_()
        g.replay()


# Compiled


@job(2)
def compiled_whole_fsdp2():
    m = sharded(made(1024, 3))
    m.compile()
    steps(m, 4, amp=BF, clip=False)


@job(2)
def compiled_around_ddp():
    """torch.compile outside: its optimizer for DDP cuts the graph where buckets end."""
    steps(torch.compile(ddp(made(1024, 4), bucket_cap_mb=40)), 4, amp=BF, clip=False)


@job(2)
def compiled_documents():
    """flex_attention with a mask of documents, under DDP."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    flex = torch.compile(flex_attention)

    class Documents(Attention):
        def forward(s, x):
            q, k, v = (f(x).unflatten(-1, (-1, s.h)).transpose(1, 2) for f in (s.q, s.k, s.v))
            return s.o(flex(q, k, v, block_mask=mask[0]).transpose(1, 2).flatten(2))

    mask, m = [None], made(1024, 6)
    for b in m.blocks:
        b.attention.__class__ = Documents
    m = ddp(m)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(4):
        x = tokens(4, 2048)
        docs = (x % 200 == 0).cumsum(1)
        mask[0] = create_block_mask(lambda b, h, i, j: (i >= j) & (docs[b, i] == docs[b, j]), 4, None, 2048, 2048)
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        l.backward()
        o.step()
        o.zero_grad()


@job(2)
def compiled_async_tensor_parallel():
    """Products beside their collectives, by symmetric memory."""
    from torch.distributed._symmetric_memory import enable_symm_mem_for_group
    from torch.distributed.tensor.parallel import loss_parallel

    mesh = dist.init_device_mesh("cuda", (2,))
    enable_symm_mem_for_group(mesh.get_group().group_name)
    torch._inductor.config._micro_pipeline_tp = True
    m = parallel(made(2048, 3, dt=BF), mesh)
    for b in m.blocks:
        b.compile(fullgraph=True)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(4):
        x = tokens(4, 2048)
        with loss_parallel():
            F.cross_entropy(m(x).flatten(0, 1), x.flatten()).backward()
        o.step()
        o.zero_grad()


if __name__ == "__main__":
    if "WAITS" in os.environ:
        sys.stdin.readline()
    every(*sys.argv[2:]) if sys.argv[1] == "all" else main(sys.argv[1])
