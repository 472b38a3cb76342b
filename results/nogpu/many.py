# SPDX-License-Identifier: Apache-2.0
"""A batch of small programs of kinds that were not tried before: batch.py NAME prints the peaks of PyTorch's allocator as JSON."""
import json, sys, math, os
import torch
import torch.nn as nn
import torch.nn.functional as F

D = "cuda"


def steps(model, make, n=4, lr=1e-3, opt=None, amp=None, scaler=None):
    opt = opt or torch.optim.AdamW(model.parameters(), lr=lr)
    for i in range(n):
        with torch.autocast("cuda", amp, enabled=amp is not None):
            loss = make(i)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    return loss


def hf(cls, cfg, make, n=3, dtype=torch.bfloat16, train=True):
    m = cls(cfg).to(D, dtype)
    m.train(train)
    steps(m, lambda i: make(m, i), n)


def ids(b, t, v=1000):
    return torch.randint(5, v, (b, t), device=D)


# ---- language models of other families
def olmoe():
    from transformers import OlmoeConfig, OlmoeForCausalLM
    c = OlmoeConfig(vocab_size=8000, hidden_size=512, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, num_experts=16, num_experts_per_tok=4)
    hf(OlmoeForCausalLM, c, lambda m, i: (lambda x: m(x, labels=x).loss)(ids(4, 512, 8000)))


def granite_moe_hybrid():
    from transformers import AutoConfig, AutoModelForCausalLM
    c = AutoConfig.for_model("falcon_h1", vocab_size=8000, hidden_size=512, intermediate_size=1024, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, mamba_d_ssm=512, mamba_n_heads=16, mamba_d_head=32, mamba_n_groups=1, mamba_d_state=64)
    hf(AutoModelForCausalLM.from_config, c, lambda m, i: (lambda x: m(x, labels=x, use_cache=False).loss)(ids(2, 512, 8000)))


def recurrentgemma():
    from transformers import RecurrentGemmaConfig, RecurrentGemmaForCausalLM
    c = RecurrentGemmaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1536, num_hidden_layers=3, num_attention_heads=4, lru_width=512, attention_window_size=256)
    hf(RecurrentGemmaForCausalLM, c, lambda m, i: (lambda x: m(x, labels=x, use_cache=False).loss)(ids(2, 512, 8000)))


def rwkv():
    from transformers import RwkvConfig, RwkvForCausalLM
    c = RwkvConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=3, context_length=256)
    hf(RwkvForCausalLM, c, lambda m, i: (lambda x: m(x, labels=x).loss)(ids(2, 128, 8000)), dtype=torch.float32)


def zamba():
    from transformers import BambaConfig, BambaForCausalLM
    c = BambaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1024, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, attn_layer_indices=[1], mamba_n_heads=16, mamba_d_head=64, mamba_d_state=64, mamba_n_groups=1, mamba_expand=2)
    hf(BambaForCausalLM, c, lambda m, i: (lambda x: m(x, labels=x, use_cache=False).loss)(ids(2, 512, 8000)))


def bart_beam():
    from transformers import BartConfig, BartForConditionalGeneration
    with torch.device(D):
        m = BartForConditionalGeneration(BartConfig(vocab_size=8000, d_model=512, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=2048, decoder_ffn_dim=2048)).half().eval()
    for b in (4, 8):
        m.generate(ids(b, 128, 8000), num_beams=5, max_new_tokens=40, min_new_tokens=40, no_repeat_ngram_size=3)


def assisted():
    from transformers import LlamaConfig, LlamaForCausalLM
    with torch.device(D):
        big = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4)).bfloat16().eval()
        small = LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=256, intermediate_size=704, num_hidden_layers=2, num_attention_heads=4)).bfloat16().eval()
    for t in (64, 300):
        big.generate(ids(1, t, 8000), assistant_model=small, max_new_tokens=48, min_new_tokens=48, do_sample=False, pad_token_id=0)


def static_cache():
    from transformers import Qwen3Config, Qwen3ForCausalLM
    with torch.device(D):
        m = Qwen3ForCausalLM(Qwen3Config(vocab_size=8000, hidden_size=512, intermediate_size=1536, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=64)).bfloat16().eval()
    m.generate(ids(4, 200, 8000), cache_implementation="static", max_new_tokens=24, min_new_tokens=24, do_sample=True, top_k=50, pad_token_id=0)
    m.generate(ids(4, 90, 8000), max_new_tokens=24, min_new_tokens=24, do_sample=True, top_p=0.9, pad_token_id=0)


# ---- vision and audio
def mask2former():
    from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig
    c = Mask2FormerConfig(backbone_config=SwinConfig(embed_dim=48, depths=[1, 1, 2, 1], num_heads=[3, 6, 12, 24], out_features=["stage1", "stage2", "stage3", "stage4"]), num_labels=20, decoder_layers=4, encoder_layers=2, num_queries=50)
    def make(m, i):
        masks = [(torch.rand(4, 128, 128, device=D) > 0.5).float() for _ in range(2)]
        labels = [torch.arange(4, device=D) for _ in range(2)]
        return m(torch.randn(2, 3, 256, 256, device=D), mask_labels=masks, class_labels=labels).loss
    hf(Mask2FormerForUniversalSegmentation, c, make, dtype=torch.float32)


def deformable_detr():
    from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetConfig
    c = DeformableDetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=ResNetConfig(layer_type="bottleneck", depths=[2, 2, 2, 2], out_features=["stage2", "stage3", "stage4"]), num_labels=20, encoder_layers=2, decoder_layers=2, num_queries=100)
    def make(m, i):
        labels = [{"class_labels": torch.arange(3, device=D), "boxes": torch.rand(3, 4, device=D) * 0.4 + 0.3} for _ in range(2)]
        return m(torch.randn(2, 3, 320, 320, device=D), labels=labels).loss
    hf(DeformableDetrForObjectDetection, c, make, dtype=torch.float32)


def sam():
    from transformers import SamConfig, SamModel, SamVisionConfig
    c = SamConfig(vision_config=SamVisionConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, global_attn_indexes=[2], image_size=512, output_channels=256, mlp_dim=1024).to_dict(), prompt_encoder_config=dict(image_size=512, patch_size=16))
    def make(m, i):
        out = m(pixel_values=torch.randn(2, 3, 512, 512, device=D), input_points=torch.rand(2, 1, 3, 2, device=D) * 512, input_labels=torch.ones(2, 1, 3, dtype=torch.long, device=D), multimask_output=False)
        return F.binary_cross_entropy_with_logits(out.pred_masks, torch.rand_like(out.pred_masks).round())
    hf(SamModel, c, make, dtype=torch.float32)


