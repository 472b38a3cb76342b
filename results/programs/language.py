# SPDX-License-Identifier: Apache-2.0
"""Language models: training, generation, experts, adapters, quantized weights."""
import gc
import itertools
import os

from common import *


def llama(hidden, layers, heads, kv, ffn, vocab=32000):
    return hf("Llama", hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
              num_key_value_heads=kv, intermediate_size=ffn, vocab_size=vocab,
              max_position_embeddings=8192)


def checkpointed(m):
    m.config.use_cache = False
    m.gradient_checkpointing_enable({"use_reentrant": False})
    return m


def say(m, n, x, **k):
    """Generates exactly n tokens."""
    m.generate(input_ids=x, max_new_tokens=n, min_new_tokens=n, do_sample=False, use_cache=True,
               **k)


def ragged(vocab, n, lengths):
    def loss(m):
        x = T(n, rng.choice(lengths), v=vocab)
        return m(input_ids=x, labels=x).loss

    return loss


@program("low-rank adapters with checkpointing", "transformers", "peft")
def llama8b_lora():
    from peft import LoraConfig, get_peft_model

    m = checkpointed(llama(4096, 8, 32, 8, 14336, 128256))
    m.enable_input_require_grads()
    m = get_peft_model(m, LoraConfig(r=16, target_modules="all-linear"))
    fit(m, ragged(128000, 2, (700, 1024, 1500)), 4)


@program("preference training beside a frozen reference model", "transformers")
def llama1b_dpo():
    m = llama(2048, 6, 32, 8, 8192, 128256)
    r = deepcopy(m).eval().requires_grad_(False)

    def logp(m, x):
        return torch.gather(m(x).logits[:, :-1].log_softmax(-1), 2,
                            x[:, 1:, None]).squeeze(-1).sum(-1)

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


@program("generation and policy updates by turns", "transformers")
def ddp_like_grpo():
    m = llama(1024, 8, 16, 8, 2816, 50000)
    o = torch.optim.AdamW(m.parameters(), lr=1e-6)
    for i in range(2 * TIMES):
        x = T(8, 64, v=50000)
        m.eval()
        with torch.no_grad():
            y = m.generate(input_ids=x, max_new_tokens=48, min_new_tokens=48, do_sample=True,
                           top_k=50, top_p=0.95, pad_token_id=0)
        m.train()
        lp = torch.gather(m(y).logits[:, :-1].float().log_softmax(-1), 2,
                          y[:, 1:, None])[..., 0][:, 63:]
        r = N(8)
        a = (r - r.mean()) / (r.std() + 1e-4)
        l = -(torch.exp(lp - lp.detach()) * a[:, None]).mean()
        l.backward()
        o.step()
        o.zero_grad()


@program("the Trainer of transformers", "transformers", "accelerate")
def hf_trainer():
    from transformers import Trainer, TrainingArguments, GPT2Config, GPT2LMHeadModel

    class D(torch.utils.data.Dataset):
        def __len__(s):
            return 40

        def __getitem__(s, i):
            x = torch.randint(0, 50257, (256,))
            return dict(input_ids=x, labels=x)

    a = TrainingArguments("/tmp/hft%d" % os.getpid(), per_device_train_batch_size=4,
                          gradient_accumulation_steps=2, max_steps=4, bf16=True, report_to=[],
                          save_strategy="no", gradient_checkpointing=True,
                          optim="adamw_torch_fused", eval_strategy="steps", eval_steps=2,
                          per_device_eval_batch_size=8, disable_tqdm=True)
    Trainer(GPT2LMHeadModel(GPT2Config(n_layer=6)), a, train_dataset=D(), eval_dataset=D()).train()


@program("generation with a draft model", "transformers")
def assisted_gen():
    m, a = llama(1024, 6, 16, 4, 2816).eval(), llama(256, 2, 4, 2, 704).eval()
    with torch.no_grad():
        m.generate(input_ids=T(1, 60), assistant_model=a, max_new_tokens=24, min_new_tokens=24,
                   do_sample=False, pad_token_id=0)


@program("compiled with checkpointing", "transformers")
def c_llama_ckpt():
    fit(torch.compile(checkpointed(llama(1024, 4, 16, 4, 2816))), ragged(32000, 4, (512, 640)), 4)


