# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, a few steps each: what PyTorch's allocator says of them, on a card or without one.

    everyday.py OUT WORKERS SECONDS [NAME...]       rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz

Language, vision, sound, graphs, science, reinforcement learning, functions of PyTorch; names that begin with c_ are compiled. A row: name, "ok" or the
error; requests, bytes requested; peaks requested, allocated, reserved; retries; seconds. Each runs in a process of its own.
"""

import os, sys, time, csv, random, functools, traceback, warnings, math

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch, torch.nn as nn, torch.nn.functional as F

J = {}


def job(f):
    J[f.__name__] = f
    return f


dev = "cuda"
rng = random.Random(5)


def T(*s, v=32000):
    return torch.randint(0, v, s, device=dev)


def N(*s, dt=torch.float32):
    return torch.randn(*s, device=dev, dtype=dt)


def on(f, *a, dt=None, **k):
    old = torch.get_default_dtype()
    if dt:
        torch.set_default_dtype(dt)
    try:
        with torch.device(dev):
            return f(*a, **k).to(dev)
    finally:
        torch.set_default_dtype(old)


def fit(m, loss_of, steps=4, opt=None, amp=None, scaler=False, clip=True, accum=1):
    m.train()
    ps = [p for p in m.parameters() if p.requires_grad]
    o = opt(ps) if opt else torch.optim.AdamW(ps, lr=1e-4)
    s = torch.amp.GradScaler("cuda", enabled=scaler)
    for i in range(steps):
        for j in range(accum):
            with torch.autocast("cuda", dtype=amp or torch.bfloat16, enabled=amp is not None):
                l = loss_of(m)
            s.scale(l / accum).backward()
        if clip:
            s.unscale_(o)
            nn.utils.clip_grad_norm_(ps, 1.0)
        s.step(o)
        s.update()
        o.zero_grad(set_to_none=True)
    return l


BF, HF16 = torch.bfloat16, torch.float16


def llama(hidden, layers, heads, kv, ffn, vocab=32000, dt=BF, **k):
    from transformers import LlamaConfig, LlamaForCausalLM

    return on(
        LlamaForCausalLM,
        LlamaConfig(
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv,
            intermediate_size=ffn,
            vocab_size=vocab,
            max_position_embeddings=8192,
            **k
        ),
        dt=dt,
    )


# ---- language
@job
def llama8b_lora():
    from peft import LoraConfig, get_peft_model

    m = llama(4096, 8, 32, 8, 14336, 128256)
    m.config.use_cache = False
    m.gradient_checkpointing_enable({"use_reentrant": False})
    m.enable_input_require_grads()
    m = get_peft_model(m, LoraConfig(r=16, target_modules="all-linear"))

    def loss(m):
        x = T(2, rng.choice([700, 1024, 1500]), v=128000)
        return m(input_ids=x, labels=x).loss

    fit(m, loss, 4)


@job
def llama1b_dpo():
    import copy

    m = llama(2048, 6, 32, 8, 8192, 128256)
    r = copy.deepcopy(m).eval().requires_grad_(False)

    def logp(m, x):
        return torch.gather(m(x).logits[:, :-1].log_softmax(-1), 2, x[:, 1:, None]).squeeze(-1).sum(-1)

    def loss(m):
        L = rng.choice([256, 400, 512])
        a, b = T(2, L), T(2, L)
        x = torch.cat([a, b])
        p = logp(m, x)
        with torch.no_grad():
            q = logp(r, x)
        d = p - q
        return -F.logsigmoid(0.1 * (d[:2] - d[2:])).mean()

    fit(m, loss, 3)


@job
def qwen3moe():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    m = on(
        Qwen3MoeForCausalLM,
        Qwen3MoeConfig(
            hidden_size=1024,
            num_hidden_layers=4,
            num_attention_heads=16,
            num_key_value_heads=4,
            moe_intermediate_size=512,
            num_experts=32,
            num_experts_per_tok=4,
            vocab_size=50000,
            output_router_logits=True,
        ),
        dt=BF,
    )

    def loss(m):
        x = T(4, rng.choice([300, 512]))
        return m(input_ids=x, labels=x).loss

    fit(m, loss, 3)


@job
def gemma3_text():
    from transformers import Gemma3TextConfig, Gemma3ForCausalLM

    m = on(
        Gemma3ForCausalLM,
        Gemma3TextConfig(
            hidden_size=1152,
            num_hidden_layers=8,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=256,
            intermediate_size=6912,
            vocab_size=262144,
            sliding_window=512,
        ),
        dt=BF,
    )
    m.gradient_checkpointing_enable()

    def loss(m):
        x = T(2, 1024)
        return m(input_ids=x, labels=x, use_cache=False).loss

    fit(m, loss, 3, opt=lambda p: torch.optim.AdamW(p, lr=1e-5, fused=True))


@job
def gpt_flash_muon():
    class B(nn.Module):
        def __init__(s, d, h):
            super().__init__()
            s.h = h
            s.a = nn.RMSNorm(d)
            s.b = nn.RMSNorm(d)
            s.qkv = nn.Linear(d, 3 * d, bias=False)
            s.o = nn.Linear(d, d, bias=False)
            s.u = nn.Linear(d, 4 * d, bias=False)
            s.d = nn.Linear(4 * d, d, bias=False)

        def forward(s, x):
            q, k, v = s.qkv(s.a(x)).view(x.size(0), x.size(1), 3, s.h, -1).permute(2, 0, 3, 1, 4)
            x = x + s.o(
                F.scaled_dot_product_attention(F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:]), v, is_causal=True)
                .transpose(1, 2)
                .reshape(x.shape)
            )
            return x + s.d(F.relu(s.u(s.b(x))).square())

    class G(nn.Module):
        def __init__(s, d=768, L=12):
            super().__init__()
            s.e = nn.Embedding(50304, d)
            s.l = nn.ModuleList(B(d, 6) for _ in range(L))
            s.hd = nn.Linear(d, 50304, bias=False)

        def forward(s, x, y):
            x = F.rms_norm(s.e(x), (768,))
            for b in s.l:
                x = b(x)
            z = s.hd(x)
            return F.cross_entropy((15 * torch.tanh(z / 15)).float().view(-1, 50304), y.view(-1))

    m = on(G)
    two = [p for p in m.l.parameters() if p.ndim == 2]
    rest = [p for p in m.parameters() if not any(p is q for q in two)]
    a = torch.optim.Muon(two, lr=0.02)
    b = torch.optim.AdamW(rest, lr=3e-4, fused=True)
    for i in range(4):
        with torch.autocast("cuda", dtype=BF):
            l = m(T(16, 1024), T(16, 1024))
        l.backward()
        a.step()
        b.step()
        m.zero_grad(set_to_none=True)


@job
def t5_fp32_adafactor():
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.optimization import Adafactor

    m = on(
        T5ForConditionalGeneration,
        T5Config(d_model=768, num_layers=6, num_heads=12, d_ff=2048, d_kv=64, feed_forward_proj="gated-gelu", decoder_start_token_id=0),
    )
    fit(
        m,
        lambda m: m(input_ids=T(8, rng.choice([128, 256])), labels=T(8, 64)).loss,
        4,
        opt=lambda p: Adafactor(p, scale_parameter=True, relative_step=True, warmup_init=True, lr=None),
    )


@job
def modernbert_pack():
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    m = on(ModernBertForMaskedLM, ModernBertConfig(num_hidden_layers=8, vocab_size=50368))

    def loss(m):
        L = rng.choice([256, 512, 1024])
        x = T(8, L, v=50000)
        mask = (torch.arange(L, device=dev)[None] < torch.tensor([L, L - 10, L // 2, L, L // 3, L, L, 20], device=dev)[:, None]).long()
        return m(input_ids=x, attention_mask=mask, labels=x.masked_fill(torch.rand(x.shape, device=dev) > 0.3, -100)).loss

    fit(m, loss, 4, amp=BF)


@job
def deberta_cls_fp16():
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    m = on(
        DebertaV2ForSequenceClassification,
        DebertaV2Config(
            hidden_size=768,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=3072,
            vocab_size=128100,
            relative_attention=True,
            position_buckets=256,
            pos_att_type=["p2c", "c2p"],
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            position_biased_input=False,
        ),
    )
    fit(m, lambda m: m(input_ids=T(16, rng.choice([100, 128, 256])), labels=T(16, v=2)).loss, 4, amp=HF16, scaler=True)


@job
def sbert_mnrl():
    from transformers import MPNetConfig, MPNetModel

    m = on(MPNetModel, MPNetConfig(num_hidden_layers=12))

    def emb(m, x):
        mask = torch.ones_like(x)
        h = m(input_ids=x, attention_mask=mask).last_hidden_state
        return F.normalize((h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=1)

    def loss(m):
        L = rng.choice([48, 64, 90])
        a, b = emb(m, T(64, L, v=30000)), emb(m, T(64, L, v=30000))
        return F.cross_entropy(a @ b.T * 20, torch.arange(64, device=dev))

    fit(m, loss, 4, amp=HF16, scaler=True)


@job
def mamba2_rwkv():
    from transformers import Mamba2Config, Mamba2ForCausalLM

    m = on(
        Mamba2ForCausalLM,
        Mamba2Config(hidden_size=768, num_hidden_layers=4, num_heads=24, head_dim=64, state_size=64, n_groups=1, vocab_size=50280, chunk_size=128),
        dt=BF,
    )
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(2, 512)), 3)


@job
def ddp_like_grpo():
    m = llama(1024, 8, 16, 8, 2816, 50000)
    o = torch.optim.AdamW(m.parameters(), lr=1e-6)
    for i in range(2):
        x = T(8, 64, v=50000)
        m.eval()
        with torch.no_grad():
            y = m.generate(input_ids=x, max_new_tokens=48, min_new_tokens=48, do_sample=True, top_k=50, top_p=0.95, pad_token_id=0)
        m.train()
        lp = torch.gather(m(y).logits[:, :-1].float().log_softmax(-1), 2, y[:, 1:, None])[..., 0][:, 63:]
        r = N(8)
        a = (r - r.mean()) / (r.std() + 1e-4)
        l = -(torch.exp(lp - lp.detach()) * a[:, None]).mean()
        l.backward()
        o.step()
        o.zero_grad()


@job
def beam_static():
    m = llama(2048, 6, 16, 4, 5632, 32000).eval()
    with torch.no_grad():
        m.generate(input_ids=T(2, 100), max_new_tokens=24, min_new_tokens=24, num_beams=4, pad_token_id=0)
        m.generate(
            input_ids=T(4, 200),
            max_new_tokens=16,
            min_new_tokens=16,
            do_sample=False,
            cache_implementation="static",
            pad_token_id=0,
            disable_compile=True,
        )
        m.generate(input_ids=T(3, 77), max_new_tokens=16, min_new_tokens=16, do_sample=True, temperature=0.7, num_return_sequences=2, pad_token_id=0)


@job
def paged_serve():
    m = llama(1024, 8, 16, 4, 2816, 32000).eval()
    q = torch.utils  # dense batches of many lengths, a cache by hand
    H, D = 4, 64
    blocks = torch.zeros(8, 2, 4096, 16, H, D, device=dev, dtype=BF)
    with torch.no_grad():
        for i in range(12):
            L = rng.randint(10, 900)
            n = rng.choice([1, 2, 5, 8])
            x = T(n, L)
            out = m(x, use_cache=True, logits_to_keep=1)
            pk = out.past_key_values
            for s in range(6):
                out = m(out.logits[:, -1:].argmax(-1), past_key_values=pk, use_cache=True)
            del out, pk


@job
def vlm_llava():
    from transformers import LlavaConfig, LlavaForConditionalGeneration, CLIPVisionConfig, LlamaConfig

    c = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072, image_size=224, patch_size=14, projection_dim=768
        ),
        text_config=LlamaConfig(
            hidden_size=1024, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=16, intermediate_size=2816, vocab_size=32064
        ),
        image_token_index=32000,
        image_token_id=32000,
    )
    m = on(LlavaForConditionalGeneration, c, dt=BF)

    def loss(m):
        x = T(4, 256 + 80, v=31000)
        x[:, 5:261] = 32000
        return m(input_ids=x, pixel_values=N(4, 3, 224, 224, dt=BF), labels=x).loss

    fit(m, loss, 3)


@job
def qwen25vl():
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    c = Qwen2_5_VLConfig(
        text_config=dict(
            hidden_size=1024,
            num_hidden_layers=4,
            num_attention_heads=16,
            num_key_value_heads=2,
            intermediate_size=2816,
            vocab_size=152064,
            rope_scaling={"type": "mrope", "rope_type": "default", "mrope_section": [8, 12, 12]},
        ),
        vision_config=dict(depth=4, hidden_size=640, num_heads=8, intermediate_size=1280, out_hidden_size=1024, fullatt_block_indexes=[3]),
    )
    m = on(Qwen2_5_VLForConditionalGeneration, c, dt=BF)

    def loss(m):
        g = torch.tensor([[1, 16, 24], [1, 20, 20]], device=dev)
        n = [96, 100]
        x = T(2, 220, v=150000)
        for i in range(2):
            x[i, 3] = c.vision_start_token_id
            x[i, 4 : 4 + n[i]] = c.image_token_id
        return m(input_ids=x, pixel_values=N(784, 1176, dt=BF), image_grid_thw=g, labels=x, mm_token_type_ids=(x == c.image_token_id).int()).loss

    fit(m, loss, 3)


# ---- vision
@job
def dinov2_multicrop():
    from transformers import Dinov2Config, Dinov2Model
    import copy

    m = on(Dinov2Model, Dinov2Config(hidden_size=768, num_hidden_layers=8))
    t = copy.deepcopy(m).requires_grad_(False)
    head = on(nn.Linear, 768, 8192)
    th = on(nn.Linear, 768, 8192)

    def loss(m):
        g, l = N(16, 3, 224, 224), N(48, 3, 98, 98)
        with torch.no_grad():
            q = (th(t(g).pooler_output) / 0.04).softmax(-1)
        s = head(m(g).pooler_output), head(m(l).pooler_output)
        L = -(q * (s[0] / 0.1).log_softmax(-1)).sum(-1).mean() - (q.repeat(3, 1) * (s[1] / 0.1).log_softmax(-1)).sum(-1).mean()
        with torch.no_grad():
            for a, b in zip(m.parameters(), t.parameters()):
                b.mul_(0.996).add_(a.detach(), alpha=0.004)
        return L

    fit(m, loss, 3, amp=BF)


@job
def resnet50_cl_amp():
    import torchvision

    m = on(torchvision.models.resnet50).to(memory_format=torch.channels_last)
    fit(
        m,
        lambda m: F.cross_entropy(m(N(64, 3, 224, 224).contiguous(memory_format=torch.channels_last)), T(64, v=1000), label_smoothing=0.1),
        4,
        amp=HF16,
        scaler=True,
        opt=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
    )
    m.eval()
    with torch.no_grad():
        m(N(200, 3, 224, 224).contiguous(memory_format=torch.channels_last))


@job
def resnet152_fp16():
    import torchvision

    m = on(torchvision.models.resnet152)
    fit(
        m,
        lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=1000)),
        3,
        amp=HF16,
        scaler=True,
        opt=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    )


@job
def convnext_large():
    import timm

    m = on(timm.create_model, "convnext_base")
    fit(m, lambda m: F.cross_entropy(m(N(24, 3, 224, 224)), T(24, v=1000)), 3, amp=BF)


@job
def effnetv2_l():
    import torchvision

    m = on(torchvision.models.efficientnet_v2_l)
    fit(m, lambda m: F.cross_entropy(m(N(8, 3, 384, 384)), T(8, v=1000)), 2, amp=HF16, scaler=True)


@job
def swin_hier():
    import timm

    m = on(timm.create_model, "swin_base_patch4_window7_224")
    fit(m, lambda m: F.cross_entropy(m(N(24, 3, 224, 224)), T(24, v=1000)), 3, amp=BF)


@job
def unet3d_fp16():
    def cb(i, o):
        return nn.Sequential(
            nn.Conv3d(i, o, 3, padding=1),
            nn.InstanceNorm3d(o, affine=True),
            nn.LeakyReLU(0.01, True),
            nn.Conv3d(o, o, 3, padding=1),
            nn.InstanceNorm3d(o, affine=True),
            nn.LeakyReLU(0.01, True),
        )

    class U(nn.Module):
        def __init__(s, c=(32, 64, 128, 256)):
            super().__init__()
            s.d = nn.ModuleList(cb(1 if i == 0 else c[i - 1], c[i]) for i in range(4))
            s.u = nn.ModuleList(nn.ConvTranspose3d(c[i + 1], c[i], 2, 2) for i in range(3))
            s.c = nn.ModuleList(cb(2 * c[i], c[i]) for i in range(3))
            s.o = nn.Conv3d(32, 4, 1)

        def forward(s, x):
            k = []
            for i, b in enumerate(s.d):
                x = b(x if i == 0 else F.max_pool3d(x, 2))
                k.append(x)
            for i in (2, 1, 0):
                x = s.c[i](torch.cat([s.u[i](x), k[i]], 1))
            return s.o(x)

    m = on(U)
    fit(m, lambda m: F.cross_entropy(m(N(2, 1, 96, 96, 96)).float(), T(2, 96, 96, 96, v=4)), 3, amp=HF16, scaler=True)


@job
def swin3d_video():
    import torchvision

    m = on(torchvision.models.video.swin3d_t)
    fit(m, lambda m: F.cross_entropy(m(N(2, 3, 16, 224, 224)), T(2, v=400)), 2, amp=BF)


@job
def r2plus1d_cl3d():
    import torchvision

    m = on(torchvision.models.video.r2plus1d_18).to(memory_format=torch.channels_last_3d)
    fit(m, lambda m: F.cross_entropy(m(N(4, 3, 16, 112, 112).to(memory_format=torch.channels_last_3d)), T(4, v=400)), 3, amp=HF16, scaler=True)


@job
def raft_small():
    import torchvision

    m = on(torchvision.models.optical_flow.raft_small)
    fit(m, lambda m: sum((f - 1).abs().mean() for f in m(N(2, 3, 256, 384), N(2, 3, 256, 384), num_flow_updates=6)), 2, amp=BF)


@job
def fcos_fp32():
    import torchvision

    m = on(torchvision.models.detection.fcos_resnet50_fpn, weights=None, weights_backbone=None)

    def loss(m):
        xs = [torch.rand(3, rng.choice([400, 480]), 512, device=dev) for _ in range(2)]
        t = [dict(boxes=torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 220]], device=dev), labels=T(2, v=90)) for _ in xs]
        return sum(m(xs, t).values())

    fit(m, loss, 2)


@job
def ssdlite():
    import torchvision

    m = on(torchvision.models.detection.ssdlite320_mobilenet_v3_large, weights=None, weights_backbone=None)

    def loss(m):
        xs = [torch.rand(3, 320, 320, device=dev) for _ in range(8)]
        t = [dict(boxes=torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 220]], device=dev), labels=T(2, v=90)) for _ in xs]
        return sum(m(xs, t).values())

    fit(m, loss, 2)


@job
def stylegan_r1():
    class Mod(nn.Module):
        def __init__(s, i, o, up):
            super().__init__()
            s.w = nn.Parameter(torch.randn(o, i, 3, 3))
            s.s = nn.Linear(256, i)
            s.up = up
            s.o = o

        def forward(s, x, z):
            b, c, h, w = x.shape
            k = s.w[None] * s.s(z)[:, None, :, None, None]
            k = k * torch.rsqrt(k.square().sum([2, 3, 4], True) + 1e-8)
            if s.up:
                x = F.interpolate(x, scale_factor=2, mode="bilinear")
                h, w = 2 * h, 2 * w
            return F.leaky_relu(F.conv2d(x.reshape(1, b * c, h, w), k.reshape(b * s.o, c, 3, 3), padding=1, groups=b).reshape(b, s.o, h, w), 0.2)

    class G(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.Parameter(torch.randn(1, 256, 4, 4))
            s.l = nn.ModuleList([Mod(256, 256, True), Mod(256, 256, True), Mod(256, 128, True), Mod(128, 64, True), Mod(64, 32, True)])
            s.r = nn.Conv2d(32, 3, 1)

        def forward(s, z):
            x = s.c.expand(z.size(0), -1, -1, -1)
            for l in s.l:
                x = l(x, z)
            return s.r(x)

    g = on(G)
    d = on(
        lambda: nn.Sequential(
            *[y for i, o in ((3, 32), (32, 64), (64, 128), (128, 256), (256, 256)) for y in (nn.Conv2d(i, o, 3, 2, 1), nn.LeakyReLU(0.2))],
            nn.Flatten(),
            nn.Linear(256 * 16, 1)
        )
    )
    og, od = torch.optim.Adam(g.parameters(), 2e-3, betas=(0.0, 0.99)), torch.optim.Adam(d.parameters(), 2e-3, betas=(0.0, 0.99))
    for i in range(3):
        x = N(8, 3, 128, 128).requires_grad_()
        z = N(8, 256)
        r = d(x)
        f = d(g(z).detach())
        gp = torch.autograd.grad(r.sum(), x, create_graph=True)[0].square().sum([1, 2, 3]).mean()
        (F.softplus(f).mean() + F.softplus(-r).mean() + 5 * gp).backward()
        od.step()
        od.zero_grad()
        F.softplus(-d(g(z))).mean().backward()
        og.step()
        og.zero_grad()
        d.zero_grad()


@job
def cyclegan():
    def R(c):
        return nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(c, c, 3),
            nn.InstanceNorm2d(c),
            nn.ReLU(True),
            nn.ReflectionPad2d(1),
            nn.Conv2d(c, c, 3),
            nn.InstanceNorm2d(c),
        )

    class Rs(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.b = R(c)

        def forward(s, x):
            return x + s.b(x)

    def G():
        return nn.Sequential(
            nn.ReflectionPad2d(3),
            nn.Conv2d(3, 64, 7),
            nn.InstanceNorm2d(64),
            nn.ReLU(True),
            nn.Conv2d(64, 128, 3, 2, 1),
            nn.InstanceNorm2d(128),
            nn.ReLU(True),
            nn.Conv2d(128, 256, 3, 2, 1),
            nn.InstanceNorm2d(256),
            nn.ReLU(True),
            *[Rs(256) for _ in range(6)],
            nn.ConvTranspose2d(256, 128, 3, 2, 1, 1),
            nn.InstanceNorm2d(128),
            nn.ReLU(True),
            nn.ConvTranspose2d(128, 64, 3, 2, 1, 1),
            nn.InstanceNorm2d(64),
            nn.ReLU(True),
            nn.ReflectionPad2d(3),
            nn.Conv2d(64, 3, 7),
            nn.Tanh()
        )

    a, b = on(G), on(G)
    o = torch.optim.Adam([*a.parameters(), *b.parameters()], 2e-4)
    for i in range(2):
        x, y = N(1, 3, 256, 256), N(1, 3, 256, 256)
        u, v = a(x), b(y)
        (F.l1_loss(b(u), x) + F.l1_loss(a(v), y) + F.l1_loss(a(y), y)).backward()
        o.step()
        o.zero_grad()


@job
def esrgan_tiles():
    class RD(nn.Module):
        def __init__(s, n=64, g=32):
            super().__init__()
            s.c = nn.ModuleList(nn.Conv2d(n + i * g, g if i < 4 else n, 3, 1, 1) for i in range(5))

        def forward(s, x):
            f = [x]
            for i, c in enumerate(s.c):
                y = c(torch.cat(f, 1))
                f.append(F.leaky_relu(y, 0.2) if i < 4 else y)
            return x + 0.2 * f[-1]

    m = on(
        lambda: nn.Sequential(
            nn.Conv2d(3, 64, 3, 1, 1),
            *[RD() for _ in range(8)],
            nn.Conv2d(64, 256, 3, 1, 1),
            nn.PixelShuffle(2),
            nn.LeakyReLU(0.2),
            nn.Conv2d(64, 3, 3, 1, 1)
        )
    )
    fit(m, lambda m: F.l1_loss(m(N(4, 3, 96, 96)), N(4, 3, 192, 192)), 2)
    with torch.no_grad():
        for s in ((1, 3, 300, 200), (1, 3, 211, 333)):
            m.half()(N(*s, dt=HF16))


@job
def dit_ema():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    class Bl(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.n1 = nn.LayerNorm(d, elementwise_affine=False)
            s.n2 = nn.LayerNorm(d, elementwise_affine=False)
            s.a = nn.MultiheadAttention(d, 12, batch_first=True)
            s.m = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d))
            s.c = nn.Linear(d, 6 * d)

        def forward(s, x, c):
            a, b, g, d, e, h = s.c(F.silu(c))[:, None].chunk(6, -1)
            y = s.n1(x) * (1 + a) + b
            x = x + g * s.a(y, y, y, need_weights=False)[0]
            return x + h * s.m(s.n2(x) * (1 + d) + e)

    class D(nn.Module):
        def __init__(s, d=768):
            super().__init__()
            s.p = nn.Conv2d(4, d, 2, 2)
            s.t = nn.Linear(256, d)
            s.l = nn.ModuleList(Bl(d) for _ in range(8))
            s.o = nn.Linear(d, 16)

        def forward(s, x, t):
            h = s.p(x).flatten(2).transpose(1, 2)
            c = s.t(torch.cat([torch.cos(t[:, None] * torch.arange(128, device=dev)), torch.sin(t[:, None] * torch.arange(128, device=dev))], 1))
            for l in s.l:
                h = l(h, c)
            return F.pixel_shuffle(s.o(h).transpose(1, 2).view(x.size(0), 16, 16, 16), 2)

    m = on(D)
    e = AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.999))

    def loss(m):
        x, n, t = N(32, 4, 32, 32), N(32, 4, 32, 32), torch.rand(32, device=dev)
        l = F.mse_loss(m(x + t.view(-1, 1, 1, 1) * n, t).float(), n)
        e.update_parameters(m)
        return l

    fit(m, loss, 3, amp=BF)
    with torch.no_grad():
        x = N(8, 4, 32, 32)
        for i in range(4):
            x = x - 0.1 * e(x, torch.full((8,), 0.5, device=dev))


@job
def sam_mask2former():
    from transformers import SamConfig, SamModel
    from transformers.models.sam.configuration_sam import SamVisionConfig

    m = on(
        SamModel,
        SamConfig(
            vision_config=SamVisionConfig(
                hidden_size=384, num_hidden_layers=4, num_attention_heads=6, global_attn_indexes=[1, 3], image_size=512
            ).to_dict(),
            prompt_encoder_config=dict(image_size=512),
        ),
        dt=BF,
    )
    fit(
        m,
        lambda m: m(pixel_values=N(2, 3, 512, 512, dt=BF), input_points=torch.rand(2, 1, 2, 2, device=dev, dtype=BF) * 500)
        .pred_masks.float()
        .square()
        .mean(),
        2,
    )


@job
def detr_like():
    from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetConfig

    c = DeformableDetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=ResNetConfig(out_features=["stage2", "stage3", "stage4"]),
        num_queries=100,
        encoder_layers=3,
        decoder_layers=3,
    )
    m = on(DeformableDetrForObjectDetection, c)

    def loss(m):
        return m(
            pixel_values=N(2, 3, 384, 512), labels=[dict(class_labels=T(3, v=90), boxes=torch.rand(3, 4, device=dev) * 0.5 + 0.1) for _ in range(2)]
        ).loss

    fit(m, loss, 2)


# ---- sound
@job
def conformer_ctc():
    import torchaudio

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.i = nn.Linear(80, 256)
            s.c = torchaudio.models.Conformer(256, 4, 1024, 6, 31)
            s.o = nn.Linear(256, 1024)

        def forward(s, x, n):
            y, n = s.c(s.i(x), n)
            return s.o(y), n

    m = on(M)

    def loss(m):
        t = rng.choice([400, 600])
        y, n = m(N(8, t, 80), torch.tensor([t - 10 * i for i in range(8)], device=dev))
        return F.ctc_loss(y.float().log_softmax(-1).transpose(0, 1), T(8, 30, v=1000) + 1, n, torch.full((8,), 30, device=dev))

    fit(m, loss, 3, amp=BF)


@job
def hdemucs():
    import torchaudio

    m = on(torchaudio.models.hdemucs_low, ["a", "b", "c", "d"])
    fit(m, lambda m: F.l1_loss(m(N(2, 2, 44100 * 2)), N(2, 4, 2, 44100 * 2)), 2)


@job
def tacotron2():
    import torchaudio

    m = on(torchaudio.models.Tacotron2)

    def loss(m):
        a, b, g, _ = m(
            T(8, 60, v=148),
            torch.tensor([60, 58, 55, 50, 40, 30, 20, 10], device=dev),
            N(8, 80, 120),
            torch.tensor([120, 110, 100, 90, 80, 70, 60, 50], device=dev),
        )
        return F.mse_loss(a, torch.zeros_like(a)) + F.mse_loss(b, torch.zeros_like(b))

    fit(m, loss, 2)


@job
def convtasnet_spec():
    import torchaudio

    m = on(torchaudio.models.ConvTasNet)
    sp = torchaudio.transforms.MelSpectrogram(16000, n_fft=1024, hop_length=256, n_mels=80).to(dev)

    def loss(m):
        y = m(N(4, 1, 32000))
        return (sp(y).add(1e-5).log() - sp(N(4, 2, 32000)).add(1e-5).log()).abs().mean()

    fit(m, loss, 2)


@job
def whisper_ft():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    m = on(
        WhisperForConditionalGeneration,
        WhisperConfig(
            d_model=768,
            encoder_layers=6,
            decoder_layers=6,
            encoder_attention_heads=12,
            decoder_attention_heads=12,
            encoder_ffn_dim=3072,
            decoder_ffn_dim=3072,
            vocab_size=51865,
        ),
    )
    fit(m, lambda m: m(input_features=N(8, 80, 3000), labels=T(8, rng.choice([40, 80]))).loss, 3, amp=HF16, scaler=True)
    m.eval()
    with torch.no_grad():
        m.generate(input_features=N(4, 80, 3000), max_new_tokens=20, min_new_tokens=20, num_beams=2)


@job
def hubert_ctc():
    from transformers import HubertConfig, HubertForCTC

    m = on(HubertForCTC, HubertConfig(num_hidden_layers=6, mask_time_prob=0.05, ctc_loss_reduction="mean"))

    def loss(m):
        return m(input_values=N(4, rng.choice([48000, 64000])), labels=T(4, 40, v=31)).loss

    fit(m, loss, 3, amp=BF)


@job
def lstm_packed():
    from torch.nn.utils.rnn import pack_padded_sequence as P, pad_packed_sequence as U

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(20000, 512)
            s.l = nn.LSTM(512, 768, 3, bidirectional=True, batch_first=True, dropout=0.2)
            s.o = nn.Linear(1536, 50)

        def forward(s, x, n):
            y, _ = U(s.l(P(s.e(x), n, batch_first=True, enforce_sorted=False))[0], batch_first=True)
            return s.o(y)

    m = on(M)

    def loss(m):
        n = torch.tensor([rng.randint(20, 200) for _ in range(32)])
        x = T(32, int(n.max()), v=20000)
        y = m(x, n).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(y.float(), T(32, 10, v=49) + 1, n, torch.full((32,), 10))

    fit(m, loss, 4)
    fit(m, loss, 2, amp=HF16, scaler=True)


# ---- graphs, science
@job
def pyg_gatv2_pna():
    from torch_geometric.nn import GATv2Conv, PNAConv, global_mean_pool, BatchNorm
    from torch_geometric.utils import degree

    n, e = 20000, 160000
    ei = T(2, e, v=n)
    x = N(n, 64)
    deg = torch.bincount(degree(ei[1], n, dtype=torch.long).cpu(), minlength=10)

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = GATv2Conv(64, 32, heads=4)
            s.b = PNAConv(128, 64, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"], deg)
            s.n = BatchNorm(64)
            s.o = nn.Linear(64, 10)

        def forward(s, x, ei, b):
            x = F.elu(s.a(x, ei))
            x = s.n(s.b(x, ei))
            return s.o(global_mean_pool(x, b))

    m = on(M)
    b = torch.arange(n, device=dev) // 100
    fit(m, lambda m: F.cross_entropy(m(x, ei, b), T(200, v=10)), 4)


@job
def pyg_sampler():
    from torch_geometric.nn import SAGEConv, TopKPooling, GINConv

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = SAGEConv(100, 256)
            s.p = TopKPooling(256, 0.5)
            s.b = SAGEConv(256, 256)
            s.o = nn.Linear(256, 47)

        def forward(s, x, e):
            x = F.relu(s.a(x, e))
            x, e, _, _, _, _ = s.p(x, e)
            return s.o(s.b(x, e))

    m = on(M)

    def loss(m):
        n = rng.randint(3000, 9000)
        return m(N(n, 100), T(2, 8 * n, v=n)).square().mean()

    fit(m, loss, 4)


@job
def force_field():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(20, 128)
            s.f = nn.Sequential(nn.Linear(50, 128), nn.SiLU(), nn.Linear(128, 128))
            s.o = nn.Sequential(nn.Linear(128, 64), nn.SiLU(), nn.Linear(64, 1))

        def forward(s, z, pos, b):
            d = torch.cdist(pos, pos)
            i, j = ((d < 2.0) & (b[:, None] == b[None]) & (d > 0)).nonzero(as_tuple=True)
            r = (pos[i] - pos[j]).norm(dim=1)
            g = torch.exp(-10 * (r[:, None] - torch.linspace(0, 2, 50, device=dev)).square())
            h = s.e(z)
            for _ in range(3):
                h = h + torch.zeros_like(h).index_add_(0, i, h[j] * s.f(g))
            return torch.zeros(int(b[-1]) + 1, 1, device=dev).index_add_(0, b, s.o(h))

    m = on(M)

    def loss(m):
        k = rng.choice([8, 12])
        n = 20 * k
        pos = torch.tensor([[rng.random() * 4 for _ in range(3)] for _ in range(n)]).to(dev).requires_grad_()
        z = T(n, v=9) + 1
        b = torch.arange(n, device=dev) // 20
        en = m(z, pos, b)
        f = torch.autograd.grad(en.sum(), pos, create_graph=True)[0]
        return en.square().mean() + f.square().mean()

    fit(m, loss, 3)


@job
def e3nn_net():
    from e3nn import o3
    from e3nn.nn import FullyConnectedNet

    class C(nn.Module):
        def __init__(s):
            super().__init__()
            s.i = o3.Irreps("16x0e+16x1o")
            s.sh = o3.Irreps.spherical_harmonics(2)
            s.tp = o3.FullyConnectedTensorProduct(s.i, s.sh, s.i, shared_weights=False)
            s.f = FullyConnectedNet([8, 64, s.tp.weight_numel], F.silu)

        def forward(s, x, e, v):
            a, b = e
            y = s.tp(x[a], o3.spherical_harmonics(s.sh, v, True, "component"), s.f(v.norm(dim=1, keepdim=True).repeat(1, 8)))
            return torch.zeros_like(x).index_add_(0, b, y)

    m = C().to(dev)
    fit(m, lambda m: m(N(400, 64), T(2, 3000, v=400), N(3000, 3)).square().mean(), 3)


@job
def gp_exact():
    import gpytorch

    x = torch.rand(1500, 4).to(dev)
    y = torch.sin(x.sum(1)).to(dev)

    class M(gpytorch.models.ExactGP):
        def __init__(s, x, y, l):
            super().__init__(x, y, l)
            s.m = gpytorch.means.ConstantMean()
            s.k = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(ard_num_dims=4))

        def forward(s, x):
            return gpytorch.distributions.MultivariateNormal(s.m(x), s.k(x))

    l = gpytorch.likelihoods.GaussianLikelihood().to(dev)
    m = M(x, y, l).to(dev)
    m.train()
    l.train()
    o = torch.optim.Adam(m.parameters(), 0.1)
    ml = gpytorch.mlls.ExactMarginalLogLikelihood(l, m)
    with gpytorch.settings.max_cholesky_size(2000):
        for i in range(3):
            o.zero_grad()
            v = -ml(m(x), y)
            v.backward()
            o.step()
        m.eval()
        l.eval()
        with torch.no_grad():
            l(m(torch.rand(300, 4, device=dev))).variance


@job
def svgp():
    import gpytorch

    z = torch.rand(512, 8).to(dev)

    class M(gpytorch.models.ApproximateGP):
        def __init__(s, z):
            q = gpytorch.variational.CholeskyVariationalDistribution(z.size(0))
            super().__init__(gpytorch.variational.VariationalStrategy(s, z, q, learn_inducing_locations=True))
            s.m = gpytorch.means.ConstantMean()
            s.k = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(s, x):
            return gpytorch.distributions.MultivariateNormal(s.m(x), s.k(x))

    m = M(z).to(dev)
    l = gpytorch.likelihoods.GaussianLikelihood().to(dev)
    ml = gpytorch.mlls.VariationalELBO(l, m, 100000)
    m.train()
    fit(m, lambda m: -ml(m(torch.rand(1024, 8, device=dev)), N(1024)), 4)


@job
def botorch_opt():
    import botorch, gpytorch
    from botorch.models import SingleTaskGP
    from botorch.acquisition import qLogExpectedImprovement
    from botorch.optim import optimize_acqf

    x = torch.rand(60, 3, dtype=torch.double).to(dev)
    y = x.sum(1, keepdim=True)
    g = SingleTaskGP(x, y)
    a = qLogExpectedImprovement(g, best_f=float(y.max()))
    optimize_acqf(
        a, torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.double, device=dev), q=2, num_restarts=3, raw_samples=32, options=dict(maxiter=5)
    )


@job
def neural_ode():
    from torchdiffeq import odeint, odeint_adjoint

    f = on(lambda: nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)))

    class O(nn.Module):
        def __init__(s):
            super().__init__()
            s.f = f

        def forward(s, t, y):
            return s.f(y)

    m = O()
    fit(m, lambda m: odeint(m, N(512, 64), torch.linspace(0, 1, 5, device=dev), method="rk4").square().mean(), 3)
    fit(
        m,
        lambda m: odeint_adjoint(m, N(512, 64), torch.linspace(0, 1, 3, device=dev), method="euler", options=dict(step_size=0.1)).square().mean(),
        2,
    )


@job
def neural_ode_adaptive():
    from torchdiffeq import odeint

    f = on(lambda: nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8)))

    class O(nn.Module):
        def __init__(s):
            super().__init__()
            s.f = f

        def forward(s, t, y):
            return s.f(y)

    torch.manual_seed(1)
    fit(O(), lambda m: odeint(m, torch.randn(64, 8).to(dev), torch.linspace(0, 1, 3, device=dev)).square().mean(), 2)


@job
def fno_fft():
    class S(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.w = nn.Parameter(torch.randn(c, c, 16, 16, dtype=torch.cfloat) * 0.02)

        def forward(s, x):
            f = torch.fft.rfft2(x)
            o = torch.zeros_like(f)
            o[:, :, :16, :16] = torch.einsum("bixy,ioxy->boxy", f[:, :, :16, :16], s.w)
            return torch.fft.irfft2(o, s=x.shape[-2:])

    class M(nn.Module):
        def __init__(s, c=64):
            super().__init__()
            s.i = nn.Conv2d(3, c, 1)
            s.s = nn.ModuleList(S(c) for _ in range(4))
            s.c = nn.ModuleList(nn.Conv2d(c, c, 1) for _ in range(4))
            s.o = nn.Conv2d(c, 1, 1)

        def forward(s, x):
            x = s.i(x)
            for a, b in zip(s.s, s.c):
                x = F.gelu(a(x) + b(x))
            return s.o(x)

    fit(on(M), lambda m: m(N(16, 3, 128, 160)).square().mean(), 3, clip=False)


@job
def pinn_double():
    m = on(
        lambda: nn.Sequential(nn.Linear(3, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)),
        dt=torch.double,
    )

    def loss(m):
        x = torch.rand(20000, 3, device=dev, dtype=torch.double, requires_grad=True)
        u = m(x)
        g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        h = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)[0]
        k = torch.autograd.grad(g[:, 1].sum(), x, create_graph=True)[0]
        return (h[:, 0] + k[:, 1] - g[:, 2]).square().mean()

    fit(m, loss, 3)


@job
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


@job
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


@job
def cluster_sort():
    x = N(20000, 64)
    c = x[:100].clone()
    for i in range(5):
        d = torch.cdist(x, c)
        a = d.argmin(1)
        c = torch.zeros_like(c).index_add_(0, a, x) / torch.bincount(a, minlength=100).clamp(min=1)[:, None]
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


@job
def sparse_rec():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.ModuleList(nn.EmbeddingBag(200000, 64, sparse=True, mode="sum") for _ in range(8))
            s.m = nn.Sequential(nn.Linear(8 * 64, 512), nn.ReLU(), nn.Linear(512, 1))

        def forward(s, i, o):
            return s.m(torch.cat([e(i, o) for e in s.e], 1))

    m = on(M)
    a = torch.optim.SparseAdam(list(m.e.parameters()))
    b = torch.optim.Adagrad(m.m.parameters())
    for k in range(3):
        F.binary_cross_entropy_with_logits(
            m(T(2048 * 10, v=200000), torch.arange(0, 20480, 10, device=dev))[:, 0], torch.rand(2048, device=dev)
        ).backward()
        a.step()
        b.step()
        m.zero_grad()
    A = torch.sparse_coo_tensor(T(2, 50000, v=5000), N(50000), (5000, 5000)).coalesce()
    x = N(5000, 64).requires_grad_()
    torch.sparse.mm(A, x).sum().backward()
    (A.to_sparse_csr() @ N(5000, 32))


# ---- functions of PyTorch
@job
def func_persample():
    from torch.func import functional_call, vmap, grad, jacrev, hessian

    m = on(lambda: nn.Sequential(nn.Conv2d(3, 32, 3), nn.GroupNorm(8, 32), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)))
    p = {k: v.detach() for k, v in m.named_parameters()}
    g = vmap(grad(lambda p, x, y: F.cross_entropy(functional_call(m, p, (x[None],)), y[None])), in_dims=(None, 0, 0))(
        p, N(64, 3, 32, 32), T(64, v=10)
    )
    sum(v.flatten(1).square().sum(1) for v in g.values())
    w = N(40, 40)
    jacrev(lambda x: torch.tanh(w @ x))(N(40))
    hessian(lambda x: torch.tanh(w @ x).sum())(N(40))
    vmap(lambda a, b: a @ b)(N(32, 20, 30), N(32, 30, 10))


@job
def maml_higher():
    from torch.func import functional_call

    m = on(
        lambda: nn.Sequential(
            nn.Conv2d(1, 64, 3, 2, 1),
            nn.BatchNorm2d(64, track_running_stats=False),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 49, 5),
        )
    )

    def loss(m):
        t = 0
        for k in range(4):
            p = dict(m.named_parameters())
            for i in range(3):
                g = torch.autograd.grad(F.cross_entropy(functional_call(m, p, (N(25, 1, 28, 28),)), T(25, v=5)), list(p.values()), create_graph=True)
                p = {n: a - 0.4 * b for (n, a), b in zip(p.items(), g)}
            t = t + F.cross_entropy(functional_call(m, p, (N(75, 1, 28, 28),)), T(75, v=5))
        return t

    fit(m, loss, 2)


@job
def graph_capture():
    m = on(lambda: nn.Sequential(*[nn.Linear(1024, 1024) if i % 2 == 0 else nn.GELU() for i in range(8)]))
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
    f = torch.cuda.make_graphed_callables(
        on(nn.Linear, 512, 512),
        (
            N(
                64,
                512,
            ).requires_grad_(),
        ),
    )
    f(N(64, 512).requires_grad_()).sum().backward()


@job
def offload_streams():
    from torch.autograd.graph import save_on_cpu

    m = on(lambda: nn.Sequential(*[nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)) for _ in range(6)]))
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


@job
def jagged_nested():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.q = nn.Linear(256, 768)
            s.o = nn.Linear(256, 256)

        def forward(s, x):
            q, k, v = s.q(x).chunk(3, -1)
            f = lambda t: t.unflatten(-1, [8, 32]).transpose(1, 2)
            return s.o(F.scaled_dot_product_attention(f(q), f(k), f(v)).transpose(1, 2).flatten(-2))

    m = on(M, dt=BF)

    def loss(m):
        x = torch.nested.nested_tensor([N(rng.randint(20, 200), 256, dt=BF) for _ in range(16)], layout=torch.jagged)
        return m(x).values().square().mean()

    fit(m, loss, 3)


@job
def fp8_int8():
    a, b = N(2048, 4096, dt=BF), N(4096, 4096, dt=BF)
    s = torch.ones((), device=dev)
    f8 = torch.float8_e4m3fn
    for i in range(3):
        torch._scaled_mm(a.to(f8), b.to(f8).t(), scale_a=s, scale_b=s, out_dtype=BF)
    torch._scaled_mm(a.to(f8), b.to(f8).t(), scale_a=torch.ones(2048, 1, device=dev), scale_b=torch.ones(1, 4096, device=dev), out_dtype=BF)
    torch._int_mm(a.to(torch.int8), b.to(torch.int8).t())


@job
def jit_script():
    import torchvision

    m = torch.jit.script(on(torchvision.models.mobilenet_v3_large)).train()
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=1000)), 3)
    t = torch.jit.trace(on(torchvision.models.resnet18).eval(), N(1, 3, 224, 224))
    t = torch.jit.freeze(t.eval())
    with torch.no_grad():
        for n in (1, 4, 9):
            t(N(n, 3, 224, 224))


@job
def dqn_replay():
    q, t = (
        on(
            lambda: nn.Sequential(
                nn.Conv2d(4, 32, 8, 4),
                nn.ReLU(),
                nn.Conv2d(32, 64, 4, 2),
                nn.ReLU(),
                nn.Conv2d(64, 64, 3),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(3136, 512),
                nn.ReLU(),
                nn.Linear(512, 6),
            )
        ),
        None,
    )
    import copy

    t = copy.deepcopy(q)
    o = torch.optim.RMSprop(q.parameters(), 1e-4)
    buf = torch.zeros(20000, 4, 84, 84, dtype=torch.uint8, device=dev)
    for i in range(30):
        a = q(buf[i : i + 1].float() / 255).argmax(1).item()
        buf[i + 1] = T(4, 84, 84, v=255).byte()
        ix = T(64, v=20000)
        s = buf[ix].float() / 255
        with torch.no_grad():
            y = t(s).max(1)[0]
        l = F.smooth_l1_loss(q(s).gather(1, T(64, 1, v=6))[:, 0], y)
        o.zero_grad()
        l.backward()
        nn.utils.clip_grad_value_(q.parameters(), 1)
        o.step()


@job
def lightning_fit():
    import lightning as L, torchvision
    from torch.utils.data import DataLoader, TensorDataset

    class M(L.LightningModule):
        def __init__(s):
            super().__init__()
            s.m = torchvision.models.resnet34(num_classes=10)

        def training_step(s, b, i):
            return F.cross_entropy(s.m(b[0]), b[1])

        def validation_step(s, b, i):
            s.log("v", F.cross_entropy(s.m(b[0]), b[1]))

        def configure_optimizers(s):
            o = torch.optim.AdamW(s.parameters())
            return [o], [torch.optim.lr_scheduler.OneCycleLR(o, 1e-3, total_steps=100)]

    d = TensorDataset(torch.randn(200, 3, 96, 96), torch.randint(0, 10, (200,)))
    L.Trainer(
        max_epochs=2,
        precision="bf16-mixed",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        num_sanity_val_steps=1,
    ).fit(M(), DataLoader(d, 48, pin_memory=True), DataLoader(d, 64))


@job
def hf_trainer():
    from transformers import Trainer, TrainingArguments, GPT2Config, GPT2LMHeadModel

    class D(torch.utils.data.Dataset):
        def __len__(s):
            return 40

        def __getitem__(s, i):
            x = torch.randint(0, 50257, (256,))
            return dict(input_ids=x, labels=x)

    a = TrainingArguments(
        "/tmp/hft%d" % os.getpid(),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_steps=4,
        bf16=True,
        report_to=[],
        save_strategy="no",
        gradient_checkpointing=True,
        optim="adamw_torch_fused",
        eval_strategy="steps",
        eval_steps=2,
        per_device_eval_batch_size=8,
        disable_tqdm=True,
    )
    Trainer(GPT2LMHeadModel(GPT2Config(n_layer=6)), a, train_dataset=D(), eval_dataset=D()).train()


@job
def patchtst_ts():
    from transformers import PatchTSTConfig, PatchTSTForPrediction, InformerConfig, InformerForPrediction

    m = on(
        PatchTSTForPrediction,
        PatchTSTConfig(
            num_input_channels=7,
            context_length=512,
            patch_length=16,
            patch_stride=8,
            prediction_length=96,
            d_model=128,
            num_hidden_layers=3,
            loss="mse",
        ),
    )
    fit(m, lambda m: m(past_values=N(64, 512, 7), future_values=N(64, 96, 7)).loss, 4)


# ---- compiled
def comp(m, **k):
    return torch.compile(m, **k)


@job
def c_gpt():
    from transformers import GPT2Config, GPT2LMHeadModel

    m = comp(on(GPT2LMHeadModel, GPT2Config(n_layer=4, use_cache=False)))
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(8, 512)), 4, amp=BF)


@job
def c_llama_ckpt():
    m = llama(1024, 4, 16, 4, 2816, 32000)
    m.config.use_cache = False
    m.gradient_checkpointing_enable({"use_reentrant": False})
    m = comp(m)

    def loss(m):
        x = T(4, rng.choice([512, 640]))
        return m(input_ids=x, labels=x).loss

    fit(m, loss, 4)


@job
def c_vit():
    import torchvision

    m = comp(on(torchvision.models.vit_b_16))
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=1000)), 3, amp=BF)


@job
def c_resnet():
    import torchvision

    m = comp(on(torchvision.models.resnet50).to(memory_format=torch.channels_last))
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224).contiguous(memory_format=torch.channels_last)), T(32, v=1000)), 3, amp=BF)


@job
def c_reduce():
    m = comp(
        on(lambda: nn.Sequential(*[nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0) for _ in range(4)])),
        mode="reduce-overhead",
    )
    fit(m, lambda m: m(N(8, 256, 512)).square().mean(), 5, amp=BF)


@job
def c_flex():
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask

    f = comp(flex_attention)
    bm = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 256), None, None, 1024, 1024, device=dev)
    q = N(4, 16, 1024, 64, dt=BF).requires_grad_()
    for i in range(3):
        f(q, q, q, block_mask=bm).sum().backward()


@job
def c_opt():
    m = on(lambda: nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]))
    o = torch.optim.AdamW(m.parameters())
    st = comp(o.step)
    for i in range(3):
        m(N(128, 1024)).square().mean().backward()
        st()
        o.zero_grad()


@job
def c_static_gen():
    m = llama(1024, 4, 16, 4, 2816, 32000).eval()
    with torch.no_grad():
        m.generate(input_ids=T(2, 50), max_new_tokens=16, min_new_tokens=16, do_sample=False, cache_implementation="static", pad_token_id=0)


@job
def c_unet_dyn():
    m = comp(
        on(
            lambda: nn.Sequential(
                nn.Conv2d(3, 64, 3, padding=1),
                nn.GroupNorm(8, 64),
                nn.SiLU(),
                nn.Conv2d(64, 64, 3, padding=1),
                nn.GroupNorm(8, 64),
                nn.SiLU(),
                nn.Conv2d(64, 3, 3, padding=1),
            )
        ),
        dynamic=True,
    )
    fit(m, lambda m: m(N(4, 3, *rng.choice([(64, 96), (96, 96), (128, 64)]))).square().mean(), 5)


def R(a, b):
    return rng.randint(a, b)


def C(x):
    return rng.choice(x)


@job
def find_batch():
    from accelerate.utils import find_executable_batch_size

    m = on(lambda: nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096)))
    o = torch.optim.AdamW(m.parameters())
    torch.cuda.set_per_process_memory_fraction(0.1)
    seen = []

    @find_executable_batch_size(starting_batch_size=262144)
    def run(bs):
        seen.append(bs)
        x = N(bs, 4096)
        m(x).square().mean().backward()
        o.step()
        o.zero_grad()

    run()
    print(seen)


@job
def oom_catch():
    torch.cuda.set_per_process_memory_fraction(0.05)
    k = []
    n = 0
    try:
        while True:
            k.append(N(C([100, 1000, 3000, 7000]), 1000 + n))
            n += 7
    except torch.OutOfMemoryError:
        pass
    print(n)
    del k[::2]
    torch.cuda.empty_cache()
    x = [N(R(100, 5000), 1500) for _ in range(40)]


@job
def alloc_conf_seq():
    for L in (100, 900, 300, 700, 500, 1100, 250):
        x = [N(64, L, 128) for _ in range(6)]
        y = torch.cat(x, 1)
        z = y.softmax(1)
        del x, y
        torch.cuda.empty_cache() if L == 500 else None


@job
def selective_ckpt():
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy as P

    keep = [torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default]
    pol = lambda ctx, op, *a, **k: P.MUST_SAVE if op in keep else P.PREFER_RECOMPUTE
    b = on(lambda: nn.ModuleList(nn.TransformerEncoderLayer(768, 12, 3072, 0.0, batch_first=True, norm_first=True) for _ in range(6)))

    def loss(b):
        x = N(8, 512, 768)
        for l in b:
            x = checkpoint(l, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, pol))
        return x.square().mean()

    fit(b, loss, 3, amp=BF)


@job
def nn_transformer():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(10000, 512)
            s.t = nn.Transformer(512, 8, 3, 3, 2048, batch_first=True)
            s.o = nn.Linear(512, 10000)

        def forward(s, a, b, pad):
            return s.o(
                s.t(
                    s.e(a),
                    s.e(b),
                    tgt_mask=nn.Transformer.generate_square_subsequent_mask(b.size(1), device=dev),
                    src_key_padding_mask=pad,
                    memory_key_padding_mask=pad,
                )
            )

    def loss(m):
        a, b = T(32, C([30, 47, 64]), v=10000), T(32, C([25, 50]), v=10000)
        pad = torch.arange(a.size(1), device=dev)[None] > torch.randint(10, 30, (32, 1)).to(dev)
        return F.cross_entropy(m(a, b[:, :-1], pad).flatten(0, 1), b[:, 1:].flatten())

    fit(on(M), loss, 5)


@job
def mha_weights():
    m = on(nn.MultiheadAttention, 512, 8, batch_first=True)

    def loss(m):
        x = N(16, C([77, 197, 300]), 512)
        y, w = m(x, x, x, average_attn_weights=False)
        return y.square().mean() + w.std()

    fit(m, loss, 4)


@job
def optim_zoo():
    O = torch.optim
    for f in (
        lambda p: O.Adagrad(p, 1e-2),
        lambda p: O.Rprop(p),
        lambda p: O.ASGD(p),
        lambda p: O.NAdam(p),
        lambda p: O.RAdam(p),
        lambda p: O.Adamax(p),
        lambda p: O.Adadelta(p),
        lambda p: O.RMSprop(p, momentum=0.9, centered=True),
        lambda p: O.SGD(p, 0.1, momentum=0.9, fused=True),
        lambda p: O.AdamW(p, amsgrad=True, foreach=False),
        lambda p: O.Adafactor(p),
        lambda p: O.Adam(p, fused=True),
    ):
        fit(
            on(lambda: nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.LayerNorm(1024), nn.Linear(1024, 10))),
            lambda m: F.cross_entropy(m(N(64, 512)), T(64, v=10)),
            3,
            opt=f,
        )


@job
def peft_zoo():
    import peft

    for c in (
        peft.LoraConfig(r=8, use_dora=True, target_modules=["q_proj", "v_proj"]),
        peft.IA3Config(target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"]),
        peft.PrefixTuningConfig(num_virtual_tokens=20, task_type="CAUSAL_LM"),
        peft.PromptTuningConfig(num_virtual_tokens=10, task_type="CAUSAL_LM"),
        peft.VeraConfig(r=64, target_modules=["q_proj", "v_proj"]),
    ):
        m = llama(512, 4, 8, 4, 1376)
        m.config.use_cache = False
        m = peft.get_peft_model(m, c).to(dev)
        fit(m, lambda m: (lambda x: m(input_ids=x, labels=x, attention_mask=torch.ones_like(x)).loss)(T(4, C([128, 200]))), 3)


@job
def esm_evoformer():
    class Tri(nn.Module):
        def __init__(s, c=64):
            super().__init__()
            s.n = nn.LayerNorm(c)
            s.a = nn.Linear(c, c)
            s.b = nn.Linear(c, c)
            s.g = nn.Linear(c, c)
            s.o = nn.Linear(c, c)

        def forward(s, z):
            x = s.n(z)
            return z + torch.sigmoid(s.g(x)) * s.o(torch.einsum("bikc,bjkc->bijc", s.a(x), s.b(x)))

    class OPM(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(128, 16)
            s.b = nn.Linear(128, 16)
            s.o = nn.Linear(256, 64)

        def forward(s, m):
            return s.o(torch.einsum("bsic,bsjd->bijcd", s.a(m), s.b(m)).flatten(-2))

    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.t = nn.ModuleList(Tri() for _ in range(4))
            s.p = OPM()
            s.r = nn.MultiheadAttention(128, 4, batch_first=True)

        def forward(s, m, z):
            z = z + s.p(m)
            for t in s.t:
                z = t(z)
            y = m.flatten(0, 1)
            return z.square().mean() + s.r(y, y, y)[0].square().mean()

    fit(on(M), lambda m: m(N(1, 32, 128, 128), N(1, 128, 128, 64)), 3, amp=BF)


@job
def hifigan():
    class RB(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.c = nn.ModuleList(
                nn.utils.parametrizations.weight_norm(nn.Conv1d(c, c, k, padding=d * (k - 1) // 2, dilation=d)) for k in (3, 7) for d in (1, 3, 5)
            )

        def forward(s, x):
            for c in s.c:
                x = x + c(F.leaky_relu(x, 0.1))
            return x

    def G():
        return nn.Sequential(
            nn.Conv1d(80, 256, 7, padding=3),
            *[
                y
                for i, (k, u) in enumerate(((16, 8), (16, 8), (4, 2), (4, 2)))
                for y in (nn.LeakyReLU(0.1), nn.ConvTranspose1d(256 >> i, 128 >> i, k, u, (k - u) // 2), RB(128 >> i))
            ],
            nn.Conv1d(16, 1, 7, padding=3),
            nn.Tanh()
        )

    fit(on(G), lambda m: m(N(8, 80, 32)).abs().mean(), 3)
    fit(on(G), lambda m: m(N(4, 80, 50)).abs().mean(), 2, amp=HF16, scaler=True)


@job
def mpd_disc():
    d = on(
        lambda: nn.Sequential(
            *[y for i, o in ((1, 32), (32, 128), (128, 512)) for y in (nn.Conv2d(i, o, (5, 1), (3, 1), (2, 0)), nn.LeakyReLU(0.1))],
            nn.Conv2d(512, 1, (3, 1), 1, (1, 0))
        )
    )

    def loss(d):
        x = N(8, 1, 8192)
        return sum(d(F.pad(x, (0, (p - 8192 % p) % p), "reflect").view(8, 1, -1, p)).square().mean() for p in (2, 3, 5, 7, 11))

    fit(d, loss, 3)


@job
def stft_enh():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.GRU(257, 256, 2, batch_first=True, bidirectional=True)
            s.o = nn.Linear(512, 257)
            s.register_buffer("w", torch.hann_window(512))

        def forward(s, x):
            z = torch.stft(x, 512, 128, window=s.w, return_complex=True)
            m = torch.sigmoid(s.o(s.l(z.abs().transpose(1, 2))[0])).transpose(1, 2)
            return torch.istft(z * m, 512, 128, window=s.w, length=x.size(1))

    fit(on(M), lambda m: (lambda x: F.l1_loss(m(x), x))(N(16, 32000)), 3)


@job
def s4_fftconv():
    class L(nn.Module):
        def __init__(s, d=256, n=2048):
            super().__init__()
            s.k = nn.Parameter(torch.randn(d, n) * 0.02)
            s.o = nn.Linear(d, 2 * d)

        def forward(s, u):
            n = u.size(-1)
            y = torch.fft.irfft(torch.fft.rfft(s.k[:, :n], 2 * n) * torch.fft.rfft(u, 2 * n), 2 * n)[..., :n]
            return u + F.glu(s.o(F.gelu(y).transpose(1, 2)), -1).transpose(1, 2)

    fit(on(lambda: nn.Sequential(*[L() for _ in range(4)])), lambda m: m(N(16, 256, C([1024, 2048, 1500]))).square().mean(), 4)


@job
def convlstm():
    class Cell(nn.Module):
        def __init__(s, i, h):
            super().__init__()
            s.c = nn.Conv2d(i + h, 4 * h, 3, padding=1)

        def forward(s, x, st):
            h, c = st
            i, f, o, g = s.c(torch.cat([x, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    m = on(Cell, 1, 64)

    def loss(m):
        x = N(8, 10, 1, 64, 64)
        h = c = torch.zeros(8, 64, 64, 64, device=dev)
        for t in range(10):
            h, c = m(x[:, t], (h, c))
        return h.square().mean()

    fit(m, loss, 3)


@job
def tcn_ecg():
    m = on(
        lambda: nn.Sequential(
            *[y for i in range(6) for y in (nn.Conv1d(12 if i == 0 else 64, 64, 7, padding=3 << i, dilation=1 << i), nn.BatchNorm1d(64), nn.ReLU())],
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(64, 5)
        )
    )
    fit(m, lambda m: F.cross_entropy(m(N(64, 12, 5000)), T(64, v=5)), 3)


@job
def pointnet_knn():
    def knn(x, k):
        return torch.cdist(x, x).topk(k, -1, largest=False).indices

    def fps(x, n):
        b = torch.arange(x.size(0), device=dev)
        i = torch.zeros(x.size(0), n, dtype=torch.long, device=dev)
        d = torch.full(x.shape[:2], 1e9, device=dev)
        f = torch.zeros(x.size(0), dtype=torch.long, device=dev)
        for k in range(n):
            i[:, k] = f
            d = torch.minimum(d, (x - x[b, f][:, None]).square().sum(-1))
            f = d.argmax(-1)
        return i

    m = on(lambda: nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 128)))

    def loss(m):
        x = N(8, 1024, 3)
        i = fps(x, 64)
        c = torch.gather(x, 1, i[..., None].expand(-1, -1, 3))
        k = torch.cdist(c, x).topk(16, -1, largest=False).indices
        g = x[torch.arange(8, device=dev)[:, None, None], k]
        return m(torch.cat([g - c[:, :, None], g], -1)).max(2)[0].square().mean() + knn(x, 8).float().mean() * 0

    fit(m, loss, 2)


@job
def aug_metrics():
    import torchvision.transforms.v2 as V, torchmetrics, torchvision

    t = V.Compose(
        [
            V.RandomResizedCrop(160, antialias=True),
            V.RandomHorizontalFlip(),
            V.ColorJitter(0.3, 0.3, 0.3),
            V.RandomRotation(15),
            V.GaussianBlur(5),
            V.ToDtype(torch.float32, scale=True),
            V.Normalize([0.5] * 3, [0.2] * 3),
        ]
    )
    m = on(torchvision.models.regnet_y_400mf)
    acc = torchmetrics.Accuracy("multiclass", num_classes=1000).to(dev)
    cm = torchmetrics.ConfusionMatrix("multiclass", num_classes=1000).to(dev)
    au = torchmetrics.AUROC("binary").to(dev)

    def loss(m):
        x = t(T(32, 3, 256, 256, v=255).byte())
        y = T(32, v=1000)
        o = m(x)
        acc.update(o, y)
        cm.update(o, y)
        au.update(o[:, 0].detach(), y % 2)
        return F.cross_entropy(o, y)

    torch.manual_seed(3)
    random.seed(3)
    fit(m, loss, 3)
    acc.compute()
    cm.compute()
    au.compute()


@job
def save_load():
    import io

    m = on(lambda: nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)]))
    o = torch.optim.AdamW(m.parameters())
    m(N(8, 2048)).sum().backward()
    o.step()
    f = io.BytesIO()
    torch.save(dict(m=m.state_dict(), o=o.state_dict()), f)
    f.seek(0)
    s = torch.load(f, map_location="cpu")
    n = on(lambda: nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(8)]))
    n.load_state_dict(s["m"])
    p = torch.optim.AdamW(n.parameters())
    p.load_state_dict(s["o"])
    n(N(8, 2048)).sum().backward()
    p.step()
    f.seek(0)
    s = torch.load(f, map_location="cuda")
    n.load_state_dict(s["m"])
    del s


@job
def kd_ensemble():
    from torch.func import stack_module_state, functional_call, vmap
    import copy

    k = [on(lambda: nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 100))) for _ in range(5)]
    p, b = stack_module_state(k)
    base = copy.deepcopy(k[0]).to("meta")
    s = on(lambda: nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 100)))

    def loss(s):
        x = N(256, 256)
        with torch.no_grad():
            t = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(p, b, x).mean(0)
        return F.kl_div(F.log_softmax(s(x) / 4, -1), F.softmax(t / 4, -1), reduction="batchmean") * 16

    fit(s, loss, 3)


@job
def als_sinkhorn():
    u, v, r = N(2000, 32), N(3000, 32), torch.rand(2000, 3000, device=dev)
    for i in range(3):
        a = v.T @ v + 0.1 * torch.eye(32, device=dev)
        u = torch.linalg.solve(a, (r @ v).T).T
        v = torch.cholesky_solve((r.T @ u).T, torch.linalg.cholesky(u.T @ u + 0.1 * torch.eye(32, device=dev))).T
    K = torch.exp(-torch.cdist(N(1000, 3), N(1200, 3)))
    a = torch.ones(1000, device=dev)
    for i in range(20):
        b = 1 / (K.T @ a)
        a = 1 / (K @ b)
    x = N(5000, 200)
    q = torch.linalg.qr(x @ N(200, 20))[0]
    torch.linalg.svd(q.T @ x, full_matrices=False)
    torch.lobpcg((lambda z: z @ z.T)(N(300, 300)), k=3, niter=5)


@job
def ppo_vec():
    n = 1024
    pi = on(lambda: nn.Sequential(nn.Linear(48, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 12)))
    vf = on(lambda: nn.Sequential(nn.Linear(48, 256), nn.Tanh(), nn.Linear(256, 1)))
    ls = nn.Parameter(torch.zeros(12, device=dev))
    o = torch.optim.Adam([*pi.parameters(), *vf.parameters(), ls], 3e-4)
    for it in range(2):
        obs, act, lp, val, rew = [], [], [], [], []
        s = N(n, 48)
        with torch.no_grad():
            for t in range(16):
                d = torch.distributions.Normal(pi(s), ls.exp())
                a = d.sample()
                obs.append(s)
                act.append(a)
                lp.append(d.log_prob(a).sum(-1))
                val.append(vf(s)[:, 0])
                s = torch.tanh(s + 0.1 * N(n, 48))
                rew.append(-s.square().sum(-1))
            adv, g = [], torch.zeros(n, device=dev)
            nv = vf(s)[:, 0]
            for t in reversed(range(16)):
                dl = rew[t] + 0.99 * nv - val[t]
                g = dl + 0.95 * 0.99 * g
                adv.insert(0, g)
                nv = val[t]
            O, A, L, D, V_ = map(torch.cat, (obs, act, lp, adv, val))
            ret = D + V_
            D = (D - D.mean()) / (D.std() + 1e-8)
        for e in range(2):
            for ix in torch.randperm(16 * n, device=dev).split(4096):
                d = torch.distributions.Normal(pi(O[ix]), ls.exp())
                r = (d.log_prob(A[ix]).sum(-1) - L[ix]).exp()
                l = (
                    -torch.min(r * D[ix], r.clamp(0.8, 1.2) * D[ix]).mean()
                    + 0.5 * (vf(O[ix])[:, 0] - ret[ix]).square().mean()
                    - 0.01 * d.entropy().sum(-1).mean()
                )
                o.zero_grad()
                l.backward()
                nn.utils.clip_grad_norm_([*pi.parameters(), *vf.parameters(), ls], 0.5)
                o.step()


@job
def sac_twin():
    q = on(lambda: nn.ModuleList(nn.Sequential(nn.Linear(30, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)) for _ in range(4)))
    pi = on(lambda: nn.Sequential(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 12)))
    qo, po = torch.optim.Adam(q.parameters(), 3e-4), torch.optim.Adam(pi.parameters(), 3e-4)
    la = torch.zeros(1, device=dev, requires_grad=True)
    ao = torch.optim.Adam([la], 3e-4)

    def act(s):
        m, l = pi(s).chunk(2, -1)
        d = torch.distributions.Normal(m, l.clamp(-5, 2).exp())
        u = d.rsample()
        a = torch.tanh(u)
        return a, (d.log_prob(u) - torch.log(1 - a.square() + 1e-6)).sum(-1, keepdim=True)

    for i in range(20):
        s, a, r, n = N(256, 24), N(256, 6), N(256, 1), N(256, 24)
        with torch.no_grad():
            b, lp = act(n)
            y = r + 0.99 * (torch.min(q[2](torch.cat([n, b], 1)), q[3](torch.cat([n, b], 1))) - la.exp() * lp)
        (F.mse_loss(q[0](torch.cat([s, a], 1)), y) + F.mse_loss(q[1](torch.cat([s, a], 1)), y)).backward()
        qo.step()
        qo.zero_grad()
        b, lp = act(s)
        (la.exp().detach() * lp - torch.min(q[0](torch.cat([s, b], 1)), q[1](torch.cat([s, b], 1)))).mean().backward()
        po.step()
        po.zero_grad()
        (-(la * (lp.detach() - 6)).mean()).backward()
        ao.step()
        ao.zero_grad()
        with torch.no_grad():
            for x, t in zip([*q[0].parameters(), *q[1].parameters()], [*q[2].parameters(), *q[3].parameters()]):
                t.lerp_(x, 0.005)


@job
def fsdp_one():
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy

    m = on(lambda: nn.Sequential(*[nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True) for _ in range(6)]))
    for l in m:
        fully_shard(l, mp_policy=MixedPrecisionPolicy(param_dtype=BF))
    fully_shard(m)
    fit(m, lambda m: m(N(8, 256, 512)).float().square().mean(), 3)
    dist.destroy_process_group()


@job
def ddp_one():
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    import torchvision

    m = nn.parallel.DistributedDataParallel(
        nn.SyncBatchNorm.convert_sync_batchnorm(on(torchvision.models.resnet34)), device_ids=[0], gradient_as_bucket_view=True
    )
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 128, 128)), T(32, v=1000)), 3)
    dist.destroy_process_group()


@job
def assisted_gen():
    m, a = llama(1024, 6, 16, 4, 2816).eval(), llama(256, 2, 4, 2, 704).eval()
    with torch.no_grad():
        m.generate(input_ids=T(1, 60), assistant_model=a, max_new_tokens=24, min_new_tokens=24, do_sample=False, pad_token_id=0)


@job
def cont_batch():
    from transformers import GenerationConfig

    m = llama(512, 4, 8, 4, 1376).eval()
    m.generation_config.pad_token_id = 0
    m.generate_batch(
        inputs=[[R(1, 31999) for _ in range(R(10, 200))] for _ in range(12)],
        generation_config=GenerationConfig(max_new_tokens=12, eos_token_id=-1, pad_token_id=0, do_sample=False),
        progress_bar=False,
    )


@job
def llama3b_full_adamw():
    m = llama(2560, 10, 20, 4, 6912, 64000)
    m.config.use_cache = False
    m.gradient_checkpointing_enable({"use_reentrant": False})
    fit(
        m,
        lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(C([1, 2]), C([1024, 2048]))),
        4,
        opt=lambda p: torch.optim.AdamW(p, foreach=False),
        accum=2,
    )


@job
def mixtral_lora():
    from transformers import MixtralConfig, MixtralForCausalLM
    from peft import LoraConfig, get_peft_model

    m = on(
        MixtralForCausalLM,
        MixtralConfig(
            hidden_size=1024,
            intermediate_size=3584,
            num_hidden_layers=4,
            num_attention_heads=16,
            num_key_value_heads=4,
            vocab_size=32000,
            num_local_experts=8,
        ),
        dt=BF,
    )
    m.config.use_cache = False
    m = get_peft_model(m, LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(2, C([512, 800]))), 3)


@job
def t5_gen_sum():
    from transformers import T5Config, T5ForConditionalGeneration

    m = on(T5ForConditionalGeneration, T5Config(d_model=768, num_layers=6, num_heads=12, d_ff=2048, d_kv=64, decoder_start_token_id=0), dt=BF).eval()
    with torch.no_grad():
        for L in (333, 512, 90):
            m.generate(input_ids=T(8, L), max_new_tokens=20, min_new_tokens=20, num_beams=4, length_penalty=0.8, no_repeat_ngram_size=3)


@job
def bart_fp16_lab():
    from transformers import BartConfig, BartForConditionalGeneration

    m = on(
        BartForConditionalGeneration,
        BartConfig(
            encoder_layers=6,
            decoder_layers=6,
            d_model=768,
            encoder_ffn_dim=3072,
            decoder_ffn_dim=3072,
            encoder_attention_heads=12,
            decoder_attention_heads=12,
            vocab_size=50265,
        ),
    )
    fit(m, lambda m: m(input_ids=T(8, C([256, 400])), labels=T(8, C([60, 90]))).loss, 4, amp=BF, accum=2)


@job
def vit_mae_sizes():
    import timm

    m = on(timm.create_model, "vit_base_patch16_clip_224", num_classes=0)
    fit(m, lambda m: m(N(C([16, 33, 48]), 3, 224, 224)).square().mean(), 4, amp=HF16, scaler=True)


@job
def clip_big():
    import timm

    v, t = on(timm.create_model, "resnet50", num_classes=512), on(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6)
    )
    e = on(nn.Embedding, 49408, 512)
    m = nn.ModuleList([v, t, e])

    def loss(m):
        a = F.normalize(v(N(128, 3, 160, 160)).float(), dim=-1)
        b = F.normalize(t(e(T(128, 77, v=49408)))[:, -1].float(), dim=-1)
        z = a @ b.T * 100
        y = torch.arange(128, device=dev)
        return (F.cross_entropy(z, y) + F.cross_entropy(z.T, y)) / 2

    fit(m, loss, 3, amp=BF)


@job
def unet_diff():
    class RBk(nn.Module):
        def __init__(s, i, o):
            super().__init__()
            s.a = nn.Sequential(nn.GroupNorm(32, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
            s.t = nn.Linear(512, o)
            s.b = nn.Sequential(nn.GroupNorm(32, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1))
            s.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(s, x, t):
            return s.s(x) + s.b(s.a(x) + s.t(t)[..., None, None])

    class At(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.n = nn.GroupNorm(32, c)
            s.q = nn.Conv2d(c, 3 * c, 1)
            s.o = nn.Conv2d(c, c, 1)

        def forward(s, x):
            b, c, h, w = x.shape
            q, k, v = s.q(s.n(x)).view(b, 3, 8, c // 8, h * w).transpose(-1, -2).unbind(1)
            return x + s.o(F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w))

    class U(nn.Module):
        def __init__(s, c=(128, 256, 384)):
            super().__init__()
            s.i = nn.Conv2d(4, 128, 3, padding=1)
            s.d = nn.ModuleList(RBk(c[max(i - 1, 0)], c[i]) for i in range(3))
            s.x = nn.ModuleList(At(k) for k in c)
            s.dn = nn.ModuleList(nn.Conv2d(k, k, 3, 2, 1) for k in c[:2])
            s.m = RBk(384, 384)
            s.u = nn.ModuleList(RBk(c[i] + c[min(i + 1, 2)], c[i]) for i in range(3))
            s.o = nn.Conv2d(128, 4, 3, padding=1)

        def forward(s, x, t):
            h = s.i(x)
            k = []
            for i in range(3):
                h = s.x[i](s.d[i](h, t))
                k.append(h)
                h = s.dn[i](h) if i < 2 else h
            h = s.m(h, t)
            for i in (2, 1, 0):
                h = s.u[i](torch.cat([h, k[i]], 1), t)
                h = F.interpolate(h, scale_factor=2) if i else h
            return s.o(h)

    m = on(U)
    fit(m, lambda m: F.mse_loss(m(N(8, 4, 48, 64), N(8, 512)).float(), N(8, 4, 48, 64)), 3, amp=BF)
    m.to(memory_format=torch.channels_last).half().eval()
    with torch.no_grad():
        for s in ((2, 4, 64, 64), (4, 4, 96, 64)):
            x = N(*s, dt=HF16).contiguous(memory_format=torch.channels_last)
            for i in range(3):
                e = m(x, N(s[0], 512, dt=HF16))
                x = x - 0.1 * e


@job
def vae_tiles():
    def dec():
        return nn.Sequential(
            nn.Conv2d(4, 256, 3, padding=1),
            *[
                y
                for i in range(3)
                for y in (nn.GroupNorm(32, 256 >> i), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(256 >> i, 128 >> i, 3, padding=1))
            ],
            nn.Conv2d(32, 3, 3, padding=1)
        )

    m = on(dec).half().eval()
    with torch.no_grad():
        for s in ((1, 4, 64, 64), (2, 4, 96, 128), (1, 4, 128, 128)):
            m(N(*s, dt=HF16))
    m = on(dec)
    fit(m, lambda m: m(N(4, 4, 32, 32)).square().mean(), 2)


@job
def video_dit():
    class B3(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.s = nn.MultiheadAttention(d, 8, batch_first=True)
            s.t = nn.MultiheadAttention(d, 8, batch_first=True)
            s.m = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(s, x):
            b, f, n, d = x.shape
            y = x.reshape(b * f, n, d)
            x = x + s.s(y, y, y, need_weights=False)[0].view(b, f, n, d)
            y = x.transpose(1, 2).reshape(b * n, f, d)
            x = x + s.t(y, y, y, need_weights=False)[0].view(b, n, f, d).transpose(1, 2)
            return x + s.m(x)

    class V(nn.Module):
        def __init__(s, d=512):
            super().__init__()
            s.p = nn.Conv3d(4, d, (1, 2, 2), (1, 2, 2))
            s.l = nn.ModuleList(B3(d) for _ in range(6))
            s.o = nn.Linear(d, 16)

        def forward(s, x):
            h = s.p(x)
            b, d, f, a, c = h.shape
            h = h.flatten(3).permute(0, 2, 3, 1)
            for l in s.l:
                h = l(h)
            return s.o(h)

    fit(on(V), lambda m: m(N(2, 4, 12, 32, 32)).square().mean(), 3, amp=BF)


@job
def maskrcnn_v2():
    import torchvision

    m = on(torchvision.models.detection.maskrcnn_resnet50_fpn_v2, weights=None, weights_backbone=None)

    def loss(m):
        xs = [torch.rand(3, 480, C([400, 512, 600]), device=dev) for _ in range(2)]
        t = [
            dict(
                boxes=torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 220]], device=dev),
                labels=T(2, v=90),
                masks=torch.zeros(2, *x.shape[1:], device=dev, dtype=torch.uint8),
            )
            for x in xs
        ]
        return sum(m(xs, t).values())

    fit(m, loss, 2)


@job
def deeplab_cl():
    import torchvision

    m = on(torchvision.models.segmentation.deeplabv3_resnet50, weights=None, weights_backbone=None).to(memory_format=torch.channels_last)
    fit(
        m,
        lambda m: F.cross_entropy(m(N(8, 3, 321, 321).contiguous(memory_format=torch.channels_last))["out"], T(8, 321, 321, v=21), ignore_index=255),
        2,
        amp=BF,
    )


@job
def seg_former_hf():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    m = on(SegformerForSemanticSegmentation, SegformerConfig(num_labels=150))
    fit(m, lambda m: m(pixel_values=N(4, 3, 512, 512), labels=T(4, 512, 512, v=150)).loss, 3, amp=HF16, scaler=True)


@job
def het_gnn():
    from torch_geometric.nn import HeteroConv, GCNConv, SAGEConv, GATConv, TransformerConv

    m = on(
        lambda: HeteroConv(
            {("a", "x", "a"): GCNConv(64, 64), ("a", "y", "b"): SAGEConv((64, 32), 64), ("b", "z", "a"): GATConv((32, 64), 64, add_self_loops=False)}
        )
    )
    tc = on(TransformerConv, 64, 16, heads=4)
    x = dict(a=N(5000, 64), b=N(3000, 32))
    e = {("a", "x", "a"): T(2, 40000, v=5000), ("a", "y", "b"): T(2, 20000, v=3000), ("b", "z", "a"): T(2, 20000, v=3000)}
    fit(nn.ModuleList([m, tc]), lambda _: sum(v.square().mean() for v in m(x, e).values()) + tc(x["a"], e[("a", "x", "a")]).square().mean(), 3)


@job
def jit_lstm_deepar():
    class Cell(torch.jit.ScriptModule):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(torch.randn(512, 128))
            s.u = nn.Parameter(torch.randn(512, 128))

        @torch.jit.script_method
        def forward(s, x, h, c):
            g = torch.mm(x, s.w.t()) + torch.mm(h, s.u.t())
            i, f, o, z = g.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
            return torch.sigmoid(o) * torch.tanh(c), c

    m = on(Cell)

    def loss(m):
        h = c = torch.zeros(64, 128, device=dev)
        for t in range(30):
            h, c = m(N(64, 128), h, c)
        return h.square().mean()

    fit(m, loss, 3)


@job
def dcn_roi():
    import torchvision

    class D(nn.Module):
        def __init__(s):
            super().__init__()
            s.o = nn.Conv2d(64, 27, 3, padding=1)
            s.d = torchvision.ops.DeformConv2d(64, 64, 3, padding=1)

        def forward(s, x):
            o = s.o(x)
            return torchvision.ops.roi_align(
                s.d(x, o[:, :18], torch.sigmoid(o[:, 18:])), [torch.tensor([[0.0, 0, 30, 30], [5, 5, 40, 50]], device=dev)] * x.size(0), 7
            )

    fit(on(D), lambda m: m(N(4, 64, 64, 80)).square().mean(), 3)


@job
def aot_pkg():
    m = on(lambda: nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64))).eval()
    ep = torch.export.export(m, (N(8, 256),))
    p = torch._inductor.aoti_compile_and_package(ep, package_path="/tmp/aot%d.pt2" % os.getpid())
    f = torch._inductor.aoti_load_package(p)
    with torch.no_grad():
        for i in range(3):
            f(N(8, 256))


@job
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


@job
def c_bert_mlm():
    from transformers import BertConfig, BertForMaskedLM

    m = comp(on(BertForMaskedLM, BertConfig(num_hidden_layers=3)))
    fit(m, lambda m: (lambda x: m(input_ids=x, attention_mask=torch.ones_like(x), labels=x).loss)(T(16, 128, v=30522)), 3, amp=BF)


@job
def c_gpt2_fp16():
    from transformers import GPT2Config, GPT2LMHeadModel

    m = comp(on(GPT2LMHeadModel, GPT2Config(n_layer=3, use_cache=False)))
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(4, 300, v=50257)), 3, amp=HF16, scaler=True)


@job
def c_gpt2_bf16w():
    from transformers import GPT2Config, GPT2LMHeadModel

    m = comp(on(GPT2LMHeadModel, GPT2Config(n_layer=3, use_cache=False), dt=BF))
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(8, 1024, v=50257)), 3)


@job
def c_nanogpt():
    class G(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(50257, 512)
            s.p = nn.Embedding(1024, 512)
            s.b = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True, activation="gelu"), 4)
            s.h = nn.Linear(512, 50257, bias=False)

        def forward(s, x, y):
            h = s.b(
                s.e(x) + s.p(torch.arange(x.size(1), device=dev)),
                mask=nn.Transformer.generate_square_subsequent_mask(x.size(1), device=dev),
                is_causal=True,
            )
            return F.cross_entropy(s.h(h).view(-1, 50257), y.view(-1))

    m = comp(on(G))
    fit(m, lambda m: m(T(12, 512, v=50257), T(12, 512, v=50257)), 4, amp=BF, opt=lambda p: torch.optim.AdamW(p, fused=True))


@job
def c_odd_mlp():
    m = comp(on(lambda: nn.Sequential(nn.Linear(1023, 4095), nn.GELU(), nn.Linear(4095, 2047), nn.GELU(), nn.Linear(2047, 33))))
    fit(m, lambda m: m(N(4096, 1023)).square().mean(), 3, amp=BF)
    fit(m, lambda m: m(N(1111, 1023)).square().mean(), 3)


@job
def c_vit_odd():
    import timm

    m = comp(on(timm.create_model, "vit_small_patch14_dinov2", num_classes=101, img_size=224))
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=101)), 3, amp=HF16, scaler=True)


@job
def c_bmm_odd():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.q = nn.Linear(512, 1536)

        def forward(s, x):
            q, k, v = s.q(x).view(*x.shape[:2], 3, 8, 64).permute(2, 0, 3, 1, 4)
            return ((q @ k.transpose(-1, -2) / 8).softmax(-1) @ v).transpose(1, 2).flatten(2)

    fit(comp(on(M)), lambda m: m(N(32, 577, 512)).square().mean(), 3, amp=BF)


@job
def c_max_auto():
    fit(
        comp(on(lambda: nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1001))), mode="max-autotune-no-cudagraphs"),
        lambda m: m(N(2048, 1024)).square().mean(),
        3,
        amp=BF,
    )


@job
def c_llama_tok():
    m = comp(llama(1024, 3, 16, 4, 2816, 32003))
    m.config.use_cache = False
    fit(m, lambda m: (lambda x: m(input_ids=x, labels=x).loss)(T(4, 777)), 3)


@job
def c_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    m = comp(on(T5ForConditionalGeneration, T5Config(d_model=512, num_layers=3, num_heads=8, d_ff=2048, decoder_start_token_id=0, use_cache=False)))
    fit(m, lambda m: m(input_ids=T(8, 200), labels=T(8, 50)).loss, 3, amp=BF)


@job
def c_resnet_nchw():
    import torchvision

    m = comp(on(torchvision.models.resnet18))
    fit(m, lambda m: F.cross_entropy(m(N(64, 3, 160, 160)), T(64, v=1000)), 3)


def one(name, out):
    t = time.time()
    torch.manual_seed(0)
    global rng
    rng = random.Random(5)
    try:
        torch.cuda.init()
        torch.cuda.memory._record_memory_history(context=None, max_entries=5000000)
        J[name]()
        note = "ok"
    except BaseException as e:
        traceback.print_exc()
        note = "FAILED " + repr(e)[:200].replace("\n", " ")
    try:
        torch.cuda.synchronize()
        s = torch.cuda.memory_stats()
        row = (
            [name, note]
            + [
                s[k]
                for k in (
                    "allocation.all.allocated",
                    "requested_bytes.all.allocated",
                    "requested_bytes.all.peak",
                    "allocated_bytes.all.peak",
                    "reserved_bytes.all.peak",
                    "num_alloc_retries",
                )
            ]
            + [round(time.time() - t, 1)]
        )
        import numpy as np

        tr = torch.cuda.memory._snapshot()["device_traces"][0]
        code = {
            "alloc": 0,
            "free_requested": 1,
            "free_completed": 2,
            "segment_alloc": 3,
            "segment_free": 4,
            "segment_map": 5,
            "segment_unmap": 6,
            "snapshot": 7,
            "oom": 8,
        }
        ids, seq, a = {}, [], []
        for e in tr:
            c = code.get(e["action"], 9)
            if c == 0:
                ids[e["addr"]] = len(seq)
                seq.append(e["size"])
                a.append((0, e["size"], 0))
            elif c == 2:
                a.append((2, e["size"], ids.get(e["addr"], -1)))
            elif c in (3, 4):
                a.append((c, e["size"], 0))
        np.savez_compressed(os.path.join(out, name + ".npz"), np.array(a, dtype=np.int64))
    except BaseException as e:
        row = [name, note + " STATS " + repr(e)[:100]]
    with open(os.path.join(out, "rows.csv"), "a") as f:
        csv.writer(f).writerow(row)


def main():
    out, workers, limit, names = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    os.makedirs(out, exist_ok=True)
    if not names:
        names = list(J)
    end = time.time() + limit
    live = {}
    todo = list(names)
    cap = float(os.environ.get("LIMIT", 150))
    while todo or live:
        while todo and len(live) < workers and time.time() < end:
            n = todo.pop(0)
            pid = os.fork()
            if pid == 0:
                fd = os.open(os.path.join(out, n + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(fd, 1)
                os.dup2(fd, 2)
                one(n, out)
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
            live[pid] = (n, time.time())
        if time.time() > end and todo:
            print("NOT RUN", *todo)
            todo = []
        pid, st = os.waitpid(-1, os.WNOHANG)
        if pid:
            n, t = live.pop(pid)
            if st:
                open(os.path.join(out, "rows.csv"), "a").write('%s,"DIED %d"\n' % (n, st))
        else:
            time.sleep(0.05)
        for p, (n, t) in list(live.items()):
            if time.time() - t > cap or time.time() > end + 5:
                os.kill(p, 9)


if __name__ == "__main__":
    main()
