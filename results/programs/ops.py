# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch: operators, graphs, streams, pools, settings of the allocator, compiling."""
import functools
import gc
import threading

import torch.utils.checkpoint
from common import *


class Eight(torch.autograd.graph.saved_tensors_hooks):
    """Stores large tensors that are saved for the backward pass in eight bits."""
    def __init__(s):
        def pack(x):
            if x.dtype not in (torch.float32, BF) or x.numel() < 1 << 20 or isinstance(
                    x, nn.Parameter):
                return x
            flat = x.detach().reshape(-1, x.shape[-1])
            scale = flat.abs().amax(1, keepdim=True).float() / 127
            return (flat / scale).round_().to(torch.int8), scale, x.shape, x.dtype

        super().__init__(pack, lambda v: v
                         if torch.is_tensor(v) else (v[0] * v[1]).to(v[3]).view(v[2]))


def lengths_that_vary(steps=8, clear=None):
    m = on(Lm, 1024, 8)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in range(steps):
        with torch.autocast("cuda", BF):
            next_token(rng.choice([2, 3, 6, 8]), rng.randint(200, 1800))(m).backward()
        o.step()
        o.zero_grad()
        if clear and i % clear == clear - 1:
            torch.cuda.empty_cache()
    m.eval()
    with torch.inference_mode():
        for i in range(4):
            m(T(rng.choice([4, 16]), rng.randint(100, 1500)))


@program("linear algebra")
def linalg_mix():
    for n in (64, 300, 1024):
        a = N(n, n) + n * torch.eye(n, device=dev)
        s = a @ a.T
        torch.linalg.cholesky(s)
        torch.linalg.solve(a, N(n, 7))
        torch.linalg.inv(a)
        torch.linalg.qr(a)
        torch.linalg.lu_factor(a)
        torch.linalg.slogdet(a)
        torch.cholesky_solve(N(n, 3), torch.linalg.cholesky(s))
        torch.linalg.matrix_exp(a / n)
    b = N(64, 32, 32)
    torch.linalg.inv(b)
    torch.linalg.qr(b)
    torch.linalg.cholesky(b @ b.mT + 40 * torch.eye(32, device=dev))
    torch.linalg.solve(b, N(64, 32, 2))
    torch.linalg.lstsq(N(500, 40), N(500, 3))
    torch.linalg.pinv(N(300, 40))
    torch.baddbmm(b, b, b)


