"""Inductor measures its kernels in a first run on a card, and finds the results in a second."""
import time

begin = time.process_time()
import torch  # noqa: E402
load_s = time.process_time() - begin
from torch._inductor.runtime import triton_heuristics  # noqa: E402

# needs: from torch._inductor.async_compile import AsyncCompile as a; a._ready_future
# python:
#   said = {}
#   for way in "", "", "--warm-caches", "--warm-caches":
#       said.setdefault(way, []).append(re.search("^measured .*", run("record " + way), re.M)[0])
#   assert said[""][0].startswith("measured 1 2 2 ") and said[""][0] == said[""][1], said
#   assert said["--warm-caches"][0].startswith("measured 1 2 2 ") and said["--warm-caches"][1].startswith("measured 0 0 0 "), said
measure, count = triton_heuristics.CachingAutotuner.benchmark_all_configs, 0

def benchmark_all_configs(*args, **kwargs):
    global count
    count += 1
    return measure(*args, **kwargs)

def one(x, b, w):
    return torch.nn.functional.gelu(x + b)

def two(x, b, w):
    return torch.nn.functional.gelu(x + b), w @ w

def three(x, b, w):
    return torch.nn.functional.gelu(x + b), w @ w @ w

triton_heuristics.CachingAutotuner.benchmark_all_configs = benchmark_all_configs
x, b, w = (torch.randn(*shape, device="cuda") for shape in ((1 << 16, 128), (128,), (128, 128)))
counts = []
for f in one, two, three:
    if f is three:
        begin = time.thread_time()
        while time.thread_time() - begin < 5 * load_s:
            pass
    torch.compile(f)(x, b, w)
    counts.append(count)
print("measured", *counts, torch.cuda.memory_stats()["allocation.all.allocated"])
