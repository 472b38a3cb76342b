# SPDX-License-Identifier: Apache-2.0
"""torch.func: gradients of each sample, Jacobians forward and reverse, Hessians, ensembles by vmap, linearize, functional_call."""
import torch
import torch.nn as nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 32, 3, 2), nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 64, 3, 2), nn.SiLU(), nn.Flatten(), nn.Linear(64 * 36, 256), nn.SiLU(),
                        nn.Linear(256, 10)).cuda()
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(p, x, y):
        return nn.functional.cross_entropy(functional_call(net, p, (x[None],)), y[None])
    momentum = {k: torch.zeros_like(v) for k, v in params.items()}
    for _ in range(3):  # differentially private: clip each sample's gradient
        x, y = torch.randn(256, 1, 28, 28, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
        grads, losses = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(params, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for k in params:
            g = torch.einsum("n,n...->...", scale, grads[k]) + 0.1 * torch.randn_like(params[k])
            momentum[k] = 0.9 * momentum[k] + g / 256
            params[k] = params[k] - 0.1 * momentum[k]
        del grads
    mlp = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 48)).cuda()
    x = torch.randn(400, 64, device="cuda")
    vmap(jacrev(mlp))(x).square().sum((1, 2))
    vmap(jacfwd(mlp), chunk_size=100)(x)
    vmap(hessian(lambda v: mlp(v).sum()))(x[:64])
    jvp(mlp, (x,), (torch.randn_like(x),))
    out, back = vjp(mlp, x)
    vmap(back)(torch.eye(48, device="cuda")[:, None].expand(-1, 400, -1))
    _, push = linearize(mlp, x)
    for _ in range(3):
        push(torch.randn_like(x))
    models = [nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda() for _ in range(16)]
    stacked, buffers = stack_module_state(models)

    def ensemble(p, b, x):
        return functional_call(models[0], (p, b), (x,))
    big = torch.randn(2048, 784, device="cuda")
    logits = vmap(ensemble, in_dims=(0, 0, None))(stacked, buffers, big)
    logits.softmax(-1).var(0).sum().backward()
    f = grad(grad(lambda s: (torch.sin(s * big) * big).mean()))
    f(torch.tensor(0.3, device="cuda"))
    vmap(lambda a, k: torch.nn.functional.dropout(a, 0.3) + k, randomness="different")(big.view(16, 128, 784), torch.arange(16.0, device="cuda"))


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
