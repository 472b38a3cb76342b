# SPDX-License-Identifier: Apache-2.0
"""What calls of PyTorch and NCCL take of the address space: holes are made (segments of 36, 50 and 40 MiB, each in steps of 32), the calls run, then
segments of 2 MiB are asked for until none of the holes is left; those that are not given are taken.

    holes.py CALL...        fill, uniform, mm, conv, sdpa, ... on one card; init, lazy, ar, ag, rs, bc, p2p, ... with RANK and WORLD_SIZE
"""
import ctypes, os, sys
import torch, torch.distributed as dist, torch.nn.functional as F

M = 1 << 20
rank = int(os.environ.get("RANK", 0))
torch.cuda.set_device(rank)
x, big = torch.empty(1 << 18, device="cuda"), torch.empty(2 << 18, device="cuda")
y, h = torch.empty(128, 128, device="cuda"), torch.empty(128, 128, device="cuda", dtype=torch.bfloat16)
runtime = ctypes.CDLL(next(l.split()[-1] for l in open("/proc/self/maps") if "libcudart.so" in l))


def malloc(size):
    p = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) == 0
    return p.value


def images(*shape):
    return torch.empty(*shape, device="cuda", dtype=torch.bfloat16)


calls = dict(
    fill=lambda: x.fill_(1.0), uniform=lambda: x.uniform_(), mm=lambda: y @ y, mmb=lambda: h @ h, gelu=lambda: F.gelu(y), sum=lambda: y.sum(),
    conv=lambda: F.conv2d(images(4, 16, 32, 32), images(16, 16, 3, 3), padding=1), softmax=lambda: y.softmax(-1), cat=lambda: torch.cat([y, y]),
    sdpa=lambda: F.scaled_dot_product_attention(*[images(2, 4, 128, 64)] * 3, is_causal=True),
    init=lambda: dist.init_process_group("nccl", device_id=torch.device("cuda", rank)), lazy=lambda: dist.init_process_group("nccl"),
    ar=lambda: dist.all_reduce(x), bc=lambda: dist.broadcast(x, 0), ag=lambda: dist.all_gather_into_tensor(big, x),
    rs=lambda: dist.reduce_scatter_tensor(x, big), p2p=lambda: dist.send(x, 1) if rank == 0 else dist.recv(x, 0),
    p2pb=lambda: dist.send(x, 0) if rank == 1 else dist.recv(x, 1), sub=lambda: dist.all_reduce(x, group=dist.new_group([0, 1])),
)
chunks = [(malloc(b * M), b) for b in [36] * 12 + [50] * 4 + [40] * 4]
for name in sys.argv[1:]:
    calls[name]()
torch.cuda.synchronize()
got = [malloc(2 * M) for _ in range(330)]
print("+".join(sys.argv[1:]), "rank", rank)
for a, b in chunks:
    print("  %x+%d" % (a, b), "".join("." if a + k * M in got else "#" for k in range(b, (b + 31) // 32 * 32, 2)))
runs = []
for g in sorted(g for g in got if not any(a <= g < a + (b + 31) // 32 * 32 * M for a, b in chunks)):
    if runs and runs[-1][1] == g:
        runs[-1][1] = g + 2 * M
    else:
        runs.append([g, g + 2 * M])
print("  elsewhere, MiB:", " ".join("%x+%d" % (a, (b - a) // M) for a, b in runs))