@program("decompositions")
def svd_eigh():
    for n in (32, 200, 700):
        a = N(n, n)
        torch.linalg.svd(a)
        torch.linalg.eigh(a @ a.T)
        torch.linalg.svdvals(N(n, n // 2))
        torch.linalg.eigvals(a)
    torch.linalg.svd(N(40, 20, 20))
    torch.linalg.eigh((lambda b: b + b.mT)(N(40, 20, 20)))
    torch.pca_lowrank(N(1000, 300), 20)


@program("sorting, selection and sizes that depend on values")
def cluster_sort():
    x = N(20000, 64)
    c = x[:100].clone()
    for i in range(5):
        d = torch.cdist(x, c)
        a = d.argmin(1)
        c = torch.zeros_like(c).index_add_(0, a, x) / torch.bincount(
            a, minlength=100).clamp(min=1)[:, None]
    torch.sort(d, 1)
    torch.topk(d, 7, 1, largest=False)
    torch.unique(a, return_counts=True)
    torch.cumsum(d, 0)
    torch.argsort(x[:, 0])
    torch.median(x, 0)
    torch.kthvalue(x, 5, 0)
    torch.quantile(x[:, :4], torch.tensor([0.1, 0.5], device=dev), 0)
    torch.histc(x, 100)
    torch.searchsorted(torch.sort(x[:, 0])[0], x[:, 1])
    (x > 1).nonzero()
    x[x > 2]
    torch.randperm(50000, device=dev)
    torch.multinomial(torch.rand(50, 1000, device=dev), 20)
    torch.cummax(x, 0)
    torch.logcumsumexp(x, 0)
    torch.mode(a)


def bags(rows):
    return nn.ModuleList(nn.EmbeddingBag(n, 64, mode="sum", sparse=True) for n in rows)


@program("sparse embeddings and sparse tensors")
def sparse_rec():
    class M(Parts):
        def forward(s, i, o):
            return s.m(torch.cat([e(i, o) for e in s.e], 1))

    m = on(lambda: M(e=bags([200000] * 8), m=stack(nn.Linear(512, 512), nn.ReLU(),
                                                   nn.Linear(512, 1))))
    a = torch.optim.SparseAdam(list(m.e.parameters()))
    b = torch.optim.Adagrad(m.m.parameters())
    for k in range(3):
        F.binary_cross_entropy_with_logits(
            m(T(2048 * 10, v=200000), torch.arange(0, 20480, 10, device=dev))[:, 0],
            torch.rand(2048, device=dev)).backward()
        a.step()
        b.step()
        m.zero_grad()
    A = torch.sparse_coo_tensor(T(2, 50000, v=5000), N(50000), (5000, 5000)).coalesce()
    x = N(5000, 64).requires_grad_()
    torch.sparse.mm(A, x).sum().backward()
    (A.to_sparse_csr() @ N(5000, 32))


@program("bags of varying lengths, and retrieval")
def bags_of_varying_lengths():
    rows, n = [1000 * (i * i + 1) for i in range(20)], 4096
    e = on(bags, rows)
    top = on(lambda: stack(nn.Linear(64 * 20, 1024), nn.ReLU(), nn.Linear(1024, 1)))
    both = torch.optim.SparseAdam(list(e.parameters())), torch.optim.Adagrad(top.parameters())
    for _ in range(20):
        sums = []
        for r, f in zip(rows, e):
            k = T(n, v=20)
            sums.append(f(T(int(k.sum()), v=r), k.cumsum(0) - k))
        y = top(torch.cat(sums, 1))[:, 0]
        F.binary_cross_entropy_with_logits(y, torch.rand(n, device=dev)).backward()
        for o in both:
            o.step()
            o.zero_grad()
    with torch.no_grad():
        for f in e:
            (N(rng.randint(200, 2000), 64) @ f.weight.T).topk(100)


@program("gradients of each sample by vmap")
def func_persample():
    from torch.func import functional_call, vmap, grad, jacrev, hessian

    m = on(lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.GroupNorm(8, 32), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)))
    p = {k: v.detach() for k, v in m.named_parameters()}
    g = vmap(grad(lambda p, x, y: F.cross_entropy(functional_call(m, p, (x[None],)), y[None])),
             in_dims=(None, 0, 0))(p, N(64, 3, 32, 32), T(64, v=10))
    sum(v.flatten(1).square().sum(1) for v in g.values())
    w = N(40, 40)
    jacrev(lambda x: torch.tanh(w @ x))(N(40))
    hessian(lambda x: torch.tanh(w @ x).sum())(N(40))
    vmap(lambda a, b: a @ b)(N(32, 20, 30), N(32, 30, 10))


@program("gradients through optimizer steps")
def maml_higher():
    from torch.func import functional_call

    m = on(lambda: nn.Sequential(
        nn.Conv2d(1, 64, 3, 2, 1), nn.BatchNorm2d(64, track_running_stats=False), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 49, 5)))

    def loss(m):
        t = 0
        for k in range(4):
            p = dict(m.named_parameters())
            for i in range(3):
                g = torch.autograd.grad(
                    F.cross_entropy(functional_call(m, p, (N(25, 1, 28, 28),)), T(25, v=5)),
                    list(p.values()), create_graph=True)
                p = {n: a - 0.4 * b for (n, a), b in zip(p.items(), g)}
            t = t + F.cross_entropy(functional_call(m, p, (N(75, 1, 28, 28),)), T(75, v=5))
        return t

    fit(m, loss, 2)


