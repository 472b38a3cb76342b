# SPDX-License-Identifier: Apache-2.0
"""Programs of the size that people run, none of them in everyday.py: same frame, same rows.

    atscale.py OUT WORKERS SECONDS [NAME...]        rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz

Models have the published widths, heads, vocabularies and inputs; the largest have fewer layers. Weights are random.
"""

import everyday
from everyday import *

J.clear()


def hf(name, dt=BF, cls=None, **k):
    """A model of transformers on the card: name is the stem of its classes."""
    import transformers as t

    c = getattr(t, name + "Config")(**k)
    return on(getattr(t, cls or name + "ForCausalLM"), c, dt=dt)


def net(name, nhwc=False, **k):
    import timm

    m = on(timm.create_model, name, **k)
    return m.to(memory_format=torch.channels_last) if nhwc else m


def images(n, side, nhwc=False, dt=torch.float32):
    x = N(n, 3, side, side, dt=dt)
    return x.to(memory_format=torch.channels_last) if nhwc else x


def lm(vocab, batch, length):
    def loss(m):
        x = T(batch, length, v=vocab)
        return m(input_ids=x, labels=x).loss

    return loss


def classify(n, side, nhwc=False, classes=1000):
    return lambda m: F.cross_entropy(m(images(n, side, nhwc)), T(n, v=classes), label_smoothing=0.1)


def lora(m, r=16, targets="all-linear"):
    from peft import LoraConfig, get_peft_model

    m.enable_input_require_grads()
    return get_peft_model(m, LoraConfig(r=r, lora_alpha=2 * r, lora_dropout=0.05, target_modules=targets))


def checkpointed(m):
    m.config.use_cache = False
    m.gradient_checkpointing_enable({"use_reentrant": False})
    return m


SGD = lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
LLAMA1B = dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192, vocab_size=128256,
               head_dim=64, tie_word_embeddings=True, max_position_embeddings=131072)


# ---- language
@job
def llama1b_accum():
    fit(checkpointed(hf("Llama", **LLAMA1B)), lm(128000, 4, 2048), 3, lambda p: torch.optim.AdamW(p, 1e-5, fused=True), accum=2)


@job
def llama8b_lora64():
    m = hf("Llama", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336, vocab_size=128256)
    fit(lora(checkpointed(m), 64), lm(128000, 2, 1024), 3)


@job
def qwen3_8b_serve():
    m = hf("Qwen3", hidden_size=4096, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, intermediate_size=12288, vocab_size=151936).eval()
    for n, length in ((8, 300), (3, 1200)):
        m.generate(T(n, length), max_new_tokens=48, min_new_tokens=48, do_sample=False, pad_token_id=0)


@job
def mistral_beams_fp16():
    m = hf("Mistral", HF16, num_hidden_layers=16, sliding_window=512).eval()
    m.generate(T(2, 700), max_new_tokens=40, min_new_tokens=40, num_beams=4, do_sample=False, pad_token_id=0)


@job
def gemma2_adafactor():
    from transformers import Adafactor

    m = hf("Gemma2", hidden_size=2304, num_hidden_layers=14, num_attention_heads=8, num_key_value_heads=4, head_dim=256, intermediate_size=9216, vocab_size=256000)
    m.config.use_cache = False
    fit(m, lm(256000, 2, 1024), 3, lambda p: Adafactor(p, lr=1e-4, relative_step=False, scale_parameter=False))


@job
def gpt2_xl():
    m = hf("GPT2", torch.float32, "GPT2LMHeadModel", n_embd=1600, n_layer=24, n_head=25)
    m.config.use_cache = False
    fit(m, lm(50000, 4, 1024), 3, amp=BF)


@job
def pythia_ema():
    m = hf("GPTNeoX", hidden_size=2048, num_hidden_layers=24, num_attention_heads=16, intermediate_size=8192, vocab_size=50304)
    m.config.use_cache = False
    e = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
    for _ in range(2):
        fit(m, lm(50000, 4, 1500), 2, SGD)
        e.update_parameters(m)


@job
def qwen3_30b_a3b():
    m = hf("Qwen3Moe", hidden_size=2048, num_hidden_layers=3, num_attention_heads=32, num_key_value_heads=4, head_dim=128, intermediate_size=6144,
           moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, vocab_size=151936)
    m.config.use_cache = False
    fit(m, lm(150000, 2, 1024), 2, SGD)


@job
def deepseek_mla():
    m = hf("DeepseekV3", hidden_size=2048, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=16, intermediate_size=10944, moe_intermediate_size=1408,
           n_routed_experts=32, num_experts_per_tok=6, n_group=4, topk_group=2, first_k_dense_replace=1, q_lora_rank=768, vocab_size=102400)
    m.config.use_cache = False
    fit(m, lm(100000, 2, 800), 2, SGD)
    m.eval().generate(T(2, 100), max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0, use_cache=True)


@job
def bert_large_mlm():
    m = hf("Bert", torch.float32, "BertForMaskedLM", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    fit(m, lambda m: m(input_ids=T(16, 512, v=30000), labels=T(16, 512, v=30000), attention_mask=torch.ones(16, 512, device=dev)).loss, 3, amp=BF)


@job
def deberta_v3_large():
    m = hf("DebertaV2", torch.float32, "DebertaV2ForSequenceClassification", vocab_size=128100, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
           intermediate_size=4096, relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
           type_vocab_size=0, max_relative_positions=-1, position_biased_input=False)
    fit(m, lambda m: m(input_ids=T(8, rng.choice([200, 256, 333])), labels=T(8, v=2)).loss, 4, amp=BF)


@job
def t5_large_adafactor():
    from transformers import Adafactor

    m = hf("T5", BF, "T5ForConditionalGeneration", d_model=1024, d_ff=2816, num_layers=24, num_heads=16, feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    fit(m, lambda m: m(input_ids=T(8, 512), labels=T(8, 114)).loss, 3, lambda p: Adafactor(p, lr=1e-3, relative_step=False))


@job
def bart_large_cnn():
    m = hf("Bart", torch.float32, "BartForConditionalGeneration")
    torch.backends.cuda.matmul.allow_tf32 = True
    fit(m, lambda m: m(input_ids=T(4, 1024, v=50000), labels=T(4, 128, v=50000)).loss, 3)
    m.eval().generate(T(4, 900, v=50000), max_new_tokens=32, min_new_tokens=32, num_beams=4)


@job
def longformer_doc():
    m = hf("Longformer", torch.float32, "LongformerForSequenceClassification", attention_window=512, max_position_embeddings=4098, vocab_size=50265)
    fit(m, lambda m: m(input_ids=T(2, 3000) + 2, labels=T(2, v=2)).loss, 3, amp=BF)


@job
def bigbird_sparse():
    m = hf("BigBird", torch.float32, "BigBirdForMaskedLM", num_hidden_layers=6)
    fit(m, lambda m: m(input_ids=T(2, 2048), labels=T(2, 2048)).loss, 2)


@job
def mamba2_train():
    m = hf("Mamba2", hidden_size=1024, num_hidden_layers=6, num_heads=32, head_dim=64, n_groups=1, state_size=128, vocab_size=50288)
    m.config.use_cache = False
    fit(m, lm(50000, 2, 1024), 2)


@job
def modernbert_large():
    m = hf("ModernBert", torch.float32, "ModernBertForMaskedLM", hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=2624)
    fit(m, lambda m: m(input_ids=T(4, 2048, v=50000), labels=T(4, 2048, v=50000)).loss, 3, amp=BF)


@job
def esm2_650m():
    m = hf("Esm", torch.float32, "EsmForMaskedLM", vocab_size=33, hidden_size=1280, num_hidden_layers=33, num_attention_heads=20, intermediate_size=5120,
           position_embedding_type="rotary", mask_token_id=32, pad_token_id=1, max_position_embeddings=1026)
    fit(m, lambda m: m(input_ids=T(4, 1022, v=20) + 4, labels=T(4, 1022, v=33)).loss, 3, amp=BF)


@job
def reward_pairs():
    m = checkpointed(hf("Qwen2", BF, "Qwen2ForSequenceClassification", hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
                        intermediate_size=8960, vocab_size=151936, num_labels=1, pad_token_id=0))

    def loss(m):
        n = rng.choice([512, 700, 1024])
        s = m(input_ids=T(8, n) + 1).logits.float()
        return -F.logsigmoid(s[:4] - s[4:]).mean()

    fit(m, loss, 4)


@job
def dpo_lora_disabled():
    m = lora(checkpointed(hf("Llama", hidden_size=3072, num_hidden_layers=14, num_attention_heads=24, num_key_value_heads=8, intermediate_size=8192, vocab_size=128256)), 32)

    def logp(x):
        out = []
        for l, y in zip(m(input_ids=x).logits[:, :-1], x[:, 1:]):
            out.append(torch.gather(l.log_softmax(-1), 1, y[:, None]).sum())
        return torch.stack(out)

    def loss(_):
        x = T(4, rng.choice([300, 512]))
        with torch.no_grad(), m.disable_adapter():
            r = logp(x)
        d = logp(x) - r
        return -F.logsigmoid(0.1 * (d[:2] - d[2:])).mean()

    fit(m, loss, 3)


@job
def chunked_loss_muon():
    m = hf("Llama", hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4, intermediate_size=4096, vocab_size=128256)
    m.config.use_cache = False

    def loss(m):
        x = T(4, 1024, v=128000)
        h = m.model(input_ids=x).last_hidden_state[:, :-1].flatten(0, 1)
        part = lambda a, b: F.cross_entropy(m.lm_head(a).float(), b, reduction="sum")
        pieces = zip(h.chunk(8), x[:, 1:].flatten().chunk(8))
        return sum(torch.utils.checkpoint.checkpoint(part, a, b, use_reentrant=False) for a, b in pieces) / h.shape[0]

    wide = [p for p in m.model.layers.parameters() if p.ndim == 2]
    rest = [p for p in m.parameters() if p.ndim != 2] + [m.model.embed_tokens.weight, m.lm_head.weight]
    a, b = torch.optim.Muon(wide, 0.01), torch.optim.AdamW(rest, 1e-4)
    for _ in range(3):
        loss(m).backward()
        for o in (a, b):
            o.step()
            o.zero_grad()


@job
def soap_optimizer():
    m = on(lambda: nn.Sequential(nn.Embedding(20000, 512), *[nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True) for _ in range(4)], nn.Linear(512, 20000)))
    state, ps = {}, list(m.parameters())
    for step in range(3):
        F.cross_entropy(m(T(8, 256, v=20000)).flatten(0, 1), T(2048, v=20000)).backward()
        with torch.no_grad():
            for p in ps:
                s, g = state.setdefault(p, {}), p.grad
                if g.ndim == 2 and max(g.shape) <= 2048:
                    for i, c in enumerate((g @ g.T, g.T @ g)):
                        s[i] = s[i].lerp_(c, 0.05) if i in s else c
                        s["q%d" % i] = torch.linalg.eigh(s[i] + 1e-6 * torch.eye(len(c), device=dev))[1] if step == 0 else torch.linalg.qr(s[i] @ s["q%d" % i])[0]
                    g = s["q0"].T @ g @ s["q1"]
                s["m"] = s["m"].lerp_(g, 0.1) if "m" in s else g.clone()
                s["v"] = s["v"].lerp_(g.square(), 0.05) if "v" in s else g.square()
                u = s["m"] / (s["v"].sqrt() + 1e-8)
                p.sub_(s["q0"] @ u @ s["q1"].T if "q0" in s else u, alpha=1e-3)
                p.grad = None


@job
def shampoo_vit():
    m, state = net("vit_small_patch16_224"), {}
    for _ in range(2):
        with torch.autocast("cuda", dtype=BF):
            classify(32, 224)(m).backward()
        with torch.no_grad():
            for p in m.parameters():
                if p.ndim == 2 and max(p.shape) <= 1536:
                    l, r = state.setdefault(p, [torch.eye(d, device=dev) * 1e-4 for d in p.shape])
                    l += p.grad @ p.grad.T
                    r += p.grad.T @ p.grad
                    root = lambda a: (lambda w, v: v * w.clamp_min(1e-12).pow(-0.25) @ v.T)(*torch.linalg.eigh(a))
                    p.sub_(root(l) @ p.grad @ root(r), alpha=1e-3)
                p.grad = None


# ---- vision
@job
def vit_huge():
    fit(net("vit_huge_patch14_224"), classify(16, 224), 3, amp=BF)


@job
def swinv2_large():
    fit(net("swinv2_large_window12_192"), classify(16, 192), 3, amp=BF)


@job
def convnext_xl_nhwc():
    fit(net("convnext_xlarge", True), classify(16, 224, True), 3, amp=BF)


@job
def eva02_large():
    fit(net("eva02_large_patch14_224"), classify(16, 224), 3, amp=BF)


@job
def resnet50_tf32():
    torch.backends.cudnn.benchmark = False
    fit(net("resnet50", True), classify(96, 224, True), 3, SGD, clip=False)


@job
def resnet50_benchmark():
    torch.backends.cudnn.benchmark = True
    fit(net("resnet50", True), classify(128, 224, True), 4, SGD, amp=BF, clip=False)


@job
def resnet101_half_infer():
    m = net("resnet101").half().eval()
    with torch.inference_mode():
        for n in (64, 128, 17, 1, 64):
            m(images(n, 224, dt=HF16))


@job
def efficientnet_b7():
    fit(net("efficientnet_b7"), classify(6, 600), 2, lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.9), amp=BF)