def vits():
    from transformers import VitsConfig, VitsModel
    with torch.device(D):
        m = VitsModel(VitsConfig(vocab_size=60)).eval()
    with torch.no_grad():
        for t in (60, 120):
            m(ids(2, t, 60))


def encodec():
    from transformers import EncodecConfig, EncodecModel
    with torch.device(D):
        m = EncodecModel(EncodecConfig())
    m.train()
    opt = torch.optim.Adam(m.parameters(), lr=1e-4)
    for i in range(3):
        x = torch.randn(4, 1, 24000, device=D)
        out = m(x).audio_values
        loss = F.l1_loss(out[..., :24000], x)
        opt.zero_grad()
        loss.backward()
        opt.step()


def conformer_rnnt():
    import torchaudio
    enc = torchaudio.models.Conformer(80, 4, 1024, 4, 31, dropout=0.1).cuda()
    head = nn.Linear(80, 128).cuda()
    p = list(enc.parameters()) + list(head.parameters())
    opt = torch.optim.AdamW(p, 1e-3)
    for i in range(4):
        x = torch.randn(8, 600, 80, device=D)
        y, n = enc(x, torch.full((8,), 600, device=D))
        lp = head(y).log_softmax(-1).transpose(0, 1)
        loss = F.ctc_loss(lp, torch.randint(1, 128, (8, 40), device=D), torch.full((8,), 600, device=D), torch.full((8,), 40, device=D))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(p, 1.0)
        opt.step()


def spectro():
    import torchaudio.transforms as T
    f = nn.Sequential(T.MelSpectrogram(16000, 1024, hop_length=256, n_mels=80), T.AmplitudeToDB(), T.TimeMasking(30), T.FrequencyMasking(10)).cuda()
    net = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 35)).cuda()
    res = T.Resample(44100, 16000).cuda()
    steps(net, lambda i: F.cross_entropy(net(f(res(torch.randn(32, 44100 * 2, device=D))).unsqueeze(1)), torch.randint(0, 35, (32,), device=D)))


def timm_train(name, size, b, amp=torch.bfloat16, last=True, ch=3):
    import timm
    m = timm.create_model(name, num_classes=100).cuda()
    fmt = torch.channels_last if last else torch.contiguous_format
    m = m.to(memory_format=fmt)
    steps(m, lambda i: F.cross_entropy(m(torch.randn(b, ch, size, size, device=D).to(memory_format=fmt)), torch.randint(0, 100, (b,), device=D)), 3, amp=amp)


def coatnet(): timm_train("coatnet_0_rw_224", 224, 16)
def nfnet(): timm_train("nfnet_l0", 224, 16)
def eva02(): timm_train("eva02_tiny_patch14_224", 224, 16)
def hiera(): timm_train("hiera_tiny_224", 224, 16, last=False)
def rexnet_fp16(): timm_train("rexnet_100", 224, 32, torch.float16)
def davit(): timm_train("davit_tiny", 224, 16, last=False)
def convmixer(): timm_train("convmixer_768_32", 224, 8)
def levit(): timm_train("levit_128", 224, 64, None, last=False)
def gernet_fp32(): timm_train("gernet_s", 224, 32, None)
def vit_tv():
    import torchvision
    m = torchvision.models.vit_b_16(num_classes=10, image_size=224).cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(8, 3, 224, 224, device=D)), torch.randint(0, 10, (8,), device=D)), 3, opt=torch.optim.SGD(m.parameters(), 0.1, momentum=0.9))


def r3d():
    import torchvision
    m = torchvision.models.video.r2plus1d_18(num_classes=50).cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(4, 3, 8, 112, 112, device=D)), torch.randint(0, 50, (4,), device=D)), 3, amp=torch.float16)


def stylegan():
    class Mod(nn.Module):
        def __init__(s, i, o, k=3, up=False):
            super().__init__()
            s.w, s.aff, s.up, s.k = nn.Parameter(torch.randn(o, i, k, k)), nn.Linear(256, i), up, k
        def forward(s, x, z):
            b, c, h, w = x.shape
            if s.up:
                x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
                h, w = 2 * h, 2 * w
            k = s.w[None] * (s.aff(z) + 1).view(b, 1, c, 1, 1)
            k = k * torch.rsqrt(k.square().sum((2, 3, 4), keepdim=True) + 1e-8)
            return F.leaky_relu(F.conv2d(x.reshape(1, -1, h, w), k.reshape(-1, c, s.k, s.k), padding=s.k // 2, groups=b).view(b, -1, h, w), 0.2)
    class G(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.Parameter(torch.randn(1, 256, 4, 4))
            s.m = nn.Sequential(nn.Linear(128, 256), nn.LeakyReLU(), nn.Linear(256, 256))
            s.l = nn.ModuleList([Mod(256, 256), Mod(256, 256, up=True), Mod(256, 128, up=True), Mod(128, 64, up=True), Mod(64, 32, up=True)])
            s.o = Mod(32, 3, 1)
        def forward(s, z):
            z = s.m(z)
            x = s.c.expand(z.shape[0], -1, -1, -1)
            for l in s.l:
                x = l(x, z)
            return s.o(x, z)
    g = G().cuda()
    d = nn.Sequential(*[x for i, o in ((3, 32), (32, 64), (64, 128), (128, 256)) for x in (nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2))], nn.Flatten(), nn.Linear(256 * 16, 1)).cuda()
    og, od = torch.optim.Adam(g.parameters(), 1e-3, (0.0, 0.99)), torch.optim.Adam(d.parameters(), 1e-3, (0.0, 0.99))
    for i in range(4):
        real = torch.randn(16, 3, 64, 64, device=D, requires_grad=True)
        fake = g(torch.randn(16, 128, device=D))
        r = d(real)
        loss = F.softplus(-r).mean() + F.softplus(d(fake.detach())).mean()
        grad, = torch.autograd.grad(r.sum(), real, create_graph=True)
        (loss + 5 * grad.square().sum((1, 2, 3)).mean()).backward()
        od.step(); od.zero_grad()
        F.softplus(-d(g(torch.randn(16, 128, device=D)))).mean().backward()
        og.step(); og.zero_grad()


# ---- science
def e3nn_net():
    from e3nn import o3
    from e3nn.nn import FullyConnectedNet
    irreps = o3.Irreps("32x0e+16x1o+8x2e")
    sh = o3.Irreps.spherical_harmonics(2)
    tp = o3.FullyConnectedTensorProduct(irreps, sh, irreps, shared_weights=False).cuda()
    fc = FullyConnectedNet([16, 64, tp.weight_numel], torch.relu).cuda()
    lin = o3.Linear("8x0e", irreps).cuda()
    opt = torch.optim.Adam(list(fc.parameters()) + list(lin.parameters()), 1e-3)
    for i in range(4):
        pos = torch.randn(64, 3, device=D, requires_grad=True)
        a, b = torch.triu_indices(64, 64, 1, device=D)
        v = pos[a] - pos[b]
        y = o3.spherical_harmonics(sh, v, True, "component")
        x = lin(torch.randn(64, 8, device=D))
        w = fc(torch.randn(len(a), 16, device=D))
        m = tp(x[b], y, w)
        out = torch.zeros(64, m.shape[1], device=D).index_add(0, a, m)
        e = out[:, :32].sum()
        f, = torch.autograd.grad(e, pos, create_graph=True)
        opt.zero_grad()
        (e.square() * 1e-4 + f.square().mean()).backward()
        opt.step()


def neural_ode():
    from torchdiffeq import odeint, odeint_adjoint
    class Fn(nn.Module):
        def __init__(s):
            super().__init__()
            s.n = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 256))
        def forward(s, t, y):
            return s.n(y)
    f = Fn().cuda()
    t = torch.linspace(0, 1, 11, device=D)
    opt = torch.optim.Adam(f.parameters(), 1e-3)
    for solve in (odeint, odeint_adjoint):
        for i in range(2):
            y = solve(f, torch.randn(4096, 256, device=D), t, method="rk4")
            opt.zero_grad()
            y.square().mean().backward()
            opt.step()