@program("captured CUDA graphs")
def graph_capture():
    m = on(lambda: nn.Sequential(
        *[nn.Linear(1024, 1024) if i % 2 == 0 else nn.GELU() for i in range(8)]))
    o = torch.optim.AdamW(m.parameters(), capturable=True)
    x = N(256, 1024)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for i in range(3):
            o.zero_grad(set_to_none=True)
            m(x).square().mean().backward()
            o.step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    o.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        l = m(x).square().mean()
        l.backward()
        o.step()
    for i in range(5):
        x.copy_(N(256, 1024))
        g.replay()
    f = torch.cuda.make_graphed_callables(on(nn.Linear, 512, 512), (N(64, 512).requires_grad_(),))
    f(N(64, 512).requires_grad_()).sum().backward()


@program("activations saved on the host")
def offload_streams():
    from torch.autograd.graph import save_on_cpu

    m = on(lambda: nn.Sequential(*[
        nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)) for _ in range(6)
    ]))
    with save_on_cpu(pin_memory=True):
        fit(m, lambda m: m(N(1024, 2048)).square().mean(), 2)
    st = [torch.cuda.Stream() for _ in range(3)]
    host = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)
    for i in range(6):
        with torch.cuda.stream(st[i % 3]):
            y = host.to(dev, non_blocking=True).float()
            z = (y * 2).sum()
            y.record_stream(torch.cuda.current_stream())
        del y
    torch.cuda.synchronize()


@program("nested tensors")
def jagged_nested():
    class M(Parts):
        def forward(s, x):
            q, k, v = s.q(x).chunk(3, -1)
            f = lambda t: t.unflatten(-1, [8, 32]).transpose(1, 2)
            return s.o(F.scaled_dot_product_attention(f(q), f(k), f(v)).transpose(1, 2).flatten(-2))

    m = on(lambda: M(q=nn.Linear(256, 768), o=nn.Linear(256, 256)), dt=BF)

    def loss(m):
        x = torch.nested.nested_tensor([N(rng.randint(20, 200), 256, dt=BF) for _ in range(16)],
                                       layout=torch.jagged)
        return m(x).values().square().mean()

    fit(m, loss, 3)


@program("FP8 and int8 products")
def fp8_int8():
    a, b = N(2048, 4096, dt=BF), N(4096, 4096, dt=BF)
    s = torch.ones((), device=dev)
    f8 = torch.float8_e4m3fn
    for i in range(3):
        torch._scaled_mm(a.to(f8), b.to(f8).t(), scale_a=s, scale_b=s, out_dtype=BF)
    torch._scaled_mm(a.to(f8),
                     b.to(f8).t(), scale_a=torch.ones(2048, 1, device=dev),
                     scale_b=torch.ones(1, 4096, device=dev), out_dtype=BF)
    torch._int_mm(a.to(torch.int8), b.to(torch.int8).t())


@program("selective checkpointing")
def selective_ckpt():
    from torch.utils.checkpoint import CheckpointPolicy as P
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    keep = [torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default]
    pol = lambda ctx, op, *a, **k: P.MUST_SAVE if op in keep else P.PREFER_RECOMPUTE
    b = on(lambda: nn.ModuleList(
        nn.TransformerEncoderLayer(768, 12, 3072, 0.0, batch_first=True, norm_first=True)
        for _ in range(6)))

    def loss(b):
        x = N(8, 512, 768)
        for l in b:
            x = checkpoint(l, x, use_reentrant=False,
                           context_fn=functools.partial(create_selective_checkpoint_contexts, pol))
        return x.square().mean()

    fit(b, loss, 3, amp=BF)


@program("attention that returns its weights")
def mha_weights():
    m = on(nn.MultiheadAttention, 512, 8, batch_first=True)

    def loss(m):
        x = N(16, rng.choice([77, 197, 300]), 512)
        y, w = m(x, x, x, average_attn_weights=False)
        return y.square().mean() + w.std()

    fit(m, loss, 4)