@job
def regnety_160():
    fit(net("regnety_160", True), classify(32, 224, True), 3, SGD, amp=BF)


@job
def mobilenetv4_large():
    fit(net("mobilenetv4_conv_large", True), classify(64, 256, True), 3, amp=HF16)


@job
def densenet201_fp32():
    fit(net("densenet201"), classify(32, 224), 3, SGD)


@job
def inception_v4():
    fit(net("inception_v4"), classify(32, 299), 3, SGD, amp=BF)


@job
def effnetv2_xl_nhwc():
    fit(net("tf_efficientnetv2_xl", True), classify(12, 384, True), 2, amp=BF)


@job
def maxvit_large():
    fit(net("maxvit_large_tf_224"), classify(8, 224), 2, amp=BF)


@job
def serve_shapes():
    m = net("convnext_base", True).half().eval()
    with torch.inference_mode():
        for _ in range(25):
            m(images(rng.choice([1, 2, 4, 7, 8, 16, 23, 32]), rng.choice([192, 224, 256, 288, 320]), True, HF16))


def block(i, o, dims=2, act=nn.SiLU, norm=None, **k):
    c = (nn.Conv2d, nn.Conv3d)[dims - 2](i, o, k.pop("size", 3), padding=k.pop("pad", 1), bias=False, **k)
    return nn.Sequential(c, (norm or (nn.BatchNorm2d, nn.BatchNorm3d)[dims - 2])(o), act())


class Unet(nn.Module):
    def __init__(s, widths, classes, dims=2, norm=None, act=nn.ReLU, channels=3):
        super().__init__()
        b = functools.partial(block, dims=dims, norm=norm, act=act)
        up = (nn.ConvTranspose2d, nn.ConvTranspose3d)[dims - 2]
        conv = (nn.Conv2d, nn.Conv3d)[dims - 2]
        w = [channels] + widths
        s.down = nn.ModuleList(nn.Sequential(b(w[i], w[i + 1], stride=1 if i == 0 else 2), b(w[i + 1], w[i + 1])) for i in range(len(widths)))
        r = widths[::-1]
        s.up = nn.ModuleList(up(r[i], r[i + 1], 2, 2) for i in range(len(r) - 1))
        s.mix = nn.ModuleList(nn.Sequential(b(2 * r[i + 1], r[i + 1]), b(r[i + 1], r[i + 1])) for i in range(len(r) - 1))
        s.head = nn.ModuleList(conv(c, classes, 1) for c in r[1:])

    def forward(s, x):
        kept = []
        for d in s.down:
            x = d(x)
            kept.append(x)
        out = []
        kept.pop()
        for u, m, h in zip(s.up, s.mix, s.head):
            x = m(torch.cat([u(x), kept.pop()], 1))
            out.append(h(x))
        return out


@job
def nnunet_3d():
    m = on(Unet, [32, 64, 128, 256, 320, 320], 4, 3, functools.partial(nn.InstanceNorm3d, affine=True), functools.partial(nn.LeakyReLU, 0.01), 1)

    def loss(m):
        out = m(N(2, 1, 96, 128, 128))
        return sum(F.cross_entropy(o, T(2, *o.shape[2:], v=4)) / 2**i for i, o in enumerate(reversed(out)))

    fit(m, loss, 3, lambda p: torch.optim.SGD(p, 0.01, momentum=0.99, nesterov=True), amp=HF16)