def fno():
    class Spec(nn.Module):
        def __init__(s, c, m):
            super().__init__()
            s.m = m
            s.w = nn.Parameter(torch.randn(2, c, c, m, m, dtype=torch.cfloat) * 0.02)
        def forward(s, x):
            f = torch.fft.rfft2(x)
            o = torch.zeros_like(f)
            o[:, :, :s.m, :s.m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :s.m, :s.m], s.w[0])
            o[:, :, -s.m:, :s.m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -s.m:, :s.m], s.w[1])
            return torch.fft.irfft2(o, s=x.shape[-2:])
    class Net(nn.Module):
        def __init__(s):
            super().__init__()
            s.i, s.o = nn.Conv2d(3, 32, 1), nn.Conv2d(32, 1, 1)
            s.s = nn.ModuleList([Spec(32, 12) for _ in range(4)])
            s.c = nn.ModuleList([nn.Conv2d(32, 32, 1) for _ in range(4)])
        def forward(s, x):
            x = s.i(x)
            for a, b in zip(s.s, s.c):
                x = F.gelu(a(x) + b(x))
            return s.o(x)
    m = Net().cuda()
    steps(m, lambda i: m(torch.randn(16, 3, 128, 128, device=D)).square().mean())


def pinn():
    m = nn.Sequential(nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)).cuda()
    opt = torch.optim.LBFGS(m.parameters(), max_iter=5, history_size=10)
    x = torch.rand(20000, 2, device=D, requires_grad=True)
    def closure():
        opt.zero_grad()
        u = m(x)
        g, = torch.autograd.grad(u.sum(), x, create_graph=True)
        h, = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)
        l = (g[:, 1] - 0.1 * h[:, 0]).square().mean()
        l.backward()
        return l
    for i in range(3):
        opt.step(closure)


def splat():
    n, h, w = 4000, 64, 64
    p = [nn.Parameter(torch.rand(n, 3, device=D)), nn.Parameter(torch.zeros(n, 3, device=D)), nn.Parameter(torch.rand(n, 4, device=D)), nn.Parameter(torch.rand(n, 1, device=D))]
    opt = torch.optim.Adam(p, 1e-2)
    yx = torch.stack(torch.meshgrid(torch.linspace(0, 1, h, device=D), torch.linspace(0, 1, w, device=D), indexing="ij"), -1).view(-1, 2)
    for i in range(4):
        order = p[0][:, 2].argsort()
        mu, s, c, o = (q[order] for q in p)
        d = (yx[:, None] - mu[None, :, :2]) / (s[:, :2].exp() * 0.05)
        a = (torch.sigmoid(o).T * torch.exp(-0.5 * d.square().sum(-1))).clamp(max=0.99)
        t = torch.cumprod(1 - a + 1e-6, -1)
        img = ((a * t) @ torch.sigmoid(c[:, :3])).view(h, w, 3)
        opt.zero_grad()
        (img - 0.5).abs().mean().backward()
        opt.step()
        keep = torch.sigmoid(p[3].detach())[:, 0] > 0.005
        if i == 1:
            p = [nn.Parameter(torch.cat([q.detach(), q.detach()[:500]])) for q in p]
            opt = torch.optim.Adam(p, 1e-2)


def kalman():
    a = torch.eye(32, device=D, dtype=torch.float64) + 0.01 * torch.randn(512, 32, 32, device=D, dtype=torch.float64)
    p = torch.eye(32, device=D, dtype=torch.float64).expand(512, 32, 32)
    for i in range(20):
        p = a @ p @ a.mT + 0.1 * torch.eye(32, device=D, dtype=torch.float64)
        l = torch.linalg.cholesky(p + torch.eye(32, device=D, dtype=torch.float64))
        k = torch.cholesky_solve(p, l)
        p = p - k @ p
        p = 0.5 * (p + p.mT)
    torch.linalg.eigh(p[:64]); torch.linalg.svd(a[:16].float()); torch.linalg.lstsq(a[:8].float(), p[:8, :, :4].float()); torch.linalg.inv(a); torch.linalg.qr(a[:32])
    torch.linalg.matrix_exp(a[:16]); torch.linalg.det(a)


