# SPDX-License-Identifier: Apache-2.0
"""Small programs for tests/torch/run.sh: train.py WHAT [BATCH]"""
import importlib.util
import os
import sys
import time

if importlib.util.find_spec("torch"):  # as many libraries do before they load it
    import torch
import torch.nn as nn


def until(there):
    """At most for a minute or so."""
    for _ in range(600):
        if there():
            return
        time.sleep(0.1)


def train(model, batch, steps=3, width=512):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(batch, 128, width, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 4).cuda()


def most_reserved():
    """The peak of device 0 as the library counts it: struct frag_live_stats, reserved_bytes[0].peak."""
    import ctypes

    import cufrag.torch
    stats = (ctypes.c_int64 * 512)(ctypes.sizeof(ctypes.c_int64) * 512)
    cufrag.torch.library().frag_live_stats(0, stats)
    return stats[1 + 7 * 12 + 1]


def plain():
    p = torch.cuda.get_device_properties(0)
    print(p.name, "%d.%d" % (p.major, p.minor), p.multi_processor_count)
    train(encoder(), 8)


def oom():
    kept = []
    try:
        while True:
            kept.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as error:
        print("caught", type(error).__name__, len(kept))
    kept.clear()
    torch.cuda.empty_cache()
    torch.ones(10, device="cuda").sum().item()


def values():
    x = torch.tensor([1, 2, 3], device="cuda")
    mask = torch.tensor([0, 1, 0, 0, 1], device="cuda") > 0
    print("values", x.sum().item(), x.max().item(), mask.nonzero().flatten().tolist(),
          torch.unique(torch.tensor([5, 1, 2, 1], device="cuda")).tolist(), torch.equal(x, x.clone()))
    with torch.inference_mode():
        rows, columns = torch.meshgrid(x, x.flip(0), indexing="ij")
        print("inference", (rows * columns).tolist(), torch.broadcast_tensors(x, rows)[0].sum().item())


def drawn():
    """Words of Philox 4x32-10 for counter 0 and key 0 are published with it (Random123); the real numbers below were printed by cards."""
    words = 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8
    card = torch.cuda.get_device_properties(0)
    threads = card.multi_processor_count * card.max_threads_per_multi_processor
    torch.manual_seed(0)
    print("words", torch.randint(0, 1 << 27, (3 * threads + 1,), device="cuda")[::threads].tolist() == [w % (1 << 27) for w in words], end=" ")
    torch.manual_seed(0)
    print(torch.randint(5, 5 + (1 << 40), (2,), device="cuda")[0].item() - 5 == (words[0] << 32 | words[1]) % (1 << 40))
    torch.manual_seed(0)
    print("reals", ["%.4f" % x for x in torch.rand(5, device="cuda").tolist()])
    torch.manual_seed(0)
    print("normal", ["%.4f" % x for x in torch.empty(2, 3, device="cuda").normal_().flatten().tolist()])
    given = torch.zeros(2, dtype=torch.int64, device="cuda")  # as compiled code asks for its seeds
    torch.manual_seed(0)
    torch.ops.aten.randint.low_out(5, 5 + (1 << 40), [2], out=given)
    torch.manual_seed(0)
    print("given", torch.equal(given, torch.randint(5, 5 + (1 << 40), (2,), device="cuda")))
    own, later = (torch.Generator("cuda").manual_seed(0) for _ in range(2))
    a, b = (torch.rand(300, device="cuda", generator=own) for _ in range(2))
    later.set_offset(4)
    print("own", ["%.4f" % x for x in a[:2].tolist()], torch.equal(b, torch.rand(300, device="cuda", generator=later)), torch.equal(a, b))


def many():
    """More known integers than are kept, and unknown ones beside them."""
    held = [torch.zeros(60 << 20, dtype=torch.int32, device="cuda") for _ in range(10)]
    unknown = torch.empty(40 << 20, dtype=torch.int32, device="cuda")
    print("many", len(held), int((unknown[:8] * 0).sum()))


