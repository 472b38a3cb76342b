# SPDX-License-Identifier: Apache-2.0
"""Jobs of two ranks over NCCL of kinds that neither jobs.py nor jobs2.py has, on two cards: same frame, same rows as jobs2.py.

    jobs3.py all OUT.csv [NAME...]                         one after another on this host's cards
    torchrun --nproc-per-node 2 jobs3.py NAME              one of them: a line of each rank
"""
import copy, itertools, random

import jobs2
from jobs2 import *
from jobs2 import J, BF, F, card, contextlib, ddp, dist, every, job, main, made, nn, os, rank, sharded, steps, sys, tokens, torch, world

jobs2.__file__ = __file__
J.clear()
HF16, other = torch.float16, 1 - rank
rng = random.Random(7 + rank)


def adamw(*ms, lr=1e-4, **k):
    return torch.optim.AdamW([p for m in ms for p in m.parameters() if p.requires_grad], lr, **k)


def down(o, *losses):
    """Backward passes, then a step."""
    for l in losses:
        l.backward()
    o.step()
    o.zero_grad()


def next_token(m, n=4, length=512):
    x = tokens(n, length)
    return F.cross_entropy(m(x).flatten(0, 1).float(), x.flatten())


def fixed(f, *a, dt=None, **k):
    """A module on the card, the same on both ranks."""
    torch.manual_seed(0)
    with card:
        m = f(*a, **k)
    return m.to(dt) if dt else m


def perceptron(*sizes):
    return nn.Sequential(*[x for a, b in zip(sizes, sizes[1:]) for x in (nn.Linear(a, b), nn.ReLU())][:-1])


def smollm(d=768, n=8):
    import transformers as t

    c = t.LlamaConfig(hidden_size=d, num_hidden_layers=n, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048, vocab_size=32000)
    return fixed(t.LlamaForCausalLM, c, dt=BF)


# Language


@job(2)
def ddp_policy_in_groups():
    """GRPO: the net inside of DDP draws answers, advantages from the rewards of both ranks, parts of the batch without exchange."""
    m, ref = ddp(smollm()), smollm().requires_grad_(False)
    o = adamw(m, lr=1e-6)

    def logp(net, x, n=40):
        y = net(input_ids=x, logits_to_keep=n + 1).logits[:, :-1]
        return y.float().log_softmax(-1).gather(2, x[:, -n:, None])[..., 0]

    for _ in range(3):
        m.eval()
        with torch.no_grad():
            x = m.module.generate(tokens(3, 150 + 30 * rank).repeat_interleave(4, 0), max_new_tokens=40, min_new_tokens=40, do_sample=True, pad_token_id=0)
            base = logp(ref, x)
            r = torch.rand(12, device=card)
            rewards = [torch.empty_like(r) for _ in range(world)]
            dist.all_gather(rewards, r)
            adv = (r - torch.cat(rewards).mean()) / (torch.cat(rewards).std() + 1e-4)
        m.train()
        for i in range(0, 12, 4):
            with m.no_sync() if i < 8 else contextlib.nullcontext():
                new = logp(m, x[i:i + 4])
                d = base[i:i + 4] - new
                (-(new - new.detach()).exp() * adv[i:i + 4, None] + 0.04 * (d.exp() - d - 1)).mean().backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad(set_to_none=False)


@job(2)
def ddp_lengths_that_differ():
    """fp16 with a scaler, batches of other sizes and lengths on each rank, accumulated by tokens, the mean loss exchanged."""
    m = ddp(made(1024, 6), gradient_as_bucket_view=True)
    o, s = adamw(m, fused=True), torch.amp.GradScaler("cuda", init_scale=16)
    for _ in range(4):
        parts = [tokens(rng.randint(1, 5), rng.randint(200, 1200)) for _ in range(3)]
        count = torch.tensor(float(sum(p.numel() for p in parts)), device=card)
        dist.all_reduce(count)
        total = torch.zeros((), device=card)
        for i, x in enumerate(parts):
            with m.no_sync() if i < 2 else contextlib.nullcontext(), torch.autocast("cuda", HF16):
                l = F.cross_entropy(m(x).flatten(0, 1), x.flatten(), reduction="sum") / count * world
            s.scale(l).backward()
            total += l.detach()
        s.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        s.step(o)
        s.update()
        o.zero_grad()
        dist.reduce(total, 0)


