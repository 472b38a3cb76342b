# SPDX-License-Identifier: Apache-2.0
"""Graph networks, points and physics."""
from common import *


@program("sampled neighbourhoods", "torch_geometric")
def pyg_sampler():
    from torch_geometric.nn import SAGEConv, TopKPooling

    class M(Parts):
        def forward(s, x, e):
            x = F.relu(s.a(x, e))
            x, e, _, _, _, _ = s.p(x, e)
            return s.o(s.b(x, e))

    m = on(lambda: M(a=SAGEConv(100, 256), p=TopKPooling(256, 0.5), b=SAGEConv(256, 256),
                     o=nn.Linear(256, 47)))

    def loss(m):
        n = rng.randint(3000, 9000)
        return m(N(n, 100), T(2, 8 * n, v=n)).square().mean()

    fit(m, loss, 4)


@program("a Fourier neural operator")
def fno_fft():
    class S(Parts):
        def forward(s, x):
            f = torch.fft.rfft2(x)
            o = torch.zeros_like(f)
            o[:, :, :16, :16] = torch.einsum("bixy,ioxy->boxy", f[:, :, :16, :16], s.w)
            return torch.fft.irfft2(o, s=x.shape[-2:])

    class M(Parts):
        def forward(s, x):
            x = s.i(x)
            for a, b in zip(s.s, s.c):
                x = F.gelu(a(x) + b(x))
            return s.o(x)

    spectral = lambda: S(w=nn.Parameter(torch.randn(64, 64, 16, 16, dtype=torch.cfloat) * 0.02))
    m = on(lambda: M(i=nn.Conv2d(3, 64, 1), s=nn.ModuleList(spectral() for _ in range(4)),
                     c=nn.ModuleList(nn.Conv2d(64, 64, 1) for _ in range(4)),
                     o=nn.Conv2d(64, 1, 1)))
    fit(m, lambda m: m(N(16, 3, 128, 160)).square().mean(), 3, clip=False)


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