# ---- training techniques
def gpt(layers=4, d=512, v=8000, t=512):
    class B(nn.Module):
        def __init__(s):
            super().__init__()
            s.n1, s.n2, s.q, s.o, s.u, s.d = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        def forward(s, x):
            b, t, _ = x.shape
            q, k, w = s.q(s.n1(x)).view(b, t, 3, d // 64, 64).permute(2, 0, 3, 1, 4)
            x = x + s.o(F.scaled_dot_product_attention(q, k, w, is_causal=True).transpose(1, 2).reshape(b, t, d))
            return x + s.d(F.gelu(s.u(s.n2(x))))
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.e, s.p, s.h, s.n, s.f = nn.Embedding(v, d), nn.Embedding(4096, d), nn.ModuleList([B() for _ in range(layers)]), nn.LayerNorm(d), nn.Linear(d, v)
        def forward(s, x, y=None):
            h = s.e(x) + s.p(torch.arange(x.shape[1], device=x.device))
            for b in s.h:
                h = b(h)
            l = s.f(s.n(h))
            return F.cross_entropy(l.flatten(0, 1).float(), x.flatten()) if y is None else l
    return M().cuda()


def muon():
    m = gpt()
    two = [p for p in m.parameters() if p.ndim == 2]
    rest = [p for p in m.parameters() if p.ndim != 2]
    o1, o2 = torch.optim.Muon(two, lr=1e-3), torch.optim.AdamW(rest, lr=1e-3, fused=True)
    for i in range(4):
        with torch.autocast("cuda", torch.bfloat16):
            loss = m(ids(8, 512, 8000))
        loss.backward()
        for o in (o1, o2):
            o.step(); o.zero_grad(set_to_none=True)


def sam_opt():
    m = gpt()
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, foreach=True)
    for i in range(3):
        x = ids(4, 512, 8000)
        m(x).backward()
        with torch.no_grad():
            n = torch.stack([p.grad.norm() for p in m.parameters() if p.grad is not None]).norm()
            e = {p: p.grad * (0.05 / (n + 1e-12)) for p in m.parameters() if p.grad is not None}
            for p, d in e.items():
                p.add_(d)
        o.zero_grad()
        m(x).backward()
        with torch.no_grad():
            for p, d in e.items():
                p.sub_(d)
        o.step(); o.zero_grad()


def accumulate_ema():
    m = gpt()
    ema = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    o = torch.optim.AdamW(m.parameters(), 1e-3, amsgrad=True)
    sc = torch.amp.GradScaler("cuda")
    for i in range(8):
        with torch.autocast("cuda", torch.float16):
            l = m(ids(4, 300 + 40 * i, 8000)) / 4
        sc.scale(l).backward()
        if i % 4 == 3:
            sc.unscale_(o)
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            sc.step(o); sc.update(); o.zero_grad()
            ema.update_parameters(m)
    ema.eval()
    with torch.no_grad():
        ema(ids(4, 512, 8000), 1)


def maml():
    from torch.func import functional_call, grad, vmap
    m = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.GroupNorm(8, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 5)).cuda()
    p = dict(m.named_parameters())
    o = torch.optim.Adam(p.values(), 1e-3)
    def loss(w, x, y):
        return F.cross_entropy(functional_call(m, w, (x,)), y)
    def task(x, y, xq, yq):
        w = p
        for _ in range(2):
            g = grad(loss)(w, x, y)
            w = {k: w[k] - 0.1 * g[k] for k in w}
        return loss(w, xq, yq)
    for i in range(3):
        o.zero_grad()
        r = vmap(task, randomness="same")(torch.randn(4, 25, 3, 32, 32, device=D), torch.randint(0, 5, (4, 25), device=D), torch.randn(4, 25, 3, 32, 32, device=D), torch.randint(0, 5, (4, 25), device=D)) if i else torch.stack([task(torch.randn(25, 3, 32, 32, device=D), torch.randint(0, 5, (25,), device=D), torch.randn(25, 3, 32, 32, device=D), torch.randint(0, 5, (25,), device=D)) for _ in range(4)])
        r.mean().backward()
        o.step()


def compiled_dynamic():
    m = torch.compile(gpt(), dynamic=True)
    steps(m, lambda i: m(ids(4, 128 + 96 * i, 8000)), 4, amp=torch.bfloat16)


def compiled_optimizer():
    m = gpt()
    o = torch.optim.AdamW(m.parameters(), lr=torch.tensor(1e-3), foreach=True, capturable=True)
    step = torch.compile(o.step, fullgraph=False)
    mm = torch.compile(m)
    for i in range(4):
        with torch.autocast("cuda", torch.bfloat16):
            l = mm(ids(8, 512, 8000))
        l.backward()
        step()
        o.zero_grad()


def compiled_graphs():
    m = torch.compile(gpt(), mode="reduce-overhead")
    o = torch.optim.SGD(m.parameters(), 1e-3)
    for i in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        l = m(ids(8, 512, 8000))
        l.backward()
        o.step(); o.zero_grad()
    m.eval()
    with torch.no_grad():
        for t in (128, 256, 128, 256, 128, 256):
            torch.compiler.cudagraph_mark_step_begin()
            m(ids(8, t, 8000), 1)


def flex_document():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    f = torch.compile(flex_attention)
    q = nn.Linear(512, 1536).cuda().bfloat16()
    o = torch.optim.AdamW(q.parameters(), 1e-3)
    doc = torch.arange(2048, device=D) // 300
    mask = create_block_mask(lambda b, h, i, j: (doc[i] == doc[j]) & (i >= j), None, None, 2048, 2048, device=D)
    for i in range(4):
        a, b, c = q(torch.randn(4, 2048, 512, device=D, dtype=torch.bfloat16)).view(4, 2048, 3, 8, 64).permute(2, 0, 3, 1, 4)
        f(a, b, c, block_mask=mask).float().square().mean().backward()
        o.step(); o.zero_grad()


def exported():
    m = gpt(2).eval()
    e = torch.export.export(m, (ids(2, 256, 8000), 1))
    g = e.module()
    with torch.no_grad():
        for i in range(3):
            g(ids(2, 256, 8000), 1)
    path = torch._inductor.aoti_compile_and_package(e, package_path=os.path.join(os.environ.get("TMPDIR", "/tmp"), "m%d.pt2" % os.getpid()))
    r = torch._inductor.aoti_load_package(path)
    with torch.no_grad():
        for i in range(3):
            r(ids(2, 256, 8000), 1)
    os.unlink(path)