@program("a Triton kernel of one's own")
def triton_user():
    import triton, triton.language as tl

    @triton.autotune([triton.Config({"B": 128}), triton.Config({"B": 1024})], key=["n"])
    @triton.jit
    def k(x, y, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

    for n in (10000, 500000):
        x = N(n)
        y = torch.empty_like(x)
        k[lambda m: (triton.cdiv(n, m["B"]),)](x, y, n)


@program("compiled reduce-overhead (graphs)")
def c_reduce():
    m = torch.compile(
        on(lambda: nn.Sequential(*[
            nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
            for _ in range(4)
        ])), mode="reduce-overhead")
    fit(m, lambda m: m(N(8, 256, 512)).square().mean(), 5, amp=BF)


@program("flex_attention")
def c_flex():
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask

    f = torch.compile(flex_attention)
    bm = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 256), None, None, 1024, 1024,
                           device=dev)
    q = N(4, 16, 1024, 64, dt=BF).requires_grad_()
    for i in range(3):
        f(q, q, q, block_mask=bm).sum().backward()


@program("a compiled optimizer")
def c_opt():
    m = on(lambda: nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]))
    o = torch.optim.AdamW(m.parameters())
    st = torch.compile(o.step)
    for i in range(3):
        m(N(128, 1024)).square().mean().backward()
        st()
        o.zero_grad()


@program("compiled with dynamic shapes")
def c_unet_dyn():
    m = torch.compile(
        on(lambda: nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU(),
                                 nn.Conv2d(64, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU(),
                                 nn.Conv2d(64, 3, 3, padding=1))), dynamic=True)
    fit(m, lambda m: m(N(4, 3, *rng.choice([(64, 96), (96, 96), (128, 64)]))).square().mean(), 5)


@program("gradients set to zero, foreach", "timm")
def zero_not_none_foreach():
    m = net("vit_small_patch16_224")
    o = torch.optim.NAdam(m.parameters(), 1e-4, foreach=True)
    for i in range(4):
        F.cross_entropy(m(images(32, 224)), T(32, v=1000)).backward()
        nn.utils.clip_grad_value_(m.parameters(), 1.0)
        o.step()
        o.zero_grad(set_to_none=False)
        if not all(torch.isfinite(p).all() for p in m.parameters()):
            raise RuntimeError("not finite")


@program("fused, foreach and capturable optimizers")
def optimizers_in_variants():
    from torch.optim import lr_scheduler as ls

    m = on(Lm, 1024, 6)
    loss = next_token(4, 512)
    A = torch.optim
    for make in (lambda p: A.AdamW(p, torch.tensor(1e-4, device=dev), fused=True),
                 lambda p: A.AdamW(p, 1e-4, foreach=True, amsgrad=True, maximize=True),
                 lambda p: A.Adam(p, torch.tensor(1e-4), capturable=True, foreach=True),
                 lambda p: A.Adafactor(p, 1e-3), lambda p: A.NAdam(p, decoupled_weight_decay=True),
                 lambda p: A.RAdam(p, foreach=False), lambda p: A.SGD(p, 0.1, 0.9, fused=True),
                 lambda p: A.RMSprop(p, centered=True, momentum=0.9),
                 lambda p: A.Adagrad(p, foreach=True)):
        dims = [p for p in m.parameters()
                if p.dim() > 1], [p for p in m.parameters() if p.dim() < 2]
        o = make([dict(params=dims[0], weight_decay=0.01), dict(params=dims[1])])
        try:
            s = ls.SequentialLR(o,
                                [ls.LinearLR(o, 0.1, total_iters=2),
                                 ls.CosineAnnealingLR(o, 10)], [2])
        except Exception:
            s = None
        for _ in range(3):
            with torch.autocast("cuda", BF):
                loss(m).backward()
            nn.utils.clip_grad_value_(m.parameters(), 1.0)
            o.step()
            o.zero_grad()
            s and s.step()
        o.load_state_dict(deepcopy(o.state_dict()))
        del o, s