def known():
    """A net and data that are small enough to be computed, and what nobody knows."""
    import resource
    import torch.nn.functional as F
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(24, 256), nn.Tanh(), nn.Linear(256, 6)), torch.randn(2048, 24)
    expected = net(x).sum().item()
    print("net", abs(net.cuda()(x.cuda()).sum().item() - expected) < 0.01 * abs(expected) + 0.01)
    points = torch.tensor([[float(i // 2), 0.0] for i in range(1000)])
    print("near", len((torch.cdist(points.cuda(), points.cuda()) < 0.5).nonzero()))
    table = nn.EmbeddingBag(100, 8, sparse=True).cuda()
    table(torch.tensor([[5, 7, 5], [7, 5, 9]]).cuda()).sum().backward()
    matrix = torch.sparse_coo_tensor(torch.tensor([[0, 1, 0, 1, 3], [2, 0, 2, 1, 1]]).cuda(), torch.empty(5, 50000, device="cuda"), (4, 3, 50000))
    print("places", table.weight.grad.coalesce().indices().tolist(), matrix.coalesce().indices().tolist())
    unknown = nn.Linear(512, 8, device="cuda")(torch.empty(4000, 512, device="cuda")).detach()
    kept = (unknown[:, 0] >= 0.001).nonzero().flatten()
    print("bounds", len(kept), len(kept.unique()), len((unknown.argmax(1) >= 1).nonzero()) < 4000)
    print("masked", unknown[unknown[:, 0] > 0].shape[0], unknown.masked_select(unknown > 0).numel(), (torch.arange(9).cuda()[torch.arange(9).cuda() > 3]).tolist())
    stale = torch.ones(1000, dtype=torch.bool, device="cuda")  # places, if taken for them
    del stale
    rows = torch.tensor([[1.0, 2, 1, 1], [3, 4, 3, 5]]).cuda()
    print("slices", rows.unique(dim=1).tolist(), [len(x) for x in rows.t().unique_consecutive(dim=0, return_counts=True)],
          torch.empty(64, 3000, device="cuda").unique(dim=0, return_inverse=True)[0].shape[0], unknown.unique(dim=1).shape[1])
    a, b = torch.empty(1000, 4000, device="cuda"), torch.empty(4000, 400, device="cuda")
    stale = torch.full((200000,), -1, device="cuda")  # NaN, if taken for other numbers
    address = stale.data_ptr()
    del stale
    product = a @ b
    print("stale", product.data_ptr() == address, torch.equal(product, product), product.cpu().unique().tolist(), product[:9].cpu().max().item())
    odd, even, padded, round_, end = (torch.cuda.Event(enable_timing=True) for _ in range(5))
    for columns, event in ((30521, odd), (30522, even), (30521, padded), (30528, round_)):
        right = torch.empty(512, columns, device="cuda", dtype=torch.half)
        event.record()
        torch.empty(2048, 512, device="cuda", dtype=torch.half) @ (F.pad(right, (0, 7)) if event is padded else right)
    end.record()
    weights = [torch.randn(1024, 1024, device="cuda") for _ in range(20)]  # a large net
    mask = F.pad(torch.ones(3, 200, dtype=torch.long, device="cuda"), (0, 312))[:, None, None, :].expand(3, 1, 512, 512)
    print("mask", int((1.0 - mask.to(weights[0].dtype))[:, 0, 0, :].sum()))
    given = torch.empty(3, 64, 4, device="cuda"), torch.empty(4, 4, 3, device="cuda").permute(2, 1, 0)
    torch.linalg.qr(torch.randn(3, 64, 4, device="cuda"), out=given)
    chosen = torch.where(torch.ones(2, 1, 3000, 3000, dtype=torch.bool, device="cuda"), 0.0, -1.0)[:, 0, 0, :]
    chosen[torch.arange(6000, device="cuda").view(2, 3000) % 1000 == 0] = 5.0
    unknown = torch.randn(2500, 4000, device="cuda") * 2
    print("chosen", (chosen > 0).any().item(), chosen.max().item(), torch.isfinite(unknown).all().item(), torch.isinf(unknown).any().item())
    other = torch.zeros_like(unknown)
    print("zero", unknown.any().item(), unknown.all().item(), other.any().item(), unknown.any(1).sum().item())
    print("parts", (other[0] == 0).all().item(), other[1, 7].item(), torch.equal(other, torch.zeros_like(other)), other[2].abs().max().item())
    print("close", torch.allclose(unknown, unknown * 3), torch.isclose(other, torch.zeros_like(other), atol=0, rtol=0).all().item(), (unknown > other).all().item(),
          unknown[:, :8].masked_select(unknown[:, :8] != -100).numel())
    part = other.new_empty(0).set_(other.untyped_storage()[4096:12288])  # as nanotron makes gradients' buffers
    print("storage", part.numel(), (part == 0).all().item(), part.add_(unknown[0, 0]).sum().item() != 0)
    grew = []
    for x in (torch.zeros(2, 3000, dtype=torch.long), torch.arange(6000).view(2, 3000) % 3):
        x = x.cuda()
        before = torch.cuda.memory_stats()["requested_bytes.all.allocated"]
        x.mode()
        grew.append(torch.cuda.memory_stats()["requested_bytes.all.allocated"] - before)
    print("mode", grew[1] - grew[0])  # of each row, two more keys of 8 bytes, counts of 4, and 8 to find the largest
    many = [torch.zeros(32 << 20, dtype=torch.long, device="cuda") for _ in range(10)]  # more integers than are known at once; then they are freed
    del many
    edges = (torch.arange(5_000_000) % 1000).cuda()
    print("edges", len((edges == 7).nonzero()), int(torch.bincount(edges).max()))
    chosen = nn.Linear(64, 128, device="cuda")(torch.empty(40_000, 64, device="cuda")).topk(8).indices
    experts = F.one_hot(chosen, 128).permute(2, 1, 0)
    hit = (experts.sum(dim=(-1, -2)) > 0).nonzero()
    print("experts", len(hit), {len(torch.where(experts[i[0]])[0]) for i in hit}, {len(torch.where(experts[i])[0]) for i in hit})
    some, several = torch.randint(0, 1000, (300, 4000)), lambda x: x if isinstance(x, tuple) else (x,)
    made = [lambda x: x.sort(1), lambda x: x.topk(5), lambda x: x.max(0), lambda x: x.flip(0).t().contiguous(), lambda x: x.cumsum(1), lambda x: (x > 500).prod(0),
            lambda x: (x > 500).sum(1), lambda x: (x * (x > 900)).sum(), lambda x: x.unique(return_inverse=True, return_counts=True), lambda x: x.t().clone() + x.t()]
    print("made", [all(torch.equal(a, b.cpu()) for a, b in zip(several(f(some)), several(f(some.cuda())))) for f in made].count(True))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        F.dropout(torch.empty(16 << 20, device="cuda"))
    print("pages", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 20000)  # of 4,096 in each mask, which nobody computed
    codes = torch.empty(1 << 22, 16, device="cuda").argmin(1).to(torch.uint8)  # of four bits, of weights that nobody knows
    print("codes", int((codes >> 1).max()), int((codes[:1000] >> 1).max()))  # only as many as may decide something are computed
    took = [a.elapsed_time(b) for a, b in ((odd, even), (even, padded), (padded, round_), (round_, end))]
    print("time", took[0] > 4 * took[3], took[0] > took[1] > 1.5 * took[3], took[3] < took[2] < took[1], took[3] > 0)


def lasting():
    """Kernels last about as long as on an H200 [results/nogpu/durations.md]: ours in us, in place of the card's."""
    import torch.nn.functional as F
    half = dict(device="cuda", dtype=torch.bfloat16)
    a, b, scores, mask = torch.empty(8192, 1024, **half), torch.empty(1024, 4096, **half), torch.empty(8, 16, 1024, 1024, **half), torch.empty(1024, 1024, device="cuda", dtype=torch.bool)
    x, one = torch.empty(4, 2048, 2048, device="cuda"), torch.empty(4, 2048, 1, device="cuda")
    q, k, v = (torch.empty(4, 20, 1500, 64, **half) for _ in range(3))
    card = [(lambda: a @ b, 98.5), (lambda: scores.masked_fill_(mask, 0), 368), (lambda: torch.softmax(scores, -1), 285), (lambda: x * one, 53.7), (lambda: x + x, 46.6),
            (lambda: F.gelu(torch.empty(4, 1500, 8192, **half)), 65.9), (lambda: F.layer_norm(torch.empty(4, 2048, 1024, device="cuda"), (1024,)), 28.4),
            (lambda: torch.empty(1024, 4096, device="cuda") @ torch.empty(4096, 1024, device="cuda"), 215), (lambda: F.scaled_dot_product_attention(q, k, v), 136)]
    shares = []
    for f, us in card:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        f()
        end.record()
        shares.append(begin.elapsed_time(end) * 1000 / us)
    print("lasting", " ".join("%.2f" % s for s in shares), all(0.75 < s < 1.3 for s in shares))


def moved():
    """What moves from the host leaves addresses there, which the driver gives to the next segments."""
    host = [torch.empty(16 << 20) for _ in range(8)]
    torch.zeros(1, device="cuda")
    cards = []
    while host:
        cards.append(host.pop(0).cuda())
    print("above", [c.data_ptr() > cards[0].data_ptr() for c in cards[1:]])


def holed():
    """A hole in the midst of what the host had, in parts as a library: the next segment lies there."""
    import ctypes, mmap
    torch.zeros(1, device="cuda")
    libc, mapped = ctypes.CDLL(None), mmap.mmap(-1, 768 << 20)
    at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    libc.mprotect(ctypes.c_void_p(at + (512 << 20)), ctypes.c_size_t(128 << 20), mmap.PROT_READ)
    before = torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
    libc.munmap(ctypes.c_void_p(at + (64 << 20)), ctypes.c_size_t(400 << 20))
    print("hole", torch.empty(200 << 20, dtype=torch.uint8, device="cuda").data_ptr() > before.data_ptr())


def places():
    """Places that are not there end a program on a card, later and without a line; those that nobody knows do not."""
    import torch.nn.functional as F
    table, scores = nn.Embedding(512, 8).cuda(), torch.randn(6, 10, device="cuda", requires_grad=True)
    images = torch.randn(2, 3, 4, 4, device="cuda")
    unknown = nn.Linear(512, 2000, device="cuda")(torch.empty(4000, 512, device="cuda")).argmax(1)
    tries = {
        "positions": lambda: table(torch.arange(514, device="cuda")),
        "negative": lambda: table(torch.tensor([3, -1]).cuda()),
        "label": lambda: F.cross_entropy(scores, torch.tensor([0, 10, -100, 3, 4, 5]).cuda()),
        "pixels": lambda: F.cross_entropy(images, torch.full((2, 4, 4), 3, device="cuda")),
        "gathered": lambda: scores.gather(1, torch.tensor([[10]]).cuda()),
        "selected": lambda: scores.index_select(0, torch.tensor([5, 6]).cuda()),
        "listed": lambda: images[:, torch.tensor([0, 3]).cuda()],
        "put": lambda: torch.zeros(6, 10, device="cuda").index_put_((torch.tensor([0]).cuda(), torch.tensor([-11]).cuda()), scores[0, 0].detach()),
        "scattered": lambda: torch.zeros(6, 10, device="cuda").scatter_(1, torch.tensor([[12]]).cuda(), 1.0),
        "all_positions": lambda: table(torch.arange(512, device="cuda")).sum().backward(),
        "ignored": lambda: F.cross_entropy(scores, torch.tensor([0, 9, -100, 3, 4, 5]).cuda()),
        "ignored_pixels": lambda: F.cross_entropy(images, torch.full((2, 4, 4), 255, device="cuda"), ignore_index=255),
        "unknown": lambda: table(unknown),
        "from_the_end": lambda: images[torch.tensor([-2]).cuda(), :, torch.tensor([-4]).cuda()],
        "after_a_mask": lambda: images[torch.ones(2, 3, dtype=torch.bool, device="cuda"), torch.tensor([3]).cuda()],
    }
    for name, f in tries.items():
        try:
            f()
            print(name, "ran")
        except IndexError as e:
            print(name, str(e).splitlines()[0])


def scaled():
    """Steps of half precision whose gradients nobody computes."""
    scaler, layer = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(), nn.Linear(4096, 4096).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            scaler.scale(layer(torch.randn(256, 4096, device="cuda")).float().square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    print("scaled", scaler.get_scale(), [int(s["step"]) for s in optimizer.state.values()])


def steep():
    """Half precision with losses of which one is too steep at its own end."""
    import torch.nn.functional as F

    torch.backends.cudnn.enabled = False
    lengths = torch.full((4,), 200), torch.full((4,), 20)
    text, rows = torch.randint(1, 32, (4, 20), device="cuda"), torch.randint(0, 32, (800,), device="cuda")
    for name, loss in (("frames", lambda y: F.ctc_loss(y.float().log_softmax(-1).view(4, 200, 32).transpose(0, 1), text, *lengths, reduction="sum")),
                       ("sums", lambda y: F.cross_entropy(y.float() / 0.1, rows, reduction="sum")), ("means", lambda y: F.cross_entropy(y.float() / 0.1, rows))):
        scaler, layer = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(), nn.Linear(4096, 32).cuda()
        optimizer = torch.optim.AdamW(layer.parameters())
        for _ in range(3):
            with torch.autocast("cuda", torch.float16):
                scaler.scale(loss(layer(torch.randn(800, 4096, device="cuda")))).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print("steep", name, scaler.get_scale(), len(optimizer.state))


def varied():
    """What went wrong in programs that nobody had prepared; each line of the answer is checked."""
    import torch.nn.functional as F
    from torch.utils._python_dispatch import TorchDispatchMode

    scaler, layer = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(), nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = layer(torch.randn(256, 512, device="cuda")).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print("scaler", scaler.get_scale(), len(optimizer.state))
    with torch.autograd.detect_anomaly():
        layer(torch.randn(256, 512, device="cuda")).sum().backward()
    print("modes", [torch.randint(0, 9, (n,), device="cuda").mode()[0].item() < 9 for n in (100, 100000)])
    print("qr", torch.linalg.qr(torch.randn(4, 8, 8, device="cuda"))[0].shape)
    x = torch.randn(8, device="cuda")
    print("hessian", torch.func.hessian(lambda x: x.sin().sum())(x).shape)
    lengths = torch.ones_like(torch.randn(2, 30000, device="cuda"), dtype=torch.long).sum(-1)
    print("lengths", lengths.tolist())

    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 8, 64, device="cuda"), torch.tensor([5, 8, 7]), batch_first=True,
                                               enforce_sorted=False)
    out, lengths = nn.utils.rnn.pad_packed_sequence(nn.LSTM(64, 64, batch_first=True, device="cuda")(packed)[0], batch_first=True)
    print("packed", packed.unsorted_indices.tolist(), lengths.tolist())

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, f, types, args=(), kwargs=None):
            return f(*args, **(kwargs or {}))
    with Look():
        print("inside", torch.tensor([0, 3, 8], device="cuda").diff().tolist())
    torch.cuda.memory._record_memory_history(max_entries=10)
    torch.cuda.memory._record_memory_history(enabled=None)
    lp = torch.randn(50, 4, 20, device="cuda").log_softmax(2)
    four = torch.full((4,), 9, dtype=torch.int32)
    print("ctc", F.ctc_loss(lp, torch.randint(1, 20, (36,), dtype=torch.int32).cuda(), four.cuda() * 5, four.cuda()).shape)


def attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    for f in (flex_attention, torch.compile(flex_attention)):
        q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        f(q, k, v, block_mask=mask).sum().backward()
        print("flex", q.grad.shape)


def splits():
    """One query token: keys are split over multiprocessors, and partial results of all splits are kept in 32 bits."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    heads, width = 8, 64
    q = torch.randn(1, heads, 1, width, device="cuda", dtype=torch.half)
    k = torch.randn(1, heads, 4096, width, device="cuda", dtype=torch.half)
    before = torch.cuda.memory_allocated()
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(q, k, k)
    others = 1024 + 2 * 512 + 1024  # the output, logarithms of it and of the splits, two numbers for dropout
    print("splits", (torch.cuda.max_memory_allocated() - before - others) / (4 * heads * width))


def shared():
    """A tensor on the card for another process."""
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(queue, back))
    child.start()
    kept = torch.full((1000,), 2.0, device="cuda")
    queue.put(kept)
    print("child has", back.get(timeout=120))
    few = torch.arange(3, device="cuda")
    queue.put(few)
    print("child reads", back.get(timeout=120), "and writes", few.tolist())
    child.join()


def receive(queue, back):
    kept = queue.get()
    back.put((kept.shape == (1000,), kept.sum().item()))
    few = queue.get()
    read = few.tolist()
    few.copy_(torch.tensor([5, 6, 7]))
    torch.cuda.synchronize()
    back.put(read)


@torch.jit.script
def masked(x, low: int, high: int):
    inside = (x >= low) & (x < high)
    return inside * (x - low * inside), ~inside


def scripted():
    """torch.jit fuses these operators from the third call on. What they make is not what lay there before."""
    weight, x = torch.randn(256, 64, device="cuda"), torch.arange(8, device="cuda") * 20
    for step in range(5):
        before = [torch.full((8,), 1 << 40, device="cuda") for _ in range(4)]
        del before
        choice, outside = masked(x, 0, 100)
        rows = torch.nn.functional.embedding(choice, weight)
    print("scripted", tuple(rows.shape), x.tolist()[7])


def objects():
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    gathered, given = [None] * dist.get_world_size(), [dist.get_rank()]
    dist.all_gather_object(gathered, {"rank": dist.get_rank()})
    dist.broadcast_object_list(given, src=0)
    counts = [torch.zeros(1, dtype=torch.long, device="cuda") for _ in gathered]
    dist.all_gather(counts, torch.tensor([4], device="cuda"))
    collected = [None] * len(gathered) if dist.get_rank() == 1 else None
    dist.gather_object({"rank": dist.get_rank()}, collected, dst=1)
    sys.stdout.write("objects %s %s %s %s\n" % (gathered, given, torch.cat(counts).tolist(), collected))  # in one piece, beside other ranks
    dist.destroy_process_group()


def replicas():
    """DataParallel: one process, two cards, copies of the model by broadcasts."""
    model = nn.DataParallel(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(4):
        model(torch.randn(32 + 2 * i, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("replicas", [torch.cuda.max_memory_allocated(i) > 1 << 20 for i in range(2)])


def graph():
    model, x = nn.Linear(256, 256).cuda(), torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(x)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = model(x)
    captured.replay()
    print(y.shape)


def graphs():
    """One that is captured, and one whose capture fails: last, because PyTorch before 2.15 draws no random numbers on a card from then on."""
    graph()
    x = torch.ones(64, 256, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sum().item()
    except RuntimeError as error:
        print("refused", str(error).splitlines()[0])
    torch.cuda.synchronize()


def live():
    """Whatever a policy may meet: an out of memory, threads with streams, two devices, a child, a graph."""
    import gc
    import threading

    import cufrag.torch
    print("policy", cufrag.torch.policy())
    try:
        torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        print("refused:", error)

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(200):
                x = torch.empty(1000 * (i % 37 + 1), device="cuda")
                x.record_stream(torch.cuda.default_stream())
                del x
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    moved = torch.ones(1000, device="cuda:1").to("cuda:0")
    torch.cuda.set_device(1)
    del moved
    torch.cuda.set_device(0)
    with torch.backends.cudnn.flags(benchmark=True):
        print("fastest", nn.Conv2d(3, 8, 3).cuda()(torch.ones(2, 3, 32, 32, device="cuda")).numel())
    kept = torch.ones(1 << 20, device="cuda")
    child = os.fork()
    if not child:
        del kept
        gc.collect()
        os._exit(0)
    print("child", os.waitpid(child, 0)[1])
    for capture in (graph, graphs):
        capture()
        gc.collect()
        torch.cuda.empty_cache()


def watched():
    """What others see of a policy while the program runs: monitor its bytes, info its recording."""
    import glob
    import json
    import subprocess
    import cufrag
    kept = train(encoder(), 4), torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CUFRAG_") and k != "LD_PRELOAD"}

    def say(*what):
        return subprocess.run([os.environ["CUFRAG"], *what], env=clean, capture_output=True, text=True, check=True).stdout
    for larger in (0, 64 << 20):
        kept += (torch.empty(larger, dtype=torch.uint8, device="cuda"),)
        stats = torch.cuda.memory_stats()
        clean.update(FAKE_PID=str(os.getpid()), FAKE_NVML="self", LD_LIBRARY_PATH=os.environ["FAKE_LIBRARIES"])
        kinds = "requested", "allocated", "reserved"

        def seen():
            held = json.dumps(json.loads(say("monitor", "--count", "1", "--json").splitlines()[0])).split('"held": ')[1]
            return held.startswith("{") and [json.loads(held.split("}")[0] + "}")[k + "_bytes"] for k in kinds]
        mine = [stats[k + "_bytes.all.current"] for k in kinds]
        until(lambda: seen() == mine)
        assert seen() == mine, (seen(), mine)
        cufrag.torch.library().frag_live_flush()
        path, = glob.glob("run.cft.parts/*.cft")
        assert "%d allocs" % stats["allocation.all.allocated"] in say("info", path).replace(",", "")
    print("seen by others")


def killed():
    """Looks at its own recording, and ends without a chance to tidy up."""
    import glob
    import signal
    import subprocess
    written = 0
    for _ in range(3):
        train(encoder(), 4)
        until(lambda: sum(map(os.path.getsize, glob.glob("run.cft.parts/*.cft"))) > written)
        path, = glob.glob("run.cft.parts/*.cft")
        written = os.path.getsize(path)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CUFRAG_") and k != "LD_PRELOAD"}
        text = subprocess.run([os.environ["CUFRAG"], "info", path], env=clean, capture_output=True, text=True, check=True).stdout
        print("seen", next(line for line in text.splitlines() if "allocs" in line).replace(",", ""), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def ddp():
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    train(nn.parallel.DistributedDataParallel(encoder()), 4)
    print("rank %d of %d done" % (dist.get_rank(), dist.get_world_size()))
    dist.destroy_process_group()


def beside_output(call):
    """Bytes that an operator requests beside what it returns."""
    requested = lambda: torch.cuda.memory_stats()["requested_bytes.all.allocated"]  # noqa: E731
    before = requested()
    out = call()
    return requested() - before - out.numel() * out.element_size()


def transforms():
    """Workspaces of transforms of odd and even sides; those into real numbers copy their input, too."""
    real = [torch.zeros(shape, device="cuda") for shape in ((1, 64, 302), (1, 16, 1859), (100, 8, 97), (2, 1009, 371))]
    half = torch.zeros(2, 7, 279, dtype=torch.complex64, device="cuda")
    return [beside_output(lambda: torch.fft.rfft2(x)) for x in real] + [beside_output(lambda: torch.fft.irfft2(half, s=(7, 557))) - 8 * half.numel()]


def libraries():
    """What others ask before torch is there, and the libraries that work beside cuBLAS and cuDNN."""
    import ctypes
    a = torch.randn(300, 300, device="cuda")
    s = a @ a.T + torch.eye(300, device="cuda")
    for f in (torch.linalg.svdvals, torch.linalg.cholesky, torch.linalg.inv, torch.linalg.eigvalsh, torch.linalg.eigvals, torch.linalg.qr,
              torch.linalg.pinv, torch.linalg.slogdet):
        f(s), f(s[:5, :5].contiguous())
    print("transforms", *transforms())
    i = torch.randint(0, 300, (2, 900), device="cuda")
    m = torch.sparse_coo_tensor(i, torch.randn(900, device="cuda"), (300, 300))
    print("sparse", tuple((m.coalesce().to_sparse_csr() @ a).shape), tuple(torch.sparse.mm(m, m).shape))
    torch.sparse.sampled_addmm(m.to_sparse_csr(), a, a)
    nn.LSTM(64, 64, 2, device="cuda")(torch.randn(10, 4, 64, device="cuda"))[0].sum().backward()
    torch.nested.nested_tensor([a[:3], a[:5]]).to_padded_tensor(0.0)
    with torch.profiler.profile() as p:
        torch.mm(a, a)
    print("profiled", any("aten::mm" in e.key for e in p.key_averages()))
    nvml, count, memory = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(), (ctypes.c_ulonglong * 3)()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    nvml.nvmlDeviceGetMemoryInfo(ctypes.c_void_p(1), memory)
    print("nvml", count.value, memory[0] == torch.cuda.get_device_properties(0).total_memory, memory[1] == torch.cuda.mem_get_info()[0])
    try:
        torch._cslt_compress(torch.zeros(64, 64, dtype=torch.half, device="cuda"))
    except RuntimeError as error:
        print("refused", type(error).__name__)


def triton_kernel():
    """What it would have written is not what was there before."""
    import triton
    import triton.language as tl

    def total(x, out, n, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out, tl.sum(tl.load(x + i, mask=i < n)))
    total.__globals__["tl"] = tl
    out = torch.full((1,), float("-inf"), device="cuda")
    triton.jit(total)[(1,)](torch.ones(64, device="cuda"), out, 64, B=64)
    print("triton", out.sum().item(), torch.isfinite(out).item())


def triton_writes():
    """Integers that kernels write are not those of before, in whatever way, and those that they only read are."""
    import triton
    import triton.language as tl

    @triton.jit
    def put(at, value):
        tl.store(at, value)

    @triton.jit
    def kernel(first, indices, read, second, added, unused, n, STEPS: tl.constexpr, B: tl.constexpr):
        i = tl.load(indices + tl.arange(0, B))
        at = first
        for _ in range(STEPS):
            put(at + i, tl.load(read + i))
            at += n
        if n > 5:
            behind, beside = second + tl.arange(0, B), i
            tl.store(behind, beside)
        tl.atomic_add(added + i, i)
        tl.device_assert(tl.load(unused) >= 0)
    globals().update(tl=tl, put=put)
    named = {name: torch.arange(64, device="cuda", dtype=torch.int32) + 1 for name in ("first", "indices", "read", "second", "added", "unused")}
    kernel[(1,)](named["first"], named["indices"], named["read"], second=named["second"], added=named["added"], unused=named["unused"], n=16, STEPS=2, B=16)
    print("writes", *(name for name, t in named.items() if t.sum().item() != 2080))


def compiled_writes():
    """Compiled code that changes integers in place: those of before may be places that are not there."""
    @torch.compile(dynamic=True)
    def resolve(ids, table):
        ids[:] = torch.where(ids < 0, table[torch.clamp(-ids, min=0)], ids)

    ids, table = torch.tensor([4, -1, -2], device="cuda"), torch.arange(8, device="cuda")
    resolve(ids, table)
    nn.functional.embedding(ids, torch.ones(8, 2, device="cuda"))
    print("resolved", ids.tolist(), table.sum().item())


def workers_stay():
    """Prints at its end whether Inductor's processes kept it for less than a minute, though they do not end."""
    import atexit
    import signal
    import torch._inductor.async_compile as compile_later
    atexit.register(lambda: print("compiled", time.monotonic() - began[0] < 60))
    pool = compile_later.AsyncCompile.process_pool()
    atexit.register(lambda: began.append(time.monotonic()))
    began = []
    torch.zeros(1, device="cuda")
    os.kill(pool.process.pid, signal.SIGSTOP)


def pinned_backward():
    """Prints how many threads computed what a card computes in a backward pass, and how many the program has for itself there."""
    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            own.append(torch.get_num_threads())
            return g

    own, loader = [], torch.utils.data.DataLoader(torch.randn(4, 1024, 1024), pin_memory=True, num_workers=1)
    for batch in loader:
        x = batch.cuda().requires_grad_()
        (Asks.apply(x).exp() * 2).sin().sum().backward()
    names = [open("/proc/self/task/%s/comm" % t).read() for t in os.listdir("/proc/self/task")]
    print("threads", sum(name.startswith("pt_autograd_0") for name in names), *set(own))


BESIDE = """
int cublasSrotg_v2(void *, float *, float *, float *, float *);
int cudaMallocPitch(void **, unsigned long *, unsigned long, unsigned long);
int beside(void) { float a = 1; void *p; unsigned long pitch; return 1000 * cublasSrotg_v2(0, &a, &a, &a, &a) + cudaMallocPitch(&p, &pitch, 100, 100); }
"""


def libraries_of_ones_own():
    """Packages with CUDA code of their own: with the runtime inside, as nvcc links it, or calling what PyTorch does not."""
    import ctypes
    import glob
    import re
    import subprocess

    def build(name, *options):
        subprocess.run([os.environ.get("CC", "cc"), "-O0", "-w", "-shared", "-fPIC", "-o", name, *options], check=True)
        return ctypes.CDLL(os.path.abspath(name))
    torch.ones(10, device="cuda")
    for inside in build("inside.so", os.path.join(os.path.dirname(__file__), "inside.c"), '-DHIDDEN=__attribute__((visibility("hidden")))'), ctypes.CDLL(sys.argv[2]):
        inside.managed.restype = ctypes.c_void_p
        before = torch.cuda.mem_get_info()[0]
        print("inside", inside.count(), inside.managed() > 1 << 40, before - torch.cuda.mem_get_info()[0] >= 3 << 20)
    if glob.glob(os.path.join(os.path.dirname(torch.__path__[0]), "nvidia", "*", "lib", "libcublas.so.*")):
        with open("/proc/self/maps") as f:
            stubs = {line.split()[-1] for line in f if re.search(r"/(libcudart|libcublas)\.so\.", line)}
        with open("beside.c", "w") as f:
            f.write(BESIDE)
        beside = build("beside.so", "beside.c", *sorted(stubs))
        print("beside", beside.beside())


def compiled():
    model = torch.compile(nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256)).cuda(),
                          mode=sys.argv[2] if len(sys.argv) > 2 else None)
    train(model, 8, width=256)
    before = torch.arange(64, device="cuda") + 1000000  # not what compiled code gives afterwards, in the same memory
    del before
    most = torch.compile(lambda x: (x + 5).max())
    print("made", most(torch.arange(64, device="cuda")).item())