def varlen():
    from torch.nn.attention.varlen import varlen_attn
    q = nn.Linear(512, 1536).cuda().bfloat16()
    o = torch.optim.AdamW(q.parameters(), 1e-3)
    for i in range(4):
        n = torch.tensor([100 + 30 * i, 700, 333, 1000], device=D)
        cu = F.pad(n.cumsum(0), (1, 0)).int()
        t = int(n.sum())
        a, b, c = q(torch.randn(t, 512, device=D, dtype=torch.bfloat16)).view(t, 3, 8, 64).unbind(1)
        varlen_attn(a, b, c, cu, cu, 1000, 1000).float().square().mean().backward()
        o.step(); o.zero_grad()


def offload():
    m = gpt(6)
    o = torch.optim.AdamW(m.parameters(), 1e-3)
    for i in range(3):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            l = m(ids(8, 512, 8000))
        l.backward()
        o.step(); o.zero_grad()
        for s in o.state.values():
            for k, v in s.items():
                s[k] = v.cpu()
        torch.cuda.empty_cache()
        for p, s in o.state.items():
            for k, v in s.items():
                s[k] = v.to(p.device, non_blocking=True) if k != "step" else v


def settings_gc():
    torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.6,max_split_size_mb:128")
    torch.cuda.set_per_process_memory_fraction(0.06)
    m = gpt(6)
    o = torch.optim.AdamW(m.parameters(), 1e-3)
    for i in range(8):
        try:
            m(ids(4 + 3 * i, 256 + 100 * (i % 3), 8000)).backward()
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        o.step(); o.zero_grad()


def quantize_dynamic():
    a = torch.randn(4096, 4096, device=D, dtype=torch.bfloat16)
    w = torch.randn(4096, 4096, device=D, dtype=torch.bfloat16)
    f = torch.float8_e4m3fn
    one = torch.ones((), device=D)
    for n in (16, 512, 4096):
        torch._scaled_mm(a[:n].to(f), w.to(f).t(), one, one, out_dtype=torch.bfloat16)
        torch._int_mm(a[:max(n, 32)].to(torch.int8), w.to(torch.int8).t())
        torch.ops.aten._weight_int8pack_mm(a[:n], w.to(torch.int8), w[:, 0].contiguous()) if n == 16 else None
    torch._scaled_mm(a.to(f), w.to(f).t(), torch.ones(4096, 1, device=D), torch.ones(1, 4096, device=D), out_dtype=torch.bfloat16)
    torch._grouped_mm(a, w.view(4, 1024, 4096).transpose(1, 2).contiguous().transpose(-2, -1).transpose(-2, -1), offs=torch.tensor([1000, 2000, 3000, 4096], dtype=torch.int32, device=D))


def sampled():
    users, items = nn.EmbeddingBag(200000, 64, sparse=True, mode="mean").cuda(), nn.Embedding(500000, 64, sparse=True).cuda()
    mlp = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    o1, o2 = torch.optim.SparseAdam(list(users.parameters()) + list(items.parameters()), 1e-3), torch.optim.Adam(mlp.parameters(), 1e-3)
    for i in range(5):
        u = users(torch.randint(0, 200000, (4096 * 20,), device=D), torch.arange(0, 4096 * 20, 20, device=D))
        pos, neg = items(torch.randint(0, 500000, (4096,), device=D)), items(torch.randint(0, 500000, (4096, 10), device=D))
        s = mlp(torch.cat([u[:, None].expand(-1, 11, -1), torch.cat([pos[:, None], neg], 1)], -1)).squeeze(-1)
        F.cross_entropy(s, torch.zeros(4096, dtype=torch.long, device=D)).backward()
        o1.step(); o2.step(); o1.zero_grad(); o2.zero_grad()
    with torch.no_grad():
        all_ = items.weight @ u[:64].T
        torch.topk(all_, 100, 0)


def st_pairs():
    from transformers import BertConfig, BertModel
    with torch.device(D):
        m = BertModel(BertConfig(vocab_size=8000, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536))
    o = torch.optim.AdamW(m.parameters(), 2e-5)
    def enc(x, mask):
        h = m(x, attention_mask=mask).last_hidden_state
        return F.normalize((h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=-1)
    for i in range(4):
        t = 40 + 17 * i
        x, mask = ids(64, t, 8000), (torch.arange(t, device=D)[None] < torch.randint(10, t, (64, 1), device=D)).long()
        with torch.autocast("cuda", torch.bfloat16):
            a, b = enc(x, mask), enc(x.flip(0), mask.flip(0))
            loss = F.cross_entropy(a @ b.T * 20, torch.arange(64, device=D))
        o.zero_grad(); loss.backward(); o.step()


def sac():
    def net(i, o):
        return nn.Sequential(nn.Linear(i, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, o)).cuda()
    pi, q1, q2, t1, t2 = net(17, 12), net(23, 1), net(23, 1), net(23, 1), net(23, 1)
    op, oq = torch.optim.Adam(pi.parameters(), 3e-4), torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), 3e-4)
    n = 200000
    buf = [torch.zeros(n, k, device=D) for k in (17, 6, 1, 17, 1)]
    def act(s):
        mu, ls = pi(s).chunk(2, -1)
        d = torch.distributions.Normal(mu, ls.clamp(-20, 2).exp())
        u = d.rsample()
        return u.tanh(), (d.log_prob(u) - torch.log(1 - u.tanh().square() + 1e-6)).sum(-1, keepdim=True)
    for i in range(60):
        with torch.no_grad():
            s = torch.randn(64, 17, device=D)
            a, _ = act(s)
        at = slice(i * 64, i * 64 + 64)
        for b, v in zip(buf, (s, a, s[:, :1], s, s[:, :1] > 2)):
            b[at] = v
        k = torch.randint(0, (i + 1) * 64, (256,), device=D)
        s, a, r, s2, d = (b[k] for b in buf)
        with torch.no_grad():
            a2, lp = act(s2)
            y = r + 0.99 * (1 - d) * (torch.min(t1(torch.cat([s2, a2], 1)), t2(torch.cat([s2, a2], 1))) - 0.2 * lp)
        lq = F.mse_loss(q1(torch.cat([s, a], 1)), y) + F.mse_loss(q2(torch.cat([s, a], 1)), y)
        oq.zero_grad(); lq.backward(); oq.step()
        a, lp = act(s)
        op.zero_grad(); (0.2 * lp - q1(torch.cat([s, a], 1))).mean().backward(); op.step()
        with torch.no_grad():
            for t, q in ((t1, q1), (t2, q2)):
                torch._foreach_lerp_(list(t.parameters()), list(q.parameters()), 0.005)


