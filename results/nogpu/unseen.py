# SPDX-License-Identifier: Apache-2.0
"""Programs of kinds that none of the other collections has: same frame, same rows as everyday.py, atscale.py and fresh.py.

    unseen.py OUT WORKERS SECONDS [NAME...]         rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz

A program with settings of the allocator runs in a Python of its own, with PYTORCH_CUDA_ALLOC_CONF set.
"""

import contextlib, copy, itertools, tempfile, threading

import torch.utils.checkpoint

import everyday
from fresh import *
from everyday import J

J.clear()
CONF = {}


def job_with(conf):
    """A job under settings of the allocator."""

    def put(f):
        CONF[f.__name__] = conf
        return job(f)

    return put


def own_python(name, out, one=everyday.one):
    """Settings of the allocator are read when torch is loaded, so such a program is executed anew."""
    if CONF.get(name, os.environ.get("PYTORCH_CUDA_ALLOC_CONF")) != os.environ.get("PYTORCH_CUDA_ALLOC_CONF"):
        os.execve(sys.executable, [sys.executable, __file__, "--one", name, out], dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=CONF[name]))
    if "cudaMallocAsync" in CONF.get(name, ""):  # it keeps no history
        torch.cuda.memory._record_memory_history, torch.cuda.memory._snapshot = lambda **k: None, lambda: {"device_traces": [[]]}
    one(name, out)


everyday.one = own_python


class Attn(nn.Module):
    def __init__(s, d, heads, causal=True, cross=False):
        super().__init__()
        s.h, s.causal = heads, causal
        s.q, s.kv, s.o = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d, bias=False)

    def forward(s, x, y=None):
        q, (k, v) = s.q(x), s.kv(x if y is None else y).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (s.h, -1)).transpose(-3, -2) for t in (q, k, v))
        return s.o(F.scaled_dot_product_attention(q, k, v, is_causal=s.causal).transpose(-3, -2).flatten(-2))


class Layer(nn.Module):
    """A layer of a transformer; mix takes the place of attention, mlp that of the feed-forward part."""

    def __init__(s, d, heads=8, causal=True, mix=None, mlp=None):
        super().__init__()
        s.n1, s.n2, s.mix = nn.RMSNorm(d), nn.RMSNorm(d), mix or Attn(d, heads, causal)
        s.mlp = mlp or stack(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(s, x):
        x = x + s.mix(s.n1(x))
        return x + s.mlp(s.n2(x))


class Lm(nn.Module):
    """A language model of such layers; its loss with labels."""

    def __init__(s, d, n, vocab=32000, layer=Layer):
        super().__init__()
        s.emb, s.layers, s.norm, s.head = nn.Embedding(vocab, d), nn.ModuleList([layer(d) for _ in range(n)]), nn.RMSNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(s, x):
        x = s.emb(x)
        for f in s.layers:
            x = f(x)
        return s.head(s.norm(x))


def next_token(batch, length, vocab=32000):
    def loss(m):
        x = T(batch, length + 1, v=vocab)
        return F.cross_entropy(m(x[:, :-1]).flatten(0, 1).float(), x[:, 1:].flatten())

    return loss


LLAMA = dict(hidden_size=2048, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=8, intermediate_size=5632, vocab_size=32000)


# ---- fine-tuning
@job
def trainer_neftune_metrics():
    """Trainer with NEFTune, label smoothing, an empty cache every two steps, and metrics of logits gathered in parts."""
    from transformers import Trainer, TrainingArguments

    m = hf("Qwen2", torch.float32, hidden_size=1024, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816, vocab_size=50000)
    g = torch.Generator().manual_seed(3)
    rows = [dict(input_ids=(x := torch.randint(0, 50000, (int(torch.randint(200, 700, (1,), generator=g)),), generator=g)), labels=x) for _ in range(40)]

    def collate(b):
        pad = lambda k, v: nn.utils.rnn.pad_sequence([r[k] for r in b], True, v)
        return dict(input_ids=pad("input_ids", 0), labels=pad("labels", -100), attention_mask=pad("input_ids", -1).ne(-1).long())

    with tempfile.TemporaryDirectory() as d:
        a = TrainingArguments(d, per_device_train_batch_size=4, per_device_eval_batch_size=4, max_steps=6, bf16=True, neftune_noise_alpha=5.0, label_smoothing_factor=0.1,
                              torch_empty_cache_steps=2, eval_strategy="steps", eval_steps=3, eval_accumulation_steps=2, optim="adamw_torch_fused", save_strategy="no",
                              report_to=[], dataloader_num_workers=2, gradient_accumulation_steps=2, remove_unused_columns=False)
        Trainer(m, a, train_dataset=rows, eval_dataset=rows[:16], data_collator=collate, preprocess_logits_for_metrics=lambda y, l: y.argmax(-1),
                compute_metrics=lambda p: {"right": float((p.predictions == p.label_ids).mean())}).train()


@job
def accelerate_finds_batch():
    """find_executable_batch_size under a share of the card, then accumulation and clipping by Accelerate."""
    from accelerate import Accelerator
    from accelerate.utils import find_executable_batch_size

    torch.cuda.set_per_process_memory_fraction(16e9 / torch.cuda.get_device_properties(0).total_memory)
    a = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)

    @find_executable_batch_size(starting_batch_size=64)
    def train(size):
        a.free_memory()
        m = Lm(1024, 8).to(dev)
        m, o = a.prepare(m, torch.optim.AdamW(m.parameters(), 1e-4))
        loss = next_token(size, 1024)
        for _ in range(4):
            with a.accumulate(m):
                a.backward(loss(m))
                if a.sync_gradients:
                    a.clip_grad_norm_(m.parameters(), 1.0)
                o.step()
                o.zero_grad()

    train()


@job
def generation_and_training_take_turns():
    """Optimizer states wait in pinned memory while answers are drawn, as engines of reinforcement learning do; advantages in groups."""
    m, ref = hf("Llama", **LLAMA), hf("Llama", **LLAMA).requires_grad_(False)
    ref.to("cpu")
    o = torch.optim.AdamW(m.parameters(), 1e-6, foreach=True)
    host = {}

    def states(to_host):
        for p, s in o.state.items():
            for k in ("exp_avg", "exp_avg_sq"):
                if k in s:
                    if to_host:
                        host.setdefault((p, k), torch.empty(s[k].shape, dtype=s[k].dtype, pin_memory=True)).copy_(s[k], non_blocking=True)
                        s[k] = host[p, k]
                    else:
                        s[k] = s[k].to(dev, non_blocking=True)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def logp(net, x, n):
        y = net(x).logits[:, -n - 1:-1]
        return torch.gather(y.float().log_softmax(-1), 2, x[:, -n:, None])[..., 0]

    for i in range(3):
        states(True)
        m.eval()
        x = m.generate(T(4, 200).repeat_interleave(8, 0), max_new_tokens=48, min_new_tokens=48, do_sample=True, top_k=0, pad_token_id=0)
        states(False)
        ref.to(dev)
        with torch.no_grad():
            old, base = logp(m, x, 48), torch.cat([logp(ref, c, 48) for c in x.split(8)])
        ref.to("cpu")
        r = torch.rand(4, 8, device=dev)
        adv = ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        m.train()
        for part in torch.arange(32, device=dev).split(8):
            new = logp(m, x[part], 48)
            ratio, kl = (new - old[part]).exp(), (base[part] - new).exp() - (base[part] - new) - 1
            (-torch.min(ratio * adv[part], ratio.clamp(0.8, 1.2) * adv[part]) + 0.04 * kl).mean().backward()
        o.step()
        o.zero_grad()


class Nf4(torch.autograd.Function):
    """x W' with W as four bits, a scale of each 64, and scales as eight bits."""

    @staticmethod
    def unpack(packed, scale8, scale32, table, shape):
        codes = torch.stack([packed >> 4, packed & 15], -1).view(-1)
        scale = (scale8.float() * scale32[:, None]).view(-1, 1)
        return (table[codes.int()].view(-1, 64) * scale).view(shape).to(BF)

    @staticmethod
    def forward(ctx, x, shape, *w):
        ctx.save_for_backward(*w)
        ctx.shape = shape
        return x @ Nf4.unpack(*w, shape).T

    @staticmethod
    def backward(ctx, g):
        w = ctx.saved_tensors
        return (g @ Nf4.unpack(*w, ctx.shape), None, *[None] * len(w))


class Qlora(nn.Module):
    def __init__(s, linear, table, r=16):
        super().__init__()
        w = linear.weight.data
        s.shape = w.shape
        blocks = w.view(-1, 64)
        top = blocks.abs().amax(1, keepdim=True).float()
        codes = torch.cat([((b / t)[..., None] - table).abs().argmin(-1) for b, t in zip(blocks.float().split(65536), top.split(65536))]).view(-1, 2).to(torch.uint8)
        top = top.view(-1, 256)
        s.register_buffer("packed", codes[:, 0] << 4 | codes[:, 1])
        s.register_buffer("scale32", top.amax(1) / 255)
        s.register_buffer("scale8", (top / s.scale32[:, None]).round().to(torch.uint8))
        s.register_buffer("table", table)
        s.a, s.b = nn.Parameter(torch.randn(r, w.shape[1], device=dev) * 0.01), nn.Parameter(torch.zeros(w.shape[0], r, device=dev))

    def forward(s, x):
        return Nf4.apply(x, s.shape, s.packed, s.scale8, s.scale32, s.table) + F.dropout(x, 0.05).float().matmul(s.a.T).matmul(s.b.T).to(x.dtype)


def replace(m, kind, make):
    """Every layer of a kind in m by another one."""
    for name, f in list(m.named_modules()):
        if isinstance(f, kind) and not name.endswith(("lm_head", "head")):
            parent, _, leaf = name.rpartition(".")
            setattr(m.get_submodule(parent), leaf, make(f))
    return m


@job
def qlora_by_hand():
    m = checkpointed(hf("Llama", **LLAMA))
    table = torch.linspace(-1, 1, 16, device=dev)
    m.requires_grad_(False)
    m.enable_input_require_grads()
    replace(m, nn.Linear, lambda f: Qlora(f, table))
    fit(m, lm(32000, 4, 1024), 3)