@program("threads, each with a stream", "timm")
def threads_serve_on_streams():
    nets = [
        net(n).eval() for n in ("vit_small_patch16_224", "deit3_base_patch16_224", "mixer_b16_224")
    ]
    torch.cuda.synchronize()
    out = [None] * 3

    def serve(i, x, ready):
        s = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(s), torch.autocast("cuda", HF16):
            s.wait_event(ready)
            for part in x.split(32):
                y = nets[i](part)
            x.record_stream(s)
            out[i] = y, s.record_event()

    for n in (64, 96, 32):
        x = images(n, 224)
        ready = torch.cuda.current_stream().record_event()
        for i in range(3):
            t = threading.Thread(target=serve, args=(i, x, ready))
            t.start()
            t.join()
        del x
        for y, e in out:
            e.wait()
            y.record_stream(torch.cuda.current_stream())
        torch.stack([y.softmax(1) for y, _ in out]).mean(0).argmax(1).tolist()


@program("one graph pool for many batch sizes")
def captured_for_each_batch():
    d, h, n, most = 2048, 16, 8, 1024
    m = on(Lm, d, n, layer=lambda d: Layer(d, h), dt=BF).eval()
    k = torch.zeros(n, 64, h, most, d // h, device=dev, dtype=BF)
    v = torch.zeros_like(k)
    ids = torch.zeros(64, 1, dtype=torch.long, device=dev)
    pos = torch.zeros(64, dtype=torch.long, device=dev)

    def step(b):
        x = m.emb(ids[:b])
        mask = (torch.arange(most, device=dev) <= pos[:b, None])[:, None, None]
        for i, f in enumerate(m.layers):
            y = f.n1(x)
            q = f.mix.q(y).unflatten(-1, (h, -1)).transpose(1, 2)
            (kk, vv) = (t.unflatten(-1, (h, -1))[:, 0] for t in f.mix.kv(y).chunk(2, -1))
            k[i][torch.arange(b, device=dev), :, pos[:b]] = kk
            v[i][torch.arange(b, device=dev), :, pos[:b]] = vv
            x = x + f.mix.o(
                F.scaled_dot_product_attention(q, k[i, :b], v[i, :b], attn_mask=mask).transpose(
                    1, 2).flatten(2))
            x = x + f.mlp(f.n2(x))
        return m.head(m.norm(x))[:, -1].argmax(-1)

    with torch.inference_mode():
        graphs, pool = {}, None
        for b in (64, 48, 32, 16, 8, 4, 2, 1):
            s = torch.cuda.Stream()
            s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s):
                step(b)
            torch.cuda.current_stream().wait_stream(s)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=pool):
                y = step(b)
            graphs[b], pool = (g, y), g.pool()
        for i in range(40):
            b = min(x for x in graphs if x >= 1 + i)
            graphs[b][0].replay()
            ids[:b, 0] = graphs[b][1]
            pos[:b] += 1


@program("garbage_collection_threshold and max_split_size_mb",
         conf="garbage_collection_threshold:0.6,max_split_size_mb:200")
def conf_collects_garbage():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(14e9 / total)
    lengths_that_vary()