def point_transformer():
    def knn(x, k):
        return torch.cdist(x, x).topk(k, largest=False).indices
    class L(nn.Module):
        def __init__(s, d):
            super().__init__()
            s.q, s.k, s.v, s.p, s.g = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Sequential(nn.Linear(3, d), nn.ReLU(), nn.Linear(d, d)), nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        def forward(s, x, f):
            i = knn(x, 16)
            b = torch.arange(x.shape[0], device=D)[:, None, None]
            p = s.p(x[:, :, None] - x[b, i])
            w = s.g(s.q(f)[:, :, None] - s.k(f)[b, i] + p).softmax(2)
            return f + (w * (s.v(f)[b, i] + p)).sum(2)
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.i, s.l, s.o = nn.Linear(3, 128), nn.ModuleList([L(128) for _ in range(3)]), nn.Linear(128, 40)
        def forward(s, x):
            f = s.i(x)
            for l in s.l:
                f = l(x, f)
                n = x.shape[1] // 2
                x, f = x[:, :n], f[:, :n]
            return s.o(f.mean(1))
    m = M().cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(8, 1024, 3, device=D)), torch.randint(0, 40, (8,), device=D)))


def graph_pyg():
    from torch_geometric.nn import GATv2Conv, TransformerConv, global_mean_pool, GraphNorm, SAGPooling
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.a, s.b, s.n, s.o = GATv2Conv(64, 64, 4, edge_dim=8), TransformerConv(256, 64, 4), GraphNorm(256), nn.Linear(256, 10)
        def forward(s, x, e, w, b):
            x = s.n(F.elu(s.a(x, e, w)), b)
            return s.o(global_mean_pool(s.b(x, e), b))
    m = M().cuda()
    def make(i):
        n, e = 8000, 60000
        b = torch.arange(n, device=D) // 80
        return F.cross_entropy(m(torch.randn(n, 64, device=D), torch.randint(0, n, (2, e), device=D), torch.randn(e, 8, device=D), b), torch.randint(0, 10, (100,), device=D))
    steps(m, make)


def lora_peft():
    from transformers import MistralConfig, MistralForCausalLM
    from peft import LoraConfig, get_peft_model
    with torch.device(D):
        m = MistralForCausalLM(MistralConfig(vocab_size=8000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=4, sliding_window=256)).bfloat16()
    m = get_peft_model(m, LoraConfig(r=8, target_modules="all-linear", use_rslora=True, modules_to_save=["lm_head"]))
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    m.enable_input_require_grads()
    o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-4)
    for i in range(3):
        x = ids(4, 700, 8000)
        m(input_ids=x, labels=x).loss.backward()
        o.step(); o.zero_grad()
    m = m.merge_and_unload()
    m.eval()
    with torch.no_grad():
        m(ids(2, 256, 8000))


def two_processes():
    import torch.multiprocessing as mp
    ctx = mp.get_context("spawn")
    q, r = ctx.Queue(), ctx.Queue()
    p = ctx.Process(target=_child, args=(q, r))
    p.start()
    x = torch.randn(4096, 1024, device=D)
    q.put(x)
    y = r.get()
    z = (y @ x.T).relu()
    q.put(None)
    p.join()
    del y


def _child(q, r):
    w = torch.randn(1024, 1024, device="cuda")
    while (x := q.get()) is not None:
        r.put(x @ w)
        del x
    import time
    time.sleep(0.2)

