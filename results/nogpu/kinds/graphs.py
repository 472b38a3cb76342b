# SPDX-License-Identifier: Apache-2.0
"""Captured graphs: side streams that fork and join, several sizes in one pool, whole training steps, make_graphed_callables, a capture that fails."""
import torch
import torch.nn as nn


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(6)]).cuda().bfloat16()
    side, other = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    pool, kept = None, []
    for n in (4096, 2048, 1024, 512):
        x = torch.zeros(n, 1024, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            warm = torch.cuda.Stream()
            warm.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(warm):
                net(x)
            torch.cuda.current_stream().wait_stream(warm)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=pool):
                here = torch.cuda.current_stream()
                side.wait_stream(here)
                with torch.cuda.stream(side):
                    a = net[:3](x)
                other.wait_stream(here)
                with torch.cuda.stream(other):
                    b = net[3:](x).float()
                    b.record_stream(here)
                here.wait_stream(side)
                here.wait_stream(other)
                y = (a + b).softmax(-1)
        pool = g.pool()
        kept.append((g, x, y))
    for g, x, y in kept:
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            g.replay()
        y.sum().item()
    # a whole training step
    model = nn.Sequential(nn.Embedding(8000, 512), nn.TransformerEncoderLayer(512, 8, 2048, 0.1, batch_first=True), nn.Linear(512, 8000)).cuda()
    o = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True, foreach=True)
    tokens = torch.zeros(16, 256, dtype=torch.long, device="cuda")
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            o.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
            o.step()
    torch.cuda.current_stream().wait_stream(s)
    step = torch.cuda.CUDAGraph()
    o.zero_grad(set_to_none=True)
    with torch.cuda.graph(step):
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        o.step()
    for _ in range(5):
        tokens.random_(0, 8000)
        step.replay()
    loss.item()
    # parts of a network
    first, second = nn.Sequential(nn.Linear(512, 2048), nn.ReLU()).cuda(), nn.Linear(2048, 512).cuda()
    sample = torch.randn(4096, 512, device="cuda", requires_grad=True)
    middle = torch.randn(4096, 2048, device="cuda", requires_grad=True)
    first, second = torch.cuda.make_graphed_callables((first, second), ((sample,), (middle,)))
    for _ in range(3):
        second(first(torch.randn(4096, 512, device="cuda", requires_grad=True))).square().mean().backward()
    bad = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(bad):
            loss.item()
    except RuntimeError as error:
        print("refused", type(error).__name__)
    torch.cuda.synchronize()
    del step, kept, g, x, y
    torch.cuda.empty_cache()
    torch.empty(64 << 20, device="cuda").sort()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