def ends():
    """Each in its way; what was asked for until then is recorded."""
    import signal
    torch.ones(1000, device="cuda").add(1)
    how = sys.argv[2]
    if how == "exec":
        os.execv(sys.executable, [sys.executable, *sys.argv[:2], "os_exit"])
    elif how == "raise":
        raise ValueError(how)
    elif how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    {"exit": sys.exit, "os_exit": os._exit}.get(how, print)(5)


def chosen():
    """CUDA_VISIBLE_DEVICES of the program itself, and children of one that only looked at the cards."""
    os.environ.update(CUDA_VISIBLE_DEVICES=sys.argv[2])
    print("seen", torch.cuda.device_count())
    child = os.fork()
    if not child:
        torch.ones(1000, device="cuda")
        os._exit(0)
    print("child", os.waitpid(child, 0)[1])
    print("has", torch.ones(10, device="cuda").device, torch._C._cuda_getDeviceCount())


def kernels():
    """Operators whose kernels are chosen by what PyTorch was compiled for: those of CUB above all; and a training with each kind of layer."""
    from torch.nn import functional as F
    words, table = torch.randint(0, 500, (8, 1000), device="cuda"), nn.Embedding(500, 64).cuda()  # by sorting, from 3072 words on
    bag = nn.EmbeddingBag(500, 64, mode="sum").cuda()
    layers = nn.ModuleList([nn.Conv1d(64, 64, 3, padding=1), nn.GroupNorm(4, 64), nn.BatchNorm1d(64), nn.Linear(64, 500)]).cuda()
    optimizer = torch.optim.AdamW([*table.parameters(), *bag.parameters(), *layers.parameters()])
    for dtype in torch.bfloat16, torch.float16, torch.float32:
        if dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported():  # older releases refuse it on older cards
            continue
        with torch.autocast("cuda", dtype=dtype, enabled=dtype != torch.float32):
            x = table(words)
            x = x + layers[2](layers[1](layers[0](x.transpose(1, 2)))).transpose(1, 2) + bag(words)[:, None]
            heads = x.view(8, 1000, 4, 16).transpose(1, 2)
            x = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2).reshape(8, 1000, 64)
            picked = x.flatten(0, 1)[torch.randint(0, 8000, (5000,), device="cuda")]  # backward: index_put
            loss = F.cross_entropy(layers[3](x).flatten(0, 1), words.flatten()) + x.softmax(-1).cumsum(1).mean() + picked.float().logcumsumexp(0).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    x, flat = torch.randn(200000, device="cuda"), words.flatten()
    x.sort(), x.argsort(stable=True), x.topk(100), x.cumsum(0), x.cumprod(0), x.cummax(0), x.median(), x.kthvalue(7), flat.mode()
    flat.unique(return_inverse=True, return_counts=True), flat.unique_consecutive(), flat.bincount(), x.histc(50), (x > 0).nonzero(), x[x > 0]
    for _ in range(20):  # of memory that held other numbers before
        junk = [torch.full((n,), -7e8, device="cuda").long() for n in (5, 12, 60, 61)]
        del junk
        bags = torch.nn.functional.embedding_bag(flat[:60].view(5, 12), torch.randn(500, 8, device="cuda", requires_grad=True), mode="sum")
        bags.sum().backward()
    torch.isin(flat, flat[:3000]), torch.randperm(100000, device="cuda"), torch.multinomial(x.abs(), 100), torch.searchsorted(x.sort().values, x), words.sort(1), words.unique(dim=0)
    torch.sparse_coo_tensor(torch.stack([flat, flat]), x[:8000], (500, 500)).coalesce()
    torch.zeros(500, device="cuda").index_add(0, flat, x[:8000]).scatter_reduce_(0, flat, x[:8000], "amax")
    torch.cuda.synchronize()
    print("ran on", "%d.%d" % torch.cuda.get_device_capability())