@job
def unet_binary_nhwc():
    m = on(Unet, [64, 128, 256, 512, 1024], 2).to(memory_format=torch.channels_last)
    fit(m, lambda m: F.cross_entropy(m(images(4, 572 // 16 * 16, True))[-1], T(4, 560, 560, v=2)), 3, amp=HF16)


@job
def unet_benchmark_fp32():
    torch.backends.cudnn.benchmark = True
    fit(on(Unet, [32, 64, 128, 256], 2), lambda m: F.cross_entropy(m(images(8, 256))[-1], T(8, 256, 256, v=2)), 4)


class Csp(nn.Module):
    def __init__(s, i, o, n):
        super().__init__()
        s.a, s.b, s.m = block(i, o // 2, size=1, pad=0), block(i, o // 2, size=1, pad=0), nn.ModuleList(block(o // 2, o // 2) for _ in range(n))
        s.c = block(o // 2 * (n + 2), o, size=1, pad=0)

    def forward(s, x):
        ys = [s.a(x), s.b(x)]
        for m in s.m:
            ys.append(ys[-1] + m(ys[-1]))
        return s.c(torch.cat(ys, 1))


@job
def yolo_640():
    w = [48, 96, 192, 384, 576]
    body = [block(3, w[0], stride=2)]
    for i in range(4):
        body += [block(w[i], w[i + 1], stride=2), Csp(w[i + 1], w[i + 1], 2 + 2 * (i in (1, 2)))]
    m = on(lambda: nn.ModuleDict({"body": nn.Sequential(*body), "heads": nn.ModuleList(nn.Conv2d(c, 84, 1) for c in w[2:])}))

    def loss(m):
        x, l, outs = images(16, 640), 0, []
        for i, part in enumerate(m["body"]):
            x = part(x)
            if i in (4, 6, 8):
                outs.append(m["heads"][i // 2 - 2](x))
        for o in outs:
            l = l + F.binary_cross_entropy_with_logits(o[:, 4:].float(), torch.zeros_like(o[:, 4:]).float()) + o[:, :4].float().abs().mean()
        return l

    fit(m, loss, 3, SGD, amp=HF16)


@job
def retinanet_800():
    import torchvision

    m = on(torchvision.models.detection.retinanet_resnet50_fpn_v2, weights=None, weights_backbone=None)

    def loss(m):
        t = [{"boxes": torch.tensor([[10.0, 20, 300, 400], [50, 60, 90, 100]], device=dev), "labels": torch.tensor([1, 5], device=dev)} for _ in range(2)]
        return sum(m([N(3, 600, 800), N(3, 640, 720)], t).values())

    fit(m, loss, 2, SGD)


@job
def segformer_b5():
    m = hf("Segformer", torch.float32, "SegformerForSemanticSegmentation", depths=[3, 6, 40, 3], hidden_sizes=[64, 128, 320, 512], decoder_hidden_size=768, num_labels=150)
    fit(m, lambda m: m(pixel_values=images(4, 512), labels=T(4, 512, 512, v=150)).loss, 2, amp=BF)


@job
def dpt_large():
    m = hf("DPT", torch.float32, "DPTForDepthEstimation", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, image_size=384,
           backbone_out_indices=[5, 11, 17, 23], neck_hidden_sizes=[256, 512, 1024, 1024])
    fit(m, lambda m: (m(pixel_values=images(4, 384)).predicted_depth - 1).abs().mean(), 2, amp=BF)


@job
def mask2former_large():
    m = hf("Mask2Former", torch.float32, "Mask2FormerForUniversalSegmentation", num_labels=80)

    def loss(m):
        masks = [torch.randint(0, 2, (3, 384, 384), device=dev).float() for _ in range(2)]
        return m(pixel_values=images(2, 384), mask_labels=masks, class_labels=[T(3, v=80) for _ in masks]).loss

    fit(m, loss, 2)


@job
def rtdetr_infer():
    import transformers as t

    m = on(t.RTDetrForObjectDetection, t.RTDetrConfig(backbone_config=t.RTDetrResNetConfig(depths=[3, 4, 6, 3], out_features=["stage2", "stage3", "stage4"]))).eval()
    with torch.no_grad(), torch.autocast("cuda", dtype=HF16):
        for n in (1, 8, 4):
            m(pixel_values=images(n, 640))


@job
def sam_vit_l_decoder():
    m = hf("Sam", torch.float32, "SamModel", vision_config=dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, global_attn_indexes=[5, 11, 17, 23], mlp_dim=4096))
    m.vision_encoder.requires_grad_(False)
    fit(m, lambda m: m(pixel_values=images(1, 1024), input_boxes=torch.rand(1, 3, 4, device=dev) * 1000, multimask_output=False).pred_masks.square().mean(), 2, amp=BF)


@job
def raft_large():
    import torchvision

    m = on(torchvision.models.optical_flow.raft_large)
    fit(m, lambda m: sum((f - 1).abs().mean() for f in m(images(2, 256), images(2, 256), num_flow_updates=6)), 2)


@job
def videomae_large():
    m = hf("VideoMAE", torch.float32, "VideoMAEForVideoClassification", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=400)
    fit(m, lambda m: m(pixel_values=N(4, 16, 3, 224, 224), labels=T(4, v=400)).loss, 2, amp=BF)


@job
def slow_fast():
    fast = nn.Sequential(block(3, 8, 3, size=(5, 7, 7), pad=(2, 3, 3), stride=(1, 2, 2)), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)), block(8, 32, 3, size=(3, 1, 1), pad=(1, 0, 0)),
                         block(32, 64, 3, size=(1, 3, 3), pad=(0, 1, 1), stride=(1, 2, 2)))
    slow = nn.Sequential(block(3, 64, 3, size=(1, 7, 7), pad=(0, 3, 3), stride=(1, 2, 2)), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)), block(64, 256, 3, size=1, pad=0),
                         block(256, 256, 3, size=(1, 3, 3), pad=(0, 1, 1), stride=(1, 2, 2), groups=4))
    m = on(lambda: nn.ModuleDict({"fast": fast, "slow": slow, "turn": nn.Conv3d(64, 128, (5, 1, 1), (8, 1, 1), (2, 0, 0)), "head": nn.Linear(384, 400)}))

    def loss(m):
        x = N(8, 3, 32, 224, 224)
        f, s = m["fast"](x), m["slow"](x[:, :, ::8])
        return F.cross_entropy(m["head"](torch.cat([m["turn"](f), s], 1).mean((2, 3, 4))), T(8, v=400))

    fit(m, loss, 3, SGD, amp=BF)


@job
def swin2sr():
    m = hf("Swin2SR", torch.float32, "Swin2SRForImageSuperResolution", upscale=2)
    fit(m, lambda m: (m(pixel_values=images(8, 64)).reconstruction - images(8, 128)).abs().mean(), 2, amp=BF)


@job
def dinov2_giant_infer():
    m = hf("Dinov2", HF16, "Dinov2Model", hidden_size=1536, num_hidden_layers=40, num_attention_heads=24, use_swiglu_ffn=True, image_size=518, patch_size=14).eval()
    with torch.inference_mode():
        for n, side in ((16, 518), (32, 224), (5, 392)):
            m(pixel_values=images(n, side, dt=HF16))


# ---- diffusion
class Joint(nn.Module):
    """A block of a transformer over text and image together, modulated by the time."""

    def __init__(s, d, h):
        super().__init__()
        s.h, s.mod = h, nn.Linear(d, 6 * d)
        s.qkv, s.out, s.mlp = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))
        s.q, s.k = nn.RMSNorm(d // h), nn.RMSNorm(d // h)

    def forward(s, x, t):
        a, b, c, d, e, f = s.mod(F.silu(t))[:, None].chunk(6, -1)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + a) + b
        q, k, v = s.qkv(y).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4)
        x = x + c * s.out(F.scaled_dot_product_attention(s.q(q), s.k(k), v).transpose(1, 2).flatten(2))
        return x + f * s.mlp(F.layer_norm(x, x.shape[-1:]) * (1 + d) + e)


