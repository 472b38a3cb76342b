# SPDX-License-Identifier: Apache-2.0
"""Images, volumes and films: convolutions, detection, segmentation, diffusion."""
import random

from common import *

try:
    import torchvision
except ImportError:
    torchvision = None


def classify(n, side, nhwc=False, classes=1000):
    return lambda m: F.cross_entropy(m(images(n, side, nhwc)), T(n, v=classes), label_smoothing=0.1)


def df(name, dt=FP, **k):
    import diffusers

    return on(getattr(diffusers, name), dt=dt, **k)


def noised(s, x):
    e = torch.randn_like(x)
    t = torch.randint(0, 1000, (len(x),), device=dev)
    return s.add_noise(x, e, t), e, t


@program("convolutions in half precision with a gradient scaler", "torchvision")
def resnet152_fp16():
    m = on(torchvision.models.resnet152)
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=1000)), 3, amp=HF16,
        scaler=True, opt=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))


@program("channels last in three dimensions", "torchvision")
def r2plus1d_cl3d():
    m = on(torchvision.models.video.r2plus1d_18).to(memory_format=torch.channels_last_3d)
    fit(
        m, lambda m: F.cross_entropy(
            m(N(4, 3, 16, 112, 112).to(memory_format=torch.channels_last_3d)), T(4, v=400)), 3,
        amp=HF16, scaler=True)


@program("recurrent refinement of optical flow", "torchvision")
def raft_small():
    m = on(torchvision.models.optical_flow.raft_small)
    fit(
        m, lambda m: sum((f - 1).abs().mean()
                         for f in m(N(2, 3, 256, 384), N(2, 3, 256, 384), num_flow_updates=6)), 2,
        amp=BF)


@program("a student and an averaged teacher on crops of two sizes", "transformers")
def dinov2_multicrop():
    m = hf2("Dinov2", "Dinov2Model", hidden_size=768, num_hidden_layers=8)
    t = deepcopy(m).requires_grad_(False)
    head = on(nn.Linear, 768, 8192)
    th = on(nn.Linear, 768, 8192)

    def loss(m):
        g, l = N(16, 3, 224, 224), N(48, 3, 98, 98)
        with torch.no_grad():
            q = (th(t(g).pooler_output) / 0.04).softmax(-1)
        s = head(m(g).pooler_output), head(m(l).pooler_output)
        L = -(q * (s[0] / 0.1).log_softmax(-1)).sum(-1).mean() - (
            q.repeat(3, 1) * (s[1] / 0.1).log_softmax(-1)).sum(-1).mean()
        with torch.no_grad():
            for a, b in zip(m.parameters(), t.parameters()):
                b.mul_(0.996).add_(a.detach(), alpha=0.004)
        return L

    fit(m, loss, 3, amp=BF)


@program("deformable convolutions and region pooling", "torchvision")
def dcn_roi():
    class D(Parts):
        def forward(s, x):
            o = s.o(x)
            return torchvision.ops.roi_align(
                s.d(x, o[:, :18], torch.sigmoid(o[:, 18:])),
                [torch.tensor([[0.0, 0, 30, 30], [5, 5, 40, 50]], device=dev)] * x.size(0), 7)

    m = on(lambda: D(o=nn.Conv2d(64, 27, 3, padding=1),
                     d=torchvision.ops.DeformConv2d(64, 64, 3, padding=1)))
    fit(m, lambda m: m(N(4, 64, 64, 80)).square().mean(), 3)


@program("TorchScript", "torchvision")
def jit_script():
    m = torch.jit.script(on(torchvision.models.mobilenet_v3_large)).train()
    fit(m, lambda m: F.cross_entropy(m(N(32, 3, 224, 224)), T(32, v=1000)), 3)
    t = torch.jit.trace(on(torchvision.models.resnet18).eval(), N(1, 3, 224, 224))
    t = torch.jit.freeze(t.eval())
    with torch.no_grad():
        for n in (1, 4, 9):
            t(N(n, 3, 224, 224))


@program("cudnn.benchmark", "timm")
def resnet50_benchmark():
    torch.backends.cudnn.benchmark = True
    fit(net("resnet50", True), classify(128, 224, True), 4, SGD, amp=BF, clip=False)


@program("depthwise convolutions", "timm")
def efficientnet_b7():
    fit(net("efficientnet_b7"), classify(6, 600), 2,
        lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.9), amp=BF)