@job(2)
def accelerate_ddp_evaluates():
    """Accelerate with its loader, accumulation, and metrics gathered from uneven last batches."""
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset

    a = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    g = torch.Generator().manual_seed(1)
    loader = lambda n: DataLoader(TensorDataset(torch.randint(0, 32000, (n, 512), generator=g)), 4, shuffle=True, pin_memory=True)
    m = made(768, 6)
    m, o, train, test = a.prepare(m, adamw(m), loader(50), loader(21))
    sched = a.prepare(torch.optim.lr_scheduler.CosineAnnealingLR(o, 20))
    for (x,) in train:
        with a.accumulate(m):
            a.backward(F.cross_entropy(m(x).flatten(0, 1), x.flatten()))
            if a.sync_gradients:
                a.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            sched.step()
            o.zero_grad()
    m.eval()
    right = []
    with torch.no_grad():
        for (x,) in test:
            p, y = a.gather_for_metrics((m(x).argmax(-1), x))
            right.append((p == y).float().mean(1).cpu())
    a.print(torch.cat(right).mean())


@job(2)
def fsdp2_frozen_eyes():
    """A frozen tower of pictures that stays whole, a projector and a language model in shards, uneven pictures on each rank."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    eyes = fixed(nn.TransformerEncoder, nn.TransformerEncoderLayer(768, 12, 3072, 0.0, batch_first=True, norm_first=True), 8, enable_nested_tensor=False, dt=BF).requires_grad_(False).eval()
    joint = fixed(nn.Sequential, nn.LayerNorm(768), nn.Linear(768, 1024), nn.GELU(), nn.Linear(1024, 1024)).to(card)
    m = made(1024, 8, save=True)
    emb, m.emb = m.emb.requires_grad_(False), nn.Identity()
    p = MixedPrecisionPolicy(param_dtype=BF, reduce_dtype=torch.float32)
    for b in m.blocks:
        fully_shard(b, mp_policy=p)
    fully_shard([m.norm, m.head], mp_policy=p, reshard_after_forward=False)
    fully_shard(m, mp_policy=p)
    fully_shard(joint, mp_policy=p)
    eyes.to(card)
    o = adamw(m, joint)
    for i in range(3):
        n = 2 + (i + rank) % 3
        with torch.no_grad():
            seen = eyes(torch.randn(n, 576, 768, device=card, dtype=BF))
            x = tokens(n, 300)
        y = m(torch.cat([joint(seen).to(BF), emb(x).to(BF)], 1))[:, 576:]
        down(o, F.cross_entropy(y.flatten(0, 1), x.flatten()))


@job(2)
def teacher_in_shards():
    """A teacher in shards that is gathered layer by layer, a student under DDP; KL in parts of the vocabulary's rows."""
    teacher = sharded(made(1536, 8, dt=BF).requires_grad_(False).eval())
    m = ddp(made(768, 6))
    o = adamw(m)
    for _ in range(4):
        x = tokens(4, 1024)
        with torch.no_grad():
            t = teacher(x).flatten(0, 1)
        with torch.autocast("cuda", BF):
            y = m(x).flatten(0, 1)
        l = sum(F.kl_div((a / 2).float().log_softmax(-1), (b / 2).float().log_softmax(-1), log_target=True, reduction="sum") for a, b in zip(y.split(512), t.split(512)))
        down(o, l / len(y))


