# SPDX-License-Identifier: Apache-2.0
"""The trainings of scripts/lab/live.sh: each yields a value per step, from which equal runs are told.

Shapes and sizes are those of the bundled recordings (traces/README.md); random weights and data, fixed seeds.
"""
import contextlib
import os
import random
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda"
LAYERS = int(os.environ.get("LIVE_LAYERS", 0))  # fewer, for a dry run
drawn_s, drawn_cpu_s = 0.0, 0.0  # spent on drawing data so far, which no allocator has a part in


@contextlib.contextmanager
def drawing():
    """What is done in here belongs to no step: the host draws numbers while the card has nothing to do."""
    global drawn_s, drawn_cpu_s
    began, cpu = time.perf_counter(), time.process_time()
    yield
    drawn_s, drawn_cpu_s = drawn_s + time.perf_counter() - began, drawn_cpu_s + time.process_time() - cpu


def step_of(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def tokens(rows, length, vocabulary=32000):
    return torch.randint(0, vocabulary, (rows, length)).to(DEVICE)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(num_hidden_layers=LAYERS or 16, hidden_size=2048, intermediate_size=5632, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=32000, max_position_embeddings=8192,
                         attn_implementation="sdpa")
    return LlamaForCausalLM(config).to(torch.bfloat16)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=LAYERS or 24, n_embd=1024, n_head=16, n_positions=1024))


def model_of(make):
    """Random weights, made once for all runs: they are mapped from the file that build() wrote."""
    path = os.path.join(os.environ["LIVE_MODELS"], make.__name__)
    if not os.path.exists(path):
        torch.manual_seed(1)
        torch.save(make(), path + ".part")
        os.rename(path + ".part", path)
    return torch.load(path, mmap=True, weights_only=False)


def build(names):
    if {"varlen", "serve", "lora"} & set(names):
        model_of(llama)
    if "hf" in names:
        model_of(gpt2)


def gnn(rng, steps):
    """GraphSAGE on graphs of changing size."""
    from torch_geometric.nn import SAGEConv
    layers = torch.nn.ModuleList([SAGEConv(256, 512), SAGEConv(512, 512), SAGEConv(512, 64)]).to(DEVICE)
    optimizer = torch.optim.Adam(layers.parameters())
    for _ in range(steps):
        nodes = int(min(200000, rng.lognormvariate(10.3, 0.7)))
        with drawing():
            drawn = (torch.randint(0, nodes, (2, int(nodes * rng.uniform(4, 14)))), torch.randn(256, 256).repeat(nodes // 256 + 1, 1)[:nodes],
                     torch.randint(0, 64, (nodes,)))
        edges, x, labels = (part.to(DEVICE) for part in drawn)
        for layer in layers[:-1]:
            x = F.dropout(F.relu(layer(x, edges)), 0.5)
        yield step_of(optimizer, F.cross_entropy(layers[-1](x, edges), labels))


def varlen(rng, steps):
    """A Llama of 1 B parameters, sequences of changing length, gradients of two batches."""
    model = model_of(llama).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in range(steps):
        total = 0
        for _ in range(2):
            length = int(min(4096, max(64, rng.lognormvariate(6.3, 0.8))))
            batch = tokens(max(1, min(32, 16384 // (2 * length))), length)
            loss = model(input_ids=batch, labels=batch, use_cache=False).loss / 2
            loss.backward()
            total = total + loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield total


def serve(rng, steps):
    """Decode serving with growing KV caches."""
    from transformers import DynamicCache
    model = model_of(llama).to(DEVICE).eval()
    active = []
    with torch.no_grad():
        for _ in range(steps):
            for _ in range(rng.randint(1, 3)):
                rows, length = rng.choice([1, 2, 4, 8]), int(min(3000, max(16, rng.lognormvariate(5.5, 1.0))))
                cache = DynamicCache()
                out = model(input_ids=tokens(rows, length), past_key_values=cache, use_cache=True)
                active.append([cache, out.logits[:, -1:].argmax(-1), rng.randint(4, 40)])
            total = 0
            for _ in range(6):
                for job in list(active):
                    out = model(input_ids=job[1], past_key_values=job[0], use_cache=True)
                    job[1] = out.logits[:, -1:].argmax(-1)
                    total = total + job[1].sum()
                    job[2] -= 1
                    if job[2] <= 0:
                        active.remove(job)
            del out
            yield total


def vision(rng, steps):
    """ResNet-50 at several resolutions; the next batch comes on a stream of its own, with record_stream."""
    import timm
    model = timm.create_model("resnet50").to(DEVICE).to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    side = torch.cuda.Stream()

    def fetch():
        edge, rows = rng.randrange(128, 321, 16), rng.choice([32, 48, 64, 96, 128])
        with drawing():
            host = torch.empty(rows, 3, edge, edge, pin_memory=True).copy_(torch.randn(2, 3, edge, edge).repeat(rows // 2, 1, 1, 1))
        with torch.cuda.stream(side):
            batch = host.to(DEVICE, non_blocking=True).contiguous(memory_format=torch.channels_last)
        return host, batch, torch.randint(0, 1000, (rows,)).to(DEVICE)

    following = fetch()
    for _ in range(steps):
        _, x, y = following
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        following = fetch()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        yield step_of(optimizer, loss)


def lora(rng, steps):
    """Adapters on the same Llama; every second step also generates."""
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(model_of(llama).to(DEVICE), LoraConfig(r=16, lora_alpha=32, task_type="CAUSAL_LM",
                                                               target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for i in range(steps):
        model.train()
        batch = tokens(4, rng.choice([256, 384, 512, 777, 1024, 1536, 2048]))
        yield step_of(optimizer, model(input_ids=batch, labels=batch, use_cache=False).loss)
        if i % 2:
            model.eval()
            with torch.no_grad():
                model.generate(input_ids=tokens(8, rng.randint(50, 400)), max_new_tokens=16, do_sample=False,
                               pad_token_id=0)


def hf(rng, steps):
    """GPT-2 medium by transformers, mixed precision, gradient checkpointing."""
    model = model_of(gpt2).to(DEVICE).train()
    model.gradient_checkpointing_enable()
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(steps):
        batch = tokens(8, rng.choice([512, 768, 1024]), 50257)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(batch, labels=batch).loss
        yield step_of(optimizer, loss)


# name: steps of the short set, of the full one
STEPS = {"gnn": (30, 120), "varlen": (6, 24), "serve": (3, 14), "vision": (12, 50), "lora": (4, 10), "hf": (5, 12)}


def begin(name, steps, seed=1234):
    """Equal seeds, deterministic kernels: equal values, whatever serves the memory."""
    torch.set_num_threads(4)
    torch.manual_seed(seed)
    # flash attention is deterministic in the strict mode only
    torch.use_deterministic_algorithms(True, warn_only=name not in ("varlen", "lora", "hf"))
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_cudnn_sdp(False)  # not deterministic
    if hasattr(torch.utils, "deterministic"):
        torch.utils.deterministic.fill_uninitialized_memory = False
    return globals()[name](random.Random(seed), steps)