@job
def relora_merges():
    """LoRA that is merged and begun anew, with an optimizer of its own each time; then IA3 and a prefix of keys and values."""
    class Lora(nn.Module):
        def __init__(s, f):
            super().__init__()
            s.f, s.a, s.b = f.requires_grad_(False), nn.Parameter(torch.empty(32, f.in_features, device=dev)), nn.Parameter(torch.zeros(f.out_features, 32, device=dev))
            nn.init.kaiming_uniform_(s.a)

        def forward(s, x):
            return s.f(x) + x @ s.a.T.to(x.dtype) @ s.b.T.to(x.dtype)

        @torch.no_grad()
        def merge(s):
            s.f.weight += (s.b @ s.a).to(s.f.weight.dtype)
            nn.init.kaiming_uniform_(s.a)
            s.b.zero_()

    m = hf("Llama", **LLAMA)
    m.config.use_cache = False
    m.requires_grad_(False)
    replace(m, nn.Linear, Lora)
    for _ in range(3):
        fit(m, lm(32000, 4, 700), 2)
        for f in m.modules():
            if isinstance(f, Lora):
                f.merge()
    scales = [nn.Parameter(torch.ones(f.f.out_features, device=dev)) for n, f in m.named_modules() if isinstance(f, Lora) and n.endswith(("k_proj", "v_proj", "down_proj"))]
    m.requires_grad_(False)
    targets = [f for n, f in m.named_modules() if isinstance(f, Lora) and n.endswith(("k_proj", "v_proj", "down_proj"))]
    hooks = [f.register_forward_hook(lambda f, i, y, s=s: y * s.to(y.dtype)) for f, s in zip(targets, scales)]
    o = torch.optim.AdamW(scales, 1e-3)
    for _ in range(2):
        lm(32000, 4, 700)(m).backward()
        o.step()
        o.zero_grad()
    for h in hooks:
        h.remove()


@job
def layers_thaw_in_turns():
    """LISA: two layers train at a time, others are frozen, and the optimizer is made anew."""
    m = checkpointed(hf("Llama", **dict(LLAMA, num_hidden_layers=12)))
    m.enable_input_require_grads()
    for i in range(4):
        m.requires_grad_(False)
        for j in rng.sample(range(12), 2):
            m.model.layers[j].requires_grad_(True)
        m.lm_head.requires_grad_(True)
        fit(m, lm(32000, 4, 1024), 2)


@job
def packed_varlen_attention():
    """Documents in one row, attention of variable lengths, a loss in parts that never holds all logits."""
    from torch.nn.attention.varlen import varlen_attn

    class Packed(nn.Module):
        def __init__(s, d, h):
            super().__init__()
            s.h, s.qkv, s.o = h, nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)

        def forward(s, x):
            q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).unbind(1)
            return s.o(varlen_attn(q, k, v, ends[0], ends[0], ends[1], ends[1], window_size=(-1, 0)).flatten(1))

    ends = [None, 0]
    m = on(Lm, 1536, 8, layer=lambda d: Layer(d, mix=Packed(d, 12)), dt=BF)

    def loss(m):
        lengths = []
        while sum(lengths) < 16384:
            lengths.append(min(rng.randint(50, 3000), 16384 - sum(lengths)))
        ends[:] = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=dev), max(lengths)
        x = T(16385)
        y = m.emb(x[:-1])
        for f in m.layers:
            y = torch.utils.checkpoint.checkpoint(f, y, use_reentrant=False)
        part = lambda y, t: F.cross_entropy(m.head(m.norm(y)).float(), t, reduction="sum")
        return sum(torch.utils.checkpoint.checkpoint(part, a, t, use_reentrant=False) for a, t in zip(y.split(2048), x[1:].split(2048))) / 16384

    fit(m, loss, 4)


