# SPDX-License-Identifier: Apache-2.0
"""More programs of the size that people run, convolutions foremost; none of them in everyday.py or atscale.py: same frame, same rows.

    fresh.py OUT WORKERS SECONDS [NAME...]          rows to OUT/rows.csv, all requests and segments to OUT/NAME.npz
"""

import atscale
from atscale import *
from everyday import J

J.clear()


def conv(i, o, k=3, s=1, d=1, g=1, dims=2, norm=None, act=nn.ReLU, **more):
    """A convolution that keeps its sides, its norm (None: of batches) and its activation."""
    kind, norms = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1], (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[dims - 1]
    pad = tuple(v // 2 * d for v in k) if isinstance(k, tuple) else k // 2 * d
    return nn.Sequential(kind(i, o, k, s, pad, d, g, bias=norm is not None, **more), (norm or norms)(o), act())


def up(x, like=None):
    return F.interpolate(x, size=like.shape[2:] if like is not None else None, scale_factor=None if like is not None else 2, mode="nearest")


def stack(*parts):
    return nn.Sequential(*parts)


def learn(build, loss, steps=3, opt=None, amp=None, scaler=False, nhwc=False, **k):
    """Trains what build gives."""
    m = on(build)
    fit(m.to(memory_format=torch.channels_last) if nhwc else m, loss, steps, opt, amp=amp, scaler=scaler, **k)
    return m


class Res(nn.Module):
    """x + f(x), or a projection of it."""

    def __init__(self, f, project=None):
        super().__init__()
        self.f, self.project = f, project or nn.Identity()

    def forward(self, x):
        return self.project(x) + self.f(x)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, c, r=16, dims=2):
        super().__init__()
        kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.a, self.b = kind(c, max(1, c // r), 1), kind(max(1, c // r), c, 1)

    def forward(self, x):
        return x * self.b(F.relu(self.a(x.mean(tuple(range(2, x.dim())), keepdim=True)))).sigmoid()


# ---- pictures
@job
def resnetrs_grows():
    m = net("resnetrs101", drop_rate=0.2)
    for side, n in ((128, 64), (176, 48), (224, 32)):
        fit(m, classify(n, side), 2, SGD, amp=BF)


@job
def nfnet_clips_its_units():
    m = net("dm_nfnet_f0")

    class Clipped(torch.optim.SGD):
        def step(self, closure=None):
            for g in self.param_groups:
                for p in g["params"]:
                    if p.grad is not None and p.dim() > 1:
                        w = p.detach().flatten(1).norm(dim=1).clamp_min(1e-3).view(-1, *[1] * (p.dim() - 1))
                        v = p.grad.flatten(1).norm(dim=1).clamp_min(1e-6).view_as(w)
                        p.grad.copy_(torch.where(v > 0.01 * w, p.grad * (0.01 * w / v), p.grad))
            return super().step(closure)

    fit(m, classify(24, 192), 3, lambda p: Clipped(p, 0.1, momentum=0.9), amp=BF, clip=False)


@job
def hrnet_pose():
    m = net("hrnet_w32", features_only=True, feature_location="")
    head = on(nn.Conv2d, 32 if m.feature_info.channels()[1] == 32 else m.feature_info.channels()[1], 17, 1)

    def loss(m):
        return F.mse_loss(head(m(N(32, 3, 256, 192))[1]), torch.rand(32, 17, 64, 48, device=dev))

    fit(m, loss, 3)


class Rsu(nn.Module):
    """U-Net inside a block, dilated at the bottom."""

    def __init__(self, depth, i, mid, o, flat=False):
        super().__init__()
        self.first, self.flat = conv(i, o), flat
        self.down = nn.ModuleList([conv(o if j == 0 else mid, mid, d=2**j if flat else 1) for j in range(depth - 1)])
        self.bottom = conv(mid, mid, d=2 ** (depth - 1) if flat else 2)
        self.up = nn.ModuleList([conv(2 * mid, o if j == 0 else mid, d=2**j if flat else 1) for j in range(depth - 1)])

    def forward(self, x):
        x = self.first(x)
        y, kept = x, []
        for j, f in enumerate(self.down):
            y = f(y if j == 0 or self.flat else F.max_pool2d(y, 2, 2, ceil_mode=True))
            kept.append(y)
        y = self.bottom(y)
        for f in reversed(self.up):
            like = kept.pop()
            y = f(torch.cat([F.interpolate(y, like.shape[2:], mode="bilinear") if y.shape != like.shape else y, like], 1))
        return x + y


class U2net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Rsu(7, 3, 32, 64), Rsu(6, 64, 32, 128), Rsu(5, 128, 64, 256), Rsu(4, 256, 128, 512), Rsu(4, 512, 256, 512, True), Rsu(4, 512, 256, 512, True)])
        self.up = nn.ModuleList([Rsu(7, 128, 16, 64), Rsu(6, 256, 32, 64), Rsu(5, 512, 64, 128), Rsu(4, 1024, 128, 256), Rsu(4, 1024, 256, 512, True)])
        self.sides = nn.ModuleList([nn.Conv2d(c, 1, 3, padding=1) for c in (64, 64, 128, 256, 512, 512)])

    def forward(self, x):
        kept, y = [], x
        for j, f in enumerate(self.down):
            y = f(y if j == 0 else F.max_pool2d(y, 2, 2, ceil_mode=True))
            kept.append(y)
        outs = [self.sides[5](y)]
        for j in (4, 3, 2, 1, 0):
            y = self.up[j](torch.cat([F.interpolate(y, kept[j].shape[2:], mode="bilinear"), kept[j]], 1))
            outs.append(self.sides[j](y))
        return [F.interpolate(o, x.shape[2:], mode="bilinear") for o in outs]


@job
def u2net_saliency():
    learn(U2net, lambda m: sum(F.binary_cross_entropy_with_logits(o, torch.ones_like(o)) for o in m(images(10, 320))), 2)


@job
def dncnn_without_tf32():
    torch.backends.cudnn.allow_tf32 = False
    learn(lambda: stack(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), *[conv(64, 64) for _ in range(15)], nn.Conv2d(64, 1, 3, padding=1)),
          lambda m: m(N(128, 1, 40, 40)).square().mean(), 4)


class Decoder(nn.Module):
    """U-Net of an encoder of timm."""

    def __init__(self, name, widths, classes, **k):
        import timm

        super().__init__()
        self.encoder = timm.create_model(name, features_only=True, **k)
        c, self.blocks = self.encoder.feature_info.channels(), nn.ModuleList()
        below = c[-1]
        for skip, width in zip([*c[-2::-1], 0], widths):
            self.blocks.append(stack(conv(below + skip, width), conv(width, width)))
            below = width
        self.head = nn.Conv2d(below, classes, 3, padding=1)

    def forward(self, x):
        *skips, y = self.encoder(x)
        for f in self.blocks:
            y = up(y)
            y = f(torch.cat([y, skips.pop()], 1) if skips else y)
        return self.head(y)


@job
def unet_resnet34_competition():
    learn(lambda: Decoder("resnet34", (256, 128, 64, 32, 16), 4), lambda m: F.binary_cross_entropy_with_logits(m(images(16, 384, True)), torch.ones(16, 4, 384, 384, device=dev)),
          3, amp=HF16, scaler=True, nhwc=True)


@job
def unet_efficientnet_b4_odd():
    learn(lambda: Decoder("efficientnet_b4", (256, 128, 64, 32, 16), 11), lambda m: F.cross_entropy(m(images(6, 480)), T(6, 480, 480, v=11)), 3, amp=BF)