class Mmdit(nn.Module):
    def __init__(s, d, h, n, save):
        super().__init__()
        s.a, s.t, s.c, s.o = nn.Conv2d(16, d, 2, 2), nn.Linear(256, d), nn.Linear(4096, d), nn.Linear(d, 64)
        s.blocks, s.save = nn.ModuleList(Joint(d, h) for _ in range(n)), save

    def forward(s, z, text, t):
        x = torch.cat([s.c(text), s.a(z).flatten(2).transpose(1, 2)], 1)
        t = s.t(torch.cat([t[:, None] * torch.arange(128, device=dev)] * 2, -1).to(x.dtype))
        for b in s.blocks:
            x = torch.utils.checkpoint.checkpoint(b, x, t, use_reentrant=False) if s.save else b(x, t)
        return F.pixel_shuffle(s.o(x[:, text.shape[1]:]).transpose(1, 2).unflatten(2, (z.shape[2] // 2, -1)), 2)


@job
def mmdit_1024():
    m = on(Mmdit, 1536, 24, 24, True, dt=BF)

    def loss(m):
        z = N(2, 16, 128, 128, dt=BF)
        return (m(z, N(2, 333, 4096, dt=BF), torch.rand(2, device=dev)).float() - z.float()).square().mean()

    fit(m, loss, 3, lambda p: torch.optim.AdamW(p, 1e-5, fused=True))


@job
def mmdit_sampler():
    m = on(Mmdit, 3072, 24, 12, False, dt=BF).eval()
    with torch.inference_mode():
        z = N(2, 16, 128, 96, dt=BF)
        for i in range(6):
            z = z - m(z, N(2, 512, 4096, dt=BF), torch.full((2,), 1 - i / 6, device=dev)) / 6


class Res(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.a, s.b, s.x, s.y = nn.GroupNorm(32, i), nn.GroupNorm(32, o), nn.Conv2d(i, o, 3, 1, 1), nn.Conv2d(o, o, 3, 1, 1)
        s.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(s, x):
        return s.s(x) + s.y(F.silu(s.b(s.x(F.silu(s.a(x))))))


def decoder():
    parts, i = [nn.Conv2d(4, 512, 3, 1, 1)], 512
    for o in (512, 512, 256, 128):
        parts += [Res(i, o), Res(o, o), Res(o, o)] + ([nn.Upsample(scale_factor=2), nn.Conv2d(o, o, 3, 1, 1)] if o != 128 else [])
        i = o
    return nn.Sequential(*parts, nn.GroupNorm(32, 128), nn.SiLU(), nn.Conv2d(128, 3, 3, 1, 1))


@job
def vae_decode_fp16():
    m = on(decoder, dt=HF16).eval()
    with torch.inference_mode():
        for n, h, w in ((1, 128, 128), (2, 96, 96), (1, 64, 112)):
            m(N(n, 4, h, w, dt=HF16))


@job
def vae_train_bf16():
    fit(on(decoder), lambda m: (m(N(2, 4, 32, 32)) - images(2, 256)).abs().mean(), 2, amp=BF)


# ---- sound
@job
def whisper_large_v3():
    m = hf("Whisper", BF, "WhisperForConditionalGeneration", d_model=1280, encoder_layers=32, decoder_layers=32, encoder_attention_heads=20, decoder_attention_heads=20,
           encoder_ffn_dim=5120, decoder_ffn_dim=5120, num_mel_bins=128, vocab_size=51866)
    fit(checkpointed(m), lambda m: m(input_features=N(4, 128, 3000, dt=BF), labels=T(4, 100, v=50000)).loss, 2, lambda p: torch.optim.AdamW(p, 1e-5, fused=True))
    m.eval()
    m.generate(N(4, 128, 3000, dt=BF), max_new_tokens=24, min_new_tokens=24, use_cache=True)


@job
def wav2vec2_large():
    m = hf("Wav2Vec2", torch.float32, "Wav2Vec2ForCTC", hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, feat_extract_norm="layer",
           do_stable_layer_norm=True, conv_bias=True, mask_time_prob=0.0, layerdrop=0.0)
    m.freeze_feature_encoder()
    fit(m, lambda m: m(input_values=N(4, 160000), labels=T(4, 60, v=31) + 1).loss, 3, amp=BF)


@job
def parakeet_ctc():
    m = hf("ParakeetCTC", torch.float32, "ParakeetForCTC")
    fit(m, lambda m: m(input_features=N(4, 1200, 80), labels=T(4, 40, v=1000), attention_mask=torch.ones(4, 1200, device=dev, dtype=torch.long)).loss, 2, amp=BF)


@job
def musicgen_decode():
    m = hf("MusicgenDecoder", BF, "MusicgenForCausalLM", hidden_size=1536, num_hidden_layers=24, num_attention_heads=24, ffn_dim=6144).eval()
    with torch.inference_mode():
        past, x = None, T(8, 1, v=2048)
        for _ in range(40):
            o = m(input_ids=x, past_key_values=past, use_cache=True)
            past, x = o.past_key_values, o.logits.argmax(-1)[:, -1:].reshape(8, -1)[:, -1:]


@job
def encodec_train():
    m = hf("Encodec", torch.float32, "EncodecModel")
    fit(m, lambda m: m.decoder(m.encoder(N(4, 1, 48000))).square().mean(), 2)


@job
def ast_audio():
    m = hf("AST", torch.float32, "ASTForAudioClassification", num_labels=527)
    fit(m, lambda m: m(input_values=N(8, 1024, 128), labels=T(8, v=527)).loss, 3, amp=HF16)


# ---- pictures and text
@job
def llava_7b_lora():
    import transformers as t

    c = t.LlavaConfig(vision_config=t.CLIPVisionConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, image_size=336, patch_size=14,
                      projection_dim=768), text_config=t.LlamaConfig(num_hidden_layers=16, vocab_size=32064), image_token_index=32000)
    m = lora(checkpointed(on(t.LlavaForConditionalGeneration, c, dt=BF)), 16, ["q_proj", "v_proj"])

    def loss(m):
        x = torch.cat([torch.full((2, 576), 32000, device=dev), T(2, 200, v=31999)], 1)
        return m(input_ids=x, pixel_values=images(2, 336, dt=BF), labels=x.clone()).loss

    fit(m, loss, 2)


@job
def clip_l14_contrastive():
    m = hf("CLIP", torch.float32, "CLIPModel", vision_config=dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, patch_size=14),
           text_config=dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072))
    fit(m, lambda m: m(input_ids=T(48, 77, v=49000), pixel_values=images(48, 224), return_loss=True).loss, 2, amp=BF)


@job
def siglip_so400m():
    m = hf("Siglip", BF, "SiglipModel", vision_config=dict(hidden_size=1152, num_hidden_layers=27, num_attention_heads=16, intermediate_size=4304, image_size=384, patch_size=14),
           text_config=dict(hidden_size=1152, num_hidden_layers=12, num_attention_heads=16, intermediate_size=4304))
    fit(m, lambda m: m(input_ids=T(8, 64), pixel_values=images(8, 384, dt=BF), return_loss=True).loss, 2)


@job
def blip2_opt():
    import transformers as t

    c = t.Blip2Config(vision_config=dict(num_hidden_layers=12), qformer_config=dict(vocab_size=30522), text_config=dict(model_type="opt", hidden_size=2560, num_hidden_layers=8,
                      num_attention_heads=32, ffn_dim=10240, vocab_size=50304), image_token_index=50265)
    m = on(t.Blip2ForConditionalGeneration, c, dt=BF)
    m.vision_model.requires_grad_(False)
    m.language_model.requires_grad_(False)

    def loss(m):
        x = torch.cat([torch.full((4, 32), 50265, device=dev), T(4, 40, v=50000)], 1)
        return m(pixel_values=images(4, 224, dt=BF), input_ids=x, labels=x.clone()).loss

    fit(m, loss, 2)


# ---- other
@job
def dlrm_criteo():
    rows = [1000 * (i * i + 1) for i in range(26)]
    m = on(lambda: nn.ModuleDict({"e": nn.ModuleList(nn.EmbeddingBag(r, 64, mode="sum", sparse=True) for r in rows), "b": nn.Sequential(nn.Linear(13, 512), nn.ReLU(),
           nn.Linear(512, 64), nn.ReLU()), "t": nn.Sequential(nn.Linear(351 + 64, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))}))
    a, b = torch.optim.SparseAdam(list(m["e"].parameters()), 1e-3), torch.optim.Adagrad([*m["b"].parameters(), *m["t"].parameters()], 1e-2)
    u, v = torch.triu_indices(27, 27, 1, device=dev)
    for _ in range(3):
        n, d = 8192, None
        d = m["b"](N(n, 13))
        z = torch.stack([d] + [e(T(n, v=r), torch.arange(n, device=dev)) for e, r in zip(m["e"], rows)], 1)
        y = m["t"](torch.cat([d, torch.bmm(z, z.transpose(1, 2))[:, u, v]], 1))
        F.binary_cross_entropy_with_logits(y[:, 0], torch.rand(n, device=dev).round()).backward()
        for o in (a, b):
            o.step()
            o.zero_grad()


@job
def sasrec():
    m = on(lambda: nn.ModuleDict({"i": nn.Embedding(200000, 256), "p": nn.Embedding(200, 256), "t": nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, 0.2, batch_first=True), 3)}))

    def loss(m):
        x = T(256, 200, v=200000)
        h = m["t"](m["i"](x) + m["p"].weight, nn.Transformer.generate_square_subsequent_mask(200, device=dev), is_causal=True)
        p, n = (h * m["i"](x.roll(-1, 1))).sum(-1), (h * m["i"](T(256, 200, v=200000))).sum(-1)
        return F.softplus(n - p).mean()

    fit(m, loss, 3)


@job
def products_sage():
    from torch_geometric.nn import SAGEConv

    m = on(lambda: nn.ModuleList([SAGEConv(100, 256), SAGEConv(256, 256), SAGEConv(256, 47)]))
    x, e, y = N(400000, 100), T(2, 3000000, v=400000), T(400000, v=47)

    def loss(m):
        h = x
        for i, c in enumerate(m):
            h = c(h, e)
            h = F.dropout(h.relu()) if i < 2 else h
        return F.cross_entropy(h, y)

    fit(m, loss, 3)


@job
def ppo_atari():
    m = on(lambda: nn.ModuleDict({"n": nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
           nn.Linear(3136, 512), nn.ReLU()), "p": nn.Linear(512, 6), "v": nn.Linear(512, 1)}))
    o = torch.optim.Adam(m.parameters(), 2.5e-4, eps=1e-5)
    for _ in range(2):
        obs, acts, logs, vals = torch.zeros(64, 32, 4, 84, 84, device=dev, dtype=torch.uint8), [], [], []
        for t in range(64):
            obs[t] = torch.randint(0, 255, (32, 4, 84, 84), device=dev, dtype=torch.uint8)
            with torch.no_grad():
                h = m["n"](obs[t] / 255.0)
                d = torch.distributions.Categorical(logits=m["p"](h))
                acts.append(d.sample())
                logs.append(d.log_prob(acts[-1]))
                vals.append(m["v"](h)[:, 0])
        b = [torch.stack(z).flatten() for z in (acts, logs, vals)]
        for i in torch.randperm(2048, device=dev).chunk(8):
            h = m["n"](obs.flatten(0, 1)[i] / 255.0)
            d = torch.distributions.Categorical(logits=m["p"](h))
            r = (d.log_prob(b[0][i]) - b[1][i]).exp()
            l = -torch.min(r, r.clamp(0.9, 1.1)).mean() + (m["v"](h)[:, 0] - b[2][i]).square().mean() - 0.01 * d.entropy().mean()
            o.zero_grad()
            l.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            o.step()


@job
def graphed_training():
    m = net("vit_base_patch16_224")
    o = torch.optim.AdamW(m.parameters(), 1e-4, capturable=True)
    x, y = images(32, 224), T(32, v=1000)

    def step():
        o.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=BF, cache_enabled=False):
            l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()

    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        step()
    for _ in range(3):
        x.copy_(images(32, 224))
        g.replay()


@job
def saved_on_host():
    m = hf("Llama", **{**LLAMA1B, "num_hidden_layers": 8})
    m.config.use_cache = False
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        fit(m, lm(128000, 2, 1024), 2)


@job
def prefetch_side_stream():
    m, s = net("resnet50d", True), torch.cuda.Stream()
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)

    def load():
        with torch.cuda.stream(s):
            return torch.randn(64, 3, 224, 224).pin_memory().to(dev, non_blocking=True), torch.randint(0, 1000, (64,)).pin_memory().to(dev, non_blocking=True)

    nxt = load()
    for _ in range(4):
        torch.cuda.current_stream().wait_stream(s)
        x, y = nxt
        for t in (x, y):
            t.record_stream(torch.cuda.current_stream())
        nxt = load()
        with torch.autocast("cuda", dtype=BF):
            l = F.cross_entropy(m(x.to(memory_format=torch.channels_last)), y)
        l.backward()
        o.step()
        o.zero_grad()
        l.item()


@job
def weather_fourcast():
    """Fourier neural operator on a globe of 721 by 1440 points, cut to patches."""
    m = on(lambda: nn.ModuleDict({"p": nn.Conv2d(20, 512, 8, 8), "w": nn.ParameterList(nn.Parameter(0.02 * torch.randn(2, 8, 64, 64)) for _ in range(6)),
           "m": nn.ModuleList(nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(6)), "h": nn.Linear(512, 20 * 64)}))

    def loss(m):
        x = m["p"](N(2, 20, 720, 1440)).permute(0, 2, 3, 1)
        for w, f in zip(m["w"], m["m"]):
            z = torch.fft.rfft2(x.float(), dim=(1, 2), norm="ortho").unflatten(-1, (8, 64))
            z = torch.einsum("bxyki,kio->bxyko", z, torch.complex(w[0], w[1])).flatten(-2)
            x = x + torch.fft.irfft2(z, s=x.shape[1:3], dim=(1, 2), norm="ortho")
            x = x + f(x)
        return m["h"](x).square().mean()

    fit(m, loss, 2)


# ---- compiled
@job
def c_llama1b():
    m = hf("Llama", **{**LLAMA1B, "num_hidden_layers": 4})
    m.config.use_cache = False
    fit(comp(m), lm(128000, 2, 2048), 3)


@job
def c_resnet50_nhwc():
    fit(comp(net("resnet50", True)), classify(64, 224, True), 3, SGD, amp=BF)


