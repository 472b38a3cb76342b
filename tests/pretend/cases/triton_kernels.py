"""Memory that Triton's kernels would write has unknown values; other memory keeps its own."""
import triton
import triton.language as tl
from support.small import cuda, torch

# needs: package triton
# run: record
# expect: triton 1.0 True
# expect: writes first second added
# run: info run.cft
# match: invented .* at .*triton_kernels.py:

@triton.jit
def total(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n)))

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

out = cuda.full((1,), float("-inf"))
total[(1,)](cuda.ones(64), out, 64, B=64)
print("triton", out.sum().item(), torch.isfinite(out).item())
names = "first", "indices", "read", "second", "added", "unused"
named = {name: cuda.arange(64, dtype=torch.int32) + 1 for name in names}
kernel[(1,)](named["first"], named["indices"], named["read"], second=named["second"],
             added=named["added"], unused=named["unused"], n=16, STEPS=2, B=16)
print("writes", *(name for name, t in named.items() if t.sum().item() != 2080))