def hourglass(depth, c):
    inner = hourglass(depth - 1, c) if depth > 1 else Res(stack(conv(c, c // 2, 1), conv(c // 2, c // 2), conv(c // 2, c, 1)))
    bottleneck = lambda: Res(stack(conv(c, c // 2, 1), conv(c // 2, c // 2), conv(c // 2, c, 1)))
    return Res(stack(nn.MaxPool2d(2), bottleneck(), inner, bottleneck(), nn.Upsample(scale_factor=2)), bottleneck())


@job
def stacked_hourglass():
    build = lambda: stack(conv(3, 64, 7, 2), Res(stack(conv(64, 64, 1), conv(64, 64), conv(64, 128, 1)), nn.Conv2d(64, 128, 1)), nn.MaxPool2d(2),
                          conv(128, 256, 1), *[stack(hourglass(4, 256), conv(256, 256, 1)) for _ in range(2)], nn.Conv2d(256, 16, 1))
    learn(build, lambda m: m(images(16, 256)).square().mean(), 3, lambda p: torch.optim.RMSprop(p, 2.5e-4), amp=HF16, scaler=True)


class Bifpn(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, 2))
        self.f = nn.ModuleList([stack(nn.Conv2d(c, c, 3, padding=1, groups=c, bias=False), nn.Conv2d(c, c, 1), nn.BatchNorm2d(c, momentum=0.01), nn.SiLU()) for _ in range(8)])

    def forward(self, p):
        w, at = self.w.relu(), 0
        w = w / (w.sum(1, keepdim=True) + 1e-4)
        for j in (3, 2, 1, 0):
            p[j] = self.f[at](w[at, 0] * p[j] + w[at, 1] * up(p[j + 1], p[j]))
            at += 1
        for j in (1, 2, 3, 4):
            p[j] = self.f[at](w[at, 0] * p[j] + w[at, 1] * F.adaptive_max_pool2d(p[j - 1], p[j].shape[2:]))
            at += 1
        return p


class Efficientdet(nn.Module):
    def __init__(self, c=160):
        import timm

        super().__init__()
        self.body = timm.create_model("efficientnet_b3", features_only=True, out_indices=(2, 3, 4))
        self.side = nn.ModuleList([nn.Conv2d(i, c, 1) for i in self.body.feature_info.channels()])
        self.fpn = nn.ModuleList([Bifpn(c) for _ in range(5)])
        head = lambda o: stack(*[stack(nn.Conv2d(c, c, 3, padding=1, groups=c), nn.Conv2d(c, c, 1), nn.SiLU()) for _ in range(3)], nn.Conv2d(c, c, 3, padding=1, groups=c), nn.Conv2d(c, o, 1))
        self.classes, self.boxes = head(9 * 90), head(9 * 4)

    def forward(self, x):
        p = [f(v) for f, v in zip(self.side, self.body(x))]
        p += [F.max_pool2d(p[-1], 3, 2, 1)]
        p += [F.max_pool2d(p[-1], 3, 2, 1)]
        for f in self.fpn:
            p = f(p)
        return [self.classes(v) for v in p], [self.boxes(v) for v in p]


@job
def efficientdet_d3():
    def loss(m):
        classes, boxes = m(images(6, 640, True))
        return sum(F.binary_cross_entropy_with_logits(v.float(), torch.zeros_like(v, dtype=torch.float32)) for v in classes) + sum(v.float().abs().mean() for v in boxes)

    learn(Efficientdet, loss, 3, SGD, amp=HF16, scaler=True, nhwc=True)


@job
def deeplab_plus_xception():
    def build():
        import timm

        class Plus(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = timm.create_model("xception65", features_only=True, output_stride=16)
                c = self.body.feature_info.channels()
                separable = lambda i, o, d: stack(nn.Conv2d(i, i, 3, padding=d, dilation=d, groups=i, bias=False), conv(i, o, 1))
                self.aspp = nn.ModuleList([conv(c[-1], 256, 1), *[separable(c[-1], 256, d) for d in (6, 12, 18)]])
                self.joined, self.low, self.last = conv(1024, 256, 1), conv(c[1], 48, 1), stack(separable(304, 256, 1), separable(256, 256, 1), nn.Conv2d(256, 19, 1))

            def forward(self, x):
                f = self.body(x)
                y = self.joined(torch.cat([a(f[-1]) for a in self.aspp], 1))
                y = self.last(torch.cat([F.interpolate(y, f[1].shape[2:], mode="bilinear"), self.low(f[1])], 1))
                return F.interpolate(y, x.shape[2:], mode="bilinear")

        return Plus()

    learn(build, lambda m: F.cross_entropy(m(images(6, 513)), T(6, 513, 513, v=19)), 3, SGD, amp=BF)


@job
def pspnet_769():
    def build():
        import timm

        class Psp(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = timm.create_model("resnet101", features_only=True, output_stride=8, out_indices=(4,))
                self.pools = nn.ModuleList([stack(nn.AdaptiveAvgPool2d(s), conv(2048, 512, 1)) for s in (1, 2, 3, 6)])
                self.last = stack(conv(4096, 512), nn.Dropout2d(0.1), nn.Conv2d(512, 19, 1))

            def forward(self, x):
                (y,) = self.body(x)
                y = self.last(torch.cat([y, *[F.interpolate(p(y), y.shape[2:], mode="bilinear") for p in self.pools]], 1))
                return F.interpolate(y, x.shape[2:], mode="bilinear")

        return Psp()

    learn(build, lambda m: F.cross_entropy(m(images(2, 769)), T(2, 769, 769, v=19)), 2, SGD)


class Naf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(1, c), nn.GroupNorm(1, c)
        self.a, self.b, self.c = nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, 2 * c, 3, padding=1, groups=2 * c), nn.Conv2d(c, c, 1)
        self.sca, self.d, self.e = nn.Conv2d(c, c, 1), nn.Conv2d(c, 2 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        u, v = self.b(self.a(self.n1(x))).chunk(2, 1)
        y = u * v
        x = x + self.c(y * self.sca(F.adaptive_avg_pool2d(y, 1)))
        u, v = self.d(self.n2(x)).chunk(2, 1)
        return x + self.e(u * v)


class Nafnet(nn.Module):
    def __init__(self, c=32, depths=(1, 1, 2, 8), middle=4):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
        widths = [c * 2**i for i in range(len(depths) + 1)]
        self.down = nn.ModuleList([stack(*[Naf(w) for _ in range(n)]) for w, n in zip(widths, depths)])
        self.less = nn.ModuleList([nn.Conv2d(w, 2 * w, 2, 2) for w in widths[:-1]])
        self.middle = stack(*[Naf(widths[-1]) for _ in range(middle)])
        self.more = nn.ModuleList([stack(nn.Conv2d(2 * w, 4 * w, 1, bias=False), nn.PixelShuffle(2)) for w in widths[-2::-1]])
        self.up = nn.ModuleList([Naf(w) for w in widths[-2::-1]])

    def forward(self, x):
        y, kept = self.first(x), []
        for f, g in zip(self.down, self.less):
            kept.append(f(y))
            y = g(kept[-1])
        y = self.middle(y)
        for g, f in zip(self.more, self.up):
            y = f(g(y) + kept.pop())
        return x + self.last(y)


@job
def nafnet_denoise():
    learn(Nafnet, lambda m: (m(images(8, 256)) - 1).square().mean().log(), 3, amp=BF)


@job
def rcan_patches():
    group = lambda: Res(stack(*[Res(stack(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), Gate(64))) for _ in range(8)], nn.Conv2d(64, 64, 3, padding=1)))
    learn(lambda: stack(nn.Conv2d(3, 64, 3, padding=1), *[group() for _ in range(4)], nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(64, 3, 3, padding=1)),
          lambda m: m(images(16, 48)).abs().mean(), 3)


class Large(nn.Module):
    """A block of single channels with large filters."""

    def __init__(self, c, k):
        super().__init__()
        self.large, self.small, self.n = nn.Conv2d(c, c, k, padding=k // 2, groups=c, bias=False), nn.Conv2d(c, c, 5, padding=2, groups=c, bias=False), nn.BatchNorm2d(c)
        self.a, self.b, self.c = conv(c, c, 1), nn.Conv2d(c, c, 1), stack(conv(c, 4 * c, 1, act=nn.GELU), nn.Conv2d(4 * c, c, 1))

    def forward(self, x):
        y = self.a(x)
        x = x + self.b(F.relu(self.n(self.large(y) + self.small(y))))
        return x + self.c(x)


@job
def replknet_31():
    widths = (128, 256, 512, 1024)
    stages = [stack(*([conv(widths[i - 1], w, 1), conv(w, w, 3, 2, g=w)] if i else []), *[Large(w, k) for _ in range(2)]) for i, (w, k) in enumerate(zip(widths, (31, 29, 27, 13)))]
    learn(lambda: stack(conv(3, 128, 3, 2), conv(128, 128, 3, 1, g=128), conv(128, 128, 1), conv(128, 128, 3, 2, g=128), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000)),
          classify(16, 224), 2, amp=HF16, scaler=True)


@job
def fastvit_nhwc_fp16():
    fit(net("fastvit_sa24", True), classify(32, 256, True), 3, amp=HF16, scaler=True)


@job
def seresnextaa_fp32():
    fit(net("seresnextaa101d_32x8d"), classify(12, 288), 2, SGD)


@job
def condconv_experts():
    fit(net("tf_efficientnet_cc_b0_8e"), classify(48, 224), 3, SGD, amp=BF)


@job
def hgnet_mobileone():
    for name, n in (("hgnetv2_b5", 24), ("mobileone_s3", 32)):
        fit(net(name, name.startswith("hg")), classify(n, 224, name.startswith("hg")), 2, SGD, amp=BF)


@job
def crnn_text():
    class Crnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = stack(conv(1, 64), nn.MaxPool2d(2), conv(64, 128), nn.MaxPool2d(2), conv(128, 256), conv(256, 256), nn.MaxPool2d((2, 2), (2, 1), (0, 1)), conv(256, 512), conv(512, 512),
                              nn.MaxPool2d((2, 2), (2, 1), (0, 1)), nn.Conv2d(512, 512, 2), nn.ReLU())
            self.rnn, self.head = nn.LSTM(512, 256, 2, bidirectional=True), nn.Linear(512, 97)

        def forward(self, x):
            return self.head(self.rnn(self.body(x).squeeze(2).permute(2, 0, 1))[0]).log_softmax(-1)

    def loss(m):
        y = m(N(128, 1, 32, 100 + 4 * rng.choice([0, 5, 15, 39])))
        return F.ctc_loss(y, T(128, 9, v=96) + 1, torch.full((128,), y.shape[0]), torch.full((128,), 9))

    learn(Crnn, loss, 4)


@job
def monodepth_reprojects():
    class Depth(nn.Module):
        def __init__(self):
            import timm

            super().__init__()
            self.body = timm.create_model("resnet18", features_only=True)
            c, widths = self.body.feature_info.channels(), (256, 128, 64, 32, 16)
            self.a, self.b, below = nn.ModuleList(), nn.ModuleList(), c[-1]
            for skip, w in zip([*c[-2::-1], 0], widths):
                self.a.append(nn.Conv2d(below, w, 3, padding=1, padding_mode="reflect"))
                self.b.append(nn.Conv2d(w + skip, w, 3, padding=1, padding_mode="reflect"))
                below = w
            self.head = nn.Conv2d(16, 1, 3, padding=1, padding_mode="reflect")
            self.pose = stack(conv(6, 16, 7, 2), conv(16, 32, 5, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 256, 3, 2), nn.Conv2d(256, 6, 1))

        def forward(self, x, near):
            *skips, y = self.body(x)
            for a, b in zip(self.a, self.b):
                y = up(F.elu(a(y)))
                y = F.elu(b(torch.cat([y, skips.pop()], 1) if skips else y))
            depth = 1 / (0.1 + 10 * self.head(y).sigmoid())
            pose = 0.01 * self.pose(torch.cat([x, near], 1)).mean((2, 3))
            theta = torch.cat([torch.eye(2, device=dev).expand(len(x), 2, 2) + pose[:, :4].view(-1, 2, 2), pose[:, 4:, None]], 2)
            grid = F.affine_grid(theta, x.shape, align_corners=False) + 0.01 * depth.permute(0, 2, 3, 1)
            return F.grid_sample(near, grid, padding_mode="border", align_corners=False)

    def loss(m):
        x, near = images(8, 192), images(8, 192)
        x, near = (F.interpolate(v, (192, 640)) for v in (x, near))
        y = m(x, near)
        mean = F.avg_pool2d(F.pad(y, (1, 1, 1, 1), mode="reflect"), 3, 1)
        return (y - x).abs().mean() + mean.var()

    learn(Depth, loss, 3)


class Flow(nn.Module):
    """Costs of shifts at each level, refined by dilated filters."""

    def __init__(self):
        super().__init__()
        c = (3, 16, 32, 64, 96, 128, 196)
        leaky = functools.partial(nn.LeakyReLU, 0.1)
        plain = lambda i, o, s=1, d=1: stack(nn.Conv2d(i, o, 3, s, d, d), leaky())
        self.levels = nn.ModuleList([stack(plain(i, o, 2), plain(o, o), plain(o, o)) for i, o in zip(c, c[1:])])
        self.read, self.flow, self.more = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for level in (5, 4, 3, 2, 1):
            i = 81 + (c[level + 1] + 4 if level < 5 else 0)
            parts = nn.ModuleList()
            for o in (128, 128, 96, 64, 32):
                parts.append(plain(i, o))
                i += o
            self.read.append(parts)
            self.flow.append(nn.Conv2d(i, 2, 3, padding=1))
            self.more.append(nn.ModuleList([nn.ConvTranspose2d(2, 2, 4, 2, 1), nn.ConvTranspose2d(i, 2, 4, 2, 1)]))
        self.context = stack(plain(i + 2, 128), plain(128, 128, d=2), plain(128, 128, d=4), plain(128, 96, d=8), plain(96, 64, d=16), plain(64, 32), nn.Conv2d(32, 2, 3, padding=1))

    def costs(self, a, b):
        b, (h, w) = F.pad(b, (4, 4, 4, 4)), a.shape[2:]
        return F.leaky_relu(torch.cat([(a * b[:, :, i : i + h, j : j + w]).mean(1, keepdim=True) for i in range(9) for j in range(9)], 1), 0.1)

    def forward(self, a, b):
        both, found = [], []
        for f in self.levels:
            a, b = f(a), f(b)
            both.append((a, b))
        flow = seen = None
        for at, level in enumerate((5, 4, 3, 2, 1)):
            a, b = both[level]
            if flow is not None:
                h, w = a.shape[2:]
                grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, h, device=dev), torch.linspace(-1, 1, w, device=dev), indexing="ij")[::-1], -1)
                b = F.grid_sample(b, grid + flow.permute(0, 2, 3, 1) * 0.01, align_corners=True)
            y = self.costs(a, b)
            y = y if flow is None else torch.cat([y, a, flow, seen], 1)
            for f in self.read[at]:
                y = torch.cat([f(y), y], 1)
            flow = self.flow[at](y)
            found.append(flow)
            last, flow, seen = flow, *(f(v) for f, v in zip(self.more[at], (flow, y)))
        found[-1] = last + self.context(torch.cat([y, last], 1))
        return found


@job
def pwc_flow():
    learn(Flow, lambda m: sum(f.abs().mean() for f in m(F.interpolate(images(8, 64), (384, 448)), F.interpolate(images(8, 64), (384, 448)))), 3)


@job
def psmnet_stereo():
    v = lambda i, o, s=1: conv(i, o, 3, s, dims=3)

    class Glass(nn.Module):
        def __init__(self, c=32):
            super().__init__()
            self.a, self.b = stack(v(c, 2 * c, 2), v(2 * c, 2 * c)), stack(v(2 * c, 2 * c, 2), v(2 * c, 2 * c))
            self.c = nn.ConvTranspose3d(2 * c, 2 * c, 3, 2, 1, 1, bias=False)
            self.d = nn.ConvTranspose3d(2 * c, c, 3, 2, 1, 1, bias=False)

        def forward(self, x):
            y = self.a(x)
            return x + self.d(F.relu(self.c(self.b(y)) + y))

    class Stereo(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = stack(conv(3, 32, 3, 2), conv(32, 32), Res(stack(conv(32, 64, 3, 2), conv(64, 64)), nn.Conv2d(32, 64, 1, 2)), *[Res(conv(64, 64, d=2)) for _ in range(4)], nn.Conv2d(64, 32, 1))
            self.first, self.glass, self.last = stack(v(64, 32), v(32, 32)), nn.ModuleList([Glass(), Glass()]), stack(v(32, 32), nn.Conv3d(32, 1, 3, padding=1, bias=False))

        def forward(self, a, b):
            a, b = self.body(a), self.body(b)
            cost = a.new_zeros(len(a), 64, 32, *a.shape[2:])
            for i in range(32):
                cost[:, :32, i, :, i:] = a[..., i:]
                cost[:, 32:, i, :, i:] = b[..., : b.shape[3] - i]
            y = self.first(cost)
            for g in self.glass:
                y = g(y)
            p = F.interpolate(self.last(y), scale_factor=4, mode="trilinear").squeeze(1).softmax(1)
            return (p * torch.arange(p.shape[1], device=dev).view(1, -1, 1, 1)).sum(1)

    learn(Stereo, lambda m: F.smooth_l1_loss(m(*(F.interpolate(images(3, 64), (256, 512)) for _ in "ab")), torch.ones(3, 256, 512, device=dev)), 2)


@job
def siamese_tracker():
    class Siamese(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = stack(nn.Conv2d(3, 96, 11, 2), nn.BatchNorm2d(96), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, groups=2), nn.BatchNorm2d(256), nn.ReLU(), nn.MaxPool2d(3, 2),
                           nn.Conv2d(256, 384, 3), nn.ReLU(), nn.Conv2d(384, 384, 3, groups=2), nn.ReLU(), nn.Conv2d(384, 256, 3, groups=2))

        def forward(self, z, x):
            z, x = self.f(z), self.f(x)
            n, c, h, w = x.shape
            return F.conv2d(x.reshape(1, n * c, h, w), z, groups=n)[0]

    learn(Siamese, lambda m: F.softplus(m(images(32, 127), images(32, 255))).mean(), 3, SGD)


@job
def style_transfer_lbfgs():
    import torchvision

    m = on(torchvision.models.vgg19).features.eval().requires_grad_(False)

    def features(x):
        found = []
        for i, f in enumerate(m[:29]):
            x = F.relu(x) if isinstance(f, nn.ReLU) else f(x)
            if i in (0, 5, 10, 19, 28):
                found.append(x.flatten(2)[0] @ x.flatten(2)[0].T / x.numel())
        return found

    with torch.no_grad():
        style = features(torch.rand(1, 3, 512, 512, device=dev))
    x = torch.rand(1, 3, 512, 680, device=dev, requires_grad=True)
    o = torch.optim.LBFGS([x], max_iter=4, history_size=10)

    def closure():
        o.zero_grad()
        l = sum((a - b).square().sum() for a, b in zip(features(x), style)) * 1e3 + (x[..., 1:] - x[..., :-1]).square().mean()
        l.backward()
        return l

    for _ in range(2):
        o.step(closure)


@job
def deep_image_prior():
    class Skip(nn.Module):
        def __init__(self, depth, i):
            super().__init__()
            r = lambda a, b, k=3, s=1: stack(nn.Conv2d(a, b, k, s, k // 2, padding_mode="reflect"), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))
            self.down, self.side = stack(r(i, 128, 3, 2), r(128, 128)), r(i, 4, 1)
            self.inner = Skip(depth - 1, 128) if depth > 1 else None
            self.last = stack(nn.BatchNorm2d(132), r(132, 128), r(128, 128, 1))

        def forward(self, x):
            y = self.down(x)
            y = self.inner(y) if self.inner else y
            return self.last(torch.cat([F.interpolate(y, x.shape[2:], mode="bilinear"), self.side(x)], 1))

    learn(lambda: stack(Skip(5, 32), nn.Conv2d(128, 3, 1), nn.Sigmoid()), lambda m: F.mse_loss(m(N(1, 32, 512, 768)), torch.rand(1, 3, 512, 768, device=dev)), 4)


@job
def qat_resnet18():
    import torchvision

    m = on(torchvision.models.resnet18)
    for c in [c for c in m.modules() if isinstance(c, nn.Conv2d)]:

        def quantized(self, args):
            w = self.weight
            scale = w.detach().abs().amax((1, 2, 3)) / 127 + 1e-8
            q = torch.fake_quantize_per_channel_affine(w, scale, torch.zeros(len(scale), dtype=torch.int32, device=dev), 0, -127, 127)
            return (F.conv2d(args[0], q, self.bias, self.stride, self.padding, self.dilation, self.groups),)

        c.register_forward_hook(lambda self, args, _: torch.fake_quantize_per_tensor_affine(quantized(self, args)[0], 0.05, 0, -128, 127))
    fit(m, classify(64, 224), 2, SGD)


# ---- pictures from noise
@job
def vqgan_lpips():
    import torchvision

    gn = functools.partial(nn.GroupNorm, 32)
    res = lambda i, o: Res(stack(gn(i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1), gn(o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1)), None if i == o else nn.Conv2d(i, o, 1))
    enc = on(lambda: stack(nn.Conv2d(3, 128, 3, padding=1), res(128, 128), nn.Conv2d(128, 128, 3, 2, 1), res(128, 128), nn.Conv2d(128, 128, 3, 2, 1), res(128, 256), nn.Conv2d(256, 256, 3, 2, 1),
                           res(256, 512), gn(512), nn.SiLU(), nn.Conv2d(512, 256, 1)))
    dec = on(lambda: stack(nn.Conv2d(256, 512, 3, padding=1), res(512, 512), nn.Upsample(scale_factor=2), nn.Conv2d(512, 512, 3, padding=1), res(512, 256), nn.Upsample(scale_factor=2),
                           nn.Conv2d(256, 256, 3, padding=1), res(256, 128), nn.Upsample(scale_factor=2), nn.Conv2d(128, 128, 3, padding=1), res(128, 128), gn(128), nn.SiLU(), nn.Conv2d(128, 3, 3, padding=1)))
    book = on(nn.Embedding, 1024, 256)
    vgg = on(torchvision.models.vgg16).features[:23].eval().requires_grad_(False)
    disc = on(lambda: stack(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), *[stack(nn.Conv2d(a, b, 4, s, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2)) for a, b, s in ((64, 128, 2), (128, 256, 2), (256, 512, 1))],
                            nn.Conv2d(512, 1, 4, 1, 1)))
    og = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], 4.5e-6, betas=(0.5, 0.9))
    od = torch.optim.Adam(disc.parameters(), 4.5e-6, betas=(0.5, 0.9))
    for _ in range(2):
        x = images(4, 256)
        z = enc(x).permute(0, 2, 3, 1)
        at = torch.cdist(z.reshape(-1, 256), book.weight).argmin(1)
        q = book(at).view_as(z)
        vq = (q - z.detach()).square().mean() + 0.25 * (q.detach() - z).square().mean()
        y = dec((z + (q - z).detach()).permute(0, 3, 1, 2))
        nll = (y - x).abs().mean() + (vgg(x) - vgg(y)).square().mean()
        g = -disc(y).mean()
        last = dec[-1].weight
        a, b = (torch.autograd.grad(v, last, retain_graph=True)[0].norm() for v in (nll, g))
        og.zero_grad()
        (nll + (a / (b + 1e-4)).clamp(0, 1e4).detach() * g + vq).backward()
        og.step()
        od.zero_grad()
        (F.relu(1 - disc(x.detach())).mean() + F.relu(1 + disc(y.detach())).mean()).backward()
        od.step()


class Modulated(nn.Module):
    def __init__(self, i, o, k=3, larger=False, demodulate=True):
        super().__init__()
        self.w, self.style, self.larger, self.demodulate = nn.Parameter(torch.randn(o, i, k, k)), nn.Linear(512, i), larger, demodulate

    def forward(self, x, s):
        n, c, h, w = x.shape
        f = self.w[None] * self.style(s).view(n, 1, c, 1, 1)
        f = f * (f.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt() if self.demodulate else f
        x = x.reshape(1, n * c, h, w)
        if self.larger:
            f = f.transpose(1, 2).reshape(n * c, -1, *self.w.shape[2:])
            y = F.conv_transpose2d(x, f, stride=2, groups=n)
            y = y.view(n, -1, *y.shape[2:])
            blur = torch.ones(y.shape[1], 1, 4, 4, device=dev) / 16
            return F.conv2d(F.pad(y, (1, 1, 1, 1)), blur, groups=y.shape[1])
        y = F.conv2d(x, f.flatten(0, 1), padding=self.w.shape[-1] // 2, groups=n)
        return y.view(n, -1, *y.shape[2:])


@job
def stylegan2_path_lengths():
    widths = (512, 512, 512, 512, 256, 128, 64)

    class G(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = stack(*[stack(nn.Linear(512, 512), nn.LeakyReLU(0.2)) for _ in range(8)])
            self.first = nn.Parameter(torch.randn(1, 512, 4, 4))
            self.a = nn.ModuleList([Modulated(i, o, larger=True) for i, o in zip(widths, widths[1:])])
            self.b = nn.ModuleList([Modulated(o, o) for o in widths[1:]])
            self.rgb = nn.ModuleList([Modulated(o, 3, 1, demodulate=False) for o in widths[1:]])

        def forward(self, z):
            s = self.map(z)
            x, out = self.first.expand(len(z), -1, -1, -1), None
            for a, b, rgb in zip(self.a, self.b, self.rgb):
                x = F.leaky_relu(b(F.leaky_relu(a(x, s), 0.2), s), 0.2)
                out = rgb(x, s) if out is None else F.interpolate(out, scale_factor=2, mode="bilinear") + rgb(x, s)
            return out, s

    g = on(G)
    d = on(lambda: stack(nn.Conv2d(3, 64, 1), *[Res(stack(nn.Conv2d(i, i, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(i, o, 3, 2, 1), nn.LeakyReLU(0.2)), nn.Conv2d(i, o, 1, 2, bias=False)) for i, o in
                                                ((64, 128), (128, 256), (256, 512), (512, 512), (512, 512), (512, 512))], nn.Flatten(), nn.Linear(512 * 16, 1)))
    og, od = torch.optim.Adam(g.parameters(), 2e-3, betas=(0.0, 0.99)), torch.optim.Adam(d.parameters(), 2e-3, betas=(0.0, 0.99))
    for step in range(2):
        od.zero_grad()
        x = images(6, 256).requires_grad_()
        real = d(x)
        (r1,) = torch.autograd.grad(real.sum(), x, create_graph=True)
        (F.softplus(d(g(N(6, 512))[0].detach())).mean() + F.softplus(-real).mean() + 5 * r1.square().sum((1, 2, 3)).mean()).backward()
        od.step()
        og.zero_grad()
        F.softplus(-d(g(N(6, 512))[0])).mean().backward()
        y, s = g(N(3, 512))
        (jac,) = torch.autograd.grad((y * torch.randn_like(y)).sum() / 256, s, create_graph=True)
        (2 * (jac.square().sum(1).sqrt() - 0.1).square().mean()).backward()
        og.step()


@job
def biggan_spectral():
    sn = nn.utils.spectral_norm

    class Conditional(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n, self.gain = nn.BatchNorm2d(c, affine=False), nn.Linear(148, 2 * c)

        def forward(self, x, y):
            a, b = self.gain(y)[:, :, None, None].chunk(2, 1)
            return F.relu(self.n(x) * (1 + a) + b)

    class Gblock(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a, self.b = Conditional(i), Conditional(o)
            self.c, self.d, self.e = (sn(nn.Conv2d(*v)) for v in ((i, o, 3, 1, 1), (o, o, 3, 1, 1), (i, o, 1)))

        def forward(self, x, y):
            return self.e(up(x)) + self.d(self.b(self.c(up(self.a(x, y))), y))

    class G(nn.Module):
        def __init__(self):
            super().__init__()
            c = (1536, 1536, 768, 384, 192, 96)
            self.first, self.blocks, self.last = nn.Linear(20, 16 * 1536), nn.ModuleList([Gblock(i, o) for i, o in zip(c, c[1:])]), stack(nn.BatchNorm2d(96), nn.ReLU(), nn.Conv2d(96, 3, 3, padding=1))

        def forward(self, z, y):
            x = self.first(z[:, :20]).view(-1, 1536, 4, 4)
            for f in self.blocks:
                x = f(x, torch.cat([y, z[:, 20:40]], 1))
            return self.last(x).tanh()

    fit(on(G), lambda m: m(N(32, 120), N(32, 128)).float().square().mean(), 3, amp=BF)


@job
def edm_cifar_fp32():
    gn = functools.partial(nn.GroupNorm, 32)

    class Block(nn.Module):
        def __init__(self, i, o, change=None):
            super().__init__()
            self.n1, self.c1, self.n2, self.c2 = gn(i), nn.Conv2d(i, o, 3, padding=1), gn(o), nn.Conv2d(o, o, 3, padding=1)
            self.emb, self.skip, self.change = nn.Linear(512, 2 * o), nn.Conv2d(i, o, 1) if i != o else nn.Identity(), change

        def forward(self, x, e):
            h = F.silu(self.n1(x))
            if self.change:
                h, x = (up(v) if self.change == "up" else F.avg_pool2d(v, 2) for v in (h, x))
            a, b = self.emb(e)[:, :, None, None].chunk(2, 1)
            return (self.skip(x) + self.c2(F.dropout(F.silu(self.n2(self.c1(h)) * (1 + a) + b), 0.13))) * 0.5**0.5

    class Edm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.first, self.last = stack(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 512)), nn.Conv2d(3, 128, 3, padding=1), stack(gn(128), nn.SiLU(), nn.Conv2d(128, 3, 3, padding=1))
            self.down = nn.ModuleList([Block(128, 128), Block(128, 128), Block(128, 256, "down"), Block(256, 256), Block(256, 256, "down"), Block(256, 256)])
            self.up = nn.ModuleList([Block(512, 256), Block(512, 256, "up"), Block(512, 256), Block(512, 256, "up"), Block(384, 128), Block(256, 128)])

        def forward(self, x, t):
            f = torch.outer(t, torch.arange(128, device=dev) * 0.1)
            e, y, kept = self.emb(torch.cat([f.cos(), f.sin()], 1)), self.first(x), []
            for b in self.down:
                y = b(y, e)
                kept.append(y)
            for b in self.up:
                y = b(torch.cat([y, kept.pop()], 1), e)
            return self.last(y)

    m = learn(Edm, lambda m: (m(N(96, 3, 32, 32), N(96)) - 1).square().mean(), 3)
    with torch.no_grad():
        x = N(64, 3, 32, 32)
        for i in range(4):
            x = x - 0.1 * m.eval()(x, torch.full((64,), float(i), device=dev))


class Causal(nn.Conv3d):
    def forward(self, x):
        t = 2 * self.padding[0]
        return F.conv3d(F.pad(x, (self.padding[2],) * 2 + (self.padding[1],) * 2 + (t, 0)), self.weight, self.bias, self.stride)


@job
def causal_video_vae():
    gn = functools.partial(nn.GroupNorm, 32)
    res = lambda i, o: Res(stack(gn(i), nn.SiLU(), Causal(i, o, 3, padding=1), gn(o), nn.SiLU(), Causal(o, o, 3, padding=1)), None if i == o else Causal(i, o, 1))
    enc = on(lambda: stack(Causal(3, 128, 3, padding=1), res(128, 128), Causal(128, 128, 3, (1, 2, 2), 1), res(128, 256), Causal(256, 256, 3, 2, 1), res(256, 512), Causal(512, 512, 3, 2, 1), res(512, 512), Causal(512, 32, 3, padding=1)), dt=BF)
    more = lambda c, s: stack(nn.Upsample(scale_factor=s), Causal(c, c, 3, padding=1))
    dec = on(lambda: stack(Causal(16, 512, 3, padding=1), res(512, 512), more(512, 2), res(512, 256), more(256, 2), res(256, 128), more(128, (1, 2, 2)), res(128, 128), Causal(128, 3, 3, padding=1)), dt=BF)
    o = torch.optim.AdamW([*enc.parameters(), *dec.parameters()], 1e-5)
    for _ in range(2):
        x = N(1, 3, 16, 192, 192, dt=BF)
        mean, _ = enc(x).chunk(2, 1)
        (dec(mean) - x).float().square().mean().backward()
        o.step()
        o.zero_grad()
    with torch.no_grad():
        for _ in range(2):
            dec(N(1, 16, 5, 32, 48, dt=BF))


# ---- volumes and films
@job
def vnet_volumes():
    v = lambda i, o: stack(nn.Conv3d(i, o, 5, padding=2), nn.BatchNorm3d(o), nn.PReLU(o))

    class Vnet(nn.Module):
        def __init__(self, c=(16, 32, 64, 128, 256)):
            super().__init__()
            self.first = nn.Conv3d(1, 16, 5, padding=2)
            self.down = nn.ModuleList([nn.Conv3d(a, b, 2, 2) for a, b in zip(c, c[1:])])
            self.a = nn.ModuleList([stack(*[v(b, b) for _ in range(n)]) for b, n in zip(c[1:], (2, 3, 3, 3))])
            self.up = nn.ModuleList([nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(c[-2::-1], c[:0:-1])])
            self.b = nn.ModuleList([stack(v(2 * a, a), v(a, a)) for a in c[-2::-1]])
            self.last = nn.Conv3d(16, 2, 1)

        def forward(self, x):
            y = self.first(x) + x
            kept = []
            for d, f in zip(self.down, self.a):
                kept.append(y)
                y = d(y)
                y = y + f(y)
            for u, f in zip(self.up, self.b):
                y = f(torch.cat([u(y), kept.pop()], 1))
            return self.last(y)

    def loss(m):
        p = m(N(2, 1, 64, 128, 128)).softmax(1)[:, 1]
        return 1 - 2 * p.sum() / (p.square().sum() + 1000)

    learn(Vnet, loss, 2, amp=HF16, scaler=True)


@job
def unet3d_residual_fp32():
    class Unit(nn.Module):
        def __init__(self, i, o, s):
            super().__init__()
            n = nn.InstanceNorm3d
            self.f = stack(nn.Conv3d(i, o, 3, s, 1), n(o), nn.PReLU(), nn.Conv3d(o, o, 3, 1, 1), n(o), nn.PReLU())
            self.side = nn.Conv3d(i, o, 3 if s > 1 else 1, s, 1 if s > 1 else 0)

        def forward(self, x):
            return self.f(x) + self.side(x)

    class Net(nn.Module):
        def __init__(self, c=(16, 32, 64, 128, 256)):
            super().__init__()
            self.down = nn.ModuleList([Unit(4, 16, 2), *[Unit(a, b, 2) for a, b in zip(c, c[1:4])], Unit(128, 256, 1)])
            self.up = nn.ModuleList([nn.ConvTranspose3d(i, o, 3, 2, 1, 1) for i, o in ((384, 64), (128, 32), (64, 16), (32, 3))])

        def forward(self, x):
            kept = []
            for f in self.down:
                x = f(x)
                kept.append(x)
            x, kept = kept[-1], kept[:-1]
            for f in self.up:
                x = f(torch.cat([x, kept.pop()], 1))
            return x

    learn(Net, lambda m: m(N(2, 4, 128, 128, 96)).square().mean(), 3)


@job
def x3d_video():
    def block(i, o, s):
        mid = round(2.25 * o)
        return Res(stack(conv(i, mid, 1, dims=3), nn.Conv3d(mid, mid, 3, (1, s, s), 1, groups=mid, bias=False), nn.BatchNorm3d(mid), Gate(mid, 16, 3), nn.SiLU(), nn.Conv3d(mid, o, 1, bias=False), nn.BatchNorm3d(o)),
                   nn.Conv3d(i, o, 1, (1, s, s), bias=False) if s > 1 or i != o else None)

    c = [24, 24, 48, 96, 192]
    learn(lambda: stack(nn.Conv3d(3, 24, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False), nn.Conv3d(24, 24, (5, 1, 1), padding=(2, 0, 0), groups=24, bias=False), nn.BatchNorm3d(24), nn.ReLU(),
                        *[stack(block(i, o, 2), *[block(o, o, 1) for _ in range(n - 1)]) for i, o, n in zip(c, c[1:], (3, 5, 6, 4))], conv(192, 432, 1, dims=3), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(432, 400)),
          lambda m: F.cross_entropy(m(N(8, 3, 16, 182, 182)), T(8, v=400)), 2, SGD, amp=BF)


@job
def c3d_clips():
    c = lambda i, o: stack(nn.Conv3d(i, o, 3, padding=1), nn.ReLU())
    learn(lambda: stack(c(3, 64), nn.MaxPool3d((1, 2, 2)), c(64, 128), nn.MaxPool3d(2), c(128, 256), c(256, 256), nn.MaxPool3d(2), c(256, 512), c(512, 512), nn.MaxPool3d(2), c(512, 512), c(512, 512),
                        nn.MaxPool3d(2, padding=(0, 1, 1)), nn.Flatten(), nn.Linear(8192, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 101)),
          lambda m: F.cross_entropy(m(N(12, 3, 16, 112, 112)), T(12, v=101)), 3, SGD)


# ---- sound
class Snake(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Parameter(torch.ones(1, c, 1))

    def forward(self, x):
        return x + (self.a * x).sin().square() / (self.a + 1e-9)


def weighted(*a, **k):
    return nn.utils.parametrizations.weight_norm(nn.Conv1d(*a, **k))


@job
def codec_with_discriminators():
    unit = lambda c, d: Res(stack(Snake(c), weighted(c, c, 7, padding=3 * d, dilation=d), Snake(c), weighted(c, c, 1)))
    down = lambda c, s: stack(*[unit(c, d) for d in (1, 3, 9)], Snake(c), weighted(c, 2 * c, 2 * s, s, math.ceil(s / 2)))
    more = lambda c, s: stack(Snake(c), nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(c, c // 2, 2 * s, s, math.ceil(s / 2), output_padding=s % 2)), *[unit(c // 2, d) for d in (1, 3, 9)])
    enc = on(lambda: stack(weighted(1, 64, 7, padding=3), *[down(64 * 2**i, s) for i, s in enumerate((2, 4, 8, 8))], Snake(1024), weighted(1024, 1024, 3, padding=1)))
    dec = on(lambda: stack(weighted(1024, 1536, 7, padding=3), *[more(1536 // 2**i, s) for i, s in enumerate((8, 8, 4, 2))], Snake(96), weighted(96, 1, 7, padding=3), nn.Tanh()))
    bands = on(lambda: stack(*[stack(nn.Conv2d(i, 32, (3, 9), s, (1, 4)), nn.LeakyReLU(0.1)) for i, s in ((2, (1, 1)), (32, (1, 2)), (32, (1, 2)), (32, (1, 2)))], nn.Conv2d(32, 1, 3, 1, 1)))
    o = torch.optim.AdamW([*enc.parameters(), *dec.parameters(), *bands.parameters()], 1e-4)
    for _ in range(2):
        x = N(6, 1, 512 * 32)
        y = dec(enc(x))
        l = (y - x[..., : y.shape[-1]]).abs().mean()
        for w in (2048, 512):
            s = torch.stft(y.squeeze(1), w, w // 4, window=torch.hann_window(w, device=dev), return_complex=True)
            l = l + bands(torch.view_as_real(s).permute(0, 3, 2, 1)).square().mean()
        l.backward()
        o.step()
        o.zero_grad()


@job
def diffwave_vocoder():
    class Wave(nn.Module):
        def __init__(self, c=64, layers=20):
            super().__init__()
            self.first, self.up = nn.Conv1d(1, c, 1), stack(*[stack(nn.ConvTranspose2d(1, 1, (3, 32), (1, 16), (1, 8)), nn.LeakyReLU(0.4)) for _ in range(2)])
            self.a = nn.ModuleList([nn.Conv1d(c, 2 * c, 3, padding=2 ** (i % 10), dilation=2 ** (i % 10)) for i in range(layers)])
            self.b, self.mel, self.step = (nn.ModuleList([f() for _ in range(layers)]) for f in (lambda: nn.Conv1d(c, 2 * c, 1), lambda: nn.Conv1d(80, 2 * c, 1), lambda: nn.Linear(512, c)))
            self.last = stack(nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, 1, 1))

        def forward(self, x, mel, t):
            x, mel, total = F.relu(self.first(x)), self.up(mel[:, None])[:, 0], 0
            for a, b, f, s in zip(self.a, self.b, self.mel, self.step):
                gate, y = (a(x + s(t)[:, :, None]) + f(mel)).chunk(2, 1)
                y, skip = b(gate.sigmoid() * y.tanh()).chunk(2, 1)
                x, total = (x + y) / 2**0.5, total + skip
            return self.last(total)

    learn(Wave, lambda m: m(N(12, 1, 256 * 62), N(12, 80, 62), N(12, 512)).abs().mean(), 3, amp=HF16, scaler=True)


@job
def quartznet_ctc():
    def block(i, o, k):
        sep = lambda a, b, act: stack(nn.Conv1d(a, a, k, padding=k // 2, groups=a, bias=False), nn.Conv1d(a, b, 1, bias=False), nn.BatchNorm1d(b), act())
        return stack(Res(stack(*[sep(i if j == 0 else o, o, nn.ReLU if j < 4 else nn.Identity) for j in range(5)]), stack(nn.Conv1d(i, o, 1, bias=False), nn.BatchNorm1d(o))), nn.ReLU())

    def loss(m):
        y = m(N(16, 64, rng.choice([1001, 1207, 1503]))).permute(2, 0, 1).float().log_softmax(-1)
        return F.ctc_loss(y, T(16, 60, v=28) + 1, torch.full((16,), len(y)), torch.full((16,), 60))

    learn(lambda: stack(conv(64, 256, 33, 2, dims=1), *[block(i, o, k) for i, o, k in ((256, 256, 33), (256, 256, 39), (256, 512, 51), (512, 512, 63), (512, 512, 75))],
                        conv(512, 512, 87, d=2, g=512, dims=1), conv(512, 1024, 1, dims=1), nn.Conv1d(1024, 29, 1)), loss, 4, amp=BF)


@job
def ecapa_speakers():
    class Se2(nn.Module):
        def __init__(self, c, d):
            super().__init__()
            self.a, self.b, self.gate = conv(c, c, 1, dims=1), conv(c, c, 1, dims=1), Gate(c, 8, 1)
            self.parts = nn.ModuleList([conv(c // 8, c // 8, 3, d=d, dims=1) for _ in range(7)])

        def forward(self, x):
            y = list(self.a(x).chunk(8, 1))
            for i, f in enumerate(self.parts):
                y[i + 1] = f(y[i + 1] + (y[i] if i else 0))
            return x + self.gate(self.b(torch.cat(y, 1)))

    class Ecapa(nn.Module):
        def __init__(self, c=1024):
            super().__init__()
            self.first, self.blocks, self.mfa = conv(80, c, 5, dims=1), nn.ModuleList([Se2(c, d) for d in (2, 3, 4)]), nn.Conv1d(3 * c, 1536, 1)
            self.att, self.last, self.heads = stack(conv(4608, 128, 1, dims=1), nn.Tanh(), nn.Conv1d(128, 1536, 1)), nn.Linear(3072, 192), nn.Parameter(torch.randn(5994, 192))

        def forward(self, x):
            y, kept = self.first(x), []
            for f in self.blocks:
                y = f(y)
                kept.append(y)
            y = F.relu(self.mfa(torch.cat(kept, 1)))
            a = self.att(torch.cat([y, y.mean(2, keepdim=True).expand_as(y), y.std(2, keepdim=True).expand_as(y)], 1)).softmax(2)
            mean = (a * y).sum(2)
            e = self.last(torch.cat([mean, ((a * y * y).sum(2) - mean**2).clamp_min(1e-6).sqrt()], 1))
            return 30 * F.normalize(e) @ F.normalize(self.heads).T

    learn(Ecapa, lambda m: F.cross_entropy(m(N(128, 80, 302)), T(128, v=5994)), 3)


@job
def ecg_resnet_1d():
    block = lambda i, o, s: Res(stack(nn.BatchNorm1d(i), nn.ReLU(), nn.Conv1d(i, o, 15, s, 7, bias=False), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.2), nn.Conv1d(o, o, 15, 1, 7, bias=False)),
                                nn.Conv1d(i, o, 1, s, bias=False) if i != o or s > 1 else None)
    learn(lambda: stack(nn.Conv1d(12, 64, 15, padding=7, bias=False), *[stack(block(i, o, 4), block(o, o, 1)) for i, o in ((64, 128), (128, 196), (196, 256), (256, 320))], nn.Flatten(), nn.Linear(320 * 16, 6)),
          lambda m: F.binary_cross_entropy_with_logits(m(N(64, 12, 4096)), torch.ones(64, 6, device=dev)), 4)


@job
def stems_on_spectrograms():
    tfc = lambda c, f: Res(stack(*[conv(c, c) for _ in range(3)], nn.Linear(f, f // 16), nn.ReLU(), nn.Linear(f // 16, f), nn.ReLU()))

    class Tfc(nn.Module):
        def __init__(self, g=32):
            super().__init__()
            self.first, self.last = conv(4, g, 1), nn.Conv2d(g, 4, 1)
            self.a = nn.ModuleList([tfc(g * (i + 1), 1024 >> i) for i in range(4)])
            self.down = nn.ModuleList([nn.Conv2d(g * (i + 1), g * (i + 2), 2, 2) for i in range(4)])
            self.middle = tfc(g * 5, 64)
            self.up = nn.ModuleList([nn.ConvTranspose2d(g * (i + 2), g * (i + 1), 2, 2) for i in range(4)])
            self.b = nn.ModuleList([tfc(g * (i + 1), 1024 >> i) for i in range(4)])

        def forward(self, x):
            y, kept = self.first(x), []
            for a, d in zip(self.a, self.down):
                kept.append(a(y))
                y = d(kept[-1])
            y = self.middle(y)
            for u, b in zip(reversed(self.up), reversed(self.b)):
                y = b(u(y) * kept.pop())
            return self.last(y)

    learn(Tfc, lambda m: (m(N(3, 4, 128, 1024)) - 1).abs().mean(), 2, amp=HF16, scaler=True)


# ---- games, the weather, series
@job
def alphazero_19():
    m = on(lambda: stack(conv(17, 192), *[stack(Res(stack(conv(192, 192), conv(192, 192, act=nn.Identity))), nn.ReLU()) for _ in range(12)])).to(memory_format=torch.channels_last)
    policy, value = on(lambda: stack(conv(192, 2, 1), nn.Flatten(), nn.Linear(722, 362))), on(lambda: stack(conv(192, 1, 1), nn.Flatten(), nn.Linear(361, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh()))
    board = lambda n: N(n, 17, 19, 19).to(memory_format=torch.channels_last)
    with torch.no_grad(), torch.autocast("cuda", dtype=HF16):
        for n in (8, 1, 32):
            policy(m.eval()(board(n)))

    def loss(m):
        y = m(board(512))
        return F.cross_entropy(policy(y), T(512, v=362)) + value(y).square().mean()

    fit(m, loss, 3, SGD, amp=HF16, scaler=True)


@job
def impala_vtrace():
    res = lambda c: Res(stack(nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1)))

    class Impala(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = stack(*[stack(nn.Conv2d(i, o, 3, padding=1), nn.MaxPool2d(3, 2, 1), res(o), res(o)) for i, o in ((4, 16), (16, 32), (32, 32))], nn.ReLU(), nn.Flatten(), nn.Linear(3872, 256))
            self.rnn, self.p, self.v = nn.LSTM(257, 256), nn.Linear(256, 15), nn.Linear(256, 1)

        def forward(self, x, r):
            t, b = x.shape[:2]
            y = self.rnn(torch.cat([self.f(x.flatten(0, 1).float() / 255).view(t, b, -1), r[..., None]], -1))[0]
            return self.p(y), self.v(y)[..., 0]

    def loss(m):
        t, b = 20, 32
        p, v = m(torch.randint(0, 255, (t + 1, b, 4, 84, 84), device=dev, dtype=torch.uint8), N(t + 1, b))
        rho = (torch.rand(t, b, device=dev) + 0.5).clamp(max=1)
        delta = rho * (0.1 + 0.99 * v[1:].detach() - v[:-1].detach())
        acc, out = torch.zeros(b, device=dev), []
        for i in reversed(range(t)):
            acc = delta[i] + 0.99 * rho[i] * acc
            out.append(acc)
        adv = torch.stack(out[::-1])
        logp = p[:-1].log_softmax(-1)
        return -(logp.gather(-1, T(t, b, 1, v=15))[..., 0] * adv).mean() + (adv + v[:-1].detach() - v[:-1]).square().mean() + 0.01 * (logp.exp() * logp).sum(-1).mean()

    learn(Impala, loss, 4, lambda p: torch.optim.RMSprop(p, 1e-4, eps=0.01))


@job
def dreamer_world_model():
    class World(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc = stack(*[stack(nn.Conv2d(i, o, 4, 2), nn.ELU()) for i, o in ((3, 48), (48, 96), (96, 192), (192, 384))], nn.Flatten())
            self.dec = stack(nn.Linear(2048 + 1024, 1536), nn.Unflatten(1, (1536, 1, 1)), *[stack(nn.ConvTranspose2d(i, o, k, 2), nn.ELU() if o > 3 else nn.Identity()) for i, o, k in ((1536, 192, 5), (192, 96, 5), (96, 48, 6), (48, 3, 6))])
            self.cell, self.inp, self.post, self.prior = nn.GRUCell(1024, 2048), nn.Linear(1024 + 6, 1024), nn.Linear(2048 + 1536, 1024), nn.Linear(2048, 1024)

        def forward(self, x, a):
            b, t = x.shape[:2]
            e, h, z, out, kl = self.enc(x.flatten(0, 1)).view(b, t, -1), x.new_zeros(b, 2048), x.new_zeros(b, 1024), [], 0
            for i in range(t):
                h = self.cell(F.elu(self.inp(torch.cat([z, a[:, i]], 1))), h)
                q, p = (f.view(b, 32, 32) for f in (self.post(torch.cat([h, e[:, i]], 1)), self.prior(h)))
                hard = F.one_hot(q.softmax(-1).argmax(-1), 32).float()
                z = (hard + q.softmax(-1) - q.softmax(-1).detach()).flatten(1)
                kl = kl + (q.softmax(-1) * (q.log_softmax(-1) - p.log_softmax(-1))).sum((1, 2)).mean()
                out.append(torch.cat([h, z], 1))
            return (self.dec(torch.stack(out, 1).flatten(0, 1)) - x.flatten(0, 1)).square().mean() + 0.1 * kl / t

    learn(World, lambda m: m(N(24, 32, 3, 64, 64), N(24, 32, 6)), 2)


@job
def cells_that_grow():
    from torch.utils.checkpoint import checkpoint

    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(48, 128, 1), nn.Conv2d(128, 16, 1, bias=False)
            sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
            self.register_buffer("k", torch.stack([torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]]), sobel, sobel.T]).repeat(16, 1, 1)[:, None])

        def step(self, x):
            alive = F.max_pool2d(x[:, 3:4], 3, 1, 1) > 0.1
            x = x + self.b(F.relu(self.a(F.conv2d(x, self.k, padding=1, groups=16)))) * (torch.rand_like(x[:, :1]) < 0.5)
            return x * alive

        def forward(self, x):
            for _ in range(8):
                x = checkpoint(lambda x: functools.reduce(lambda y, _: self.step(y), range(6), x), x, use_reentrant=False)
            return x

    learn(Cells, lambda m: (m(torch.rand(16, 16, 72, 72, device=dev))[:, :4] - 0.5).square().mean(), 3)


@job
def era5_circular_unet():
    class Globe(nn.Module):
        def __init__(self, c=(64, 128, 256)):
            super().__init__()
            k = dict(kernel_size=3, padding=1, padding_mode="circular")
            self.first = nn.Conv2d(69, c[0], **k)
            self.down = nn.ModuleList([stack(nn.GroupNorm(8, a), nn.GELU(), nn.Conv2d(a, b, stride=2, **k), nn.GELU(), nn.Conv2d(b, b, **k)) for a, b in zip(c, c[1:])])
            self.up = nn.ModuleList([nn.Conv2d(a + b, a, **k) for a, b in zip(c[-2::-1], c[:0:-1])])
            self.last = nn.Conv2d(c[0], 69, 1)

        def forward(self, x):
            kept = [self.first(x)]
            for f in self.down:
                kept.append(f(kept[-1]))
            y = kept.pop()
            for f in self.up:
                y = F.gelu(f(torch.cat([up(y, kept[-1]), kept.pop()], 1)))
            return self.last(y)

    w = torch.linspace(0.1, 1, 361, device="cuda").view(1, 1, -1, 1)
    learn(Globe, lambda m: (w * (m(N(2, 69, 361, 720)) - 1).square()).mean(), 3, amp=BF)


@job
def mri_unrolled():
    unet = lambda: atscale.Unet([18, 36, 72, 144], 2, 2, nn.InstanceNorm2d, functools.partial(nn.LeakyReLU, 0.2), 2)

    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.nets, self.eta = nn.ModuleList([unet() for _ in range(5)]), nn.Parameter(torch.ones(5))

        def forward(self, k, sens, mask):
            y = k
            for net, eta in zip(self.nets, self.eta):
                image = (torch.fft.ifft2(y, norm="ortho") * sens.conj()).sum(1)
                out = net(torch.view_as_real(image).permute(0, 3, 1, 2).contiguous())
                out = out[-1] if isinstance(out, (list, tuple)) else out
                image = torch.view_as_complex(out.permute(0, 2, 3, 1).contiguous())
                y = y - eta * mask * (y - k) - torch.fft.fft2(image[:, None] * sens, norm="ortho")
            return torch.fft.ifft2(y, norm="ortho").abs().square().sum(1).sqrt()

    c = lambda: torch.randn(2, 12, 320, 320, device=dev, dtype=torch.complex64)
    learn(Unrolled, lambda m: (m(c(), c(), (torch.rand(1, 1, 1, 320, device=dev) > 0.5).float()) - 1).abs().mean(), 2)


@job
def timesnet_periods():
    class Inception(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.f = nn.ModuleList([nn.Conv2d(i, o, 2 * j + 1, padding=j) for j in range(6)])

        def forward(self, x):
            return torch.stack([f(x) for f in self.f], -1).mean(-1)

    class Times(nn.Module):
        def __init__(self, d=64):
            super().__init__()
            self.first, self.blocks, self.last = nn.Conv1d(7, d, 3, padding=1, padding_mode="circular", bias=False), nn.ModuleList([stack(Inception(d, d), nn.GELU(), Inception(d, d)) for _ in range(2)]), nn.Linear(d, 7)

        def forward(self, x):
            y = self.first(x.transpose(1, 2)).transpose(1, 2)
            for f in self.blocks:
                strength, res = torch.fft.rfft(y, dim=1).abs().mean(-1), []
                for period in (96, 24, 7):
                    n = -(-y.shape[1] // period) * period
                    p = F.pad(y, (0, 0, 0, n - y.shape[1])).reshape(len(y), n // period, period, -1).permute(0, 3, 1, 2).contiguous()
                    res.append(f(p).permute(0, 2, 3, 1).reshape(len(y), n, -1)[:, : y.shape[1]])
                y = y + (torch.stack(res, -1) * strength[:, 1:4].softmax(1)[:, None, None]).sum(-1)
            return self.last(y)

    learn(Times, lambda m: (m(N(32, 192, 7)) - 1).square().mean(), 3)


@job
def phi4_flows():
    class Coupling(nn.Module):
        def __init__(self, odd):
            super().__init__()
            self.odd, self.f = odd, stack(nn.Conv2d(1, 16, 3, padding=1, padding_mode="circular"), nn.LeakyReLU(), nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular"), nn.LeakyReLU(), nn.Conv2d(16, 2, 3, padding=1, padding_mode="circular"), nn.Tanh())

        def forward(self, x, logj):
            i = torch.arange(x.shape[-1], device=dev)
            mask = ((i[:, None] + i[None] + self.odd) % 2).float()
            s, t = self.f((x * mask)[:, None]).unbind(1)
            return x * mask + (1 - mask) * (x * s.exp() + t), logj - ((1 - mask) * s).sum((1, 2))

    class Flows(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.ModuleList([Coupling(i % 2) for i in range(16)])

        def forward(self, z):
            x, logj = z, -0.5 * z.square().sum((1, 2))
            for f in self.f:
                x, logj = f(x, logj)
            action = sum((x * (x - x.roll(1, d))).sum((1, 2)) for d in (1, 2)) - 2 * x.square().sum((1, 2)) + 8 * x.pow(4).sum((1, 2))
            return (logj + action).mean()

    learn(Flows, lambda m: m(N(1024, 16, 16)), 4)


# ---- language
@job
def chunked_prefill_cache():
    m = hf("Llama", hidden_size=4096, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336, vocab_size=128256, max_position_embeddings=65536).eval()
    from transformers import DynamicCache

    cache = DynamicCache()
    with torch.no_grad():
        for _ in range(6):
            m(T(1, 2048, v=128000), past_key_values=cache, logits_to_keep=1)
        for _ in range(4):
            m(T(1, 1, v=128000), past_key_values=cache, logits_to_keep=1)


@job
def lfm2_short_convolutions():
    m = hf("Lfm2", hidden_size=1024, num_hidden_layers=10, num_attention_heads=16, num_key_value_heads=8, intermediate_size=4096, vocab_size=65536, full_attn_idxs=[2, 5, 8])
    m.config.use_cache = False
    fit(m, lm(65000, 4, 1024), 3)


@job
def qwen3_next_delta_rule():
    m = hf("Qwen3Next", hidden_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=128, intermediate_size=2816, vocab_size=65536, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=512,
           shared_expert_intermediate_size=512, linear_num_value_heads=16, linear_num_key_heads=8)
    m.config.use_cache = False
    fit(m, lm(65000, 2, 512), 2, SGD)


@job
def dora_and_orpo():
    from peft import LoraConfig, get_peft_model

    m = llama(2048, 8, 16, 8, 6144, 151936)
    m.config.use_cache = False
    m = get_peft_model(m, LoraConfig(r=16, use_dora=True, target_modules=["q_proj", "v_proj", "up_proj", "down_proj"]))

    def loss(m):
        x = T(4, 512, v=150000)
        logp = torch.gather(m(x).logits[:, :-1].float().log_softmax(-1), 2, x[:, 1:, None])[..., 0].mean(1)
        odds = logp - torch.log1p(-logp.exp().clamp(max=0.999))
        return -logp[:2].mean() - 0.1 * F.logsigmoid(odds[:2] - odds[2:]).mean()

    fit(m, loss, 3)


@job
def sophia_curvature():
    class Sophia:
        def __init__(self, ps):
            self.ps, self.m, self.h = ps, [torch.zeros_like(p) for p in ps], [torch.zeros_like(p) for p in ps]

        def step(self, gs, hs=None):
            torch._foreach_mul_(self.m, 0.96)
            torch._foreach_add_(self.m, gs, alpha=0.04)
            if hs:
                torch._foreach_lerp_(self.h, hs, 0.01)
            for p, m, h in zip(self.ps, self.m, self.h):
                p.data.add_((m / (h * 0.05).clamp_min(1e-12)).clamp(-1, 1), alpha=-1e-4)

    m = hf("GPT2", torch.float32, "GPT2LMHeadModel", n_embd=768, n_layer=8, n_head=12, attn_implementation="eager")
    m.config.use_cache = False
    ps = list(m.parameters())
    o = Sophia(ps)
    for step in range(3):
        x = T(4, 512, v=50000)
        l = m(input_ids=x, labels=x).loss
        gs = torch.autograd.grad(l, ps, create_graph=step == 0)
        hs = None
        if step == 0:
            us = [torch.randn_like(p) for p in ps]
            hs = [u * v for u, v in zip(us, torch.autograd.grad(sum((g * u).sum() for g, u in zip(gs, us)), ps))]
        o.step([g.detach() for g in gs], hs)


@job
def galore_projections():
    m = llama(1024, 12, 16, 16, 2816, 32000, torch.float32)
    m.config.use_cache = False
    ps, state = [p for p in m.parameters() if p.requires_grad], {}
    for step in range(3):
        with torch.autocast("cuda", dtype=BF):
            x = T(8, 512)
            l = m(x, labels=x).loss
        l.backward()
        for p in ps:
            g = p.grad
            s = state.setdefault(p, {})
            if p.dim() == 2 and min(p.shape) >= 1024 and max(p.shape) < 8192:
                if "P" not in s:
                    s["P"] = torch.linalg.qr(g.T @ (g @ N(g.shape[1], 128)))[0]
                g = g @ s["P"]
            s["m"] = g * 0.1 + s["m"] * 0.9 if "m" in s else g * 0.1
            s["v"] = g * g * 0.05 + s["v"] * 0.95 if "v" in s else g * g * 0.05
            u = s["m"] / (s["v"].sqrt() + 1e-8)
            p.data.add_(u @ s["P"].T if "P" in s else u, alpha=-1e-4)
            p.grad = None


@job
def sparse_autoencoder_topk():
    lm_ = llama(2048, 4, 16, 8, 5632, 32000).eval().requires_grad_(False)
    enc, dec = on(nn.Linear, 2048, 32768), on(nn.Linear, 32768, 2048)
    o = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-4, fused=True)
    for _ in range(3):
        with torch.no_grad():
            h = lm_(T(8, 512), output_hidden_states=True).hidden_states[2].flatten(0, 1).float()
        z = enc(h - dec.bias)
        top = z.topk(64, -1)
        y = torch.zeros_like(z).scatter(-1, top.indices, top.values.relu())
        l = (dec(y) - h).square().mean() / h.var()
        l.backward()
        o.step()
        o.zero_grad()
        dec.weight.data.div_(dec.weight.data.norm(dim=0, keepdim=True))


@job
def colbert_gradcache():
    m = hf("Bert", torch.float32, "BertModel", hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
    head = on(nn.Linear, 768, 128, bias=False)
    o = torch.optim.AdamW([*m.parameters(), *head.parameters()], 1e-5)
    enc = lambda x: F.normalize(head(m(input_ids=x).last_hidden_state), dim=-1)
    for _ in range(2):
        q, d = T(64, 32, v=30000), T(64, 180, v=30000)
        with torch.no_grad(), torch.autocast("cuda", dtype=BF):
            reps = [torch.cat([enc(c) for c in x.split(16)]).float() for x in (q, d)]
        a, b = (r.requires_grad_() for r in reps)
        score = torch.einsum("qtd,ksd->qkts", a, b).amax(-1).sum(-1)
        F.cross_entropy(score / 0.05, torch.arange(64, device=dev)).backward()
        for x, r in ((q, a), (d, b)):
            for c, g in zip(x.split(16), r.grad.split(16)):
                with torch.autocast("cuda", dtype=BF):
                    y = enc(c)
                y.float().backward(g)
        o.step()
        o.zero_grad()


@job
def decision_transformer_frames():
    m = hf("DecisionTransformer", torch.float32, "DecisionTransformerModel", state_dim=128, act_dim=6, hidden_size=512, n_layer=8, n_head=8, max_ep_len=4096)
    f = on(lambda: stack(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 128), nn.Tanh()))

    def loss(m):
        n, t = 32, 30
        s = f(N(n * t, 4, 84, 84)).view(n, t, 128)
        out = m(states=s, actions=N(n, t, 6), rewards=N(n, t, 1), returns_to_go=N(n, t, 1), timesteps=T(n, t, v=4000), attention_mask=torch.ones(n, t, device=dev))
        return out.action_preds.square().mean()

    fit(m, loss, 3)


# ---- science, graphs, recommendations
@job
def kfac_classifier():
    m = on(lambda: stack(nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1000)))
    ins, outs = {}, {}
    for l in m:
        if isinstance(l, nn.Linear):
            l.register_forward_hook(lambda l, a, y: ins.__setitem__(l, a[0].detach()))
            l.register_full_backward_hook(lambda l, gi, go: outs.__setitem__(l, go[0].detach()))
    A, G = {}, {}
    for _ in range(3):
        F.cross_entropy(m(N(512, 3072)), T(512, v=1000)).backward()
        for l in ins:
            a, g = ins[l], outs[l] * 512
            A[l] = 0.95 * A[l] + 0.05 * a.T @ a / 512 if l in A else a.T @ a / 512
            G[l] = 0.95 * G[l] + 0.05 * g.T @ g / 512 if l in G else g.T @ g / 512
            eye = lambda x: 0.1 * torch.eye(len(x), device=dev)
            ca, cg = torch.linalg.cholesky(A[l] + eye(A[l])), torch.linalg.cholesky(G[l] + eye(G[l]))
            step = torch.cholesky_solve(l.weight.grad, cg) @ torch.cholesky_inverse(ca)
            l.weight.data.add_(step, alpha=-1e-3)
        m.zero_grad(set_to_none=True)


@job
def lennard_jones_md():
    x, v = torch.rand(6000, 3, device=dev) * 20, torch.zeros(6000, 3, device=dev)
    for _ in range(4):
        x.requires_grad_()
        d = x[:, None] - x[None]
        r2 = ((d - 20 * (d / 20).round()).square().sum(-1) + torch.eye(6000, device=dev) * 1e6).clamp_min(0.8)
        e = (r2.pow(-6) - r2.pow(-3)).sum() * 2
        (f,) = torch.autograd.grad(e, x)
        v = 0.99 * v - 1e-4 * f.clamp(-100, 100)
        x = (x.detach() + 1e-3 * v) % 20


@job
def lattice_boltzmann():
    c = torch.tensor([[i, j, k] for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if abs(i) + abs(j) + abs(k) <= 2], device=dev)
    w = torch.tensor([[1 / 3, 1 / 18, 1 / 36][int(v)] for v in c.abs().sum(1).cpu()], device=dev)
    f = w.view(-1, 1, 1, 1) * torch.ones(19, 160, 128, 128, device=dev)
    wall = torch.zeros(160, 128, 128, dtype=torch.bool, device=dev)
    wall[40:60, 50:70, 50:70] = True
    for _ in range(4):
        rho = f.sum(0)
        u = torch.einsum("qxyz,qd->dxyz", f, c.float()) / rho
        u[0] += 1e-4
        cu = torch.einsum("qd,dxyz->qxyz", c.float(), u)
        eq = w.view(-1, 1, 1, 1) * rho * (1 + 3 * cu + 4.5 * cu.square() - 1.5 * u.square().sum(0))
        f = f - (f - eq) / 0.6
        f = torch.stack([torch.roll(f[i], tuple(c[i].tolist()), (0, 1, 2)) for i in range(19)])
        f = torch.where(wall, f.flip(0), f)


@job
def painn_forces():
    class Painn(nn.Module):
        def __init__(self, d=128, layers=4):
            super().__init__()
            self.emb = nn.Embedding(100, d)
            self.phi = nn.ModuleList([stack(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 3 * d)) for _ in range(layers)])
            self.w = nn.ModuleList([nn.Linear(20, 3 * d) for _ in range(layers)])
            self.u, self.v = (nn.ModuleList([nn.Linear(d, d, bias=False) for _ in range(layers)]) for _ in "uv")
            self.a = nn.ModuleList([stack(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, 3 * d)) for _ in range(layers)])
            self.out = stack(nn.Linear(d, d // 2), nn.SiLU(), nn.Linear(d // 2, 1))

        def forward(self, z, x, i, j):
            r = x[j] - x[i]
            dist = (r.square().sum(-1) + 1e-8).sqrt()
            rbf = (torch.arange(1, 21, device=dev) * math.pi * dist[:, None] / 5).sin() / dist[:, None]
            s, v = self.emb(z), torch.zeros(len(z), 3, self.emb.embedding_dim, device=dev)
            for phi, w, a, u, vv in zip(self.phi, self.w, self.a, self.u, self.v):
                one, two, three = (phi(s)[j] * w(rbf)).chunk(3, -1)
                s = s.index_add(0, i, one)
                v = v.index_add(0, i, v[j] * two[:, None] + three[:, None] * (r / dist[:, None])[:, :, None])
                uv, vn = u(v), (vv(v).square().sum(1) + 1e-8).sqrt()
                p, q, t = a(torch.cat([s, vn], -1)).chunk(3, -1)
                s, v = s + p + q * (uv * v).sum(1), v + uv * t[:, None]
            return self.out(s).sum()

    def loss(m):
        x = (torch.rand(2000, 3, device=dev) * 12).requires_grad_()
        i, j = T(40000, v=2000), T(40000, v=2000)
        e = m(T(2000, v=90), x, i, j)
        (f,) = torch.autograd.grad(-e, x, create_graph=True)
        return e.square() * 1e-4 + f.square().mean()

    learn(Painn, loss, 3)


@job
def lightgcn_bpr():
    users, items, d = 30000, 40000, 64
    i, j = T(800000, v=users), T(800000, v=items) + users
    edges = torch.stack([torch.cat([i, j]), torch.cat([j, i])])
    a = torch.sparse_coo_tensor(edges, torch.full((1600000,), 0.05, device=dev), (users + items,) * 2).coalesce()
    e = on(nn.Embedding, users + items, d)

    def loss(m):
        x, out = m.weight, [m.weight]
        for _ in range(3):
            x = torch.sparse.mm(a, x)
            out.append(x)
        y = torch.stack(out).mean(0)
        u, p, n = y[T(8192, v=users)], y[T(8192, v=items) + users], y[T(8192, v=items) + users]
        return F.softplus((u * (n - p)).sum(1)).mean()

    fit(e, loss, 3)


@job
def gps_graph_transformer():
    from torch_geometric.nn import GINEConv, GPSConv

    class Gps(nn.Module):
        def __init__(self, d=256, layers=5):
            super().__init__()
            mlp = lambda: stack(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
            self.emb, self.edge, self.pe, self.head = nn.Embedding(28, d - 20), nn.Embedding(4, d), nn.Linear(20, 20), nn.Linear(d, 1)
            self.f = nn.ModuleList([GPSConv(d, GINEConv(mlp()), heads=4, attn_kwargs={"dropout": 0.5}) for _ in range(layers)])

        def forward(self, x, pe, e, a, batch):
            y, a = torch.cat([self.emb(x), self.pe(pe)], 1), self.edge(a)
            for f in self.f:
                y = f(y, e, batch, edge_attr=a)
            return self.head(torch.zeros(64, y.shape[1], device=dev, dtype=y.dtype).index_add(0, batch, y))

    def loss(m):
        n = 64 * 30
        batch = torch.arange(64, device=dev).repeat_interleave(30)
        e = T(2, 4 * n, v=30) + 30 * T(1, 4 * n, v=64)
        return m(T(n, v=28), N(n, 20), e, T(4 * n, v=4), batch).abs().mean()

    learn(Gps, loss, 3)


@job
def sinkhorn_images():
    x = torch.rand(4096, 3, device=dev, requires_grad=True)
    y = torch.rand(6000, 3, device=dev)
    o = torch.optim.SGD([x], 1.0)
    for _ in range(3):
        c = torch.cdist(x, y).square() / 0.01
        f, g = torch.zeros(4096, device=dev), torch.zeros(6000, device=dev)
        for _ in range(12):
            f = -torch.logsumexp(g[None] - c - math.log(6000), 1)
            g = -torch.logsumexp(f[:, None] - c - math.log(4096), 0)
        (f.mean() + g.mean()).backward()
        o.step()
        o.zero_grad()


@job
def triplane_renders():
    planes = nn.Parameter(0.1 * N(3, 32, 256, 256))
    mlp = on(lambda: stack(nn.Linear(32, 64), nn.Softplus(), nn.Linear(64, 4)))
    fine = on(lambda: stack(conv(3, 64), conv(64, 64), nn.Conv2d(64, 12, 3, padding=1), nn.PixelShuffle(2)))
    o = torch.optim.Adam([planes, *mlp.parameters(), *fine.parameters()], 1e-3)
    for _ in range(3):
        pts = torch.rand(64 * 64, 48, 3, device=dev) * 2 - 1
        grid = torch.stack([pts[..., [0, 1]], pts[..., [0, 2]], pts[..., [1, 2]]])
        f = F.grid_sample(planes, grid, align_corners=False).mean(0).permute(1, 2, 0)
        out = mlp(f)
        alpha = 1 - (-F.softplus(out[..., 3]) * 0.05).exp()
        t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        rgb = ((alpha * t)[..., None] * out[..., :3].sigmoid()).sum(1)
        (fine(rgb.T.reshape(1, 3, 64, 64)) - 0.5).abs().mean().backward()
        o.step()
        o.zero_grad()


if __name__ == "__main__":
    main()