# ---- convolutions of other programs
def hifigan():
    class Res(nn.Module):
        def __init__(s, c, k):
            super().__init__()
            s.a = nn.ModuleList([nn.utils.parametrizations.weight_norm(nn.Conv1d(c, c, k, dilation=d, padding=(k * d - d) // 2)) for d in (1, 3, 5)])
        def forward(s, x):
            for c in s.a:
                x = x + c(F.leaky_relu(x, 0.1))
            return x
    class G(nn.Module):
        def __init__(s):
            super().__init__()
            s.i, s.o = nn.Conv1d(80, 256, 7, padding=3), nn.Conv1d(16, 1, 7, padding=3)
            s.u = nn.ModuleList([nn.ConvTranspose1d(256 >> i, 128 >> i, k, u, (k - u) // 2) for i, (u, k) in enumerate(((8, 16), (8, 16), (2, 4), (2, 4)))])
            s.r = nn.ModuleList([nn.ModuleList([Res(128 >> i, k) for k in (3, 7, 11)]) for i in range(4)])
        def forward(s, x):
            x = s.i(x)
            for u, r in zip(s.u, s.r):
                x = u(F.leaky_relu(x, 0.1))
                x = sum(b(x) for b in r) / 3
            return s.o(F.leaky_relu(x)).tanh()
    class P(nn.Module):
        def __init__(s, p):
            super().__init__()
            s.p = p
            s.c = nn.ModuleList([nn.Conv2d(i, o, (5, 1), (3, 1), (2, 0)) for i, o in ((1, 32), (32, 128), (128, 512), (512, 1024))])
        def forward(s, x):
            n = x.shape[-1] // s.p * s.p
            x = x[..., :n].reshape(x.shape[0], 1, -1, s.p)
            for c in s.c:
                x = F.leaky_relu(c(x), 0.1)
            return x.flatten(1).mean(1)
    g, ds = G().cuda(), nn.ModuleList([P(p) for p in (2, 3, 5, 7)]).cuda()
    og, od = torch.optim.AdamW(g.parameters(), 2e-4), torch.optim.AdamW(ds.parameters(), 2e-4)
    for i in range(3):
        y = g(torch.randn(8, 80, 32, device=D))
        r = torch.randn_like(y)
        od.zero_grad(); sum(((1 - d(r)) ** 2 + d(y.detach()) ** 2).mean() for d in ds).backward(); od.step()
        og.zero_grad(); (sum(((1 - d(y)) ** 2).mean() for d in ds) + F.l1_loss(y, r)).backward(); og.step()


def wavenet():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.i = nn.Conv1d(1, 64, 1)
            s.d = nn.ModuleList([nn.Conv1d(64, 128, 2, dilation=2 ** (i % 10)) for i in range(20)])
            s.o, s.k = nn.ModuleList([nn.Conv1d(64, 128, 1) for _ in range(20)]), nn.Conv1d(64, 256, 1)
        def forward(s, x):
            x, skip = s.i(x), 0
            for i, (d, o) in enumerate(zip(s.d, s.o)):
                a, b = d(F.pad(x, (2 ** (i % 10), 0))).chunk(2, 1)
                r, k = o(a.tanh() * b.sigmoid()).chunk(2, 1)
                x, skip = x + r, skip + k
            return s.k(F.relu(skip))
    m = M().cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(4, 1, 8000, device=D)), torch.randint(0, 256, (4, 8000), device=D)), 3)


def edsr():
    class R(nn.Module):
        def __init__(s):
            super().__init__()
            s.a, s.b = nn.Conv2d(128, 128, 3, 1, 1), nn.Conv2d(128, 128, 3, 1, 1)
        def forward(s, x):
            return x + 0.1 * s.b(F.relu(s.a(x)))
    m = nn.Sequential(nn.Conv2d(3, 128, 3, 1, 1), *[R() for _ in range(8)], nn.Conv2d(128, 512, 3, 1, 1), nn.PixelShuffle(2), nn.Conv2d(128, 3, 3, 1, 1)).cuda()
    steps(m, lambda i: F.l1_loss(m(torch.randn(16, 3, 48, 48, device=D)), torch.randn(16, 3, 96, 96, device=D)), 3)
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        m(torch.randn(1, 3, 339, 510, device=D))


def unet3d_bf16(last=True):
    fmt = torch.channels_last_3d if last else torch.contiguous_format
    def blk(i, o):
        return nn.Sequential(nn.Conv3d(i, o, 3, 1, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(), nn.Conv3d(o, o, 3, 1, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU())
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            w = (1, 32, 64, 128, 256)
            s.d = nn.ModuleList([blk(a, b) for a, b in zip(w, w[1:])])
            s.u = nn.ModuleList([nn.ConvTranspose3d(a, b, 2, 2) for a, b in zip(w[:1:-1], w[-2:0:-1])])
            s.c = nn.ModuleList([blk(2 * b, b) for b in w[-2:0:-1]])
            s.o = nn.Conv3d(32, 4, 1)
        def forward(s, x):
            k = []
            for i, d in enumerate(s.d):
                x = d(x if i == 0 else F.max_pool3d(x, 2))
                k.append(x)
            for u, c, y in zip(s.u, s.c, k[-2::-1]):
                x = c(torch.cat([u(x), y], 1))
            return s.o(x)
    m = M().cuda().to(memory_format=fmt)
    steps(m, lambda i: F.cross_entropy(m(torch.randn(2, 1, 64, 96, 96, device=D).to(memory_format=fmt)), torch.randint(0, 4, (2, 64, 96, 96), device=D)), 3, amp=torch.bfloat16)


def unet3d_fp32():
    torch.backends.cudnn.allow_tf32 = False
    global steps
    old = steps
    steps = lambda m, f, n, amp=None: old(m, f, n)
    unet3d_bf16(False)


def convlstm():
    c = nn.Conv2d(64 + 3, 256, 5, padding=2).cuda()
    o_ = nn.Conv2d(64, 3, 1).cuda()
    p = list(c.parameters()) + list(o_.parameters())
    o = torch.optim.RMSprop(p, 1e-3)
    for i in range(3):
        x = torch.randn(8, 10, 3, 64, 64, device=D)
        h = s = torch.zeros(8, 64, 64, 64, device=D)
        loss = 0
        for t in range(10):
            a, b, g, k = c(torch.cat([x[:, t], h], 1)).chunk(4, 1)
            s = b.sigmoid() * s + a.sigmoid() * g.tanh()
            h = k.sigmoid() * s.tanh()
            loss = loss + F.mse_loss(o_(h), x[:, t])
        o.zero_grad(); loss.backward(); o.step()


def deform():
    import torchvision
    off, c, head = nn.Conv2d(64, 18, 3, 1, 1).cuda(), torchvision.ops.DeformConv2d(64, 64, 3, padding=1).cuda(), nn.Linear(64 * 49, 10).cuda()
    p = [*off.parameters(), *c.parameters(), *head.parameters()]
    o = torch.optim.Adam(p, 1e-3)
    for i in range(3):
        x = torch.randn(4, 64, 100, 136, device=D)
        y = c(x, off(x))
        b = torch.rand(200, 4, device=D) * 50
        b[:, 2:] += b[:, :2] + 5
        r = torchvision.ops.roi_align(y, torch.cat([torch.randint(0, 4, (200, 1), device=D).float(), b], 1), 7)
        o.zero_grad(); F.cross_entropy(head(r.flatten(1)), torch.randint(0, 10, (200,), device=D)).backward(); o.step()


def seq2seq():
    e, d, em, out, att = nn.GRU(256, 384, 2, batch_first=True, bidirectional=True, dropout=0.2).cuda(), nn.LSTMCell(256 + 768, 512).cuda(), nn.Embedding(6000, 256).cuda(), nn.Linear(512, 6000).cuda(), nn.Linear(512, 768).cuda()
    p = [q for m in (e, d, em, out, att) for q in m.parameters()]
    o = torch.optim.Adam(p, 1e-3)
    for i in range(3):
        n = torch.randint(20, 60, (32,)).sort(descending=True).values
        x = ids(32, int(n[0]), 6000)
        k, _ = nn.utils.rnn.pad_packed_sequence(e(nn.utils.rnn.pack_padded_sequence(em(x), n, batch_first=True))[0], batch_first=True)
        h = c = torch.zeros(32, 512, device=D)
        y, loss = ids(32, 20, 6000), 0
        for t in range(19):
            w = torch.bmm(k, att(h)[..., None]).softmax(1)
            h, c = d(torch.cat([em(y[:, t]), (w * k).sum(1)], 1), (h, c))
            loss = loss + F.cross_entropy(out(h), y[:, t + 1])
        o.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(p, 5.0); o.step()


def efficientdet_like():
    import torchvision
    m = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=20).cuda()
    o = torch.optim.SGD(m.parameters(), 0.01)
    for i in range(3):
        x = [torch.rand(3, 320, 320, device=D) for _ in range(8)]
        t = [dict(boxes=torch.tensor([[20., 20, 120, 150], [60, 80, 200, 260]], device=D), labels=torch.tensor([1, 2], device=D)) for _ in range(8)]
        o.zero_grad(); sum(m(x, t).values()).backward(); o.step()


def densenet_fp16():
    import torchvision
    m = torchvision.models.densenet169(num_classes=50).cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(16, 3, 224, 224, device=D)), torch.randint(0, 50, (16,), device=D)), 3, amp=torch.float16)


def shufflenet_tf32():
    import torchvision
    torch.backends.cuda.matmul.allow_tf32 = True
    m = torchvision.models.shufflenet_v2_x1_5(num_classes=50).cuda()
    steps(m, lambda i: F.cross_entropy(m(torch.randn(64, 3, 192, 192, device=D)), torch.randint(0, 50, (64,), device=D)), 3)


def inception_half():
    import torchvision
    m = torchvision.models.inception_v3(num_classes=50, init_weights=False).cuda().half().to(memory_format=torch.channels_last)
    def make(i):
        a, b = m(torch.randn(16, 3, 299, 299, device=D).half().to(memory_format=torch.channels_last))
        y = torch.randint(0, 50, (16,), device=D)
        return F.cross_entropy(a.float(), y) + 0.4 * F.cross_entropy(b.float(), y)
    steps(m, make, 3, opt=torch.optim.SGD(m.parameters(), 0.01, momentum=0.9, nesterov=True))


# ---- of the size that people run
def dit_xl():
    class B(nn.Module):
        def __init__(s, d, h):
            super().__init__()
            s.n1, s.n2, s.h = nn.LayerNorm(d, elementwise_affine=False), nn.LayerNorm(d, elementwise_affine=False), h
            s.q, s.o, s.m, s.a = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d)), nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
        def forward(s, x, c):
            a, b, g, e, f, k = s.a(c)[:, None].chunk(6, -1)
            y = s.n1(x) * (1 + b) + a
            q, w, v = s.q(y).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4)
            x = x + g * s.o(F.scaled_dot_product_attention(q, w, v).transpose(1, 2).flatten(2))
            return x + k * s.m(s.n2(x) * (1 + f) + e)
    class M(nn.Module):
        def __init__(s, d=1152, h=16, l=28):
            super().__init__()
            s.p, s.e, s.t, s.b, s.o = nn.Conv2d(4, d, 2, 2), nn.Parameter(torch.zeros(1, 256, d)), nn.Sequential(nn.Linear(256, d), nn.SiLU(), nn.Linear(d, d)), nn.ModuleList([B(d, h) for _ in range(l)]), nn.Linear(d, 16)
        def forward(s, x, t):
            c = s.t(torch.cat([torch.cos(t[:, None] * torch.arange(128, device=D)), torch.sin(t[:, None] * torch.arange(128, device=D))], -1))
            x = s.p(x).flatten(2).transpose(1, 2) + s.e
            for b in s.b:
                x = torch.utils.checkpoint.checkpoint(b, x, c, use_reentrant=False) if s.training else b(x, c)
            return s.o(x)
    import torch.utils.checkpoint
    with torch.device(D):
        m = M()
    ema = [p.detach().clone() for p in m.parameters()]
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            l = m(torch.randn(32, 4, 32, 32, device=D), torch.rand(32, device=D)).float().square().mean()
        o.zero_grad(); l.backward(); o.step()
        torch._foreach_lerp_(ema, list(m.parameters()), 0.001)
    m.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        for i in range(3):
            m(torch.randn(64, 4, 32, 32, device=D), torch.rand(64, device=D))