@program("roundup_power2_divisions", conf="roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
def conf_rounds_up():
    lengths_that_vary()


@program("expandable segments with graphs",
         conf="expandable_segments:True,garbage_collection_threshold:0.8")
def conf_expandable_with_graphs():
    lengths_that_vary(5, 2)
    captured_for_each_batch()


@program("cudaMallocAsync", conf="backend:cudaMallocAsync")
def conf_drivers_own_pool():
    lengths_that_vary(4, 2)


@program("expandable segments at the limit", conf="expandable_segments:True")
def conf_expandable_runs_out():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(12e9 / total)
    m = on(Lm, 1024, 8)
    o = torch.optim.AdamW(m.parameters(), 1e-4)

    def step(n):
        with torch.autocast("cuda", BF):
            next_token(n, 1024)(m).backward()
        o.step()
        o.zero_grad()

    n = 1
    while True:
        try:
            step(2 * n)
        except torch.OutOfMemoryError:
            o.zero_grad()
            torch.cuda.empty_cache()
            break
        n *= 2
    for _ in range(3):
        step(n)


@program("weights that swap with pinned memory on two streams")
def blocks_swap_with_the_host():
    d, n, ahead = 2560, 14, 2
    m = on(Lm, d, 0, dt=BF)
    blocks = [Layer(d, 20).to(BF).requires_grad_(False) for _ in range(n)]
    for b in blocks:
        for p in b.parameters():
            p.data = p.data.pin_memory()
    adapters = nn.ModuleList([
        on(lambda: stack(nn.Linear(d, 16, bias=False), nn.Linear(16, d, bias=False)), dt=BF)
        for _ in range(n)
    ])
    side, live = torch.cuda.Stream(), {}

    def fetch(i):
        if 0 <= i < n and i not in live:
            with torch.cuda.stream(side):
                live[i] = {
                    k: v.to(dev, non_blocking=True) for k, v in blocks[i].state_dict().items()
                }, side.record_event()

    def ready(i, step):
        fetch(i)
        fetch(i + step)
        w, e = live[i]
        torch.cuda.current_stream().wait_event(e)
        for t in w.values():
            t.record_stream(torch.cuda.current_stream())
        return w

    class Swapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, i):
            ctx.i = i
            ctx.save_for_backward(x)
            with torch.no_grad():
                y = torch.func.functional_call(blocks[i], ready(i, 1), x)
            if i < n - ahead:
                del live[i]
            return y

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                torch.func.functional_call(blocks[ctx.i], ready(ctx.i, -1), x).backward(g)
            live.pop(ctx.i)
            return x.grad, None

    o = torch.optim.AdamW(adapters.parameters(), 1e-4)
    for _ in range(3):
        x = T(2, 2049)
        y = m.emb(x[:, :-1])
        for i in range(n):
            y = Swapped.apply(y, i)
            y = y + adapters[i](y)
        F.cross_entropy(m.head(m.norm(y)).float().flatten(0, 1), x[:, 1:].flatten()).backward()
        live.clear()
        o.step()
        o.zero_grad()


@program("registered pinned memory", conf="pinned_use_cuda_host_register:True,"
         "pinned_num_register_threads:4,per_process_memory_fraction:0.2,"
         "max_non_split_rounding_mb:64", torch="2.10")
def conf_registers_pinned():
    lengths_that_vary(4)
    blocks_swap_with_the_host()


@program("hooks on saved tensors")
def activations_in_eight_bits():
    m = on(Lm, 1536, 10, dt=BF)

    def loss(m):
        with Eight():
            return next_token(8, 1024)(m)

    fit(m, loss, 3)


