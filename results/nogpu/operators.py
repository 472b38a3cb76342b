# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch, one after the other, forward and backward: what each asks PyTorch's allocator for.

    operators.py OUT.csv [PART PARTS [GROUP...]]       needs expecttest (PyTorch's test data do)

Two sources: PyTorch's own test data (op_db: small tensors, all overloads) and `sized`: operators that take temporary memory, with
tensors of the sizes that programs have. Inputs are made on the host from one seed, so that values are equal on every machine. A row is one
call: number of requests, bytes requested in all, and the most requested at once, beside what stood before.
"""
import csv
import gc
import sys
import warnings

import torch
import torch.nn.functional as F

D = "cuda"
MOST_SAMPLES = 10  # of an operator and a type


def stats():
    s = torch.cuda.memory_stats()
    return (s["allocation.all.allocated"], s["requested_bytes.all.allocated"], s["requested_bytes.all.peak"],
            s["requested_bytes.all.current"])


def tensors(x):
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from tensors(y)


def measure(call):
    """Requests, bytes, peak; or the name of the exception."""
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = stats()
    try:
        out = call()
        loss = [o for o in tensors(out) if o.requires_grad and o.layout == torch.strided]
        if loss:
            torch.autograd.backward(loss, [torch.ones_like(o) for o in loss])
            del loss
        del out
        torch.cuda.synchronize()
    except Exception as e:  # a row of the table
        return [type(e).__name__ + ": " + str(e).split("\n")[0][:80], "", ""]
    after = stats()
    return [after[0] - before[0], after[1] - before[1], after[2] - before[3]]


def own(t):
    if not isinstance(t, torch.Tensor):
        return t
    return t.detach().to(D).requires_grad_(t.requires_grad)


def of_op_db():
    from torch.testing._internal.common_methods_invocations import op_db
    for op in op_db:
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.complex64):
            if dtype not in op.dtypes or (dtype == torch.int64 and torch.float32 in op.dtypes):
                continue
            grad = op.supports_autograd and dtype in op.backward_dtypes and dtype != torch.int64
            yield f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}", dtype, op, grad


def samples(op, dtype, grad):
    torch.manual_seed(7)
    for i, s in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        if i == MOST_SAMPLES:
            return
        yield i, s.transform(own)


# ---- operators with the sizes of programs

def rand(*shape, dtype=torch.float32, grad=False):
    return torch.randn(*shape).to(dtype).to(D).requires_grad_(grad)


def ints(high, *shape):
    return torch.randint(high, shape).to(D)


SIZES = (1000, 4097, 70001, 1 << 20, 5000003)
SHAPES = ((4, 1000), (64, 4096), (1000, 1000), (3, 70001), (20000, 33), (8, 1 << 18))
HALF = torch.bfloat16


def lines():
    for n in SIZES:
        for t in (torch.float32, torch.bfloat16, torch.int64, torch.uint8):
            x = lambda: (torch.randn(n) * 50).to(t).to(D)  # noqa: E731
            name = f"{n}.{str(t)[6:]}"
            yield "sort." + name, lambda: x().sort()
            yield "sort_stable." + name, lambda: x().sort(stable=True)
            yield "argsort." + name, lambda: x().argsort(descending=True)
            yield "topk." + name, lambda: x().topk(min(n, 50))
            yield "unique." + name, lambda: x().unique()
            yield "unique_inverse." + name, lambda: x().unique(return_inverse=True, return_counts=True)
            yield "unique_consecutive." + name, lambda: torch.unique_consecutive(x())
            yield "cumsum." + name, lambda: x().cumsum(0)
            yield "cummax." + name, lambda: x().cummax(0)
            yield "nonzero." + name, lambda: (x() > 20).nonzero()
            yield "masked_select." + name, lambda: (lambda y: y[y > 20])(x())
            yield "sum." + name, lambda: x().sum()
            yield "max." + name, lambda: x().max()
            yield "argmax." + name, lambda: x().argmax()
            yield "any." + name, lambda: x().any()
            yield "equal." + name, lambda: torch.equal(x(), x())
            yield "median." + name, lambda: x().median()
            yield "kthvalue." + name, lambda: x().kthvalue(n // 2)
            yield "mode." + name, lambda: x().mode()
            yield "isin." + name, lambda: torch.isin(x(), x()[:1000])
            yield "searchsorted." + name, lambda: torch.searchsorted(x().sort()[0], x()[:1000])
        f = lambda grad=True: rand(n, grad=grad)  # noqa: E731
        index = lambda high=1000: ints(high, n)  # noqa: E731
        yield f"std.{n}", lambda: f().std()
        yield f"norm.{n}", lambda: f().norm()
        yield f"quantile.{n}", lambda: f(False)[:1 << 20].quantile(0.3)
        yield f"histc.{n}", lambda: f(False).histc(100)
        yield f"bincount.{n}", lambda: index().bincount()
        yield f"bincount_weights.{n}", lambda: index().bincount(f(False))
        yield f"one_hot.{n}", lambda: F.one_hot(index(10))
        yield f"bucketize.{n}", lambda: torch.bucketize(f(False), torch.linspace(-1, 1, 100, device=D))
        yield f"index_put_accumulate.{n}", lambda: f(False).index_put_((index(),), f(False), accumulate=True)
        yield f"index_put.{n}", lambda: f(False).index_put_((index(),), f(False))
        yield f"index_add.{n}", lambda: torch.zeros(1000, device=D).index_add_(0, index(), f(False))
        yield f"scatter_add.{n}", lambda: torch.zeros(1000, device=D).scatter_add_(0, index(), f(False))
        yield f"scatter_reduce.{n}", lambda: torch.zeros(1000, device=D).scatter_reduce(0, index(), f(), "amax")
        yield f"take.{n}", lambda: f().take(index())
        yield f"gather.{n}", lambda: f().gather(0, index())
        yield f"index_select.{n}", lambda: f().index_select(0, index())
        yield f"indexing.{n}", lambda: f()[index()]
        yield f"randperm.{n}", lambda: torch.randperm(n, device=D)
        yield f"multinomial.{n}", lambda: f(False).abs().multinomial(100)
        yield f"multinomial_replacement.{n}", lambda: f(False).abs()[:1 << 20].multinomial(1000, replacement=True)
        yield f"dropout.{n}", lambda: F.dropout(f(), 0.1)
        yield f"fft.{n}", lambda: torch.fft.fft(f())
        yield f"rfft.{n}", lambda: torch.fft.rfft(f())
        yield f"irfft.{n}", lambda: torch.fft.irfft(torch.fft.rfft(f()))
        yield f"dot.{n}", lambda: f().dot(f())
        yield f"bernoulli.{n}", lambda: f(False).sigmoid().bernoulli()
        yield f"combinations.{n}", lambda: torch.combinations(f()[:1000])
        yield f"coalesce.{n}", lambda: torch.sparse_coo_tensor(index()[None], f(False), (1000,)).coalesce()


def tables():
    for shape in SHAPES:
        rows, columns = shape
        for t in (torch.float32, HALF):
            x = lambda grad=True: rand(*shape, dtype=t, grad=grad)  # noqa: E731
            name = f"{rows}x{columns}.{str(t)[6:]}"
            label = lambda: ints(columns, rows)  # noqa: E731
            for d in (0, 1):
                yield f"sort.{name}.{d}", lambda: x().sort(d)
                yield f"topk.{name}.{d}", lambda: x().topk(min(shape[d], 5), d)
                yield f"topk64.{name}.{d}", lambda: x().topk(min(shape[d], 64), d)
                yield f"cumsum.{name}.{d}", lambda: x().cumsum(d)
                yield f"cumprod.{name}.{d}", lambda: x().cumprod(d)
                yield f"logcumsumexp.{name}.{d}", lambda: x().logcumsumexp(d)
                yield f"cummax.{name}.{d}", lambda: x().cummax(d)
                yield f"sum.{name}.{d}", lambda: x().sum(d)
                yield f"mean.{name}.{d}", lambda: x().mean(d)
                yield f"var.{name}.{d}", lambda: x().var(d)
                yield f"max.{name}.{d}", lambda: x().max(d)
                yield f"amax.{name}.{d}", lambda: x().amax(d)
                yield f"argmin.{name}.{d}", lambda: x(False).argmin(d)
                yield f"softmax.{name}.{d}", lambda: x().softmax(d)
                yield f"log_softmax.{name}.{d}", lambda: x().log_softmax(d)
                yield f"logsumexp.{name}.{d}", lambda: x().logsumexp(d)
                yield f"median.{name}.{d}", lambda: x().median(d)
                yield f"kthvalue.{name}.{d}", lambda: x().kthvalue(shape[d] // 2 + 1, d)
                yield f"mode.{name}.{d}", lambda: x(False).mode(d)
                yield f"norm.{name}.{d}", lambda: x().norm(dim=d)
                yield f"prod.{name}.{d}", lambda: x().prod(d)
                yield f"unique.{name}.{d}", lambda: x(False)[:2000, :2000].unique(dim=d)
                yield f"flip.{name}.{d}", lambda: x().flip(d)
                yield f"index_select.{name}.{d}", lambda: x().index_select(d, ints(shape[d], 777))
                yield f"index_add.{name}.{d}", lambda: x().index_add(d, ints(shape[d], 3), x().narrow(d, 0, 3))
                yield f"gather.{name}.{d}", lambda: x().gather(d, ints(3, 3, 3))
                yield f"cat.{name}.{d}", lambda: torch.cat([x(), x(), x()], d)
                yield f"stack.{name}.{d}", lambda: torch.stack([x(), x()], d)
            yield f"nonzero.{name}", lambda: (x() > 1).nonzero()
            yield f"cross_entropy.{name}", lambda: F.cross_entropy(x(), label())
            yield f"cross_entropy_smooth.{name}", lambda: F.cross_entropy(x(), label(), label_smoothing=0.1)
            yield f"nll.{name}", lambda: F.nll_loss(x(), label())
            yield f"kl.{name}", lambda: F.kl_div(x(), x(), reduction="batchmean")
            yield f"mse.{name}", lambda: F.mse_loss(x(), x())
            yield f"bce.{name}", lambda: F.binary_cross_entropy_with_logits(x(), x(False).sigmoid())
            yield f"huber.{name}", lambda: F.smooth_l1_loss(x(), x())
            yield f"cosine.{name}", lambda: F.cosine_similarity(x(), x())
            yield f"layer_norm.{name}", lambda: F.layer_norm(x(), (columns,), rand(columns, dtype=t, grad=True), rand(columns, dtype=t, grad=True))
            yield f"layer_norm_plain.{name}", lambda: F.layer_norm(x(), (columns,))
            yield f"rms_norm.{name}", lambda: F.rms_norm(x(), (columns,), rand(columns, dtype=t, grad=True))
            yield f"batch_norm.{name}", lambda: F.batch_norm(x(), None, None, rand(columns, grad=True), rand(columns, grad=True), training=True)
            yield f"gelu.{name}", lambda: F.gelu(x())
            yield f"gelu_tanh.{name}", lambda: F.gelu(x(), approximate="tanh")
            yield f"silu.{name}", lambda: F.silu(x())
            yield f"glu.{name}", lambda: F.glu(x()[:, :columns // 2 * 2])
            yield f"prelu.{name}", lambda: F.prelu(x(), rand(columns, dtype=t, grad=True))
            yield f"prelu1.{name}", lambda: F.prelu(x(), rand(1, dtype=t, grad=True))
            yield f"rrelu.{name}", lambda: F.rrelu(x(), training=True)
            yield f"multinomial.{name}", lambda: x(False).float().softmax(1).multinomial(1)
            yield f"gumbel.{name}", lambda: F.gumbel_softmax(x())
            yield f"embedding.{name}", lambda: F.embedding(ints(rows, 5000), x())
            yield f"embedding_frequency.{name}", lambda: F.embedding(ints(rows, 5000), x(), scale_grad_by_freq=True)
            yield f"embedding_long.{name}", lambda: F.embedding(ints(rows, 4, 700), x(), padding_idx=0)
            yield f"embedding_sparse.{name}", lambda: F.embedding(ints(rows, 700), x(), sparse=True)
            yield f"embedding_bag.{name}", lambda: F.embedding_bag(ints(rows, 50, 20), x())
            yield f"embedding_bag_max.{name}", lambda: F.embedding_bag(ints(rows, 50, 20), x(), mode="max")
            yield f"index_rows.{name}", lambda: x()[ints(rows, 999)]
            yield f"index_both.{name}", lambda: x()[ints(rows, 999), ints(columns, 999)]
            yield f"index_mask.{name}", lambda: (lambda y: y[y[:, 0] > 0])(x())
            yield f"scatter.{name}", lambda: x(False).scatter(1, ints(3, rows, 2), 1.0)
            yield f"masked_fill.{name}", lambda: (lambda y: y.masked_fill(y > 0, 0))(x())
            yield f"where.{name}", lambda: torch.where(x() > 0, x(), x())
            yield f"tril.{name}", lambda: x().tril()
            yield f"roll.{name}", lambda: x().roll(3, 0)
            yield f"repeat.{name}", lambda: x()[:1000, :1000].repeat(2, 3)
            yield f"repeat_interleave.{name}", lambda: x()[:1000, :1000].repeat_interleave(2, 0)
            yield f"repeat_interleave_counts.{name}", lambda: x()[:1000, :1000].repeat_interleave(ints(3, min(rows, 1000)), 0)
            yield f"contiguous.{name}", lambda: x().t().contiguous()
            yield f"to_half.{name}", lambda: x().half()
            yield f"clip_grad.{name}", lambda: clip(x())
            yield f"mv.{name}", lambda: x().mv(rand(columns, dtype=t))
            yield f"cdist.{name}", lambda: torch.cdist(x().float()[:1000, :500], x().float()[:1000, :500])
            yield f"pdist.{name}", lambda: F.pdist(x().float()[:500, :500])
            yield f"fft2.{name}", lambda: torch.fft.fft2(x().float()[:2000])
            yield f"rfft_last.{name}", lambda: torch.fft.rfft(x().float())
            yield f"stft.{name}", lambda: torch.stft(x().float()[:20], 400, 160, window=torch.hann_window(400, device=D), return_complex=True)
            yield f"weight_norm.{name}", lambda: torch._weight_norm(x(), rand(rows, 1, dtype=t, grad=True), 0)
            yield f"einsum.{name}", lambda: torch.einsum("ij,kj->ik", x()[:1000], x()[:1000])
            yield f"sparse_mm.{name}", lambda: torch.sparse.mm((x(False).float() * (x(False) > 2)).to_sparse(), rand(columns, 16))
            yield f"sparse_csr_mm.{name}", lambda: (x(False).float() * (x(False) > 2)).to_sparse_csr() @ rand(columns, 16)


def clip(x):
    (x * 2).sum().backward()
    torch.nn.utils.clip_grad_norm_([x], 1.0)


def products():
    for t in (torch.float32, torch.float16, HALF, torch.float64):
        for m, n, k in ((1, 4096, 4096), (7, 1000, 333), (128, 128, 65536), (512, 512, 512), (4096, 11008, 4096), (4096, 50257, 768), (33, 2, 100000)):
            name = f"{m}x{n}x{k}.{str(t)[6:]}"
            a, b = lambda: rand(m, k, dtype=t, grad=True), lambda: rand(n, k, dtype=t, grad=True)  # noqa: E731
            if t == torch.float64 and m * n > 1 << 24:
                continue
            yield f"linear.{name}", lambda: F.linear(a(), b(), rand(n, dtype=t, grad=True))
            yield f"linear_plain.{name}", lambda: F.linear(a(), b())
            yield f"linear3.{name}", lambda: F.linear(a()[None].expand(2, -1, -1), b(), rand(n, dtype=t, grad=True))
            yield f"mm.{name}", lambda: a() @ b().t()
            yield f"addmm.{name}", lambda: torch.addmm(rand(m, n, dtype=t), a(), b().t())
        for b, m, n, k in ((12, 128, 128, 64), (96, 1024, 1024, 64), (3, 1, 50, 2000)):
            name = f"{b}x{m}x{n}x{k}.{str(t)[6:]}"
            yield f"bmm.{name}", lambda: torch.bmm(rand(b, m, k, dtype=t, grad=True), rand(b, k, n, dtype=t, grad=True))
            yield f"baddbmm.{name}", lambda: torch.baddbmm(rand(b, m, n, dtype=t), rand(b, m, k, dtype=t, grad=True), rand(b, k, n, dtype=t, grad=True))
            yield f"matmul_broadcast.{name}", lambda: rand(b, m, k, dtype=t, grad=True) @ rand(k, n, dtype=t, grad=True)
    yield "int_mm", lambda: torch._int_mm(torch.ones(64, 256, dtype=torch.int8, device=D), torch.ones(256, 128, dtype=torch.int8, device=D))
    e4 = torch.float8_e4m3fn
    for m, n, k in ((16, 16, 16), (512, 1024, 2048), (4096, 4096, 4096)):
        yield f"scaled_mm.{m}x{n}x{k}", lambda: torch._scaled_mm(rand(m, k).to(e4), rand(n, k).to(e4).t(), torch.ones((), device=D), torch.ones((), device=D), out_dtype=HALF)
        yield f"scaled_mm_rows.{m}x{n}x{k}", lambda: torch._scaled_mm(rand(m, k).to(e4), rand(n, k).to(e4).t(), torch.ones(m, 1, device=D), torch.ones(1, n, device=D), out_dtype=HALF)
    yield "grouped_mm", lambda: torch._grouped_mm(rand(512, 256, dtype=HALF, grad=True), rand(4, 256, 512, dtype=HALF, grad=True), offs=torch.tensor([100, 200, 400, 512], dtype=torch.int32).to(D))


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH, "cudnn": SDPBackend.CUDNN_ATTENTION}
    for b, h, kv, q, s, d in ((2, 8, 8, 512, 512, 64), (1, 32, 8, 2048, 2048, 128), (4, 12, 12, 197, 197, 64), (3, 5, 5, 77, 1000, 40), (8, 16, 16, 1, 3000, 128), (1, 4, 4, 333, 333, 256), (2, 8, 8, 4096, 4096, 80)):
        for t in (torch.float16, HALF, torch.float32):
            for backend, kind in backends.items():
                for causal in (False, True):
                    def call(**more):
                        x = [rand(b, n, length, d, dtype=t, grad=True) for n, length in ((h, q), (kv, s), (kv, s))]
                        with sdpa_kernel(kind):
                            return F.scaled_dot_product_attention(*x, is_causal=causal and q == s, enable_gqa=kv != h, **more)
                    name = f"{b}x{h}.{kv}x{q}.{s}x{d}.{str(t)[6:]}.{backend}{'.causal' if causal else ''}"
                    yield "sdpa." + name, call
                    yield "sdpa_dropout." + name, lambda: call(dropout_p=0.1)
                    if not causal and h == kv:
                        yield "sdpa_mask." + name, lambda: call(attn_mask=torch.zeros(q, s, device=D, dtype=t))
                        yield "sdpa_mask_grad." + name, lambda: call(attn_mask=rand(b, h, q, s, dtype=t, grad=True))


def images():
    for n, c, h, w in ((2, 3, 32, 32), (8, 64, 56, 56), (4, 16, 127, 65), (1, 512, 7, 7), (2, 128, 200, 304)):
        for t in (torch.float32, HALF):
            for last in (False, True):
                def x(grad=True):
                    y = torch.randn(n, c, h, w).to(t).to(D)
                    return (y.contiguous(memory_format=torch.channels_last) if last else y).requires_grad_(grad)
                name = f"{n}x{c}x{h}x{w}.{str(t)[6:]}{'.last' if last else ''}"
                affine = lambda: [rand(c, dtype=t, grad=True) for _ in range(2)]  # noqa: E731
                yield f"batch_norm.{name}", lambda: F.batch_norm(x(), None, None, *affine(), training=True)
                yield f"batch_norm_float.{name}", lambda: F.batch_norm(x(), torch.zeros(c, device=D), torch.ones(c, device=D), rand(c, grad=True), rand(c, grad=True), training=True)
                yield f"batch_norm_eval.{name}", lambda: F.batch_norm(x(), torch.zeros(c, device=D), torch.ones(c, device=D), rand(c, grad=True), rand(c, grad=True))
                yield f"group_norm.{name}", lambda: F.group_norm(x(), c if c == 3 else 8, *affine())
                yield f"instance_norm.{name}", lambda: F.instance_norm(x(), weight=rand(c, dtype=t, grad=True), bias=rand(c, dtype=t, grad=True))
                yield f"layer_norm.{name}", lambda: F.layer_norm(x(), (c, h, w))
                yield f"lrn.{name}", lambda: F.local_response_norm(x(), 3)
                yield f"max_pool.{name}", lambda: F.max_pool2d(x(), 3, 2, 1)
                yield f"avg_pool.{name}", lambda: F.avg_pool2d(x(), 2)
                yield f"adaptive_avg.{name}", lambda: F.adaptive_avg_pool2d(x(), 5)
                yield f"adaptive_max.{name}", lambda: F.adaptive_max_pool2d(x(), 5)
                yield f"global_avg.{name}", lambda: F.adaptive_avg_pool2d(x(), 1)
                yield f"lp_pool.{name}", lambda: F.lp_pool2d(x(), 2, 2)
                yield f"fractional.{name}", lambda: F.fractional_max_pool2d(x(), 2, output_ratio=0.5)
                for mode in ("nearest", "bilinear", "bicubic", "area"):
                    yield f"interpolate.{mode}.{name}", lambda: F.interpolate(x(), scale_factor=2, mode=mode)
                yield f"interpolate.antialias.{name}", lambda: F.interpolate(x(), size=(20, 24), mode="bilinear", antialias=True)
                for pad in ("reflect", "replicate", "circular", "constant"):
                    yield f"pad.{pad}.{name}", lambda: F.pad(x(), (2, 2, 1, 1), mode=pad)
                for mode in ("bilinear", "nearest", "bicubic"):
                    yield f"grid_sample.{mode}.{name}", lambda: F.grid_sample(x(), torch.rand(n, 20, 30, 2).to(t).to(D).requires_grad_(), mode=mode, align_corners=False)
                yield f"affine_grid.{name}", lambda: F.affine_grid(rand(n, 2, 3, dtype=t, grad=True), (n, c, h, w), align_corners=False)
                yield f"unfold.{name}", lambda: F.unfold(x(), 3, padding=1)
                yield f"fold.{name}", lambda: F.fold(F.unfold(x(), 3, padding=1), (h, w), 3, padding=1)
                yield f"pixel_shuffle.{name}", lambda: F.pixel_unshuffle(x()[:, :, :h // 2 * 2, :w // 2 * 2], 2)
                yield f"channel_shuffle.{name}", lambda: torch.channel_shuffle(x(), c if c == 3 else 4)
                yield f"cross_entropy.{name}", lambda: F.cross_entropy(x(), ints(c, n, h, w))
                yield f"dropout2d.{name}", lambda: F.dropout2d(x(), 0.2)
                yield f"softmax.{name}", lambda: x().softmax(1)
                yield f"bilinear_add.{name}", lambda: x() * rand(n, c, 1, 1, dtype=t, grad=True)
                yield f"mean.{name}", lambda: x().mean((2, 3))
                yield f"sum_channels.{name}", lambda: x().sum(1)
                yield f"to_last.{name}", lambda: x().to(memory_format=torch.contiguous_format if last else torch.channels_last)


def decompositions():
    for b, n in ((1, 5), (1, 100), (1, 1000), (8, 3), (7, 64), (2, 300), (1000, 4)):
        for t in (torch.float32, torch.float64, torch.complex64):
            a = lambda: torch.randn(b, n, n, dtype=t).to(D).requires_grad_()  # noqa: E731
            spd = lambda: (lambda x: x @ x.mH + n * torch.eye(n, device=D, dtype=t))(a())  # noqa: E731
            name = f"{b}x{n}.{str(t)[6:]}"
            la = torch.linalg
            yield f"inv.{name}", lambda: la.inv(spd())
            yield f"solve.{name}", lambda: la.solve(spd(), a())
            yield f"solve_vector.{name}", lambda: la.solve(spd(), a()[..., :1])
            yield f"det.{name}", lambda: la.det(spd())
            yield f"slogdet.{name}", lambda: la.slogdet(spd())
            yield f"cholesky.{name}", lambda: la.cholesky(spd())
            yield f"cholesky_solve.{name}", lambda: torch.cholesky_solve(a(), la.cholesky(spd()))
            yield f"cholesky_inverse.{name}", lambda: torch.cholesky_inverse(la.cholesky(spd()))
            yield f"triangular.{name}", lambda: la.solve_triangular(spd().tril(), a(), upper=False)
            yield f"qr.{name}", lambda: la.qr(a())
            yield f"svd.{name}", lambda: la.svd(a())[1]
            yield f"svdvals.{name}", lambda: la.svdvals(a())
            yield f"eigh.{name}", lambda: la.eigh(spd())[0]
            yield f"eigvalsh.{name}", lambda: la.eigvalsh(spd())
            yield f"lu.{name}", lambda: la.lu(a())
            yield f"lu_factor.{name}", lambda: la.lu_factor(a())
            yield f"pinv.{name}", lambda: la.pinv(a())
            yield f"lstsq.{name}", lambda: la.lstsq(a().detach(), a().detach())[0]
            yield f"matrix_rank.{name}", lambda: la.matrix_rank(a().detach())
            yield f"matrix_exp.{name}", lambda: la.matrix_exp(a() / n)
            yield f"matrix_power.{name}", lambda: la.matrix_power(a() / n, 5)
            yield f"householder.{name}", lambda: la.householder_product(*torch.geqrf(a().detach()))
            if n <= 300:
                yield f"eig.{name}", lambda: la.eig(a().detach())[0]


def recurrences():
    import torch.nn as nn
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for t in (torch.float32, HALF):
            for layers, hidden, both, drop in ((1, 128, False, 0.0), (2, 256, True, 0.2), (3, 650, False, 0.5), (1, 33, True, 0.0)):
                for length, batch in ((1, 4), (35, 20), (200, 3)):
                    def call(training=True, first=False):
                        torch.manual_seed(1)
                        net = kind(hidden, hidden, layers, bidirectional=both, dropout=drop, batch_first=first).to(D, t).train(training)
                        return net(rand(length, batch, hidden, dtype=t, grad=training))[0]
                    name = f"{kind.__name__}.{layers}x{hidden}{'x2' if both else ''}.{length}x{batch}.{str(t)[6:]}"
                    yield name, call
                    yield name + ".first", lambda: call(first=True)
                    yield name + ".eval", lambda: (torch.no_grad()(call))(False)
        yield kind.__name__ + "Cell", lambda: getattr(nn, kind.__name__ + "Cell")(64, 128).to(D)(rand(10, 64))
    for n, classes, length, target in ((4, 30, 50, 10), (32, 1000, 300, 40)):
        yield f"ctc.{n}x{classes}x{length}", lambda: F.ctc_loss(rand(length, n, classes, grad=True).log_softmax(2), torch.randint(1, classes, (n, target)), torch.full((n,), length), torch.full((n,), target))
        yield f"ctc_device.{n}x{classes}x{length}", lambda: F.ctc_loss(rand(length, n, classes, grad=True).log_softmax(2), torch.randint(1, classes, (n, target)).to(D), torch.full((n,), length).to(D), torch.full((n,), target).to(D))
        yield f"ctc_int.{n}x{classes}x{length}", lambda: F.ctc_loss(rand(length, n, classes, grad=True).log_softmax(2), torch.randint(1, classes, (n * target,), dtype=torch.int32), torch.full((n,), length, dtype=torch.int32), torch.full((n,), target, dtype=torch.int32))
    yield "transformer_encoder", lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).to(D)(rand(4, 20, 64))
    yield "transformer_encoder_eval", lambda: torch.no_grad()(torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).to(D).eval())(rand(4, 20, 64))
    yield "transformer_encoder_eval_mask", lambda: torch.no_grad()(torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).to(D).eval())(rand(4, 20, 64), src_key_padding_mask=(torch.arange(20)[None] > torch.tensor([5, 19, 10, 19])[:, None]).to(D))
    yield "multihead", lambda: torch.nn.MultiheadAttention(256, 8, batch_first=True).to(D)(*[rand(4, 100, 256)] * 3)
    yield "multihead_fast", lambda: torch.no_grad()(torch.nn.MultiheadAttention(256, 8, batch_first=True).to(D).eval())(*[rand(4, 100, 256)] * 3)
    yield "multihead_plain", lambda: torch.nn.MultiheadAttention(256, 8, batch_first=True).to(D)(*[rand(4, 100, 256)] * 3, need_weights=False)


def optimizers():
    o = torch.optim
    kinds = {"SGD": (o.SGD, dict(lr=.1)), "momentum": (o.SGD, dict(lr=.1, momentum=.9, nesterov=True)), "Adam": (o.Adam, {}), "AdamW": (o.AdamW, {}), "amsgrad": (o.Adam, dict(amsgrad=True)), "Adamax": (o.Adamax, {}), "NAdam": (o.NAdam, {}), "RAdam": (o.RAdam, {}), "Adagrad": (o.Adagrad, {}), "Adadelta": (o.Adadelta, {}), "RMSprop": (o.RMSprop, dict(centered=True, momentum=.9)), "Rprop": (o.Rprop, {}), "ASGD": (o.ASGD, {}), "Adafactor": (o.Adafactor, {}), "Muon": (getattr(o, "Muon", None), {})}
    for name, (kind, options) in kinds.items():
        for how in ({}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"capturable": True}, {"maximize": True, "weight_decay": .1}):
            for t in (torch.float32, HALF):
                for clipped in (False, True):
                    def call():
                        p = [rand(a, b, dtype=t, grad=True) for a, b in ((1000, 300), (7, 13), (300, 300), (50, 1))]
                        opt = kind(p, **options, **how)
                        for _ in range(2):
                            for q in p:
                                q.grad = torch.ones_like(q)
                            if clipped:
                                torch.nn.utils.clip_grad_norm_(p, 1.0)
                            opt.step()
                            opt.zero_grad()
                    yield f"{name}.{'_'.join(f'{k}{v}' for k, v in how.items())}.{str(t)[6:]}{'.clip' if clipped else ''}", call


SIZED = {f.__name__: f for f in (lines, tables, products, attention, images, decompositions, recurrences, optimizers)}


def warm():
    """What libraries take once."""
    for t in (torch.float32, HALF):
        F.linear(rand(8, 8, dtype=t, grad=True), rand(8, 8, dtype=t, grad=True), rand(8, dtype=t, grad=True)).sum().backward()
        F.conv2d(rand(1, 8, 8, 8, dtype=t, grad=True), rand(8, 8, 3, 3, dtype=t, grad=True)).sum().backward()


def calls():
    for name, dtype, op, grad in of_op_db():
        yield ("op_db", name, str(dtype)[6:]), lambda: [(i, lambda: op(s.input, *s.args, **s.kwargs)) for i, s in samples(op, dtype, grad)]
    for group, some in SIZED.items():
        for name, call in some():
            yield (group, name, ""), lambda: [(0, call)]


def main(out, part=0, parts=1, *groups):
    warnings.simplefilter("ignore")
    warm()
    gc.freeze()  # a collection looks at what came later only
    with open(out, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(("source", "operator", "type", "sample", "requests", "requested_bytes", "peak_bytes"))
        for number, (head, some) in enumerate(calls()):
            if int(number) % int(parts) != int(part) or groups and head[0] not in groups:
                continue
            try:
                todo = some()
            except Exception as e:
                w.writerow((*head, "", "no samples: " + type(e).__name__, "", ""))
                continue
            for i, call in todo:
                torch.manual_seed(number * 16 + i)
                w.writerow((*head, i, *measure(call)))
            f.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