@program("latent attention with shared experts", "transformers")
def deepseek_mla():
    m = hf("DeepseekV3", hidden_size=2048, num_hidden_layers=4, num_attention_heads=16,
           num_key_value_heads=16, intermediate_size=10944, moe_intermediate_size=1408,
           n_routed_experts=32, num_experts_per_tok=6, n_group=4, topk_group=2,
           first_k_dense_replace=1, q_lora_rank=768, vocab_size=102400)
    m.config.use_cache = False
    fit(m, ragged(100000, 2, [800]), 2, SGD)
    say(m.eval(), 16, T(2, 100), pad_token_id=0)


@program("a state-space model", "transformers")
def mamba2_train():
    m = hf("Mamba2", hidden_size=1024, num_hidden_layers=6, num_heads=32, head_dim=64, n_groups=1,
           state_size=128, vocab_size=50288)
    m.config.use_cache = False
    fit(m, ragged(50000, 2, [1024]), 2)


@program("experts of one choice with a capacity", "transformers")
def switch_transformer():
    m = hf2("SwitchTransformers", "SwitchTransformersForConditionalGeneration", num_layers=4,
            num_decoder_layers=4, num_sparse_encoder_layers=2, num_sparse_decoder_layers=2,
            num_experts=8, decoder_start_token_id=0)
    fit(m, lambda m: m(input_ids=T(8, 256) + 3, labels=T(8, 64) + 3).loss, 2)


@program("packed documents and attention of variable lengths", torch="2.10")
def packed_varlen_attention():
    from torch.nn.attention.varlen import varlen_attn

    class Packed(Qkv):
        def forward(s, x):
            q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).unbind(1)
            return s.o(
                varlen_attn(q, k, v, ends[0], ends[0], ends[1], ends[1],
                            window_size=(-1, 0)).flatten(1))

    ends = [None, 0]
    m = on(Lm, 1536, 8, layer=lambda d: Layer(d, mix=Packed(d, 12)), save=True, dt=BF)

    def loss(m):
        lengths = []
        while sum(lengths) < 16384:
            lengths.append(min(rng.randint(50, 3000), 16384 - sum(lengths)))
        ends[:] = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32,
                               device=dev), max(lengths)
        x = T(16385)
        y = m.inner(x[:-1])
        part = lambda y, t: F.cross_entropy(m.head(m.norm(y)).float(), t, reduction="sum")
        return sum(checkpoint(part, a, t, use_reentrant=False)
                   for a, t in zip(y.split(2048), x[1:].split(2048))) / 16384

    fit(m, loss, 4)


