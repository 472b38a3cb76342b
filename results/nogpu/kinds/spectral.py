# SPDX-License-Identifier: Apache-2.0
"""Complex numbers: a Fourier neural operator in two dimensions, spectrograms and back, complex linear algebra, polar forms, FFT convolutions."""
import torch
import torch.nn as nn


class Spectral(nn.Module):
    def __init__(self, n, modes):
        super().__init__()
        self.modes = modes
        self.w = nn.Parameter(torch.randn(2, n, n, modes, modes, dtype=torch.cfloat) / n)
        self.skip = nn.Conv2d(n, n, 1)

    def forward(self, x):
        f, m = torch.fft.rfft2(x, norm="ortho"), self.modes
        out = torch.zeros_like(f)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.w[0])
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.w[1])
        return nn.functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho") + self.skip(x))


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 48, 1), *[Spectral(48, 20) for _ in range(4)], nn.Conv2d(48, 1, 1)).cuda()
    o = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    for n in (128, 192, 241):
        x = torch.randn(8, 3, n, n, device="cuda")
        loss = net(x).square().mean()
        loss.backward()
        o.step()
        o.zero_grad()
    del x, loss
    audio = torch.randn(16, 5 * 44100, device="cuda", requires_grad=True)
    window = torch.hann_window(2048, device="cuda")
    s = torch.stft(audio, 2048, 512, window=window, return_complex=True)
    mask = torch.sigmoid(s.abs().log1p() - 1)
    back = torch.istft(s * mask, 2048, 512, window=window, length=audio.shape[1])
    (back - audio).abs().mean().backward()
    angle = torch.zeros_like(s.detach()).real
    with torch.no_grad():  # Griffin and Lim
        size = s.abs()
        for _ in range(4):
            wave = torch.istft(torch.polar(size, angle), 2048, 512, window=window)
            angle = torch.stft(wave, 2048, 512, window=window, return_complex=True).angle()
    del s, mask, back, wave, angle, size
    signal, kernel = torch.randn(64, 1 << 17, device="cuda"), torch.randn(64, 1 << 15, device="cuda")
    n = signal.shape[1] + kernel.shape[1]
    torch.fft.irfft(torch.fft.rfft(signal, n) * torch.fft.rfft(kernel, n), n)
    torch.fft.fftshift(torch.fft.fftn(torch.randn(96, 100, 128, device="cuda", dtype=torch.cfloat)))
    torch.fft.fft(torch.randn(32, 30030, device="cuda", dtype=torch.cdouble))
    a = torch.randn(8, 160, 160, device="cuda", dtype=torch.cfloat)
    h = a @ a.mH + 160 * torch.eye(160, device="cuda")
    torch.linalg.solve(h, a)
    torch.linalg.eigvalsh(h)
    low = torch.linalg.cholesky(h)
    torch.linalg.solve_triangular(low, a, upper=False)
    torch.linalg.qr(a)
    z = torch.view_as_complex(torch.randn(2048, 512, 2, device="cuda")).requires_grad_()
    (z.conj() * z).real.sqrt().sum().backward()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
