#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that are recorded on a card and without one, to compare: nogpu_programs.py NAME OUT.pickle

The same file runs on both sides; sizes that change come from Python's own random numbers.
`nogpu_programs.py list` names the programs.
"""
import functools
import os
import random
import sys

import torch
import torch.nn.functional as F

DEVICE = "cuda"
rng = random.Random(7)


def train(model, loss_of, steps, rate=1e-4, amp=True):
    model.to(DEVICE).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
            loss = loss_of(model)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item())


def tokens(count, length, vocabulary=32000):
    return torch.randint(0, vocabulary, (count, length)).to(DEVICE)


def language(model, rows, lengths, vocabulary, steps, amp=True, **more):
    """Trains a model on its own input: so many rows (or one of these numbers), of one of these lengths."""
    def loss(m):
        x = tokens(rows if isinstance(rows, int) else rng.choice(rows), rng.choice(lengths), vocabulary)
        return m(input_ids=x, labels=x, **more).loss
    train(model, loss, steps, amp=amp)


def bert():
    from transformers import BertConfig, BertForMaskedLM

    def loss(m):
        x = tokens(16, rng.choice([64, 128, 200, 384]), 30522)
        return m(input_ids=x, attention_mask=torch.ones_like(x), labels=x).loss
    train(BertForMaskedLM(BertConfig(num_hidden_layers=6)), loss, 12)


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    def loss(m):
        x, y = tokens(8, rng.choice([128, 256, 300])), tokens(8, rng.choice([32, 64]))
        return m(input_ids=x, labels=y).loss
    train(T5ForConditionalGeneration(T5Config(d_model=512, num_layers=6, num_heads=8, d_ff=2048, decoder_start_token_id=0)), loss, 12)


def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    m = Qwen2ForCausalLM(Qwen2Config(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
                                     num_key_value_heads=4, vocab_size=32000))
    m.gradient_checkpointing_enable()
    language(m, 4, [256, 512, 777, 1024], 32000, 10, use_cache=False)


def generate():
    from transformers import LlamaConfig, LlamaForCausalLM
    m = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                                     num_key_value_heads=4, vocab_size=32000)).to(DEVICE, torch.bfloat16).eval()
    with torch.no_grad():
        for _ in range(5):
            x = tokens(rng.choice([1, 4, 8]), rng.randint(20, 300))
            m.generate(input_ids=x, max_new_tokens=rng.randint(8, 40), do_sample=True, pad_token_id=0, eos_token_id=None)


def images(model, steps, channels_last=False, amp=True, sizes=(160, 192, 224)):
    form = torch.channels_last if channels_last else torch.contiguous_format
    model = model.to(memory_format=form)

    def loss(m):
        n, r = rng.choice([16, 24, 32]), rng.choice(sizes)
        x = torch.randn(n, 3, r, r).to(DEVICE, memory_format=form)
        return F.cross_entropy(m(x).float(), torch.randint(0, 1000, (n,)).to(DEVICE))
    train(model, loss, steps, amp=amp)


# where a net is made, its name there, steps, and what `images` does otherwise
NETS = {
    "vit_small": ("timm", "vit_small_patch16_224", 10, dict(sizes=(224,))),
    "mixer": ("timm", "mixer_s16_224", 8, dict(sizes=(224,))),
    "swin": ("torchvision", "swin_t", 8, dict(sizes=(224,))),
    "convnext": ("timm", "convnext_tiny", 8, dict(channels_last=True)),
    "resnet": ("torchvision", "resnet50", 10, dict(channels_last=True)),
    "resnet_fp32": ("torchvision", "resnet18", 10, dict(amp=False)),
    "efficientnet": ("torchvision", "efficientnet_b0", 8, {}),
    # nobody looked at these while the pretended card was made
    "effnetv2": ("timm", "tf_efficientnetv2_b0", 6, dict(channels_last=True)),
    "regnet": ("timm", "regnety_016", 6, {}),
    "convnextv2": ("timm", "convnextv2_nano", 6, {}),
    "maxvit": ("timm", "maxvit_pico_rw_256", 5, dict(sizes=(256,))),
    "mobilenetv3": ("timm", "mobilenetv3_large_100", 8, {}),
    "densenet": ("timm", "densenet121", 5, dict(channels_last=True)),
    "vgg": ("torchvision", "vgg11_bn", 6, {}),
    # kept aside: recorded after all rules
    "resnext": ("torchvision", "resnext50_32x4d", 5, {}),
    "mobilevit": ("timm", "mobilevitv2_100", 5, {}),
    "beit": ("timm", "beitv2_base_patch16_224", 4, dict(sizes=(224,))),
}


def net(library, model, steps, options):
    if library == "timm":
        import timm
        made = timm.create_model(model, num_classes=1000)
    else:
        import torchvision
        made = getattr(torchvision.models, model)()
    images(made, steps, **options)


def graph(nodes, degree):
    n = int(nodes * rng.uniform(0.3, 1.5))
    return n, torch.randn(n, 128).to(DEVICE), torch.randint(0, n, (2, n * degree)).to(DEVICE)


def gat():
    from torch_geometric.nn import GATConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = GATConv(128, 64, heads=4), GATConv(256, 32, heads=1)

        def forward(self, x, e):
            return self.b(F.elu(self.a(x, e)), e)

    def loss(m):
        n, x, e = graph(20000, 8)
        return F.cross_entropy(m(x, e), torch.randint(0, 32, (n,)).to(DEVICE))
    train(Net(), loss, 20, amp=False)


def gin():
    from torch_geometric.nn import GINConv, global_add_pool

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            mlp = [torch.nn.Sequential(torch.nn.Linear(i, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128)) for i in (128, 128)]
            self.convs, self.out = torch.nn.ModuleList(GINConv(m) for m in mlp), torch.nn.Linear(128, 10)

        def forward(self, x, e, batch):
            for c in self.convs:
                x = c(x, e).relu()
            return self.out(global_add_pool(x, batch))

    def loss(m):
        n, x, e = graph(30000, 4)
        batch = torch.arange(n).to(DEVICE) // 50
        y = m(x, e, batch)
        return F.cross_entropy(y, torch.zeros(y.shape[0], dtype=torch.long, device=DEVICE))
    train(Net(), loss, 20, amp=False)


# ---- programs that nobody looked at while the pretended card was made

def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    m = WhisperForConditionalGeneration(WhisperConfig(encoder_layers=4, decoder_layers=4, d_model=384, encoder_attention_heads=6,
                                                      decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536))

    def loss(m):
        n = rng.choice([4, 6, 8])
        return m(input_features=torch.randn(n, 80, 3000).to(DEVICE), labels=tokens(n, rng.choice([32, 60, 100]), 50000)).loss
    train(m, loss, 8)


def trainer():
    import tempfile

    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return 128

        def __getitem__(self, i):
            x = torch.randint(0, 5000, (256,))
            return {"input_ids": x, "labels": x}
    m = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=512, n_head=8, vocab_size=5000))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, per_device_train_batch_size=16, max_steps=12, report_to=[], bf16=True, save_strategy="no",
                                 logging_steps=4, eval_strategy="steps", eval_steps=6, gradient_accumulation_steps=2)
        Trainer(model=m, args=args, train_dataset=Texts(), eval_dataset=Texts()).train()


def diffusion():
    from diffusers import DDPMScheduler, UNet2DConditionModel
    m = UNet2DConditionModel(sample_size=32, block_out_channels=(128, 256, 512, 512), cross_attention_dim=256, attention_head_dim=8)
    noise = DDPMScheduler()

    def loss(m):
        n = rng.choice([8, 12, 16])
        x, t, e = torch.randn(n, 4, 32, 32).to(DEVICE), torch.randint(0, 1000, (n,)).to(DEVICE), torch.randn(n, 4, 32, 32).to(DEVICE)
        return F.mse_loss(m(noise.add_noise(x, e, t), t, encoder_hidden_states=torch.randn(n, 32, 256).to(DEVICE)).sample.float(), e)
    train(m, loss, 6)


def vae():
    from diffusers import AutoencoderKL
    m = AutoencoderKL(block_out_channels=(64, 128, 256), down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3)

    def loss(m):
        x = torch.randn(rng.choice([4, 6, 8]), 3, 128, 128).to(DEVICE)
        p = m.encode(x).latent_dist
        return F.mse_loss(m.decode(p.sample()).sample, x) + 1e-6 * p.kl().mean()
    train(m, loss, 6, amp=False)


def deeplab():
    import torchvision
    m = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True)

    def loss(m):
        n, r = rng.choice([4, 8]), rng.choice([256, 320, 384])
        out, y = m(torch.randn(n, 3, r, r).to(DEVICE)), torch.randint(0, 21, (n, r, r)).to(DEVICE)
        return F.cross_entropy(out["out"].float(), y) + 0.4 * F.cross_entropy(out["aux"].float(), y)
    train(m, loss, 6)


def fasterrcnn():
    import torchvision
    m = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21, min_size=400, max_size=640)

    def loss(m):
        pictures = [torch.rand(3, rng.choice([300, 375, 400]), 500).to(DEVICE) for _ in range(4)]
        boxes = torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 210], [220, 20, 480, 280]])
        return sum(m(pictures, [{"boxes": boxes.to(DEVICE), "labels": torch.tensor([1, 2, 3]).to(DEVICE)} for _ in pictures]).values())
    train(m, loss, 5, amp=False)


def lstm():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = torch.nn.Embedding(10000, 256), torch.nn.Linear(512, 10000)
            self.a = torch.nn.LSTM(256, 512, 2, batch_first=True, bidirectional=True, dropout=0.1)
            self.b = torch.nn.GRU(1024, 512, batch_first=True)

        def forward(self, x):
            return self.out(self.b(self.a(self.embed(x))[0])[0])

    def loss(m):
        x = tokens(32, rng.choice([40, 70, 128]), 10000)
        return F.cross_entropy(m(x).flatten(0, 1), x.flatten())
    train(Net(), loss, 8, amp=False)


def video():
    import torchvision

    def loss(m):
        n, r = rng.choice([2, 4]), rng.choice([96, 112])
        return F.cross_entropy(m(torch.randn(n, 3, 8, r, r).to(DEVICE)).float(), torch.randint(0, 400, (n,)).to(DEVICE))
    train(torchvision.models.video.r3d_18(), loss, 6)


def gan():
    nn = torch.nn
    g = nn.Sequential(nn.ConvTranspose2d(100, 256, 4), nn.BatchNorm2d(256), nn.ReLU(), nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128),
                      nn.ReLU(), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(DEVICE)
    d = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 256, 4, 2, 1),
                      nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256 * 16, 1)).to(DEVICE)
    opt_g, opt_d = torch.optim.Adam(g.parameters(), 1e-4), torch.optim.Adam(d.parameters(), 1e-4)
    for _ in range(8):
        n = rng.choice([64, 96, 128])
        fake, real, a = g(torch.randn(n, 100, 1, 1).to(DEVICE)), torch.randn(n, 3, 32, 32).to(DEVICE), torch.rand(n, 1, 1, 1).to(DEVICE)
        x = (a * real + (1 - a) * fake.detach()).requires_grad_()
        slope, = torch.autograd.grad(d(x).sum(), x, create_graph=True)
        loss = d(fake.detach()).mean() - d(real).mean() + 10 * (slope.flatten(1).norm(2, 1) - 1).square().mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        (-d(fake).mean()).backward()
        opt_g.step()
    print("loss", loss.item())


def peft():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    m = get_peft_model(LlamaForCausalLM(LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12,
                                                    num_key_value_heads=4, vocab_size=16000)),
                       LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
    language(m, 4, [200, 400, 512], 16000, 8)
    m.eval()
    with torch.no_grad():
        m.generate(input_ids=tokens(2, 60, 16000), max_new_tokens=16, num_beams=3, pad_token_id=0, eos_token_id=None)


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    def loss(m):
        n, r = rng.choice([4, 8]), rng.choice([128, 192, 256])
        return m(pixel_values=torch.randn(n, 3, r, r).to(DEVICE), labels=torch.randint(0, 10, (n, r, r)).to(DEVICE)).loss
    train(SegformerForSemanticSegmentation(SegformerConfig(num_labels=10)), loss, 6)


def wav2vec():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    def loss(m):
        return m(input_values=torch.randn(4, rng.choice([16000, 32000, 40000])).to(DEVICE), labels=torch.randint(1, 30, (4, 20)).to(DEVICE)).loss
    train(Wav2Vec2ForCTC(Wav2Vec2Config(num_hidden_layers=4, ctc_loss_reduction="mean")), loss, 6)


def fourier():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lift, self.drop = torch.nn.Linear(3, 48), torch.nn.Linear(48, 1)
            self.weights = torch.nn.ParameterList(torch.randn(48, 48, 16, 16, dtype=torch.cfloat) / 48 for _ in range(4))

        def forward(self, x):
            x = self.lift(x).permute(0, 3, 1, 2)
            for w in self.weights:
                f = torch.fft.rfft2(x)
                g = torch.zeros_like(f)
                g[:, :, :16, :16] = torch.einsum("bihw,iohw->bohw", f[:, :, :16, :16], w)
                x = F.gelu(torch.fft.irfft2(g, s=x.shape[-2:]) + x)
            return self.drop(x.permute(0, 2, 3, 1))
    train(Net(), lambda m: m(torch.randn(rng.choice([8, 16]), *[rng.choice([64, 85, 128])] * 2, 3).to(DEVICE)).square().mean(), 8, amp=False)


def linalg():
    w = torch.randn(600, 600, device=DEVICE, requires_grad=True)
    for _ in range(4):
        n = rng.choice([200, 400, 600])
        a = w[:n, :n]
        s = a @ a.T + n * torch.eye(n, device=DEVICE)
        loss = torch.linalg.cholesky(s).diagonal().log().sum() + torch.linalg.solve(s, a).sum() + torch.linalg.svdvals(a).sum()
        loss = loss + torch.linalg.eigvalsh(s).sum() + torch.linalg.qr(a)[1].sum() + torch.linalg.inv(s).sum() + torch.linalg.slogdet(s)[1]
        loss.backward()
        w.grad = None


def compiled():
    from transformers import BertConfig, BertForMaskedLM
    m = BertForMaskedLM(BertConfig(num_hidden_layers=4, hidden_size=512, num_attention_heads=8, intermediate_size=2048))
    m.to(DEVICE)
    run = torch.compile(m)

    def loss(_):
        x = tokens(16, 128, 30522)
        return run(input_ids=x, attention_mask=torch.ones_like(x), labels=x).loss
    train(m, loss, 6)


# ---- kinds that were not there yet

def deberta():
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification
    m = DebertaV2ForSequenceClassification(DebertaV2Config(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048,
                                                           vocab_size=20000, relative_attention=True, pos_att_type=["p2c", "c2p"], num_labels=4))

    def loss(m):
        n, length = rng.choice([8, 16]), rng.choice([96, 160, 256])
        keep = torch.arange(length)[None] < torch.randint(length // 2, length, (n, 1))
        return m(input_ids=tokens(n, length, 20000), attention_mask=keep.long().to(DEVICE), labels=torch.randint(0, 4, (n,)).to(DEVICE)).loss
    train(m, loss, 8)


def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
    backbone = ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", out_features=["stage4"])
    m = DetrForObjectDetection(DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone,
                                          encoder_layers=3, decoder_layers=3, num_queries=50, num_labels=20))

    def loss(m):
        n, r = 4, rng.choice([320, 384, 448])
        y = [{"class_labels": torch.randint(0, 20, (k,)).to(DEVICE), "boxes": (torch.rand(k, 4) / 2 + 0.1).to(DEVICE)} for k in (1, 3, 5, 8)]
        return m(pixel_values=torch.randn(n, 3, r, r).to(DEVICE), labels=y).loss
    train(m, loss, 6, amp=False)


def vitmae():
    from transformers import ViTMAEConfig, ViTMAEForPreTraining
    m = ViTMAEForPreTraining(ViTMAEConfig(hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536,
                                          decoder_hidden_size=256, decoder_num_hidden_layers=4, decoder_num_attention_heads=8,
                                          decoder_intermediate_size=1024))
    train(m, lambda m: m(pixel_values=torch.randn(rng.choice([24, 32, 48]), 3, 224, 224).to(DEVICE)).loss, 8)


def clip():
    from transformers import CLIPConfig, CLIPModel
    m = CLIPModel(CLIPConfig(text_config=dict(num_hidden_layers=6), vision_config=dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                                                                                       intermediate_size=2048)))

    def loss(m):
        n = rng.choice([16, 32, 40])
        return m(input_ids=tokens(n, 77, 40000), pixel_values=torch.randn(n, 3, 224, 224).to(DEVICE), return_loss=True).loss
    train(m, loss, 8)


def gemma2():
    from transformers import Gemma2Config, Gemma2ForCausalLM
    m = Gemma2ForCausalLM(Gemma2Config(hidden_size=768, intermediate_size=2304, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
                                       head_dim=96, vocab_size=16000, sliding_window=256, attn_implementation="sdpa")).to(torch.bfloat16)
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    language(m, [2, 4], [300, 512, 700], 16000, 8, amp=False, use_cache=False)


def sft():
    from transformers import LlamaConfig, LlamaForCausalLM
    m = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=10, num_attention_heads=16, num_key_value_heads=8,
                                     vocab_size=32000, attn_implementation="sdpa"))
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    m.enable_input_require_grads()

    def loss(m):
        n, length = 4, rng.randrange(200, 900)
        keep = (torch.arange(length)[None] < torch.tensor([[length], [length // 2], [length - 7], [length // 3]])).to(DEVICE)
        x = tokens(n, length)
        return m(input_ids=x, attention_mask=keep.long(), labels=x.masked_fill(~keep, -100), use_cache=False).loss
    train(m, loss, 8)


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM
    m = MixtralForCausalLM(MixtralConfig(hidden_size=512, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                                         num_local_experts=8, num_experts_per_tok=2, vocab_size=16000, output_router_logits=True))
    language(m, 4, [128, 300, 512], 16000, 8, use_cache=False)


def mamba():
    from transformers import MambaConfig, MambaForCausalLM
    language(MambaForCausalLM(MambaConfig(hidden_size=256, num_hidden_layers=4, vocab_size=8000)), 4, [48, 64, 96], 8000, 4)


def trainer_fp16():
    import tempfile

    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    def collate(rows):
        longest = max(len(r) for r in rows)
        x = torch.stack([F.pad(r, (0, longest - len(r))) for r in rows])
        return {"input_ids": x, "attention_mask": (x > 0).long(), "labels": x[:, 0] % 3}
    texts = [torch.randint(1, 9000, (rng.randrange(20, 300),)) for _ in range(400)]
    m = BertForSequenceClassification(BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8, vocab_size=9000, num_labels=3))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, per_device_train_batch_size=16, max_steps=16, report_to=[], fp16=True, logging_steps=5,
                                 save_strategy="no", gradient_checkpointing=True, dataloader_num_workers=2)
        Trainer(model=m, args=args, train_dataset=texts, data_collator=collate).train()


def lightning():
    import tempfile

    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
            self.embed, self.body, self.out = torch.nn.Embedding(5000, 256), torch.nn.TransformerEncoder(layer, 6), torch.nn.Linear(256, 5000)

        def training_step(self, batch, _):
            x = batch[0][:, :rng.choice([100, 180, 256])]
            loss = F.cross_entropy(self.out(self.body(self.embed(x))).flatten(0, 1), x.flatten())
            self.log("loss", loss, prog_bar=True)
            return loss

        def validation_step(self, batch, _):
            hide = torch.arange(256, device=self.device)[None] > batch[0][:, :1] % 200 + 20
            self.log("val", self.out(self.body(self.embed(batch[0]), src_key_padding_mask=hide)).float().mean())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-4, fused=True)
    data = torch.utils.data.TensorDataset(torch.randint(0, 5000, (192, 256)))
    with tempfile.TemporaryDirectory() as folder:
        t = pl.Trainer(max_epochs=2, precision="bf16-mixed", logger=False, enable_checkpointing=False, default_root_dir=folder)
        t.fit(Module(), torch.utils.data.DataLoader(data, 24), torch.utils.data.DataLoader(data, 32))


def retinanet():
    import torchvision
    detector(torchvision.models.detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21, min_size=320, max_size=512))


def maskrcnn():
    import torchvision
    detector(torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21, min_size=320, max_size=512), True)


def detector(model, masks=False):
    def loss(m):
        pictures = [torch.rand(3, rng.choice([300, 360, 420]), 480).to(DEVICE) for _ in range(3)]
        y = []
        for p in pictures:
            corner = torch.rand(rng.randrange(1, 6), 2) * 150
            boxes = torch.cat([corner, corner + 20 + torch.rand(len(corner), 2) * 120], 1)
            y.append({"boxes": boxes.to(DEVICE), "labels": torch.randint(1, 21, (len(boxes),)).to(DEVICE)})
            if masks:
                y[-1]["masks"] = torch.randint(0, 2, (len(boxes), *p.shape[1:]), dtype=torch.uint8).to(DEVICE)
        return sum(m(pictures, y).values())
    train(model, loss, 5)


def s3d():
    import torchvision

    def loss(m):
        n, r = rng.choice([2, 4]), rng.choice([224, 256])
        return F.cross_entropy(m(torch.randn(n, 3, 16, r, r).to(DEVICE)).float(), torch.randint(0, 400, (n,)).to(DEVICE))
    train(torchvision.models.video.s3d(), loss, 5)


def sage():
    from torch_geometric.nn import SAGEConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = SAGEConv(100, 256), SAGEConv(256, 47)

        def forward(self, x, e):
            return self.b(F.dropout(self.a(x, e).relu(), 0.5, self.training), e)
    neighbours = torch.randint(0, 50000, (50000, 12))
    features = torch.randn(50000, 100)

    def sampled(seeds):
        nodes, edges = seeds, []
        for width in (10, 5):
            picked = neighbours[nodes][:, :width]
            edges.append(torch.stack([picked.flatten(), nodes.repeat_interleave(width)]))
            nodes = torch.unique(torch.cat([nodes, picked.flatten()]))
        place = torch.zeros(50000, dtype=torch.long)
        place[nodes] = torch.arange(len(nodes))
        return features[nodes].to(DEVICE), place[torch.cat(edges, 1)].to(DEVICE), place[seeds].to(DEVICE)

    def loss(m):
        seeds = torch.randperm(50000)[:rng.choice([512, 1024])]
        x, e, s = sampled(seeds)
        return F.cross_entropy(m(x, e)[s], torch.randint(0, 47, (len(seeds),)).to(DEVICE))
    train(Net(), loss, 16, amp=False)


def schnet():
    from torch_geometric.nn import SchNet

    def near(pos, batch):
        apart = torch.cdist(pos, pos)
        edge = ((apart < 5.0) & (batch[:, None] == batch[None]) & (apart > 0)).nonzero().t()
        return edge, (pos[edge[0]] - pos[edge[1]]).norm(dim=-1)
    m = SchNet(hidden_channels=128, num_filters=128, num_interactions=4, interaction_graph=near)

    def loss(m):
        batch = torch.arange(rng.choice([24, 32, 48])).repeat_interleave(18)
        return m(torch.randint(1, 10, batch.shape).to(DEVICE), torch.randn(len(batch), 3).to(DEVICE) * 3, batch.to(DEVICE)).square().mean()
    train(m, loss, 10, amp=False)


def unet():
    nn = torch.nn

    class Double(nn.Sequential):
        def __init__(self, i, o):
            super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True),
                             nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))

    class UNet(nn.Module):
        def __init__(self, w=(32, 64, 128, 256)):
            super().__init__()
            self.down = nn.ModuleList(Double(i, o) for i, o in zip((3,) + w, w))
            self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(w, w[1:]))
            self.join, self.out = nn.ModuleList(Double(2 * i, i) for i in w[:-1]), nn.Conv2d(w[0], 2, 1)

        def forward(self, x):
            kept = []
            for d in self.down:
                x = d(F.max_pool2d(x, 2) if kept else x)
                kept.append(x)
            for i in (2, 1, 0):
                x = self.join[i](torch.cat([kept[i], self.up[i](x)], 1))
            return self.out(x)

    def loss(m):
        n, r = rng.choice([2, 4]), rng.choice([192, 256])
        y, p = torch.randint(0, 2, (n, r, r)).to(DEVICE), m(torch.randn(n, 3, r, r).to(DEVICE))
        soft, hot = F.softmax(p, 1).float(), F.one_hot(y, 2).permute(0, 3, 1, 2).float()
        return F.cross_entropy(p, y) + 1 - (2 * (soft * hot).sum((2, 3)) / (soft + hot).sum((2, 3))).mean()
    half(UNet(), loss, 8)


def half(model, loss_of, steps):
    model.to(DEVICE).train()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), torch.amp.GradScaler()
    for i in range(steps):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model) / 2
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print("loss", loss.item(), "scale", scaler.get_scale())


def scaler():
    body = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True, norm_first=True, activation="gelu"), 6)
    half(body, lambda m: m(torch.randn(rng.choice([8, 16, 24]), rng.choice([128, 197]), 384).to(DEVICE)).float().square().mean(), 12)


def nerf():
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Linear(63, 256), nn.ReLU(), *(b for _ in range(4) for b in (nn.Linear(256, 256), nn.ReLU())))
            self.density, self.colour = nn.Linear(256, 1), nn.Sequential(nn.Linear(256 + 27, 128), nn.ReLU(), nn.Linear(128, 3), nn.Sigmoid())

        def forward(self, x, d):
            h = self.a(waves(x, 10))
            return self.density(h).relu()[..., 0], self.colour(torch.cat([h, waves(d, 4)], -1))

    def waves(x, count):
        return torch.cat([x] + [f(x * 2.0 ** i) for i in range(count) for f in (torch.sin, torch.cos)], -1)

    def render(m, start, way, t):
        density, colour = m(start[:, None] + way[:, None] * t[..., None], way[:, None].expand(-1, t.shape[1], 3))
        alpha = 1 - torch.exp(-density * F.pad(t[:, 1:] - t[:, :-1], (0, 1), value=1e10))
        weight = alpha * torch.cumprod(F.pad(1 - alpha[:, :-1] + 1e-10, (1, 0), value=1.0), 1)
        return (weight[..., None] * colour).sum(1), weight

    def loss(m):
        n = rng.choice([1024, 2048, 3000])
        start, way, goal = torch.randn(n, 3).to(DEVICE), F.normalize(torch.randn(n, 3), dim=1).to(DEVICE), torch.rand(n, 3).to(DEVICE)
        t = torch.linspace(2, 6, 48, device=DEVICE).expand(n, 48) + torch.rand(n, 48, device=DEVICE) / 12
        coarse, weight = render(m, start, way, t)
        cdf = torch.cumsum(weight.detach() + 1e-5, 1)
        at = torch.searchsorted((cdf / cdf[:, -1:]).contiguous(), torch.rand(n, 64, device=DEVICE)).clamp(max=47)
        fine, _ = render(m, start, way, torch.sort(torch.cat([t, t.gather(1, at)], 1), 1)[0])
        return F.mse_loss(coarse, goal) + F.mse_loss(fine, goal)
    train(Net(), loss, 10, amp=False)


def dlrm():
    nn = torch.nn
    tables = nn.ModuleList(nn.EmbeddingBag(n, 64, sparse=True, mode="sum") for n in (200000, 50000, 10000, 1000, 100, 300000)).to(DEVICE)
    low = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU()).to(DEVICE)
    high = nn.Sequential(nn.Linear(64 + 21, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)).to(DEVICE)
    dense, sparse = torch.optim.Adagrad([*low.parameters(), *high.parameters()], 0.01), torch.optim.SparseAdam(list(tables.parameters()), 0.01)
    for _ in range(12):
        n = rng.choice([2048, 4096, 8192])
        x = low(torch.rand(n, 13).to(DEVICE))
        bags = [x]
        for t in tables:
            sizes = torch.randint(1, 6, (n,))
            ids = torch.randint(0, t.num_embeddings, (int(sizes.sum()),)).to(DEVICE)
            bags.append(t(ids, (torch.cumsum(sizes, 0) - sizes).to(DEVICE)))
        z = torch.stack(bags, 1)
        row, column = torch.tril_indices(7, 7, -1).to(DEVICE)
        y = high(torch.cat([x, torch.bmm(z, z.transpose(1, 2))[:, row, column]], 1))
        loss = F.binary_cross_entropy_with_logits(y, torch.randint(0, 2, (n, 1)).float().to(DEVICE))
        dense.zero_grad()
        sparse.zero_grad()
        loss.backward()
        dense.step()
        sparse.step()
    print("loss", loss.item())


def scan():
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.norm, self.both, self.mix, self.out = nn.LayerNorm(w), nn.Linear(w, 3 * w), nn.Conv1d(w, w, 4, groups=w, padding=3), nn.Linear(w, w)

        def forward(self, x):
            gate, value, open_ = self.both(self.norm(x)).chunk(3, -1)
            value = self.mix(value.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)
            keep, take = -F.softplus(gate).float(), (-F.softplus(-gate) + F.softplus(value)).float()
            total = torch.cumsum(keep, 1)
            return x + self.out((total + torch.logcumsumexp(take - total, 1)).exp().to(x.dtype) * F.silu(open_))
    m = nn.Sequential(nn.Embedding(4000, 384), *(Block(384) for _ in range(6)), nn.RMSNorm(384), nn.Linear(384, 4000))

    def loss(m):
        x = tokens(8, rng.choice([256, 400, 512]), 4000)
        return F.cross_entropy(m(x[:, :-1]).flatten(0, 1).float(), x[:, 1:].flatten())
    train(m, loss, 8)


def ppo():
    nn = torch.nn
    body, policy, value = nn.Sequential(nn.Linear(24, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh()), nn.Linear(256, 6), nn.Linear(256, 1)
    m = nn.ModuleList([body, policy, value]).to(DEVICE)
    optimizer = torch.optim.Adam(m.parameters(), 3e-4)
    for _ in range(3):
        seen, acts, logs, rewards = [], [], [], []
        x = torch.randn(128, 24)
        for _ in range(64):
            with torch.no_grad():
                s = x.to(DEVICE)
                d = torch.distributions.Categorical(logits=policy(body(s)))
                a = d.sample()
            seen, acts, logs = seen + [s], acts + [a], logs + [d.log_prob(a)]
            x = x * 0.9 + torch.randn(128, 24) * 0.1 + a.cpu()[:, None] * 0.01
            rewards.append((x[:, 0] > 0).float())
        gain, total = [], torch.zeros(128)
        for r in reversed(rewards):
            total = r + 0.99 * total
            gain.insert(0, total)
        s, a, old, g = torch.cat(seen), torch.cat(acts), torch.cat(logs), torch.cat(gain).to(DEVICE)
        for _ in range(3):
            for part in torch.randperm(len(a)).to(DEVICE).split(2048):
                h = body(s[part])
                d, v = torch.distributions.Categorical(logits=policy(h)), value(h)[:, 0]
                better = g[part] - v.detach()
                ratio = (d.log_prob(a[part]) - old[part]).exp()
                loss = -torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean() + F.mse_loss(v, g[part]) - 0.01 * d.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
                optimizer.step()
            if ((d.log_prob(a[part]) - old[part]).mean().abs() > 0.5).item():
                break
    print("loss", loss.item())


# ---- kept aside: recorded after all rules

def keypoints():
    import torchvision
    m = torchvision.models.detection.keypointrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=2, min_size=320, max_size=448)

    def loss(m):
        pictures = [torch.rand(3, 300, rng.choice([300, 400])).to(DEVICE) for _ in range(3)]
        boxes, points = torch.tensor([[20.0, 30, 120, 200], [90, 60, 220, 280]]), torch.rand(2, 17, 3) * 200
        points[..., 2] = 1
        y = [{"boxes": boxes.to(DEVICE), "labels": torch.ones(2, dtype=torch.long, device=DEVICE), "keypoints": points.to(DEVICE)} for _ in pictures]
        return sum(m(pictures, y).values())
    train(m, loss, 4)


def opt():
    from transformers import OPTConfig, OPTForCausalLM
    m = OPTForCausalLM(OPTConfig(hidden_size=512, ffn_dim=2048, num_hidden_layers=6, num_attention_heads=8, vocab_size=8000, word_embed_proj_dim=512))
    language(m, 6, [100, 200, 333], 8000, 6)
    m.eval()
    with torch.no_grad():
        m.generate(input_ids=tokens(3, 40, 8000), max_new_tokens=20, do_sample=True, pad_token_id=1, eos_token_id=None)


def roberta():
    from transformers import RobertaConfig, RobertaForQuestionAnswering
    m = RobertaForQuestionAnswering(RobertaConfig(hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8, vocab_size=9000))

    def loss(m):
        n, length = rng.choice([8, 12]), rng.choice([128, 256, 384])
        ends = torch.randint(0, length, (2, n)).to(DEVICE)
        return m(input_ids=tokens(n, length, 9000), start_positions=ends[0], end_positions=ends[1]).loss
    train(m, loss, 8)


def gcn():
    from torch_geometric.nn import GCNConv, TopKPooling, global_mean_pool

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.pool, self.b, self.out = GCNConv(64, 128), TopKPooling(128, 0.6), GCNConv(128, 128), torch.nn.Linear(128, 6)

        def forward(self, x, e, batch):
            x, e, _, batch, _, _ = self.pool(self.a(x, e).relu(), e, batch=batch)
            return self.out(global_mean_pool(self.b(x, e).relu(), batch))

    def loss(m):
        graphs = rng.choice([200, 300])
        batch = torch.arange(graphs).repeat_interleave(40)
        edges = torch.randint(0, 40, (2, graphs * 120)) + torch.arange(graphs).repeat_interleave(120) * 40
        return F.cross_entropy(m(torch.randn(len(batch), 64).to(DEVICE), edges.to(DEVICE), batch.to(DEVICE)), torch.randint(0, 6, (graphs,)).to(DEVICE))
    train(Net(), loss, 12, amp=False)


def pointnet():
    nn = torch.nn
    body = nn.Sequential(*(b for i, o in ((3, 64), (64, 128), (128, 1024)) for b in (nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())))
    m = nn.ModuleDict({"body": body, "head": nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 40))})

    def loss(m):
        n = rng.choice([16, 24, 32])
        return F.cross_entropy(m["head"](m["body"](torch.randn(n, 3, 1024).to(DEVICE)).amax(2)), torch.randint(0, 40, (n,)).to(DEVICE))
    train(m, loss, 10, amp=False)


PROGRAMS = {f.__name__: f for f in (bert, t5, qwen2, generate, gat, gin, whisper, trainer, diffusion, vae, deeplab, fasterrcnn, lstm,
                                    video, gan, peft, segformer, wav2vec, fourier, linalg, compiled, deberta, detr, vitmae, clip, gemma2,
                                    sft, mixtral, mamba, trainer_fp16, lightning, retinanet, maskrcnn, s3d, sage, schnet, unet, scaler,
                                    nerf, dlrm, scan, ppo, keypoints, opt, roberta, gcn, pointnet)}
PROGRAMS.update({name: functools.partial(net, *of) for name, of in NETS.items()})


def main():
    if sys.argv[1] == "list":
        print(*PROGRAMS)
        return
    torch.manual_seed(7)
    torch.cuda.memory._record_memory_history(enabled="all", context=os.environ.get("CONTEXT"), stacks="python", max_entries=5_000_000)
    PROGRAMS[sys.argv[1]]()
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(sys.argv[2])
    s = torch.cuda.memory_stats()
    print(sys.argv[1], *("%s=%d" % (k, s[k]) for k in ("requested_bytes.all.peak", "reserved_bytes.all.peak", "allocation.all.allocated")))


main()
