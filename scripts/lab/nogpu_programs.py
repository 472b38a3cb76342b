#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that are recorded on a card and without one, to compare: nogpu_programs.py NAME OUT.pickle

The same file runs on both sides; sizes that change come from Python's own random numbers.
`nogpu_programs.py list` names the programs.
"""
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

    def loss(model):
        x = tokens(4, rng.choice([256, 512, 777, 1024]))
        return model(input_ids=x, labels=x, use_cache=False).loss
    train(m, loss, 10)


def generate():
    from transformers import LlamaConfig, LlamaForCausalLM
    m = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                                     num_key_value_heads=4, vocab_size=32000)).to(DEVICE, torch.bfloat16).eval()
    with torch.no_grad():
        for _ in range(5):
            x = tokens(rng.choice([1, 4, 8]), rng.randint(20, 300))
            m.generate(input_ids=x, max_new_tokens=rng.randint(8, 40), do_sample=True, pad_token_id=0, eos_token_id=None)


def timm_train(name, steps, channels_last=False):
    import timm
    model = timm.create_model(name, num_classes=1000)
    images(model, steps, channels_last)


def images(model, steps, channels_last=False, amp=True, sizes=(160, 192, 224)):
    form = torch.channels_last if channels_last else torch.contiguous_format
    model = model.to(memory_format=form)

    def loss(m):
        n, r = rng.choice([16, 24, 32]), rng.choice(sizes)
        x = torch.randn(n, 3, r, r).to(DEVICE, memory_format=form)
        return F.cross_entropy(m(x).float(), torch.randint(0, 1000, (n,)).to(DEVICE))
    train(model, loss, steps, amp=amp)


def vit_small():
    import timm
    images(timm.create_model("vit_small_patch16_224"), 10, sizes=(224,))


def convnext():
    timm_train("convnext_tiny", 8, True)


def mixer():
    import timm
    images(timm.create_model("mixer_s16_224"), 8, sizes=(224,))


def resnet():
    import torchvision
    images(torchvision.models.resnet50(), 10, True)


def resnet_fp32():
    import torchvision
    images(torchvision.models.resnet18(), 10, False, amp=False)


def efficientnet():
    import torchvision
    images(torchvision.models.efficientnet_b0(), 8)


def swin():
    import torchvision
    images(torchvision.models.swin_t(), 8, sizes=(224,))


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

    def loss(m):
        x = tokens(4, rng.choice([200, 400, 512]), 16000)
        return m(input_ids=x, labels=x).loss
    train(m, loss, 8)
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


PROGRAMS = {f.__name__: f for f in (bert, t5, qwen2, generate, vit_small, mixer, swin, convnext, resnet, resnet_fp32, efficientnet, gat, gin,
                                    whisper, trainer, diffusion, vae, deeplab, fasterrcnn, lstm, video, gan, peft, segformer, wav2vec, fourier,
                                    linalg, compiled)}


def main():
    if sys.argv[1] == "list":
        print(*PROGRAMS)
        return
    torch.manual_seed(7)
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=5_000_000)
    PROGRAMS[sys.argv[1]]()
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(sys.argv[2])
    s = torch.cuda.memory_stats()
    print(sys.argv[1], *("%s=%d" % (k, s[k]) for k in ("requested_bytes.all.peak", "reserved_bytes.all.peak", "allocation.all.allocated")))


main()