def router():
    """Two of eight experts for each of 512 tokens, by scores that nobody computes."""
    x = torch.randn(512, 8192, device="cuda")
    chosen = (x @ torch.randn(8192, 8, device="cuda")).softmax(-1).topk(2).indices
    print("largest %d of 512" % chosen.flatten().bincount(minlength=8).max().item())
    sum((x[(chosen == e).any(-1)] @ torch.randn(8192, 8192, device="cuda")).sum() for e in range(8)).item()


def choices():
    """Tables of a router's choices, too large to be computed: what is asked of them is what the CPU says of the same choices."""
    tokens, experts = 20000, 64
    chosen = torch.rand(tokens, experts).topk(4).indices
    answers = []
    for device in ("cpu", "cuda"):
        index = chosen.to(device)
        zeros = torch.zeros(tokens, experts, device=device, dtype=torch.bfloat16)
        table = zeros.scatter(1, index, 1)
        across = torch.zeros(experts, tokens, device=device).scatter_(0, index.t(), 1)
        weights = torch.zeros(tokens, experts, device=device).scatter_(1, index, torch.rand(tokens, 4).to(device) + 1)
        named = torch.zeros(tokens, experts, device=device)
        named[torch.arange(tokens), index[:, 0]] = 1
        named[index[:2, 1], torch.tensor([-1, -2])] = 1
        hit = torch.tensor([7, 3], device=device)
        answers.append([
            table.long().sum(0).tolist(), table.sum().item(), nn.functional.one_hot(index, experts).sum(1).sum(0).tolist(), across.sum(-1).tolist(),
            across[9].nonzero().flatten().tolist(), torch.where(table.t()[hit])[1].tolist(), (table > 0)[100:300].nonzero().tolist(),
            table.index_select(1, hit).nonzero().tolist(), across.any(0).sum().item(), (weights != 0).sum(1).unique().tolist(),
            table.t().contiguous()[5].nonzero().flatten().tolist(), [len(t.nonzero()) for t in zeros.scatter(1, index[:, :2], 1).split(5000)],
            table[:, ::2].nonzero()[:50].tolist(), (table == 1).sum(1).max().item(),
            named.sum(0).tolist(), (named == 1).nonzero().tolist(), len(weights[named == 1])])
    print("differ", [i for i, (a, b) in enumerate(zip(*answers)) if a != b])
    router = nn.Linear(64, 128, device="cuda", dtype=torch.bfloat16)
    chosen = router(torch.empty(40000, 64, device="cuda", dtype=torch.bfloat16)).topk(8).indices
    table = torch.zeros(40000, 128, device="cuda").scatter_(1, chosen, 1)
    print("counts", sorted(set(table.sum(0).tolist())), len((nn.functional.one_hot(chosen, 128).sum((0, 1)) > 0).nonzero()))


def busy():
    """What another stream still uses is not given out anew before that is over."""
    side, w = torch.cuda.Stream(), torch.empty(8192, 8192, dtype=torch.bfloat16, device="cuda")
    places = []
    for wait in (False, True):
        with torch.cuda.stream(side):
            x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        for _ in range(20):
            w @ w
        x.record_stream(torch.cuda.current_stream())
        place = x.data_ptr()
        del x
        if wait:
            torch.cuda.synchronize()
        with torch.cuda.stream(side):
            places.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda").data_ptr() == place)
    print("busy", places)


def batch():
    train(encoder(), int(sys.argv[2]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    if os.environ.get("CUFRAG_RUN"):
        print("reserved", most_reserved())
