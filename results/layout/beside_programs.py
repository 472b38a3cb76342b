# SPDX-License-Identifier: Apache-2.0
"""What small programs hold of a card beside PyTorch's segments, step by step: python beside_programs.py PROGRAM [.. more], on a card or under
cufrag record --no-gpu. Lines: program, step, MiB of the card that are used beside PyTorch's segments. Programs: the names below, and streams."""
import ctypes
import os
import sys
import threading

import torch
from torch import nn

PROGRAMS = {}
x = None


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def held(step):
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    print("%s,%s,%.2f" % (sys.argv[1], step, (total - free - torch.cuda.memory_reserved()) / 2**20), flush=True)


def train(net, inputs, optimizer, dtype=None):
    for i in range(2):
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = net(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        held("step %d" % i)


@program
def mlp():
    net = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
    train(net, x, torch.optim.AdamW(net.parameters()))


@program
def attention():
    net = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).cuda()
    train(net, torch.randn(8, 256, 512, device="cuda"), torch.optim.AdamW(net.parameters()), torch.bfloat16)


def convolutions(dtype):
    net = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
    train(net, torch.randn(32, 3, 128, 128, device="cuda"), torch.optim.SGD(net.parameters(), 0.1, momentum=.9), dtype)


@program
def conv():
    convolutions(None)


@program
def conv_bf16():
    convolutions(torch.bfloat16)


@program
def lstm():
    net = nn.LSTM(256, 512, 2).cuda()
    held("model")
    net(torch.randn(32, 16, 256, device="cuda"))[0].sum().backward()
    held("step")


@program
def sdpa():
    q = torch.randn(4, 16, 512, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    held("step")


@program
def graph():
    w, side = torch.randn(1024, 1024, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            (x @ w).relu()
    torch.cuda.current_stream().wait_stream(side)
    held("warm")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        (x @ w).relu()
    held("captured")
    g.replay()
    held("replayed")


@program
def nccl():
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    held("init")
    dist.all_reduce(x)
    held("all_reduce")
    nn.parallel.DistributedDataParallel(nn.Linear(1024, 1024).cuda())(x).sum().backward()
    held("ddp")
    dist.all_reduce(x, group=dist.new_group([0]))
    held("second group")


@program
def inference():
    net = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).cuda().eval().bfloat16()
    inputs = torch.randn(8, 256, 512, device="cuda").bfloat16()
    with torch.inference_mode():
        torch.topk(torch.softmax(net(inputs).float(), -1), 5)
    held("step")


@program
def linalg():
    a = x[:256, :256] @ x[:256, :256].T + torch.eye(256, device="cuda") * 300
    for name, f in (("svd", torch.linalg.svd), ("cholesky", torch.linalg.cholesky), ("fft", torch.fft.fft2), ("sort", torch.sort)):
        f(a)
        held(name)


@program
def compiled():
    torch.compile(lambda a: (a @ a).relu().sum())(x)
    held("step")


@program
def threads():
    x @ x
    held("one thread")
    for _ in range(2):  # one after the other: the second takes the handle of the first
        t = threading.Thread(target=lambda: x @ x)
        t.start()
        t.join()
    held("another")


@program
def streams():
    with open("/proc/self/maps") as f:
        runtime = ctypes.CDLL([line.split()[-1] for line in f if "libcudart" in line][0])
    made = 0
    for more in (1, 1, 2, 4, 8, 16, 32, 64):
        for _ in range(more):
            runtime.cudaStreamCreateWithPriority(ctypes.byref(ctypes.c_void_p()), 1, 0)
        made += more
        held("made %d" % made)


@program
def pool():
    torch.cuda.Stream()  # PyTorch makes 128
    held("a stream of PyTorch")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        import subprocess
        for name in sys.argv[1:]:
            subprocess.run([sys.executable, sys.argv[0], name], check=True)
        sys.exit()
    torch.cuda.init()
    held("context")
    x = torch.ones(1024, 1024, device="cuda")
    held("ones")
    PROGRAMS[sys.argv[1]]()
