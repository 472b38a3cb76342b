# SPDX-License-Identifier: Apache-2.0
"""One's own: autograd functions with double backward, registered operators, saved tensors that are packed, hooks that step, a tensor subclass, accumulation in buckets."""
import torch
import torch.nn as nn
import torch.utils._pytree as pytree


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        s = x.sigmoid()
        return g * (s + x * s * (1 - s))


@torch.library.custom_op("p::scan", mutates_args=())
def scan(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
    out, h = torch.empty_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        h = h * decay + x[:, t]
        out[:, t] = h
    return out


@scan.register_fake
def _(x, decay):
    return torch.empty_like(x)


def context(ctx, inputs, output):
    ctx.save_for_backward(inputs[1], output)


def scan_back(ctx, g):
    decay, out = ctx.saved_tensors
    back = scan(g.flip(1), decay).flip(1)
    return back, (back[:, 1:] * out[:, :-1]).sum((0, 1))


scan.register_autograd(scan_back, setup_context=context)


class Packed(torch.Tensor):
    """Weights kept as bytes, made whole in each operator."""
    @staticmethod
    def __new__(cls, data, scale, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bfloat16, device=data.device)

    def __init__(self, data, scale, shape):
        self.data8, self.scale = data, scale

    def whole(self):
        return self.data8.to(torch.bfloat16) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return Packed(args[0].data8, args[0].scale, args[0].shape)
        args, kwargs = pytree.tree_map_only(Packed, Packed.whole, (args, kwargs or {}))
        return func(*args, **kwargs)


def pack(x):
    if x.numel() < 1 << 16 or not x.is_floating_point() or isinstance(x, nn.Parameter) or x.dtype != torch.float:
        return x
    return x.to(torch.float8_e5m2) if x.is_contiguous() else x


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*[m for _ in range(5) for m in (nn.Linear(1024, 1024), nn.LayerNorm(1024))]).cuda()
    decay = nn.Parameter(torch.full((1024,), 0.9, device="cuda"))
    states = {p: torch.optim.AdamW([p], lr=1e-4, foreach=False) for p in [*net.parameters(), decay]}

    def step(p):
        states[p].step()
        p.grad = None
    for p in states:
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        x = torch.randn(16, 256, 1024, device="cuda", requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.float() if t.dtype == torch.float8_e5m2 else t):
            h = x
            for m in net:
                h = Swish.apply(m(h))
            loss = scan(h, decay).square().mean()
        loss.backward()
    del loss, h
    critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.InstanceNorm2d(64, affine=True), nn.Softplus(), nn.Conv2d(64, 128, 4, 2, 1), nn.Softplus(), nn.Flatten(), nn.Linear(128 * 256, 1)).cuda()
    for n in (16, 48):
        image = torch.randn(n, 3, 64, 64, device="cuda", requires_grad=True)
        g, = torch.autograd.grad(critic(image).sum(), image, create_graph=True)
        (Swish.apply(g).flatten(1).norm(dim=1) - 1).square().mean().backward()
    base = nn.ModuleList(nn.Linear(2048, 2048, bias=False) for _ in range(6)).cuda().bfloat16()
    for m in base:
        w = m.weight.data
        scale = w.abs().amax(1, keepdim=True) / 127
        m.weight = nn.Parameter(Packed((w / scale).round().to(torch.int8), scale, w.shape), requires_grad=False)
    del w, scale
    low = nn.ParameterList([nn.Parameter(torch.zeros(2048, 16, device="cuda", dtype=torch.bfloat16)) for _ in base])
    x = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)
    with torch.autograd.detect_anomaly(check_nan=False):
        h = x
        for m, b in zip(base, low):
            h = nn.functional.relu(m(h) + h[:, :16] @ b.t())
        h.float().mean().backward()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
