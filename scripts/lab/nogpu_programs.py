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


PROGRAMS = {f.__name__: f for f in (bert, t5, qwen2, generate, vit_small, mixer, swin, convnext, resnet, resnet_fp32, efficientnet,
                                    gat, gin)}


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