@job(2)
def tensor_parallel_decodes_by_graphs():
    """Serving: weights by columns and rows, caches of half of the heads, a graph of a step for each batch size, logits gathered on rank 0."""
    d, h, n, most = 2048, 16 // world, 8, 1024
    torch.manual_seed(rank)
    w = lambda *s: torch.randn(*s, device=card, dtype=BF) * 0.02
    layers = [(w(d, 3 * h * 128), w(h * 128, d), w(d, 8192 // world), w(8192 // world, d)) for _ in range(n)]
    emb, head = w(32000, d), w(d, 32000 // world)
    k, v = (torch.zeros(n, 32, h, most, 128, device=card, dtype=BF) for _ in "kv")
    ids, pos = torch.zeros(32, dtype=torch.long, device=card), torch.zeros(32, dtype=torch.long, device=card)

    def step(b):
        x, mask = emb[ids[:b]], (torch.arange(most, device=card) <= pos[:b, None])[:, None, None]
        for i, (qkv, o, up, dn) in enumerate(layers):
            q, kk, vv = (F.rms_norm(x, (d,)) @ qkv).view(b, 3, h, 128).unbind(1)
            k[i][torch.arange(b, device=card), :, pos[:b]] = kk
            v[i][torch.arange(b, device=card), :, pos[:b]] = vv
            y = F.scaled_dot_product_attention(q[:, :, None], k[i, :b], v[i, :b], attn_mask=mask).flatten(1) @ o
            dist.all_reduce(y)
            x = x + y
            y = F.silu(F.rms_norm(x, (d,)) @ up) @ dn
            dist.all_reduce(y)
            x = x + y
        part = F.rms_norm(x, (d,)) @ head
        whole = torch.empty(world * b, part.shape[1], device=card, dtype=BF)
        dist.all_gather_into_tensor(whole, part)
        return whole.view(world, b, -1).transpose(0, 1).reshape(b, -1).argmax(-1)

    with torch.inference_mode():
        graphs, pool = {}, None
        for b in (32, 16, 8, 4, 1):
            step(b)
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=pool):
                y = step(b)
            graphs[b], pool = (g, y), g.pool()
        for i in range(24):
            b = min(x for x in graphs if x > i)
            graphs[b][0].replay()
            ids[:b] = graphs[b][1]
            pos[:b] += 1


@job(2)
def learner_and_generator_apart():
    """Rank 0 learns, rank 1 draws: experiences come as tensors of announced shapes, weights go back every second step in buckets."""
    m = smollm()
    o = adamw(m, lr=1e-6)
    for i in range(4):
        if rank == 1:
            with torch.no_grad():
                x = m.generate(tokens(6, 100 + 40 * i), max_new_tokens=32, min_new_tokens=32, do_sample=True, pad_token_id=0)
                r = torch.rand(6, device=card)
            dist.send(torch.tensor(x.shape, device=card), 0)
            dist.send(x, 0)
            dist.send(r, 0)
        else:
            shape = torch.empty(2, dtype=torch.long, device=card)
            dist.recv(shape, 1)
            x, r = torch.empty(*shape.tolist(), dtype=torch.long, device=card), torch.empty(6, device=card)
            dist.recv(x, 1)
            dist.recv(r, 1)
            y = m(input_ids=x).logits[:, :-1]
            lp = y.float().log_softmax(-1).gather(2, x[:, 1:, None])[:, -32:, 0].sum(1)
            down(o, -(lp * (r - r.mean())).mean())
        if i % 2:
            bucket, size = [], 0
            for p in [*m.parameters(), None]:
                if p is None or size + p.numel() > 16 << 20:
                    if bucket:
                        flat = torch.cat([q.detach().flatten() for q in bucket])
                        dist.broadcast(flat, 0)
                        for q, f in zip(bucket, flat.split([q.numel() for q in bucket])):
                            q.data.copy_(f.view_as(q))
                    bucket, size = [], 0
                if p is not None:
                    bucket.append(p)
                    size += p.numel()


# Gradients


@job(2)
def far_apart_and_seldom():
    """DiLoCo: four steps alone, then the mean of what changed goes through an outer optimizer whose weights are on the host."""
    m = made(768, 6)
    o = adamw(m)
    outer = [p.detach().cpu().clone().requires_grad_() for p in m.parameters()]
    oo = torch.optim.SGD(outer, 0.7, momentum=0.9, nesterov=True)
    for _ in range(3):
        for _ in range(4):
            with torch.autocast("cuda", BF):
                l = next_token(m)
            down(o, l)
        works = []
        for p, q in zip(m.parameters(), outer):
            d = q.detach().to(card) - p.detach()
            works.append((dist.all_reduce(d, op=dist.ReduceOp.AVG, async_op=True), d, q))
        for w, d, q in works:
            w.wait()
            q.grad = d.cpu()
        oo.step()
        with torch.no_grad():
            for p, q in zip(m.parameters(), outer):
                p.copy_(q)


@job(2)
def preconditioners_shared_out():
    """Shampoo whose roots are computed for half of the weights on each rank and gathered; gradients in one flat buffer."""
    m = made(1024, 4)
    ps = list(m.parameters())
    flat = torch.zeros(sum(p.numel() for p in ps), device=card)
    for p, g in zip(ps, flat.split([p.numel() for p in ps])):
        p.grad = g.view_as(p)
    big = [p for p in ps if p.dim() == 2 and max(p.shape) <= 4096]
    stat = {p: [torch.eye(n, device=card) * 1e-6 for n in p.shape] for p in big}
    root = {p: [torch.eye(n, device=card) for n in p.shape] for p in big}
    for i in range(4):
        flat.zero_()
        with torch.autocast("cuda", BF):
            next_token(m).backward()
        dist.all_reduce(flat, op=dist.ReduceOp.AVG)
        with torch.no_grad():
            for p in big:
                stat[p][0].addmm_(p.grad, p.grad.T)
                stat[p][1].addmm_(p.grad.T, p.grad)
            if i % 2 == 0:
                for j, p in enumerate(big):
                    if j % world == rank:
                        for k in (0, 1):
                            e, q = torch.linalg.eigh(stat[p][k])
                            root[p][k] = (q * e.clamp_min(1e-8).pow(-0.25)) @ q.T
                works = [dist.broadcast(r, j % world, async_op=True) for j, p in enumerate(big) for r in root[p]]
                for w in works:
                    w.wait()
            for p in ps:
                p -= 1e-4 * (root[p][0] @ p.grad @ root[p][1] if p in root else p.grad.sign())


@job(2)
def ddp_two_nets_against_each_other():
    """A generator and a judge, each under DDP, a penalty with a second backward pass, averaged weights of the generator."""
    g, d = ddp(fixed(perceptron, 256, 2048, 4096, 4096, 3072)), ddp(fixed(perceptron, 3072, 4096, 2048, 1))
    ema = copy.deepcopy(g.module).requires_grad_(False)
    og, od = adamw(g, betas=(0.0, 0.99)), adamw(d, betas=(0.0, 0.99))
    for i in range(6):
        real = torch.randn(512, 3072, device=card, requires_grad=i % 2 == 0)
        with torch.no_grad():
            fake = g(torch.randn(512, 256, device=card))
        r = d(real)
        l = F.softplus(-r).mean() + F.softplus(d(fake)).mean()
        if i % 2 == 0:
            (gr,) = torch.autograd.grad(d.module(real).sum(), real, create_graph=True)
            l = l + 5 * gr.square().sum(1).mean()
        down(od, l)
        d.requires_grad_(False)
        down(og, F.softplus(-d.module(g(torch.randn(512, 256, device=card)))).mean())
        d.requires_grad_(True)
        torch._foreach_lerp_(list(ema.parameters()), list(g.module.parameters()), 0.01)


@job(2)
def ddp_vit_of_timm():
    """A ViT of timm as its training script runs it: channels last, mixup, two averages, gradients as views, loss scaled."""
    import timm, timm.data, timm.loss, timm.optim, timm.utils

    m = fixed(timm.create_model, "vit_base_patch16_224", drop_path_rate=0.1).to(card, memory_format=torch.channels_last)
    e = timm.utils.ModelEmaV3(m, decay=0.999)
    d = ddp(m, gradient_as_bucket_view=True, broadcast_buffers=False)
    o = timm.optim.create_optimizer_v2(m, opt="adamw", lr=1e-3, weight_decay=0.05, layer_decay=0.75)
    mix = timm.data.Mixup(0.8, 1.0, num_classes=1000, label_smoothing=0.1)
    for _ in range(4):
        x, y = mix(torch.randn(32, 3, 224, 224, device=card), torch.randint(0, 1000, (32,), device=card))
        with torch.autocast("cuda", BF):
            l = timm.loss.SoftTargetCrossEntropy()(d(x.to(memory_format=torch.channels_last)), y)
        l.backward()
        timm.utils.dispatch_clip_grad(d.parameters(), 1.0)
        o.step()
        o.zero_grad()
        e.update(m)
        mean = l.detach().clone()
        dist.all_reduce(mean)


# Parts of a net on each rank


class Exchange(torch.autograd.Function):
    """all_to_all_single of rows, back in the backward pass."""

    @staticmethod
    def forward(ctx, x, send, take):
        ctx.splits = send, take
        y = x.new_empty(sum(take), *x.shape[1:])
        dist.all_to_all_single(y, x.contiguous(), take, send)
        return y

    @staticmethod
    def backward(ctx, g):
        send, take = ctx.splits
        x = g.new_empty(sum(send), *g.shape[1:])
        dist.all_to_all_single(x, g.contiguous(), send, take)
        return x, None, None


@job(2)
def tables_on_both_ranks():
    """Embedding bags of a recommender by tables: lengths and ids go to the owner, pooled rows come back; dense parts under DDP, rows by fused Adagrad."""
    d, batch, count = 128, 4096, 13
    bags = nn.ModuleList([fixed(nn.EmbeddingBag, 200000, d, mode="sum", sparse=True) for _ in range(count)])
    bottom, top = ddp(fixed(perceptron, 13, 512, 256, d)), ddp(fixed(perceptron, 27 * d, 1024, 512, 1))
    o, so = adamw(bottom, top), torch.optim.Adagrad(bags.parameters(), 0.01)
    for _ in range(4):
        n = torch.randint(1, 6, (world, count, batch), device=card)
        mine = torch.empty_like(n)
        dist.all_to_all_single(mine, n)
        send = n.flatten(1).sum(1).tolist()
        take = mine.flatten(1).sum(1).tolist()
        ids = torch.empty(sum(take), dtype=torch.long, device=card)
        dist.all_to_all_single(ids, torch.randint(0, 200000, (sum(send),), device=card), take, send)
        parts, pooled = ids.split(take), []
        for r in range(world):
            offset = 0
            for t in range(count):
                size = int(mine[r, t].sum())
                pooled.append(bags[t](parts[r][offset:offset + size], mine[r, t].cumsum(0) - mine[r, t]))
                offset += size
        rows = torch.stack(pooled, 1).view(batch, world, count, d).permute(1, 0, 2, 3).reshape(world * batch, count * d)
        got = Exchange.apply(rows, [batch] * world, [batch] * world).view(world, batch, -1).transpose(0, 1).flatten(1)
        dense = bottom(torch.randn(batch, 13, device=card))
        l = F.binary_cross_entropy_with_logits(top(torch.cat([dense, got], 1))[:, 0], torch.rand(batch, device=card).round())
        l.backward()
        for f in (o, so):
            f.step()
            f.zero_grad()


@job(2)
def graph_cut_in_two():
    """Nodes belong to ranks: each layer asks the other for features of the neighbours it lacks; how many is another number each time."""
    n, d = 60000, 256
    f = fixed(nn.ModuleList, [nn.Linear(2 * a, b) for a, b in ((128, d), (d, d), (d, 47))]).to(card)
    x = torch.randn(n, 128, device=card)
    o = adamw(f, lr=1e-3)
    for i in range(4):
        src, dst = torch.randint(0, 2 * n, (400000,), device=card), torch.randint(0, n, (400000,), device=card)
        theirs = (src < n) != (rank == 0)
        want, at = torch.unique(src[theirs] % n, return_inverse=True)
        counts = torch.empty(1, dtype=torch.long, device=card)
        for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([len(want)], device=card), other), dist.P2POp(dist.irecv, counts, other)]):
            w.wait()
        asked = torch.empty(int(counts), dtype=torch.long, device=card)
        splits = lambda k: [k if r == other else 0 for r in range(world)]
        dist.all_to_all_single(asked, want, splits(len(asked)), splits(len(want)))
        index = torch.where(theirs, torch.zeros_like(src), src % n)
        index[theirs] = n + at
        h, degree = x, torch.bincount(dst, minlength=n).clamp_min(1)[:, None]
        for j, layer in enumerate(f):
            got = Exchange.apply(h[asked], splits(len(asked)), splits(len(want)))
            mean = torch.zeros(n, h.shape[1], device=card).index_add(0, dst, torch.cat([h, got])[index]) / degree
            h = layer(torch.cat([h, mean], 1))
            h = F.dropout(h.relu(), 0.5) if j < 2 else h
        l = F.cross_entropy(h, torch.randint(0, 47, (n,), device=card))
        l.backward()
        for p in f.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        o.step()
        o.zero_grad()