@job
def c_vit_large():
    fit(comp(net("vit_large_patch16_224", depth=8)), classify(32, 224), 3, amp=BF)


@job
def c_mmdit():
    m = comp(on(Mmdit, 1024, 16, 6, False, dt=BF))
    fit(m, lambda m: m(N(4, 16, 64, 64, dt=BF), N(4, 100, 4096, dt=BF), torch.rand(4, device=dev)).float().square().mean(), 3)


@job
def c_gpt2_reduce_overhead():
    m = hf("GPT2", torch.float32, "GPT2LMHeadModel", n_layer=6)
    m.config.use_cache = False
    fit(comp(m, mode="reduce-overhead"), lm(50000, 4, 512), 4, amp=BF)



# ---- the second half: written after what the first had shown was mended
def seq2seq(name, cls, vocab, batch=4, src=256, tgt=64, gen=0, steps=2, amp=BF, dt=torch.float32, **k):
    m = hf(name, dt, cls, **k)
    fit(m, lambda m: m(input_ids=T(batch, src, v=vocab) + 3, labels=T(batch, tgt, v=vocab) + 3).loss, steps, amp=amp)
    if gen:
        m.eval().generate(T(batch, src // 2, v=vocab) + 3, max_new_tokens=gen, min_new_tokens=gen, num_beams=3, do_sample=False)


def causal(name, vocab, batch=2, length=1024, steps=2, gen=12, opt=None, **k):
    m = hf(name, vocab_size=vocab, **k)
    m.config.use_cache = False
    fit(m, lm(vocab - 1, batch, length), steps, opt or SGD)
    if gen:
        m.eval().generate(T(batch, 200, v=vocab - 1), max_new_tokens=gen, min_new_tokens=gen, do_sample=False, use_cache=True, pad_token_id=0)


@job
def gpt_oss():
    causal("GptOss", 201088, hidden_size=2880, num_hidden_layers=2, num_attention_heads=64, num_key_value_heads=8, head_dim=64, intermediate_size=2880, num_local_experts=32,
           num_experts_per_tok=4, layer_types=["sliding_attention", "full_attention"], sliding_window=128)


@job
def olmo2_cohere():
    causal("Olmo2", 100352, hidden_size=2048, num_hidden_layers=6, num_attention_heads=16, intermediate_size=8192)
    causal("Cohere2", 256000, 1, 700, hidden_size=2048, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8, intermediate_size=5632)


@job
def bloom_alibi_mpt():
    causal("Bloom", 250880, 2, 900, hidden_size=1536, n_layer=6, n_head=16)
    causal("Mpt", 50368, 2, 900, d_model=1536, n_layers=6, n_heads=16)


@job
def gptj_codegen_opt():
    causal("GPTJ", 50400, n_embd=2048, n_layer=4, n_head=16, rotary_dim=64)
    causal("OPT", 50272, hidden_size=2048, num_hidden_layers=6, num_attention_heads=32, ffn_dim=8192, word_embed_proj_dim=2048)


@job
def jamba_hybrid():
    causal("Jamba", 65536, 2, 512, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=8, intermediate_size=3584, num_experts=8, attn_layer_period=4,
           attn_layer_offset=1, expert_layer_period=2, use_mamba_kernels=False)


@job
def gemma3_hybrid_cache():
    m = hf("Gemma3Text", BF, "Gemma3ForCausalLM", hidden_size=2560, num_hidden_layers=12, num_attention_heads=8, num_key_value_heads=4, head_dim=256, intermediate_size=10240,
           vocab_size=262208, sliding_window=512).eval()
    for n, length in ((2, 1500), (6, 400)):
        m.generate(T(n, length), max_new_tokens=40, min_new_tokens=40, do_sample=False, pad_token_id=0)


@job
def offloaded_and_static_cache():
    m = hf("Llama", **{**LLAMA1B, "num_hidden_layers": 8}).eval()
    for kind in ("offloaded", "dynamic", None):
        m.generate(T(4, 600), max_new_tokens=24, min_new_tokens=24, do_sample=False, pad_token_id=0, cache_implementation=kind)


@job
def samples_and_sequences():
    m = hf("Qwen2", hidden_size=1536, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=2, intermediate_size=8960, vocab_size=151936).eval()
    m.generate(T(2, 500), max_new_tokens=24, min_new_tokens=24, do_sample=True, top_p=0.9, top_k=50, temperature=0.7, num_return_sequences=8, pad_token_id=0)


@job
def pegasus_led_mt5():
    seq2seq("Pegasus", "PegasusForConditionalGeneration", 50000, gen=12, vocab_size=50265, encoder_layers=6, decoder_layers=6)
    seq2seq("MT5", "MT5ForConditionalGeneration", 250000, dt=BF, amp=None, d_model=768, num_layers=8, num_heads=12, d_ff=2048, decoder_start_token_id=0)


@job
def nllb_marian():
    seq2seq("M2M100", "M2M100ForConditionalGeneration", 128000, gen=12, encoder_layers=6, decoder_layers=6, encoder_layerdrop=0.0, decoder_layerdrop=0.0, vocab_size=128112)
    seq2seq("Marian", "MarianMTModel", 58000, 16, 128, 128, gen=12, vocab_size=58101, d_model=512, encoder_ffn_dim=2048, decoder_ffn_dim=2048, encoder_layers=6, decoder_layers=6,
            encoder_attention_heads=8, decoder_attention_heads=8)


@job
def switch_transformer():
    seq2seq("SwitchTransformers", "SwitchTransformersForConditionalGeneration", 32000, 8, 256, 64, amp=None, num_layers=4, num_decoder_layers=4, num_sparse_encoder_layers=2,
            num_sparse_decoder_layers=2, num_experts=8, decoder_start_token_id=0)


@job
def xlnet_funnel_fnet():
    for name, cls, k in (("XLNet", "XLNetForSequenceClassification", dict(n_layer=8)), ("FNet", "FNetForSequenceClassification", {}), ("Nystromformer", "NystromformerForSequenceClassification", {}),
                         ("Funnel", "FunnelForSequenceClassification", {})):
        m = hf(name, torch.float32, cls, **k)
        fit(m, lambda m: m(input_ids=T(8, 480, v=30000), labels=T(8, v=2)).loss, 2, amp=BF if name != "FNet" else None)


@job
def reformer_lsh():
    m = hf("Reformer", torch.float32, "ReformerModelWithLMHead", is_decoder=True, axial_pos_shape=[32, 64], max_position_embeddings=2048)
    fit(m, lm(300, 2, 2048), 2)


@job
def token_labels():
    m = hf("XLMRoberta", torch.float32, "XLMRobertaForTokenClassification", vocab_size=250002, hidden_size=768, max_position_embeddings=514, num_labels=9)

    def loss(m):
        n = [rng.randint(20, 400) for _ in range(16)]
        w = max(n)
        mask = (torch.arange(w)[None] < torch.tensor(n)[:, None]).long().to(dev)
        y = torch.where(mask.bool(), T(16, w, v=9), -100)
        out = m(input_ids=T(16, w, v=250000) * mask + 2, attention_mask=mask, labels=y)
        keep = y != -100
        (out.logits.argmax(-1)[keep] == y[keep]).float().mean().item()
        return out.loss

    fit(m, loss, 4, amp=BF)


@job
def layoutlmv3_doc():
    m = hf("LayoutLMv3", torch.float32, "LayoutLMv3ForTokenClassification", num_labels=7)

    def loss(m):
        box = torch.sort(torch.randint(0, 1000, (4, 400, 2, 2), device=dev), 2)[0].flatten(2)
        return m(input_ids=T(4, 400, v=50000) + 3, bbox=box, pixel_values=images(4, 224), labels=T(4, 400, v=7)).loss

    fit(m, loss, 3, amp=BF)


@job
def trocr_vision_encoder_decoder():
    import transformers as t

    c = t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(t.ViTConfig(image_size=384), t.TrOCRConfig(d_model=768, decoder_layers=6, decoder_attention_heads=12, decoder_ffn_dim=3072,
            cross_attention_hidden_size=768))
    c.decoder_start_token_id, c.pad_token_id = 2, 1
    m = on(t.VisionEncoderDecoderModel, c)
    fit(m, lambda m: m(pixel_values=images(8, 384), labels=T(8, 40, v=50000) + 3).loss, 2, amp=BF)
    m.eval().generate(images(4, 384), max_new_tokens=12, min_new_tokens=12, num_beams=2)


@job
def detr_r50_train():
    import transformers as t

    m = on(t.DetrForObjectDetection, t.DetrConfig(use_timm_backbone=True, backbone="resnet50", use_pretrained_backbone=False, num_labels=91))

    def loss(m):
        y = [{"class_labels": T(k, v=90), "boxes": torch.rand(k, 4, device=dev) * 0.4 + 0.3} for k in (3, 7)]
        return m(pixel_values=N(2, 3, 640, 800), pixel_mask=torch.ones(2, 640, 800, device=dev, dtype=torch.long), labels=y).loss

    fit(m, loss, 2)


@job
def yolos_owl():
    m = hf("Yolos", torch.float32, "YolosForObjectDetection", image_size=[512, 640], num_labels=80)
    y = lambda: [{"class_labels": T(k, v=80), "boxes": torch.rand(k, 4, device=dev) * 0.4 + 0.3} for k in (2, 5)]
    fit(m, lambda m: m(pixel_values=N(2, 3, 512, 640), labels=y()).loss, 2)


@job
def upernet_beit():
    import transformers as t

    c = t.UperNetConfig(backbone_config=t.SwinConfig(embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], out_features=["stage1", "stage2", "stage3", "stage4"]), num_labels=150,
                        auxiliary_in_channels=384)
    m = on(t.UperNetForSemanticSegmentation, c)
    fit(m, lambda m: m(pixel_values=images(4, 512), labels=T(4, 512, 512, v=150)).loss, 2, amp=HF16)


@job
def smolvlm_images():
    import transformers as t

    c = t.SmolVLMConfig(vision_config=dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, image_size=512, patch_size=16),
                        text_config=dict(model_type="llama", hidden_size=960, intermediate_size=2560, num_hidden_layers=12, num_attention_heads=15, num_key_value_heads=5, vocab_size=49280),
                        image_token_id=49190, scale_factor=4)
    m = on(t.SmolVLMForConditionalGeneration, c, dt=BF)

    def loss(m):
        x = T(2, 300, v=49000)
        x[:, 20:20 + 3 * 64] = 49190
        return m(input_ids=x, pixel_values=N(2, 3, 3, 512, 512, dt=BF), labels=x.clone()).loss

    fit(m, loss, 2)