@program("an operator of one's own, compiled")
def c_own_operator():
    @torch.library.custom_op("unseen::scaled_norm", mutates_args=())
    def scaled_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],)).to(x.dtype) * w

    scaled_norm.register_fake(lambda x, w: torch.empty_like(x))

    def back(ctx, g):
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
            return torch.autograd.grad(
                F.rms_norm(x.float(), (x.shape[-1],)).to(x.dtype) * w, (x, w), g)

    scaled_norm.register_autograd(
        back, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

    class Block(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.w = nn.Parameter(torch.ones(d))
            s.f = Attn(d, 8)
            s.mlp = stack(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

        def forward(s, x):
            x = x + s.f(torch.ops.unseen.scaled_norm(x, s.w))
            torch._dynamo.graph_break()
            return x + s.mlp(x)

    fit(torch.compile(on(Lm, 768, 4, layer=Block, dt=BF)), next_token(4, 1024), 3)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        import numpy
        r = numpy.random.default_rng(i)
        x = torch.from_numpy(r.random((3, 256, 256), dtype=numpy.float32))
        return x, torch.from_numpy(r.integers(0, 21, (256, 256)))


def prefetched(loader):
    """Copies each batch to the card on a side stream while the batch before it is used."""
    loader, side = iter(loader), torch.cuda.Stream()

    def load():
        x, y = next(loader, (None, None))
        if x is None:
            return None
        with torch.cuda.stream(side):
            return (x.to(dev, non_blocking=True, memory_format=torch.channels_last),
                    y.to(dev, non_blocking=True))

    batch = load()
    while batch is not None:
        torch.cuda.current_stream().wait_stream(side)
        now = batch
        for t in now:
            t.record_stream(torch.cuda.current_stream())
        batch = load()
        yield now


class SmallUnet(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False),
                                          nn.BatchNorm2d(b), nn.LeakyReLU(0.1, inplace=True))
        self.down = nn.ModuleList([conv(3, 32), conv(32, 64), conv(64, 128), conv(128, 256)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * c, c, 2, 2) for c in (128, 64, 32)])
        self.join = nn.ModuleList([conv(2 * c, c) for c in (128, 64, 32)])
        self.head = nn.Conv2d(32, 21, 1)

    def forward(self, x):
        kept = []
        for d in self.down:
            x = d(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


@program("workers of a data loader, pinned memory and a prefetching stream")
def loader():
    net = SmallUnet().cuda().to(memory_format=torch.channels_last)
    averaging = torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=averaging)
    o = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler()
    batches = torch.utils.data.DataLoader(Pictures(), batch_size=24, num_workers=2, pin_memory=True,
                                          persistent_workers=True, prefetch_factor=2)
    for _ in range(2):
        for x, y in prefetched(batches):
            with torch.autocast("cuda", HF16):
                loss = F.cross_entropy(net(x), y, label_smoothing=0.1, ignore_index=0)
            scaler.scale(loss).backward()
            scaler.unscale_(o)
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            scaler.step(o)
            scaler.update()
            o.zero_grad()
            average.update_parameters(net)
    confusion = torch.zeros(21, 21, dtype=torch.long, device=dev)
    average.eval()
    with torch.inference_mode():
        for x, y in batches:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            p = average(x).argmax(1)
            keep = y != 255
            confusion += torch.bincount(y[keep] * 21 + p[keep], minlength=441).view(21, 21)
    (confusion.diag().float() / confusion.sum(1)).nanmean().item()
    best = deepcopy(net.state_dict())
    net.load_state_dict({k: v.cpu() for k, v in best.items()})


@program("a search for the largest batch, memory pools, and a block larger than what is free")
def limits():
    def step(n):
        net(torch.randn(n, 2048, device=dev)).square().mean().backward()
        for p in net.parameters():
            p.grad = None

    torch.cuda.set_per_process_memory_fraction(0.25)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048))
                          for _ in range(4)]).cuda()
    n, good = 1000, 0
    while True:
        try:
            step(n)
            good, n = n, n * 2
        except torch.OutOfMemoryError:
            gc.collect()
            torch.cuda.empty_cache()
            break
    low, high = good, n
    while high - low > 500:
        n = (low + high) // 2
        try:
            step(n)
            low = n
        except torch.OutOfMemoryError:
            high = n
            gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty((1 + 7 * k % 31) << 20, device=dev) for k in range(30)]
    kept = kept[::2]
    with torch.cuda.use_mem_pool(pool):
        kept += [torch.empty(20 << 20, device=dev) for _ in range(5)]
    more = [torch.empty((3 + k % 11) << 19, device=dev, dtype=torch.half) for k in range(200)]
    del more[::3]
    sizes = [k * 1000003 % (50 << 20) for k in range(1, 100)]
    more += [torch.empty(n, device=dev, dtype=torch.uint8) for n in sizes]
    del kept, pool
    gc.collect()
    torch.cuda.empty_cache()
    torch.empty(6 << 30, device=dev, dtype=torch.uint8)
    free, total = torch.cuda.mem_get_info()
    try:
        torch.empty(total, device=dev, dtype=torch.uint8)
    except torch.OutOfMemoryError:
        pass