def moved(x, source):
    """x of that rank on the other one, and zeros on itself."""
    if rank == source:
        dist.send(x.contiguous(), 1 - source)
        return torch.zeros_like(x)
    y = torch.empty_like(x)
    dist.recv(y, source)
    return y


class Pass(torch.autograd.Function):
    """The state at the end of rank 0's half is where rank 1's begins; its gradient goes back."""

    @staticmethod
    def forward(ctx, s):
        return moved(s, 0)

    @staticmethod
    def backward(ctx, g):
        return moved(g, 1)


@job(2)
def long_sequences_pass_states():
    """Linear attention over 32,768 tokens, half of them on each rank; only a state of each layer travels."""
    class Linear(nn.Module):
        def __init__(s, d=1024, h=8):
            super().__init__()
            s.h, s.qkv, s.o, s.n1, s.n2, s.mlp = h, nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), nn.RMSNorm(d), nn.RMSNorm(d), nn.Sequential(nn.Linear(d, 3 * d), nn.SiLU(), nn.Linear(3 * d, d))

        def forward(s, x):
            q, k, v = s.qkv(s.n1(x)).view(len(x) // 256, 256, 3, s.h, -1).permute(2, 0, 3, 1, 4)
            kv = k.transpose(-1, -2) @ v
            before = kv.cumsum(0) - kv
            before = before + Pass.apply(kv.sum(0))
            y = (q @ k.transpose(-1, -2)).tril() @ v + q @ before
            x = x + s.o(F.rms_norm(y, (y.shape[-1],)).transpose(1, 2).reshape(len(x), -1))
            return x + s.mlp(s.n2(x))

    m = fixed(nn.ModuleList, [Linear() for _ in range(6)], dt=BF).to(card)
    emb, head = fixed(nn.Embedding, 32000, 1024, dt=BF), fixed(nn.Linear, 1024, 32000, dt=BF)
    ps = [*m.parameters(), *emb.parameters(), *head.parameters()]
    o = torch.optim.AdamW(ps, 1e-4)
    for _ in range(3):
        x = tokens(1, 16384)[0]
        y = emb(x)
        for f in m:
            y = f(y)
        F.cross_entropy(head(y), x).backward()
        dist.all_reduce_coalesced([p.grad for p in ps])
        o.step()
        o.zero_grad()


@job(2)
def pipeline_by_hand():
    """One forward, one backward in plain send and receive pairs, microbatches of other lengths, the shared embedding's gradients added."""
    m = made(1024, 12, dt=BF)
    blocks = nn.Sequential(*m.blocks[rank * 6:rank * 6 + 6])
    own = [*blocks.parameters(), *m.emb.parameters(), *(m.norm.parameters() if rank else [])]
    o = torch.optim.AdamW(own, 1e-4)

    def swap(out, shape):
        """Sends out, if any, and receives one of this shape, if any, at once."""
        got = torch.empty(shape, device=card, dtype=BF) if shape else None
        ops = ([dist.P2POp(dist.isend, out.contiguous(), other)] if out is not None else []) + ([dist.P2POp(dist.irecv, got, other)] if shape else [])
        for w in dist.batch_isend_irecv(ops):
            w.wait()
        return got

    for _ in range(3):
        lengths = [256 * (1 + i % 4) for i in range(8)]
        xs = [tokens(4, n) for n in lengths]
        for x in xs:
            dist.broadcast(x, 0)
        if rank == 0:
            live = []
            y = blocks(m.emb(xs[0]))
            live.append(y)
            swap(y.detach(), None)
            for i in range(1, 8):
                y = blocks(m.emb(xs[i]))
                live.append(y)
                g = swap(y.detach(), live[0].shape)
                live.pop(0).backward(g)
            live[0].backward(swap(None, live[0].shape))
        else:
            h = swap(None, (4, lengths[0], 1024))
            for i in range(8):
                h.requires_grad_()
                l = F.cross_entropy(F.linear(m.norm(blocks(h)), m.emb.weight).flatten(0, 1).float(), xs[i].flatten()) / 8
                l.backward()
                h = swap(h.grad, (4, lengths[i + 1], 1024) if i < 7 else None)
        dist.all_reduce(m.emb.weight.grad)
        o.step()
        o.zero_grad()


@job(2)
def compiled_lengths_under_ddp():
    """dynamic=True inside of DDP, lengths that differ, states gathered on rank 0 in the end."""
    m = made(768, 4)
    m.compile(dynamic=True)
    m = ddp(m, static_graph=True)
    o = adamw(m)
    for i in range(4):
        with torch.autocast("cuda", BF):
            l = next_token(m, 4, (300, 512, 700, 300)[i])
        down(o, l)
    objects = [None] * world if rank == 0 else None
    dist.gather_object({k: tuple(v.shape) for k, v in m.module.state_dict().items()}, objects)


if __name__ == "__main__":
    if "WAITS" in os.environ:
        sys.stdin.readline()
    every(*sys.argv[2:]) if sys.argv[1] == "all" else main(sys.argv[1])