# ---- quantised weights
@job
def int4_decodes_with_static_cache():
    """Weights of four bits as gpt-fast packs them, keys and values in place, one token at a time."""
    d, n, h, most = 4096, 8, 32, 2048

    class Int4(nn.Module):
        def __init__(s, f):
            super().__init__()
            o, i = f.weight.shape
            s.o = o
            q = torch.randint(0, 256, (o, i // 2), dtype=torch.uint8, device=dev)
            s.register_buffer("w", torch.ops.aten._convert_weight_to_int4pack(q, 8))
            s.register_buffer("s", torch.randn(i // 128, o, 2, device=dev, dtype=BF) * 0.01)

        def forward(s, x):
            return torch.ops.aten._weight_int4pack_mm(x.flatten(0, -2), s.w, 128, s.s).unflatten(0, x.shape[:-1])

    class Cached(nn.Module):
        def __init__(s, d, h):
            super().__init__()
            s.h, s.qkv, s.o = h, nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)

        def build(s, batch):
            s.k, s.v = (torch.zeros(batch, s.h, most, d // s.h, device=dev, dtype=BF) for _ in "kv")

        def forward(s, x):
            q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4)
            s.k[:, :, at[0]], s.v[:, :, at[0]] = k, v
            return s.o(F.scaled_dot_product_attention(q, s.k, s.v, attn_mask=mask[at[0]][None, None]).transpose(1, 2).flatten(2))

    m = on(Lm, d, n, layer=lambda d: Layer(d, mix=Cached(d, h)), dt=BF)
    replace(m, nn.Linear, Int4)
    torch.cuda.empty_cache()
    mask, at = torch.ones(most, most, dtype=torch.bool, device=dev).tril(), [None]
    for f in m.layers:
        f.mix.build(4)
    with torch.inference_mode():
        x = T(4, 500)
        at[0] = torch.arange(500, device=dev)
        y = m(x)[:, -1:]
        for i in range(500, 560):
            at[0] = torch.tensor([i], device=dev)
            p = (y.float() / 0.8).softmax(-1)[:, 0]
            x = (p / torch.empty_like(p).exponential_(1)).argmax(-1, keepdim=True)
            y = m(x)


class Fp8(torch.autograd.Function):
    """Scales from the largest values of the last steps; gradients in e5m2."""

    @staticmethod
    def forward(ctx, x, w, history):
        e4 = torch.float8_e4m3fn
        sx, sw = ((448 / history[i].max().clamp_min(1e-6)).float() for i in (0, 1))
        history[0] = torch.cat([x.abs().max().float()[None], history[0, :-1]])
        history[1] = torch.cat([w.abs().max().float()[None], history[1, :-1]])
        x8, w8 = (x.flatten(0, -2) * sx).clamp(-448, 448).to(e4), (w * sw).clamp(-448, 448).to(e4)
        ctx.save_for_backward(x8, w8, 1 / sx, 1 / sw)
        ctx.shape = x.shape
        return torch._scaled_mm(x8, w8.t(), 1 / sx, 1 / sw, out_dtype=BF, use_fast_accum=True).unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(ctx, g):
        x8, w8, ix, iw = ctx.saved_tensors
        g = g.flatten(0, -2)
        s = (57344 / g.abs().max().clamp_min(1e-6)).float()
        g8 = (g * s).clamp(-57344, 57344).to(torch.float8_e5m2)
        dx = torch._scaled_mm(g8, w8.t().contiguous().t(), 1 / s, iw, out_dtype=BF).view(ctx.shape)
        return dx, torch._scaled_mm(g8.t().contiguous(), x8.t().contiguous().t(), 1 / s, ix, out_dtype=BF), None


@job
def fp8_with_delayed_scales():
    class Linear8(nn.Module):
        def __init__(s, f):
            super().__init__()
            s.w = nn.Parameter(f.weight.detach().to(BF))
            s.register_buffer("history", torch.ones(2, 16, device=dev))

        def forward(s, x):
            return Fp8.apply(x, s.w, s.history)

    m = on(Lm, 2048, 8, layer=lambda d: Layer(d, 16, mlp=stack(nn.Linear(d, 4 * d, bias=False), nn.GELU(), nn.Linear(4 * d, d, bias=False))), dt=BF)
    replace(m, nn.Linear, Linear8)
    fit(m, next_token(4, 2048), 4, lambda p: torch.optim.AdamW(p, 1e-4, fused=True))


@job
def bitnet_ternary():
    class Bit(nn.Linear):
        def forward(s, x):
            x = F.rms_norm(x, (s.in_features,))
            scale = 127 / x.abs().amax(-1, keepdim=True).clamp_min(1e-5)
            x = x + ((x * scale).round().clamp(-128, 127) / scale - x).detach()
            by = 1 / s.weight.abs().mean().clamp_min(1e-5)
            w = s.weight + ((s.weight * by).round().clamp(-1, 1) / by - s.weight).detach()
            return F.linear(x, w)

    m = on(Lm, 1536, 10, layer=lambda d: Layer(d, 12, mlp=stack(Bit(d, 4 * d, bias=False), nn.ReLU(), Bit(4 * d, d, bias=False))))
    fit(m, next_token(4, 1024), 3, amp=BF)


@job
def gptq_of_llama():
    """Layer by layer: inputs caught by hooks, Hessians, Cholesky factors, errors spread over the columns that are left."""
    m = hf("Llama", HF16, **dict(LLAMA, num_hidden_layers=1)).eval()
    seen = []
    hook = m.model.layers[0].register_forward_pre_hook(lambda f, a, k: seen.append((a[0], k)) or (_ for _ in ()).throw(StopIteration), with_kwargs=True)
    with torch.no_grad():
        for _ in range(16):
            with contextlib.suppress(StopIteration):
                m(T(1, 2048))
        hook.remove()
        xs, more = [x for x, _ in seen], seen[0][1]
        for layer in m.model.layers:
            h, count = {}, 0

            def add(f, i, y):
                x = i[0].flatten(0, -2).float().T
                h[f] = h.get(f, 0) + x @ x.T * (2 / 16)

            hooks = [f.register_forward_hook(add) for f in layer.modules() if isinstance(f, nn.Linear)]
            for x in xs:
                layer(x, **more)
            for k in hooks:
                k.remove()
            for f, a in h.items():
                w, a = f.weight.float(), a
                a.diagonal().add_(a.diagonal().mean() * 0.01 + 1)
                a = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(a)), upper=True)
                q = torch.zeros_like(w)
                for i in range(0, w.shape[1], 128):
                    part, err = w[:, i:i + 128].clone(), torch.zeros(w.shape[0], min(128, w.shape[1] - i), device=dev)
                    scale = part.abs().amax(1, keepdim=True) / 7
                    for j in range(part.shape[1]):
                        c = (part[:, j:j + 1] / scale).round().clamp(-8, 7) * scale
                        e = (part[:, j:j + 1] - c) / a[i + j, i + j]
                        part[:, j:] -= e @ a[i + j, i + j:i + part.shape[1]][None]
                        q[:, i + j:i + j + 1], err[:, j:j + 1] = c, e
                    w[:, i + 128:] -= err @ a[i:i + 128, i + 128:]
                f.weight.copy_(q.half())
            xs = [(y[0] if isinstance(y, tuple) else y) for y in (layer(x, **more) for x in xs)]
            del h
            torch.cuda.empty_cache()


# ---- optimizers
class ByHand(torch.optim.Optimizer):
    """An optimizer whose update of a tensor is a function of it, its gradient, its state and the number of the step."""

    def __init__(s, params, rule, lr=1e-4):
        super().__init__(params, dict(lr=lr))
        s.rule, s.n = rule, 0

    @torch.no_grad()
    def step(s, closure=None):
        s.n += 1
        for group in s.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    s.rule(p, p.grad, s.state[p], s.n, group["lr"])


def lion(p, g, s, n, lr):
    m = s.setdefault("m", torch.zeros_like(p))
    p.mul_(1 - lr * 0.1).add_(torch.lerp(m, g, 0.1).sign_(), alpha=-lr)
    m.lerp_(g, 0.01)


def schedule_free(p, g, s, n, lr):
    z, v = s.setdefault("z", p.clone()), s.setdefault("v", torch.zeros_like(p))
    v.mul_(0.95).addcmul_(g, g, value=0.05)
    u = g / (v / (1 - 0.95**n)).sqrt_().add_(1e-8)
    p.lerp_(z, 1 / n).add_(u, alpha=lr * (0.9 * (1 - 1 / n) - 1))
    z.sub_(u, alpha=lr)


def came(p, g, s, n, lr):
    if g.dim() < 2:
        v = s.setdefault("v", torch.zeros_like(g))
        v.mul_(0.999).add_(g.square() + 1e-30, alpha=0.001)
        return p.sub_(g * v.rsqrt(), alpha=lr)
    row, col = s.setdefault("row", torch.zeros_like(g[:, 0])), s.setdefault("col", torch.zeros_like(g[0]))
    rr, rc = s.setdefault("rr", torch.zeros_like(row)), s.setdefault("rc", torch.zeros_like(col))
    m = s.setdefault("m", torch.zeros_like(g))
    approx = lambda r, c: (r / r.mean()).rsqrt_()[:, None] * c.rsqrt()[None]
    sq = g**2 + 1e-30
    row.lerp_(sq.mean(1), 0.001)
    col.lerp_(sq.mean(0), 0.001)
    u = approx(row, col) * g
    u.div_((u.norm() / u.numel() ** 0.5).clamp_(min=1.0))
    m.lerp_(u, 0.1)
    res = (u - m) ** 2 + 1e-16
    rr.lerp_(res.mean(1), 1e-4)
    rc.lerp_(res.mean(0), 1e-4)
    p.sub_(approx(rr, rc) * m, alpha=lr)


def bytes_of_adam(p, g, s, n, lr):
    """States of one byte in blocks of 256, by the nearest of a table."""
    if "table" not in bytes_of_adam.__dict__:
        bytes_of_adam.table = torch.linspace(-1, 1, 255, device=dev) ** 3
    t, size = bytes_of_adam.table, p.numel()
    out = []
    for k, beta, x in (("m", 0.9, g), ("v", 0.95, g * g)):
        flat = F.pad(x.float().flatten(), (0, -size % 256)).view(-1, 256)
        if k in s:
            flat = torch.lerp(flat, t[s[k].int()] * s[k + "top"], beta)
        top = flat.abs().amax(1, keepdim=True).clamp_min(1e-12)
        s[k], s[k + "top"] = torch.bucketize(flat / top, t[:-1]).to(torch.uint8), top
        out.append(flat.flatten()[:size].view_as(p))
    p.add_((out[0] / (out[1].clamp_min_(0).sqrt_() + 1e-8)).to(p.dtype), alpha=-lr)


def rounded(p, g, s, n, lr):
    """Weights in bf16, rounded up or down by chance."""
    m = s.setdefault("m", torch.zeros_like(p))
    m.lerp_(g, 0.1)
    bits = (p.float() - lr * m.float()).view(torch.int32)
    p.copy_((bits + torch.randint_like(bits, 1 << 16)).bitwise_and_(-65536).view(torch.float32))


@job
def optimizers_by_hand():
    for rule, dt in ((lion, BF), (schedule_free, torch.float32), (came, torch.float32), (bytes_of_adam, torch.float32), (rounded, BF)):
        m = on(Lm, 1024, 6, dt=dt)
        fit(m, next_token(8, 512), 3, lambda p: ByHand(p, rule), amp=None if dt == BF else BF)
        del m


@job
def optimizers_in_variants():
    """foreach, fused, capturable, amsgrad, of several groups, with tensors for the learning rate, and schedules."""
    from torch.optim import lr_scheduler as ls

    m = on(Lm, 1024, 6)
    loss = next_token(4, 512)
    A = torch.optim
    for make in (lambda p: A.AdamW(p, torch.tensor(1e-4, device=dev), fused=True), lambda p: A.AdamW(p, 1e-4, foreach=True, amsgrad=True, maximize=True),
                 lambda p: A.Adam(p, torch.tensor(1e-4), capturable=True, foreach=True), lambda p: A.Adafactor(p, 1e-3), lambda p: A.NAdam(p, decoupled_weight_decay=True),
                 lambda p: A.RAdam(p, foreach=False), lambda p: A.SGD(p, 0.1, 0.9, fused=True), lambda p: A.RMSprop(p, centered=True, momentum=0.9), lambda p: A.Adagrad(p, foreach=True)):
        dims = [p for p in m.parameters() if p.dim() > 1], [p for p in m.parameters() if p.dim() < 2]
        o = make([dict(params=dims[0], weight_decay=0.01), dict(params=dims[1])])
        try:
            s = ls.SequentialLR(o, [ls.LinearLR(o, 0.1, total_iters=2), ls.CosineAnnealingLR(o, 10)], [2])
        except Exception:
            s = None
        for _ in range(3):
            with torch.autocast("cuda", BF):
                loss(m).backward()
            nn.utils.clip_grad_value_(m.parameters(), 1.0)
            o.step()
            o.zero_grad()
            s and s.step()
        o.load_state_dict(copy.deepcopy(o.state_dict()))
        del o, s


@job
def lbfgs_of_fields():
    """Strong Wolfe searches that end after as many evaluations as they may."""
    m = on(lambda: stack(nn.Linear(3, 512), nn.Tanh(), *[stack(nn.Linear(512, 512), nn.Tanh()) for _ in range(5)], nn.Linear(512, 1)))
    x = torch.rand(100000, 3, device=dev)
    o = torch.optim.LBFGS(m.parameters(), 0.01, max_iter=6, history_size=20, line_search_fn=None)
    for _ in range(3):
        def closure():
            o.zero_grad()
            l = (m(x)[:, 0] - (6 * x).sin().prod(1)).square().mean()
            l.backward()
            return l
        o.step(closure)


@job
def averaged_weights_and_norms():
    from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

    m = net("resnet50d", drop_path_rate=0.1)
    a = AveragedModel(m, use_buffers=False)
    o = torch.optim.SGD(m.parameters(), 0.05, 0.9)
    s = SWALR(o, 0.01, 2)
    x = [torch.randn(48, 3, 176, 176) for _ in range(3)]
    for i in range(4):
        with torch.autocast("cuda", BF):
            F.cross_entropy(m(x[i % 3].to(dev)), T(48, v=1000)).backward()
        o.step()
        o.zero_grad()
        s.step()
        a.update_parameters(m)
    update_bn(((b, None) for b in x), a, device=dev)
    a.eval()
    with torch.no_grad():
        a(x[0].to(dev))


# ---- memory
class Eight(torch.autograd.graph.saved_tensors_hooks):
    """What is kept for the backward pass, in eight bits where it is large."""

    def __init__(s):
        def pack(x):
            if x.dtype not in (torch.float32, BF) or x.numel() < 1 << 20 or isinstance(x, nn.Parameter):
                return x
            flat = x.detach().reshape(-1, x.shape[-1])
            scale = flat.abs().amax(1, keepdim=True).float() / 127
            return (flat / scale).round_().to(torch.int8), scale, x.shape, x.dtype

        super().__init__(pack, lambda v: v if torch.is_tensor(v) else (v[0] * v[1]).to(v[3]).view(v[2]))


@job
def activations_in_eight_bits():
    m = on(Lm, 1536, 10, dt=BF)

    def loss(m):
        with Eight():
            return next_token(8, 1024)(m)

    fit(m, loss, 3)


@job
def blocks_swap_with_the_host():
    """Each block comes from pinned memory on a stream of its own and goes back after use, forward and backward."""
    d, n, ahead = 2560, 14, 2
    m = on(Lm, d, 0, dt=BF)
    blocks = [Layer(d, 20).to(BF).requires_grad_(False) for _ in range(n)]
    for b in blocks:
        for p in b.parameters():
            p.data = p.data.pin_memory()
    adapters = nn.ModuleList([on(lambda: stack(nn.Linear(d, 16, bias=False), nn.Linear(16, d, bias=False)), dt=BF) for _ in range(n)])
    side, live = torch.cuda.Stream(), {}

    def fetch(i):
        if 0 <= i < n and i not in live:
            with torch.cuda.stream(side):
                live[i] = {k: v.to(dev, non_blocking=True) for k, v in blocks[i].state_dict().items()}, side.record_event()

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


@job
def pipeline_of_models_takes_turns():
    """Text encoder, transformer and decoder of pictures: each comes from the host, works, and goes back."""
    text = hf("T5", BF, "T5EncoderModel", d_model=2048, d_ff=5120, num_layers=12, num_heads=32, d_kv=64, feed_forward_proj="gated-gelu").cpu().eval()
    dit = Lm(1536, 16, 16, layer=lambda d: Layer(d, 24, False)).to(BF).eval()
    vae = stack(nn.Conv2d(16, 512, 3, padding=1), *[Res(stack(nn.GroupNorm(32, 512), nn.SiLU(), nn.Conv2d(512, 512, 3, padding=1))) for _ in range(2)], nn.Upsample(scale_factor=2),
                nn.Conv2d(512, 256, 3, padding=1), nn.Upsample(scale_factor=2), nn.Conv2d(256, 3, 3, padding=1)).to(BF).eval()
    into = nn.Linear(16, 1536).to(BF)

    @contextlib.contextmanager
    def at_work(*m):
        for f in m:
            f.to(dev)
        yield
        for f in m:
            f.to("cpu")
        torch.cuda.empty_cache()

    with torch.inference_mode():
        for side in (64, 96):
            with at_work(text):
                words = text(input_ids=T(2, 256)).last_hidden_state[..., :1536]
            z = N(2, side * side, 16, dt=BF)
            with at_work(dit, into):
                for _ in range(8):
                    y = torch.cat([words, into(z)], 1)
                    for f in dit.layers:
                        y = f(y)
                    z = z - 0.1 * dit.head(y[:, 256:])
            with at_work(vae):
                vae(z.transpose(1, 2).unflatten(2, (side, side)))


@job
def threads_serve_on_streams():
    """Three threads, each with its net and stream, one after the other through a queue: results go to the main one."""
    nets = [net(n).eval() for n in ("vit_small_patch16_224", "deit3_base_patch16_224", "mixer_b16_224")]
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


@job
def captured_for_each_batch():
    """Graphs of a decoding step for many batch sizes, one pool, the largest first; then replayed with padding."""
    d, h, n, most = 2048, 16, 8, 1024
    m = on(Lm, d, n, layer=lambda d: Layer(d, h), dt=BF).eval()
    k = torch.zeros(n, 64, h, most, d // h, device=dev, dtype=BF)
    v, ids, pos = torch.zeros_like(k), torch.zeros(64, 1, dtype=torch.long, device=dev), torch.zeros(64, dtype=torch.long, device=dev)

    def step(b):
        x, mask = m.emb(ids[:b]), (torch.arange(most, device=dev) <= pos[:b, None])[:, None, None]
        for i, f in enumerate(m.layers):
            y = f.n1(x)
            q, (kk, vv) = f.mix.q(y).unflatten(-1, (h, -1)).transpose(1, 2), (t.unflatten(-1, (h, -1))[:, 0] for t in f.mix.kv(y).chunk(2, -1))
            k[i][torch.arange(b, device=dev), :, pos[:b]] = kk
            v[i][torch.arange(b, device=dev), :, pos[:b]] = vv
            x = x + f.mix.o(F.scaled_dot_product_attention(q, k[i, :b], v[i, :b], attn_mask=mask).transpose(1, 2).flatten(2))
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


@job
def cache_emptied_now_and_then():
    lengths_that_vary(clear=3)


@job_with("garbage_collection_threshold:0.6,max_split_size_mb:200")
def conf_collects_garbage():
    torch.cuda.set_per_process_memory_fraction(14e9 / torch.cuda.get_device_properties(0).total_memory)
    lengths_that_vary()


@job_with("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
def conf_rounds_up():
    lengths_that_vary()


@job_with("expandable_segments:True,garbage_collection_threshold:0.8")
def conf_expandable_with_graphs():
    lengths_that_vary(5, 2)
    J["captured_for_each_batch"]()


@job_with("backend:cudaMallocAsync")
def conf_drivers_own_pool():
    lengths_that_vary(4, 2)


@job_with("pinned_use_cuda_host_register:True,pinned_num_register_threads:4,per_process_memory_fraction:0.2,max_non_split_rounding_mb:64")
def conf_registers_pinned():
    lengths_that_vary(4)
    J["blocks_swap_with_the_host"]()


@job_with("expandable_segments:True")
def conf_expandable_runs_out():
    """A share of the card, batches that double until it is full, and training at the last that fitted."""
    torch.cuda.set_per_process_memory_fraction(12e9 / torch.cuda.get_device_properties(0).total_memory)
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


@job
def batch_from_what_one_sample_takes():
    m = checkpointed(hf("Llama", **LLAMA))
    o = torch.optim.AdamW(m.parameters(), 1e-5)
    used = {}
    for n in (1, 2, 4):
        torch.cuda.reset_peak_memory_stats()
        lm(32000, n, 2048)(m).backward()
        used[n] = torch.cuda.max_memory_allocated()
        o.step()
        o.zero_grad()
    n = 4 + int((20e9 - used[4]) / ((used[4] - used[2]) / 2))
    for _ in range(3):
        lm(32000, n, 2048)(m).backward()
        o.step()
        o.zero_grad()


# ---- layers of other kinds
@job
def experts_by_grouped_products():
    """Tokens sorted by expert, products in groups, losses of balance and of the router's logits, a shared expert."""
    product = getattr(F, "grouped_mm", None) or torch._grouped_mm

    class Moe(nn.Module):
        def __init__(s, d, n=32, k=4, f=1024):
            super().__init__()
            s.k, s.n, s.router = k, n, nn.Linear(d, n, bias=False)
            s.up, s.down = nn.Parameter(torch.randn(n, d, 2 * f) * 0.02), nn.Parameter(torch.randn(n, f, d) * 0.02)
            s.shared = stack(nn.Linear(d, f, bias=False), nn.SiLU(), nn.Linear(f, d, bias=False))

        def forward(s, x):
            flat = x.flatten(0, 1)
            logits = s.router(flat).float()
            w, e = logits.softmax(-1).topk(s.k, -1)
            order = e.flatten().argsort(stable=True)
            count = torch.bincount(e.flatten(), minlength=s.n)
            ends = count.cumsum(0).to(torch.int32)
            a, b = product(flat[order // s.k].to(BF), s.up.to(BF), offs=ends).chunk(2, -1)
            y = product(F.silu(a) * b, s.down.to(BF), offs=ends)
            y = torch.zeros_like(flat).index_add(0, order // s.k, (y * w.flatten()[order, None]).to(flat.dtype))
            losses.append((count / count.sum() * logits.softmax(-1).mean(0)).sum() * s.n * 0.01 + logits.logsumexp(-1).square().mean() * 1e-3)
            return y.view_as(x) + s.shared(x)

    losses = []
    m = on(Lm, 1024, 6, layer=lambda d: Layer(d, 16, mlp=Moe(d)), dt=BF)

    def loss(m):
        losses.clear()
        return next_token(8, 1024)(m) + sum(losses)

    fit(m, loss, 3)


@job
def depths_are_mixed():
    """Every second layer takes an eighth of the tokens, the others pass by."""
    class Some(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.router, s.f = nn.Linear(d, 1), Layer(d, 16)

        def forward(s, x):
            w, i = s.router(x)[..., 0].topk(x.shape[1] // 8, 1)
            i, order = i.sort(1)
            at = i[..., None].expand(-1, -1, x.shape[2])
            return x.scatter_add(1, at, s.f(x.gather(1, at)) * w.gather(1, order)[..., None].to(x.dtype))

    turn = itertools.count()
    fit(on(Lm, 1536, 16, layer=lambda d: Some(d) if next(turn) % 2 else Layer(d, 16), dt=BF), next_token(4, 2048), 3)


class Gla(nn.Module):
    """Linear attention with gates, in chunks."""

    def __init__(s, d, h=8, c=64):
        super().__init__()
        s.h, s.c, s.qkvg, s.gate, s.o = h, c, nn.Linear(d, 4 * d, bias=False), nn.Linear(d, h), nn.Linear(d, d, bias=False)

    def forward(s, x):
        b, n, d = x.shape
        q, k, v, z = (t.view(b, n // s.c, s.c, s.h, -1).permute(0, 3, 1, 2, 4) for t in s.qkvg(x).chunk(4, -1))
        g = F.logsigmoid(s.gate(x).float()).view(b, n // s.c, s.c, s.h).permute(0, 3, 1, 2).cumsum(-1) / 16
        inner = (q @ k.transpose(-1, -2)) * (g[..., :, None] - g[..., None, :]).exp().tril().to(q.dtype)
        y, state = inner @ v, torch.zeros(b, s.h, d // s.h, d // s.h, device=dev)
        outs = []
        for i in range(n // s.c):
            outs.append((q[:, :, i] * g[:, :, i, :, None].exp().to(q.dtype)) @ state.to(q.dtype))
            rest = (g[:, :, i, -1:] - g[:, :, i]).exp()[..., None].to(k.dtype)
            state = state * g[:, :, i, -1].exp()[..., None, None] + ((k[:, :, i] * rest).transpose(-1, -2) @ v[:, :, i]).float()
        y = F.rms_norm((y + torch.stack(outs, 2)).float(), (d // s.h,)).to(x.dtype) * F.silu(z)
        return s.o(y.permute(0, 2, 3, 1, 4).reshape(b, n, d))


@job
def gated_linear_attention():
    fit(on(Lm, 1024, 8, layer=lambda d: Layer(d, mix=Gla(d)), dt=BF), next_token(4, 2048), 3)


class Scan(torch.autograd.Function):
    """h(t) = a(t) h(t-1) + b(t) by doubling, and backwards."""

    @staticmethod
    def run(a, b):
        step = 1
        a, b = a.clone(), b.clone()
        while step < a.shape[1]:
            b = torch.cat([b[:, :step], b[:, step:] + a[:, step:] * b[:, :-step]], 1)
            a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
            step *= 2
        return b

    @staticmethod
    def forward(ctx, a, b):
        h = Scan.run(a, b)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, g):
        a, h = ctx.saved_tensors
        shifted = torch.cat([a[:, 1:], torch.ones_like(a[:, :1])], 1).flip(1)
        d = Scan.run(shifted, g.flip(1)).flip(1)
        return d * torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1), d


@job
def griffin_scans():
    class Rg(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.x, s.y, s.o, s.ga, s.gx, s.a = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Parameter(torch.rand(d))
            s.conv = nn.Conv1d(d, d, 4, padding=3, groups=d)

        def forward(s, x):
            u = s.conv(s.x(x).transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)
            log = -8 * F.softplus(s.a) * s.ga(u).sigmoid().float()
            return s.o(Scan.apply(log.exp(), (1 - (2 * log).exp()).clamp_min(1e-6).sqrt() * (s.gx(u).sigmoid() * u).float()).to(x.dtype) * F.gelu(s.y(x)))

    fit(on(Lm, 1024, 6, layer=lambda d: Layer(d, mix=Rg(d))), next_token(4, 1500), 3, amp=BF)


@job
def learns_while_it_reads():
    """Fast weights: gradients of an inner loss for each chunk, by torch.func over sequences and heads."""
    from torch.func import grad, vmap

    class Ttt(nn.Module):
        def __init__(s, d, h=8):
            super().__init__()
            s.h, s.qkv, s.o, s.w = h, nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Parameter(torch.randn(h, d // h, d // h) * 0.02)

        def forward(s, x):
            q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4)
            inner = vmap(vmap(grad(lambda w, k, v: (F.layer_norm(k @ w, (k.shape[-1],)) - v).square().mean())))
            w, outs = s.w.expand(x.shape[0], -1, -1, -1), []
            for a, b, c in zip(q.split(128, 2), k.split(128, 2), v.split(128, 2)):
                w = w - 0.1 * inner(w, b, c)
                outs.append(a @ w)
            return s.o(torch.cat(outs, 2).transpose(1, 2).flatten(2))

    fit(on(Lm, 768, 6, layer=lambda d: Layer(d, mix=Ttt(d))), next_token(4, 1024), 2)


@job
def equilibrium_by_anderson():
    """A fixed point by mixing the last five, and its gradient by another one in a hook."""
    d = 1024
    f, emb, head = on(lambda: stack(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d), nn.LayerNorm(d))), on(nn.Embedding, 30000, d), on(nn.Linear, d, 30000)

    def anderson(g, x, n=12, m=5):
        b, size = x.shape[0], x[0].numel()
        xs, fs = torch.zeros(b, m, size, device=dev), torch.zeros(b, m, size, device=dev)
        xs[:, 0], fs[:, 0] = x.flatten(1), g(x).flatten(1)
        xs[:, 1], fs[:, 1] = fs[:, 0], g(fs[:, 0].view_as(x)).flatten(1)
        h, y = torch.zeros(b, m + 1, m + 1, device=dev), torch.zeros(b, m + 1, 1, device=dev)
        h[:, 0, 1:] = h[:, 1:, 0] = 1
        y[:, 0] = 1
        for k in range(2, n):
            c = min(k, m)
            r = fs[:, :c] - xs[:, :c]
            h[:, 1:c + 1, 1:c + 1] = r @ r.transpose(1, 2) + 1e-4 * torch.eye(c, device=dev)
            alpha = torch.linalg.solve(h[:, :c + 1, :c + 1], y[:, :c + 1])[:, 1:c + 1, 0]
            xs[:, k % m] = (alpha[:, None] @ fs[:, :c])[:, 0]
            fs[:, k % m] = g(xs[:, k % m].view_as(x)).flatten(1)
        return fs[:, (n - 1) % m].view_as(x)

    o = torch.optim.Adam([*f.parameters(), *emb.parameters(), *head.parameters()], 1e-4)
    for _ in range(3):
        x = emb(T(8, 256, v=30000))
        with torch.no_grad():
            z = anderson(lambda z: f(z + x), torch.zeros_like(x))
        z = f(z + x)
        z0 = z.detach().requires_grad_()
        f0 = f(z0 + x.detach())
        z.register_hook(lambda g: anderson(lambda y: torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + g, g))
        F.cross_entropy(head(z).flatten(0, 1), T(2048, v=30000)).backward()
        del f0
        o.step()
        o.zero_grad()


@job
def perceiver_of_bytes():
    """2,048 bytes into 256 latents, queries of all places out of them."""
    class Perceiver(nn.Module):
        def __init__(s, d=1024):
            super().__init__()
            s.emb, s.pos, s.z, s.query = nn.Embedding(262, 768), nn.Parameter(torch.randn(2048, 768) * 0.02), nn.Parameter(torch.randn(256, d) * 0.02), nn.Parameter(torch.randn(2048, 768) * 0.02)
            s.into, s.inner, s.out = nn.MultiheadAttention(d, 8, kdim=768, vdim=768, batch_first=True), nn.ModuleList([Layer(d, 8, False) for _ in range(20)]), nn.MultiheadAttention(768, 8, kdim=d, vdim=d, batch_first=True)

        def forward(s, x):
            y = s.emb(x) + s.pos
            z = s.z.expand(len(x), -1, -1)
            z = z + s.into(z, y, y, need_weights=False)[0]
            for f in s.inner:
                z = f(z)
            return s.out(s.query.expand(len(x), -1, -1), z, z, need_weights=False)[0] @ s.emb.weight.T

    learn(Perceiver, lambda m: F.cross_entropy(m(T(16, 2048, v=262)).flatten(0, 1), T(16 * 2048, v=262)), 3, amp=BF)


@job
def speculates_and_cuts_its_cache():
    """A draft of four tokens, judged by a larger model; caches are cut back to what is kept."""
    from transformers import DynamicCache

    big, small = hf("Llama", **dict(LLAMA, num_hidden_layers=16)).eval(), hf("Llama", **dict(LLAMA, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1408)).eval()
    with torch.inference_mode():
        x = T(1, 900)
        a, b = DynamicCache(), DynamicCache()
        last = big(x, past_key_values=a, logits_to_keep=1).logits.argmax(-1)
        small(x, past_key_values=b, logits_to_keep=1)
        for _ in range(12):
            draft, t = [], last
            for _ in range(4):
                t = small(t, past_key_values=b).logits[:, -1:].argmax(-1)
                draft.append(t)
            said = big(torch.cat([last, *draft], 1), past_key_values=a).logits.argmax(-1)
            same = (torch.cat(draft, 1) == said[:, :-1]).int().cumprod(1).sum().item()
            last = said[:, same:same + 1]
            a.crop(a.get_seq_length() - 4 + same)
            b.crop(a.get_seq_length())


@job
def beams_that_hold_their_caches():
    """Beam search in plain PyTorch: caches grow by cat, follow their beams by index_select."""
    d, h, n, beams = 1024, 16, 12, 5
    m = on(Lm, d, n, layer=lambda d: Layer(d, h), dt=HF16).eval()

    def run(ids, cache):
        x, out = m.emb(ids), []
        for i, f in enumerate(m.layers):
            y = f.n1(x)
            q, k, v = (t.unflatten(-1, (h, -1)).transpose(1, 2) for t in (f.mix.q(y), *f.mix.kv(y).chunk(2, -1)))
            if cache:
                k, v = torch.cat([cache[i][0], k], 2), torch.cat([cache[i][1], v], 2)
            out.append((k, v))
            x = x + f.mix.o(F.scaled_dot_product_attention(q, k, v, is_causal=not cache).transpose(1, 2).flatten(2))
            x = x + f.mlp(f.n2(x))
        return m.head(m.norm(x[:, -1:]))[:, 0].float().log_softmax(-1), out

    with torch.inference_mode():
        for b, length in ((8, 300), (3, 800)):
            p, cache = run(T(b, length), None)
            score, ids = p.topk(beams, 1)
            cache = [(k.repeat_interleave(beams, 0), v.repeat_interleave(beams, 0)) for k, v in cache]
            ids = ids.view(-1, 1)
            for _ in range(30):
                p, cache = run(ids[:, -1:], cache)
                score, best = (score.view(-1, 1) + p).view(b, -1).topk(beams, 1)
                parent = (best // p.shape[1] + torch.arange(b, device=dev)[:, None] * beams).view(-1)
                cache = [(k.index_select(0, parent), v.index_select(0, parent)) for k, v in cache]
                ids = torch.cat([ids[parent], (best % p.shape[1]).view(-1, 1)], 1)


@job
def models_merge():
    """Three fine-tuned models: TIES (the largest fifth, signs elected), DARE, and SLERP, name by name."""
    ms = [hf("Llama", **dict(LLAMA, num_hidden_layers=6)) for _ in range(4)]
    base, *others = [m.state_dict() for m in ms]
    with torch.no_grad():
        for name, w in base.items():
            d = torch.stack([o[name].float() - w.float() for o in others])
            cut = [torch.kthvalue(x.abs().flatten(), int(0.8 * x.numel()) or 1).values for x in d]
            d = torch.stack([torch.where(x.abs() >= c, x, 0) for x, c in zip(d, cut)])
            sign = d.sum(0).sign()
            agree = d.sign() == sign
            merged = (d * agree).sum(0) / agree.sum(0).clamp_min(1)
            dare = torch.stack([x * torch.bernoulli(torch.full_like(x, 0.5)) * 2 for x in d]).mean(0)
            a, b = others[0][name].float().flatten(), others[1][name].float().flatten()
            o = torch.arccos((a / a.norm() @ (b / b.norm())).clamp(-1, 1))
            slerp = (torch.sin(0.5 * o) / torch.sin(o) * (a + b)).view_as(w)
            w.copy_(w + 0.5 * merged + 0.25 * dare + 0.01 * slerp)


# ---- pictures and space
@job
def consistency_by_jvp():
    """Tangents through a transformer of pictures with conditions by norms; EMA beside it."""
    from torch.func import functional_call, jvp
    from torch.nn.attention import SDPBackend, sdpa_kernel

    class Dit(nn.Module):
        def __init__(s, d=768, n=8):
            super().__init__()
            s.into, s.out, s.t = nn.Linear(16, d), nn.Linear(d, 16), stack(nn.Linear(1, d), nn.SiLU(), nn.Linear(d, 6 * d))
            s.f = nn.ModuleList([Layer(d, 12, False) for _ in range(n)])

        def forward(s, x, t):
            y, c = s.into(x), s.t(t[:, None]).chunk(6, -1)
            for f in s.f:
                y = y + c[0][:, None] * f.mix(F.layer_norm(y, (y.shape[-1],)) * (1 + c[1][:, None]) + c[2][:, None])
                y = y + c[3][:, None] * f.mlp(F.layer_norm(y, (y.shape[-1],)) * (1 + c[4][:, None]) + c[5][:, None])
            return s.out(y)

    m = on(Dit)
    ema = copy.deepcopy(m).requires_grad_(False)
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for _ in range(3):
        x, e, t = N(12, 256, 16), N(12, 256, 16), torch.rand(12, device=dev)
        z = torch.cos(t)[:, None, None] * x + torch.sin(t)[:, None, None] * e
        v = torch.cos(t)[:, None, None] * e - torch.sin(t)[:, None, None] * x
        p = dict(m.named_parameters())
        with sdpa_kernel(SDPBackend.MATH):
            y, dy = jvp(lambda z, t: functional_call(m, p, (z, t)), (z, t), (v, torch.ones_like(t)))
        g = (dy / (dy.flatten(1).norm(dim=1)[:, None, None] + 0.1)).detach()
        (y - y.detach() + g).square().mean().backward()
        o.step()
        o.zero_grad()
        torch._foreach_lerp_(list(ema.parameters()), list(m.parameters()), 0.01)


@job
def gaussians_densify():
    """Tiles of a splatted picture; now and then Gaussians are copied, split and dropped, states of the optimizer with them."""
    p = {k: nn.Parameter(v) for k, v in dict(xy=torch.rand(200000, 2, device=dev), scale=torch.full((200000, 2), -4.0, device=dev), color=torch.rand(200000, 3, device=dev), alpha=torch.zeros(200000, 1, device=dev)).items()}
    o = torch.optim.Adam([dict(params=[v], lr=1e-3, name=k) for k, v in p.items()], eps=1e-15)

    def change(f):
        for g in o.param_groups:
            old = g["params"][0]
            s = o.state.pop(old, None)
            new = nn.Parameter(f(old.detach(), False))
            if s:
                s["exp_avg"], s["exp_avg_sq"] = f(s["exp_avg"], True), f(s["exp_avg_sq"], True)
                o.state[new] = s
            g["params"][0] = p[g["name"]] = new

    for i in range(12):
        at = torch.rand(64, 2, device=dev)
        near = torch.randint(0, len(p["xy"]), (64, 512), device=dev)
        grid = torch.stack(torch.meshgrid(*[torch.arange(16, device=dev) / 1024] * 2, indexing="ij"), -1).view(1, 256, 1, 2)
        off = (at[:, None, None] + grid - p["xy"][near][:, None]) / p["scale"][near].exp()[:, None]
        a = p["alpha"][near].sigmoid()[:, None, :, 0] * (-0.5 * off.square().sum(-1)).exp()
        t = torch.cumprod(torch.cat([torch.ones_like(a[..., :1]), 1 - a[..., :-1]], -1), -1)
        ((a * t) @ p["color"][near] - 0.5).abs().mean().backward()
        o.step()
        o.zero_grad()
        if i % 4 == 3:
            n = len(p["xy"])
            grow = torch.rand(n, device=dev) < 0.3
            change(lambda x, state: torch.cat([x, torch.zeros_like(x[grow]) if state else x[grow] + 0.001 * torch.randn_like(x[grow])]))
            keep = torch.rand(len(p["xy"]), device=dev) < 0.9
            change(lambda x, state: x[keep])


@job
def voxels_by_hashing():
    """A U-Net of sparse voxels in plain PyTorch: places sorted by key, neighbours by searchsorted, products of what is there."""
    offsets = torch.tensor(list(itertools.product((-1, 0, 1), repeat=3)), device=dev)

    def neighbours(c):
        key = lambda c: ((c[:, 0] * 1024 + c[:, 1] + 1) * 1024 + c[:, 2] + 1) * 1024 + c[:, 3] + 1
        k, order = key(c).sort()
        pairs = []
        for o in offsets:
            want = key(torch.cat([c[:, :1], c[:, 1:] + o], 1))
            at = torch.searchsorted(k, want).clamp(max=len(k) - 1)
            (i,) = torch.where(k[at] == want)
            pairs.append((order[at[i]], i))
        return pairs

    class Sub(nn.Module):
        def __init__(s, i, o):
            super().__init__()
            s.w, s.norm = nn.Parameter(torch.randn(27, i, o) * 0.05), nn.BatchNorm1d(o)

        def forward(s, x, pairs):
            y = torch.zeros(len(x), s.w.shape[2], device=dev, dtype=x.dtype)
            for w, (a, b) in zip(s.w, pairs):
                y = y.index_add(0, b, x[a] @ w)
            return F.relu(s.norm(y))

    class Net(nn.Module):
        def __init__(s, c=(32, 64, 128)):
            super().__init__()
            s.down = nn.ModuleList([Sub(a, b) for a, b in zip((4, *c), c)])
            s.up, s.head = nn.ModuleList([Sub(c[2] + c[1], c[1]), Sub(c[1] + c[0], c[0])]), nn.Linear(c[0], 20)

        def forward(s, x, c):
            kept = []
            for i, f in enumerate(s.down):
                pairs = neighbours(c)
                x = f(x, pairs)
                if i < 2:
                    small, inverse = torch.unique(torch.cat([c[:, :1], c[:, 1:] // 2], 1), dim=0, return_inverse=True)
                    kept.append((x, pairs, inverse))
                    x = torch.zeros(len(small), x.shape[1], device=dev, dtype=x.dtype).index_reduce(0, inverse, x, "amax", include_self=False)
                    c = small
            for f in s.up:
                y, pairs, inverse = kept.pop()
                x = f(torch.cat([x[inverse], y], 1), pairs)
            return s.head(x)

    def loss(m):
        c = torch.unique(torch.cat([T(90000, 1, v=2), T(90000, 3, v=60)], 1), dim=0)
        return F.cross_entropy(m(N(len(c), 4), c), T(len(c), v=20))

    learn(Net, loss, 3)


@job
def vocos_with_inverse_transform():
    """A vocoder of ConvNeXt blocks on frames, an inverse STFT, losses of spectrograms at many resolutions."""
    class Block(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.dw, s.n, s.a, s.b, s.g = nn.Conv1d(d, d, 7, padding=3, groups=d), nn.LayerNorm(d, eps=1e-6), nn.Linear(d, 3 * d), nn.Linear(3 * d, d), nn.Parameter(torch.ones(d) * 0.1)

        def forward(s, x):
            return x + (s.g * s.b(F.gelu(s.a(s.n(s.dw(x).transpose(1, 2)))))).transpose(1, 2)

    class Vocos(nn.Module):
        def __init__(s, d=512):
            super().__init__()
            s.into, s.f, s.out = nn.Conv1d(100, d, 7, padding=3), stack(*[Block(d) for _ in range(8)]), nn.Linear(d, 1026)
            s.register_buffer("window", torch.hann_window(1024))

        def forward(s, x):
            m, p = s.out(s.f(s.into(x)).transpose(1, 2)).transpose(1, 2).float().chunk(2, 1)
            return torch.istft(torch.polar(m.exp().clamp(max=100), p), 1024, 256, window=s.window, center=True)

    def loss(m):
        y = m(N(16, 100, 300))
        t, l = torch.randn_like(y), 0
        for n in (2048, 1024, 512, 256):
            w = torch.hann_window(n, device=dev)
            a, b = (torch.stft(v, n, n // 4, window=w, return_complex=True).abs().clamp_min(1e-5) for v in (y, t))
            l = l + (a - b).norm() / b.norm() + (a.log() - b.log()).abs().mean()
        return l

    learn(Vocos, loss, 3)


@job
def volumes_by_windows():
    """A Swin-like net of volumes over a large one, window by window, with weights that fade at the sides."""
    class Block(nn.Module):
        def __init__(s, d, w=4):
            super().__init__()
            s.w, s.f = w, Layer(d, 4, False)

        def forward(s, x):
            b, c, *n = x.shape
            y = x.view(b, c, n[0] // s.w, s.w, n[1] // s.w, s.w, n[2] // s.w, s.w).permute(0, 2, 4, 6, 3, 5, 7, 1).reshape(-1, s.w**3, c)
            y = s.f(y).view(b, n[0] // s.w, n[1] // s.w, n[2] // s.w, s.w, s.w, s.w, c)
            return y.permute(0, 7, 1, 4, 2, 5, 3, 6).reshape(x.shape)

    m = on(lambda: stack(nn.Conv3d(1, 48, 2, 2), Block(48), Block(48), nn.Conv3d(48, 96, 2, 2), Block(96), nn.ConvTranspose3d(96, 48, 2, 2), Block(48), nn.ConvTranspose3d(48, 14, 2, 2)))
    fit(m, lambda m: F.cross_entropy(m(N(2, 1, 96, 96, 96)), T(2, 96, 96, 96, v=14)), 2, amp=BF)
    m.eval()
    x, out, count = torch.randn(1, 1, 240, 240, 192), torch.zeros(1, 14, 240, 240, 192, device=dev), torch.zeros(1, 1, 240, 240, 192, device=dev)
    line = torch.exp(-((torch.arange(96, device=dev) - 47.5) ** 2) / (2 * 12**2))
    fade = line[:, None, None] * line[None, :, None] * line
    at = [slice(i, i + 96) for i in (0, 72, 144)]
    with torch.inference_mode(), torch.autocast("cuda", HF16):
        windows = list(itertools.product(at, at, [slice(0, 96), slice(48, 144), slice(96, 192)]))
        for part in [windows[i:i + 4] for i in range(0, 27, 4)]:
            y = m(torch.cat([x[(slice(None), slice(None), *w)] for w in part]).to(dev))
            for w, v in zip(part, y):
                out[(slice(None), slice(None), *w)] += v * fade
                count[(slice(None), slice(None), *w)] += fade
        (out / count).argmax(1).to(torch.uint8).cpu()


# ---- tables, graphs, agents
@job
def rows_learn_in_context():
    """Attention along columns, then along rows, of tables drawn anew: a predictor for small tables."""
    class Two(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.a, s.b, s.mlp = Attn(d, 6, False), Attn(d, 6, False), stack(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
            s.n = nn.ModuleList([nn.LayerNorm(d) for _ in range(3)])

        def forward(s, x):
            x = s.n[0](x + s.a(x))
            y = x.transpose(1, 2)
            x = s.n[1](x + s.b(y, y[:, :, :known[0]]).transpose(1, 2))
            return s.n[2](x + s.mlp(x))

    known = [0]
    m = on(lambda: stack(nn.Linear(1, 192), *[Two(192) for _ in range(12)], nn.Linear(192, 10)))

    def loss(m):
        rows, columns = rng.randint(300, 900), rng.randint(5, 40)
        known[0] = rows * 3 // 4
        return F.cross_entropy(m(N(2, rows, columns, 1))[:, known[0]:, -1].flatten(0, 1), T(2 * (rows - known[0]), v=10))

    fit(m, loss, 5, amp=HF16)


@job
def memories_of_a_temporal_graph():
    """Events in batches: messages to nodes, the last one of each, a GRU over memories, attention to recent neighbours."""
    n, d = 100000, 172
    memory, when = torch.zeros(n, d, device=dev), torch.zeros(n, device=dev)
    recent = torch.zeros(n, 10, dtype=torch.long, device=dev)
    gru, att, enc, head = on(nn.GRUCell, 3 * d + 100, d), on(nn.MultiheadAttention, d, 2, batch_first=True), on(nn.Linear, 1, 100), on(nn.Linear, 2 * d, 1)
    ps = [*gru.parameters(), *att.parameters(), *enc.parameters(), *head.parameters()]
    o = torch.optim.Adam(ps, 1e-4)
    for i in range(6):
        a, b, c = T(20000, v=n), T(20000, v=n), T(20000, v=n)
        t, e = torch.rand(20000, device=dev).sort().values + i, N(20000, d)
        nodes, inverse = torch.unique(torch.cat([a, b]), return_inverse=True)
        last = torch.zeros(len(nodes), dtype=torch.long, device=dev).scatter_reduce(0, inverse, torch.arange(40000, device=dev), "amax")
        other, at = torch.cat([b, a])[last], last % 20000
        msg = torch.cat([memory[nodes], memory[other], e[at], enc((t[at] - when[nodes])[:, None]).cos()], 1)
        new = gru(msg, memory[nodes])
        now = memory.index_copy(0, nodes, new)
        z = {}
        for k, x in dict(a=a, b=b, c=c).items():
            q, kv = now[x][:, None], now[recent[x]]
            z[k] = att(q, kv, kv, need_weights=False)[0][:, 0] + now[x]
        pos, neg = head(torch.cat([z["a"], z["b"]], 1)), head(torch.cat([z["a"], z["c"]], 1))
        (F.softplus(-pos) + F.softplus(neg)).mean().backward()
        o.step()
        o.zero_grad()
        memory[nodes], when[nodes] = new.detach(), t[at]
        recent[a] = torch.cat([recent[a][:, 1:], b[:, None]], 1)


@job
def embeddings_cached_from_the_host():
    """A table of 8 GB on the host: unique rows of a batch come to a cache on the card, those that leave are written back; sparse gradients."""
    rows, d, size = 4000000, 128, 200000
    host = torch.zeros(rows, d)
    cache = nn.Parameter(torch.zeros(size, d, device=dev))
    where = torch.full((rows,), -1, dtype=torch.long, device=dev)
    holds, used, clock = torch.full((size,), -1, dtype=torch.long, device=dev), torch.zeros(size, dtype=torch.long, device=dev), 0
    top = on(lambda: stack(nn.Linear(26 * d, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)))
    o, so = torch.optim.Adam(top.parameters(), 1e-3), torch.optim.SparseAdam([cache], 1e-2)
    for _ in range(5):
        clock += 1
        ids = T(4096, 26, v=rows) % 300000
        u = torch.unique(ids)
        slot = where[u]
        used[slot[slot >= 0]] = clock
        missing = u[slot < 0]
        out = used.topk(len(missing), largest=False).indices
        gone = holds[out]
        back = gone >= 0
        host[gone[back].cpu()] = cache.detach()[out[back]].cpu()
        where[gone[back]] = -1
        with torch.no_grad():
            cache[out] = host[missing.cpu()].pin_memory().to(dev, non_blocking=True)
        where[missing], holds[out], used[out] = out, missing, clock
        y = F.embedding(where[ids], cache, sparse=True)
        F.binary_cross_entropy_with_logits(top(y.flatten(1))[:, 0], torch.rand(4096, device=dev).round()).backward()
        o.step()
        so.step()
        o.zero_grad()
        so.zero_grad()


@job
def strategies_evolve():
    """Pairs of perturbed policies, each in a world of its own, by vmap; ranks of returns weigh the noise."""
    from torch.func import functional_call, vmap

    m = on(lambda: stack(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 16)))
    p = {k: v.detach() for k, v in m.named_parameters()}
    a, b = N(64, 64) * 0.1, N(16, 64) * 0.1
    v = {k: torch.zeros_like(x) for k, x in p.items()}
    for _ in range(3):
        half = {k: N(1024, *x.shape) for k, x in p.items()}
        noise = {k: torch.cat([x, -x]) for k, x in half.items()}
        many = {k: x + 0.02 * noise[k] for k, x in p.items()}
        s, r = N(2048, 32, 64), torch.zeros(2048, 32, device=dev)
        step = vmap(lambda w, s: functional_call(m, w, (s,)))
        for _ in range(20):
            u = step(many, s)
            s = (s @ a + u @ b).tanh()
            r += s[..., 0] - 0.01 * u.square().sum(-1)
        rank = r.mean(1).argsort().argsort().float() / 2047 - 0.5
        for k in p:
            v[k] = 0.9 * v[k] + torch.tensordot(rank, noise[k], 1) / (2048 * 0.02)
            p[k] = p[k] + 0.01 * v[k]


@job
def plans_by_sampled_paths():
    """TD-MPC2-like: five critics by vmap, a latent world, plans of 512 paths kept by their best 64."""
    from torch.func import functional_call, stack_module_state, vmap

    d, a = 512, 8
    mlp = lambda i, o: on(lambda: stack(nn.Linear(i, 512), nn.LayerNorm(512), nn.Mish(), nn.Linear(512, 512), nn.LayerNorm(512), nn.Mish(), nn.Linear(512, o)))
    enc, dyn, rew, pi = mlp(39, d), mlp(d + a, d), mlp(d + a, 101), mlp(d, 2 * a)
    qs = [mlp(d + a, 101) for _ in range(5)]
    params, buffers = stack_module_state(qs)
    base = copy.deepcopy(qs[0]).to("meta")
    target = {k: v.detach().clone() for k, v in params.items()}
    q = lambda w, x: vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None), randomness="different")(w, buffers, x)
    bins = torch.linspace(-10, 10, 101, device=dev)
    value = lambda y: (y.softmax(-1) * bins).sum(-1)
    o = torch.optim.Adam([*enc.parameters(), *dyn.parameters(), *rew.parameters(), *params.values(), *pi.parameters()], 3e-4)
    for _ in range(4):
        obs, act = N(4, 256, 39), N(4, 256, a).clamp(-1, 1)
        z, loss = enc(obs[0]), 0
        for t in range(3):
            za = torch.cat([z, act[t]], -1)
            with torch.no_grad():
                nz = enc(obs[t + 1])
                goal = value(rew(za)) + 0.99 * value(q(target, torch.cat([nz, pi(nz)[:, :a].tanh()], -1))[torch.randperm(5, device=dev)[:2]]).min(0).values
                two = torch.zeros(256, 101, device=dev).scatter(1, torch.bucketize(goal, bins).clamp(max=100)[:, None], 1.0)
            z = dyn(za)
            loss = loss + F.mse_loss(z, nz) * 20 - (two * rew(za).log_softmax(-1)).sum(-1).mean() - (two * q(params, za).log_softmax(-1)).sum(-1).mean()
        loss.backward()
        nn.utils.clip_grad_norm_([p for g in o.param_groups for p in g["params"]], 20)
        o.step()
        o.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(list(target.values()), list(params.values()), 0.01)
            mean, std, z0 = torch.zeros(3, 1, a, device=dev), torch.ones(3, 1, a, device=dev), enc(N(1, 39)).expand(512, -1)
            for _ in range(6):
                u = (mean + std * N(3, 512, a)).clamp(-1, 1)
                z, g = z0, 0
                for t in range(3):
                    za = torch.cat([z, u[t]], -1)
                    g, z = g + 0.99**t * value(rew(za)), dyn(za)
                g = g + value(q(params, torch.cat([z, pi(z)[:, :a].tanh()], -1))).mean(0)
                best = g.topk(64).indices
                w = (g[best] - g[best].max()).exp()[None, :, None]
                mean = (w * u[:, best]).sum(1, keepdim=True) / w.sum(1, keepdim=True)
                std = ((w * (u[:, best] - mean) ** 2).sum(1, keepdim=True) / w.sum(1, keepdim=True)).sqrt().clamp(0.05, 2)


@job
def policy_through_physics():
    """4,096 bodies of springs, 32 steps of a differentiable simulation, gradients through all of it."""
    i, j = torch.triu_indices(12, 12, 1, device=dev)
    rest = torch.rand(len(i), device=dev) + 0.5
    pi = on(lambda: stack(nn.Linear(72, 400), nn.ELU(), nn.Linear(400, 200), nn.ELU(), nn.Linear(200, len(i))))
    critic = on(lambda: stack(nn.Linear(72, 400), nn.ELU(), nn.Linear(400, 1)))
    oa, oc = torch.optim.Adam(pi.parameters(), 2e-3), torch.optim.Adam(critic.parameters(), 2e-3)
    x, v = N(4096, 12, 3), torch.zeros(4096, 12, 3, device=dev)
    for _ in range(3):
        x, v, states, total = x.detach(), v.detach(), [], 0
        for t in range(32):
            s = torch.cat([x, v], -1).flatten(1)
            states.append(s.detach())
            u = pi(s).tanh()
            r = x[:, i] - x[:, j]
            n = r.norm(dim=-1, keepdim=True).clamp_min(1e-3)
            f = -50 * (n[..., 0] - rest * (1 + 0.2 * u))[..., None] * r / n
            force = torch.zeros_like(x).index_add(1, i, f).index_add(1, j, -f)
            v = v * 0.99 + 0.01 * (force - F.relu(-x[..., 2:]) * torch.tensor([0, 0, -500.0], device=dev))
            x = x + 0.01 * v
            total = total + 0.99**t * x[..., 0].mean(1)
            done = torch.rand(4096, 1, 1, device=dev) < 0.01
            x, v = torch.where(done, torch.randn_like(x), x), torch.where(done, torch.zeros_like(v), v)
        (-(total + 0.99**32 * critic(torch.cat([x, v], -1).flatten(1))[:, 0]).mean()).backward()
        nn.utils.clip_grad_norm_(pi.parameters(), 1.0)
        oa.step()
        oa.zero_grad()
        all_states = torch.cat(states)
        for part in torch.randperm(len(all_states), device=dev).split(32768):
            critic(all_states[part]).square().mean().backward()
            oc.step()
            oc.zero_grad()


# ---- numbers
@job
def qubits():
    """A state of 25 qubits, gates by permuted products, gradients of angles through checkpoints."""
    import torch.utils.checkpoint as c

    n, depth = 25, 4
    angle = nn.Parameter(torch.rand(depth, n, device=dev))

    def layer(state, a):
        for q in range(0, n, 3):
            co, si = torch.cos(a[q] / 2), torch.sin(a[q] / 2)
            gate = torch.stack([torch.stack([co, -si]), torch.stack([si, co])]).to(torch.complex64)
            state = torch.tensordot(gate, state.view(2**q, 2, -1), ([1], [1])).transpose(0, 1).reshape(-1)
        for q in range(0, n - 1, 6):
            v = state.view(2**q, 2, 2, -1)
            state = torch.stack([v[:, 0], v[:, 1].flip(1)], 1).reshape(-1)
        return state

    o = torch.optim.Adam([angle], 0.01)
    for _ in range(2):
        s = torch.zeros(2**n, dtype=torch.complex64, device=dev)
        s[0] = 1
        for a in angle:
            s = c.checkpoint(layer, s, a, use_reentrant=False)
        p = s.abs().square().view(2, -1).sum(1)
        (p[1] - p[0]).backward()
        o.step()
        o.zero_grad()


@job
def turbulence_in_a_box():
    """Pseudo-spectral Navier-Stokes, 192 points a side, steps of Runge and Kutta, padding by three halves."""
    n = 192
    k = torch.fft.fftfreq(n, 1 / n, device=dev)
    kz = torch.fft.rfftfreq(n, 1 / n, device=dev)
    kk = torch.stack(torch.meshgrid(k, k, kz, indexing="ij"))
    k2 = kk.square().sum(0).clamp_min(1)
    keep = (kk.abs().amax(0) < n / 3)
    u = torch.fft.rfftn(N(3, n, n, n), dim=(1, 2, 3)) * keep

    def rhs(u):
        v, w = torch.fft.irfftn(u, s=(n,) * 3, dim=(1, 2, 3)), torch.fft.irfftn(torch.linalg.cross(1j * kk, u, dim=0), s=(n,) * 3, dim=(1, 2, 3))
        f = torch.fft.rfftn(torch.linalg.cross(v, w, dim=0), dim=(1, 2, 3)) * keep
        return f - kk * (kk * f).sum(0) / k2 - 0.001 * k2 * u

    for _ in range(3):
        a = rhs(u)
        b = rhs(u + 0.005 * a)
        c = rhs(u + 0.005 * b)
        u = u + 0.01 / 6 * (a + 2 * b + 2 * c + rhs(u + 0.01 * c))
    torch.bincount(k2.sqrt().round().long().flatten(), weights=u.abs().square().sum(0).flatten())


@job
def private_gradients_by_hooks():
    """Norms of each sample's gradient from inputs and output gradients, then clipped and noised sums."""
    m = hf("GPT2", torch.float32, "GPT2LMHeadModel", n_embd=768, n_layer=8, n_head=12, vocab_size=20000, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=False)
    m.config.use_cache = False
    from transformers.pytorch_utils import Conv1D

    for f in m.modules():
        if isinstance(f, (Conv1D, nn.Linear)):
            f.register_forward_hook(lambda f, i, y: setattr(f, "x", i[0].detach()))
            f.register_full_backward_hook(lambda f, gi, go: setattr(f.weight, "per", torch.einsum("nti,nto->nio" if isinstance(f, Conv1D) else "nti,nto->noi", f.x, go[0])))
        else:
            for p in f.parameters(recurse=False):
                p.requires_grad_(False)
    ps = [f.weight for f in m.modules() if isinstance(f, (Conv1D, nn.Linear))]
    o = torch.optim.AdamW(ps, 1e-4)
    for _ in range(3):
        x = T(12, 128, v=20000)
        y = m(inputs_embeds=m.transformer.wte(x).requires_grad_()).logits
        F.cross_entropy(y[:, :-1].transpose(1, 2), x[:, 1:], reduction="none").mean(1).sum().backward()
        norm = torch.stack([p.per.flatten(1).norm(dim=1) for p in ps]).norm(dim=0)
        w = (1 / norm.clamp_min(1)).clamp(max=1)
        for p in ps:
            p.grad = (torch.einsum("n,n...->...", w, p.per) + torch.randn_like(p)) / 12
            del p.per
        o.step()
        o.zero_grad()


@job
def spectrum_of_the_hessian():
    """Lanczos with Hessian-vector products of a small language model, vectors orthogonal to all before."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    m = on(Lm, 512, 4, 8000)
    ps = list(m.parameters())
    x = T(8, 257, v=8000)
    with sdpa_kernel(SDPBackend.MATH):
        l = F.cross_entropy(m(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        g = torch.autograd.grad(l, ps, create_graph=True)

        def hvp(v):
            parts = [t.view_as(p) for t, p in zip(v.split([p.numel() for p in ps]), ps)]
            return torch.cat([h.flatten() for h in torch.autograd.grad(g, ps, parts, retain_graph=True)])

        v = N(sum(p.numel() for p in ps))
        vs, alpha, beta = [v / v.norm()], [], []
        for i in range(16):
            w = hvp(vs[-1])
            alpha.append(w @ vs[-1])
            q = torch.stack(vs)
            w = w - q.T @ (q @ w)
            beta.append(w.norm())
            vs.append(w / beta[-1])
        t = torch.diag(torch.stack(alpha)) + torch.diag(torch.stack(beta[:-1]), 1) + torch.diag(torch.stack(beta[:-1]), -1)
        torch.linalg.eigh(t)


@job
def laplace_of_the_last_layers():
    """Jacobians by vmap over outputs, a Gauss-Newton matrix, its Cholesky factor, variances of predictions."""
    from torch.func import functional_call, jacrev, vmap

    m = on(lambda: stack(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10)))
    fit(m, lambda m: F.cross_entropy(m(N(4096, 784)), T(4096, v=10)), 3)
    p = {k: v.detach() for k, v in m.named_parameters() if not k.startswith("0.")}
    rest = {k: v.detach() for k, v in m.named_parameters() if k.startswith("0.")}
    p = {k: v for k, v in p.items() if k.startswith("4.")} | {"2.bias": p["2.bias"]}
    rest |= {k: v.detach() for k, v in m.named_parameters() if k not in p}
    f = vmap(jacrev(lambda p, x: functional_call(m, {**rest, **p}, (x[None],))[0]), in_dims=(None, 0))
    h = 0
    for x in N(4096, 784).split(1024):
        j = torch.cat([v.flatten(2) for v in f(p, x).values()], 2)
        s = m(x).softmax(1).detach()
        h = h + torch.einsum("nci,ncd,ndj->ij", j, torch.diag_embed(s) - s[:, :, None] * s[:, None], j)
    h = h + torch.eye(len(h), device=dev)
    c = torch.linalg.inv(h)
    j = torch.cat([v.flatten(2) for v in f(p, N(512, 784)).values()], 2)
    (j @ c @ j.transpose(1, 2)).logdet()


@job
def chains_of_hamilton():
    """Leapfrog of 256 chains of a Bayesian net at once; proposals are taken by chance."""
    from torch.func import grad, vmap

    x, y = N(4000, 50), torch.rand(4000, device=dev).round()
    size = 50 * 64 + 64 + 64 + 1

    def energy(w):
        a, b, c, d = w.split([3200, 64, 64, 1])
        return F.binary_cross_entropy_with_logits((x @ a.view(50, 64) + b).tanh() @ c + d[0], y, reduction="sum") + 0.5 * w.square().sum()

    g, e = vmap(grad(energy), chunk_size=64), vmap(energy, chunk_size=64)
    q, kept = 0.1 * N(256, size), []
    for _ in range(4):
        p, q0 = N(256, size), q
        h0 = e(q) + 0.5 * p.square().sum(1)
        p = p - 0.0005 * g(q)
        for i in range(6):
            q = q + 0.001 * p
            p = p - (0.001 if i < 5 else 0.0005) * g(q)
        ok = torch.rand(256, device=dev) < (h0 - e(q) - 0.5 * p.square().sum(1)).exp()
        q = torch.where(ok[:, None], q, q0)
        kept.append(q)
    torch.stack(kept).std(0)


@job
def kernels_by_transforms():
    """A Gaussian process on a grid: products with circulant matrices, conjugate gradients of a fixed number, log determinants by Lanczos."""
    n = 1 << 20
    t = torch.arange(n, device=dev) / n
    raw = nn.Parameter(torch.tensor([-3.0, 0.0, -2.0], device=dev))
    y = torch.sin(40 * t) + 0.1 * N(n)
    o = torch.optim.Adam([raw], 0.05)
    for _ in range(3):
        ell, s, noise = F.softplus(raw)
        k = s * torch.exp(-0.5 * (t / ell) ** 2)
        spectrum = torch.fft.rfft(torch.cat([k, k[:1] * 0, k[1:].flip(0)]))
        mul = lambda v: torch.fft.irfft(torch.fft.rfft(v, 2 * n, dim=-1) * spectrum, 2 * n, dim=-1)[..., :n] + noise * v
        rhs = torch.stack([y, *N(8, n).sign()])
        with torch.no_grad():
            x, r = torch.zeros_like(rhs), rhs.clone()
            p, rr = r.clone(), r.square().sum(-1, keepdim=True)
            for _ in range(15):
                ap = mul(p)
                a = rr / (p * ap).sum(-1, keepdim=True)
                x, r = x + a * p, r - a * ap
                new = r.square().sum(-1, keepdim=True)
                p, rr = r + new / rr * p, new
        (0.5 * (2 * y @ x[0] - x[0] @ mul(x[0])) + 0.5 * (x[1:] * mul(rhs[1:])).sum(-1).mean() / n).backward()
        o.step()
        o.zero_grad()


@job
def ensembles_by_vmap():
    """16 nets at once with other dropout each, their disagreement, and a traced, frozen one of them."""
    from torch.func import functional_call, stack_module_state, vmap

    nets = [on(lambda: stack(nn.Linear(200, 1024), nn.GELU(), nn.Dropout(0.2), nn.Linear(1024, 1024), nn.GELU(), nn.Dropout(0.2), nn.Linear(1024, 2))) for _ in range(16)]
    p, b = stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")
    f = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None), randomness="different")
    o = torch.optim.AdamW(p.values(), 1e-3, foreach=True)
    for _ in range(4):
        mean, raw = f(p, b, N(4096, 200)).unbind(-1)
        var = F.softplus(raw) + 1e-4
        (0.5 * (mean - N(4096)).square() / var + 0.5 * var.log()).mean().backward()
        o.step()
        o.zero_grad()
    net = nets[0].eval()
    for q in net.parameters():
        q.requires_grad_(False)
    with torch.no_grad():
        frozen = torch.jit.freeze(torch.jit.trace(net, N(64, 200)))
        for n in (64, 64, 1000, 4096):
            frozen(N(n, 200))


# ---- compiled
@job
def c_window_with_sinks():
    """flex_attention with a window, tokens that all see, soft caps, and groups of queries."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    flex = torch.compile(flex_attention)

    class Window(Attn):
        def __init__(s, d):
            super().__init__(d, 16)
            s.kv = nn.Linear(d, d // 2, bias=False)

        def forward(s, x):
            q, (k, v) = s.q(x).unflatten(-1, (16, -1)).transpose(1, 2), (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in s.kv(x).chunk(2, -1))
            return s.o(flex(q, k, v, score_mod=lambda score, b, h, i, j: 50 * torch.tanh(score / 50), block_mask=mask, enable_gqa=True).transpose(1, 2).flatten(2))

    mask = create_block_mask(lambda b, h, i, j: (i >= j) & ((i - j < 512) | (j < 4)), None, None, 4096, 4096, device=dev)
    fit(on(Lm, 1024, 4, layer=lambda d: Layer(d, mix=Window(d)), dt=BF), next_token(2, 4096), 3)


@job
def c_memory_budget():
    """The compiler keeps half of the activations that it could keep."""
    import torch._functorch.config

    torch._functorch.config.activation_memory_budget = 0.5
    fit(comp(on(Lm, 1024, 6)), next_token(8, 1024), 3, amp=BF)


@job
def c_graphs_of_two_shapes():
    """reduce-overhead with two batch sizes in turns and an evaluation between."""
    m = comp(on(Lm, 768, 4), mode="reduce-overhead")
    for i in range(3):
        for n in (8, 4):
            torch.compiler.cudagraph_mark_step_begin()
            fit(m, next_token(n, 512), 1, SGD, amp=BF)
        m.eval()
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            m(T(2, 512)).float().logsumexp(-1).mean().item()


@job
def c_own_operator():
    """An operator of one's own with a gradient, a Triton kernel beside it, in a compiled model with a break."""
    @torch.library.custom_op("unseen::scaled_norm", mutates_args=())
    def scaled_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],)).to(x.dtype) * w

    scaled_norm.register_fake(lambda x, w: torch.empty_like(x))

    def back(ctx, g):
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
            return torch.autograd.grad(F.rms_norm(x.float(), (x.shape[-1],)).to(x.dtype) * w, (x, w), g)

    scaled_norm.register_autograd(back, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

    class Block(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.w, s.f, s.mlp = nn.Parameter(torch.ones(d)), Attn(d, 8), stack(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

        def forward(s, x):
            x = x + s.f(torch.ops.unseen.scaled_norm(x, s.w))
            torch._dynamo.graph_break()
            return x + s.mlp(x)

    fit(comp(on(Lm, 768, 4, layer=Block, dt=BF)), next_token(4, 1024), 3)


@job
def c_vit_of_many_sides():
    """dynamic=True, pictures of many sides in half precision with a scaler, the optimizer's step compiled as well."""
    class Vit(nn.Module):
        def __init__(s, d=768):
            super().__init__()
            s.patch, s.f, s.head = nn.Linear(588, d), stack(*[Layer(d, 12, False) for _ in range(6)]), nn.Linear(d, 100)

        def forward(s, x):
            y = s.patch(F.unfold(x, 14, stride=14).transpose(1, 2))
            return s.head(s.f(y).mean(1))

    m = comp(on(Vit), dynamic=True)
    o = torch.optim.AdamW(m.parameters(), torch.tensor(1e-4, device=dev))
    s = torch.amp.GradScaler("cuda", init_scale=16)
    for side in (224, 280, 196, 336, 224):
        with torch.autocast("cuda", HF16):
            l = F.cross_entropy(m(images(16, side)), T(16, v=100))
        s.scale(l).backward()
        s.step(o)
        s.update()
        o.zero_grad()


@job_with("")
def c_package_of_an_encoder():
    """torch.export with lengths that vary, compiled ahead of time to a package, loaded and run."""
    m = on(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True), 4, enable_nested_tensor=False)).eval()
    n = torch.export.Dim("n", min=2, max=512)
    with torch.no_grad(), tempfile.TemporaryDirectory() as d:
        e = torch.export.export(m, (N(4, 100, 512),), dynamic_shapes=({1: n},))
        f = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(e, package_path=d + "/encoder.pt2"))
        for length in (50, 200, 333):
            f(N(4, length, 512))



if __name__ == "__main__":
    own_python(*sys.argv[2:]) if sys.argv[1] == "--one" else main()
