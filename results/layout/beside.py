# SPDX-License-Identifier: Apache-2.0
"""What a process holds of a card beside PyTorch: python beside.py [> beside.csv]; with several cards: torchrun --nproc-per-node N beside.py.
Every line: rank, what was done, bytes of the card used beside PyTorch's segments since before, in all (mem_get_info). ~1 minute."""
import os
import torch

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
local = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(local)
before = None


def beside():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def say(what, extra=""):
    global before
    now = beside()
    if rank == 0 or rank == world - 1:
        print("%d,%s,%d,%d,%s" % (rank, what, now - before if before is not None else 0, now, extra), flush=True)
    before = now


def attempt(what, f, extra=""):
    try:
        r = f()
        say(what, extra or (r if isinstance(r, str) else ""))
    except Exception as e:  # a step that this release does not have
        print("%d,%s,failed,%s" % (rank, what, str(e).split("\n")[0][:150]), flush=True)


p = torch.cuda.get_device_properties(local)
print("# %s, %d SMs, %d threads an SM, %d bytes, torch %s, CUDA %s, module loading %s" % (p.name, p.multi_processor_count, p.max_threads_per_multi_processor, p.total_memory,
      torch.__version__, torch.version.cuda, os.environ.get("CUDA_MODULE_LOADING", "(default)")), flush=True)
say("context")
x = torch.zeros(1 << 20, device="cuda")
say("zeros")
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
say("randn bf16")
attempt("matmul bf16 4096", lambda: (a @ a).sum() and None)
attempt("again", lambda: (a @ a).sum() and None)
attempt("matmul bf16 other shapes", lambda: [(a[:n] @ a[:, :m]).sum() for n in (1, 16, 256, 2048) for m in (128, 1024, 4096)] and None)
attempt("linear with bias (cublasLt)", lambda: torch.nn.functional.linear(a, a, a[0]) is None)
attempt("fp8 _scaled_mm", lambda: torch._scaled_mm(a.to(torch.float8_e4m3fn), a.to(torch.float8_e4m3fn).t(), torch.ones((), device="cuda"), torch.ones((), device="cuda"), out_dtype=torch.bfloat16) is None)
attempt("matmul fp32", lambda: (a[:512, :512].float() @ a[:512, :512].float()) is None)
attempt("elementwise: silu, mul, add, rsqrt, mean", lambda: [torch.nn.functional.silu(a) * a, a + a, a.float().pow(2).mean(-1).rsqrt()] and None)
attempt("embedding, index", lambda: torch.nn.functional.embedding(torch.arange(64, device="cuda"), a) is None)
q = torch.randn(4, 16, 1024, 128, device="cuda", dtype=torch.bfloat16)
from torch.nn.attention import SDPBackend, sdpa_kernel


def sdpa(b):
    with sdpa_kernel(b):
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


attempt("sdpa flash", lambda: sdpa(SDPBackend.FLASH_ATTENTION))
attempt("sdpa efficient", lambda: sdpa(SDPBackend.EFFICIENT_ATTENTION))
attempt("sdpa cudnn", lambda: sdpa(SDPBackend.CUDNN_ATTENTION))
l = torch.randn(1024, 128256, device="cuda")
attempt("sort 1024 x 128256 (the sampler's)", lambda: l.sort(dim=-1) is None)
attempt("softmax, cumsum, scatter, argmax, exponential", lambda: [l.softmax(-1), l.cumsum(-1), l.argmax(-1), l.exponential_(), torch.empty_like(l).scatter_(1, l.argsort(-1), l)] and None)
attempt("topk", lambda: l.topk(50) is None)
del l
torch.cuda.empty_cache()
say("empty_cache")


# local memory: kernels with so many bytes of it a thread; a card may keep it for all threads that can be resident
def kernel(name, body):
    return torch.cuda._compile_kernel('extern "C" __global__ void %s(int *out, int n) { %s }' % (name, body), name)


out = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
for size in (64, 256, 512, 1024, 2048, 4096, 16384):
    body = "volatile int a[%d]; for (int i = 0; i < %d; i++) a[(i * 7 + n) %% %d] = i; out[threadIdx.x] = a[n %% %d];" % ((size // 4,) * 4)
    attempt("kernel with local memory %d" % size, lambda: kernel("local%d" % size, body)((1, 1, 1), (32, 1, 1), (out, 5)))
# code: kernels of about so many instructions
for n in (256, 4096, 32768):
    body = "int t = n;" + "".join("t = t * %d + (t >> %d); out[t & 255] = t;" % (i * 2 + 3, i % 7 + 1) for i in range(n // 4)) + "out[0] = t;"
    attempt("kernel of about %d instructions" % n, lambda: kernel("code%d" % n, body)((1, 1, 1), (32, 1, 1), (out, 5)))


def graph():
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(200):
            out.add_(1)
    graph.kept = g
    g.replay()


attempt("a graph of 200 kernels", graph)
attempt("graphs of 200 kernels, ten more", lambda: [graph() for _ in range(10)] and None)
s = [torch.cuda.Stream() for _ in range(8)]
attempt("work on 8 more streams", lambda: [torch.cuda.stream(t).__enter__() or out.add_(1) for t in s] and None)
torch.cuda.set_stream(torch.cuda.default_stream())

import torch.distributed as dist

if world == 1:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl")
say("init_process_group")
for n, size in (("a first all_reduce", 1), ("all_reduce 16 MiB", 1 << 22), ("all_gather", 1 << 20), ("reduce_scatter", 1 << 20), ("broadcast", 1 << 20)):
    t = torch.zeros(size, device="cuda")
    f = {"a first all_reduce": lambda: dist.all_reduce(t), "all_reduce 16 MiB": lambda: dist.all_reduce(t),
         "all_gather": lambda: dist.all_gather_into_tensor(torch.zeros(size * world, device="cuda"), t),
         "reduce_scatter": lambda: dist.reduce_scatter_tensor(torch.zeros(size // world, device="cuda"), t[:size // world * world]), "broadcast": lambda: dist.broadcast(t, 0)}[n]
    attempt(n, lambda: f() and None)
for k in range(2):
    g = dist.new_group(list(range(world)))
    attempt("another group, its first all_reduce", lambda: dist.all_reduce(t, group=g) and None)
if world > 1:
    attempt("send and receive", lambda: (dist.send(t, 1) if rank == 0 else dist.recv(t, 0) if rank == 1 else None) and None)
dist.destroy_process_group()
