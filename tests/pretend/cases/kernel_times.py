"""Kernels last about as long as on an H200 (results/pretend/durations.md)."""
from support.small import cuda, F, torch

# case: h200
# run: record --gpu h200
# match: ^lasting .* True$

# odd columns take longer than even ones, and those longer than multiples of eight
# case: columns
# run: record
# expect: time True True True True
half, flag = dict(device="cuda", dtype=torch.bfloat16), dict(device="cuda", dtype=torch.bool)

def lasts(f):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    f()
    end.record()
    return begin.elapsed_time(end) * 1000

a, b, scores = torch.empty(8192, 1024, **half), torch.empty(1024, 4096, **half), torch.empty(8, 16, 1024, 1024, **half)
x, one, mask = cuda.empty(4, 2048, 2048), cuda.empty(4, 2048, 1), torch.empty(1024, 1024, **flag)
wide, c, d = (cuda.empty(*shape) for shape in ((4, 2048, 1024), (1024, 4096), (4096, 1024)))
hidden = torch.empty(4, 1500, 8192, **half)
q, k, v = (torch.empty(4, 20, 1500, 64, **half) for _ in range(3))
card = [(lambda: a @ b, 98.5), (lambda: scores.masked_fill_(mask, 0), 368), (lambda: torch.softmax(scores, -1), 285),
        (lambda: x * one, 53.7), (lambda: x + x, 46.6), (lambda: F.gelu(hidden), 65.9), (lambda: F.layer_norm(wide, (1024,)), 28.4),
        (lambda: c @ d, 215), (lambda: F.scaled_dot_product_attention(q, k, v), 136)]
shares = [lasts(f) / us for f, us in card]
print("lasting", " ".join("%.2f" % s for s in shares), all(0.75 < s < 1.3 for s in shares))
left = cuda.empty(2048, 512, dtype=torch.half)
right = {n: cuda.empty(512, n, dtype=torch.half) for n in (30521, 30522, 30528)}
odd, even, round_ = (lasts(lambda: left @ right[n]) for n in right)
padded = lasts(lambda: left @ F.pad(right[30521], (0, 7)))
print("time", odd > 4 * round_, odd > even > 1.5 * round_, round_ < padded < even, round_ > 0)