@program("augmentation on the card", "torchvision", "timm")
def gpu_augment_mixup():
    from torchvision.transforms import v2

    m = net("resnet34", True)
    a = v2.Compose([
        v2.RandomResizedCrop(224, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.RandomErasing(0.25),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    ])
    random.seed(1)
    mix = v2.RandomChoice([v2.MixUp(num_classes=1000), v2.CutMix(num_classes=1000)])

    def loss(m):
        x, y = mix(a(torch.randint(0, 255, (48, 3, 288, 288), device=dev, dtype=torch.uint8)),
                   T(48, v=1000))
        return F.cross_entropy(m(x.to(memory_format=torch.channels_last)), y)

    fit(m, loss, 3, SGD, amp=BF)


@program("volumes with 5x5x5 filters")
def vnet_volumes():
    v = lambda i, o: stack(nn.Conv3d(i, o, 5, padding=2), nn.BatchNorm3d(o), nn.PReLU(o))

    class Vnet(nn.Module):
        def __init__(self, c=(16, 32, 64, 128, 256)):
            super().__init__()
            self.first = nn.Conv3d(1, 16, 5, padding=2)
            self.down = nn.ModuleList([nn.Conv3d(a, b, 2, 2) for a, b in zip(c, c[1:])])
            self.a = nn.ModuleList(
                [stack(*[v(b, b) for _ in range(n)]) for b, n in zip(c[1:], (2, 3, 3, 3))])
            self.up = nn.ModuleList(
                [nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(c[-2::-1], c[:0:-1])])
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

    fit(on(Vnet), loss, 2, amp=HF16, scaler=True)


@program("LBFGS over the pixels of an image", "torchvision")
def style_transfer_lbfgs():
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
        l = sum(
            (a - b).square().sum()
            for a, b in zip(features(x), style)) * 1e3 + (x[..., 1:] - x[..., :-1]).square().mean()
        l.backward()
        return l

    for _ in range(2):
        o.step(closure)


@program("fake quantization", "torchvision")
def qat_resnet18():
    m = on(torchvision.models.resnet18)
    for c in [c for c in m.modules() if isinstance(c, nn.Conv2d)]:

        def quantized(self, args):
            w = self.weight
            scale = w.detach().abs().amax((1, 2, 3)) / 127 + 1e-8
            q = torch.fake_quantize_per_channel_affine(
                w, scale, torch.zeros(len(scale), dtype=torch.int32, device=dev), 0, -127, 127)
            return (F.conv2d(args[0], q, self.bias, self.stride, self.padding, self.dilation,
                             self.groups),)

        c.register_forward_hook(lambda self, args, _: torch.fake_quantize_per_tensor_affine(
            quantized(self, args)[0], 0.05, 0, -128, 127))
    fit(m, classify(64, 224), 2, SGD)


@program("panoptic masks in half precision", "transformers", "scipy")
def maskformer_swin():
    m = hf2("MaskFormer", "MaskFormerForInstanceSegmentation", num_labels=133)

    def batch():
        return dict(
            pixel_values=images(2, 512),
            mask_labels=[(torch.rand(k, 512, 512, device=dev) > 0.7).float() for k in (5, 9)],
            class_labels=[T(k, v=133) for k in (5, 9)])

    fit(m, lambda m: m(**batch()).loss, 2, adamw(1e-4), amp=HF16, scaler=True)


@program("training of Stable Diffusion with averaged weights", "diffusers", "transformers")
def sd15_trains_with_ema():
    from diffusers import DDPMScheduler
    from diffusers.training_utils import EMAModel

    u = df("UNet2DConditionModel", sample_size=64, cross_attention_dim=768)
    v = df("AutoencoderKL", HF16, block_out_channels=(128, 256, 512, 512),
           down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
           layers_per_block=2, latent_channels=4, sample_size=512).requires_grad_(False)
    w = hf2("CLIPText", "CLIPTextModel", HF16, hidden_size=768, intermediate_size=3072,
            num_hidden_layers=12, num_attention_heads=12).requires_grad_(False)
    ema = EMAModel(u.parameters(), decay=0.999, model_cls=type(u), model_config=u.config)
    s = DDPMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")

    def loss(m):
        with torch.no_grad():
            z = v.encode(N(4, 3, 512, 512, dt=HF16)).latent_dist.sample() * 0.18215
            h = w(T(4, 77, v=49407))[0]
        x, e, k = noised(s, z.float())
        return F.mse_loss(m(x, k, h).sample.float(), e)

    fit(u, loss, 2, adamw(), amp=HF16, scaler=True, accum=2)
    ema.step(u.parameters())
    ema.store(u.parameters())
    ema.copy_to(u.parameters())
    with torch.no_grad(), torch.autocast("cuda", HF16):
        loss(u)
    ema.restore(u.parameters())
    fit(u, loss, 1, adamw(), amp=HF16, scaler=True)


@program("inference of many sizes", "timm")
def serve_shapes():
    m = net("convnext_base", True).half().eval()
    with torch.inference_mode():
        for _ in range(25):
            n, side = rng.choice([1, 2, 4, 7, 8, 16, 23, 32]), rng.choice([192, 224, 256, 288, 320])
            m(images(n, side, True, HF16))


@program("a GAN with a gradient penalty and spectral norms")
def wgan_gp_spectral():
    sn = nn.utils.parametrizations.spectral_norm
    double = lambda i: [nn.BatchNorm2d(i), nn.ReLU(), nn.Upsample(scale_factor=2),
                        nn.Conv2d(i, i // 2, 3, 1, 1)]
    halve = lambda i, o: [sn(nn.Conv2d(i, o, 4, 2, 1)), nn.LeakyReLU(0.2)]
    g = on(lambda: nn.Sequential(
        nn.Linear(128, 512 * 16), nn.Unflatten(1, (512, 4, 4)), *double(512), *double(256),
        *double(128), *double(64), nn.Conv2d(32, 3, 3, 1, 1), nn.Tanh()))
    d = on(lambda: nn.Sequential(
        *halve(3, 64), *halve(64, 128), *halve(128, 256), *halve(256, 512), nn.Flatten(),
        sn(nn.Linear(512 * 16, 1))))
    a = torch.optim.Adam(g.parameters(), 1e-4, (0.0, 0.9))
    b = torch.optim.Adam(d.parameters(), 1e-4, (0.0, 0.9))
    for i in range(6):
        x, y = images(64, 64), g(N(64, 128))
        if i % 3 == 2:
            (-d(y).mean()).backward()
            a.step()
        else:
            t = torch.rand(64, 1, 1, 1, device=dev)
            z = (t * x + (1 - t) * y.detach()).requires_grad_()
            (r,) = torch.autograd.grad(d(z).sum(), z, create_graph=True)
            (d(y.detach()).mean() - d(x).mean()
             + 10 * (r.flatten(1).norm(2, 1) - 1).square().mean()).backward()
            b.step()
        a.zero_grad()
        b.zero_grad()


@program("denoising of pictures of many sizes")
def unet_of_many_sizes():
    class Level(nn.Module):
        def __init__(s, i, o, attends):
            super().__init__()
            s.a, s.b = (stack(nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, o, 3, padding=1))
                        for c in (i, o))
            s.skip, s.mix = nn.Conv2d(i, o, 1), Attn(o, 8, False) if attends else None

        def forward(s, x):
            x = s.skip(x) + s.b(s.a(x))
            return x + s.mix(x.flatten(2).mT).mT.view_as(x) if s.mix else x

    class Unet(nn.Module):
        def __init__(s, c=(128, 256, 512, 512)):
            super().__init__()
            s.i, s.o = nn.Conv2d(4, c[0], 3, padding=1), nn.Conv2d(c[0], 4, 3, padding=1)
            s.down = nn.ModuleList(Level(a, b, b > 128) for a, b in zip(c[:1] + c, c))
            s.up = nn.ModuleList(Level(2 * b, a, a > 128) for a, b in zip(c[:1] + c, c))

        def forward(s, x):
            x, kept = s.i(x), []
            for f in s.down:
                kept.append(f(x))
                x = F.avg_pool2d(kept[-1], 2)
            for f in reversed(s.up):
                x = f(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1))
            return s.o(x)

    m = on(Unet)
    some = lambda: N(rng.choice((2, 4, 6)), 4, 16 * rng.randint(3, 8), 16 * rng.randint(3, 8))
    fit(m, lambda m: m(some()).square().mean(), 8, amp=BF)
    with torch.inference_mode(), torch.autocast("cuda", BF):
        for _ in range(4):
            x = some()
            for _ in range(10):
                a, b = m(torch.cat([x, x])).chunk(2)
                x = x - 0.1 * (a + 4 * (b - a))


@program("a film from a transformer over space and time, decoded in tiles")
def film_in_tiles():
    m = on(lambda: nn.ModuleList(Layer(1536, 12, False) for _ in range(8)), dt=BF)
    parts = [f for i, o in ((64, 256), (256, 128), (128, 64))
             for f in (nn.Conv3d(i, o, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=(1, 2, 2)))]
    decode = stack(*parts, nn.Conv3d(64, 3, 3, padding=1)).to(dev, BF)
    with torch.inference_mode():
        for frames, h, w in ((9, 30, 52), (17, 20, 36), (5, 44, 44), (13, 26, 40), (9, 30, 52)):
            x = N(2, frames * h * w, 1536, dt=BF)
            for _ in range(6):
                y = x
                for f in m:
                    y = f(y)
                x = x + 0.1 * (y[:1] + 4 * (y[1:] - y[:1]))
            z = x[:1, :, :64].mT.unflatten(2, (frames, h, w))
            rows = [torch.cat([decode(t) for t in r.split(16, 4)], 4) for r in z.split(16, 3)]
            torch.cat(rows, 3).clamp(0, 1).mul(255).byte().cpu()


@program("detection with varying sizes and numbers of boxes", "torchvision")
def detection_of_many_boxes():
    m = on(torchvision.models.detection.fasterrcnn_resnet50_fpn_v2, weights=None,
           weights_backbone=None, min_size=(480, 560, 640, 800))

    def some(n):
        return [torch.rand(3, rng.randint(400, 800), rng.randint(500, 900), device=dev)
                for _ in range(n)]

    def boxes():
        a = torch.rand(rng.randint(1, 60), 2, device=dev) * 300
        return dict(boxes=torch.cat([a, a + 10 + 100 * torch.rand_like(a)], 1),
                    labels=T(len(a), v=90) + 1)

    fit(m, lambda m: sum(m(some(4), [boxes() for _ in range(4)]).values()), 6, SGD)
    m.eval()
    with torch.inference_mode():
        for n in (1, 3, 8, 2, 5, 1):
            m(some(n))