@program("4-bit weights and a static cache")
def int4_decodes_with_static_cache():
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
            return torch.ops.aten._weight_int4pack_mm(
                x.flatten(0, -2), s.w, 128, s.s).unflatten(0, x.shape[:-1])

    class Cached(Qkv):
        def build(s, batch):
            s.k, s.v = (torch.zeros(batch, s.h, most, d // s.h, device=dev, dtype=BF) for _ in "kv")

        def forward(s, x):
            q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4)
            s.k[:, :, at[0]], s.v[:, :, at[0]] = k, v
            return s.o(F.scaled_dot_product_attention(
                q, s.k, s.v, attn_mask=mask[at[0]][None, None]).transpose(1, 2).flatten(2))

    m = on(Lm, d, n, layer=lambda d: Layer(d, mix=Cached(d, h)), dt=BF)
    for name, f in list(m.named_modules()):
        if isinstance(f, nn.Linear) and name != "head":
            parent, _, leaf = name.rpartition(".")
            setattr(m.get_submodule(parent), leaf, Int4(f))
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


@program("experts by grouped products", torch="2.10")
def experts_by_grouped_products():
    product = getattr(F, "grouped_mm", None) or torch._grouped_mm

    class Moe(nn.Module):
        def __init__(s, d, n=32, k=4, f=1024):
            super().__init__()
            s.k, s.n, s.router = k, n, nn.Linear(d, n, bias=False)
            s.up = nn.Parameter(torch.randn(n, d, 2 * f) * 0.02)
            s.down = nn.Parameter(torch.randn(n, f, d) * 0.02)
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
            y = torch.zeros_like(flat).index_add(
                0, order // s.k, (y * w.flatten()[order, None]).to(flat.dtype))
            losses.append((count / count.sum() * logits.softmax(-1).mean(0)).sum() * s.n * 0.01 +
                          logits.logsumexp(-1).square().mean() * 1e-3)
            return y.view_as(x) + s.shared(x)

    losses = []
    m = on(Lm, 1024, 6, layer=lambda d: Layer(d, 16, mlp=Moe(d)), dt=BF)

    def loss(m):
        losses.clear()
        return next_token(8, 1024)(m) + sum(losses)

    fit(m, loss, 3)


@program("dynamic, static, sliding and offloaded caches", "transformers")
def caches_of_all_kinds():
    from transformers import DynamicCache

    m = llama(3072, 10, 24, 8, 8192, 128256).eval()
    s = hf("Gemma2", hidden_size=2304, num_hidden_layers=6, num_attention_heads=8,
           num_key_value_heads=4, head_dim=256, intermediate_size=9216, sliding_window=256)
    x = T(2, 600, v=128000)
    say(m, 24, x)
    say(m, 24, x, cache_implementation="static", disable_compile=True)
    say(m, 12, x, cache_implementation="offloaded")
    say(m, 24, x, prefill_chunk_size=200)
    say(s, 40, x)
    say(s, 24, x, cache_implementation="hybrid", disable_compile=True)
    kept = DynamicCache()
    for n in (300, 40, 40):
        with torch.inference_mode():
            m(T(2, n, v=128000), past_key_values=kept, use_cache=True)
        kept.crop(280)


@program("Triton kernels of Liger", "transformers", "liger_kernel")
def liger_llama_trains():
    import liger_kernel.transformers as l

    l.apply_liger_kernel_to_llama()
    m = checkpointed(llama(4096, 4, 32, 8, 14336, 128256))
    fit(m, ragged(128000, 2, (1024, 1500, 2048)), 3, adamw(fused=True), accum=2)


@program("a loss in chunks, with Muon", "transformers", torch="2.9")
def chunked_loss_muon():
    m = llama(1024, 12, 16, 4, 4096, 128256)
    m.config.use_cache = False

    def loss(m):
        x = T(4, 1024, v=128000)
        h = m.model(input_ids=x).last_hidden_state[:, :-1].flatten(0, 1)
        part = lambda a, b: F.cross_entropy(m.lm_head(a).float(), b, reduction="sum")
        pieces = zip(h.chunk(8), x[:, 1:].flatten().chunk(8))
        return sum(checkpoint(part, a, b, use_reentrant=False) for a, b in pieces) / h.shape[0]

    wide = [p for p in m.model.layers.parameters() if p.ndim == 2]
    rest = [p for p in m.parameters() if p.ndim != 2
            ] + [m.model.embed_tokens.weight, m.lm_head.weight]
    a, b = torch.optim.Muon(wide, 0.01), torch.optim.AdamW(rest, 1e-4)
    for _ in range(3):
        loss(m).backward()
        for o in (a, b):
            o.step()
            o.zero_grad()


@program("attention in windows with global tokens", "transformers")
def longformer_doc():
    m = hf("Longformer", torch.float32, "LongformerForSequenceClassification",
           attention_window=512, max_position_embeddings=4098, vocab_size=50265)
    fit(m, lambda m: m(input_ids=T(2, 3000) + 2, labels=T(2, v=2)).loss, 3, amp=BF)


@program("attention by hashing, reversible layers", "transformers")
def reformer_lsh():
    m = hf("Reformer", torch.float32, "ReformerModelWithLMHead", is_decoder=True,
           axial_pos_shape=[32, 64], max_position_embeddings=2048)
    fit(m, ragged(300, 2, [2048]), 2)


@program("accumulated gradients over sequences of varying lengths", "transformers")
def accumulates_over_lengths():
    fit(llama(2048, 8, 32, 8, 5632), ragged(32000, 4, range(200, 2000)), 3, accum=4)


@program("experts one by one, each with its own number of tokens")
def experts_one_by_one():
    class Moe(nn.Module):
        def __init__(s, d, n=16):
            super().__init__()
            s.router, make = nn.Linear(d, n), lambda: nn.Linear(d, 2 * d)
            s.experts = nn.ModuleList(stack(make(), nn.SiLU(), nn.Linear(2 * d, d))
                                      for _ in range(n))

        def forward(s, x):
            flat = x.flatten(0, 1)
            w, chosen = s.router(flat).float().softmax(-1).topk(2, -1)
            y = torch.zeros_like(flat)
            for i, f in enumerate(s.experts):
                token, place = (chosen == i).nonzero(as_tuple=True)
                part = f(flat[token]) * w[token, place, None].to(y.dtype)
                y = y.index_add(0, token, part.to(y.dtype))
            return y.view_as(x)

    fit(on(Lm, 1024, 4, layer=lambda d: Layer(d, 16, mlp=Moe(d)), dt=BF), next_token(8, 1024), 3)


@program("a long evaluation after training")
def evaluates_at_length():
    m = on(Lm, 1024, 8)
    for _ in range(2):
        fit(m, next_token(8, 1024), 3, amp=BF)
        m.eval()
        kept = []
        with torch.inference_mode(), torch.autocast("cuda", BF):
            for _ in range(30):
                x = T(rng.choice((4, 8, 16)), rng.randint(100, 1500))
                p = m(x[:, :-1]).log_softmax(-1)
                kept.append((p.gather(2, x[:, 1:, None]).flatten(), p.argmax(-1).flatten()))
        torch.cat([a for a, _ in kept]).sort()
        torch.cat([b for _, b in kept]).bincount(minlength=32000)


class Engine:
    """A server with a paged cache: finds out how much memory the cache can have, then serves."""
    def __init__(s, limit, d=2048, n=8, h=16, block=16):
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
        s.block, s.table, s.mask, pages = block, None, None, []

        class Mix(Qkv):
            def forward(f, x):
                q, k, v = f.qkv(x).unflatten(-1, (3, h, -1)).unbind(2)
                if s.table is not None:
                    for page, new in zip(f.pages, (k, v)):
                        page[s.table.gather(1, s.at)] = new
                    k, v = (page[s.table] for page in f.pages)
                return f.o(F.scaled_dot_product_attention(
                    *(y.transpose(1, 2) for y in (q, k, v)), attn_mask=s.mask,
                    is_causal=s.mask is None).transpose(1, 2).flatten(2))

        s.m = on(Lm, d, n, layer=lambda d: Layer(d, mix=Mix(d, h)), dt=BF).eval()
        s.next(T(8, 1024))
        left = limit - torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
        s.free = list(range(int(0.9 * left / (4 * d * n * block))))
        for f in s.m.layers:
            f.mix.pages = [torch.zeros(len(s.free) * block, h, d // h, device=dev, dtype=BF)
                           for _ in "kv"]

    @torch.inference_mode()
    def next(s, x):
        y = s.m.inner(x)[:, -1]
        return (s.m.head(s.m.norm(y)).float() / 0.8).softmax(-1).multinomial(1)

    def step(s, batch, x):
        """The next token of each sequence (its length and its blocks) after the tokens x."""
        for q in batch:
            q[0] += x.shape[1]
            while len(q[1]) * s.block < q[0]:
                q[1].append(s.free.pop())
        wide = max(len(q[1]) for q in batch)
        blocks = torch.tensor([q[1] + q[1][-1:] * (wide - len(q[1])) for q in batch], device=dev)
        each = torch.arange(s.block, device=dev)
        s.table = (blocks[:, :, None] * s.block + each).flatten(1)
        ends = torch.tensor([q[0] for q in batch], device=dev)
        s.at = ends[:, None] - x.shape[1] + torch.arange(x.shape[1], device=dev)
        s.mask = (torch.arange(s.table.shape[1], device=dev) <= s.at[..., None])[:, None]
        return s.next(x)

    def serve(s, prompts, most):
        running = []
        while prompts or running:
            if prompts and len(running) < 48:
                running.append([0, [], prompts.pop(), rng.randint(8, most)])
                s.step(running[-1:], T(1, running[-1][2]))
            else:
                s.step(running, T(len(running), 1))
            for q in [q for q in running if q[0] >= q[2] + q[3]]:
                s.free += q[1]
                running.remove(q)


@program("the start of a server with a paged cache")
def paged_engine_starts():
    for limit in (8e9, 12e9, 10e9):
        Engine(limit).serve([30, 300], 12)
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


@program("a server with a paged cache at work")
def paged_engine_serves():
    Engine(10e9).serve([rng.randint(20, 900) for _ in range(60)], 60)