@job
def fastconformer_rnnt():
    import torchaudio

    enc = on(torchaudio.models.Conformer, 512, 8, 2048, 8, 31)
    pred, join, front = on(nn.LSTM, 640, 640, batch_first=True), on(nn.Linear, 512 + 640, 1025), on(torchaudio.transforms.MelSpectrogram, 16000, n_mels=80)
    emb, up = on(nn.Embedding, 1025, 640), on(nn.Linear, 320, 512)
    ps = [p for m in (enc, pred, join, emb, up) for p in m.parameters()]
    o = torch.optim.AdamW(ps, 1e-3)
    for _ in range(2):
        x = front(N(4, 160000)).clamp_min(1e-5).log()[..., :800].unflatten(-1, (200, 4)).permute(0, 2, 3, 1).flatten(2)
        y = T(4, 30, v=1024) + 1
        h, n = enc(up(x), torch.full((4,), 200, device=dev))
        g = pred(emb(F.pad(y, (1, 0))))[0]
        z = join(torch.cat([h[:, :, None].expand(-1, -1, 31, -1), g[:, None].expand(-1, 200, -1, -1)], -1))
        l = torchaudio.functional.rnnt_loss(z, y.int(), n.int(), torch.full((4,), 30, device=dev, dtype=torch.int32), blank=0)
        l.backward()
        o.step()
        o.zero_grad()


@job
def audio_front_ends():
    import torchaudio.transforms as t

    x = N(16, 160000)
    parts = [on(t.MelSpectrogram, 16000, 1024, hop_length=160, n_mels=128), on(t.MFCC, 16000, 40, melkwargs={"n_mels": 80}), on(t.Resample, 16000, 24000), on(t.Spectrogram, 400, power=None),
             on(t.PitchShift, 16000, 2), on(t.GriffinLim, 400, n_iter=8)]
    for p in parts[:5]:
        p(x)
    parts[5](on(t.Spectrogram, 400)(x))
    s = parts[0](x)
    for p in (t.FrequencyMasking(30), t.TimeMasking(100), t.AmplitudeToDB().to(dev)):
        s = p(s)


@job
def gpu_augment_mixup():
    from torchvision.transforms import v2

    m = net("resnet34", True)
    a = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomErasing(0.25), v2.ToDtype(torch.float32, scale=True),
                    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    random.seed(1)
    mix = v2.RandomChoice([v2.MixUp(num_classes=1000), v2.CutMix(num_classes=1000)])

    def loss(m):
        x, y = mix(a(torch.randint(0, 255, (48, 3, 288, 288), device=dev, dtype=torch.uint8)), T(48, v=1000))
        return F.cross_entropy(m(x.to(memory_format=torch.channels_last)), y)

    fit(m, loss, 3, SGD, amp=BF)


@job
def simclr_lars():
    m = on(lambda: nn.Sequential(__import__("timm").create_model("resnet50", num_classes=0), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 128)))

    def lars(ps):
        return torch.optim.SGD([{"params": [p], "lr": 0.1} for p in ps], 0.1, momentum=0.9)

    def loss(m):
        z = F.normalize(m(torch.cat([images(48, 160), images(48, 160)])).float(), dim=1)
        s = (z @ z.T).float() / 0.1
        s.masked_fill_(torch.eye(96, dtype=torch.bool, device=dev), -1e9)
        return F.cross_entropy(s, torch.arange(96, device=dev).roll(48))

    fit(m, loss, 2, lars, amp=HF16)


@job
def moco_queue_byol():
    import copy

    q = net("resnet18", num_classes=128)
    k = copy.deepcopy(q).requires_grad_(False)
    queue, at = F.normalize(N(65536, 128), dim=1), 0
    o = SGD(q.parameters())
    for _ in range(3):
        a, b = images(64, 224), images(64, 224)
        with torch.no_grad():
            for p, r in zip(q.parameters(), k.parameters()):
                r.mul_(0.999).add_(p, alpha=0.001)
            i = torch.randperm(64, device=dev)
            z = F.normalize(k(b[i]), dim=1)[torch.argsort(i)]
        y = F.normalize(q(a), dim=1)
        s = torch.cat([(y * z).sum(1, keepdim=True), y @ queue.T], 1) / 0.07
        F.cross_entropy(s, torch.zeros(64, dtype=torch.long, device=dev)).backward()
        o.step()
        o.zero_grad()
        queue[at:at + 64] = z
        at += 64


@job
def vqvae_codebook():
    e = on(lambda: nn.Sequential(nn.Conv2d(3, 128, 4, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 4, 2, 1), nn.ReLU(), nn.Conv2d(256, 256, 3, 1, 1)))
    d = on(lambda: nn.Sequential(nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1)))
    c = nn.Parameter(N(8192, 256))
    o = torch.optim.Adam([*e.parameters(), *d.parameters(), c], 2e-4)
    for _ in range(3):
        x = images(8, 256)
        z = e(x)
        f = z.permute(0, 2, 3, 1).flatten(0, 2)
        i = torch.cdist(f, c).argmin(1)
        v = c[i].view(8, 64, 64, 256).permute(0, 3, 1, 2)
        used = torch.bincount(i, minlength=8192)
        p = used / used.sum()
        (-(p * (p + 1e-10).log()).sum()).exp().item()
        l = F.mse_loss(d(z + (v - z).detach()), x) + F.mse_loss(v, z.detach()) + 0.25 * F.mse_loss(z, v.detach())
        l.backward()
        o.step()
        o.zero_grad()


@job
def glow_flow():
    class Step(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.s, s.b, s.w = nn.Parameter(torch.ones(1, c, 1, 1)), nn.Parameter(torch.zeros(1, c, 1, 1)), nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0])
            s.n = nn.Sequential(nn.Conv2d(c // 2, 256, 3, 1, 1), nn.ReLU(), nn.Conv2d(256, 256, 1), nn.ReLU(), nn.Conv2d(256, c, 3, 1, 1))

        def forward(s, x):
            d = s.s.abs().log().sum() * x.shape[2] * x.shape[3] + torch.linalg.slogdet(s.w)[1] * x.shape[2] * x.shape[3]
            x = F.conv2d(s.s * x + s.b, s.w[:, :, None, None])
            a, b = x.chunk(2, 1)
            h, t = s.n(a).chunk(2, 1)
            g = torch.sigmoid(h + 2)
            return torch.cat([a, b * g + t], 1), d + g.log().flatten(1).sum(1)

    steps = on(lambda: nn.ModuleList(nn.ModuleList(Step(12 * 2**i) for _ in range(4)) for i in range(3)))

    def loss(m):
        x, d = images(16, 64), 0
        for part in m:
            x = F.pixel_unshuffle(x, 2)
            for s in part:
                x, e = s(x)
                d = d + e
            x = x.chunk(2, 1)[0]
        return -d.mean() + x.square().mean()

    fit(steps, loss, 2, lambda p: torch.optim.Adamax(p, 1e-3))


@job
def alphafold_triangles():
    class Tri(nn.Module):
        def __init__(s, d=128):
            super().__init__()
            s.n, s.ab, s.g, s.o = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(d, d), nn.Linear(d, d)
            s.q, s.b = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, 4, bias=False)

        def forward(s, z):
            y = s.n(z)
            a, b, c, e = s.ab(y).chunk(4, -1)
            z = z + s.o(torch.einsum("bikc,bjkc->bijc", a * c.sigmoid(), b * e.sigmoid())) * s.g(y).sigmoid()
            q, k, v = s.q(z).unflatten(-1, (3, 4, -1)).permute(3, 0, 1, 4, 2, 5)
            w = q @ k.transpose(-1, -2) / 32**0.5 + s.b(z).permute(0, 3, 1, 2)[:, None]
            return z + (w.softmax(-1) @ v).transpose(2, 3).flatten(3)

    m = on(lambda: nn.ModuleList(Tri() for _ in range(4)))

    def loss(m):
        z = N(1, 192, 192, 128)
        for b in m:
            z = torch.utils.checkpoint.checkpoint(b, z, use_reentrant=False)
        return z.square().mean()

    fit(m, loss, 2, amp=BF)


@job
def hyena_long():
    class Hyena(nn.Module):
        def __init__(s, d, n):
            super().__init__()
            s.i, s.o, s.c = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Conv1d(3 * d, 3 * d, 3, padding=2, groups=3 * d)
            s.f = nn.Parameter(torch.randn(d, n) * 0.02)

        def forward(s, x):
            n = x.shape[1]
            a, b, v = s.c(s.i(x).transpose(1, 2))[..., :n].chunk(3, 1)
            k = torch.fft.rfft(s.f, n=2 * n) / (2 * n)
            y = torch.fft.irfft(torch.fft.rfft((v * b).float(), n=2 * n) * k, n=2 * n, norm="forward")[..., :n]
            return s.o((y * a).transpose(1, 2))

    m = on(lambda: nn.Sequential(nn.Embedding(12, 256), *[Hyena(256, 32768) for _ in range(4)], nn.Linear(256, 12)))
    fit(m, lambda m: F.cross_entropy(m(T(2, 32768, v=12)).flatten(0, 1), T(65536, v=12)), 2)


@job
def enformer_pool():
    conv = lambda i, o, w: nn.Sequential(nn.BatchNorm1d(i), nn.GELU(), nn.Conv1d(i, o, w, padding=w // 2))
    m = on(lambda: nn.Sequential(nn.Conv1d(4, 384, 15, padding=7), nn.MaxPool1d(2), *[nn.Sequential(conv(384 + 64 * i, 448 + 64 * i, 5), nn.MaxPool1d(2)) for i in range(5)], nn.Flatten(2),
           nn.Conv1d(704, 768, 1)))
    t, h = on(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(768, 8, 1536, batch_first=True, norm_first=True), 3)), on(nn.Linear, 768, 5313)
    both = nn.ModuleList([m, t, h])
    fit(both, lambda b: F.poisson_nll_loss(F.softplus(h(t(m(N(1, 4, 65536)).transpose(1, 2))[:, 64:-64])), torch.rand(1, 896, 5313, device=dev), log_input=False), 2)


@job
def hash_grid_nerf():
    grid, mlp = nn.Parameter(torch.randn(16, 1 << 19, 2, device=dev) * 1e-4), on(lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16)))
    o = torch.optim.Adam([grid, *mlp.parameters()], 1e-2, eps=1e-15)
    primes, corners = torch.tensor([1, 2654435761, 805459861], device=dev), torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], device=dev)
    for _ in range(3):
        x = torch.rand(65536, 3, device=dev)
        f = []
        for l in range(16):
            s = x * int(16 * 1.5**l)
            b = s.floor().long()
            h = (((b[:, None] + corners) * primes) % (1 << 19))
            i = h[..., 0] ^ h[..., 1] ^ h[..., 2]
            w = torch.where(corners[None].bool(), (s - b)[:, None], 1 - (s - b)[:, None]).prod(-1, keepdim=True)
            f.append((grid[l][i] * w).sum(1))
        mlp(torch.cat(f, 1)).square().mean().backward()
        o.step()
        o.zero_grad()