def llama3b_lora():
    from transformers import LlamaConfig, LlamaForCausalLM
    from peft import LoraConfig, get_peft_model
    with torch.device(D):
        m = LlamaForCausalLM(LlamaConfig(vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8, tie_word_embeddings=True)).bfloat16()
    m = get_peft_model(m, LoraConfig(r=16, target_modules=["q_proj", "v_proj", "gate_proj"], lora_dropout=0.05))
    m.gradient_checkpointing_enable()
    m.enable_input_require_grads()
    o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-4)
    for i in range(2):
        x = ids(2, 4096, 128000)
        m(input_ids=x, labels=x).loss.backward()
        o.step(); o.zero_grad()


def whisper_medium():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    with torch.device(D):
        m = WhisperForConditionalGeneration(WhisperConfig(d_model=1024, encoder_layers=24, decoder_layers=24, encoder_attention_heads=16, decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096))
    o = torch.optim.AdamW(m.parameters(), 1e-5)
    sc = torch.amp.GradScaler("cuda")
    for i in range(2):
        with torch.autocast("cuda", torch.float16):
            l = m(input_features=torch.randn(8, 80, 3000, device=D), labels=ids(8, 100, 50000)).loss
        sc.scale(l).backward(); sc.step(o); sc.update(); o.zero_grad()


def qwen3_moe_full():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
    with torch.device(D):
        m = Qwen3MoeForCausalLM(Qwen3MoeConfig(vocab_size=32000, hidden_size=1024, intermediate_size=3072, moe_intermediate_size=512, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4, head_dim=64, num_experts=32, num_experts_per_tok=4)).bfloat16()
    m.gradient_checkpointing_enable()
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in range(3):
        x = ids(4, 1024, 32000)
        m(x, labels=x, output_router_logits=True).loss.backward()
        o.step(); o.zero_grad()


def gemma3_generate():
    from transformers import Gemma3TextConfig, Gemma3ForCausalLM
    with torch.device(D):
        m = Gemma3ForCausalLM(Gemma3TextConfig(vocab_size=262144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=26, num_attention_heads=4, num_key_value_heads=1, head_dim=256, sliding_window=512)).bfloat16().eval()
    m.generate(ids(8, 900, 200000), max_new_tokens=32, min_new_tokens=32, do_sample=True, pad_token_id=0)


def main():
    name = sys.argv[1]
    torch.manual_seed(0)
    globals()[name]()
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print("RESULT " + json.dumps(dict(name=name, requested=s["requested_bytes.all.peak"], allocated=s["allocated_bytes.all.peak"], reserved=s["reserved_bytes.all.peak"], requests=s["allocation.all.allocated"], segments=s["segment.all.allocated"], retries=s["num_alloc_retries"], ooms=s["num_ooms"])), flush=True)


if __name__ == "__main__":
    main()
