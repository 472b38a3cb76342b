# SPDX-License-Identifier: Apache-2.0
"""Graph networks, points and physics."""
from common import *


@program("derivatives of high order in double precision")
def pinn_double():
    m = on(
        lambda: nn.Sequential(nn.Linear(3, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(),
                              nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)), dt=torch.double)

    def loss(m):
        x = torch.rand(20000, 3, device=dev, dtype=torch.double, requires_grad=True)
        u = m(x)
        g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        h = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)[0]
        k = torch.autograd.grad(g[:, 1].sum(), x, create_graph=True)[0]
        return (h[:, 0] + k[:, 1] - g[:, 2]).square().mean()

    fit(m, loss, 3)


@program("relational graph convolutions", "torch_geometric")
def rgcn_link():
    from torch_geometric.nn import RGCNConv
    from torch_geometric.utils import negative_sampling

    m = on(lambda: nn.ModuleDict({
        "x": nn.Embedding(14541, 256), "a": RGCNConv(256, 256, 474, num_blocks=8),
        "b": RGCNConv(256, 256, 474, num_blocks=8), "r": nn.Embedding(474, 256)
    }))
    e, t = T(2, 60000, v=14541), T(60000, v=474)

    def loss(m):
        h = m["b"](m["a"](m["x"].weight, e, t).relu(), e, t)
        n = negative_sampling(e, 14541)
        s = lambda z, r: (h[z[0]] * m["r"](r) * h[z[1]]).sum(1)
        return F.softplus(-s(e, t)).mean() + F.softplus(s(n, t[:n.shape[1]])).mean()

    fit(m, loss, 1)


@program("FFT in three dimensions without gradients")
def turbulence_in_a_box():
    n = 192
    k = torch.fft.fftfreq(n, 1 / n, device=dev)
    kz = torch.fft.rfftfreq(n, 1 / n, device=dev)
    kk = torch.stack(torch.meshgrid(k, k, kz, indexing="ij"))
    k2 = kk.square().sum(0).clamp_min(1)
    keep = (kk.abs().amax(0) < n / 3)
    u = torch.fft.rfftn(N(3, n, n, n), dim=(1, 2, 3)) * keep

    def rhs(u):
        v = torch.fft.irfftn(u, s=(n,) * 3, dim=(1, 2, 3))
        w = torch.fft.irfftn(torch.linalg.cross(1j * kk, u, dim=0), s=(n,) * 3, dim=(1, 2, 3))
        f = torch.fft.rfftn(torch.linalg.cross(v, w, dim=0), dim=(1, 2, 3)) * keep
        return f - kk * (kk * f).sum(0) / k2 - 0.001 * k2 * u

    for _ in range(3):
        a = rhs(u)
        b = rhs(u + 0.005 * a)
        c = rhs(u + 0.005 * b)
        u = u + 0.01 / 6 * (a + 2 * b + 2 * c + rhs(u + 0.01 * c))
    torch.bincount(k2.sqrt().round().long().flatten(), weights=u.abs().square().sum(0).flatten())
