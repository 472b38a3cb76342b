# SPDX-License-Identifier: Apache-2.0
"""Eight bits: _scaled_mm by tensor and by row, in a linear layer with its own backward pass; _int_mm with dynamic scales; packed four-bit weights."""
import torch
import torch.nn as nn

F8, F8G = torch.float8_e4m3fn, torch.float8_e5m2


def quantised(x, kind, dim=None):
    peak = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    scale = (peak.float() / torch.finfo(kind).max).clamp(min=1e-12)
    return (x / scale).clamp(torch.finfo(kind).min, torch.finfo(kind).max).to(kind), scale


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, rows):
        flat = x.reshape(-1, x.shape[-1])
        qx, sx = quantised(flat, F8, 1 if rows else None)
        qw, sw = quantised(w, F8, 1 if rows else None)
        ctx.save_for_backward(flat, w)
        ctx.rows, ctx.shape = rows, x.shape
        y = torch._scaled_mm(qx, qw.t(), scale_a=sx, scale_b=sw.t() if rows else sw, out_dtype=torch.bfloat16, use_fast_accum=True)
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        flat = g.reshape(-1, g.shape[-1]).contiguous()
        qg, sg = quantised(flat, F8G)
        qw, sw = quantised(w.t().contiguous(), F8)
        gx = torch._scaled_mm(qg, qw.t(), scale_a=sg, scale_b=sw, out_dtype=torch.bfloat16)
        qt, st = quantised(flat.t().contiguous(), F8G)
        qx, sx = quantised(x.t().contiguous(), F8)
        gw = torch._scaled_mm(qt, qx.t(), scale_a=st, scale_b=sx, out_dtype=torch.bfloat16)
        return gx.view(ctx.shape), gw, None


class Linear8(nn.Linear):
    rows = False

    def forward(self, x):
        return Product.apply(x, self.weight, self.rows)


class Block(nn.Module):
    def __init__(self, n, rows):
        super().__init__()
        self.norm, self.up, self.down = nn.RMSNorm(n), Linear8(n, 4 * n, bias=False), Linear8(4 * n, n, bias=False)
        self.up.rows = self.down.rows = rows

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*[Block(2048, i % 2 == 1) for i in range(4)]).cuda().bfloat16()
    o = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    for _ in range(3):
        x = torch.randn(8, 1024, 2048, device="cuda", dtype=torch.bfloat16)
        net(x).float().square().mean().backward()
        o.step()
        o.zero_grad()
    del x
    with torch.no_grad():
        for rows, inner, out in ((512, 4096, 11008), (4096, 4096, 4096), (17, 4096, 11008)):
            a, b = torch.randn(rows, inner, device="cuda", dtype=torch.half), torch.randn(out, inner, device="cuda", dtype=torch.half)
            sa, sb = a.abs().amax(1, keepdim=True) / 127, b.abs().amax(1, keepdim=True) / 127
            qa, qb = (a / sa).round().to(torch.int8), (b / sb).round().to(torch.int8)
            y = torch._int_mm(qa if rows > 17 else nn.functional.pad(qa, (0, 0, 0, 15)), qb.t())
            (y[:rows].float() * sa.float() * sb.float().t()).half()
        w = torch.randint(0, 255, (4096, 2048), device="cuda", dtype=torch.uint8)
        packed = torch._convert_weight_to_int4pack(w, 8)
        zeros = torch.randn(4096 // 128, 4096, 2, device="cuda", dtype=torch.bfloat16)
        torch._weight_int4pack_mm(torch.randn(64, 4096, device="cuda", dtype=torch.bfloat16), packed, 128, zeros)
        cache = torch.zeros(32, 2, 4096, 8, 128, device="cuda", dtype=F8)
        for t in range(0, 4096, 512):
            k = torch.randn(32, 512, 8, 128, device="cuda", dtype=torch.bfloat16)
            cache[:, 0, t:t + 512] = k.to(F8)
            cache[:, 0, :t + 512].to(torch.bfloat16).mean(1)


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