@job
def pointpillars():
    p, b = on(lambda: nn.Sequential(nn.Linear(9, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU())), on(Unet, [64, 128, 256], 18, 2, channels=64)

    def loss(m):
        xyz = torch.rand(2, 60000, 3, device=dev)
        cell = (xyz[..., :2] * 432).long()
        key = cell[..., 0] * 432 + cell[..., 1] + torch.arange(2, device=dev)[:, None] * 432 * 432
        u, i = torch.unique(key.flatten(), return_inverse=True)
        h = m[0](torch.cat([xyz.flatten(0, 1)] * 3, 1))
        z = torch.zeros(len(u), 64, device=dev).scatter_reduce(0, i[:, None].expand(-1, 64), h, "amax", include_self=False)
        c = torch.zeros(2 * 432 * 432, 64, device=dev).index_put((u,), z)
        return m[1](c.view(2, 432, 432, 64).permute(0, 3, 1, 2))[-1].square().mean()

    fit(nn.ModuleList([p, b]), loss, 3)


@job
def mesh_graph_net():
    from torch_geometric.utils import scatter

    mlp = lambda i, o: nn.Sequential(nn.Linear(i, 128), nn.ReLU(), nn.Linear(128, o), nn.LayerNorm(o))
    m = on(lambda: nn.ModuleDict({"n": mlp(12, 128), "e": mlp(7, 128), "b": nn.ModuleList(nn.ModuleList([mlp(384, 128), mlp(256, 128)]) for _ in range(8)), "d": nn.Linear(128, 3)}))
    e = T(2, 120000, v=20000)

    def loss(m):
        x, y = m["n"](N(20000, 12)), m["e"](N(120000, 7))
        for a, b in m["b"]:
            y = y + a(torch.cat([x[e[0]], x[e[1]], y], 1))
            x = x + b(torch.cat([x, scatter(y, e[1], 0, 20000, "sum")], 1))
        return m["d"](x).square().mean()

    fit(m, loss, 2)


@job
def rgcn_link():
    from torch_geometric.nn import RGCNConv
    from torch_geometric.utils import negative_sampling

    m = on(lambda: nn.ModuleDict({"x": nn.Embedding(14541, 256), "a": RGCNConv(256, 256, 474, num_blocks=8), "b": RGCNConv(256, 256, 474, num_blocks=8), "r": nn.Embedding(474, 256)}))
    e, t = T(2, 60000, v=14541), T(60000, v=474)

    def loss(m):
        h = m["b"](m["a"](m["x"].weight, e, t).relu(), e, t)
        n = negative_sampling(e, 14541)
        s = lambda z, r: (h[z[0]] * m["r"](r) * h[z[1]]).sum(1)
        return F.softplus(-s(e, t)).mean() + F.softplus(s(n, t[:n.shape[1]])).mean()

    fit(m, loss, 1)


@job
def ft_transformer_tabnet():
    m = on(lambda: nn.ModuleDict({"w": nn.ParameterList([nn.Parameter(torch.randn(40, 192) * 0.1), nn.Parameter(torch.zeros(1, 1, 192))]), "c": nn.Embedding(5000, 192),
           "t": nn.TransformerEncoder(nn.TransformerEncoderLayer(192, 8, 256, 0.1, "gelu", batch_first=True, norm_first=True), 3), "h": nn.Linear(192, 1)}))

    def loss(m):
        x = torch.cat([m["w"][1].expand(2048, -1, -1), N(2048, 40, 1) * m["w"][0], m["c"](T(2048, 12, v=5000))], 1)
        return F.binary_cross_entropy_with_logits(m["h"](m["t"](x)[:, 0])[:, 0], torch.rand(2048, device=dev).round())

    fit(m, loss, 4)


@job
def tft_nbeats():
    m = on(lambda: nn.ModuleDict({"l": nn.LSTM(64, 160, 2, batch_first=True, dropout=0.1), "a": nn.MultiheadAttention(160, 4, batch_first=True), "g": nn.Linear(160, 320), "i": nn.Linear(20, 64),
           "o": nn.Linear(160, 7), "n": nn.ModuleList(nn.Sequential(nn.Linear(168, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 192)) for _ in range(10))}))

    def loss(m):
        h = m["l"](m["i"](N(256, 192, 20)))[0]
        h = h + F.glu(m["g"](m["a"](h, h, h, attn_mask=torch.triu(torch.ones(192, 192, device=dev, dtype=torch.bool), 1))[0]))
        q, y = m["o"](h[:, -24:]), N(256, 24, 1)
        l = torch.maximum((y - q) * 0.9, (q - y) * 0.1).mean()
        x, f = N(1024, 168), 0
        for b in m["n"]:
            u = b(x)
            x, f = x - u[:, :168], f + u[:, 168:]
        return l + f.abs().mean()

    fit(m, loss, 4)


@job
def adaptive_softmax_lm():
    m = on(lambda: nn.ModuleDict({"e": nn.Embedding(267735, 512), "t": nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4),
           "s": nn.AdaptiveLogSoftmaxWithLoss(512, 267735, [20000, 40000, 200000], div_value=4.0)}))

    def loss(m):
        x = (torch.rand(8, 257, device=dev) ** 3 * 267734).long()
        h = m["t"](m["e"](x[:, :-1]), nn.Transformer.generate_square_subsequent_mask(256, device=dev), is_causal=True)
        return m["s"](h.flatten(0, 1), x[:, 1:].flatten()).loss

    fit(m, loss, 3)


@job
def gshard_dispatch():
    """Experts with a capacity: one_hot, cumsum, einsum."""
    class Moe(nn.Module):
        def __init__(s, d=1024, e=16):
            super().__init__()
            s.g, s.a, s.b = nn.Linear(d, e, bias=False), nn.Parameter(torch.randn(e, d, 2 * d) * 0.02), nn.Parameter(torch.randn(e, 2 * d, d) * 0.02)

        def forward(s, x):
            p = s.g(x).float().softmax(-1)
            c = int(1.25 * x.shape[0] / p.shape[1] * 2)
            w, i = p.topk(2)
            o = F.one_hot(i, p.shape[1]).flatten(0, 1)
            at = (o.cumsum(0) - 1).mul(o).sum(-1).view_as(i)
            keep = at < c
            d = (F.one_hot(i, p.shape[1])[..., None] * F.one_hot(at.clamp_max(c - 1), c)[..., None, :] * keep[..., None, None]).to(x.dtype)
            y = torch.einsum("tkec,td->ecd", d, x)
            y = torch.einsum("ecf,efd->ecd", F.gelu(torch.einsum("ecd,edf->ecf", y, s.a)), s.b)
            return x + torch.einsum("tkec,tk,ecd->td", d, w.to(x.dtype), y)

    m = on(lambda: nn.Sequential(*[Moe() for _ in range(2)]))
    fit(m, lambda m: m(N(2048, 1024)).square().mean(), 3)


@job
def dcn_two_tower():
    m = on(lambda: nn.ModuleDict({"u": nn.EmbeddingBag(500000, 64), "i": nn.Embedding(200000, 64), "x": nn.ModuleList(nn.Linear(64, 64) for _ in range(3)),
           "d": nn.Sequential(nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 64))}))

    def loss(m):
        n = 4096
        lengths = torch.randint(1, 50, (n,))
        o = F.pad(lengths.cumsum(0), (1, 0))
        u = m["u"](T(int(o[-1]), v=500000), o[:-1].to(dev))
        z = u
        for x in m["x"]:
            z = u * x(z) + z
        a, b = F.normalize(z + m["d"](u), dim=1), F.normalize(m["i"](T(n, v=200000)), dim=1)
        return F.cross_entropy(a @ b.T / 0.05, torch.arange(n, device=dev))

    fit(m, loss, 3, lambda p: torch.optim.Adagrad(p, 0.01))


@job
def wgan_gp_spectral():
    sn = nn.utils.parametrizations.spectral_norm
    g = on(lambda: nn.Sequential(nn.Linear(128, 512 * 16), nn.Unflatten(1, (512, 4, 4)), *sum(([nn.BatchNorm2d(i), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(i, i // 2, 3, 1, 1)]
           for i in (512, 256, 128, 64)), []), nn.Conv2d(32, 3, 3, 1, 1), nn.Tanh()))
    d = on(lambda: nn.Sequential(*sum(([sn(nn.Conv2d(i, o, 4, 2, 1)), nn.LeakyReLU(0.2)] for i, o in ((3, 64), (64, 128), (128, 256), (256, 512))), []), nn.Flatten(), sn(nn.Linear(512 * 16, 1))))
    a, b = torch.optim.Adam(g.parameters(), 1e-4, (0.0, 0.9)), torch.optim.Adam(d.parameters(), 1e-4, (0.0, 0.9))
    for i in range(6):
        x, y = images(64, 64), g(N(64, 128))
        if i % 3 == 2:
            (-d(y).mean()).backward()
            a.step()
        else:
            t = torch.rand(64, 1, 1, 1, device=dev)
            z = (t * x + (1 - t) * y.detach()).requires_grad_()
            (r,) = torch.autograd.grad(d(z).sum(), z, create_graph=True)
            (d(y.detach()).mean() - d(x).mean() + 10 * (r.flatten(1).norm(2, 1) - 1).square().mean()).backward()
            b.step()
        a.zero_grad()
        b.zero_grad()


@job
def hessians_and_jacobians():
    m = on(lambda: nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)))
    x = N(512, 64)
    p = dict(m.named_parameters())
    f = lambda p, x: torch.func.functional_call(m, p, (x[None],))[0]
    torch.func.vmap(torch.func.jacrev(f), (None, 0))(p, x[:64])
    torch.func.vmap(torch.func.hessian(lambda x: f(p, x).sum()))(x[:128])
    torch.autograd.functional.jacobian(lambda z: m(z).sum(0), x)
    v = torch.func.jvp(lambda z: m(z), (x,), (torch.ones_like(x),))[1]
    g = torch.autograd.grad(m(x).square().sum(), list(m.parameters()), create_graph=True)
    torch.autograd.grad(sum((a * b.detach()).sum() for a, b in zip(g, g)), list(m.parameters()))
    return v


@job
def kmeans_pca_tsne():
    x = N(50000, 256)
    c = x[torch.randperm(50000, device=dev)[:512]].clone()
    for _ in range(4):
        i = torch.cat([torch.cdist(p, c).argmin(1) for p in x.split(10000)])
        n = torch.bincount(i, minlength=512).clamp_min(1)
        c = torch.zeros_like(c).index_add_(0, i, x) / n[:, None]
    u, s, v = torch.pca_lowrank(x, 32)
    y = (x @ v)[:4000, :2].clone().requires_grad_()
    p = F.softmax(-torch.cdist(x[:4000], x[:4000]), 1)
    o = torch.optim.SGD([y], 10.0, momentum=0.8)
    for _ in range(5):
        q = 1 / (1 + torch.cdist(y, y).square())
        q = q / q.sum()
        l = F.kl_div(q.clamp_min(1e-12).log(), p / p.sum(), reduction="sum")
        o.zero_grad()
        l.backward()
        o.step()
    torch.quantile(x[:1000], torch.tensor([0.1, 0.5, 0.9], device=dev), dim=0)
    x.kthvalue(100, 0), x.median(0), torch.histc(x, 100), x.argsort(0), torch.unique((x[:, 0] * 10).long())


@job
def retrieval_topk():
    bank = F.normalize(N(1000000, 256, dt=HF16), dim=1)
    q = F.normalize(N(512, 256, dt=HF16), dim=1)
    best = None
    for part, at in zip(bank.split(125000), range(0, 1000000, 125000)):
        s, i = (q @ part.T).topk(100)
        best = (s, i + at) if best is None else (lambda s, i: (lambda v, j: (v, i.gather(1, j)))(*s.topk(100)))(torch.cat([best[0], s], 1), torch.cat([best[1], i + at], 1))
    bank[best[1].flatten()].view(512, 100, 256) @ q[..., None]


@job
def lstm_attention_seq2seq():
    m = on(lambda: nn.ModuleDict({"s": nn.Embedding(30000, 512), "t": nn.Embedding(30000, 512), "e": nn.LSTM(512, 512, 2, bidirectional=True, batch_first=True, dropout=0.2),
           "d": nn.LSTMCell(1536, 1024), "o": nn.Linear(2048, 30000)}))

    def loss(m):
        n = torch.sort(torch.randint(10, 60, (64,)), descending=True)[0]
        p = nn.utils.rnn.pack_padded_sequence(m["s"](T(64, int(n[0]), v=30000)), n, batch_first=True)
        h, _ = nn.utils.rnn.pad_packed_sequence(m["e"](p)[0], batch_first=True)
        y, c, l = T(64, 30, v=30000), (torch.zeros(64, 1024, device=dev), torch.zeros(64, 1024, device=dev)), 0
        mask = torch.arange(h.shape[1], device=dev)[None] >= n.to(dev)[:, None]
        for i in range(29):
            w = (h @ c[0][..., None])[..., 0].masked_fill(mask, -1e9).softmax(1)
            a = (w[:, None] @ h)[:, 0]
            c = m["d"](torch.cat([m["t"](y[:, i]), a], 1), c)
            l = l + F.cross_entropy(m["o"](torch.cat([c[0], a], 1)), y[:, i + 1])
        return l / 29

    fit(m, loss, 2)


@job
def ppo_lstm_muzero():
    m = on(lambda: nn.ModuleDict({"n": nn.Sequential(nn.Linear(128, 256), nn.Tanh()), "l": nn.LSTM(256, 256), "p": nn.Linear(256, 18), "v": nn.Linear(256, 1), "d": nn.GRUCell(18, 256)}))
    o = torch.optim.Adam(m.parameters(), 3e-4)
    for _ in range(2):
        s, keep = (torch.zeros(1, 64, 256, device=dev), torch.zeros(1, 64, 256, device=dev)), []
        with torch.no_grad():
            for t in range(40):
                h, s = m["l"](m["n"](N(1, 64, 128)), s)
                a = torch.distributions.Categorical(logits=m["p"](h[0])).sample()
                keep.append(a)
                done = (torch.rand(64, device=dev) < 0.02)
                if done.any():
                    s = tuple(z * (~done)[None, :, None] for z in s)
        h, _ = m["l"](m["n"](N(40, 64, 128)))
        l = F.cross_entropy(m["p"](h).flatten(0, 1), torch.stack(keep).flatten()) + m["v"](h).square().mean()
        z = h[-1]
        for k in range(5):
            z = m["d"](F.one_hot(T(64, v=18), 18).float(), z)
            l = l + m["v"](z).square().mean() + F.cross_entropy(m["p"](z), T(64, v=18))
        o.zero_grad()
        l.backward()
        o.step()


@job
def trainer_eval_save():
    import tempfile
    from transformers import Trainer, TrainingArguments

    m = hf("Llama", torch.float32, hidden_size=768, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048)
    data = [{"input_ids": x, "labels": x} for x in torch.randint(0, 32000, (64, 512))]
    with tempfile.TemporaryDirectory() as d:
        a = TrainingArguments(d, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=4, bf16=True, eval_strategy="steps", eval_steps=2, save_steps=2, save_total_limit=1,
                              report_to=[], optim="adamw_torch_fused", lr_scheduler_type="cosine", gradient_checkpointing=True, dataloader_pin_memory=True, logging_steps=1)
        t = Trainer(m, a, train_dataset=data, eval_dataset=data[:16])
        t.train()
        t.predict(data[:8])


@job
def scaler_defaults_long():
    m = net("resnet18")
    fit(m, classify(64, 160), 8, SGD, amp=HF16, scaler=True)


@job
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


@job
def big_allclose_and_guards():
    a = N(4096, 8192)
    b = a * 1.5 + 2
    c = b.to(BF).float()
    if torch.isnan(c).any() or torch.isinf(c).any():
        c = c.nan_to_num()
    if not torch.isfinite(c).all():
        c = c.clone()
    d = c.clamp(-10, 10)
    s = (d.abs() > 1e30).sum().item()
    e = [d.clone() for _ in range(2 + (s > 0))]
    u, v = torch.aminmax(d)
    return e, u.item() <= v.item()


@job
def c_convnext():
    fit(comp(net("convnext_tiny", True)), classify(32, 224, True), 3, amp=BF)


@job
def c_moe_qwen():
    m = hf("Qwen3Moe", hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=4, head_dim=64, intermediate_size=3072, moe_intermediate_size=384, num_experts=16,
           num_experts_per_tok=4, vocab_size=32000)
    m.config.use_cache = False
    fit(comp(m), lm(32000, 2, 512), 2)


@job
def c_whisper():
    m = comp(hf("Whisper", BF, "WhisperForConditionalGeneration", d_model=512, encoder_layers=4, decoder_layers=4, encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
                decoder_ffn_dim=2048))
    fit(m, lambda m: m(input_features=N(4, 80, 3000, dt=BF), labels=T(4, 60, v=50000)).loss, 3)


@job
def c_unet():
    fit(comp(on(Unet, [32, 64, 128, 256], 2)), lambda m: F.cross_entropy(m(images(4, 256))[-1], T(4, 256, 256, v=2)), 3, amp=BF)


@job
def c_dynamic_lengths():
    m = comp(hf("Qwen2", hidden_size=768, num_hidden_layers=3, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048, vocab_size=32000), dynamic=True)
    m.config.use_cache = False

    def loss(m):
        x = T(4, rng.choice([200, 333, 512, 640]))
        return m(input_ids=x, labels=x).loss

    fit(m, loss, 5)

if __name__ == "__main__":
    main()
